<?php
// Tests the options of Examples/clients/php/cached.php. Argument: the socket.
error_reporting(E_ALL);
set_error_handler(function ($number, $text, $file, $line) {
    throw new ErrorException($text, 0, $number, $file, $line);
});
require __DIR__ . '/../../../../Examples/clients/php/cached.php';

function expect($found, $wanted): void
{
    if ($found !== $wanted) {
        throw new Exception('found ' . var_export($found, true) . ', wanted ' . var_export($wanted, true));
    }
}

function within($number, $least, $most): void
{
    expect([$number, $number > $least && $number <= $most], [$number, true]);
}

function connected(): Redis
{
    $redis = new Redis();
    $redis->connect($GLOBALS['argv'][1]);
    return $redis;
}

$redis = connected();
$other = connected();

/** The state of a key and its remaining time, as another connection sees them. Releases a lease that FETCH grants. */
function asked(string $key): array
{
    global $other;
    [$state, , $token, , , $left] = $other->rawCommand('FETCH', $key);
    if (is_string($token)) {
        $other->rawCommand('RELEASE', $key, $token);
    }
    return [$state, $left];
}

// The lifetime of an entry.
$value = [1, 'two'];
expect(cached($redis, 'stored', ['ttl' => 100.5, 'grace' => 60, 'jitter' => 0], fn() => $value), $value);
within($other->pttl('stored'), 30000, 100500);
$meta = $other->rawCommand('META', 'stored');
expect($meta[array_search('grace', $meta, true) + 1], 60000);
expect(cached($redis, 'stored', [], fn() => null), $value);
try {
    cached($redis, 'jitter', ['ttl' => 100, 'jitter' => 1000], fn() => 1);
    throw new Exception('a jitter of 1000 % was taken');
} catch (RedisException $error) {
    expect(str_contains(strtolower($error->getMessage()), 'jitter'), true);
}

// Remembered absences and failures of the origin.
expect(cached($redis, 'absent', ['absentFor' => 100.5], fn() => null), null);
[$state, $left] = asked('absent');
expect($state, 'absent');
within($left, 30000, 100500);
expect(cached($redis, 'asked again', ['absentFor' => 0], fn() => null), null);
expect(asked('asked again')[0], 'lead');
foreach ([['failed', 100.5, 'failed'], ['tried again', 0, 'lead']] as [$key, $backOff, $wanted]) {
    try {
        cached($redis, $key, ['backOff' => $backOff], fn() => throw new RuntimeException('down'));
        throw new Exception('no error');
    } catch (RuntimeException $error) {
        expect($error->getMessage(), 'down');
    }
    [$state, $left] = asked($key);
    expect($state, $wanted);
    if ($state === 'failed') {
        within($left, 30000, 100500);
    }
}

// The lease, and how long other clients wait.
$five = cached($redis, 'leased', ['lease' => 100.5], function () {
    [$state, $left] = asked('leased');
    expect($state, 'wait');
    within($left, 30000, 100500);
    try {
        cached(connected(), 'leased', ['wait' => 0.05], fn() => 1);
        throw new Exception('it did not wait');
    } catch (Unavailable $error) {
        return 5;
    }
});
expect($five, 5);
echo "all is well\n";
