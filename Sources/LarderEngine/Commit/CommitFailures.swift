/// Which commit units failed, for those who ask after the fact. A value; its owner guards it.
struct CommitFailures {
    /// How many failures are remembered. Each is a range of sequences that failed together.
    static let rangesMax = 256

    private var ranges: [(range: ClosedRange<UInt64>, error: LarderError)] = []
    /// What was decided up to here may have failed in a range that is no longer remembered.
    private var forgottenUpTo: UInt64 = 0

    mutating func add(_ range: ClosedRange<UInt64>, _ error: LarderError) {
        ranges.append((range, error))
        guard ranges.count > Self.rangesMax else { return }
        forgottenUpTo = ranges.removeFirst().range.upperBound
    }

    /// The error of a decided unit; nil if it was committed. Who asks so late that its range may be forgotten gets an
    /// error too: better a committed write that is not acknowledged than a lost one that is.
    func error(of sequence: UInt64) -> LarderError? {
        if let match = ranges.last(where: { $0.range.contains(sequence) }) { return match.error }
        guard sequence <= forgottenUpTo else { return nil }
        return LarderError(
            .commitFailed, "so many commits failed since that nobody knows whether this one did", operation: "commit")
    }
}
