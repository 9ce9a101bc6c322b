/// A limited number of samples, in the order of their times.
struct SampleSeries: Sendable {
    private(set) var samples: [Sample] = []
    private let countMax: Int
    /// At most one sample is kept per this many seconds.
    private let unitSeconds: Int64
    /// Whether the daemon was not available since the last sample.
    private var isInterrupted = false

    init(countMax: Int, unitSeconds: Int64) {
        self.countMax = countMax
        self.unitSeconds = unitSeconds
    }

    /// Adds a sample. If the clock was set back, drops the samples with later times.
    /// - Returns: the added sample; nil if it was dropped, because the last sample is in the same unit of time.
    mutating func add(_ sample: Sample) -> Sample? {
        if let ahead = samples.firstIndex(where: { $0.time > sample.time }) { samples.removeSubrange(ahead...) }
        if let last = samples.last, last.time / unitSeconds == sample.time / unitSeconds { return nil }
        var sample = sample
        if isInterrupted { sample.isBehindGap = true }
        isInterrupted = false
        samples = samples.suffix(countMax - 1) + [sample]
        return sample
    }

    /// Marks a gap before the next sample, because the daemon is not available.
    mutating func interrupt() { isInterrupted = true }

    /// Inserts stored samples, in any order, before the existing ones. Samples later than `now` are skipped.
    mutating func prepend(_ kept: [Sample], now: Int64) {
        let end = min(now, samples.first.map { $0.time - 1 } ?? now)
        let previous = kept.filter { $0.time <= end }.sorted { $0.time < $1.time }
        samples = (previous + samples).suffix(countMax)
    }
}
