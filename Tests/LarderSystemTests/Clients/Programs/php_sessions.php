<?php
// PHP sessions with a lock, using php-redis: concurrent requests lose no update. Arguments: the socket; for a request that
// this program starts, also the session's name, and the number of visits or `once`.
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
ini_set('session.save_handler', 'redis');
ini_set('session.save_path', "unix://$path?prefix=session:");
ini_set('session.use_cookies', '0');
ini_set('session.cache_limiter', '');
ini_set('redis.session.locking_enabled', '1');
ini_set('redis.session.lock_expire', '100');
// Wait 1000 microseconds between attempts, and retry without limit while another request has the session.
ini_set('redis.session.lock_wait_time', '1000');
ini_set('redis.session.lock_retries', '-1');

if (isset($argv[2]) && $argv[3] === 'once') {
    ini_set('redis.session.lock_retries', '2');
    session_id($argv[2]);
    $told = [];
    set_error_handler(function ($number, $text) use (&$told) {
        $told[] = $text;
        return true;
    });
    session_start();
    $_SESSION['visits'] = 0;
    session_write_close();
    echo implode('; ', $told), "\n";
    exit();
}
if (isset($argv[2])) {
    for ($visit = 0; $visit < (int) $argv[3]; $visit++) {
        session_id($argv[2]);
        expect(session_start(), true);
        $visits = $_SESSION['visits'] ?? 0;
        usleep(1000);
        $_SESSION['visits'] = $visits + 1;
        session_write_close();
        $_SESSION = [];
    }
    exit("visited\n");
}

$redis = new Redis();
expect($redis->connect($path), true);
$requests = [];
foreach (range(1, 4) as $request) {
    $command = array_map('escapeshellarg', [PHP_BINARY, __FILE__, $path, 'shared', '25']);
    $requests[] = popen(implode(' ', $command), 'r');
}
foreach ($requests as $request) {
    expect(stream_get_contents($request), "visited\n");
    expect(pclose($request), 0);
}
expect($redis->get('session:shared'), 'visits|i:100;');
expect($redis->exists('session:shared_LOCK'), 0);

// While the session is open, its lock is in the server, with its timeout.
session_id('shared');
expect(session_start(), true);
expect(in_array($redis->ttl('session:shared_LOCK'), [99, 100], true), true);
$holder = $redis->get('session:shared_LOCK');
// Another request tries twice to get the lock. Then it can read the session, but gets an error when it writes.
$command = array_map('escapeshellarg', [PHP_BINARY, __FILE__, $path, 'shared', 'once']);
$told = exec(implode(' ', $command));
expect(str_contains($told, 'Acquire of session lock was not successful'), true);
expect(str_contains($told, 'Failed to write session data'), true);
expect($redis->get('session:shared'), 'visits|i:100;');
expect($redis->get('session:shared_LOCK'), $holder);
// A request that has lost its lock does not release the lock of the new holder.
expect($redis->set('session:shared_LOCK', 'somebody else'), true);
set_error_handler(fn () => true);
session_write_close();
expect($redis->get('session:shared_LOCK'), 'somebody else');
expect($redis->flushAll(), true);
echo "all is well\n";
