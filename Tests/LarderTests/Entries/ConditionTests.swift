import Foundation
import Larder
import LarderPlatform
import LarderTestSupport
import Synchronization
import Testing

/// Tests of changes that depend on the stored value.
@Suite struct ConditionTests {
    let work: Workspace
    let cache: Cache

    init() throws {
        work = try Workspace()
        cache = try work.cache()
    }

    @Test func conditionsDecideWhetherAValueIsStored() throws {
        #expect(try !cache.setIfPresent(1, forKey: "k"))
        #expect(try !cache.replace(1, with: 2, forKey: "k"))
        #expect(try cache.setIfAbsent(1, forKey: "k", policy: .seconds(5)))
        #expect(try !cache.setIfAbsent(2, forKey: "k"))
        #expect(try cache.value(Int.self, forKey: "k") == 1)
        #expect(try !cache.replace(2, with: 3, forKey: "k"))
        #expect(try cache.replace(1, with: 3, forKey: "k", policy: .keep))
        #expect(try cache.info(forKey: "k")?.timeToLive == .seconds(5))
        #expect(try cache.setIfPresent(4, forKey: "k", policy: .seconds(9)))
        #expect(try cache.info(forKey: "k")?.timeToLive == .seconds(9))
        #expect(try !cache.remove("k", ifEqual: 3))
        #expect(try cache.remove("k", ifEqual: 4))
        #expect(try !cache.remove("k", ifEqual: 4))
        #expect(try cache.count() == 0)
    }

    /// An expired entry counts as missing, although its record still exists.
    @Test func anExpiredEntryCountsAsMissing() throws {
        try cache.set(1, forKey: "k", policy: .seconds(1))
        work.time.advance(milliseconds: 1_000)
        #expect(try !cache.setIfPresent(2, forKey: "k"))
        #expect(try !cache.replace(1, with: 2, forKey: "k"))
        #expect(try !cache.remove("k", ifEqual: 1))
        #expect(try !cache.touch("k", policy: .never))
        #expect(try cache.value(Int.self, forKey: "k", renewing: .never) == nil)
        #expect(try cache.removeValue(Int.self, forKey: "k") == nil)
        try cache.set(3, forKey: "other", policy: .keep)
        #expect(try cache.info(forKey: "other")?.rule == .governed)
        #expect(try cache.increment("k", by: 5) == 5)
        #expect(try cache.info(forKey: "k")?.rule == .governed)
    }

    /// A lookup does not create files for a database without any.
    @Test func lookupsDoNotCreateFiles() throws {
        let none = try work.cache("none", policy: nil)
        #expect(try !none.setIfPresent(1, forKey: "k"))
        #expect(try !none.replace(1, with: 2, forKey: "k"))
        #expect(try !none.remove("k", ifEqual: 1))
        #expect(try !none.touch("k", policy: .high))
        #expect(try none.removeValue(Int.self, forKey: "k") == nil)
        try none.update(Int.self, forKey: "k") { $0 = nil }
        #expect(try Cache.databases(in: work.directory) == ["books"])
        #expect(try none.setIfAbsent(1, forKey: "k"))
        #expect(try none.value(Int.self, forKey: "k") == 1)
    }

    @Test func aReplacedEntryCanKeepItsLifetime() throws {
        try cache.set("a", forKey: "own", policy: .seconds(10))
        try cache.set("a", forKey: "never", policy: .never)
        try cache.set("a", forKey: "governed")
        work.time.advance(milliseconds: 4_000)
        try cache.batch { batch in
            for key in ["own", "never", "governed", "new"] { try batch.set("b", forKey: key, policy: .keep) }
        }
        #expect(try cache.info(forKey: "own")?.timeToLive == .seconds(6))
        #expect(try cache.info(forKey: "never")?.rule == .ownNever)
        // The lifetime of an entry that follows the policy counts from the time at which it was stored.
        #expect(try cache.info(forKey: "governed")?.timeToLive == .seconds(60))
        #expect(try cache.info(forKey: "new")?.rule == .governed)
        try cache.setBytes([1], forKey: "own", policy: .keep)
        #expect(try cache.info(forKey: "own")?.timeToLive == .seconds(6))
        // This value is so long that it is written to a file before it is committed.
        try cache.setBytes([UInt8](repeating: 7, count: 5 << 20), forKey: "own", policy: .keep)
        #expect(try cache.info(forKey: "own")?.timeToLive == .seconds(6))
    }

