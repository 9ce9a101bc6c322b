import Testing

@testable import larderbench

@Suite struct LatencyHistogramTests {
    @Test func histogramBucketsAreOrderedAndNarrow() {
        var last = -1
        for value in Array(0...5000) + (13..<42).flatMap({ [(1 << $0) - 1, 1 << $0, (1 << $0) + 1] }) {
            let bucket = LatencyHistogram.bucket(UInt64(value))
            #expect(bucket >= last)
            #expect(bucket <= last + 1 || value > 5000)
            let end = LatencyHistogram.upperEnd(bucket)
            #expect(end >= UInt64(value))
            #expect(Double(end) <= Double(value) * (1 + 1.0 / 64))
            last = bucket
        }
    }

    @Test func percentilesOfKnownValuesAreRight() {
        var histogram = LatencyHistogram()
        for value in 1...1000 { histogram.add(UInt64(value) * 1000) }
        for (share, exact) in [(0.5, 500_000.0), (0.99, 990_000), (0.999, 999_000)] {
            let read = Double(histogram.percentile(share))
            #expect(read >= exact && read <= exact * 1.016, "p\(share): \(read)")
        }
        #expect(histogram.percentile(1) == 1_000_000)
        #expect(histogram.percentile(0) == LatencyHistogram.upperEnd(LatencyHistogram.bucket(1000)))
        #expect(histogram.maximum == 1_000_000)
        #expect(histogram.count == 1000)
    }

    @Test func aHistogramCanBeEmptyAndClampsExtremeLatencies() {
        var histogram = LatencyHistogram()
        #expect(histogram.percentile(0.99) == 0)
        histogram.add(.max)
        #expect(histogram.count == 1)
        #expect(histogram.maximum == .max)
        #expect(histogram.percentile(0.5) == (1 << 42) - 1)
    }

    @Test func histogramsCanBeAdded() {
        var first = LatencyHistogram()
        first.add(10, times: 99)
        var second = LatencyHistogram()
        second.add(70)
        first.add(second)
        #expect(first.count == 100)
        #expect(first.percentile(0.99) == 10)
        #expect(first.percentile(0.995) == 70)
    }
}
