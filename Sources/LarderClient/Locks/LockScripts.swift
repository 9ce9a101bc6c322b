/// Scripts that the daemon runs for locks, each atomically.
///
/// A lock is an entry under the lock's own name, with a random value and a deadline, as in other clients of Redis. A
/// second entry has the last fencing token.
enum LockScripts {
    /// The key of the last fencing token.
    static func fence(_ key: [UInt8]) -> [UInt8] { key + Array(":fence".utf8) }
    /// The key with the queue of waiting callers (FETCH). It never has an entry.
    static func queue(_ key: [UInt8]) -> [UInt8] { key + Array(":queue".utf8) }

    /// KEYS: the lock, the fence. ARGV: the random value, milliseconds. Returns the token; or nothing, and the
    /// remaining time of the other holder in milliseconds, -1 for no end.
    ///
    /// The token is the daemon's clock in microseconds, or one more than the last token if the clock is not later. So
    /// it also increases if the database was purged, or a power failure has lost the last token. Running it again gives
    /// the same holder a new token.
    static let acquire = Script(
        """
        local held = redis.call('get', KEYS[1])
        if held and held ~= ARGV[1] then return {false, redis.call('pttl', KEYS[1])} end
        local time = redis.call('time')
        local token = time[1] * 1000000 + time[2]
        local last = tonumber(redis.call('get', KEYS[2]) or 0)
        if last and last >= token then token = last + 1 end
        token = string.format('%.0f', token)
        redis.call('set', KEYS[2], token, 'px', 604800000)
        redis.call('set', KEYS[1], ARGV[1], 'px', ARGV[2])
        return {token, 0}
        """)

    /// KEYS: the lock. ARGV: the random value, milliseconds. Returns whether the lock still belongs to the caller.
    static let renew = Script(
        """
        if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) end
        return 0
        """)

    /// KEYS: the lock. ARGV: the random value. Returns whether the lock still belonged to the caller.
    static let release = Script(
        """
        if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end
        return 0
        """)
}
