/// Estimates the worth of an entry on the disk: how many fetches from the origin the entry saves, per byte.
///
/// ```
/// worth = (reads + youth) × rest of its life × cost of fetching it again ÷ bytes
/// ```
/// - *reads*: the recent reads of the entry: the reads from the disk (``ReadSketch``), plus an estimate of the reads
///   from memory.
/// - *youth*: 1 for an entry that was just stored, ½ after the usual residence time, and less after that. This protects
///   new entries, which have had no time to be read. Among otherwise equal entries without reads, the oldest is evicted
///   first.
/// - *rest of its life*: the time until the entry expires, as a share of the residence time, at most 1. An entry that
///   expires soon saves little.
/// - *cost of fetching it again*: a constant part plus the size of the entry.
///
/// A value: arithmetic without access to any files.
package struct EvictionEstimate: Sendable {
    /// The time of the estimate, in milliseconds since 1970.
    let now: Int64
    /// The usual residence time of entries, in milliseconds: half of the entries on the disk are older.
    let residence: Double

    /// The constant part of the cost of a fetch, expressed in transferred bytes: 64 KiB.
    private static let fixedCost = 65_536.0
    /// The approximate bytes that an entry takes on the disk in addition to its key and its record.
    private static let overheadBytes = 32.0
    /// The minimum factor for the rest of an entry's life. It is above 0, so that entries that expire soon are still
    /// ordered by the other factors.
    private static let restMin = 0.01

    package init(now: Int64, residence: Int64) {
        self.now = now
        self.residence = Double(max(1000, residence))
    }

    /// - Parameters:
    ///   - reads: 0 or more.
    ///   - storedAt: in milliseconds since 1970.
    ///   - end: when the entry may no longer be returned, not even as stale, in milliseconds since 1970; nil for never.
    ///   - bytes: the size of its key and record.
    package func worth(reads: Double, storedAt: Int64, end: Int64?, bytes: Int) -> Double {
        let age = Double(max(0, now.subtractingClamped(storedAt)))
        let youth = residence / (residence + age)
        let rest = end.map { min(1, max(Self.restMin, Double($0.subtractingClamped(now)) / residence)) } ?? 1
        let size = Double(bytes) + Self.overheadBytes
        return (reads + youth) * rest * (Self.fixedCost + size) / size
    }

    /// Returns the worth up to which entries must be evicted to free a share of the bytes. The entries of the sample
    /// with at most this worth have at least `share` of the sample's bytes.
    /// - Parameter sample: a sample of entries. If it is empty, the result is 0.
    package static func threshold(_ sample: [(worth: Double, bytes: Int)], share: Double) -> Double {
        let sorted = sample.sorted { $0.worth < $1.worth }
        let most = share * Double(sorted.reduce(0) { $0 + $1.bytes })
        var sum = 0.0
        for entry in sorted {
            sum += Double(entry.bytes)
            if sum >= most { return entry.worth }
        }
        return 0
    }
}
