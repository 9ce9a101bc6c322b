/// The value of an entry on the disk: the reads that it saves, in relation to its bytes.
///
/// ```
/// worth = (reads + youth) × rest of its life × cost of fetching it again ÷ bytes
/// ```
/// - *reads*: the recent reads of the entry: those from the disk (``ReadSketch``), plus an estimate of those from
///   memory.
/// - *youth*: 1 for an entry that was just stored, ½ after the usual residence time, and less after that. So new
///   entries that were not read yet are not evicted first. Among entries without reads, the oldest is.
/// - *rest of its life*: an entry that expires soon saves little.
/// - *cost*: of fetching it again: a constant part, and one for its bytes.
///
/// A value; pure arithmetic.
package struct EvictionEstimate: Sendable {
    /// In milliseconds since 1970.
    let now: Int64
    /// The usual residence time of entries, in milliseconds: half of those on the disk are older.
    let residence: Double

    /// The constant cost of a fetch, as a number of transferred bytes: 64 KiB.
    private static let fixedCost = 65_536.0
    /// The bytes on the disk beyond key and record.
    private static let overheadBytes = 32.0
    /// The least factor for the rest of an entry's life, so that entries that expire soon are still ordered by the
    /// other factors.
    private static let restMin = 0.01

    package init(now: Int64, residence: Int64) {
        self.now = now
        self.residence = Double(max(1000, residence))
    }

    /// - Parameters:
    ///   - reads: 0 or more.
    ///   - storedAt: in milliseconds since 1970.
    ///   - end: when it is gone, in milliseconds since 1970; nil for never.
    ///   - bytes: of its key and record.
    package func worth(reads: Double, storedAt: Int64, end: Int64?, bytes: Int) -> Double {
        let age = Double(max(0, now.subtractingClamped(storedAt)))
        let youth = residence / (residence + age)
        let rest = end.map { min(1, max(Self.restMin, Double($0.subtractingClamped(now)) / residence)) } ?? 1
        let size = Double(bytes) + Self.overheadBytes
        return (reads + youth) * rest * (Self.fixedCost + size) / size
    }

    /// The worth at or below which the entries of a sample have `share` of its bytes.
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
