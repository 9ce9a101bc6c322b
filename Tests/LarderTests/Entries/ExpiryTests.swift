import Foundation
import Larder
import Testing

@Suite struct ExpiryTests {
    let work: Workspace

    init() throws { work = try Workspace() }

    @Test(
        arguments: [
            (UpdatePolicy.highest, 10_000), (.high, 60_000), (.middle, 3_600_000), (.low, 86_400_000),
            (.lowest, 604_800_000),
        ] as [(UpdatePolicy, Int64)])
    func anEntryExpiresAtItsDeadline(_ policy: UpdatePolicy, _ interval: Int64) throws {
        let cache = try work.cache(policy: policy)
        try cache.set(1, forKey: "k")
        work.time.advance(milliseconds: interval - 1)
        #expect(try cache.value(Int.self, forKey: "k") == 1)
        let snapshot = try cache.snapshot()
        work.time.advance(milliseconds: 1)
        for reading in [cache, snapshot] as [any CacheReading] {
            #expect(try reading.value(Int.self, forKey: "k") == nil)
            #expect(try reading.bytes(forKey: "k") == nil)
            #expect(try reading.contains("k") == false)
            #expect(try reading.info(forKey: "k") == nil)
            #expect(try reading.values(Int.self, forKeys: ["k"]) == [:])
            #expect(try reading.keys() == [])
            #expect(try reading.count() == 0)
            #expect(try reading.storedCount() == 1)
        }
        #expect(try cache.remove("k") == false)
    }

    @Test func withThePolicyNeverEntriesDoNotExpire() throws {
        let cache = try work.cache(policy: .never)
        try cache.set(1, forKey: "k")
        work.time.advance(milliseconds: 86_400_000 * 365 * 100)
        #expect(try cache.value(Int.self, forKey: "k") == 1)
    }

    @Test func anEntryMayHaveAPolicyOfItsOwn() throws {
        let cache = try work.cache(policy: .middle)
        try cache.set(1, forKey: "governed")
        try cache.set(1, forKey: "short", policy: .highest)
        try cache.set(1, forKey: "every", policy: .seconds(0.5))
        try cache.set(1, forKey: "never", policy: .never)
        try cache.set(1, forKey: "variable", policy: .policy(.high))
        try cache.setBytes([1], forKey: "until", policy: .until(Date(timeIntervalSince1970: 1_700_000_020)))
        #expect(try cache.keys() == ["every", "governed", "never", "short", "until", "variable"])
        work.time.advance(milliseconds: 500)
        #expect(try cache.keys() == ["governed", "never", "short", "until", "variable"])
        work.time.advance(milliseconds: 9_500)
        #expect(try cache.keys() == ["governed", "never", "until", "variable"])
        work.time.advance(milliseconds: 9_999)
        #expect(try cache.keys() == ["governed", "never", "until", "variable"])
        work.time.advance(milliseconds: 1)
        #expect(try cache.keys() == ["governed", "never", "variable"])
        work.time.advance(milliseconds: 3_600_000)
        #expect(try cache.keys() == ["never"])
    }

    @Test(arguments: [
        EntryPolicy.seconds(0), .seconds(-1), .seconds(.nan), .seconds(1e12), .after(.zero), .after(.seconds(-1)),
        .after(.seconds(9_000_000_001)), .until(Date(timeIntervalSince1970: 1e12)),
    ])
    func invalidPoliciesAreRefused(_ policy: EntryPolicy) throws {
        let cache = try work.cache()
        expectError(.invalidArgument) { try cache.set(1, forKey: "k", policy: policy) }
        expectError(.invalidArgument) { try cache.setBytes([1], forKey: "k", policy: policy) }
        expectError(.invalidArgument) { try cache.set(["k": 1], policy: policy) }
        expectError(.invalidArgument) { try cache.touch("k", policy: policy) }
        expectError(.invalidArgument) { try cache.batch { try $0.set(1, forKey: "k", policy: policy) } }
        #expect(try cache.storedCount() == 0)
    }

