<?php
// Fetches through larderd with php-redis: of all processes that need a value, only one asks the origin.
//
//     $found = cached($redis, "weather:oslo", ["ttl" => 600, "grace" => 3600], fn() => ask("oslo"));
//
// As a program: php cached.php SOCKET CITY, where SOCKET is an absolute path

/** No value is available now: the origin failed a short time ago, or another process is still asking it. */
class Unavailable extends Exception {}

/** Sends a command, and throws its error. php-redis returns false for an error, as for null. */
function larderCommand(Redis $redis, mixed ...$words): mixed
{
    $redis->clearLastError();
    $reply = $redis->rawCommand(...$words);
    return $redis->getLastError() === null ? $reply : throw new RedisException($redis->getLastError());
}

/**
 * Returns a value, and asks the origin only if necessary. The result of `$ask` must be convertible to JSON; null means
 * that the origin has no value. Times are in seconds. `ttl` and `grace` are those of the entry. `wait` limits the wait
 * for another process. `lease` limits the call of the origin; by default it is 30, and another process takes over at once
 * if this one exits. The origin is not asked for `backOff` after it failed, and for `absentFor` after it returned null;
 * 0 means that it is asked again at once.
 */
function cached(Redis $redis, string $key, array $options, callable $ask): mixed
{
    $options += ["wait" => 30, "backOff" => 5, "absentFor" => 60];
    $asking = ["WAIT", (int) ($options["wait"] * 1000)];
    if (isset($options["lease"])) {
        array_push($asking, "LEASE", (int) ($options["lease"] * 1000));
    }
    // A waiting FETCH may take longer than the connection's read timeout, so raise it.
    $limit = $redis->getOption(Redis::OPT_READ_TIMEOUT);
    $redis->setOption(Redis::OPT_READ_TIMEOUT, $options["wait"] + 5);
    try {
        [$state, $value, $token] = larderCommand($redis, "FETCH", $key, ...$asking);
    } finally {
        // 0 is the default of a connection, and means this setting of PHP.
        $redis->setOption(Redis::OPT_READ_TIMEOUT, $limit ?: (float) ini_get("default_socket_timeout"));
    }
    if ($state === "absent") {
        return null;
    }
    if ($state === "failed" || $state === "wait") {
        throw new Unavailable("$key: $state");
    }
    $release = function (string $word, float $seconds) use ($redis, $key, $token) {
        larderCommand($redis, "RELEASE", $key, $token, ...($seconds > 0 ? [$word, (int) ($seconds * 1000)] : []));
    };
    $former = is_string($value) ? json_decode($value, true) : null;
    if ($state !== "lead") {
        return $former;
    }
    try {
        $found = $ask();
    } catch (Throwable $error) {
        $release("FAILED", $options["backOff"]);
        return $former ?? throw $error;
    }
    if ($found === null) {
        $release("ABSENT", $options["absentFor"]);
        return null;
    }
    $words = ["SET", $key, json_encode($found)];
    if (isset($options["ttl"])) {
        array_push($words, "PX", (int) ($options["ttl"] * 1000));
    }
    foreach (["grace" => "GRACE", "jitter" => "JITTER"] as $name => $word) {
        if (isset($options[$name])) {
            array_push($words, $word, $options[$name]);
        }
    }
    // If the entry was written or purged in the meantime, this stores nothing. The value is still correct.
    larderCommand($redis, ...$words, ...["TOKEN", $token]);
    return $found;
}

function main(array $words): int
{
    if (count($words) !== 2) {
        fwrite(STDERR, "usage: php cached.php SOCKET CITY\n");
        return 2;
    }
    [$socket, $city] = $words;
    $redis = new Redis();
    $redis->connect($socket);
    try {
        $found = cached($redis, "weather:$city", ["ttl" => 600, "grace" => 3600], function () use ($city) {
            fwrite(STDERR, "php asks the origin\n");
            if ($city === "atlantis") {
                return null;
            }
            if ($city === "hell") {
                throw new RuntimeException("the origin does not answer");
            }
            return ["city" => $city, "sky" => "rain"];
        });
    } catch (RuntimeException | Unavailable $error) {
        fwrite(STDERR, $error->getMessage() . "\n");
        return 3;
    }
    if ($found === null) {
        return 1;
    }
    echo $found["city"], ": ", $found["sky"], "\n";
    return 0;
}

if (realpath($_SERVER["SCRIPT_FILENAME"]) === __FILE__) {
    exit(main(array_slice($argv, 1)));
}
