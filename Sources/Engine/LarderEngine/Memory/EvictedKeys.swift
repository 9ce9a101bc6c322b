/// Remembers which keys were recently evicted because of a disk limit, to count the cache misses that the evictions
/// cause. Stores a part of each key's hash, and the time until which the entry would have been fresh.
///
/// Uses 32 KiB for a shard with evictions: 4096 slots of 8 bytes. A key is forgotten when another key uses its slot,
/// and when the key is written or removed. All keys are forgotten at a purge or policy change that may have ended the
/// freshness of entries. So the counts are a lower bound. The probability of mistaking a key for another is about one
/// in several billion. A value; the shard's lock guards it.
struct EvictedKeys {
    private struct Mark {
        /// 0 if the slot is free.
        var fingerprint: UInt32 = 0
        /// The deadline of the entry in seconds since 1970, rounded down; `UInt32.max` for never.
        var until: UInt32 = 0
    }

    private static let slots = 4096

    private var marks: ContiguousArray<Mark> = []

    private static func slot(_ hash: Int) -> Int { hash >> 4 & (slots - 1) }
    private static func fingerprint(_ hash: Int) -> UInt32 { UInt32(truncatingIfNeeded: hash >> 32) | 1 }

    /// - Parameter deadline: the deadline of the entry, in milliseconds since 1970; nil for never.
    mutating func add(_ hash: Int, deadline: Int64?) {
        if marks.isEmpty { marks = ContiguousArray(repeating: Mark(), count: Self.slots) }
        marks[Self.slot(hash)] = Mark(
            fingerprint: Self.fingerprint(hash), until: deadline.map { UInt32(clamping: $0 / 1000) } ?? .max)
    }

    /// Returns whether an entry of this key was evicted and would still be fresh.
    func has(_ hash: Int, now: Int64) -> Bool {
        guard !marks.isEmpty else { return false }
        let mark = marks[Self.slot(hash)]
        return mark.fingerprint == Self.fingerprint(hash) && (mark.until == .max || now < Int64(mark.until) * 1000)
    }

    mutating func remove(_ hash: Int) {
        guard !marks.isEmpty, marks[Self.slot(hash)].fingerprint == Self.fingerprint(hash) else { return }
        marks[Self.slot(hash)] = Mark()
    }

    mutating func removeAll() { marks = [] }
}