    @Test("an invalid interval of a database throws, as that of an entry does", arguments: [0, -1, .nan, 1e12])
    func invalidIntervalsOfDatabasesAreRefused(_ hours: Double) async throws {
        let cache = try work.cache()
        let invalid = UpdatePolicy.hours(hours)
        expectError(.invalidArgument) { _ = try Cache(named: "other", policy: invalid, directory: cache.directory) }
        expectError(.invalidArgument) { _ = try Cache.inMemory(policy: invalid) }
        expectError(.invalidArgument) { try cache.setPolicy(invalid) }
        expectError(.invalidArgument) { try cache.set(1, forKey: "k", policy: .policy(invalid)) }
        expectError(.invalidArgument) { try cache.set(1, forKey: "k", policy: .hours(hours)) }
        #expect(cache.policy.intervalMilliseconds.map { (1...UpdatePolicy.longestMilliseconds).contains($0) } ?? true)
    }

    @Test(arguments: [
        EntryPolicy.until(millisecondsSince1970: .min), .until(millisecondsSince1970: 1_700_000_000_000),
        .until(Date.distantPast), .until(Date(timeIntervalSince1970: -.infinity)),
    ])
    func anEntryStoredWithAPastDeadlineIsExpiredAtOnce(_ policy: EntryPolicy) throws {
        let cache = try work.cache()
        try cache.set(1, forKey: "k")
        try cache.set(2, forKey: "k", policy: policy)
        #expect(try cache.value(Int.self, forKey: "k") == nil)
        work.time.advance(milliseconds: 1_100)
        #expect(try cache.sweep() == 1)
        #expect(try cache.storedCount() == 0)
    }

    @Test func deadlinesInTheDistantFutureWork() throws {
        let cache = try work.cache()
        try cache.set(1, forKey: "k", policy: .until(Date.distantFuture))
        #expect(try cache.info(forKey: "k")?.deadline == Date.distantFuture)
        expectError(.invalidArgument) {
            try cache.set(1, forKey: "k", policy: .until(Date(timeIntervalSince1970: .infinity)))
        }
        expectError(.invalidArgument) {
            try cache.set(1, forKey: "k", policy: .until(Date(timeIntervalSince1970: .nan)))
        }
    }

    @Test func infoHasTheMetadataOfAnEntry() throws {
        let cache = try work.cache(policy: .high)
        try cache.set("四", forKey: "k")
        work.time.advance(milliseconds: 1_500)
        let info = try #require(try cache.info(forKey: "k"))
        #expect(info.storedAtMilliseconds == 1_700_000_000_000)
        #expect(info.storedAt == Date(timeIntervalSince1970: 1_700_000_000))
        #expect(info.deadlineMilliseconds == 1_700_000_060_000)
        #expect(info.deadline == Date(timeIntervalSince1970: 1_700_000_060))
        #expect(info.age == .milliseconds(1_500))
        #expect(info.timeToLive == .milliseconds(58_500))
        #expect(info.rule == .governed)
        #expect(info.codec == .raw)
        #expect(info.byteCount == 3)
        #expect(info.isExpired == false)
        try cache.set("四", forKey: "k", policy: .never)
        let kept = try #require(try cache.info(forKey: "k"))
        #expect(kept.deadline == nil && kept.timeToLive == nil && kept.rule == .ownNever && kept.age == .zero)
        try cache.set("四", forKey: "k", policy: .seconds(2))
        #expect(try cache.info(forKey: "k")?.rule == .own(1_700_000_003_500))
    }

    @Test func writingRenewsTheLifetimeAndReadingDoesNot() throws {
        let cache = try work.cache(policy: .highest)
        try cache.set(1, forKey: "read")
        try cache.set(1, forKey: "written")
        work.time.advance(milliseconds: 9_000)
        #expect(try cache.value(Int.self, forKey: "read") == 1)
        try cache.set(2, forKey: "written")
        work.time.advance(milliseconds: 1_000)
        #expect(try cache.value(Int.self, forKey: "read") == nil)
        #expect(try cache.value(Int.self, forKey: "written") == 2)
    }

    @Test func aPolicyChangeExtendsFreshEntriesButNotExpiredOnes() throws {
        let cache = try work.cache(policy: .highest)
        try cache.set(1, forKey: "old")
        work.time.advance(milliseconds: 5_000)
        try cache.set(1, forKey: "young")
        work.time.advance(milliseconds: 5_000)
        try cache.setPolicy(.low)
        #expect(try cache.value(Int.self, forKey: "old") == nil)
        #expect(try cache.value(Int.self, forKey: "young") == 1)
        #expect(try cache.info(forKey: "young")?.timeToLive == .seconds(86_400 - 5))
        cache.close()
        let again = try work.cache(policy: .never)
        #expect(try again.value(Int.self, forKey: "old") == nil)
        try again.setPolicy(.highest)
        work.time.advance(milliseconds: 5_000)
        #expect(try again.value(Int.self, forKey: "young") == nil)
    }

