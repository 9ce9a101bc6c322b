/// Scripts that the daemon runs for locks, each atomically.
///
/// A lock is an entry under the lock's name, with a random value and a deadline, as in other Redis clients. A second
/// entry stores the last fencing token.
enum LockScripts {
    /// Returns the key of the entry with the last fencing token.
    static func fence(_ key: [UInt8]) -> [UInt8] { key + Array(":fence".utf8) }
    /// Returns the key that waiting callers request with FETCH. It never has an entry.
    static func queue(_ key: [UInt8]) -> [UInt8] { key + Array(":queue".utf8) }

    /// Takes the lock. KEYS: the lock, the last token. ARGV: the holder's random value, the duration in milliseconds.
    /// Returns the token and 0; or, if another holder has the lock, nil and the remaining time in milliseconds, -1
    /// without a deadline.
    ///
    /// The token is the time of the daemon's clock in microseconds, or the last token plus 1 if that is greater.
    /// Because of the clock, tokens increase even if the last token was purged, or lost in a power failure. A holder
    /// that runs the script again gets a new token.
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

    /// Renews the lock. KEYS: the lock. ARGV: the holder's random value, the duration in milliseconds. Returns whether
    /// the lock still belongs to the caller.
    static let renew = Script(
        """
        if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) end
        return 0
        """)

    /// Releases the lock. KEYS: the lock. ARGV: the holder's random value. Returns whether the lock still belonged to
    /// the caller.
    static let release = Script(
        """
        if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end
        return 0
        """)
}
