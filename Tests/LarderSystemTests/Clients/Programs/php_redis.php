<?php
// Tests a PHP program that uses php-redis. Argument: the socket.
error_reporting(E_ALL);
set_error_handler(function ($number, $text, $file, $line) {
    throw new ErrorException($text, 0, $number, $file, $line);
});

function expect($found, $wanted): void
{
    if ($found !== $wanted) {
        throw new Exception('found ' . var_export($found, true) . ', wanted ' . var_export($wanted, true));
    }
}

$path = $argv[1];
$redis = new Redis();
expect($redis->connect($path), true);
expect($redis->ping(), true);

// Values.
expect($redis->set('k', "\0\xff\r\n"), true);
expect($redis->get('k'), "\0\xff\r\n");
expect($redis->get('nothing'), false);
expect($redis->set('k', 'other', ['nx']), false);
expect($redis->set('k', 'other', ['xx', 'ex' => 100]), true);
expect(in_array($redis->ttl('k'), [99, 100], true), true);
expect($redis->persist('k'), true);
expect($redis->ttl('k'), -1);
expect($redis->pExpireAt('k', 4102444800000), true);
expect($redis->setex('later', 100, 'v'), true);
expect($redis->psetex('later', 100000, 'w'), true);
expect($redis->setnx('later', 'x'), false);
expect($redis->getSet('later', 'x'), 'w');
expect($redis->incr('n'), 1);
expect($redis->incrBy('n', 41), 42);
expect($redis->incrByFloat('n', 0.5), 42.5);
expect($redis->incr('k'), false);
expect(str_starts_with($redis->getLastError(), 'ERR value is not an integer or out of range'), true);
expect($redis->clearLastError(), true);
expect($redis->append('n', '!'), 5);
expect($redis->getRange('n', 0, 1), '42');
expect($redis->setRange('n', 0, '17'), 5);
expect($redis->strlen('n'), 5);
expect($redis->setBit('bits', 7, true), 0);
expect($redis->bitCount('bits'), 1);
expect($redis->bitpos('bits', 1), 7);
expect($redis->mSet(['a' => '1', 'b' => '2']), true);
expect($redis->mGet(['a', 'nothing', 'b']), ['1', false, '2']);
expect($redis->msetnx(['a' => '3', 'c' => '3']), false);
expect($redis->exists('a', 'b', 'nothing'), 2);
expect($redis->type('a'), Redis::REDIS_STRING);
expect($redis->rename('a', 'z'), true);
expect($redis->object('encoding', 'z'), 'int');
expect($redis->restore('restored', 0, $redis->dump('z')), true);
expect($redis->get('restored'), '1');
expect($redis->del('z', 'b', 'nothing'), 2);
expect($redis->unlink('restored'), 1);

// Scans and reads of types other than strings. With php-redis 5.3, an error would leave an unread reply in the connection,
// so that the next GET would return another key's value.
expect($redis->mSet(['alice' => 'secret of alice', 'bob' => 'secret of bob']), true);
foreach (['hScan', 'sScan', 'zScan'] as $scan) {
    $cursor = null;
    expect((bool) $redis->$scan('members', $cursor), false);
    expect([$redis->get('alice'), $redis->get('bob')], ['secret of alice', 'secret of bob']);
}
expect([$redis->hGetAll('members'), $redis->sMembers('members'), $redis->zRange('members', 0, -1)], [[], [], []]);
expect([$redis->lRange('members', 0, -1), $redis->lPop('members'), $redis->hGet('members', 'f')], [[], false, false]);
expect([$redis->sRem('members', 'm'), $redis->zScore('members', 'm'), $redis->sPop('members')], [0, false, false]);
expect($redis->get('bob'), 'secret of bob');
expect($redis->del('alice', 'bob'), 2);

// Serialized PHP arrays.
$redis->setOption(Redis::OPT_SERIALIZER, (string) Redis::SERIALIZER_PHP);
$redis->setOption(Redis::OPT_PREFIX, 'app:');
$model = ['title' => '一本书', 'pages' => 321, 'tags' => ['x', 'y']];
expect($redis->set('model', $model, 60), true);
expect($redis->get('model'), $model);
$redis->setOption(Redis::OPT_SERIALIZER, (string) Redis::SERIALIZER_NONE);
$redis->setOption(Redis::OPT_PREFIX, '');
expect($redis->get('app:model'), serialize($model));

