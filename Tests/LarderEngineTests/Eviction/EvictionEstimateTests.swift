import LarderTestSupport
import Testing

@testable import LarderEngine

/// Tests of the estimates that decide which entries are evicted. The tests use no files.
@Suite struct EvictionEstimateTests {
    private static let hour: Int64 = 3_600_000
    private let estimate = EvictionEstimate(now: 100 * hour, residence: hour)

    private func worth(reads: Double = 0, age: Int64 = hour, rest: Int64? = nil, bytes: Int = 1000) -> Double {
        estimate.worth(
            reads: reads, storedAt: estimate.now - age, end: rest.map { estimate.now + $0 }, bytes: bytes)
    }

    @Test func entriesReadOftenAreWorthMore() {
        #expect(worth(reads: 1) > worth(reads: 0))
        #expect(worth(reads: 15, age: 90 * Self.hour) > worth(reads: 1, age: 0))
    }

    @Test func theOldestUnreadEntryIsEvictedFirst() {
        let worths = [0, 1, 2, 50].map { worth(age: $0 * Self.hour) }
        #expect(worths == worths.sorted(by: >))
        // One read counts for more than 99 hours of age.
        #expect(worth(reads: 1, age: 99 * Self.hour) > worth(age: 0))
        // If the clock was set back, no entry is worth more than one that was stored just now.
        #expect(worth(age: -5 * Self.hour) == worth(age: 0))
    }

    @Test func entriesThatExpireSoonAreWorthLess() {
        #expect(worth(rest: Self.hour / 4) < worth(rest: Self.hour / 2))
        #expect(worth(rest: 2 * Self.hour) == worth())
        #expect(worth(rest: -1) > 0)
    }

    @Test func sizeAndFetchCostAffectTheWorth() {
        #expect(worth(bytes: 100) > 5 * worth(bytes: 1000))
        // For large values, the time to fetch them grows with their size.
        #expect(worth(bytes: 100 << 20) > 0.9 * worth(bytes: 200 << 20))
    }

    @Test func theThresholdEvictsTheRequestedShareOfBytes() {
        let sample = (1...100).map { (worth: Double($0), bytes: 10) }
        #expect(EvictionEstimate.threshold(sample.shuffled(), share: 0.4) == 40)
        #expect(EvictionEstimate.threshold(sample, share: 1) == 100)
        #expect(EvictionEstimate.threshold([], share: 0.5) == 0)
        // The share is of bytes, not of entries.
        #expect(EvictionEstimate.threshold([(1, 900), (2, 100)], share: 0.4) == 1)
    }
}

@Suite struct ReadSketchTests {
    @Test func readsOfAKeyAreNeverUndercountedUpToTheLimit() {
        var sketch = ReadSketch()
        #expect(sketch.isEmpty && sketch.count(42) == 0)
        var random = SeededGenerator(seed: 7)
        let keys = (0..<50).map { _ in Int(truncatingIfNeeded: random.next()) }
        for (index, key) in keys.enumerated() { for _ in 0..<min(index, 12) { sketch.add(key) } }
        for (index, key) in keys.enumerated() { #expect(sketch.count(key) >= min(index, 12)) }
        for _ in 0..<100 { sketch.add(keys[0]) }
        #expect(sketch.count(keys[0]) == ReadSketch.countMax)
    }

    @Test func unreadKeysRarelyCountAsRead() {
        var sketch = ReadSketch()
        var random = SeededGenerator(seed: 8)
        for _ in 0..<20_000 { sketch.add(Int(truncatingIfNeeded: random.next())) }
        let wrong = (0..<10_000).filter { _ in sketch.count(Int(truncatingIfNeeded: random.next())) > 0 }.count
        #expect(wrong < 4_000, "\(wrong)")
    }

    @Test func readCountsDecreaseOverTimeAndUseConstantMemory() {
        var sketch = ReadSketch()
        for _ in 0..<20 { sketch.add(1) }
        #expect(sketch.count(1) == ReadSketch.countMax)
        var random = SeededGenerator(seed: 9)
        for _ in 0..<(3 * 10 * ReadSketch.wordsMax) { sketch.add(Int(truncatingIfNeeded: random.next())) }
        #expect(sketch.count(1) < ReadSketch.countMax)
        #expect(sketch.wordCount == ReadSketch.wordsMax)
    }
}

@Suite struct DiskMarksTests {
    @Test(arguments: [16 << 20, 64 << 20, 1 << 30, 8 << 30, 1 << 44]) func diskWatermarksAreAscending(_ limit: Int) {
        let marks = DiskThresholds(limit: limit, checkpointBytes: 64 << 20, hasJournal: true)
        #expect(0 < marks.low && marks.low < marks.high && marks.high < marks.ceiling && marks.ceiling < limit)
        // If tables reach the ceiling while the journal is full, the usage exceeds the limit by at most one checkpoint.
        #expect(marks.ceiling + 2 * marks.checkpointBytes <= limit + marks.checkpointBytes)
        #expect(marks.low >= limit / 5 * 4)
        #expect(marks.checkpointBytes <= 64 << 20)
    }

    @Test func watermarksOfADatabaseReserveNoSpaceForTheJournal() {
        let marks = DiskThresholds(limit: 64 << 20, checkpointBytes: 1 << 20, hasJournal: false)
        #expect(marks.ceiling == 64 << 20)
        #expect(marks.low < marks.high)
    }

    @Test func aDiskLimitOfADatabaseMakesCheckpointsSmaller() {
        let budget = DiskBudget(directory: "/nowhere", limitBytes: nil, checkpointBytes: 64 << 20)
        #expect(budget.checkpointBytes == 64 << 20 && !budget.countsReads && budget.marks == nil)
        budget.note(smallestDatabaseLimit: 4 << 20)
        #expect(budget.checkpointBytes == 1 << 20 && budget.countsReads)
        budget.note(smallestDatabaseLimit: nil)
        #expect(budget.checkpointBytes == 64 << 20 && !budget.countsReads)
        budget.changeLimit(to: 64 << 20)
        #expect(budget.checkpointBytes == 2 << 20 && budget.limitBytes == 64 << 20)
        #expect(budget.measure() == 0)
    }
}
