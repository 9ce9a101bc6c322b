import LarderOutboxes

/// Lua scripts that the origin runs, so that a repeated delivery does not overwrite a newer value. They work on Redis,
/// Valkey and compatible servers.
enum OutboxScripts {
    /// Sets `d` to the SHA-1 of the key's string, in hexadecimal; to '' without a value, to 'other' for another type.
    private static let look = """
        local v = redis.pcall('GET', KEYS[1])
        local d = ''
        if type(v) == 'table' then d = 'other' elseif v then d = redis.sha1hex(v) end

        """

    /// Applies the write if the origin's value is the same as before the first attempt (`ARGV[1]` is the old `d`).
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

    /// Returns the command that reads the SHA-1 of a key's value.
    static func looking(at key: [UInt8]) -> [[UInt8]] {
        [Array("EVAL".utf8), Array((look + "return d").utf8), [0x31], key]
    }

    /// Returns the command that applies a write unless the origin has a newer value. The command replies with 1 if this
    /// or an earlier attempt has applied the write, otherwise with 0.
    /// - Parameter before: the reply to ``looking(at:)`` before the first attempt.
    static func repeating(_ key: [UInt8], _ entry: OutboxEntry, over before: String, now: Int64) -> [[UInt8]] {
        let value = entry.isOver(now: now) ? nil : entry.value
        return [
            Array("EVAL".utf8), Array((look + apply).utf8), [0x31], key, Array(before.utf8),
            Array((value == nil ? "" : "set").utf8), Array(String(entry.until.map { max(1, $0 - now) } ?? 0).utf8),
            value ?? [],
        ]
    }
}
