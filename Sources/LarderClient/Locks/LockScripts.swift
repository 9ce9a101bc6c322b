/// What the daemon does for locks, each in one step.
///
/// A lock is an entry under the lock's own name, with a random value and a deadline, as other clients of Redis have
/// them. Beside it is an entry with the last fencing token.
enum LockScripts {
    /// The key of the last fencing token.
    static func fence(_ key: [UInt8]) -> [UInt8] { key + Array(":fence".utf8) }
    /// The key in whose queue callers wait (FETCH). There is never an entry.
    static func queue(_ key: [UInt8]) -> [UInt8] { key + Array(":queue".utf8) }

    /// KEYS: the lock, the fence. ARGV: the random value, milliseconds. Returns the token; or nothing, and how long the lock
    /// is somebody else's, in milliseconds, -1 without an end.
    ///
    /// The token is the daemon's clock in microseconds, or one more than the last token if that is not later: so it
    /// grows also when the database was purged, or a power failure has taken the last token. Running it again gives the
    /// same holder a new token.
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

    /// KEYS: the lock. ARGV: the random value, milliseconds. Returns whether the lock is still the caller's.
    static let renew = Script(
        """
        if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) end
        return 0
        """)

    /// KEYS: the lock. ARGV: the random value. Returns whether the lock was still the caller's.
    static let release = Script(
        """
        if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end
        return 0
        """)
}
