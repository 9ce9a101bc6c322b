/// The index that tells the sweep where expired entries may be.
///
/// Each record that can expire has one index key that holds a bucket time, never earlier than the record's own time:
/// the deadline where the entry has its own, storedAt where the policy governs it. Bucket times are rounded up to a
/// power of two of milliseconds, about a 64th of the time the entry lives, so that a key written over and over leaves
/// at most some 130 index keys behind instead of one per write. The index may hold keys whose entry was overwritten or
/// removed; the sweep drops what turns out to be stale.
///
/// Governed entries of a database whose policy is "never" have no index key: nothing would ever come by to drop it.
/// When such a database gets another policy, ``Database/State/isUnindexed`` says that the sweep has to go over all
/// entries once. Except for those the index never lacks the key of an entry that can expire.
package enum ExpiryIndex {
    /// The value of an index record: one byte, because no stored value is ever empty.
    static let value: [UInt8] = [0]

    /// The index key for a record; nil for one that can never expire.
    package static func key(for key: Key, _ header: RecordHeader, policy: UpdatePolicy) -> [UInt8]? {
        switch header.rule {
        case .ownNever: return nil
        case .own(let deadline):
            // Both are at least 0 from here on, so that the difference cannot overflow.
            let deadline = max(0, deadline)
            let bucket = roundUp(deadline, to: granularity(deadline - max(0, header.storedAt)))
            return make(KeyKind.ownDeadline, bucket, key)
        case .governed:
            guard let interval = policy.intervalMilliseconds else { return nil }
            return make(KeyKind.governed, roundUp(header.storedAt, to: granularity(interval)), key)
        }
    }

    /// A power of two, between 1,024 ms and 2^32 ms (about 50 days), at most a 64th of `span` above the least.
    package static func granularity(_ span: Int64) -> Int64 {
        var size: Int64 = 1024
        while size < 1 << 32, size * 2 <= span / 64 { size *= 2 }
        return size
    }

    package static func roundUp(_ time: Int64, to size: Int64) -> Int64 {
        let (sum, overflow) = max(0, time).addingReportingOverflow(size - 1)
        return (overflow ? Int64.max : sum) / size * size
    }

    private static func make(_ kind: UInt8, _ bucket: Int64, _ key: Key) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(9 + key.stored.count)
        bytes.append(kind)
        BigEndian.append(UInt64(bitPattern: bucket), to: &bytes)
        bytes.append(contentsOf: key.bytes)
        return bytes
    }

    /// Where a scan of `kind` begins for bucket times of at least `bucket`.
    static func start(_ kind: UInt8, _ bucket: Int64) -> [UInt8] {
        var bytes: [UInt8] = [kind]
        BigEndian.append(UInt64(bitPattern: max(0, bucket)), to: &bytes)
        return bytes
    }

    /// Takes an index key apart; nil when it is none.
    static func parse(_ bytes: UnsafeRawBufferPointer) -> (bucket: Int64, key: Key)? {
        guard bytes.count >= 9, let raw = BigEndian.read(bytes, at: 1) else { return nil }
        return (Int64(bitPattern: raw), Key(UnsafeRawBufferPointer(rebasing: bytes.dropFirst(9))))
    }
}
