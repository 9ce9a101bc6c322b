import Larder
import LarderFetching
import LarderTestSupport
import Testing

/// Tests of read-through calls, with every source and every state of an entry.
@Suite(.timeLimit(.minutes(10))) struct FetchingTests: Sendable {
    // `nonisolated(unsafe)` is safe here, because only one task at a time creates caches in the workspace.
    nonisolated(unsafe) let work: Workspace
    let origin = TestOrigin()
    let cache: Cache
    let events = Recorder<CacheEvent>()

    init() throws {
        work = try Workspace()
        let events = events
        cache = try work.cache(policy: .high) { options in options.onEvent = { events.add($0) } }
        try cache.setPolicy(.high, grace: .seconds(600))
    }

    private func fetch(_ key: String = "k", _ options: FetchOptions = FetchOptions()) async throws -> Int {
        try await cache.value(Int.self, forKey: key, options: options) { [origin] in try await origin.value() }
    }

    private func fails(_ code: FetchError.Code, _ body: () async throws -> Void) async {
        do {
            try await body()
            Issue.record("nothing was thrown, \(code) was expected")
        } catch let error as FetchError {
            #expect(error.code == code, "\(error)")
            #expect(error.database == "books")
        } catch {
            Issue.record("\(error) was thrown, \(code) was expected")
        }
    }

    /// Runs `body`, which must throw after a short hard timeout. Repeats it until the origin was called, because on a
    /// busy machine, the timeout may be reached earlier. Then waits until the calls of the origin were cancelled.
    private func timesOut(_ body: () async throws -> Void) async {
        let calls = origin.calls
        repeat { await fails(.timeout, body) } while origin.calls == calls && !Task.isCancelled
        await eventually { origin.cancellations == origin.calls }
    }

    /// Advances the time until the entry is stale.
    private func becomeStale() { work.time.advance(milliseconds: 60_000) }

    // MARK: Single flight

    @Test func concurrentCallersShareOneFetch() async throws {
        origin.hold()
        let tasks = (0..<200).map { _ in Task { try await fetch() } }
        await origin.waitUntil(calls: 1)
        origin.letGo()
        for task in tasks { #expect(try await task.value == 1) }
        #expect(origin.calls == 1)
        #expect(try await cache.value(Int.self, forKey: "k") == 1)
        #expect(try await fetch() == 1)
        await eventually { FlightTable.shared.count == 0 }
    }

    @Test func callersWithOtherHandlesAndTypesShareOneFetch() async throws {
        let other = try work.cache(policy: nil)
        let text = Recorder<String>()
        origin.hold()
        let first = Task { try await fetch() }
        await origin.waitUntil(calls: 1)
        let second = Task {
            try await other.value(Double.self, forKey: "k") {
                text.add("asked")
                return 0
            }
        }
        let third = Task { try await other.value(Int.self, forKey: "k") { [origin] in try await origin.value() } }
        origin.letGo()
        #expect(try await first.value == 1)
        #expect(try await second.value == 1)
        #expect(try await third.value == 1)
        #expect(text.isEmpty && origin.calls == 1)
    }

    @Test func anErrorIsThrownToAllWaiters() async throws {
        origin.hold()
        origin.fails = true
        let tasks = (0..<20).map { _ in Task { try await fetch() } }
        await origin.waitUntil(calls: 1)
        origin.letGo()
        for task in tasks {
            do {
                _ = try await task.value
                Issue.record("nothing was thrown")
            } catch { #expect(error is TestOrigin.Failure) }
        }
        #expect(origin.calls == 1)
    }

    @Test("during the back-off of a failed fetch, callers get its error again") func aFailedFetchBacksOff() async throws
    {
        origin.fails = true
        await #expect(throws: TestOrigin.Failure.self) { try await fetch() }
        origin.fails = false
        for source in [FetchSource.cacheElseOrigin, .originElseCache, .originOnly] {
            await #expect(throws: TestOrigin.Failure.self) { try await fetch("k", FetchOptions(source)) }
        }
        await #expect(throws: TestOrigin.Failure.self) {
            try await cache.values(Int.self, forKeys: ["k", "l"]) { _ in ["l": 1] }
        }
        work.time.advance(milliseconds: 4_999)
        await #expect(throws: TestOrigin.Failure.self) { try await fetch() }
        #expect(origin.calls == 1)
        work.time.advance(milliseconds: 1)
        #expect(try await fetch() == 2)
        // Without a back-off the origin is called again at once.
        var options = FetchOptions()
        options.backOff = .zero
        origin.fails = true
        await #expect(throws: TestOrigin.Failure.self) { try await fetch("other", options) }
        await #expect(throws: TestOrigin.Failure.self) { try await fetch("other", options) }
        #expect(origin.calls == 4)
        #expect(try await cache.statistics().originFailures == 1)
    }

    // MARK: Cancellation

    @Test func aCancelledCallerDoesNotCancelTheSharedFetch() async throws {
        origin.hold()
        let tasks = (0..<3).map { _ in Task { try await fetch("shared") } }
        await origin.waitUntil(calls: 1)
        await eventually { FlightTable.shared.callerCount(forKey: Array("shared".utf8), Int.self) == 3 }
        tasks[0].cancel()
        await #expect(throws: CancellationError.self) { try await tasks[0].value }
        #expect(origin.running == 1)
        origin.letGo()
        #expect(try await tasks[1].value == 1)
        #expect(try await tasks[2].value == 1)
        #expect(origin.cancellations == 0)
    }

    @Test func aFetchIsCancelledWhenAllCallersAreCancelled() async throws {
        origin.hold()
        let tasks = (0..<3).map { _ in Task { try await fetch() } }
        await origin.waitUntil(calls: 1)
        for task in tasks { task.cancel() }
        for task in tasks { await #expect(throws: CancellationError.self) { try await task.value } }
        await eventually { origin.cancellations == 1 }
        origin.letGo()
        #expect(try await fetch() == origin.calls)
        #expect(try await cache.statistics().originFailures == 0)
    }

    // MARK: Stale values

    @Test func aStaleValueIsServedAtOnceWhileItIsRefreshed() async throws {
        #expect(try await fetch() == 1)
        becomeStale()
        #expect(try await cache.value(Int.self, forKey: "k") == nil)
        origin.hold()
        for _ in 0..<50 { #expect(try await fetch() == 1) }
        await origin.waitUntil(calls: 2)
        #expect(origin.calls == 2 && origin.running == 1)
        origin.letGo()
        try await eventually { try cache.value(Int.self, forKey: "k") == 2 }
        #expect(try await fetch() == 2)
        #expect(origin.calls == 2)
    }

    @Test func noValueIsServedAfterItsGrace() async throws {
        #expect(try await fetch() == 1)
        work.time.advance(milliseconds: 60_000 + 600_000)
        #expect(try await fetch() == 2)
        // The same holds if a fetch is already running that began when the stale value could still be served.
        becomeStale()
        origin.hold()
        #expect(try await fetch() == 2)
        work.time.advance(milliseconds: 600_000)
        let late = Task { try await fetch() }
        await origin.waitUntil(calls: 4)
        origin.letGo()
        #expect(try await late.value == 4)
    }

    @Test func aStaleValueIsServedIfTheOriginFails() async throws {
        #expect(try await fetch() == 1)
        becomeStale()
        origin.fails = true
        var options = FetchOptions()
        options.softTimeout = nil
        // The call waits for the origin, and returns the cached value if the origin fails.
        #expect(try await fetch("k", options) == 1)
        #expect(origin.calls == 2)
        // The origin is not called during the back-off.
        for _ in 0..<10 { #expect(try await fetch("k", options) == 1) }
        #expect(origin.calls == 2)
        work.time.advance(milliseconds: 5_000)
        origin.fails = false
        #expect(try await fetch("k", options) == 3)
    }

    @Test func aBackgroundFailureIsReportedAndCounted() async throws {
        #expect(try await fetch("with a secret") == 1)
        becomeStale()
        origin.fails = true
        // While the first fetch ends, a call returns the stale value and fetches nothing.
        try await eventually {
            let value = try await fetch("with a secret")
            #expect(value == 1)
            return !events.all.filter { $0.message.contains("in the background failed") }.isEmpty
        }
        let notified = events.all.filter { $0.message.contains("in the background failed") }
        #expect(notified.count == 1 && notified[0].level == .warning)
        #expect(notified.first?.message.contains("with a secret") ?? false)
        #expect(try await cache.statistics().originFailures == 1)
    }

    @Test func aStaleValueIsServedAfterTheSoftTimeout() async throws {
        #expect(try await fetch() == 1)
        becomeStale()
        var options = FetchOptions()
        options.softTimeout = .seconds(3_600)
        #expect(try await fetch("k", options) == 2)
        becomeStale()
        origin.hold()
        options.softTimeout = .milliseconds(5)
        #expect(try await fetch("k", options) == 2)
        // The fetch continues in the background. On a busy machine, it may not have begun yet.
        await eventually { origin.running == 1 }
        origin.letGo()
        try await eventually { try cache.value(Int.self, forKey: "k") == origin.calls }
    }

    @Test func aHardTimeoutEndsTheWaitForTheOrigin() async throws {
        origin.hold()
        var options = FetchOptions()
        options.hardTimeout = .milliseconds(5)
        await timesOut { _ = try await fetch("k", options) }
        // A stale value is served if there is one.
        origin.letGo()
        let value = try await fetch()
        #expect(value == origin.calls)
        becomeStale()
        origin.hold()
        options.softTimeout = nil
        #expect(try await fetch("k", options) == value)
        origin.letGo()
    }

    // MARK: Sources and ages

    @Test func originElseCachePrefersTheOrigin() async throws {
        #expect(try await fetch() == 1)
        let options = FetchOptions(.originElseCache)
        #expect(try await fetch("k", options) == 2)
        #expect(try await cache.value(Int.self, forKey: "k") == 2)
        origin.fails = true
        #expect(try await fetch("k", options) == 2)
        becomeStale()
        #expect(try await fetch("k", options) == 2)
        await #expect(throws: TestOrigin.Failure.self) { try await fetch("none", options) }
    }

    @Test("if the origin fails, a value older than allowed is not returned") func failuresRespectTheAge()
        async throws
    {
        #expect(try await fetch() == 1)
        work.time.advance(milliseconds: 1_000)
        origin.fails = true
        var options = FetchOptions(.cacheElseOrigin, maximumAge: .milliseconds(999))
        for backOff in [Duration.zero, .seconds(5)] {
            options.backOff = backOff
            await #expect(throws: TestOrigin.Failure.self) { try await fetch("k", options) }
        }
        options.maximumAge = .milliseconds(1_000)
        #expect(try await fetch("k", options) == 1)
    }

    @Test func originOnlyNeverUsesTheCache() async throws {
        #expect(try await fetch() == 1)
        #expect(try await fetch("k", FetchOptions(.originOnly)) == 2)
        #expect(try await cache.value(Int.self, forKey: "k") == 2)
        origin.fails = true
        await #expect(throws: TestOrigin.Failure.self) { try await fetch("k", FetchOptions(.originOnly)) }
        #expect(try await cache.value(Int.self, forKey: "k") == 2)
    }

    @Test func cacheOnlyNeverUsesTheOrigin() async throws {
        await fails(.notCached) { _ = try await fetch("k", FetchOptions(.cacheOnly)) }
        try await cache.set(7, forKey: "k")
        #expect(try await fetch("k", FetchOptions(.cacheOnly)) == 7)
        work.time.advance(milliseconds: 1_000)
        let young = FetchOptions(.cacheOnly, maximumAge: .milliseconds(999))
        await fails(.notCached) { _ = try await fetch("k", young) }
        #expect(try await fetch("k", FetchOptions(.cacheOnly, maximumAge: .seconds(1))) == 7)
        becomeStale()
        await fails(.notCached) { _ = try await fetch("k", FetchOptions(.cacheOnly)) }
        #expect(origin.calls == 0)
    }

    @Test func ignoreCacheBypassesTheCache() async throws {
        try await cache.set(7, forKey: "k")
        #expect(try await fetch("k", FetchOptions(.ignoreCache)) == 1)
        #expect(try await fetch("k", FetchOptions(.ignoreCache)) == 2)
        #expect(try await cache.value(Int.self, forKey: "k") == 7)
    }

    @Test func valuesOlderThanTheMaximumAgeAreFetched() async throws {
        try await cache.set(7, forKey: "k")
        work.time.advance(milliseconds: 10_000)
        #expect(try await fetch("k", FetchOptions(maximumAge: .seconds(10))) == 7)
        #expect(try await fetch("k", FetchOptions(maximumAge: .milliseconds(9_999))) == 1)
        #expect(try await cache.value(Int.self, forKey: "k") == 1)
        // If the origin fails, a value that is too old is not returned.
        work.time.advance(milliseconds: 10_000)
        origin.fails = true
        await #expect(throws: TestOrigin.Failure.self) {
            try await fetch("k", FetchOptions(maximumAge: .milliseconds(9_999)))
        }
    }

    @Test func aValueIsStoredWithTheCallsPolicy() async throws {
        let policy = EntryPolicy.hours(1).grace(.seconds(7))
        let options = FetchOptions(policy: policy)
        #expect(try await fetch("k", options) == 1)
        let info = try #require(try await cache.info(forKey: "k"))
        #expect(info.timeToLive == .seconds(3_600) && info.grace == .seconds(7))
    }

    @Test func thePolicyKeepUsesTheLifetimeOfTheStaleEntry() async throws {
        try await cache.set(0, forKey: "k", policy: .seconds(100).grace(.seconds(600)), tags: ["t"])
        var options = FetchOptions(policy: .keep)
        options.softTimeout = nil
        for number in 1...2 {
            work.time.advance(milliseconds: 130_000)
            #expect(try await fetch("k", options) == number)
            let info = try #require(try await cache.info(forKey: "k"))
            #expect(info.timeToLive == .seconds(100))
            #expect(try await cache.tags(forKey: "k") == ["t"])
        }
        // Without an entry there is nothing to keep.
        #expect(try await fetch("new", options) == 3)
        #expect(try await cache.info(forKey: "new")?.timeToLive == .seconds(60))
    }

    @Test func invalidOptionsAreRefused() async throws {
        for change in [
            { $0.maximumAge = .seconds(-1) }, { $0.softTimeout = .seconds(86_401) }, { $0.hardTimeout = .seconds(-1) },
            { $0.backOff = .seconds(-1) }, { $0.absent = .seconds(-1) }, { $0.lease = .zero },
            { $0.policy = .seconds(0) }, { $0.policy = .low.grace(.seconds(-1)) },
        ] as [(inout FetchOptions) -> Void] {
            var options = FetchOptions()
            change(&options)
            await fails(.invalidArgument) { _ = try await fetch("k", options) }
        }
        await #expect(throws: LarderError.self) { try await fetch(String(repeating: "k", count: 65_537)) }
        #expect(origin.calls == 0)
        let closed = try work.cache(policy: nil)
        await closed.close()
        await #expect(throws: LarderError.self) { try await closed.value(forKey: "k") { 1 } }
    }

    // MARK: Missing values

    @Test func theAbsenceOfAValueIsRemembered() async throws {
        let asked = Recorder<Int>()
        func find() async throws -> Int? {
            try await cache.value(Int.self, forKey: "k") { () -> Int? in
                asked.add(1)
                return nil
            }
        }
        #expect(try await find() == nil)
        #expect(try await find() == nil)
        #expect(asked.count == 1)
        await fails(.absent) { _ = try await fetch() }
        work.time.advance(milliseconds: 10_000)
        #expect(try await find() == nil)
        #expect(asked.count == 2)
        // Any write ends the remembered absence.
        try await cache.set(5, forKey: "k")
        #expect(try await find() == 5)
        // If the origin no longer has a value, the entry is removed, even if it is stale.
        becomeStale()
        #expect(try await find() == 5)
        await eventually { asked.count == 3 && FlightTable.shared.count == 0 }
        #expect(try await find() == nil)
        #expect(try cache.storedCount() == 0)
    }

    // MARK: Concurrent writes

    @Test(arguments: ["set", "remove", "removeAll", "prefix"])
    func aFetchDoesNotOverwriteChangesMadeMeanwhile(_ what: String) async throws {
        try await cache.set(0, forKey: "other")
        origin.hold()
        let task = Task { try await fetch() }
        await origin.waitUntil(calls: 1)
        switch what {
        case "set": try await cache.set(77, forKey: "k")
        case "remove": try await cache.remove("k")
        case "prefix": try await cache.remove(prefix: "k")
        default: try await cache.removeAll()
        }
        origin.letGo()
        #expect(try await task.value == 1)
        #expect(try await cache.value(Int.self, forKey: "k") == (what == "set" ? 77 : nil))
    }

    @Test func aFetchLongerThanItsLeaseStoresNothing() async throws {
        origin.hold()
        let slow = Task { try await fetch() }
        await origin.waitUntil(calls: 1)
        work.time.advance(milliseconds: 30_000)
        let other = Task { try await cache.value(Int.self, forKey: "k") { 99 } }
        #expect(try await other.value == 99)
        origin.letGo()
        #expect(try await slow.value == 1)
        #expect(try await cache.value(Int.self, forKey: "k") == 99)
    }

    @Test func fetchingAKeyWithinItsOwnFetchIsARecursionError() async throws {
        await fails(.recursion) {
            _ = try await cache.value(Int.self, forKey: "a") { [cache] in
                try await cache.value(Int.self, forKey: "b") { [cache] in
                    try await cache.value(Int.self, forKey: "a") { 1 }
                }
            }
        }
        // A closure can read cached values.
        try await cache.set(3, forKey: "c")
        let sum = try await cache.value(Int.self, forKey: "d") { [cache] in
            try await cache.value(Int.self, forKey: "c") { 0 } + (try await cache.value(Int.self, forKey: "d") ?? 1)
        }
        #expect(sum == 4)
    }

    @Test func fetchesThatWaitForEachOtherThrowRecursion() async throws {
        let began = Recorder<String>()
        @Sendable func both(_ key: String, _ other: String) async throws -> Int {
            try await cache.value(Int.self, forKey: key) { [cache] in
                began.add(key)
                await eventually { began.count == 2 }
                return try await cache.value(Int.self, forKey: other) { 1 }
            }
        }
        for task in [Task { try await both("a", "b") }, Task { try await both("b", "a") }] {
            await fails(.recursion) { _ = try await task.value }
        }
        // Cycles that include a third key, and calls for several keys, are detected too.
        let all = Recorder<String>()
        @Sendable func next(_ key: String, _ other: String) async throws -> Int? {
            let options = FetchOptions()
            return try await cache.values(Int.self, forKeys: [key], options: options) { [cache] _ in
                all.add(key)
                await eventually { all.count == 3 }
                return [key: try await cache.value(Int.self, forKey: other) { 1 }]
            }[key]
        }
        let tasks = [("x", "y"), ("y", "z"), ("z", "x")].map { pair in Task { try await next(pair.0, pair.1) } }
        var codes: [FetchError.Code] = []
        for task in tasks {
            if case .failure(let error as FetchError) = await task.result { codes.append(error.code) }
        }
        #expect(codes.count == 3 && codes.contains(.recursion), "\(codes)")
    }

    /// Nested fetches that do not wait for each other are not a cycle.
    @Test func closuresMayShareANestedFetch() async throws {
        let began = Recorder<Int>()
        @Sendable func sum(_ key: String) async throws -> Int {
            try await cache.value(Int.self, forKey: key) { [cache, origin] in
                began.add(0)
                return try await cache.value(Int.self, forKey: "part") { try await origin.value() }
            }
        }
        origin.hold()
        let sums = (0..<5).map { number in Task { try await sum("sum:\(number)") } }
        await eventually { began.count == 5 }
        origin.letGo()
        for sum in sums { #expect(try await sum.value == 1) }
        // A stale value is also served to a closure that other callers wait for.
        becomeStale()
        for number in 0..<5 { #expect(try await sum("sum:\(number)") == 1) }
        await eventually { origin.calls == 2 && origin.running == 0 && FlightTable.shared.count == 0 }
    }

    /// A closure that throws CancellationError is not a failure of the origin, so the key does not back off.
    @Test func aClosureThatThrowsCancellationDoesNotCountAsAFailure() async throws {
        for keys in [["a"], ["b", "c"]] {
            await #expect(throws: CancellationError.self) {
                if keys.count == 1 {
                    _ = try await cache.value(Int.self, forKey: keys[0]) { throw CancellationError() }
                } else {
                    _ = try await cache.values(Int.self, forKeys: keys) { _ in throw CancellationError() }
                }
            }
            #expect(try await cache.statistics().originFailures == 0)
            for key in keys { #expect(try await fetch(key) == origin.calls, "there is no back-off") }
        }
    }

    // MARK: Refreshing ahead

    @Test func aValueIsRefreshedShortlyBeforeItExpires() async throws {
        #expect(try await fetch() == 1)
        work.time.advance(milliseconds: 56_999)
        #expect(try await fetch() == 1)
        #expect(origin.calls == 1)
        work.time.advance(milliseconds: 1)
        var options = FetchOptions()
        options.refreshesAhead = false
        #expect(try await fetch("k", options) == 1)
        origin.hold()
        for _ in 0..<20 { #expect(try await fetch() == 1) }
        await origin.waitUntil(calls: 2)
        origin.letGo()
        try await eventually { try cache.value(Int.self, forKey: "k") == 2 }
        #expect(origin.calls == 2)
    }

    @Test func valuesAreRefreshedAheadWithoutDecodedModelsToo() async throws {
        let cache = try await Cache.inMemory(policy: .high, options: work.options { $0.decodedModels = false })
        for _ in 0..<2 { _ = try await cache.value(Int.self, forKey: "k") { [origin] in try await origin.value() } }
        #expect(origin.calls == 1)
        work.time.advance(milliseconds: 57_000)
        let value = try await cache.value(Int.self, forKey: "k") { [origin] in try await origin.value() }
        #expect(value == 1)
        await origin.waitUntil(calls: 2)
    }

    @Test("an entry of another type is fetched again, independent of other reads")
    func anEntryOfAnotherTypeIsFetched() async throws {
        for action in [DecodingFailureAction.throwError, .treatAsMiss, .removeAndMiss] {
            let lenient = try work.cache(policy: nil) { $0.onDecodingFailure = action }
            try await cache.set("text", forKey: "k")
            let value = try await lenient.value(Int.self, forKey: "k") { [origin] in try await origin.value() }
            #expect(value == origin.calls)
            #expect(try await cache.value(Int.self, forKey: "k") == value)
        }
    }

    // MARK: Several keys

    @Test func oneCallFetchesAllMissingKeys() async throws {
        try await cache.set(["a": 1, "b": 2])
        let asked = Recorder<[String]>()
        func find(_ options: FetchOptions = FetchOptions()) async throws -> [String: Int] {
            try await cache.values(Int.self, forKeys: ["a", "x", "b", "y", "x", "none"], options: options) { keys in
                asked.add(keys)
                return ["x": 10, "y": 20, "not asked for": 30]
            }
        }
        #expect(try await find(FetchOptions(.cacheOnly)) == ["a": 1, "b": 2])
        #expect(try await find() == ["a": 1, "b": 2, "x": 10, "y": 20])
        #expect(asked.all == [["x", "y", "none"]])
        #expect(try await find() == ["a": 1, "b": 2, "x": 10, "y": 20])
        #expect(asked.count == 1, "the absence is remembered")
        #expect(try await cache.keys() == ["a", "b", "x", "y"])
        // Stale values are served, and fetched with one call in the background.
        becomeStale()
        #expect(try await find() == ["a": 1, "b": 2, "x": 10, "y": 20] || asked.count == 2)
        await eventually { asked.count == 2 }
    }

    @Test func aFetchOfSeveralKeysWaitsForOtherFetches() async throws {
        origin.hold()
        let one = Task { try await fetch("a") }
        await origin.waitUntil(calls: 1)
        let asked = Recorder<[String]>()
        let both = Task {
            try await cache.values(Int.self, forKeys: ["a", "b"]) { keys in
                asked.add(keys)
                return Dictionary(uniqueKeysWithValues: keys.map { ($0, 50) })
            }
        }
        await eventually { asked.count == 1 }
        origin.letGo()
        #expect(try await both.value == ["a": 1, "b": 50])
        #expect(try await one.value == 1)
        #expect(asked.all == [["b"]])
    }

    @Test func aFailureForSeveralKeysIsThrownAndRemembered() async throws {
        origin.fails = true
        for _ in 0..<2 {
            await #expect(throws: (any Error).self) {
                try await cache.values(Int.self, forKeys: ["a", "b"]) { [origin] _ in ["a": try await origin.value()] }
            }
        }
        #expect(origin.calls == 1)
    }

    @Test func staleValuesOfSeveralKeysAreServedAtOnceIfNoneIsMissing() async throws {
        try await cache.set(["a": 1, "b": 2])
        becomeStale()
        func find(_ keys: [String], soft: Duration?) async throws -> [String: Int] {
            var options = FetchOptions()
            options.softTimeout = soft
            return try await cache.values(Int.self, forKeys: keys, options: options) { [origin] keys in
                let number = try await origin.value()
                return Dictionary(uniqueKeysWithValues: keys.map { ($0, 100 * number) })
            }
        }
        origin.hold()
        #expect(try await find(["a", "b"], soft: .zero) == ["a": 1, "b": 2])
        await origin.waitUntil(calls: 1)
        #expect(try await find(["a", "b"], soft: .zero) == ["a": 1, "b": 2], "another caller is fetching")
        origin.letGo()
        try await eventually { try cache.value(Int.self, forKey: "b") == 100 }
        // With a soft timeout, the call first waits for the origin.
        becomeStale()
        #expect(try await find(["a", "b"], soft: .seconds(3_600)) == ["a": 200, "b": 200])
        becomeStale()
        origin.hold()
        #expect(try await find(["a", "b"], soft: .milliseconds(5)) == ["a": 200, "b": 200])
        // The fetch continues in the background. On a busy machine, it may not have begun yet.
        await eventually { origin.running == 1 }
        origin.letGo()
        try await eventually { try cache.value(Int.self, forKey: "b") == 300 }
        #expect(origin.calls == 3)
    }

    @Test func aHardTimeoutLimitsFetchesOfSeveralKeys() async throws {
        origin.hold()
        var options = FetchOptions()
        options.hardTimeout = .milliseconds(5)
        await timesOut {
            _ = try await cache.values(Int.self, forKeys: ["a"], options: options) { [origin] _ in
                ["a": try await origin.value()]
            }
        }
        // The hard timeout also ends the wait for another caller's fetch.
        let calls = origin.calls
        let one = Task { try await fetch("b") }
        await origin.waitUntil(calls: calls + 1)
        await fails(.timeout) { _ = try await cache.values(Int.self, forKeys: ["b"], options: options) { _ in [:] } }
        options.source = .ignoreCache
        await fails(.timeout) { _ = try await fetch("c", options) }
        await fails(.timeout) {
            _ = try await cache.values(Int.self, forKeys: ["c"], options: options) { [origin] _ in
                ["c": try await origin.value()]
            }
        }
        await eventually { origin.cancellations == calls + 2 }
        // If there is a stale value, it is served when the hard timeout is reached.
        origin.letGo()
        #expect(try await one.value == calls + 1)
        try await cache.set(5, forKey: "d")
        becomeStale()
        origin.hold()
        options.source = .cacheElseOrigin
        options.softTimeout = nil
        let found = try await cache.values(Int.self, forKeys: ["d"], options: options) { [origin] _ in
            ["d": try await origin.value()]
        }
        #expect(found == ["d": 5])
        origin.letGo()
    }

    @Test func cancellingAFetchOfSeveralKeysCancelsItsClosure() async throws {
        origin.hold()
        let call = Task {
            try await cache.values(Int.self, forKeys: ["a", "b"]) { [origin] _ in ["a": try await origin.value()] }
        }
        await origin.waitUntil(calls: 1)
        call.cancel()
        await #expect(throws: CancellationError.self) { try await call.value }
        await eventually { origin.cancellations == 1 }
        origin.letGo()
        #expect(try await fetch("a") == 2, "the origin has not failed")
    }

    // MARK: The cached value, then the fetched one

    @Test func cachedThenFetchedReturnsBothValues() async throws {
        func all(_ sequence: FetchSequence<Int>) async throws -> [Int] {
            var values: [Int] = []
            for try await value in sequence { values.append(value) }
            return values
        }
        let sequence = cache.cachedThenFetched(Int.self, forKey: "k") { [origin] in try await origin.value() }
        #expect(try await all(sequence) == [1])
        #expect(try await all(sequence) == [1, 2])
        becomeStale()
        #expect(try await all(sequence) == [2, 3])
        let equal = cache.cachedThenFetched(Int.self, forKey: "k", leavingOutEqual: true) { 3 }
        #expect(try await all(equal) == [3])
        origin.fails = true
        var iterator = sequence.makeAsyncIterator()
        #expect(try await iterator.next() == 3)
        await #expect(throws: TestOrigin.Failure.self) { try await iterator.next() }
    }
}
