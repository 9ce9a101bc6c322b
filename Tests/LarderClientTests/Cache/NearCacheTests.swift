import LarderPlatform
import LarderTestSupport
import Synchronization
import Testing

@testable import LarderClient

/// Tests of the near cache: it answers repeated reads without a round trip, and never returns a value older than the
/// last notification.
@Suite(.timeLimit(.minutes(10))) struct NearCacheTests {
    private static let near = ClientOptions(timeoutMilliseconds: 60_000, nearCache: .init())

    private func statistics(_ client: LarderClient) throws -> NearCacheStatistics {
        try #require(client.nearCacheStatistics())
    }

    /// Waits until the client has received this many notifications.
    private func notified(
        _ count: Int, _ client: LarderClient, sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        try await expectEvent("invalidation number \(count)", sourceLocation: sourceLocation) {
            try statistics(client).invalidations >= count
        }
    }

    private func found<Value: Sendable>(_ near: NearCache, _ type: Value.Type, _ key: some CacheKey) -> Value? {
        if case .value(let value) = near.find(type, NearIdentity(type, .json), key) { value } else { nil }
    }

    // MARK: With a live server

    @Test(arguments: LiveServer.allCases)
    func aNearCacheHitSendsNoRequest(server: LiveServer) async throws {
        try await server.run(Self.near) { client in
            let numbers = client.cache(of: Int.self)
            try await numbers.set(1, forKey: "n", policy: .never)
            for _ in 0..<10 { #expect(try await numbers.value(forKey: "n") == 1) }
            #expect(try await numbers.values(forKeys: ["n"]) == ["n": 1])
            let statistics = try statistics(client)
            #expect(statistics.hits == 10)
            #expect(statistics.misses == 1)
            #expect(statistics.entries == 1)
            #expect(statistics.isLive)
            // A model of another type is read from the daemon again.
            #expect(try await client.cache(of: Double.self).value(forKey: "n") == 1.0)
        }
    }

    @Test(arguments: LiveServer.allCases)
    func changesByOtherClientsInvalidateTheNearCache(server: LiveServer) async throws {
        try await server.run { path in
            let reader = try await LarderClient.connect(socketPath: path, options: Self.near)
            let writer = try await LarderClient.connect(socketPath: path).cache(of: Int.self)
            let numbers = reader.cache(of: Int.self)
            try await writer.set(1, forKey: "n")
            #expect(try await numbers.value(forKey: "n") == 1)
            try await writer.set(2, forKey: "n")
            try await notified(1, reader)
            #expect(try await numbers.value(forKey: "n") == 2)
            try await writer.remove("n")
            try await notified(2, reader)
            #expect(try await numbers.value(forKey: "n") == nil)
            try await writer.set(3, forKey: "n")
            // The near cache had kept the absence of the entry, so the daemon reports this change.
            try await notified(3, reader)
            #expect(try await numbers.value(forKey: "n") == 3)
            _ = try await reader.command("FLUSHALL")
            try await expectEvent("the near cache is empty after FLUSHALL") { try statistics(reader).entries == 0 }
            #expect(try await numbers.value(forKey: "n") == nil)
        }
    }

    @Test(arguments: LiveServer.allCases)
    func aTaskReadsWhatItWrote(server: LiveServer) async throws {
        try await server.run(
            .init(timeoutMilliseconds: 60_000, connections: 3, nearCache: .init())
        ) { client in
            let numbers = client.cache(of: Int.self)
            try await withThrowingTaskGroup(of: Void.self) { group in
                // Other tasks read the same keys all the time, so that reads are running while the keys are written.
                let isOver = Gate(isClosed: true)
                for task in 0..<4 {
                    group.addTask {
                        while !isOver.isOpen {
                            _ = try await numbers.value(forKey: "k\(task)")
                            // Yield, because a read without a round trip does not suspend the task.
                            await Task.yield()
                        }
                    }
                }
                try await withThrowingTaskGroup(of: Void.self) { writers in
                    for task in 0..<4 {
                        writers.addTask {
                            for number in 0..<40 {
                                try await numbers.set(number, forKey: "k\(task)")
                                let read = try await numbers.value(forKey: "k\(task)")
                                #expect(read == number)
                            }
                        }
                    }
                    defer { isOver.open() }
                    try await writers.waitForAll()
                }
                try await group.waitForAll()
            }
        }
    }

    /// Writers on other connections increase the values of keys. Readers never see a value decrease, and see the last
    /// value once all invalidations have arrived.
    @Test(arguments: LiveServer.allCases)
    func readersNeverSeeAnOlderValueAgain(server: LiveServer) async throws {
        try await server.run { path in
            let reader = try await LarderClient.connect(socketPath: path, options: Self.near)
            let numbers = reader.cache(of: Int.self)
            let keys = (0..<5).map { "k\($0)" }
            let isOver = Gate(isClosed: true)
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<4 {
                    group.addTask {
                        var last = [String: Int]()
                        while !isOver.isOpen {
                            for key in keys {
                                let number = try await numbers.value(forKey: key) ?? -1
                                #expect(number >= last[key, default: -1])
                                last[key] = number
                            }
                            await Task.yield()
                        }
                    }
                }
                defer { isOver.open() }
                try await withThrowingTaskGroup(of: Void.self) { writers in
                    for key in keys {
                        writers.addTask {
                            let writer = try await LarderClient.connect(socketPath: path).cache(of: Int.self)
                            for number in 0..<300 { try await writer.set(number, forKey: key) }
                        }
                    }
                    try await writers.waitForAll()
                }
                isOver.open()
                try await group.waitForAll()
            }
            // All writes were acknowledged. The server sends each invalidation at the latest with its next reply.
            for key in keys {
                try await expectEvent("the last value of \(key)") { try await numbers.value(forKey: key) == 299 }
            }
            let statistics = try statistics(reader)
            #expect(statistics.hits > 0 && statistics.invalidations > 0)
        }
    }

    /// Keys read together are kept and invalidated like single ones.
    @Test(arguments: LiveServer.allCases)
    func keysReadTogetherAreCached(server: LiveServer) async throws {
        try await server.run { path in
            let reader = try await LarderClient.connect(socketPath: path, options: Self.near)
            let writer = try await LarderClient.connect(socketPath: path).cache(of: Int.self)
            let numbers = reader.cache(of: Int.self)
            try await writer.set(1, forKey: "a", policy: .never)
            try await writer.set(2, forKey: "b", policy: .high)
            #expect(try await numbers.values(forKeys: ["a", "b", "none", "a"]) == ["a": 1, "b": 2])
            #expect(try statistics(reader).entries == 3)
            #expect(try statistics(reader).hits == 0)
            #expect(try await numbers.values(forKeys: ["none", "a", "b"]) == ["a": 1, "b": 2])
            #expect(try await numbers.value(forKey: "a") == 1)
            #expect(try await numbers.value(forKey: "none") == nil)
            #expect(try statistics(reader).hits == 5)
            try await writer.set(3, forKey: "b")
            try await writer.set(4, forKey: "none")
            try await notified(2, reader)
            #expect(try await numbers.values(forKeys: ["none", "a", "b"]) == ["a": 1, "b": 3, "none": 4])
            #expect(try statistics(reader).hits == 6)
        }
    }

    /// The absence of an entry is kept, for readers of all types, until a client stores the entry with any command.
    @Test(arguments: LiveServer.allCases)
    func absentKeysAreCached(server: LiveServer) async throws {
        try await server.run { path in
            let reader = try await LarderClient.connect(socketPath: path, options: Self.near)
            let writer = try await LarderClient.connect(socketPath: path)
            let numbers = reader.cache(of: Int.self)
            try await writer.cache(of: Int.self).set(7, forKey: "source")
            let ways = [["SET", "n", "7"], ["RENAME", "source", "n"], ["COPY", "n", "m"], ["APPEND", "o", "7"]]
            for (index, way) in ways.enumerated() {
                let key = ["n", "n", "m", "o"][index]
                if index == 1 {
                    _ = try await writer.command(["DEL", "n"])
                    try await notified(2, reader)
                }
                let before = try statistics(reader)
                for _ in 0..<3 { #expect(try await numbers.value(forKey: key) == nil) }
                #expect(try await reader.cache(of: String.self).value(forKey: key) == nil)
                #expect(try statistics(reader).hits == before.hits + 3)
                _ = try await writer.command(way)
                try await notified(before.invalidations + 1, reader)
                #expect(try await numbers.value(forKey: key) == 7, "\(way)")
            }
            // A client's own write replaces a kept absence too.
            #expect(try await numbers.value(forKey: "own") == nil)
            try await numbers.set(9, forKey: "own")
            #expect(try await numbers.value(forKey: "own") == 9)
        }
    }

    // MARK: With a scripted server

    /// Answers like a server with tracking. `handler` may answer any request; otherwise the reply to `GET` is `1`.
    private func server(_ handler: @escaping @Sendable (FakeServer.Request) -> FakeServer.Answer?) throws -> FakeServer
    {
        try FakeServer { request in
            if let answer = handler(request) { return answer }
            return switch request.name {
            case "CLIENT", "SET": .text("+OK\r\n")
            case "GET": .text("$1\r\n1\r\n")
            case "PTTL": .text(":-1\r\n")
            case "PING": .text("+PONG\r\n")
            case "PUSH": .text(">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n+OK\r\n")
            case "PUSHALL": .text(">2\r\n$10\r\ninvalidate\r\n_\r\n+OK\r\n")
            default: .standard
            }
        }
    }

    private func gets(_ server: FakeServer) -> Int { server.requests.count { $0[0] == "GET" } }

    @Test func invalidationsAreHandledBeforeLaterReplies() async throws {
        let server = try server { _ in nil }
        defer { server.stop() }
        let client = try await AsyncClientTests.connect(server, Self.near)
        let numbers = client.cache(of: Int.self)
        for command in ["PUSH", "PUSHALL"] {
            let before = gets(server)
            #expect(try await numbers.value(forKey: "k") == 1)
            #expect(try await numbers.value(forKey: "k") == 1)
            #expect(gets(server) == before + 1)
            try await client.command(command)
            #expect(try await numbers.value(forKey: "k") == 1)
            #expect(gets(server) == before + 2)
            try await client.command("PUSHALL")
        }
    }

    /// An invalidation of the key arrives during a read: directly before the reply to GET, or between the replies to
    /// GET and PTTL. The value is returned, but not cached.
    @Test(arguments: [true, false])
    func aReadInvalidatedInTheMeantimeIsNotCached(isBefore: Bool) async throws {
        let push = ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n"
        let server = try server { request in
            switch request.name {
            case "GET": isBefore ? .text(push + "$1\r\n1\r\n") : nil
            case "PTTL": isBefore ? nil : .text(push + ":-1\r\n")
            default: nil
            }
        }
        defer { server.stop() }
        let client = try await AsyncClientTests.connect(server, Self.near)
        let numbers = client.cache(of: Int.self)
        for round in 1...3 {
            #expect(try await numbers.value(forKey: "k") == 1)
            #expect(gets(server) == round)
        }
        #expect(try statistics(client).entries == 0)
    }

    @Test func aLostConnectionEmptiesTheNearCache() async throws {
        let server = try server { $0.name == "BYE" ? .last([]) : nil }
        defer { server.stop() }
        let client = try await AsyncClientTests.connect(server, Self.near)
        let numbers = client.cache(of: Int.self)
        #expect(try await numbers.value(forKey: "k") == 1)
        #expect(try statistics(client).entries == 1)
        await #expect(throws: LarderClientError.self) { try await client.command("BYE") }
        // When a call reports the loss of the connection, the near cache is already empty.
        #expect(try statistics(client).entries == 0)
        try await expectEvent("another connection that is notified of changes") { try statistics(client).isLive }
        #expect(try await numbers.value(forKey: "k") == 1)
        #expect(gets(server) == 2)
        #expect(server.requests.count { $0 == ["CLIENT", "TRACKING", "ON"] } == 2)
    }

    @Test func aNearCacheNeedsAServerWithTracking() async throws {
        let server = try server { $0.name == "CLIENT" ? .text("-ERR unknown subcommand 'TRACKING'\r\n") : nil }
        defer { server.stop() }
        let error = await #expect(throws: LarderClientError.self) {
            try await AsyncClientTests.connect(server, Self.near)
        }
        #expect(error?.serverText == "ERR unknown subcommand 'TRACKING'")
    }

    @Test func cancelledAndFailedReadsLeaveNoNearCacheEntry() async throws {
        let server = try server { $0.name == "GET" ? .text("$1\r\nx\r\n") : nil }
        defer { server.stop() }
        let client = try await AsyncClientTests.connect(server, Self.near)
        let numbers = client.cache(of: Int.self)
        await #expect(throws: LarderClientError.self) { try await numbers.value(forKey: "k") }
        let task = Task { try await numbers.value(forKey: "k") }
        task.cancel()
        await #expect(throws: LarderClientError.self) { try await task.value }
        #expect(try statistics(client).entries == 0)
        #expect(client.core.own.near?.tokenCount == 0)
    }

    /// The near cache keeps an entry's deadline, and does not serve the entry afterwards, even without a notification.
    @Test func nearCacheEntriesExpireAtTheirDeadline() async throws {
        let options = NearCacheOptions()
        let near = NearCache(options)
        let clock = Atomic<Int64>(1_000)
        near.clock = { clock.load(ordering: .relaxed) }
        near.setLive(true)
        func keep(_ key: String, deadline: Int64) throws {
            let token = try #require(near.begin(key.keyBytes))
            near.keep(token, 7, NearIdentity(Int.self, .json), .json, readAt: 1_000, deadline: deadline, valueBytes: 1)
        }
        try keep("a", deadline: 1_010)
        try keep("b", deadline: .max)
        clock.store(1_009, ordering: .relaxed)
        #expect(found(near, Int.self, "a") == 7)
        clock.store(1_010, ordering: .relaxed)
        #expect(found(near, Int.self, "a") == nil)
        #expect(found(near, Int.self, "b") == 7)
        #expect(near.statistics.entries == 1)
    }

    /// The daemon's reply has the remaining lifetime, which counts from the time before the request was sent.
    @Test func nearCacheEntriesHaveTheDaemonsDeadline() async throws {
        let time = Guarded<Int64>(1_000)
        let server = try server { request in
            guard request.name == "PTTL" else { return nil }
            time.value = 1_500
            return .text(":5000\r\n")
        }
        defer { server.stop() }
        let client = try await AsyncClientTests.connect(server, Self.near)
        client.core.own.near?.clock = { time.value }
        let numbers = client.cache(of: Int.self)
        #expect(try await numbers.value(forKey: "k") == 1)
        time.value = 5_999
        #expect(try await numbers.value(forKey: "k") == 1)
        #expect(gets(server) == 1)
        time.value = 6_000
        #expect(try await numbers.value(forKey: "k") == 1)
        #expect(gets(server) == 2)
    }

    @Test func absencesAreCachedForAMinuteUnlessDisabled() throws {
        for keeps in [true, false] {
            let near = NearCache(.init(keepsAbsences: keeps))
            let clock = Atomic<Int64>(1_000)
            near.clock = { clock.load(ordering: .relaxed) }
            near.setLive(true)
            func isAbsent() -> Bool {
                if case .absent = near.find(Int.self, NearIdentity(Int.self, .json), "a") { true } else { false }
            }
            near.keepAbsence(try #require(near.begin("a".keyBytes)), readAt: 1_000)
            #expect(isAbsent() == keeps)
            clock.store(60_999, ordering: .relaxed)
            #expect(isAbsent() == keeps)
            clock.store(61_000, ordering: .relaxed)
            #expect(!isAbsent())
            // If the key is changed during the read, its absence is not kept.
            let token = try #require(near.begin("a".keyBytes))
            near.invalidate(["a".keyBytes])
            near.keepAbsence(token, readAt: 61_000)
            #expect(!isAbsent())
            #expect(near.tokenCount == 0)
        }
    }

    /// Several keys are read, and one of them changes meanwhile. Only that key is not kept, whenever the push arrives.
    @Test(arguments: ["MGET", "PTTL"])
    func onlyInvalidatedKeysOfAReadAreNotCached(command: String) async throws {
        let push = ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n"
        let server = try server { request in
            let before = request.name == command ? push : ""
            return switch request.name {
            case "MGET": .text(before + "*3\r\n$1\r\n1\r\n$1\r\n2\r\n_\r\n")
            case "PTTL": .text(before + (request.text[1] == "gone" ? ":-2\r\n" : ":-1\r\n"))
            default: nil
            }
        }
        defer { server.stop() }
        let client = try await AsyncClientTests.connect(server, Self.near)
        let numbers = client.cache(of: Int.self)
        #expect(try await numbers.values(forKeys: ["k", "l", "gone"]) == ["k": 1, "l": 2])
        #expect(try statistics(client).entries == 2)
        #expect(client.core.own.near?.tokenCount == 0)
        #expect(try await numbers.value(forKey: "l") == 2)
        #expect(try await numbers.value(forKey: "gone") == nil)
        #expect(gets(server) == 0)
        #expect(try await numbers.value(forKey: "k") == 1)
        #expect(gets(server) == 1)
    }

    @Test func theAgeOfNearCacheEntriesIsLimited() throws {
        let near = NearCache(.init(ageMillisecondsMax: 100))
        let clock = Atomic<Int64>(1_000)
        near.clock = { clock.load(ordering: .relaxed) }
        near.setLive(true)
        let token = try #require(near.begin([1]))
        near.keep(
            token, "x", NearIdentity(String.self, .json), .json, readAt: 1_000, deadline: .max, valueBytes: 1)
        clock.store(1_099, ordering: .relaxed)
        #expect(found(near, String.self, [1] as [UInt8]) == "x")
        clock.store(1_100, ordering: .relaxed)
        #expect(found(near, String.self, [1] as [UInt8]) == nil)
    }
}

/// Compares the near cache's table with a dictionary, and checks that the table stays within its limits.
@Suite struct NearTableTests {
    @Test func theNearCacheReturnsStoredValuesWithinItsLimits() {
        var generator = SeededGenerator(seed: testSeed())
        for (entries, bytes) in [(1, 1 << 20), (7, 1 << 20), (100, 4_000), (1_000, 1 << 30)] {
            var table = NearTable(entriesMax: entries, bytesMax: bytes)
            var model: [[UInt8]: Int] = [:]
            for step in 0..<5_000 {
                let key = Array("key\(Int.random(in: 0..<200, using: &generator))".utf8)
                switch Int.random(in: 0..<100, using: &generator) {
                case 0..<45:
                    table.insert(
                        key, NearBox(step, nil), NearIdentity(Int.self, .json), deadline: .max, valueBytes: step % 90)
                    model[key] = step
                case 45..<55:
                    let wasThere = find(&table, key) != nil
                    #expect(key.withUnsafeBytes { table.remove($0) } == wasThere)
                    model[key] = nil
                    #expect(find(&table, key) == nil)
                case 99 where step % 10 == 0:
                    table.removeAll()
                    model = [:]
                default:
                    // An entry that is found must have the right value. An entry that is missing may have been evicted.
                    if let found = find(&table, key) { #expect(found == model[key]) }
                    if entries >= 200, bytes >= 1 << 30 { #expect(find(&table, key) == model[key]) }
                }
                #expect(table.count <= entries && table.bytes <= bytes)
            }
        }
    }

    private func find(_ table: inout NearTable, _ key: [UInt8]) -> Int? {
        key.withUnsafeBytes { table.find($0, NearIdentity(Int.self, .json), now: { 0 }) }
            .map { unsafeDowncast($0, to: NearBox<Int>.self).value }
    }

    @Test func theNearCacheKeepsEntriesThatAreRead() {
        var table = NearTable(entriesMax: 10, bytesMax: 1 << 20)
        func insert(_ number: Int) {
            table.insert(
                Array("\(number)".utf8), NearBox(number, nil), NearIdentity(Int.self, .json), deadline: .max,
                valueBytes: 1)
        }
        insert(0)
        for number in 1..<100 {
            #expect(find(&table, Array("0".utf8)) == 0)
            insert(number)
        }
        #expect(table.count == 10)
        #expect(table.evictions == 90)
        table.insert(
            Array("0".utf8), NearBox(0, nil), NearIdentity(Int.self, .json), deadline: .max, valueBytes: 1 << 21)
        #expect(find(&table, Array("0".utf8)) == nil, "larger than the table")
        #expect(table.count == 9)
    }

    @Test func theNearCacheStoresKeysOfEveryLength() {
        var table = NearTable(entriesMax: 1_000, bytesMax: 1 << 30)
        for length in 0..<100 {
            table.insert(
                [UInt8](repeating: 7, count: length), NearBox(length, nil), NearIdentity(Int.self, .json),
                deadline: .max,
                valueBytes: 1)
        }
        for length in 0..<100 { #expect(find(&table, [UInt8](repeating: 7, count: length)) == length) }
    }
}
