<?php
// The commands that two PHP applications send to their cache, in their order and with their options:
// - WordPress with the plugin Redis Object Cache 2.6, which uses php-redis or Predis
// - Nextcloud 31 (`OC\Memcache\Redis`), which uses php-redis, also for its file locks; here through Predis too
// Argument: the socket.
error_reporting(E_ALL & ~E_DEPRECATED);
set_error_handler(function ($number, $text, $file, $line) {
    if (error_reporting() & $number) {
        throw new ErrorException($text, 0, $number, $file, $line);
    }
});
require 'Predis/autoload.php';

function expect($found, $wanted): void
{
    if ($found !== $wanted) {
        throw new Exception('found ' . var_export($found, true) . ', wanted ' . var_export($wanted, true));
    }
}

// Results as the applications compare them: Predis returns status objects and null, php-redis returns true and false.
function result($reply)
{
    if ($reply instanceof Predis\Response\Status) {
        return $reply->getPayload() === 'OK' ? true : $reply->getPayload();
    }
    return $reply === null ? false : $reply;
}

// WordPress: the object cache.
function wordpress($redis): void
{
    $isPredis = $redis instanceof Predis\Client;
    $options = fn ($seconds) => $isPredis
        ? array_merge(['nx'], $seconds ? ['ex', $seconds] : [])
        : [$seconds ? ['nx', 'ex' => $seconds] : ['nx']];
    $run = fn ($pipeline) => array_map('result', $isPredis ? $pipeline->execute() : $pipeline->exec());
    $eval = fn ($script, ...$keys) => $isPredis
        ? $redis->eval($script, count($keys), ...$keys)
        : $redis->eval($script, $keys, count($keys));

    $version = $redis->info()['redis_version'] ?? $redis->info()['Server']['redis_version'];
    expect(version_compare($version, '5', '>='), true);
    $value = serialize(['title' => 'Hello world', 'tags' => [1, 2, 3]]);
    expect(result($redis->set('wp:posts:1', $value, ...$options(3600))), true);
    expect(result($redis->set('wp:posts:1', 'other', ...$options(0))), false);
    expect(result($redis->setex('wp:posts:2', 3600, $value)), true);
    expect(result($redis->set('wp:options:alloptions', $value)), true);
    expect(unserialize($redis->get('wp:posts:1')), unserialize($value));
    expect(result($redis->get('wp:posts:404')), false);

    $pipeline = $redis->pipeline();
    foreach (['wp:terms:1', 'wp:terms:2', 'wp:posts:1'] as $key) {
        $pipeline->set($key, 'term', ...$options(60));
    }
    expect($run($pipeline), [true, true, false]);
    $pipeline = $redis->pipeline();
    $pipeline->setex('wp:users:1', 60, 'ana');
    $pipeline->set('wp:users:2', 'ben');
    expect($run($pipeline), [true, true]);
    expect(array_map('result', $redis->mget(['wp:users:1', 'wp:users:404', 'wp:users:2'])), ['ana', false, 'ben']);
    $pipeline = $redis->pipeline();
    foreach (['wp:users:1', 'wp:users:2', 'wp:users:404'] as $key) {
        $pipeline->del($key);
    }
    expect($run($pipeline), [1, 1, 0]);
    // The counters are read and written back.
    expect(result($redis->set('wp:counts:views', (int) $redis->get('wp:counts:views') + 2)), true);
    expect((int) $redis->get('wp:counts:views'), 2);
    expect($redis->del('wp:options:alloptions'), 1);

    // A script flushes one site, or all groups but those that must stay.
    for ($i = 0; $i < 200; $i++) {
        $redis->set("wp:many:$i", 'x');
        $redis->set("other:many:$i", 'x');
    }
    $flush = "
        local cursor, removed = 0, 0
        repeat
            local page = redis.call('SCAN', cursor, 'MATCH', 'wp:*')
            cursor = tonumber(page[1])
            for _, key in pairs(page[2]) do
                local stays = false
                for _, group in pairs(KEYS) do stays = stays or key:find(group, 1, true) ~= nil end
                if not stays then removed = removed + redis.call('del', key) end
            end
        until cursor == 0
        return removed";
    expect($eval($flush, ':posts:', ':terms:'), 201);
    expect($redis->exists('wp:posts:1', 'wp:terms:2'), 2);
    expect($eval($flush), 4);
    expect($redis->dbsize(), 200);
    expect(result($redis->flushdb()), true);
    expect($redis->dbsize(), 0);
}

