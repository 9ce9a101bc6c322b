import Larder
import LarderEngine
import LarderTestSupport
import Testing

/// Tests of the grace and the jitter of entries that the library stores.
@Suite struct GraceTests {
    let work: Workspace

    init() throws { work = try Workspace() }

    @Test func anEntryHasTheGraceOfItsPolicy() throws {
        let cache = try work.cache(policy: .high)
        try cache.setPolicy(.high, grace: .seconds(90))
        try cache.set(1, forKey: "database")
        try cache.set(1, forKey: "own", policy: .hours(1).grace(.seconds(600)))
        try cache.set(1, forKey: "none", policy: .database.grace(.zero))
        try cache.set(1, forKey: "until", policy: .until(millisecondsSince1970: 1_700_000_500_000).grace(.seconds(1)))
        func grace(_ key: String) throws -> Duration? { try cache.info(forKey: key)?.grace }
        #expect(try grace("database") == .seconds(90))
        #expect(try grace("own") == .seconds(600))
        #expect(try grace("none") == .zero)
        #expect(try grace("until") == .seconds(1))
        // A change of the value keeps the grace.
        try cache.set(2, forKey: "own", policy: .keep)
        try cache.increment("own")
        #expect(try grace("own") == .seconds(600))
        try cache.set(2, forKey: "own", policy: .keep.grace(.seconds(5)))
        #expect(try grace("own") == .seconds(5))
        // Only calls that fetch return stale values.
        work.time.advance(milliseconds: 3_600_000)
        #expect(try cache.value(Int.self, forKey: "own") == nil)
        #expect(try cache.contains("own") == false)
        #expect(try cache.count() == 0)
    }

    @Test func longValuesHaveTheirGraceToo() throws {
        let cache = try work.cache(policy: .high)
        let long = [UInt8](repeating: 7, count: 5 << 20)
        try cache.setBytes(long, forKey: "k", policy: .seconds(90).grace(.seconds(7)).jitter(percent: 1))
        #expect(try cache.info(forKey: "k")?.grace == .seconds(7))
        #expect(try cache.bytes(forKey: "k") == long)
    }

    @Test func jitterShortensLifetimes() throws {
        let cache = try work.cache(policy: .high)
        func lives(_ policy: EntryPolicy) throws -> [Int64] {
            try (0..<200).map { _ in
                try cache.set(1, forKey: "k", policy: policy)
                return try #require(try cache.info(forKey: "k")?.timeToLiveMilliseconds)
            }
        }
        for policy in [EntryPolicy.seconds(60), .database, .until(millisecondsSince1970: 1_700_000_060_000)] {
            let spread = try lives(policy.jitter(percent: 50))
            #expect(spread.allSatisfy { (30_000...60_000).contains($0) }, "\(policy): \(spread)")
            #expect(Set(spread).count > 100, "\(policy)")
            #expect(try Set(lives(policy)) == [60_000], "\(policy)")
        }
        try cache.setPolicy(.high, jitter: 50)
        #expect(try Set(lives(.database)).count > 100)
        #expect(try Set(lives(.seconds(60))) == [60_000])
        // Nil keeps the jitter; 0 removes it.
        try cache.setPolicy(.high)
        #expect(try Set(lives(.database)).count > 100)
        try cache.setPolicy(.high, jitter: 0)
        #expect(try Set(lives(.database)) == [60_000])
    }

    @Test func aDatabaseIsCreatedWithTheGivenGrace() throws {
        let cache = try Cache(
            named: "g", policy: .high, grace: .seconds(5), jitter: 0, directory: work.directory, options: work.options()
        )
        try cache.set(1, forKey: "k")
        #expect(try cache.info(forKey: "k")?.graceMilliseconds == 5_000)
        let again = try Cache(named: "g", policy: .low, directory: work.directory, options: work.options())
        #expect(try again.info(forKey: "k")?.graceMilliseconds == 5_000)
        let other = try Cache(
            named: "g", policy: .low, grace: .zero, directory: work.directory, options: work.options())
        #expect(try other.info(forKey: "k")?.graceMilliseconds == 0)
    }

    @Test func invalidGraceAndJitterAreRefused() throws {
        let cache = try work.cache(policy: .high)
        for policy in [
            EntryPolicy.hours(1).grace(.seconds(-1)), .hours(1).grace(.seconds(9_000_000_001)),
            .hours(1).grace(.seconds(Int64.max)), .hours(1).jitter(percent: -1), .hours(1).jitter(percent: 101),
        ] {
            let text = expectError(.invalidArgument) { try cache.set(1, forKey: "k", policy: policy) }
            #expect(text.contains("invalid "), "\(text)")
        }
        expectError(.invalidArgument) { try cache.setPolicy(.high, grace: .seconds(-1)) }
        expectError(.invalidArgument) { try cache.setPolicy(.high, jitter: 101) }
        expectError(.invalidArgument) {
            _ = try Cache(named: "x", policy: .high, jitter: -1, directory: work.directory, options: work.options())
        }
        try cache.set(1, forKey: "k")
        let text = expectError(.invalidArgument) { try cache.touch("k", policy: .hours(1).grace(.seconds(1))) }
        #expect(text.contains("grace of a stored entry"))
        #expect(try cache.count() == 1)
    }

    @Test func policiesArePrintedWithTheirGraceAndJitter() {
        #expect(
            EntryPolicy.low.grace(.milliseconds(1_500)).jitter(percent: 5).description == "low grace:1.500 jitter:5%")
        #expect(EntryPolicy.seconds(90).description == "every:90")
    }
}
