/// The number of requests by latency, in buckets whose width grows with the latency: 64 for every doubling. A
/// percentile is at most 1.6 % above the measured latency, from nanoseconds to over an hour, in a fixed 20 KB. The idea
/// is HdrHistogram's.
struct LatencyHistogram {
    private static let linear = 128
    private static let perDoubling = 64
    /// The greatest latency that can be recorded, in nanoseconds. Longer latencies are recorded as this one.
    private static let longest: UInt64 = (1 << 42) - 1

    private var counts = [UInt64](repeating: 0, count: Self.bucket(Self.longest) + 1)
    private(set) var count: UInt64 = 0
    /// The greatest latency measured, in nanoseconds; 0 if there is none.
    private(set) var maximum: UInt64 = 0

    /// Adds one latency, in nanoseconds.
    mutating func add(_ nanoseconds: UInt64, times: UInt64 = 1) {
        counts[Self.bucket(min(nanoseconds, Self.longest))] += times
        count += times
        if nanoseconds > maximum { maximum = nanoseconds }
    }

    mutating func add(_ other: LatencyHistogram) {
        for index in counts.indices { counts[index] += other.counts[index] }
        count += other.count
        maximum = max(maximum, other.maximum)
    }

    /// A percentile in nanoseconds: the upper end of its bucket, but at most the greatest measured latency.
    /// - Parameter share: 0...1; 0.99 for p99.
    /// - Returns: 0 if nothing was added.
    func percentile(_ share: Double) -> UInt64 {
        guard count > 0 else { return 0 }
        let wanted = max(1, UInt64((Double(count) * min(max(share, 0), 1)).rounded(.up)))
        var seen: UInt64 = 0
        for (index, times) in counts.enumerated() where times > 0 {
            seen += times
            if seen >= wanted { return min(Self.upperEnd(index), maximum) }
        }
        return maximum
    }

    /// The bucket of a latency: one for each nanosecond below 128, then 64 for each doubling.
    static func bucket(_ nanoseconds: UInt64) -> Int {
        guard nanoseconds >= UInt64(linear) else { return Int(nanoseconds) }
        let shift = 57 - nanoseconds.leadingZeroBitCount
        return linear + (shift - 1) * perDoubling + Int(nanoseconds >> UInt64(shift)) - perDoubling
    }

    /// The greatest latency in a bucket.
    static func upperEnd(_ bucket: Int) -> UInt64 {
        guard bucket >= linear else { return UInt64(bucket) }
        let shift = (bucket - linear) / perDoubling + 1
        let lead = UInt64((bucket - linear) % perDoubling + perDoubling)
        return ((lead + 1) << UInt64(shift)) - 1
    }
}
