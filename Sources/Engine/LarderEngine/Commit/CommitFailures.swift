/// The commit units that failed, for later queries. A value; its owner guards it.
struct CommitFailures {
    /// The number of failures to remember. Each is a range of sequences that failed together.
    static let rangesMax = 256

    private var ranges: [(range: ClosedRange<UInt64>, error: LarderError)] = []
    /// Units up to here may have failed in a range that was dropped.
    private var forgottenUpTo: UInt64 = 0

    mutating func add(_ range: ClosedRange<UInt64>, _ error: LarderError) {
        ranges.append((range, error))
        guard ranges.count > Self.rangesMax else { return }
        forgottenUpTo = ranges.removeFirst().range.upperBound
    }

    /// The error of a decided unit; nil if it was committed. A unit whose range may have been dropped gets an error
    /// too, even if it was committed: reporting an error for a committed write is allowed, but acknowledging a lost one
    /// is not.
    func error(of sequence: UInt64) -> LarderError? {
        if let match = ranges.last(where: { $0.range.contains(sequence) }) { return match.error }
        guard sequence <= forgottenUpTo else { return nil }
        return LarderError(
            .commitFailed, "it is unknown whether this commit failed, because too many failed since then",
            operation: "commit")
    }
}
