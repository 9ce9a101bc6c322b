/// Remembers for a while which keys were evicted because of a disk limit, to count the misses that this causes. Stores
/// a part of the key's hash, and the time until which the entry would have been fresh.
///
/// Uses 8 bytes per key, and 32 KiB for a shard with evictions. A key is forgotten when its slot is reused, when it is
/// written or removed, and with every purge or change of the policy that may have ended its entry. The counts are
/// therefore a lower bound. Two keys are confused with a probability of one in some billions. A value; the shard's lock
/// guards it.
struct EvictedKeys {
    private struct Mark {
        /// 0: free.
        var fingerprint: UInt32 = 0
        /// In seconds since 1970, rounded down; `UInt32.max` for never.
        var until: UInt32 = 0
    }

    private static let slots = 4096

    private var marks: ContiguousArray<Mark> = []

    private static func slot(_ hash: Int) -> Int { hash >> 4 & (slots - 1) }
    private static func fingerprint(_ hash: Int) -> UInt32 { UInt32(truncatingIfNeeded: hash >> 32) | 1 }

    /// - Parameter deadline: the deadline of the entry; nil for never.
    mutating func add(_ hash: Int, deadline: Int64?) {
        if marks.isEmpty { marks = ContiguousArray(repeating: Mark(), count: Self.slots) }
        marks[Self.slot(hash)] = Mark(
            fingerprint: Self.fingerprint(hash), until: deadline.map { UInt32(clamping: $0 / 1000) } ?? .max)
    }

    /// Whether an entry of this key was evicted, and would still be fresh.
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
