import LarderClient
import LarderFetching
import LarderTestSupport
import Testing

/// Tests of tags with larderd.
@Suite(.timeLimit(.minutes(10))) struct RemoteTagTests {
    let daemon: DaemonProcess

    init() throws { daemon = try DaemonProcess() }

    private func connect(near: Bool = false) async throws -> RemoteCache<Int> {
        var options = ClientOptions(database: "books")
        options.nearCache = near ? NearCacheOptions() : nil
        return try await LarderClient.connect(socketPath: daemon.socketPath, options: options).cache(of: Int.self)
    }

    /// A purge invalidates its client's near cache at once, and those of other clients when they are notified.
    @Test func aTagPurgeInvalidatesNearCaches() async throws {
        let (near, other, blocking) = (
            try await connect(near: true), try await connect(),
            try BlockingLarderClient(socketPath: daemon.socketPath, database: "books")
        )
        try await other.set(["a": 1, "b": 2, "c": 3], policy: .hours(1).grace(.seconds(60)), tags: ["t"])
        for soft in [false, true] {
            for round in 0..<20 {
                try await other.set(round, forKey: "a", tags: ["t"])
                try await expectEvent("the value \(round)") { try await near.value(forKey: "a") == round }
                try await near.removeAll(tagged: "t", soft: soft)
                #expect(try await near.value(forKey: "a") == nil)
            }
        }
        try await other.set(1, forKey: "a", tags: ["t"])
        try await expectEvent("the value that was stored") { try await near.value(forKey: "a") == 1 }
        try await other.removeAll(tagged: ["none", "t"])
        try await expectEvent("no value, after its tag was purged") { try await near.value(forKey: "a") == nil }
        try await other.set(1, forKey: "a", tags: ["t"])
        try await expectEvent("the value that was stored") { try await near.value(forKey: "a") == 1 }
        try blocking.removeAll(tagged: "t", soft: true)
        try await expectEvent("no value, after its tag was purged") { try await near.value(forKey: "a") == nil }
    }

    @Test func aTransactionCanStoreEntriesWithTags() async throws {
        let cache = try await connect()
        try await cache.transaction(watching: ["k"]) { transaction in
            try transaction.set(1, forKey: "k", tags: ["t", "u"])
            try transaction.setBytes([0x32], forKey: "l", policy: .hours(1), tags: ["u"])
        }
        #expect(try await cache.tags(forKey: "k") == ["t", "u"])
        try await cache.withSnapshot { snapshot in
            try await cache.set(2, forKey: "k")
            #expect(try await snapshot.tags(forKey: "k") == ["t", "u"])
            #expect(try await snapshot.tags(forKey: "none") == nil)
        }
        #expect(try await cache.tags(forKey: "k") == [])
        try await cache.removeAll(tagged: "u")
        #expect(try await cache.values(forKeys: ["k", "l"]) == ["k": 2])
        await #expect(throws: LarderClientError.self) {
            try await cache.transaction(watching: ["k"]) { try $0.set(3, forKey: "k", tags: [""]) }
        }
        #expect(try await cache.value(forKey: "k") == 2)
    }

    @Test func fetchedValuesAreStoredWithTags() async throws {
        let (first, second) = (try await connect(), try await connect())
        let origin = TestOrigin()
        let options = FetchOptions(tags: ["t"])
        #expect(try await first.value(forKey: "k", options: options) { try await origin.value() } == 1)
        #expect(try await second.tags(forKey: "k") == ["t"])
        try await second.removeAll(tagged: "t")
        origin.hold()
        let task = Task { try await first.value(forKey: "k", options: options) { try await origin.value() } }
        await origin.waitUntil(calls: 2)
        // Purge the tag while the fetch is running. The caller gets the fetched value, but it is not stored.
        try await second.removeAll(tagged: "t", soft: true)
        origin.letGo()
        #expect(try await task.value == 2)
        #expect(try await second.value(forKey: "k") == nil)
        let many = try await first.values(forKeys: ["a", "b"], options: options) { keys in
            Dictionary(uniqueKeysWithValues: keys.map { ($0, 7) })
        }
        #expect(many == ["a": 7, "b": 7])
        #expect(try await second.tags(forKey: "b") == ["t"])
        let bad = FetchOptions(tags: ["a\0"])
        let error = await #expect(throws: FetchError.self) {
            _ = try await first.value(forKey: "k", options: bad) { try await origin.value() }
        }
        #expect(error?.code == .invalidArgument && error?.message.contains("NUL") == true)
        #expect(origin.calls == 2)
    }

    @Test func valuesFetchedByABlockingClientAreStoredWithTags() throws {
        let client = try BlockingLarderClient(socketPath: daemon.socketPath, database: "books")
        let options = FetchOptions(tags: ["t"])
        #expect(try client.value(Int.self, forKey: "k", options: options) { 1 } == 1)
        #expect(try client.tags(forKey: "k") == ["t"])
        let other = try BlockingLarderClient(socketPath: daemon.socketPath, database: "books")
        let value: Int = try client.value(Int.self, forKey: "l", options: options) {
            try other.removeAll(tagged: "t")
            return 2
        }
        #expect(value == 2)
        #expect(try client.contains("k") == false)
        #expect(try client.contains("l") == false, "fetched before the removal")
        #expect(try client.values(Int.self, forKeys: ["m"], options: options) { _ in ["m": 3] } == ["m": 3])
        #expect(try client.tags(forKey: "m") == ["t"])
    }
}

/// If the server does not support tags, calls with tags fail before anything is sent. Otherwise a program could rely on
/// tags for later removals, which this server cannot make.
@Suite(.timeLimit(.minutes(10))) struct TagsWithoutLarderdTests {
    private func refused(_ body: () async throws -> Void) async {
        let error = await #expect(throws: LarderClientError.self) { try await body() }
        #expect(error?.code == .invalidArgument && error?.message.contains("does not support tags") == true)
    }

    @Test func tagsAreRefusedWithRedis() async throws {
        try await LiveServer.redis.run { path in
            let client = try await LarderClient.connect(socketPath: path)
            let cache = client.cache(of: Int.self)
            await refused { try await cache.set(1, forKey: "k", tags: ["t"]) }
            await refused { _ = try await cache.setIfAbsent(1, forKey: "k", tags: ["t"]) }
            await refused { try await cache.batch { try $0.set(1, forKey: "k", tags: ["t"]) } }
            await refused { try await cache.set(["k": 1, "l": 2], tags: ["t"]) }
            await refused {
                try await cache.transaction(watching: ["k"]) { try $0.set(1, forKey: "k", tags: ["t"]) }
            }
            await refused { _ = try await cache.value(forKey: "k", options: FetchOptions(tags: ["t"])) { 1 } }
            #expect(try await !cache.contains("k"))
            let blocking = try BlockingLarderClient(socketPath: path)
            await refused { try blocking.set(1, forKey: "k", tags: ["t"]) }
            await refused { try blocking.batch { try $0.set(1, forKey: "k", tags: ["t"]) } }
            #expect(try !blocking.contains("k"))
            client.close()
        }
    }
}
