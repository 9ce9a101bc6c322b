import LarderPlatform
import LarderTestSupport
import Testing

/// Tests of the ways in which the daemon learns of changes, and of reads from replicas, with real servers.
@Suite(.timeLimit(.minutes(10))) struct OriginReadsDaemonTests {
    /// Limits with which no heartbeat is missed, however busy the machine is.
    private static let patient = ["--origin-heartbeat-limit", "20000", "--origin-limit", "20000"]

    // MARK: Broadcast

    @Test func withBCASTOnlyKeysOfThePrefixesAreCached() throws {
        let redis = try RedisProcess()
        let daemon = try DaemonProcess(Self.patient)
        let (behind, client) = (try redis.connect(), try daemon.connect())
        #expect(try client.call("ORIGIN unix://\(redis.socketPath) BCAST PREFIX user: PREFIX shop:") == "+OK\r\n")
        _ = try behind.call("MSET user:1 a other:1 b")
        try client.eventually("GET user:1") { _ in try client.origin("known") == 1 }
        let asked = try client.origin("asked")
        #expect(try client.call("GET user:1") == bulkReply("a"))
        #expect(try client.origin("asked") == asked)
        #expect(try client.call("GET other:1") == bulkReply("b"))
        #expect(try client.call("GET other:1") == bulkReply("b"))
        #expect(try client.origin("asked") == asked + 2, "a key without a prefix is not cached")
        // Other clients change keys that were never read, and a key that this client has written.
        _ = try behind.call("SET user:1 c")
        try client.eventually("GET user:1", bulkReply("c"))
        let heard = try client.origin("invalidated")
        _ = try behind.call("SET shop:never x")
        try client.eventually(origin: "invalidated") { $0 == heard + 1 }
        #expect(try client.call("SET user:1 own") == "+OK\r\n")
        #expect(try client.call("GET user:1") == bulkReply("own"))
        _ = try behind.call("SET user:1 d")
        try client.eventually("GET user:1", bulkReply("d"))
        try client.eventually("MGET user:1 shop:absent") { _ in try client.origin("known") == 2 }
        _ = try behind.call("SET shop:absent e")
        try client.eventually("GET shop:absent", bulkReply("e"))
        _ = try behind.call("FLUSHALL")
        try client.eventually("GET user:1", "$-1\r\n")
    }

    @Test func withBCASTChangesOfALarderOriginAreReceived() throws {
        let (back, front) = (try DaemonProcess(), try DaemonProcess(Self.patient))
        let (behind, client) = (try back.connect(), try front.connect())
        #expect(try client.call("ORIGIN unix://\(back.socketPath) BCAST") == "+OK\r\n")
        #expect(try behind.call("SET a one") == "+OK\r\n")
        try client.eventually("GET a") { _ in try client.origin("known") == 1 }
        let asked = try client.origin("asked")
        #expect(try client.call("GET a") == bulkReply("one"))
        #expect(try client.origin("asked") == asked)
        #expect(try behind.call("SET a two") == "+OK\r\n")
        try client.eventually("GET a", bulkReply("two"))
        #expect(try client.call("SET a own") == "+OK\r\n")
        #expect(try behind.call("SET a three") == "+OK\r\n")
        try client.eventually("GET a", bulkReply("three"))
        _ = try behind.call("PURGE")
        try client.eventually("GET a", "$-1\r\n")
    }

    // MARK: Replicas

    /// The primary is frozen, and no replica takes over, so a replica's value is returned as stale.
    @Test(
        "while the primary is frozen, a value from its replica is returned as stale",
        .enabled(if: RedisCluster.isAvailable)) func valuesOfAFrozenPrimarysReplicaAreStale() throws
    {
        let cluster = try RedisCluster(replicas: 3)
        let key = try cluster.key(on: 0)
        let direct = try cluster.servers[0].connect()
        #expect(try direct.call("SET \(key) old") == "+OK\r\n")
        #expect(try direct.call("WAIT 1 0") == ":1\r\n")
        for node in cluster.nodes { _ = try cluster.call(node, "CONFIG SET cluster-node-timeout 60000") }
        // Wait until the servers that return the slot map include the replica in it.
        let replica = try #require(try cluster.replicas(of: 0).first)
        for node in [1, 2] {
            let other = try cluster.servers[node].connect()
            try other.eventually("CLUSTER SLOTS") { $0.contains(":\(cluster.servers[replica].port)\r\n") }
        }
        cluster.freeze(0)
        defer { cluster.thaw(0) }
        let options = ["--origin-limit", "1000", "--origin-heartbeat", "50", "--origin-heartbeat-limit", "100"]
        let tolerant = try DaemonProcess(options)
        let (client, strict) = (try tolerant.connect(), try DaemonProcess(options))
        let exact = try strict.connect()
        for client in [client, exact] { #expect(try client.call("POLICY low GRACE 3600") == "+OK\r\n") }
        #expect(try client.call("ORIGIN \(cluster.url) STALE REPLICAS 30") == "+OK\r\n")
        #expect(try exact.call("ORIGIN \(cluster.url) REPLICAS 30") == "+OK\r\n")
        for client in [client, exact] { try client.eventually("FETCH \(key)") { $0.contains("stale") } }
        // This also holds during the back-off, in which no request is sent to the primary.
        for _ in 0..<40 {
            let reply = try client.call("FETCH \(key)")
            #expect(reply.contains("$5\r\nstale\r\n$3\r\nold\r\n"), "\(reply)")
            #expect(try client.call("GET \(key)") == bulkReply("old"))
        }
        for _ in 0..<3 {
            #expect(try exact.call("GET \(key)").hasPrefix("-ORIGIN "), "GET cannot mark a value as stale")
            #expect(try exact.call("FETCH \(key)").contains("stale"))
        }
        #expect(try client.call("MGET {\(key)}none \(key)").hasPrefix("-ORIGIN "), "a replica cannot prove an absence")
        #expect(try client.origin("known") == 0, "a replica's value is not cached")
        #expect(try client.origin("replica-served") >= 80)
        cluster.thaw(0)
        #expect(try direct.call("SET \(key) new") == "+OK\r\n")
        for client in [client, exact] {
            try client.eventually("FETCH \(key)") { $0.contains("$5\r\nfresh\r\n$3\r\nnew\r\n") }
            #expect(try client.call("GET \(key)") == bulkReply("new"))
        }
    }

    // MARK: Lifetimes

    @Test func withLIFETIMESTheOriginTracksNoKeys() throws {
        let redis = try RedisProcess()
        let daemon = try DaemonProcess(["--origin-limit", "300", "--origin-heartbeat-limit", "200"])
        let (behind, client) = (try redis.connect(), try daemon.connect())
        _ = try client.call("POLICY low")
        #expect(try client.call("ORIGIN unix://\(redis.socketPath) LIFETIMES") == "+OK\r\n")
        _ = try behind.call("SET a one")
        _ = try behind.call("SET b x PX 400")
        // On a busy machine, a reply may take longer than the limit, so read again.
        try client.eventually("GET a", bulkReply("one"))
        #expect(try behind.call("INFO clients").contains("tracking_clients:0\r\n"))
        _ = try behind.call("SET a two")
        #expect(try client.call("GET a") == bulkReply("one"))
        try client.eventually("GET b", "$-1\r\n")
        // The client's own write is visible at once.
        #expect(try client.call("SET a own") == "+OK\r\n")
        #expect(try client.call("GET a") == bulkReply("own"))
        // An entry that is trusted is served without a request to the server.
        redis.freeze()
        #expect(try client.call("GET c").hasPrefix("-ORIGIN "))
        #expect(try client.call("GET a") == bulkReply("own"))
        #expect(try client.call("FETCH a").contains("fresh"))
        try client.eventually("ORIGIN") { $0.contains("$4\r\ndown\r\n") }
        redis.thaw()
        try client.eventually("GET c", "$-1\r\n")
        try client.eventually("ORIGIN") { $0.contains("$2\r\nup\r\n") }
        redis.kill()
        #expect(try client.call("GET a") == bulkReply("own"))
        try redis.restart()
        try client.eventually("GET d", "$-1\r\n")
        #expect(try client.call("GET a") == bulkReply("own"), "the entry is served until it expires")
    }

    // MARK: Slots

    @Test(.enabled(if: RedisCluster.isAvailable)) func onlyKeysOfMovedSlotsAreRequestedAgain() throws {
        let cluster = try RedisCluster()
        let daemon = try DaemonProcess(Self.patient)
        let client = try daemon.connect()
        #expect(try client.call("ORIGIN \(cluster.url)") == "+OK\r\n")
        let slot = ClusterSlot.of("k0")
        let keys = (0..<100).map { "k\($0)" }
        for key in keys { _ = try cluster.call(key: key, "SET \(key) one") }
        let all = "MGET \(keys.joined(separator: " ")) {k0}absent"
        try client.eventually(all) { _ in try client.origin("known") == keys.count + 1 }
        let others = keys.filter { ClusterSlot.of($0) != slot }
        let (asked, lost) = (try client.origin("asked"), try client.origin("lost"))
        let (source, target) = (try cluster.primary(ofSlot: slot), (try cluster.primary(ofSlot: slot) + 1) % 3)
        try cluster.moveSlot(slot, to: target)
        // Both the old owner of the slot and the new one cause an invalidation.
        try client.eventually("MGET \(others.joined(separator: " "))") { _ in try client.origin("lost") >= lost + 2 }
        #expect(try client.origin("asked") == asked, "of \(others.count) keys in other slots")
        #expect(try client.call("GET k0") == bulkReply("one"))
        #expect(try cluster.primary(ofSlot: slot) == target && source != target)
        _ = try cluster.call(target, "SET k0 two")
        _ = try cluster.call(target, "SET {k0}absent here")
        try client.eventually("GET k0", bulkReply("two"))
        try client.eventually("GET {k0}absent", bulkReply("here"))
        // Wait until the entry is cached: from then on, its changes are reported again.
        try client.eventually("GET k0") { _ in
            let before = try client.origin("asked")
            _ = try client.call("GET k0")
            return try client.origin("asked") == before
        }
        _ = try cluster.call(target, "SET k0 three")
        try client.eventually("GET k0", bulkReply("three"))
    }
}
