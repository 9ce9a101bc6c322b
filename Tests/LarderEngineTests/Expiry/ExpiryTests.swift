import LarderTestSupport
import Testing

@testable import LarderEngine

/// Tests that no kind of read returns an expired entry.
@Suite struct ExpiryTests {
    /// Returns, for each kind of read, whether it finds the key.
    private func waysThatShow(_ key: String, in database: Database, _ snapshot: Snapshot) throws -> [String] {
        var ways: [String] = []
        if try database.value(key) != nil { ways.append("get") }
        if try database.read(Key(key), now: database.now()).record != nil { ways.append("read") }
        let (seen, _) = try database.update([Key(key)], loading: true, now: database.now()) { $0.current(0) != nil }
        if seen { ways.append("update") }
        if try database.contents()[key] != nil { ways.append("cursor") }
        if try database.contents(EnumerationOptions(backward: true))[key] != nil { ways.append("backward") }
        if try database.count(includingExpired: false) != 0 { ways.append("count") }
        if try snapshot.value(key) != nil { ways.append("snapshot") }
        if try snapshot.contents()[key] != nil { ways.append("snapshot cursor") }
        if try snapshot.count(includingExpired: false) != 0 { ways.append("snapshot count") }
        return ways
    }

    private static let allWays = [
        "get", "read", "update", "cursor", "backward", "count", "snapshot", "snapshot cursor", "snapshot count",
    ]

    /// Checks each rule at the last millisecond before the deadline and at the deadline.
    @Test func allReadsExpireAnEntryAtTheSameMillisecond() throws {
        let larder = try TestLarder()
        let start = larder.time.wallMilliseconds()
        let cases: [(UpdatePolicy, DeadlineRule, Int64)] = [
            (.highest, .governed, 10_000), (.high, .governed, 60_000), (.middle, .governed, 3_600_000),
            (.low, .governed, 86_400_000), (.lowest, .governed, 604_800_000), (.never, .own(start + 123), 123),
            (.highest, .own(start + 20_000), 20_000),
        ]
        var passed: Int64 = 0
        for (number, (policy, rule, life)) in cases.enumerated() {
            let database = try larder.database("db\(number)", policy: policy)
            var rule = rule
            if case .own(let deadline) = rule { rule = .own(deadline + passed) }
            try database.put("k", "v", rule: rule)
            let snapshot = try database.snapshot()
            larder.time.advance(milliseconds: life - 1)
            #expect(try waysThatShow("k", in: database, snapshot) == Self.allWays)
            larder.time.advance(milliseconds: 1)
            passed += life
            #expect(try waysThatShow("k", in: database, snapshot) == [])
            #expect(try database.count(includingExpired: true) == 1)
        }
    }

    @Test func anEntryThatNeverExpiresOutlivesEveryPolicy() throws {
        let larder = try TestLarder()
        let database = try larder.database(policy: .highest)
        try database.put("k", "v", rule: .ownNever)
        let snapshot = try database.snapshot()
        larder.time.advance(milliseconds: 9_000_000_000_000)
        try larder.maintain()
        #expect(try waysThatShow("k", in: database, snapshot) == Self.allWays)
    }

    /// The first read after a start uses the database's own policy, not the default policy.
    @Test func theFirstReadAfterAReopenUsesTheDatabasesPolicy() throws {
        let larder = try TestLarder()
        try larder.database(policy: .highest).put("k", "v")
        larder.close()
        larder.time.advance(milliseconds: 10_000)
        let database = try larder.engine().database("books")
        #expect(database.condition == "closed")
        #expect(database.policy == .highest)
        #expect(try database.value("k") == nil)
    }

    @Test func expiryPersistsAcrossAReopen() throws {
        let larder = try TestLarder()
        let now = larder.time.wallMilliseconds()
        do {
            let database = try larder.database(policy: .high)
            try database.put("governed", "1")
            try database.put("own", "2", rule: .own(now + 100_000))
            try database.put("never", "3", rule: .ownNever)
        }
        for (time, expected) in [
            (0, ["governed", "own", "never"]), (59_999, ["governed", "own", "never"]), (60_000, ["own", "never"]),
            (99_999, ["own", "never"]), (100_000, ["never"]), (1_000_000_000, ["never"]),
        ] as [(Int64, [String])] {
            larder.close()
            larder.time.advance(milliseconds: now + time - larder.time.wallMilliseconds())
            #expect(try Set(larder.engine().database("books").contents().keys) == Set(expected), "after \(time) ms")
        }
    }

