/// Remembers entries that were recently evicted from the small queue (see `EntryTable+Eviction`). Stores a part of each
/// hash, in a table that grows with the main queue. A lookup reads one group of adjacent slots.
///
/// Uses 4 bytes per entry. An entry is forgotten early if another entry uses its slot. An entry is mistaken for another
/// with a probability of about one in ten thousand. Both slightly lower the hit ratio, but never cause a wrong result.
struct GhostTable {
    private struct Mark {
        /// 0 if the slot is free.
        var fingerprint: UInt16 = 0
        /// The ``GhostTable/now`` when the hash was added.
        var addedAt: UInt16 = 0
    }

    /// The number of slots in a group. A hash may be stored in any slot of its group.
    private static let ways = 4

    private var marks: ContiguousArray<Mark> = []
    /// The number of hashes that were added.
    private var clock = 0
    /// The power of two of the number of hashes that are added at the same ``now``. So `now` returns to the same number
    /// only after four times as many hashes as the table has slots.
    private var shift = 0

    private var now: UInt16 { UInt16(truncatingIfNeeded: clock >> shift) }

    var isEmpty: Bool { marks.isEmpty }
    var byteCount: Int { marks.count * MemoryLayout<Mark>.stride }

    private static func fingerprint(_ hash: Int) -> UInt16 { UInt16(truncatingIfNeeded: hash >> 48) | 1 }

    private func first(_ hash: Int) -> Int { (hash >> 4 & (marks.count / Self.ways - 1)) * Self.ways }

    /// - Parameter most: the number of hashes that the table should remember.
    mutating func add(_ hash: Int, most: Int) {
        grow(to: most)
        clock += 1
        let now = now
        let first = first(hash)
        var oldest = first
        for place in first..<(first + Self.ways) {
            if marks[place].fingerprint == 0 {
                oldest = place
                break
            }
            if now &- marks[place].addedAt > now &- marks[oldest].addedAt { oldest = place }
        }
        marks[oldest] = Mark(fingerprint: Self.fingerprint(hash), addedAt: now)
    }

    /// - Returns: whether the hash was among the last `most` hashes that were added.
    mutating func remove(_ hash: Int, most: Int) -> Bool {
        guard !marks.isEmpty else { return false }
        let wanted = Self.fingerprint(hash)
        let first = first(hash)
        for place in first..<(first + Self.ways) where marks[place].fingerprint == wanted {
            let age = Int(now &- marks[place].addedAt) << shift
            marks[place] = Mark()
            return age < most
        }
        return false
    }

    /// Replaces a table that is too small by a larger, empty one. The size doubles each time, so this is rare.
    private mutating func grow(to most: Int) {
        guard most > marks.count else { return }
        var size = 64
        while size < most { size *= 2 }
        marks = ContiguousArray(repeating: Mark(), count: size)
        shift = max(0, size.trailingZeroBitCount - 14)
    }
}

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
