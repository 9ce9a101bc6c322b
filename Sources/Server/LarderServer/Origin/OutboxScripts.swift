import LarderOutboxes

/// What runs at the origin so that an attempt whose end is unknown is not repeated over something newer. For Redis, Valkey
/// and what understands their scripts.
enum OutboxScripts {
    /// What is under a key, as 40 hexadecimal digits; empty if nothing is.
    private static let look = """
        local v = redis.pcall('GET', KEYS[1])
        local d = ''
        if type(v) == 'table' then d = 'other' elseif v then d = redis.sha1hex(v) end

        """

    /// Does what is to be done if what is there is what was there before the first attempt.
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

    /// The words of a command that returns what is under a key.
    static func looking(at key: [UInt8]) -> [[UInt8]] {
        [Array("EVAL".utf8), Array((look + "return d").utf8), [0x31], key]
    }

    /// The words of a command that does what a write says unless there is something newer: 1, it is done now or was done
    /// before, or 0.
    /// - Parameter before: what ``looking(at:)`` had returned before the first attempt.
    static func repeating(_ key: [UInt8], _ entry: OutboxEntry, over before: String, now: Int64) -> [[UInt8]] {
        let value = entry.isOver(now: now) ? nil : entry.value
        return [
            Array("EVAL".utf8), Array((look + apply).utf8), [0x31], key, Array(before.utf8),
            Array((value == nil ? "" : "set").utf8), Array(String(entry.until.map { max(1, $0 - now) } ?? 0).utf8),
            value ?? [],
        ]
    }
}
