import Larder
import LarderOrigins
import LarderPlatform
import LarderTestSupport
import Testing

/// Tests of caches of the library in front of Redis servers.
@Suite(.timeLimit(.minutes(10))) struct RedisCacheOriginTests {
    private func front(_ origin: RedisCacheOrigin, grace: Duration = .zero) async throws -> OriginCache {
        let cache = try await Cache.inMemory(policy: .high)
        try await cache.setPolicy(.high, grace: grace)
        let front = OriginCache(cache, origin: origin, options: .patient)
        await eventually { front.receivesChanges }
        return front
    }

    /// Reads a key until its value is `expected` and cached. The first read may not cache the value: the server's
    /// report of the change that stored the value may arrive during the read.
    private func eventuallyCaches(_ key: String, _ expected: String, _ cache: OriginCache) async {
        await eventually {
            guard (try? await cache.value(String.self, forKey: key)) == expected else { return false }
            return (try? await cache.cache.contains(key)) == true
        }
    }

    /// Changes the server's data as another client.
    private func change(_ redis: RedisProcess, _ line: String) throws { _ = try redis.connect().call(line) }

    @Test func readsReturnChangesReportedByTheServer() async throws {
        let redis = try RedisProcess()
        let cache = try await front(RedisCacheOrigin(try OriginAddress("unix://" + redis.socketPath)))
        #expect(try await cache.value(String.self, forKey: "a") == nil)
        try change(redis, "SET a 1 PX 30000")
        // The report of a change takes a moment: several hundred microseconds here.
        await eventuallyCaches("a", "1", cache)
        let left = try #require(try await cache.cache.timeToLive(forKey: "a"))
        guard case .milliseconds(let milliseconds) = left else { return #expect(Bool(false), "\(left)") }
        #expect(milliseconds <= 30_000)
        try change(redis, "SET a 2")
        await eventually { (try? await cache.value(String.self, forKey: "a")) == "2" }
        try change(redis, "SET b 3")
        await eventually { (try? await cache.values(String.self, forKeys: ["a", "b", "c"])) == ["a": "2", "b": "3"] }
    }

    /// Reading entries that did not change causes no requests to the server.
    @Test func cachedEntriesAreNotRequestedAgain() async throws {
        let redis = try RedisProcess()
        let cache = try await front(RedisCacheOrigin(try OriginAddress("unix://" + redis.socketPath)))
        try change(redis, "SET a 1")
        await eventuallyCaches("a", "1", cache)
        try change(redis, "CONFIG RESETSTAT")
        for _ in 0..<100 { #expect(try await cache.value(String.self, forKey: "a") == "1") }
        let calls = try redis.connect().call("INFO commandstats")
        #expect(!calls.contains("cmdstat_get:"))
    }

    /// The keys belong to several servers of the cluster.
    @Test(.enabled(if: RedisCluster.isAvailable)) func cachedEntriesAreNotRequestedAgainInACluster() async throws {
        let cluster = try RedisCluster(primaries: 3)
        let cache = try await front(RedisCacheOrigin(try OriginAddress(cluster.url)))
        let keys = (0..<30).map { "key:\($0)" }
        for key in keys { #expect(try cluster.call(key: key, "SET \(key) v") == "+OK\r\n") }
        await eventually {
            for key in keys { _ = try? await cache.value(String.self, forKey: key) }
            let known = try? await cache.cache.values(String.self, forKeys: keys)
            return known?.count == keys.count
        }
        for node in cluster.nodes { #expect(try cluster.call(node, "CONFIG RESETSTAT") == "+OK\r\n") }
        for key in keys + keys { #expect(try await cache.value(String.self, forKey: key) == "v") }
        for node in cluster.nodes {
            #expect(try !cluster.text(node, ["INFO", "commandstats"]).contains("cmdstat_get:"))
        }
    }

    @Test func writesReachTheServerAndAreReadBack() async throws {
        let redis = try RedisProcess()
        let cache = try await front(RedisCacheOrigin(try OriginAddress("unix://" + redis.socketPath)))
        try await cache.set(["x": 1], forKey: "model", lifetime: .seconds(20))
        #expect(try redis.connect().call("GET model") == "$7\r\n{\"x\":1}\r\n")
        #expect(try await cache.value([String: Int].self, forKey: "model") == ["x": 1])
        // A later change by another client is reported too.
        _ = try redis.connect().call(["SET", "model", #"{"x":2}"#])
        await eventually { (try? await cache.value([String: Int].self, forKey: "model")) == ["x": 2] }
        try await cache.remove("model")
        #expect(try redis.connect().call("EXISTS model") == ":0\r\n")
        #expect(try await cache.value([String: Int].self, forKey: "model") == nil)
    }

    @Test("a value that overwrites another stays cached") func overwritesAreKept() async throws {
        let redis = try RedisProcess()
        let origin = RedisCacheOrigin(try OriginAddress("unix://" + redis.socketPath))
        try await overwritesAreKept(before: origin) { try change(redis, $0) }
    }

    @Test("a value that overwrites another in a larder stays cached") func overwritesInALarderAreKept() async throws {
        let daemon = try DaemonProcess(["--policy", "never"])
        try await overwritesAreKept(before: try RedisCacheOrigin(larderAt: daemon.socketPath)) {
            _ = try daemon.connect().call($0)
        }
    }

    private func overwritesAreKept(
        before origin: RedisCacheOrigin, change: (String) throws -> Void
    ) async throws {
        let cache = try await front(origin)
        await eventually { (try? await cache.value(String.self, forKey: "a")) == .some(nil) }
        // After a client has read a key, the server notifies the client even of its own writes of the key.
        for number in 0..<50 {
            try await cache.set("value \(number)", forKey: "a")
            #expect(try await cache.cache.value(String.self, forKey: "a") == "value \(number)")
        }
        // Reports have arrived when a later write is acknowledged.
        try await cache.set("other", forKey: "b")
        #expect(try await cache.value(String.self, forKey: "a") == "value 49")
        #expect(try await cache.cache.value(String.self, forKey: "a") == "value 49")
        try change("SET a theirs")
        await eventually { (try? await cache.value(String.self, forKey: "a")) == "theirs" }
    }

    @Test("a server that is dead or hangs is not trusted until it answers again", arguments: [true, false])
    func aDeadServerIsNotTrusted(isKilled: Bool) async throws {
        let redis = try RedisProcess()
        let origin = RedisCacheOrigin(try OriginAddress("unix://" + redis.socketPath))
        let cache = try await front(origin)
        await eventually { origin.status().servers.allSatisfy(\.isUp) && !origin.status().servers.isEmpty }
        #expect(cache.receivesChanges)
        if isKilled { redis.kill() } else { redis.freeze() }
        await eventually { !cache.receivesChanges }
        if isKilled { try redis.restart() } else { redis.thaw() }
        await eventually { cache.receivesChanges }
    }

    @Test("a write that does not reach the server leaves the cached entry unchanged")
    func unreachableWritesLeaveTheEntry() async throws {
        let redis = try RedisProcess()
        let cache = try await front(
            RedisCacheOrigin(try OriginAddress("unix://" + redis.socketPath)), grace: .seconds(60))
        try await cache.set("1", forKey: "a")
        #expect(try await cache.value(String.self, forKey: "a") == "1")
        redis.kill()
        await eventually { !cache.receivesChanges }
        await #expect(throws: (any Error).self) { try await cache.set("2", forKey: "a") }
        #expect(try await cache.value(String.self, forKey: "a") == "1")
    }

    @Test func staleValuesAreServedWhileTheServerIsDown() async throws {
        let redis = try RedisProcess()
        let origin = RedisCacheOrigin(try OriginAddress("unix://" + redis.socketPath))
        let cache = try await front(origin, grace: .seconds(60))
        try change(redis, "SET a 1")
        await eventuallyCaches("a", "1", cache)
        redis.kill()
        // The entry is no longer fresh, and is served as a stale entry.
        await eventually {
            guard (try? await cache.value(String.self, forKey: "a")) == "1" else { return false }
            return (try? await cache.cache.contains("a")) == false
        }
        await #expect(throws: (any Error).self) { _ = try await cache.value(String.self, forKey: "b") }
        try redis.restart()
        try change(redis, "SET a 2")
        await eventuallyCaches("a", "2", cache)
    }

    /// The server accepts connections and never answers: only the heartbeat notices it.
    @Test func staleValuesAreServedWhileTheServerHangs() async throws {
        let redis = try RedisProcess()
        let cache = try await front(
            RedisCacheOrigin(try OriginAddress("unix://" + redis.socketPath)), grace: .seconds(60))
        try change(redis, "SET a 1")
        await eventuallyCaches("a", "1", cache)
        redis.freeze()
        var options = OriginCache.standardOptions
        options.softTimeout = .milliseconds(50)
        let impatient = options
        await eventually {
            guard (try? await cache.value(String.self, forKey: "a", options: impatient)) == "1" else { return false }
            return (try? await cache.cache.contains("a")) == false
        }
        redis.thaw()
        await eventuallyCaches("a", "1", cache)
    }

    @Test(.enabled(if: RedisCluster.isAvailable)) func changesInAClusterAreReadBack() async throws {
        let cluster = try RedisCluster(primaries: 3)
        let origin = RedisCacheOrigin(try OriginAddress("redis+cluster://127.0.0.1:\(cluster.servers[0].port)"))
        let cache = try await front(origin)
        let keys = (0..<30).map { "key:\($0)" }
        for key in keys { try await cache.set("first", forKey: key) }
        for key in keys { _ = try cluster.call(key: key, "SET \(key) second") }
        for key in keys { await eventually { (try? await cache.value(String.self, forKey: key)) == "second" } }
        #expect(try await cache.values(String.self, forKeys: keys).count == 30)
    }

    @Test func aLarderCanBeTheOriginOfAnotherLarder() async throws {
        let daemon = try DaemonProcess()
        let cache = try await front(try RedisCacheOrigin(larderAt: daemon.socketPath, database: 3))
        let other = try daemon.connect()
        _ = try other.call("SELECT 3")
        _ = try other.call("SET a 1 EX 30")
        await eventually { (try? await cache.value(String.self, forKey: "a")) == "1" }
        _ = try other.call("SET a 2")
        await eventually { (try? await cache.value(String.self, forKey: "a")) == "2" }
        try await cache.set("3", forKey: "a")
        #expect(try other.call("GET a") == "$1\r\n3\r\n")
    }

    @Test func aNamedDatabaseOfALarderCanBeTheOrigin() async throws {
        let daemon = try DaemonProcess()
        let other = try daemon.connect()
        _ = try other.call("SELECT shop")
        _ = try other.call("SET a 1")
        let cache = try await front(try RedisCacheOrigin(larderAt: daemon.socketPath, database: "shop"))
        await eventually { (try? await cache.value(String.self, forKey: "a")) == "1" }
        #expect(throws: OriginAddress.Failure.self) {
            try RedisCacheOrigin(larderAt: daemon.socketPath, database: "no/name")
        }
    }

    /// The keys are requested in several calls, each with its own time limit.
    @Test func moreKeysThanFitIntoOneRequestCanBeRead() async throws {
        let redis = try RedisProcess()
        let cache = try await front(RedisCacheOrigin(try OriginAddress("unix://" + redis.socketPath)))
        let keys = (0..<9_000).map { "key:\($0)" }
        let there = stride(from: 0, to: 9_000, by: 1_000).map { "key:\($0)" }
        for key in there { try change(redis, "SET \(key) \(key)") }
        let expected = Dictionary(uniqueKeysWithValues: there.map { ($0, $0) })
        #expect(try await cache.values(String.self, forKeys: keys) == expected)
    }

    private struct Price: Codable {
        var cents: Int
    }

    /// The example of docs/Origins.md.
    @Test func theExamplesOfTheOriginsPageCompile() throws {
        func ask() async throws -> Price? {
            let origin = RedisCacheOrigin(try OriginAddress("redis+cluster://10.0.0.5:6379,10.0.0.6:6379"))
            let database = try await Cache(named: "prices", policy: .middle, grace: .seconds(3_600))
            let prices = OriginCache(database, origin: origin)
            let price = try await prices.value(Price.self, forKey: "apple")
            return price
        }
        let page = try String(decoding: Files.read(PackageRoot.path + "/docs/Origins.md"), as: UTF8.self)
        let source = try String(decoding: Files.read("\(#filePath)"), as: UTF8.self)
        let blocks = page.split(separator: "```swift\n").dropFirst().compactMap { $0.split(separator: "```").first }
        #expect(blocks.count == 2)
        for line in blocks.joined().split(separator: "\n") {
            #expect(source.contains(line), "nothing compiles this: \(line)")
        }
    }

    private struct Shop {
        func price(of key: String) async throws -> Price? { nil }
    }

    /// The second example of docs/Origins.md.
    private func otherOrigins(_ cache: Cache, _ shop: Shop) async throws -> [Any?] {
        let web = ClosureOrigin("prices", of: Price.self, lifetime: .seconds(60)) { key in
            try await shop.price(of: key)
        }
        let redis = RedisCacheOrigin(try OriginAddress("redis+cluster://10.0.0.5:6379,10.0.0.6:6379"))
        let larder = try RedisCacheOrigin(larderAt: "/run/larder/larder.sock")
        let prices = OriginCache(cache, origin: redis)  // or larder, or web, which only reads
        let price = try await prices.value(Price.self, forKey: "apple")  // nil if it has none
        try await prices.set(Price(cents: 250), forKey: "apple")  // there, and here
        return [web, larder, price]
    }

    @Test func invalidAddressesAreRefused() throws {
        #expect(throws: OriginAddress.Failure.self) { try RedisCacheOrigin(larderAt: "relative/path") }
    }
}

extension FetchOptions {
    /// ``OriginCache/standardOptions`` for tests that run together with all others, whose tasks may have to wait longer
    /// than ten seconds.
    static var patient: FetchOptions {
        var options = OriginCache.standardOptions
        options.hardTimeout = .seconds(600)
        return options
    }
}