    @Test func aReadCanRenewTheLifetime() throws {
        try cache.set("a", forKey: "k")
        work.time.advance(milliseconds: 30_000)
        #expect(try cache.value(String.self, forKey: "k", renewing: .minutes(5)) == "a")
        #expect(try cache.timeToLive(forKey: "k") == .milliseconds(300_000))
        #expect(try cache.info(forKey: "k")?.age == .seconds(30))
        #expect(try cache.value(String.self, forKey: "k", renewing: .keep) == "a")
        #expect(try cache.value(String.self, forKey: "k", renewing: .never) == "a")
        #expect(try cache.timeToLive(forKey: "k") == .never)
        expectError(.decoding) { _ = try cache.value(Int.self, forKey: "k", renewing: .seconds(1)) }
        #expect(try cache.timeToLive(forKey: "k") == .milliseconds(1_000))
        #expect(try cache.touch("k", policy: .until(millisecondsSince1970: 1)))
        #expect(try cache.timeToLive(forKey: "k") == nil)
        expectError(.invalidArgument) { try cache.touch("k", policy: .after(.zero)) }
    }

    @Test func removeValueReturnsTheRemovedValue() throws {
        try cache.set(Reader("a"), forKey: "k")
        #expect(try cache.removeValue(Reader.self, forKey: "k") == Reader("a"))
        #expect(try cache.removeValue(Reader.self, forKey: "k") == nil)
        try cache.set("text", forKey: "k")
        expectError(.decoding) { _ = try cache.removeValue(Reader.self, forKey: "k") }
        #expect(try !cache.contains("k"))
    }

    // MARK: Numbers

    @Test func incrementingANumberKeepsItsLifetime() throws {
        #expect(try cache.increment("n") == 1)
        #expect(try cache.increment("n", by: -3) == -2)
        #expect(try cache.value(Int.self, forKey: "n") == -2)
        #expect(try cache.bytes(forKey: "n") == Array("-2".utf8))
        try cache.set(41, forKey: "n", policy: .seconds(10))
        work.time.advance(milliseconds: 1_000)
        #expect(try cache.increment("n") == 42)
        #expect(try cache.info(forKey: "n")?.timeToLive == .seconds(9))
        #expect(try cache.info(forKey: "n")?.age == .zero)
        #expect(try cache.increment("n", by: 0.5) == 42.5)
        #expect(try cache.value(Double.self, forKey: "n") == 42.5)
        expectError(.decoding) { try cache.increment("n") }
        #expect(try cache.increment("n", by: 0.5) == 43)
        #expect(try cache.increment("n") == 44)
        // Clients and shells store numbers as raw text.
        try cache.setBytes(Array("7".utf8), forKey: "raw")
        #expect(try cache.increment("raw") == 8)
        #expect(try cache.info(forKey: "raw")?.codec == .raw)
    }

    @Test func valuesThatAreNotNumbersCannotBeIncremented() throws {
        for text in ["", " 1", "1 ", "+1", "01", "1.5", "0x1", "9223372036854775808", "a"] {
            try cache.setBytes(Array(text.utf8), forKey: "n")
            expectError(.decoding) { try cache.increment("n") }
            #expect(try cache.bytes(forKey: "n") == Array(text.utf8))
        }
        for text in ["", "nan", "inf", "0x1p3", "1e999", "a"] {
            try cache.setBytes(Array(text.utf8), forKey: "n")
            expectError(.decoding) { try cache.increment("n", by: 0.5) }
        }
        try cache.set(Int.max, forKey: "n")
        expectError(.invalidArgument) { try cache.increment("n") }
        #expect(try cache.value(Int.self, forKey: "n") == .max)
        try cache.set(1e308, forKey: "n")
        expectError(.invalidArgument) { try cache.increment("n", by: 1e308) }
    }

    // MARK: Updating

