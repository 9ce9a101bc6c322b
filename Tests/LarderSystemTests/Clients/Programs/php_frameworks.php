<?php
// Laravel's cache, locks, throttle and funnel, and Symfony's cache, rate limiter and lock, in Debian's versions, with
// php-redis and with Predis. Arguments: the socket; for a process that this program starts, also the number of increments.
error_reporting(E_ALL & ~E_DEPRECATED);
set_error_handler(function ($number, $text, $file, $line) {
    if (error_reporting() & $number) {
        throw new ErrorException($text, 0, $number, $file, $line);
    }
});

require 'Illuminate/Support/autoload.php';
require 'Illuminate/Cache/autoload.php';
require 'Illuminate/Redis/autoload.php';
require 'Predis/autoload.php';
require 'Symfony/Component/Cache/autoload.php';
require 'Symfony/Component/Lock/autoload.php';
require 'Symfony/Component/RateLimiter/autoload.php';

use Illuminate\Cache\RateLimiter;
use Illuminate\Cache\RedisStore;
use Illuminate\Cache\Repository;
use Illuminate\Redis\RedisManager;
use Symfony\Component\Cache\Adapter\RedisAdapter;
use Symfony\Component\Lock\LockFactory;
use Symfony\Component\RateLimiter\RateLimiterFactory;
use Symfony\Component\RateLimiter\Storage\CacheStorage;

function expect($found, $wanted): void
{
    if ($found !== $wanted) {
        throw new Exception('found ' . var_export($found, true) . ', wanted ' . var_export($wanted, true));
    }
}

// Returns the texts of the error that `call` throws, and of its causes.
function error(callable $call): string
{
    try {
        $found = $call();
    } catch (Exception $error) {
        $texts = [];
        for (; $error !== null; $error = $error->getPrevious()) {
            $texts[] = $error->getMessage();
        }
        return implode(': ', $texts);
    }
    throw new Exception('found ' . var_export($found, true) . ', wanted an error');
}

$path = $argv[1];
$raw = new Redis();
expect($raw->connect($path), true);
$isRedis = str_ends_with($raw->info('server')['executable'] ?? '', 'redis-server');

function laravel(string $client): RedisManager
{
    global $path;
    $places = ['phpredis' => ['host' => $path, 'port' => 0], 'predis' => ['scheme' => 'unix', 'path' => $path]];
    return new RedisManager(null, $client, ['default' => $places[$client] + ['database' => 0]]);
}

if (isset($argv[2])) {
    $cache = new Repository(new RedisStore(laravel('phpredis'), 'laravel'));
    for ($turn = 0; $turn < (int) $argv[2]; $turn++) {
        $cache->lock('counting', 100)->block(100, fn () => $cache->forever('sum', (int) $cache->get('sum', 0) + 1));
    }
    exit("counted\n");
}

