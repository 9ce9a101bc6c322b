import LarderTestSupport
import Testing

@testable import LarderEngine

/// Tests of the grace: the time for which a stale entry is kept after its deadline.
@Suite struct GraceTests {
    private let stored: Int64 = 1_700_000_000_000

    @Test func anEntryIsFreshThenStaleThenExpired() {
        var rules = FreshnessRules(DatabasePolicy(.highest, grace: 5000))
        for (rule, grace, deadline) in [
            (DeadlineRule.governed, nil, stored + 10_000), (.own(stored + 77), nil, stored + 77),
            (.governed, 7, stored + 10_000), (.own(stored + 77), 0, stored + 77),
        ] as [(DeadlineRule, Int64?, Int64)] {
            let header = RecordHeader(storedAt: stored, rule: rule, grace: grace)
            let end = deadline + (grace ?? 5000)
            #expect(rules.freshness(header, now: deadline - 1) == .fresh)
            #expect(rules.freshness(header, now: deadline) == (end > deadline ? .stale : .gone))
            #expect(rules.freshness(header, now: end - 1) == (end > deadline ? .stale : .fresh))
            #expect(rules.freshness(header, now: end) == .gone)
        }
        #expect(rules.freshness(RecordHeader(storedAt: stored, rule: .ownNever), now: .max) == .fresh)
        // Sums of times do not overflow, even with extreme values from the disk.
        rules.grace = UpdatePolicy.longestMilliseconds
        let far = RecordHeader(storedAt: stored, rule: .own(.max - 1), grace: UpdatePolicy.longestMilliseconds)
        #expect(rules.freshness(far, now: .max - 1) == .stale)
    }

    /// An expired entry stays expired under any later policy with the same grace.
    @Test func aPolicyChangeNeverRevivesExpiredEntries() {
        var random = SeededGenerator(seed: testSeed())
        let policies: [UpdatePolicy] = [.highest, .high, .middle, .never]
        for _ in 0..<300 {
            var now = stored
            var rules = FreshnessRules(DatabasePolicy(.high, grace: 30_000))
            var headers: [RecordHeader] = []
            var gone: Set<Int> = []
            for _ in 0..<60 {
                switch Int.random(in: 0..<3, using: &random) {
                case 0: headers.append(RecordHeader(storedAt: now, generation: UInt32(headers.count)))
                case 1: now += Int64.random(in: 0...(random.oneIn(2) ? 20 : 100_000), using: &random)
                default:
                    let policy = policies.randomElement(using: &random) ?? .low
                    rules = rules.changed(to: DatabasePolicy(policy, grace: 30_000), now: now)
                }
                for (index, header) in headers.enumerated() {
                    let isGone = rules.freshness(header, now: now) == .gone
                    #expect(isGone || !gone.contains(index))
                    if isGone { gone.insert(index) }
                }
            }
        }
    }

    @Test(arguments: [0, 64 << 20]) func theSweepKeepsEntriesWithinTheirGrace(memory: Int) throws {
        let larder = try TestLarder { $0.memoryBytes = memory }
        let database = try larder.database(policy: .high)
        try database.setPolicy(.high, grace: 600_000)
        let now = database.now()
        func put(_ key: String, _ rule: DeadlineRule, grace: Int64?) throws {
            _ = try database.commit([Key(key)], loading: .none) { update in
                Array("v".utf8).withUnsafeBytes { update.put(0, payload: $0, rule: rule, grace: grace) }
            }
        }
        try put("governed", .governed, grace: nil)
        try put("own", .own(now + 60_000), grace: nil)
        try put("governed, longer", .governed, grace: 3_600_000)
        try put("own, longer", .own(now + 60_000), grace: 3_600_000)
        try put("governed, none", .governed, grace: 0)
        try put("own, none", .own(now + 60_000), grace: 0)
        _ = try database.flushedStore()
        func keys() throws -> Set<String> {
            Set(try database.contents(EnumerationOptions(includeExpired: true)).keys)
        }
        larder.time.advance(milliseconds: 62_000)
        #expect(try database.contents() == [:], "reads return no stale entries")
        #expect(
            try database.purge(.expired(merges: true)).entries == 2,
            "what is gone is removed on demand, not what is stale")
        try larder.maintain()
        #expect(try keys() == ["governed", "own", "governed, longer", "own, longer"])
        larder.time.advance(milliseconds: 603_000)
        try larder.maintain()
        #expect(try keys() == ["governed, longer", "own, longer"])
        // Entries with their own grace may be swept late: up to the database's grace after the end of their own.
        larder.time.advance(milliseconds: 3_700_000)
        try larder.maintain()
        #expect(try database.rawKeys().count == 1, "no entry and no index key is left")
    }

    @Test func graceAndJitterSurviveARestartAndAPurge() throws {
        let larder = try TestLarder()
        var database = try larder.database(policy: .low)
        try database.setPolicy(.low, grace: 5000, jitter: 10)
        let settings = DatabasePolicy(.low, grace: 5000, jitter: 10)
        #expect(database.rules.settings == settings)
        larder.close()
        database = try larder.database()
        #expect(database.rules.settings == settings)
        try database.put("k", "v")
        _ = try database.purge()
        #expect(database.rules.settings == settings)
        try database.setPolicy(.high)
        #expect(database.rules.settings == DatabasePolicy(.high, grace: 5000, jitter: 10), "other settings are kept")
    }

    @Test func jitterSpreadsTheDeadlinesOfABatch() throws {
        let larder = try TestLarder()
        let database = try larder.database(policy: .middle)
        try database.setPolicy(.middle, jitter: 10)
        let now = database.now()
        let keys = (0..<1000).map { Key("k\($0)") }
        _ = try database.commit(keys, loading: .none) { update in
            for index in keys.indices { [1].withUnsafeBytes { update.put(index, payload: $0) } }
        }
        let deadlines = try keys.map { key in
            try #require(try database.get(key).flatMap { database.rules.deadline($0.header) })
        }
        #expect(deadlines.allSatisfy { (now + 3_240_000...now + 3_600_000).contains($0) })
        #expect(Set(deadlines).count > 900)
        #expect((deadlines.max() ?? 0) - (deadlines.min() ?? 0) > 300_000)
        // An entry with its own deadline gets exactly that deadline.
        try database.put("own", "v", rule: .own(now + 5000))
        #expect(try database.get(Key("own"))?.header.rule == .own(now + 5000))
    }
}
