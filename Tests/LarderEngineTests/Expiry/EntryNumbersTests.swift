import LarderPlatform
import LarderTestSupport
import Testing

@testable import LarderEngine

/// Tests of the numbers of entries by state, with entries in LevelDB, in memory, and in both.
@Suite struct EntryNumbersTests {
    /// Returns the expected numbers, counted by a scan of all entries.
    private func expected(_ database: Database) throws -> EntryNumbers {
        var numbers = EntryNumbers()
        guard let cursor = try database.cursor(EnumerationOptions(includeExpired: true)) else { return numbers }
        while try cursor.next() {
            numbers.stored += 1
            switch database.rules.freshness(try cursor.header(), now: database.now()) {
            case .fresh: numbers.fresh += 1
            case .stale: numbers.stale += 1
            case .gone: break
            }
        }
        return numbers
    }

    @Test("an eviction that ends all snapshots does not make a count fail") func countDuringAnEviction() throws {
        let larder = try TestLarder()
        let database = try larder.database()
        for number in 0..<20_000 { try database.put("key:\(number)", "v") }
        let store = try #require(try database.flushedStore())
        let hasEnded = Guarded(false)
        let evictor = WorkThread(name: "test") {
            while !store.isPinned, !hasEnded.value { nap() }
            store.endViews()
        }
        #expect(try database.count(includingExpired: false) == 20_000)
        hasEnded.value = true
        evictor.join()
    }

    @Test func countsAgreeWithAFullScan() throws {
        var random = SeededGenerator(seed: testSeed())
        let larder = try TestLarder()
        let database = try larder.database()
        let tag = try Tags(checking: [[7]])
        for step in 0..<600 {
            let key = "key:\(Int.random(in: 0..<200, using: &random))"
            switch Int.random(in: 0..<20, using: &random) {
            case 0: _ = try database.flushedStore()
            case 1: try database.setPolicy(.every(milliseconds: 40_000) ?? .high, grace: 5_000)
            case 2: try database.setPolicy(.never)
            case 3: try database.purge(.tags([[7]], soft: Bool.random(using: &random)))
            case 4: _ = try database.commit([Key(key)], loading: .none) { $0.remove(0) }
            default:
                let life = Int64.random(in: 1...60_000, using: &random)
                let rule: DeadlineRule =
                    Bool.random(using: &random) ? .governed : .own(larder.time.wallMilliseconds() + life)
                let isTagged = Int.random(in: 0..<4, using: &random) == 0
                let grace: Int64? = Bool.random(using: &random) ? 3_000 : nil
                _ = try database.commit([Key(key)], loading: .none) { update in
                    update.put(
                        0, payload: UnsafeRawBufferPointer(start: nil, count: 0), rule: rule, grace: grace,
                        tags: isTagged ? tag : nil)
                }
            }
            larder.time.advance(milliseconds: Int64.random(in: 0...2_000, using: &random))
            var numbers = try database.entryNumbers()
            // The numbers of entries by deadline may be cached, so they are only checked for plausibility.
            #expect((0...numbers.fresh).contains(numbers.ends.hour) && numbers.ends.minute <= numbers.ends.hour)
            numbers.ends = EntryNumbers.Ends()
            #expect(try numbers == expected(database), "step \(step)")
        }
    }

    /// The entries are on disk, in memory, or both. Many keys have a common prefix, and a few have none.
    @Test func entriesAreCountedByTheirRemainingLifetime() throws {
        let larder = try TestLarder()
        let database = try larder.database(policy: .never)
        var random = SeededGenerator(seed: testSeed())
        let lives: [Int64?] = [nil, 1, 59_999, 60_000, 3_599_999, 3_600_000, 86_399_999, 86_400_000, 1 << 60]
        func put(_ key: String, _ life: Int64?) throws {
            let rule = life.map { DeadlineRule.own(larder.time.wallMilliseconds() + $0) } ?? .ownNever
            try database.put(key, "v", rule: rule)
        }
        for number in 0..<300 { try put("many/with/one/beginning/\(number)", lives[number % 9]) }
        _ = try database.flushedStore()
        for number in 0..<90 { try put("many/with/one/beginning/\(number)", lives[random.below(9)]) }
        for number in 0..<30 { try put("\(number)", lives[number % 9]) }
        let now = database.now()
        let expected = try ends(of: database, at: now)
        #expect(expected.minute > 50 && expected.never > 20)
        #expect(try database.entryNumbers().ends == expected)
        // A minute later, the result is computed from the cached numbers, minus the entries that have expired since.
        larder.time.advance(milliseconds: 61_000)
        let later = try database.entryNumbers().ends
        var expectedLater = try ends(of: database, at: now + 61_000)
        // Deadlines are counted in bins of 15 minutes. The limit of a day is now within a bin, so the number of entries
        // that expire within a day is an estimate.
        #expect((expectedLater.hour...expectedLater.day).contains(later.day))
        expectedLater.day = later.day
        #expect(later == expectedLater)
    }

    /// Reads the deadlines of all entries and counts those after `now`.
    private func ends(of database: Database, at now: Int64) throws -> EntryNumbers.Ends {
        var ends = EntryNumbers.Ends()
        let cursor = try #require(try database.cursor())
        while try cursor.next() {
            guard let deadline = database.rules.deadline(try cursor.header()) else {
                ends.never += 1
                continue
            }
            guard deadline > now else { continue }
            if deadline < now + 60_000 { ends.minute += 1 }
            if deadline < now + 3_600_000 { ends.hour += 1 }
            if deadline < now + 86_400_000 { ends.day += 1 }
        }
        return ends
    }

    @Test func expiredEntriesAreCountedFromTheNearestDeadlines() {
        var random = SeededGenerator(seed: testSeed())
        for _ in 0..<200 {
            var ends: [Int64?] = []
            var counted = CountedEnds(nearestMax: 8)
            for _ in 0..<Int.random(in: 0...60, using: &random) {
                let end = Int.random(in: 0..<8, using: &random) == 0 ? nil : Int64.random(in: 0...40, using: &random)
                ends.append(end)
                counted.add(end, now: 10)
            }
            counted.complete()
            for now in Int64(10)...50 where now < counted.knownUntil {
                #expect(counted.count(now: now) == ends.count { $0.map { $0 > now } ?? true })
            }
            #expect(counted.knownUntil > 10)
            #expect(counted.knownUntil == .max || ends.count > 8)
        }
    }
}