// Nextcloud: values, and the counters of its locks.
function nextcloud($redis): void
{
    $isPredis = $redis instanceof Predis\Client;
    $scripts = [
        'decrement' => "if redis.call('exists', KEYS[1]) == 0 then return 'NEX' end "
            . "return redis.call('decrby', KEYS[1], ARGV[1])",
        'compareAndSet' => "if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end "
            . "redis.call('set', KEYS[1], ARGV[2]) return 1",
        'compareAndDelete' => "if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end return redis.call('del', KEYS[1])",
        'deleteUnless' => "if redis.call('get', KEYS[1]) == ARGV[1] then return 0 end return redis.call('del', KEYS[1])",
        'compareAndExpire' => "if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end "
            . "redis.call('expire', KEYS[1], ARGV[2]) return 1",
    ];
    // First by the script's digest, then, because the server does not know it, by its text.
    $script = function ($name, $key, ...$arguments) use ($redis, $scripts, $isPredis) {
        $text = $scripts[$name];
        if ($isPredis) {
            try {
                return $redis->evalsha(sha1($text), 1, $key, ...$arguments);
            } catch (Predis\Response\ServerException $error) {
                expect($error->getErrorType(), 'NOSCRIPT');
                return $redis->eval($text, 1, $key, ...$arguments);
            }
        }
        $found = $redis->evalSha(sha1($text), [$key, ...$arguments], 1);
        return $found === false ? $redis->eval($text, [$key, ...$arguments], 1) : $found;
    };

    expect(result($redis->setex('nc/files/1', 86400, json_encode(['size' => 12]))), true);
    expect(json_decode($redis->get('nc/files/1'), true), ['size' => 12]);
    expect(result($redis->get('nc/files/2')), false);
    expect((bool) $redis->exists('nc/files/1'), true);
    $add = $isPredis ? ['nx', 'ex', 86400] : [['nx', 'ex' => 86400]];
    expect(result($redis->set('nc/files/2', '"new"', ...$add)), true);
    expect(result($redis->set('nc/files/2', '"newer"', ...$add)), false);
    // Predis 1.1 does not know UNLINK.
    expect($isPredis ? $redis->executeRaw(['UNLINK', 'nc/files/2']) : $redis->unlink('nc/files/2'), 1);

    // A lock: shared by two, then exclusive, then expired earlier.
    expect($redis->incrBy('nc/lock', 1), 1);
    expect($redis->incrBy('nc/lock', 1), 2);
    expect((bool) $redis->expire('nc/lock', 3600), true);
    expect($script('compareAndSet', 'nc/lock', '1', '"exclusive"'), 0);
    expect($script('decrement', 'nc/lock', '1'), 1);
    expect($script('decrement', 'nc/nothing', '1'), 'NEX');
    expect($script('compareAndSet', 'nc/lock', '1', '"exclusive"'), 1);
    expect($redis->ttl('nc/lock'), -1);
    expect($script('compareAndExpire', 'nc/lock', '"exclusive"', '100'), 1);
    expect(in_array($redis->ttl('nc/lock'), [99, 100], true), true);
    expect($script('compareAndDelete', 'nc/lock', '1'), 0);
    expect($script('deleteUnless', 'nc/lock', '"exclusive"'), 0);
    expect($script('compareAndDelete', 'nc/lock', '"exclusive"'), 1);
    expect($script('deleteUnless', 'nc/files/1', '1'), 1);

    // clear() removes all keys with a prefix.
    foreach (['nc/a/1', 'nc/a/2', 'nc/b/1'] as $key) {
        $redis->setex($key, 60, '1');
    }
    $keys = $redis->keys('nc/a*');
    expect(count($keys), 2);
    expect($redis->del($keys), 2);
    expect($redis->keys('*'), ['nc/b/1']);
    expect(result($redis->flushdb()), true);
}

$path = $argv[1];
$phpRedis = new Redis();
expect($phpRedis->connect($path, -1, 1, '', 0, 1), true);
expect($phpRedis->ping(), true);
wordpress($phpRedis);
$persistent = new Redis();
expect($persistent->pconnect($path, 0, 0.0, null, 0, 0.0), true);
expect($persistent->select(1), true);
nextcloud($persistent);
$predis = new Predis\Client(['scheme' => 'unix', 'path' => $path, 'database' => 2]);
$predis->connect();
wordpress($predis);
nextcloud($predis);
echo "all is well\n";