    @Test func touchChangesTheDeadlineOnly() throws {
        let cache = try work.cache(policy: .high)
        try cache.set(Reader("a"), forKey: "k")
        work.time.advance(milliseconds: 30_000)
        #expect(try cache.touch("k", policy: .seconds(100)))
        #expect(try cache.info(forKey: "k")?.timeToLive == .seconds(100))
        #expect(try cache.info(forKey: "k")?.age == .seconds(30))
        #expect(try cache.touch("k", policy: .database))
        #expect(try cache.info(forKey: "k")?.timeToLive == .seconds(30))
        #expect(try cache.touch("k", policy: .never))
        work.time.advance(milliseconds: 1_000_000)
        #expect(try cache.value(Reader.self, forKey: "k") == Reader("a"))
        #expect(try cache.touch("other", policy: .highest) == false)
        #expect(try cache.touch("k", policy: .until(millisecondsSince1970: 0)))
        #expect(try cache.value(Reader.self, forKey: "k") == nil)
        #expect(try cache.touch("k", policy: .never) == false)
    }

    @Test(arguments: [3_600_000, 5_000] as [Int64])
    func settingTheClockBackDoesNotDelayExpiry(_ step: Int64) throws {
        let cache = try work.cache(policy: .highest)
        try cache.set(1, forKey: "k")
        work.time.stepWall(milliseconds: -step)
        // In one case the clock advances by more than it was set back: the entry must not expire earlier because of
        // that.
        work.time.advance(milliseconds: 9_999)
        #expect(try cache.value(Int.self, forKey: "k") == 1)
        work.time.advance(milliseconds: 1)
        #expect(try cache.value(Int.self, forKey: "k") == nil)
    }

    @Test func settingTheClockBackBetweenRunsHidesNoEntries() throws {
        let cache = try work.cache(policy: .high)
        try cache.set(1, forKey: "k")
        cache.close()
        work.time.stepWall(milliseconds: -3_600_000)
        let again = try work.cache(policy: nil)
        #expect(try again.value(Int.self, forKey: "k") == 1)
        #expect(try again.info(forKey: "k")?.age == .zero)
        #expect(try again.info(forKey: "k")?.timeToLive == .seconds(60))
        // Absolute deadlines follow the system clock.
        let clock = work.time.wallMilliseconds()
        #expect(try again.info(forKey: "k")?.storedAtMilliseconds == clock)
        try again.set(2, forKey: "until", policy: .until(millisecondsSince1970: clock + 1000))
        #expect(try again.info(forKey: "until")?.deadlineMilliseconds == clock + 1000)
        work.time.advance(milliseconds: 999)
        #expect(try again.value(Int.self, forKey: "until") == 2)
        work.time.advance(milliseconds: 1)
        #expect(try again.value(Int.self, forKey: "until") == nil)
    }

    @Test func sweepingAndRemovingExpiredFreeSpace() throws {
        let cache = try work.cache(policy: .high)
        let other = try work.cache("other", policy: .never)
        for index in 0..<1_200 { try cache.set(index, forKey: "old \(index)", policy: .highest) }
        try cache.set(1, forKey: "governed")
        try other.set(1, forKey: "k", policy: .seconds(1))
        #expect(try cache.sweep() == 0)
        // Advances a little further than the deadline, because the expiry index rounds deadlines to about a second.
        work.time.advance(milliseconds: 11_100)
        #expect(try cache.count() == 1)
        #expect(try cache.storedCount() == 1_201)
        #expect(try cache.sweep() == 1_201)
        #expect(try cache.keys(EntryOptions(includingExpired: true)) == ["governed"])
        #expect(try other.storedCount() == 0)
        work.time.advance(milliseconds: 48_900)
        #expect(try cache.removeExpired().entries == 1)
        #expect(try cache.storedCount() == 0)
        #expect(try cache.removeExpired().entries == 0)
    }
}