    /// Regression test: after the clock had briefly been an hour ahead, entries that were written later were hidden.
    @Test func entriesStoredAfterTheClockWasBrieflyAheadAreReadable() throws {
        let larder = try TestLarder()
        let database = try larder.database(policy: .never)
        larder.time.stepWall(milliseconds: 3_600_000)
        _ = database.now()
        larder.time.stepWall(milliseconds: -3_600_000)
        try database.put("a", "1", durability: .always)
        try database.put("own", "2", rule: .own(database.now() + 5000), durability: .always)
        _ = try larder.engine().maintain()
        let crashCopy = try larder.crashCopy()
        let again = try crashCopy.database()
        #expect(try again.contents() == ["a": "1", "own": "2"])
        #expect(try again.commit([Key("a")], loading: .records) { $0.current(0)?.text } == "1")
        crashCopy.time.advance(milliseconds: 4999)
        #expect(try again.contents() == ["a": "1", "own": "2"])
        crashCopy.time.advance(milliseconds: 1)
        #expect(try again.contents() == ["a": "1"])
    }

    /// Setting the clock back does not make entries live longer; setting it forward makes them expire.
    @Test("setting the clock back does not make entries live longer") func clockSteps() throws {
        let larder = try TestLarder()
        let database = try larder.database(policy: .high)
        try database.put("a", "1")
        larder.time.stepWall(milliseconds: -86_400_000)
        #expect(try database.value("a") == "1")
        larder.time.advance(milliseconds: 59_999)
        #expect(try database.value("a") == "1")
        larder.time.advance(milliseconds: 1)
        #expect(try database.value("a") == nil)
        #expect(try larder.engine().clockOffsetMilliseconds == 86_400_000)
        try database.put("b", "2")
        larder.time.stepWall(milliseconds: 2 * 86_400_000)
        #expect(try database.value("b") == nil)
        #expect(try larder.engine().clockOffsetMilliseconds == 0)
    }

    /// After a change of policy while the clock was a year ahead, entries that are written later must not expire at
    /// once.
    @Test func aPolicyChangeWhileTheClockIsAheadKeepsLaterEntries() throws {
        let larder = try TestLarder()
        let year: Int64 = 31_536_000_000
        do {
            let database = try larder.database(policy: .high)
            larder.time.stepWall(milliseconds: year)
            try database.setPolicy(.low)
        }
        larder.close()
        larder.time.stepWall(milliseconds: -year)
        larder.time.advance(milliseconds: 10_000)
        let database = try larder.database()
        try database.put("a", "1")
        larder.time.advance(milliseconds: 1)
        #expect(try database.value("a") == "1")
        larder.close()
        #expect(try larder.database().value("a") == "1")
    }

    @Test func aChangedPolicyAppliesToExistingEntries() throws {
        let larder = try TestLarder()
        let database = try larder.database(policy: .highest)
        try database.put("old", "1")
        larder.time.advance(milliseconds: 10_000)
        try database.put("new", "2")
        try database.setPolicy(.low)
        #expect(try database.contents() == ["new": "2"])
        larder.time.advance(milliseconds: 3_600_000)
        #expect(try database.contents() == ["new": "2"])
        try database.setPolicy(.high)
        #expect(try database.contents() == [:])
        try database.setPolicy(.never)
        #expect(try database.contents() == [:])
        larder.close()
        #expect(try larder.database().policy == .never)
        #expect(try larder.database().contents() == [:])
    }

    @Test func openingWithAnotherPolicyChangesIt() throws {
        let larder = try TestLarder()
        #expect(try larder.database().policy == .lowest)
        #expect(try larder.database(policy: .high).policy == .high)
        #expect(try larder.database().policy == .high)
        larder.close()
        #expect(try larder.database(policy: .never).policy == .never)
        #expect(errorCode { _ = try larder.engine().database("UPPER") } == .invalidArgument)
    }

    @Test func anUpdateSeesItsOwnChanges() throws {
        let larder = try TestLarder()
        let database = try larder.database(policy: .high)
        try database.put("old", "1")
        larder.time.advance(milliseconds: 60_000)
        let keys = [Key("a"), Key("old"), Key("a"), Key("b")]
        try database.commit(keys, loading: .records) { update in
            #expect(update.current(0) == nil)
            #expect(update.current(1) == nil)
            #expect(update.isStored(1))
            Array("x".utf8).withUnsafeBytes { update.put(0, payload: $0) }
            #expect(update.current(2)?.text == "x")
            update.remove(2)
            #expect(update.current(0) == nil)
            #expect(!update.isStored(0))
            Array("y".utf8).withUnsafeBytes { update.put(2, payload: $0) }
            update.remove(1)
            update.remove(3)
        }
        #expect(try database.contents() == ["a": "y"])
        #expect(try database.count(includingExpired: true) == 1)
    }

    @Test func anUpdateThatThrowsChangesNothing() throws {
        let larder = try TestLarder()
        let database = try larder.database()
        #expect(
            errorCode {
                try database.commit([Key("a")], loading: .records) { (update) throws(LarderError) in
                    Array("x".utf8).withUnsafeBytes { update.put(0, payload: $0) }
                    throw LarderError(.invalidArgument, "no", operation: "test")
                }
            } == .invalidArgument)
        #expect(try database.contents() == [:])
        try database.put("b", "1")
        #expect(try database.contents() == ["b": "1"])
    }
}
