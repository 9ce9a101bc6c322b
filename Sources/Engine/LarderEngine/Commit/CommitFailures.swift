/// The commit units that failed, so that their writers can get the error later. Not thread-safe: its owner guards it.
struct CommitFailures {
    /// The maximum number of ranges that are kept; the oldest are dropped. A range contains commit units that failed
    /// together.
    static let rangesMax = 256

    private var ranges: [(range: ClosedRange<UInt64>, error: LarderError)] = []
    /// Units up to here may have failed in a range that was dropped.
    private var forgottenUpTo: UInt64 = 0

    mutating func add(_ range: ClosedRange<UInt64>, _ error: LarderError) {
        ranges.append((range, error))
        guard ranges.count > Self.rangesMax else { return }
        forgottenUpTo = ranges.removeFirst().range.upperBound
    }

    /// Returns the error of a decided unit (committed or failed); nil if it was committed. If the unit's range may have
    /// been dropped, returns an error even if the unit was committed. This is allowed, unlike acknowledging a lost
    /// write.
    func error(of sequence: UInt64) -> LarderError? {
        if let match = ranges.last(where: { $0.range.contains(sequence) }) { return match.error }
        guard sequence <= forgottenUpTo else { return nil }
        return LarderError(
            .commitFailed, "it is unknown whether this commit failed, because too many failed since then",
            operation: "commit")
    }
}
