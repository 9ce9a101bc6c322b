import LarderClient
import LarderFetching
import LarderTestSupport
import Testing

/// Tests of read-through calls via larderd. Two clients represent two processes.
@Suite(.timeLimit(.minutes(10))) struct RemoteFetchingTests {
    let daemon: DaemonProcess
    let origin = TestOrigin()

    init() throws { daemon = try DaemonProcess() }

    private func connect(_ change: (inout ClientOptions) -> Void = { _ in }) async throws -> RemoteCache<Int> {
        var options = ClientOptions(database: "books")
        change(&options)
        return try await LarderClient.connect(socketPath: daemon.socketPath, options: options).cache(of: Int.self)
    }

    private func value(_ cache: RemoteCache<Int>, _ key: String = "k", _ options: FetchOptions = FetchOptions())
        async throws -> Int
    {
        var options = options
        // Use a long back-off, so that it does not end during the test, however slow the test is.
        if options.backOff == FetchOptions().backOff { options.backOff = .seconds(3600) }
        return try await cache.value(forKey: key, options: options) { [origin] in try await origin.value() }
    }

    /// Stores an entry, and waits until it is stale.
    private func storeStale(_ value: Int, _ cache: RemoteCache<Int>) async throws {
        try await cache.set(value, forKey: "k", policy: .after(.milliseconds(1)).grace(.seconds(600)))
        while try await cache.value(forKey: "k") != nil { nap() }
    }

    @Test func onlyOneCallerOfAllProcessesFetches() async throws {
        let caches = [
            try await connect(), try await connect(), try await connect { $0.nearCache = NearCacheOptions() },
        ]
        origin.hold()
        let origin = origin
        let tasks = (0..<60).map { index in
            Task { try await caches[index % 3].value(forKey: "k") { try await origin.value() } }
        }
        await origin.waitUntil(calls: 1)
        origin.letGo()
        for task in tasks { #expect(try await task.value == 1) }
        #expect(origin.calls == 1)
        for cache in caches { #expect(try await value(cache) == 1) }
        #expect(origin.calls == 1)
    }

    @Test func fetchClosuresMayHaveSeveralStatements() async throws {
        let cache = try await connect()
        let origin = origin
        let first = try await cache.value(forKey: "a") {
            let value = try await origin.value()
            return value
        }
        #expect(first == 1)
        let second = try? await cache.value(forKey: "a") { try await origin.value() }
        #expect(second == 1)
        let absent = try await cache.value(forKey: "b") {
            _ = try await origin.value()
            return nil
        }
        #expect(absent == nil)
        let client = try BlockingLarderClient(socketPath: daemon.socketPath, database: "books")
        let inferred: Int? = try client.value(forKey: "c") { nil }
        #expect(inferred == nil)
        let again: Int? = try client.value(forKey: "c") { 7 }
        #expect(again == nil, "the absence is remembered")
    }

    @Test func aDisconnectedFetcherHandsItsLeaseToAWaiter() async throws {
        let client = try await LarderClient.connect(
            socketPath: daemon.socketPath, options: ClientOptions(database: "books"))
        let (first, second) = (client.cache(of: Int.self), try await connect())
        let other = TestOrigin()
        origin.hold()
        other.hold()
        let origin = origin
        let lost = Task { try await first.value(forKey: "k") { try await origin.value() } }
        await origin.waitUntil(calls: 1)
        let waiting = Task { try await second.value(forKey: "k") { try await other.value() + 100 } }
        client.close()
        await other.waitUntil(calls: 1)
        other.letGo()
        #expect(try await waiting.value == 101)
        origin.letGo()
        await #expect(throws: (any Error).self) { try await lost.value }
        #expect(try await value(second) == 101)
    }

    /// Regression test: a value stored in the same millisecond as the request was accepted as newer than the request.
    @Test func originOnlyAlwaysFetches() async throws {
        let (cache, blocking) = (
            try await connect(), try BlockingLarderClient(socketPath: daemon.socketPath, database: "books")
        )
        for round in 1...50 {
            try await cache.set(-1, forKey: "k")
            #expect(try await value(cache, "k", FetchOptions(.originOnly)) == round)
            try blocking.set(-1, forKey: "k")
            let options = FetchOptions(round.isMultiple(of: 2) ? .originElseCache : .originOnly)
            #expect(try blocking.value(Int.self, forKey: "k", options: options) { -round } == -round)
        }
        #expect(origin.calls == 50)
    }

    /// The value is newer than the waiter's request, because the other caller fetched it while the waiter waited.
    @Test("a waiter with .originOnly gets the value that another caller fetches")
    func originOnlyReturnsTheValueOfAConcurrentFetch() throws {
        let clients = try (0..<3).map { _ in
            try BlockingLarderClient(socketPath: daemon.socketPath, database: "books")
        }
        let seen = Guarded([0, 0])
        @Sendable func waitUntil(_ line: String) throws {
            while !(try clients[2].serverInfo()).contains("\n\(line)\r\n") { nap() }
        }
        @Sendable func fetch(_ index: Int) throws -> Int {
            if index == 1 { try waitUntil("leases:1") }
            return try clients[index].value(Int.self, forKey: "k", options: FetchOptions(.originOnly)) {
                if index == 0 { try waitUntil("lease_waiters:1") }
                return index + 1
            }
        }
        try clients[0].set(-1, forKey: "k")
        onThreads(2) { index in
            let value = try? fetch(index)
            seen.with { $0[index] = value ?? -1 }
        }
        #expect(seen.value == [1, 1])
    }

    /// Regression test: each key took its own round trips for the lookup and for storing the value.
    @Test func manyKeysTakeOneRoundTripToReadAndOneToStore() async throws {
        let counts = Guarded([String: Int]())
        let server = try FakeServer { request in
            /// Answers the requests of all three keys together, when the last one has arrived.
            func together(_ name: String, _ reply: String) -> FakeServer.Answer {
                let count = counts.with { counts in
                    counts[name, default: 0] += 1
                    return counts[name] ?? 0
                }
                return count % 3 == 0 ? .text(String(repeating: reply, count: 3)) : .nothing
            }
            switch request.name {
            case "HELLO", "SELECT": return .standard
            case "MGET": return .text("*3\r\n$-1\r\n$-1\r\n$-1\r\n")
            case "FETCH": return together("ask", "*6\r\n$4\r\nlead\r\n$-1\r\n$1\r\n7\r\n$-1\r\n:-1\r\n:0\r\n")
            case "SET", "RELEASE": return together("end", "+OK\r\n")
            default: return .text("+OK\r\n")
            }
        }
        defer { server.stop() }
        let client = try await LarderClient.connect(socketPath: server.path)
        let found = try await client.cache(of: Int.self).values(forKeys: ["a", "b", "c"]) { keys in
            #expect(keys == ["a", "b", "c"])
            return ["a": 1, "c": 3]
        }
        #expect(found == ["a": 1, "c": 3])
        #expect(server.requests.filter { $0 == ["RELEASE", "b", "7", "ABSENT", "10000"] }.count == 1)
        client.close()
        let blocking = try BlockingLarderClient(socketPath: server.path)
        #expect(try blocking.values(Int.self, forKeys: ["a", "b", "c"]) { _ in ["a": 1, "c": 3] } == found)
        #expect(server.requests.filter { $0 == ["RELEASE", "b", "7", "ABSENT", "10000"] }.count == 2)
    }

    @Test func aFailureOfOneKeyDoesNotAffectTheOthers() async throws {
        let (cache, other) = (try await connect(), try await connect())
        let load: @Sendable ([String]) async throws -> [String: Int] = { keys in
            Dictionary(uniqueKeysWithValues: keys.map { ($0, 1) })
        }
        // The key "b" is in its back-off, so the call for all keys throws. It must not keep any lease.
        await #expect(throws: TestOrigin.Failure.self) {
            try await other.value(forKey: "b") { () -> Int in throw TestOrigin.Failure() }
        }
        let error = await #expect(throws: FetchError.self) {
            try await cache.values(forKeys: ["a", "b", "c"], fetch: load)
        }
        #expect(error?.code == .originRests && error?.key == "b")
        #expect(try await other.values(forKeys: ["a", "c"], fetch: load) == ["a": 1, "c": 1])
        // The key "e" is removed while it is being fetched, so its value is returned but not stored.
        let found = try await cache.values(forKeys: ["d", "e", "f"]) { keys in
            try await other.remove("e")
            return try await load(keys)
        }
        #expect(found.count == 3)
        #expect(try await other.values(forKeys: ["d", "e", "f"]) == ["d": 1, "f": 1])
    }

    @Test func aWriteDuringAFetchIsNotOverwritten() async throws {
        let (first, second) = (try await connect(), try await connect())
        origin.hold()
        let origin = origin
        let task = Task { try await first.value(forKey: "k") { try await origin.value() } }
        await origin.waitUntil(calls: 1)
        try await second.set(77, forKey: "k")
        origin.letGo()
        #expect(try await task.value == 1)
        #expect(try await first.value(forKey: "k") == 77)
    }

    @Test func aStaleValueIsServedWhileItIsRefreshed() async throws {
        let (first, second) = (try await connect(), try await connect())
        try await storeStale(50, first)
        origin.hold()
        #expect(try await value(first) == 50)
        for _ in 0..<10 {
            #expect(try await value(first) == 50)
            #expect(try await value(second) == 50)
        }
        await origin.waitUntil(calls: 1)
        origin.letGo()
        while try await second.value(forKey: "k") != 1 { nap() }
        #expect(try await value(second) == 1)
        #expect(origin.calls == 1)
    }

    @Test func aFailedFetchThrowsOrReturnsAStaleValue() async throws {
        let notified = Recorder<String>()
        let cache = try await connect {
            $0.onEvent = { event in
                guard event.level == .warning, let key = event.metadata["key"] else { return }
                notified.add("\(event.metadata["database"] ?? "") \(key) \(event.error is TestOrigin.Failure)")
            }
        }
        origin.fails = true
        await #expect(throws: TestOrigin.Failure.self) { try await value(cache, "none") }
        // In the process whose closure failed, callers get the closure's error; in other processes, `originRests`.
        await #expect(throws: TestOrigin.Failure.self) { try await value(cache, "none") }
        await #expect(throws: TestOrigin.Failure.self) { try await value(cache, "none", FetchOptions(.originOnly)) }
        let other = try await connect()
        let error = await #expect(throws: FetchError.self) { try await value(other, "none") }
        #expect(error?.code == .originRests && error?.database == "books" && error?.key == "none")
        try await storeStale(50, cache)
        #expect(try await value(cache) == 50)
        await eventually { notified.all == ["books k true"] }
        var options = FetchOptions()
        options.softTimeout = nil
        #expect(try await value(cache, "k", options) == 50)
        #expect(origin.calls == 2)
    }

    @Test func aCancelledCallerDoesNotCancelTheSharedFetch() async throws {
        let cache = try await connect()
        let origin = origin
        origin.hold()
        let tasks = (0..<2).map { _ in Task { try await cache.value(forKey: "common") { try await origin.value() } } }
        await origin.waitUntil(calls: 1)
        await eventually { FlightTable.shared.callerCount(forKey: Array("common".utf8), Int.self) == 2 }
        tasks[0].cancel()
        let error = await #expect(throws: LarderClientError.self) { try await tasks[0].value }
        #expect(error?.code == .cancelled)
        origin.letGo()
        #expect(try await tasks[1].value == 1)
        #expect(origin.cancellations == 0)
        // When all callers of a fetch were cancelled, the next caller gets the lease at once.
        origin.hold()
        let alone = Task { try await cache.value(forKey: "other") { try await origin.value() } }
        await origin.waitUntil(calls: 2)
        alone.cancel()
        await #expect(throws: LarderClientError.self) { try await alone.value }
        await eventually { origin.cancellations == 1 }
        origin.letGo()
        #expect(try await value(try await connect(), "other") == 3)
    }

    @Test func theSourcesBehaveAsInTheLibrary() async throws {
        let cache = try await connect()
        let missing = await #expect(throws: FetchError.self) { try await value(cache, "k", FetchOptions(.cacheOnly)) }
        #expect(missing?.code == .notCached)
        #expect(try await value(cache, "k", FetchOptions(.ignoreCache)) == 1)
        #expect(try await cache.value(forKey: "k") == nil)
        #expect(try await value(cache, "k", FetchOptions(.originOnly)) == 2)
        #expect(try await value(cache, "k", FetchOptions(.cacheOnly)) == 2)
        // Wait until the entry's age is not 0. (The protocol reports ages in whole milliseconds.)
        while try await cache.info(forKey: "k")?.age == .zero { nap() }
        let young = FetchOptions(.cacheOnly, maximumAge: .seconds(3_600))
        #expect(try await value(cache, "k", young) == 2)
        origin.fails = true
        #expect(try await value(cache, "k", FetchOptions(.originElseCache)) == 2)
        await #expect(throws: TestOrigin.Failure.self) { try await value(cache, "k", FetchOptions(.originOnly)) }
        #expect(origin.calls == 3, "it rests")
    }

    @Test func anAbsentResultIsCachedForAllClients() async throws {
        let (first, second) = (try await connect(), try await connect())
        let asked = Recorder<Int>()
        var options = FetchOptions()
        options.absent = .seconds(3600)
        for cache in [first, second, first] {
            let value = try await cache.value(forKey: "k", options: options) { () -> Int? in
                asked.add(1)
                return nil
            }
            #expect(value == nil)
        }
        #expect(asked.count == 1)
        let error = await #expect(throws: FetchError.self) { try await value(second) }
        #expect(error?.code == .absent)
    }

    @Test func aClosureThatFetchesItsOwnKeyGetsAnError() async throws {
        let cache = try await connect()
        let error = await #expect(throws: FetchError.self) {
            try await cache.value(forKey: "k") { try await cache.value(forKey: "k") { 1 } }
        }
        #expect(error?.code == .recursion)
    }

    @Test func onlyMissingKeysAreFetched() async throws {
        let cache = try await connect()
        try await cache.set(1, forKey: "a")
        let asked = Recorder<[String]>()
        for _ in 0..<2 {
            let found = try await cache.values(forKeys: ["a", "b", "none"]) { keys in
                asked.add(keys)
                return ["b": 2]
            }
            #expect(found == ["a": 1, "b": 2])
        }
        #expect(asked.all == [["b", "none"]])
        while try await cache.info(forKey: "a")?.age == .zero { nap() }
        var values: [Int] = []
        for try await value in cache.cachedThenFetched(forKey: "a", fetch: { 9 }) { values.append(value) }
        #expect(values == [1, 9])
    }

    @Test func withRedisEachProcessFetches() async throws {
        let redis = try RedisProcess()
        let client = try await LarderClient.connect(socketPath: redis.socketPath)
        let cache = client.cache(of: Int.self)
        let origin = origin
        origin.hold()
        let policy = EntryPolicy.hours(1).grace(.seconds(5)).jitter(percent: 50)
        let options = FetchOptions(policy: policy)
        let tasks = (0..<20).map { _ in
            Task { try await cache.value(forKey: "k", options: options) { try await origin.value() } }
        }
        await origin.waitUntil(calls: 1)
        origin.letGo()
        for task in tasks { #expect(try await task.value == 1) }
        #expect(origin.calls == 1)
        let left = try #require(try await cache.timeToLive(forKey: "k")?.duration)
        #expect(left <= .seconds(3_600) && left > .seconds(1_700))
    }

    private struct Book: Codable, Equatable {
        var title: String
    }

    private struct BookWithPages: Codable, Equatable {
        var title: String
        var pages: Int
    }

    @Test(
        "when a model gains a field, calls with a closure replace the entries of the old one", arguments: [false, true])
    func entriesOfAnOlderModelAreReplaced(isNear: Bool) async throws {
        let reported = Recorder<String>()
        var options = ClientOptions(database: "books")
        options.nearCache = isNear ? NearCacheOptions() : nil
        options.onEvent = { event in
            guard event.level == .warning, let key = event.metadata["key"] else { return }
            reported.add("\(event.metadata["database"] ?? "") \(key) \(event.error is LarderClientError)")
        }
        let client = try await LarderClient.connect(socketPath: daemon.socketPath, options: options)
        let (old, cache) = (client.cache(of: Book.self), client.cache(of: BookWithPages.self))
        let blocking = try BlockingLarderClient(socketPath: daemon.socketPath, database: "books")
        let keys = ["a", "b", "c", "d", "e", "f"]
        for key in keys { try await old.set(Book(title: "old"), forKey: key) }
        let new = BookWithPages(title: "new", pages: 3)
        await #expect(throws: LarderClientError.self) { try await cache.value(forKey: "a") }
        #expect(try await cache.value(forKey: "a") { new } == new)
        let found = try await cache.values(forKeys: ["a", "b"]) { missing in
            #expect(missing == ["b"])
            return ["b": new]
        }
        #expect(found == ["a": new, "b": new])
        try await cache.update(forKey: "c") { book in
            #expect(book == nil)
            book = new
        }
        #expect(reported.all == ["books a true", "books b true", "books c true"])
        let asked = try blocking.value(BookWithPages.self, forKey: "d") { new }
        let many = try blocking.values(BookWithPages.self, forKeys: ["d", "e"]) { missing in
            #expect(missing == ["e"])
            return ["e": new]
        }
        #expect(asked == new && many == ["d": new, "e": new])
        try blocking.update(BookWithPages.self, forKey: "f") { book in
            #expect(book == nil)
            book = new
        }
        #expect(try await cache.values(forKeys: keys).count == 6)
    }

    @Test("an update keeps an entry's own deadline, and restarts a lifetime that follows the policy")
    func updatesKeepTheDeadlineRule() async throws {
        let cache = try await connect()
        let blocking = try BlockingLarderClient(socketPath: daemon.socketPath, database: "books")
        try await cache.set(0, forKey: "governed")
        try await cache.set(0, forKey: "own", policy: .hours(1))
        for (key, isOwn) in [("governed", false), ("own", true)] {
            for isBlocking in [false, true] {
                let before = try #require(try await cache.info(forKey: key))
                // Wait until the entry's age is not 0. (The protocol reports ages in whole milliseconds.)
                while try await cache.info(forKey: key)?.age == .zero { nap() }
                if isBlocking {
                    try blocking.update(Int.self, forKey: key) { $0? += 1 }
                } else {
                    try await cache.update(forKey: key) { $0? += 1 }
                }
                let after = try #require(try await cache.info(forKey: key))
                #expect(after.rule == before.rule)
                #expect(after.storedAtMilliseconds > before.storedAtMilliseconds)
                #expect((after.deadlineMilliseconds == before.deadlineMilliseconds) == isOwn)
            }
        }
    }

    // MARK: Blocking

    @Test func aBlockingClientCanFetch() throws {
        let client = try BlockingLarderClient(socketPath: daemon.socketPath, database: "books")
        let calls = Guarded(0)
        func value(_ options: FetchOptions = FetchOptions(), fails: Bool = false) throws -> Int {
            try client.value(Int.self, forKey: "k", options: options) { () throws -> Int in
                calls.with { $0 += 1 }
                if fails { throw TestOrigin.Failure() }
                return calls.value
            }
        }
        /// Waits until the entry's age is not 0. (The protocol reports ages in whole milliseconds.)
        func grow() throws { while try client.info(forKey: "k")?.age == .zero {} }
        #expect(try value() == 1)
        #expect(try value() == 1)
        try grow()
        #expect(try value(FetchOptions(.originOnly)) == 2)
        try grow()
        #expect(try value(FetchOptions(.originElseCache), fails: true) == 2)
        #expect(try value(FetchOptions(.cacheOnly)) == 2)
        #expect(try value(FetchOptions(.ignoreCache)) == 4)
        let none = try client.value(Int.self, forKey: "none") { () -> Int? in nil }
        #expect(none == nil)
        #expect(throws: FetchError.self) { try client.value(Int.self, forKey: "none") { 1 } }
        #expect(throws: FetchError.self) {
            try client.value(Int.self, forKey: "x") { try client.value(Int.self, forKey: "x") { 1 } }
        }
        let found = try client.values(Int.self, forKeys: ["k", "b"]) { keys in
            Dictionary(uniqueKeysWithValues: keys.map { ($0, 7) })
        }
        #expect(found == ["k": 2, "b": 7])
    }

    @Test func onlyOneOfManyBlockingClientsFetches() throws {
        let path = daemon.socketPath
        let calls = Guarded(0)
        let gate = Gate(isClosed: true)
        let clients = try (0..<4).map { _ in try BlockingLarderClient(socketPath: path, database: "books") }
        let values = Recorder<Int>()
        onThreads(5) { index in
            // The last thread opens the gate when another one is fetching. Threads that call later find the value.
            if index == 4 {
                gate.waitUntil(waiting: 1)
                return gate.open()
            }
            let value = try? clients[index].value(Int.self, forKey: "k") {
                calls.with { $0 += 1 }
                gate.pass()
                return 42
            }
            if let value { values.add(value) }
        }
        #expect(values.all == [42, 42, 42, 42])
        #expect(calls.value == 1)
    }
}
