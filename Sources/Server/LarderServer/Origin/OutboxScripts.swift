import LarderOutboxes

/// Scripts for the origin that keep a retried delivery from overwriting a newer value. For Redis, Valkey and compatible
/// servers.
enum OutboxScripts {
    /// Reads the SHA-1 of a value as 40 hexadecimal digits; empty if the key does not exist.
    private static let look = """
        local v = redis.pcall('GET', KEYS[1])
        local d = ''
        if type(v) == 'table' then d = 'other' elseif v then d = redis.sha1hex(v) end

        """

    /// Applies the write if the value is still the one from before the first attempt.
    private static let apply = """
        if d == ARGV[1] then
          if ARGV[2] == '' then redis.call('DEL', KEYS[1])
          elseif ARGV[3] == '0' then redis.call('SET', KEYS[1], ARGV[4])
          else redis.call('SET', KEYS[1], ARGV[4], 'PX', ARGV[3]) end
          return 1
        end
        if ARGV[2] == '' then return v and 0 or 1 end
        return v == ARGV[4] and 1 or 0
        """

    /// The command that reads the digest of a key's value.
    static func looking(at key: [UInt8]) -> [[UInt8]] {
        [Array("EVAL".utf8), Array((look + "return d").utf8), [0x31], key]
    }

    /// The command that applies a write unless there is a newer value. It returns 1 if the write was applied by this or
    /// an earlier attempt, otherwise 0.
    /// - Parameter before: the result of ``looking(at:)`` before the first attempt.
    static func repeating(_ key: [UInt8], _ entry: OutboxEntry, over before: String, now: Int64) -> [[UInt8]] {
        let value = entry.isOver(now: now) ? nil : entry.value
        return [
            Array("EVAL".utf8), Array((look + apply).utf8), [0x31], key, Array(before.utf8),
            Array((value == nil ? "" : "set").utf8), Array(String(entry.until.map { max(1, $0 - now) } ?? 0).utf8),
            value ?? [],
        ]
    }
}