    @Test func anUpdateChangesTheStoredValueAndKeepsItsDeadline() throws {
        let first = try cache.update([String].self, forKey: "k") { list -> Int in
            #expect(list == nil)
            list = ["a"]
            return 1
        }
        #expect(first == 1)
        try cache.touch("k", policy: .seconds(10))
        try cache.update([String].self, forKey: "k") { $0?.append("b") }
        #expect(try cache.value(forKey: "k") == ["a", "b"])
        #expect(try cache.info(forKey: "k")?.timeToLive == .seconds(10))
        try cache.update([String].self, forKey: "k", policy: .never) { $0?.append("c") }
        #expect(try cache.info(forKey: "k")?.rule == .ownNever)
        struct Halt: Error {}
        #expect(throws: Halt.self) {
            try cache.update([String].self, forKey: "k") { list in
                list = nil
                throw Halt()
            }
        }
        #expect(try cache.value([String].self, forKey: "k")?.count == 3)
        try cache.update([String].self, forKey: "k") { $0 = nil }
        #expect(try !cache.contains("k"))
    }

    @Test("an update keeps an entry's own deadline, and restarts a lifetime that follows the policy")
    func updatesKeepTheRule() throws {
        try cache.setPolicy(.high)
        try cache.set(1, forKey: "governed")
        try cache.set(1, forKey: "own", policy: .seconds(60))
        work.time.advance(milliseconds: 20_000)
        for key in ["governed", "own"] { try cache.update(Int.self, forKey: key) { $0? += 1 } }
        #expect(try cache.info(forKey: "governed")?.timeToLive == .seconds(60))
        #expect(try cache.info(forKey: "own")?.timeToLive == .seconds(40))
        for key in ["governed", "own"] { #expect(try cache.info(forKey: key)?.age == .zero) }
    }

    /// A concurrent write is not overwritten: the closure runs again with the new value.
    @Test func anUpdateNeverOverwritesAConcurrentChange() throws {
        try cache.set(1, forKey: "k")
        var seen: [Int?] = []
        try cache.update(Int.self, forKey: "k") { number in
            seen.append(number)
            if seen.count == 1 { try cache.set(10, forKey: "k") }
            if seen.count == 2 { try cache.remove("k") }
            number = (number ?? 100) + 1
        }
        #expect(seen == [1, 10, nil])
        #expect(try cache.value(Int.self, forKey: "k") == 101)
        var runs = 0
        expectError(.conflict) {
            try cache.update(Int.self, forKey: "k", attempts: 3) { number in
                runs += 1
                WorkThread(name: "test") { [cache] in _ = try? cache.increment("k") }.join()
                number = 0
            }
        }
        #expect(runs == 3)
        expectError(.invalidArgument) { try cache.update(Int.self, forKey: "k", attempts: 0) { $0 = 1 } }
        #expect(try cache.value(Int.self, forKey: "k") == 104)
    }

    @Test("an update whose closure stores its own key again and again throws in the second attempt")
    func updatesThatStoreTheirOwnKeyAreRefused() throws {
        var runs = 0
        let text = expectError(.recursion) {
            try cache.update(Int.self, forKey: "k") { number in
                runs += 1
                try cache.set(runs, forKey: "k")
                try cache.update(Int.self, forKey: "other") { $0 = 1 }
                number = 0
            }
        }
        #expect(runs == 2 && text.contains("change the model that the closure gets instead"))
        // Calls that do not store it are no reason for the conflicts with others.
        runs = 0
        try cache.update(Int.self, forKey: "k", attempts: 4) { number in
            runs += 1
            try #expect(!cache.setIfAbsent(0, forKey: "k") && !cache.replace(-5, with: 4, forKey: "k"))
            let other = 100 * runs
            if runs < 4 { WorkThread(name: "test") { [cache] in try? cache.set(other, forKey: "k") }.join() }
            number = (number ?? 0) + 1
        }
        #expect(try runs == 4 && cache.value(Int.self, forKey: "k") == 301)
        for way in 0..<3 {
            runs = 0
            expectError(.recursion) {
                try cache.update(Int.self, forKey: "k") { number in
                    runs += 1
                    if way == 0 { try cache.increment("k") }
                    if way == 1 { try cache.setBytes(Array("\(runs)".utf8), forKey: "k") }
                    if way == 2 { try cache.set(["k": 1000 + runs]) }
                    number = 0
                }
            }
            #expect(runs == 2, "way \(way)")
        }
        // Conflicts of which only some are its own are repeated.
        runs = 0
        try cache.update(Int.self, forKey: "k") { number in
            runs += 1
            if runs % 2 == 1, runs < 6 { try cache.set(runs, forKey: "k") } else if runs < 6 { try cache.remove("k") }
            number = 0
        }
        #expect(try runs == 6 && cache.value(Int.self, forKey: "k") == 0)
    }

    @Test("an asynchronous update whose closure stores its own key throws in the second attempt")
    func asynchronousUpdatesThatStoreTheirOwnKeyAreRefused() async throws {
        let cache = cache
        var runs = 0
        await #expect {
            try await cache.update(Int.self, forKey: "k") { (number: inout Int?) async throws in
                runs += 1
                try await cache.set(runs, forKey: "k")
                number = 0
            }
        } throws: {
            ($0 as? LarderError)?.code == .recursion
        }
        #expect(runs == 2)
    }

    @Test("an update by the closure of an update of the same key throws at once")
    func recursiveUpdatesAreRefused() throws {
        try cache.set(1, forKey: "k")
        let start = ContinuousClock.now
        expectError(.recursion) {
            try cache.update(Int.self, forKey: "k") { _ in
                try cache.update(Int.self, forKey: "other") { $0 = 1 }
                try cache.update(Int.self, forKey: "k") { $0 = 2 }
            }
        }
        #expect(ContinuousClock.now - start < .seconds(4))
        #expect(try cache.value(Int.self, forKey: "k") == 1)
    }

    @Test("an asynchronous update by the closure of an update of the same key throws at once")
    func recursiveAsynchronousUpdatesAreRefused() async throws {
        let cache = cache
        try await cache.set(1, forKey: "k")
        let start = ContinuousClock.now
        await #expect {
            try await cache.update(Int.self, forKey: "k") { (_: inout Int?) async throws in
                try await cache.update(Int.self, forKey: "k") { $0 = 2 }
            }
        } throws: {
            ($0 as? LarderError)?.code == .recursion
        }
        #expect(ContinuousClock.now - start < .seconds(4))
        #expect(try await cache.value(Int.self, forKey: "k") == 1)
        // A task that the closure has started may update the key after the closure's update.
        let (ended, end) = AsyncStream<Void>.makeStream()
        let task = try await cache.update(Int.self, forKey: "k") { number in
            number = 3
            return Task {
                for await _ in ended {}
                return try await cache.update(Int.self, forKey: "k") { $0? += 1 }
            }
        }
        end.finish()
        try await task.value
        #expect(try await cache.value(Int.self, forKey: "k") == 4)
    }

    @Test("a nil optional is stored, and not a removal")
    func nilOptionalsAreStored() throws {
        try cache.set(1, forKey: "k")
        try cache.set(Int?.none, forKey: "k")
        #expect(try cache.contains("k") && cache.bytes(forKey: "k") == Array("null".utf8))
        #expect(try cache.value(Int?.self, forKey: "k") == .some(nil))
    }

    /// Regression test: with a fixed number of attempts, one of a hundred updates failed.
    @Test func updatesOfManyThreadsAllSucceed() throws {
        let cache = cache
        onThreads(8) { _ in
            for _ in 0..<200 {
                #expect(throws: Never.self) {
                    try cache.update(Int.self, forKey: "k") { $0 = ($0 ?? 0) + 1 }
                }
            }
        }
        #expect(try cache.value(Int.self, forKey: "k") == 1600)
    }

    @Test func updatesOfManyTasksAllSucceed() async throws {
        let cache = cache
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<100 {
                group.addTask {
                    for _ in 0..<3 { try await cache.update(Int.self, forKey: "k") { $0 = ($0 ?? 0) + 1 } }
                }
            }
            try await group.waitForAll()
        }
        #expect(try await cache.value(Int.self, forKey: "k") == 300)
    }

    @Test func theErrorOfAnUpdateConflictSuggestsMoreAttempts() throws {
        let text = expectError(.conflict) {
            try cache.update(Int.self, forKey: "k", attempts: 1) { number in
                try cache.increment("k")
                number = 0
            }
        }
        #expect(text.contains("the only attempt") && text.contains("allow more attempts"))
    }

    /// Neither slow closures nor contention make an update fail early. Pauses between attempts grow, with jitter.
    @Test func anUpdateStopsAfterItsTimeLimitOnly() {
        var runs = UpdateAttempts(most: nil, limitMilliseconds: 100, now: 0)
        // A slow closure gets the minimum number of attempts.
        for _ in 1..<UpdateAttempts.fewest { #expect(runs.rest(now: 5_000, random: 0.5) != nil) }
        #expect(runs.rest(now: 5_000, random: 0.5) == nil)
        #expect(runs.count == 64 && runs.conflict.contains("in each of 64 attempts, and nothing"))
        // A fast closure gets attempts until its time is over.
        runs = UpdateAttempts(most: nil, limitMilliseconds: 100, now: 0)
        var rests: [UInt64] = []
        for _ in 0..<1000 { rests.append(runs.rest(now: 99, random: 0.999) ?? 0) }
        #expect(rests.allSatisfy { $0 > 0 && $0 <= 500_000_000 })
        #expect(rests[0] < 50_001 && rests[5] > rests[0] && rests[999] > 490_000_000)
        #expect(runs.rest(now: 99, random: 0) == 0)
        #expect(runs.rest(now: 100, random: 0) == nil)
        // If a number of attempts is specified, it is exact. Without a time limit, the attempts never end.
        runs = UpdateAttempts(most: 2, limitMilliseconds: 0, now: 0)
        #expect(runs.rest(now: 9, random: 0) != nil && runs.rest(now: 9, random: 0) == nil)
        runs = UpdateAttempts(most: nil, limitMilliseconds: nil, now: 0)
        for _ in 0..<100 { #expect(runs.rest(now: .max, random: 0.5) != nil) }
    }

    /// The sum must fit into the type of the call, even if the daemon or another counter could hold it.
    @Test func incrementsMustFitIntoTheIntegerTypeOfTheCall() throws {
        #expect(try cache.increment("u8", by: UInt8(250)) == 250)
        expectError(.invalidArgument) { try cache.increment("u8", by: UInt8(6)) }
        #expect(try cache.value(UInt8.self, forKey: "u8") == 250)
        #expect(try cache.increment("u8", by: 6) == 256)
        expectError(.decoding) { try cache.increment("u8", by: UInt8(1)) }
        #expect(try cache.increment("u64", by: UInt64.max) == .max)
        #expect(try cache.value(UInt64.self, forKey: "u64") == .max)
        #expect(try cache.increment("i32", by: Int32(-7)) == -7)
        #expect(try cache.info(forKey: "i32")?.codec == .json)
        let text = expectError(.invalidArgument) { try cache.increment("i32", by: Int32.min) }
        #expect(text.contains("in the range of Int32"))
    }

    @Test func theErrorForAnInvalidLifetimeNamesTheCall() throws {
        try cache.set(1, forKey: "k")
        let text = expectError(.invalidArgument) { try cache.touch("k", policy: .seconds(0)) }
        #expect(text.hasPrefix("touch in database 'books', key 'k': "))
    }

    @Test func entryPoliciesHaveReadableDescriptions() {
        let shown: [(EntryPolicy, String)] = [
            (.database, "database"), (.keep, "keep"), (.low, "low"), (.never, "never"), (.hours(24), "low"),
            (.seconds(90), "every:90"), (.after(.milliseconds(1_500)), "every:1.500"), (.seconds(0), "every:0.0"),
            (.after(.seconds(-1)), "every:-1.0 seconds"), (.until(millisecondsSince1970: 5), "until:5"),
            (.until(Date(timeIntervalSince1970: .nan)), "until:nan"),
        ]
        for (policy, text) in shown { #expect("\(policy)" == text) }
    }

    /// Regression test: a sum that is too large for a `Double` was stored, although it could not be read.
    @Test func aSumTooLargeForADoubleIsRefused() throws {
        try cache.set(1.7e308, forKey: "d")
        expectError(.invalidArgument) { try cache.increment("d", by: 1.7e308) }
        expectError(.invalidArgument) { try cache.increment("d", by: .infinity) }
        expectError(.invalidArgument) { try cache.increment("d", by: .nan) }
        #expect(try cache.value(Double.self, forKey: "d") == 1.7e308)
        // Every sum can be read back.
        for step in [-1.7e308, .leastNonzeroMagnitude, 1e-7, 0.1, 1e22, -.greatestFiniteMagnitude] {
            let sum = try cache.increment("d", by: step)
            #expect(try cache.value(Double.self, forKey: "d") == sum, "\(step)")
        }
    }

    /// Threads that count by `increment`, `update` and `replace` do not lose each other's changes.
    @Test func concurrentIncrementsAreNeverLost() throws {
        let cache = cache
        try cache.set(0, forKey: "replaced")
        let threads = (0..<4).map { _ in
            WorkThread(name: "counter") {
                for _ in 0..<200 {
                    #expect(throws: Never.self) {
                        try cache.increment("counted")
                        try cache.update(Int.self, forKey: "updated", attempts: .max) { $0 = ($0 ?? 0) + 1 }
                        while true {
                            let number = try cache.value(Int.self, forKey: "replaced") ?? 0
                            if try cache.replace(number, with: number + 1, forKey: "replaced") { break }
                        }
                    }
                }
            }
        }
        for thread in threads { thread.join() }
        #expect(
            try cache.values(Int.self, forKeys: ["counted", "updated", "replaced"]).values.sorted() == [800, 800, 800])
    }

    /// Of several concurrent calls that store a missing entry, one succeeds.
    @Test func oneOfManyConcurrentSetIfAbsentSucceeds() throws {
        let cache = cache
        let count = Guarded(0)
        for round in 0..<50 {
            let threads = (0..<4).map { number in
                WorkThread(name: "first") {
                    if (try? cache.setIfAbsent(number, forKey: "k\(round)")) == true {
                        count.with { $0 += 1 }
                    }
                }
            }
            for thread in threads { thread.join() }
        }
        #expect(count.value == 50)
    }

    // MARK: Keys

    @Test func integersAndUUIDsCanBeKeys() throws {
        let id = UUID()
        try cache.set("int", forKey: 42)
        try cache.set("minus", forKey: -7)
        try cache.set("large", forKey: UInt64.max)
        try cache.set("id", forKey: id)
        #expect(try cache.value(forKey: "42") == "int")
        #expect(try cache.value(forKey: "-7") == "minus")
        #expect(try cache.value(forKey: "18446744073709551615") == "large")
        #expect(try cache.value(forKey: id.uuidString) == "id")
        #expect(try cache.values(String.self, forKeys: [42, -7, 1]) == [42: "int", -7: "minus"])
        #expect(try cache.values(String.self, forKeys: [id]) == [id: "id"])
        enum Page: Int, CacheKey { case first = 1 }
        try cache.set("page", forKey: Page.first)
        #expect(try cache.value(forKey: 1) == "page")
        // An array of bytes is one key, and not a list of keys.
        try cache.setBytes([1], forKey: [0x34, 0x32] as [UInt8])
        #expect(try cache.remove([0x34, 0x32] as [UInt8]) == true)
        #expect(try cache.remove([42, -7, 1]) == 2)
    }

    @Test func lifetimesCanBeGivenInSecondsMinutesHoursAndDays() throws {
        let lifetimes: [(EntryPolicy, Duration)] = [
            (.after(.milliseconds(1_500)), .milliseconds(1_500)), (.seconds(1.5), .milliseconds(1_500)),
            (.minutes(2), .seconds(120)), (.hours(24), .seconds(86_400)), (.days(7), .seconds(604_800)),
            (.after(.seconds(9_000_000_000)), .seconds(9_000_000_000)),
        ]
        for (policy, expected) in lifetimes {
            try cache.set(1, forKey: "k", policy: policy)
            #expect(try cache.info(forKey: "k")?.timeToLive == expected)
        }
        #expect(try cache.info(forKey: "k")?.databasePolicy == .high)
    }
}
