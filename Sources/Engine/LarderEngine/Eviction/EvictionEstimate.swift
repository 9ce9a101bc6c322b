/// What an entry on the disk is worth: the reads that it saves, in relation to the bytes that it takes.
///
/// ```
/// worth = (reads + youth) × rest of its life × cost of fetching it again ÷ bytes
/// ```
/// - *reads*: how often it was read from the disk lately (``ReadSketch``), or what memory knows of it.
/// - *youth*: 1 when it was stored just now, ½ after the time for which entries usually stay, less and less from then
///   on: an entry that nobody could read yet is not the first to go, and of those that nobody read the oldest goes.
/// - *rest of its life*: an entry that ends soon saves little.
/// - *cost*: of fetching it again: a part that is the same for all, and one for its bytes.
///
/// A value; pure arithmetic.
package struct EvictionEstimate: Sendable {
    /// In milliseconds since 1970.
    let now: Int64
    /// For how long entries usually stay, in milliseconds: half of those on the disk are older.
    let residence: Double

    /// Fetching an entry takes as long as transferring so many bytes, besides its own: 64 KiB.
    private static let fixedCost = 65_536.0
    /// The bytes on the disk beyond key and record.
    private static let overheadBytes = 32.0
    /// The least share for the rest of a life, so that entries that end soon keep an order.
    private static let restMin = 0.01

    package init(now: Int64, residence: Int64) {
        self.now = now
        self.residence = Double(max(1000, residence))
    }

    /// - Parameters:
    ///   - reads: 0 or more.
    ///   - storedAt: in milliseconds since 1970.
    ///   - end: from when on it is gone, in milliseconds since 1970; nil for never.
    ///   - bytes: of its key and record.
    package func worth(reads: Double, storedAt: Int64, end: Int64?, bytes: Int) -> Double {
        let age = Double(max(0, now.subtractingClamped(storedAt)))
        let youth = residence / (residence + age)
        let rest = end.map { min(1, max(Self.restMin, Double($0.subtractingClamped(now)) / residence)) } ?? 1
        let size = Double(bytes) + Self.overheadBytes
        return (reads + youth) * rest * (Self.fixedCost + size) / size
    }

    /// The worth up to which entries have `share` of all bytes.
    /// - Parameter sample: of entries; empty gives 0.
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