foreach (['phpredis', 'predis'] as $client) {
    $redis = laravel($client);
    $cache = new Repository(new RedisStore($redis, 'laravel'));

    // Cache::add is a script: only the first call adds a value.
    expect($cache->put('model', ['title' => '一本书'], 100), true);
    expect($cache->get('model'), ['title' => '一本书']);
    expect([$cache->add('added', 'first', 100), $cache->add('added', 'second', 100)], [true, false]);
    expect($cache->get('added'), 'first');
    expect(in_array($raw->ttl('laravel:added'), [99, 100], true), true);
    expect($cache->remember('made', 100, fn () => 'computed'), 'computed');
    expect($cache->pull('made'), 'computed');
    expect([$cache->increment('n', 5), $cache->decrement('n')], [5, 4]);
    expect($cache->many(['added', 'nothing']), ['added' => 'first', 'nothing' => null]);
    expect($cache->putMany(['a' => 1, 'b' => 2], 100), true);

    // Locks.
    $lock = $cache->lock('lock', 100);
    expect([$lock->get(), $cache->lock('lock', 100)->get()], [true, false]);
    expect($cache->lock('lock', 100)->release(), false);
    expect($raw->exists('laravel:lock'), 1);
    expect($cache->restoreLock('lock', $lock->owner())->release(), true);
    expect($raw->exists('laravel:lock'), 0);
    expect($cache->lock('lock', 100)->get(fn () => 'inside'), 'inside');
    expect($raw->exists('laravel:lock'), 0);

    // Tags need sets, which cannot be stored. Predis reports that. php-redis hides it, and flush() gives the tag another
    // name, under which nothing is found. Entries without tags are not affected.
    $put = fn () => $cache->tags(['people'])->put('ann', 'v', 100);
    if ($isRedis || $client === 'phpredis') {
        expect([$put(), $cache->tags(['people'])->get('ann')], [true, 'v']);
    } else {
        expect(str_contains(error($put), 'there are no sets: Larder stores strings only'), true);
    }
    expect($cache->tags(['people'])->flush(), true);
    expect($cache->tags(['people'])->get('ann'), null);
    expect([$cache->get('added'), $cache->get('n')], ['first', '4']);

    // The rate limit for routes.
    $limiter = new RateLimiter($cache);
    $attempts = [];
    foreach (range(1, 5) as $attempt) {
        $attempts[] = $limiter->attempt('ann', 3, fn () => 'passed', 100);
    }
    expect($attempts, ['passed', 'passed', 'passed', false, false]);
    expect([$limiter->tooManyAttempts('ann', 3), $limiter->tooManyAttempts('bob', 3)], [true, false]);
    expect($limiter->retriesLeft('ann', 3), 0);
    expect(in_array($limiter->availableIn('ann'), [98, 99, 100], true), true);
    $limiter->clear('ann');
    expect($limiter->tooManyAttempts('ann', 3), false);

    // Redis::funnel: two at a time.
    $funnel = fn ($name) => $redis->connection()->funnel($name)->limit(2)->releaseAfter(100)->block(0);
    expect($funnel('f')->then(fn () => $funnel('f')->then(fn () => 'second')), 'second');
    $third = fn () => $funnel('f')->then(fn () => $funnel('f')->then(fn () => $funnel('f')->then(
        fn () => 'third', fn () => 'full')));
    expect($third(), 'full');
    expect($raw->keys('f*'), []);

    // Redis::throttle uses a hash. Without hashes, no call passes. Predis reports the reason; php-redis hides errors.
    $throttle = fn () => $redis->connection()->throttle('t')->allow(2)->every(100)->block(0)->then(
        fn () => 'passed', fn () => 'full');
    if ($isRedis) {
        expect([$throttle(), $throttle(), $throttle()], ['passed', 'passed', 'full']);
    } elseif ($client === 'predis') {
        expect(str_contains(error($throttle), 'there are no hashes: Larder stores strings only'), true);
    } else {
        expect(error($throttle), 'Trying to access array offset on value of type bool');
    }
    expect($cache->flush(), true);
}

// Several processes increment a number under a lock.
$processes = [];
foreach (range(1, 3) as $_) {
    $processes[] = popen(implode(' ', array_map('escapeshellarg', [PHP_BINARY, __FILE__, $path, '1'])), 'r');
}
foreach ($processes as $process) {
    expect(stream_get_contents($process), "counted\n");
    expect(pclose($process), 0);
}
$cache = new Repository(new RedisStore(laravel('phpredis'), 'laravel'));
expect($cache->get('sum'), '3');

// Symfony's cache, and rate limits that use it.
$dsn = "redis://$path";
foreach ([RedisAdapter::createConnection($dsn), new Predis\Client("unix:$path")] as $connection) {
    $pool = new RedisAdapter($connection, 'symfony', 100);
    $made = 0;
    $compute = function () use (&$made) {
        return ['made' => ++$made];
    };
    expect([$pool->get('model', $compute), $pool->get('model', $compute)], [['made' => 1], ['made' => 1]]);
    expect($pool->hasItem('model'), true);
    expect($pool->delete('model'), true);
    expect($pool->get('model', $compute), ['made' => 2]);
    foreach (['fixed_window', 'sliding_window', 'token_bucket'] as $policy) {
        $options = ['id' => $policy, 'policy' => $policy, 'limit' => 3];
        $options += ['interval' => '1 hour', 'rate' => ['interval' => '1 hour']];
        $limiter = (new RateLimiterFactory($options, new CacheStorage($pool)))->create('ann');
        $passed = array_map(fn () => $limiter->consume()->isAccepted(), range(1, 5));
        expect($passed, [true, true, true, false, false]);
    }
    expect($pool->clear(), true);
    expect($pool->hasItem('model'), false);
}

// Symfony's lock needs a sorted set, and has no variant without one: it fails, and reports the reason. On one machine,
// use its FlockStore.
foreach ([$raw, new Predis\Client("unix:$path")] as $connection) {
    $factory = new LockFactory(new Symfony\Component\Lock\Store\RedisStore($connection));
    $lock = $factory->createLock('lock', 100);
    if ($isRedis) {
        expect([$lock->acquire(), $factory->createLock('lock', 100)->acquire()], [true, false]);
        $lock->release();
    } else {
        $reason = error(fn () => $lock->acquire());
        expect(str_contains($reason, 'there are no sorted sets: Larder stores strings only'), true);
    }
}
expect($raw->flushAll(), true);
echo "all is well\n";
