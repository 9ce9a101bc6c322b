/// The index of expiry times. The sweep, a background task, finds in it the expired entries to remove.
///
/// - An entry that lives less than ``unindexedMilliseconds`` has one index key, which contains a bucket time. This is
///   the entry's own deadline (or `storedAt` if the policy governs the entry), plus the entry's own grace if it has
///   one. The sum is rounded up to a multiple of about a 64th of the entry's lifetime (a power of two in milliseconds).
///   So a frequently overwritten entry usually keeps its index key. To find out when an entry expires, the sweep adds
///   the database's grace and, if the policy governs the entry, the policy's interval.
/// - Entries that live longer, or forever, have no index key, because writing it would cost as much as writing the
///   entry. A periodic scan of all entries finds them.
/// - The index may have keys of entries that were overwritten or removed; the sweep deletes them. A checkpoint writes
///   index keys together with the records.
///
/// A new policy may index governed entries that were not indexed before. ``DatabaseState/isUnindexed`` then records
/// that the sweep has to read all entries once. Every other entry in LevelDB that should have an index key has it.
package enum ExpiryIndex {
    /// The value of an index record. It is one byte long, because values in LevelDB must not be empty.
    static let value: [UInt8] = [0]

    /// Entries with at least this lifetime, counted from their storage, are not indexed: a day.
    package static let unindexedMilliseconds: Int64 = 86_400_000

    /// Whether governed entries are indexed under a policy.
    static func indexes(_ policy: UpdatePolicy) -> Bool {
        policy.intervalMilliseconds.map { $0 < unindexedMilliseconds } ?? false
    }

    /// Whether an entry with a deadline of its own can be found by this deadline: it has an index key, whose bucket
    /// time is at most one ``granularity(_:)`` after the deadline.
    package static func locates(_ header: RecordHeader) -> Bool {
        guard case .own(let deadline) = header.rule, header.grace ?? 0 == 0 else { return false }
        return max(0, deadline) - max(0, header.storedAt) < unindexedMilliseconds
    }

    /// Returns the bucket times of all entries that have a deadline of their own in `range` and are located by it
    /// (``locates(_:)``), in ascending order. Other entries may have these bucket times too.
    static func buckets(ofDeadlines range: Range<Int64>) -> [ClosedRange<Int64>] {
        guard !range.isEmpty else { return [] }
        var size = granularity(0)
        var result = [roundUp(range.lowerBound, to: size)...roundUp(range.upperBound - 1, to: size)]
        // The bucket time of an entry with a longer lifetime is a multiple of a larger unit. So most bucket times after
        // the range are those of later deadlines.
        while size < granularity(unindexedMilliseconds - 1) {
            size *= 2
            let last = roundUp(range.upperBound - 1, to: size)
            if last > result[result.count - 1].upperBound { result.append(last...last) }
        }
        return result
    }

    /// The kind and the bucket time of an index key in one number; 0 for no index key. Times are multiples of 1,024, so
    /// the kind fits in the lower bits.
    typealias Slot = UInt64

    /// The policies by which a checkpoint indexes entries.
    struct Rules: Equatable {
        private let interval: Int64?

        /// - Parameters:
        ///   - policy: the applied policy.
        ///   - durable: the policy on the disk, which a crash would restore. The shorter of the two intervals is used.
        init(_ policy: UpdatePolicy, durable: UpdatePolicy) {
            interval = [policy, durable].filter(indexes).compactMap(\.intervalMilliseconds).min()
        }

        init(_ policy: UpdatePolicy) { self.init(policy, durable: policy) }

        /// Returns the index key that a record should have; 0 for none.
        func slot(_ header: RecordHeader) -> Slot {
            let grace = header.grace ?? 0
            switch header.rule {
            case .ownNever: return 0
            case .own(let deadline):
                // Make both times at least 0, so that their difference cannot overflow.
                let deadline = max(0, deadline)
                let span = deadline - max(0, header.storedAt)
                guard span < unindexedMilliseconds else { return 0 }
                return make(KeyKind.ownDeadline, roundUp(deadline.addingClamped(grace), to: granularity(span)))
            case .governed:
                guard let interval else { return 0 }
                return make(KeyKind.governed, roundUp(header.storedAt.addingClamped(grace), to: granularity(interval)))
            }
        }

        private func make(_ kind: UInt8, _ bucket: Int64) -> Slot { UInt64(bitPattern: bucket) | UInt64(kind) }
    }

    /// Returns the index key of an entry. `storedKey` is the entry's key as LevelDB stores it; the slot must not be 0.
    static func key(_ slot: Slot, storedKey: UnsafeRawBufferPointer) -> [UInt8] {
        make(UInt8(slot & 0xFF), Int64(bitPattern: slot & ~0xFF), storedKey.dropFirst())
    }

    /// Returns the index key of a record; nil if it has none.
    package static func key(for key: Key, _ header: RecordHeader, policy: UpdatePolicy) -> [UInt8]? {
        let slot = Rules(policy).slot(header)
        guard slot != 0 else { return nil }
        return key.stored.withUnsafeBytes { Self.key(slot, storedKey: $0) }
    }

    /// Returns the unit to which the bucket time of an entry with the lifetime `span` is rounded: the largest power of
    /// two up to a 64th of `span`, but at least 1,024 ms, and at most 2^32 ms (about 50 days).
    package static func granularity(_ span: Int64) -> Int64 {
        var size: Int64 = 1024
        while size < 1 << 32, size * 2 <= span / 64 { size *= 2 }
        return size
    }

    package static func roundUp(_ time: Int64, to size: Int64) -> Int64 {
        let (sum, overflow) = max(0, time).addingReportingOverflow(size - 1)
        return (overflow ? Int64.max : sum) / size * size
    }

    private static func make(_ kind: UInt8, _ bucket: Int64, _ key: Slice<UnsafeRawBufferPointer>) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(9 + key.count)
        bytes.append(kind)
        BigEndian.append(UInt64(bitPattern: bucket), to: &bytes)
        bytes.append(contentsOf: key)
        return bytes
    }

    /// Returns the first possible index key of `kind` with a bucket time of at least `bucket`.
    static func start(_ kind: UInt8, _ bucket: Int64) -> [UInt8] {
        var bytes: [UInt8] = [kind]
        BigEndian.append(UInt64(bitPattern: max(0, bucket)), to: &bytes)
        return bytes
    }

    /// Parses an index key; nil if it is malformed.
    static func parse(_ bytes: UnsafeRawBufferPointer) -> (bucket: Int64, key: Key)? {
        guard bytes.count >= 9, let raw = BigEndian.read(bytes, at: 1) else { return nil }
        return (Int64(bitPattern: raw), Key(UnsafeRawBufferPointer(rebasing: bytes.dropFirst(9))))
    }
}