// Scanning.
for ($index = 0; $index < 1000; $index++) {
    $redis->set("scan:$index", (string) $index);
}
$found = [];
$redis->setOption(Redis::OPT_SCAN, (string) Redis::SCAN_RETRY);
$cursor = null;
while (($keys = $redis->scan($cursor, 'scan:*', 17)) !== false) {
    foreach ($keys as $key) {
        $found[$key] = true;
    }
}
expect(count($found), 1000);
expect(count($redis->keys('scan:99*')), 11);

// A pipeline and transactions.
$pipe = $redis->multi(Redis::PIPELINE);
for ($index = 0; $index < 10000; $index++) {
    $pipe->set('p', (string) $index);
    $pipe->get('p');
}
$replies = $pipe->exec();
expect(count($replies), 20000);
for ($index = 0; $index < 10000; $index++) {
    expect($replies[2 * $index], true);
    expect($replies[2 * $index + 1], (string) $index);
}
expect($redis->multi()->set('t', '1')->incr('t')->get('t')->exec(), [true, 2, '2']);
$other = new Redis();
expect($other->connect($path), true);
expect($redis->watch('t'), true);
expect($other->set('t', 'changed'), true);
expect($redis->multi()->set('t', 'lost')->exec(), false);
expect($redis->watch('t'), true);
expect($redis->multi()->set('t', 'won')->exec(), [true]);
expect($redis->multi()->set('t', 'dropped')->discard(), true);
expect($other->get('t'), 'won');

// PHP sessions, with the session handler of the extension.
ini_set('session.save_handler', 'redis');
ini_set('session.save_path', "unix://$path?prefix=session:");
ini_set('session.use_cookies', '0');
ini_set('session.cache_limiter', '');
session_id('abcdefghijklmnopqrstuvwxyz');
expect(session_start(), true);
$_SESSION['user'] = 'Ann';
session_write_close();
expect($other->get('session:abcdefghijklmnopqrstuvwxyz'), 'user|s:3:"Ann";');
expect($other->ttl('session:abcdefghijklmnopqrstuvwxyz') > 60, true);
$_SESSION = [];
session_id('abcdefghijklmnopqrstuvwxyz');
expect(session_start(), true);
expect($_SESSION, ['user' => 'Ann']);
expect(session_destroy(), true);
expect($other->exists('session:abcdefghijklmnopqrstuvwxyz'), 0);

// Messages: another process publishes as soon as there is a subscriber.
$subscriber = new Redis();
expect($subscriber->connect($path, 0, 0, null, 0, 60), true);
expect($redis->publish('news', 'nobody hears'), 0);
$heard = [];
$process = popen(escapeshellarg(PHP_BINARY) . ' -r ' . escapeshellarg(
    '$r = new Redis(); $r->connect($argv[1]);'
    . 'while ($r->publish("news", "first") == 0); $r->publish("news", "last");') . ' ' . escapeshellarg($path), 'r');
try {
    $subscriber->subscribe(['news'], function ($redis, $channel, $message) use (&$heard) {
        $heard[] = "$channel $message";
        if ($message === 'last') {
            $redis->close();
        }
    });
} catch (RedisException $closed) {
    // subscribe() ends only when its connection is closed.
    expect($closed->getMessage(), 'Connection closed');
}
pclose($process);
expect($heard, ['news first', 'news last']);

// The server.
expect(str_starts_with($redis->info('server')['redis_version'], '7.0.'), true);
expect($redis->config('GET', 'maxclients'), ['maxclients' => '10000']);
expect($redis->client('setname', 'php'), true);
expect($redis->client('getname'), 'php');
expect(abs((int) $redis->time()[0] - time()) < 60, true);
expect($redis->select(1), true);
expect($redis->dbSize(), 0);
expect($redis->rawCommand('SET', 'raw', 'v'), true);
expect($redis->select(0), true);
expect($redis->flushAll(), true);
expect($redis->dbSize(), 0);
echo "all is well\n";
