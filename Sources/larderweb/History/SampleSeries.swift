/// Samples in the order of their times, a limited number of them. A value.
struct SampleSeries: Sendable {
    private(set) var samples: [Sample] = []
    private let countMax: Int
    /// At most one sample is kept for each so many seconds.
    private let unitSeconds: Int64
    /// Whether the daemon was away since the last sample.
    private var isInterrupted = false

    init(countMax: Int, unitSeconds: Int64) {
        self.countMax = countMax
        self.unitSeconds = unitSeconds
    }

    /// Takes a sample. Those ahead of it are dropped: the clock was set back, and would have to catch up with them first.
    /// - Returns: the sample as it was taken; nil for a second one of the same time.
    mutating func add(_ sample: Sample) -> Sample? {
        if let ahead = samples.firstIndex(where: { $0.time > sample.time }) { samples.removeSubrange(ahead...) }
        if let last = samples.last, last.time / unitSeconds == sample.time / unitSeconds { return nil }
        var sample = sample
        if isInterrupted { sample.isBehindGap = true }
        isInterrupted = false
        samples = samples.suffix(countMax - 1) + [sample]
        return sample
    }

    /// The daemon does not answer: nothing is known of the time until the next sample.
    mutating func interrupt() { isInterrupted = true }

    /// Puts samples that were kept before, in any order, in front of the others; without those ahead of the clock.
    mutating func prepend(_ kept: [Sample], now: Int64) {
        let end = min(now, samples.first.map { $0.time - 1 } ?? now)
        let former = kept.filter { $0.time <= end }.sorted { $0.time < $1.time }
        samples = (former + samples).suffix(countMax)
    }
}
