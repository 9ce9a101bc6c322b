import LarderOriginClients
import LarderPlatform
import LarderTestSupport
import Testing

/// Tests with a cluster of real redis-servers.
@Suite(.serialized) struct ClusterTests {
    private static func origin(
        _ cluster: LoopbackCluster, _ limits: OriginLimits = OriginLimits(), seeds: [Int] = [0, 1, 2]
    ) throws -> (RedisOrigin, OriginEars) {
        let ears = OriginEars()
        return (RedisOrigin(try cluster.address(of: seeds), limits: limits, listener: ears), ears)
    }

    /// Waits until this many primaries are known and trusted.
    private static func waitUntilBelieved(_ origin: RedisOrigin, _ count: Int = 3) async {
        await eventually { origin.status().servers.count { $0.isUp } >= count }
    }

    @Test(.timeLimit(.minutes(10))) func requestsReachTheRightNodesAlsoWhenSlotsMove() async throws {
        let cluster = try await LoopbackCluster()
        let (origin, ears) = try Self.origin(cluster, .with { $0.heartbeatLimit = 20_000 }, seeds: [1])
        defer { origin.close() }
        try await Self.spread(origin, ears, cluster)
        try await Self.moved(origin, ears, cluster)
        try await Self.movedBeforeTheMap(origin, cluster)
        try await Self.asked(origin, cluster)
        try await Self.disputed(origin, cluster)
        try await Self.unowned(origin, cluster)
    }

    private static func spread(_ origin: RedisOrigin, _ ears: OriginEars, _ cluster: LoopbackCluster) async throws {
        let keys = (0..<300).map { "k\($0)" }
        // The slot map is not known yet.
        #expect(await origin.readMany(keys).allSatisfy { (try? $0.get()) != nil })
        await waitUntilBelieved(origin)
        for key in keys { try await origin.write(key, "v" + key) }
        let readings = try await origin.readMany(keys).map { try $0.get() }
        #expect(zip(readings, keys).allSatisfy { $0.value == Array("v\($1)".utf8) })
        #expect(Set(readings.compactMap(\.stamp?.part)).count == 3, "three shards")
        #expect(readings.allSatisfy { origin.isCurrentNow($0.stamp) })
        ears.invalidated.removeAll()
        for key in ["k1", "{k1}x"] {
            let node = cluster.owner(ofSlot: try cluster.slot(of: key))
            _ = try await origin.reading(key)
            _ = try node.control.call("SET \(key) foreign")
            await eventually { ears.invalidated.all.contains(key) }
            #expect(try await origin.value(key) == "foreign")
        }
        #expect(try await origin.remove(keys) == 300)
        #expect(try await origin.perform("INCR counter", key: "counter").int == 1)
        #expect(try await origin.perform("PING", key: nil).string == "PONG")
        #expect(origin.status().redirections == 0)
    }

    private static func moved(_ origin: RedisOrigin, _ ears: OriginEars, _ cluster: LoopbackCluster) async throws {
        let slot = try cluster.slot(of: "moves")
        let from = cluster.owner(ofSlot: slot)
        let to = cluster.nodes.first { $0 !== from }!
        try await origin.write("moves", "1")
        let absent = try await origin.reading("{moves}absent")
        let old = try await origin.reading("moves")
        #expect(origin.isCurrentNow(absent.stamp) && origin.isCurrentNow(old.stamp))
        try cluster.move(slot: slot, from: from, to: to)
        // No server reports the new owner of an absent key; the heartbeat detects it.
        await eventually { !origin.isCurrentNow(absent.stamp) }
        #expect(try await origin.value("moves") == "1")
        await eventually { origin.isCurrentNow(try? await origin.reading("moves").stamp) }
        #expect(try await origin.reading("moves").stamp?.part != old.stamp?.part)
        ears.invalidated.removeAll()
        _ = try to.control.call("SET moves 2")
        await eventually { ears.invalidated.all.contains("moves") }
        try await origin.write("moves", "3")
        #expect(try to.control.call("GET moves") == "$1\r\n3\r\n")
    }

    /// After a redirection, replies of a slot's previous owner are not trusted, even before the new map is known.
    private static func movedBeforeTheMap(_ origin: RedisOrigin, _ cluster: LoopbackCluster) async throws {
        for number in 0..<12 {
            let key = "early\(number)"
            let slot = try cluster.slot(of: key)
            let from = cluster.owner(ofSlot: slot)
            try await origin.write(key, "1")
            let other = "{\(key)}absent"
            await eventually { origin.isCurrentNow(try? await origin.reading(other).stamp) }
            let absent = try await origin.reading(other)
            try cluster.move(slot: slot, from: from, to: cluster.nodes.first { $0 !== from }!)
            #expect(try await origin.value(key) == "1")
            #expect(!origin.isCurrentNow(absent.stamp), "\(other)")
        }
    }

    /// While a slot moves, keys that are not yet at the new server are requested with ASKING.
    private static func asked(_ origin: RedisOrigin, _ cluster: LoopbackCluster) async throws {
        let slot = try cluster.slot(of: "asks")
        let from = cluster.owner(ofSlot: slot)
        let to = cluster.nodes.first { $0 !== from }!
        try await origin.write("asks", "1")
        let absent = try await origin.reading("{asks}absent")
        try cluster.beginMoving(slot: slot, from: from, to: to)
        await eventually { !origin.isCurrentNow(absent.stamp) }
        // From now on new keys are created at the other server, and the old one does not report their changes.
        let before = origin.status().redirections
        try await origin.write("{asks}new", "2")
        #expect(try await origin.value("{asks}new") == "2")
        #expect(try await origin.reading("{asks}new").stamp == nil)
        #expect(try await origin.value("asks") == "1")
        #expect(try await origin.remove(["{asks}new"]) == 1)
        #expect(origin.status().redirections > before)
        // Two keys, one of which has moved.
        try await origin.write("{asks}new", "2")
        await #expect(throws: OriginError.self) { try await origin.remove(["asks", "{asks}new", "{asks}other"]) }
        try cluster.finishMoving(slot: slot, from: from, to: to)
        #expect(try await origin.remove(["asks", "{asks}new", "{asks}other"]) == 2)
    }

    /// While two servers redirect to each other, a request waits until they agree.
    private static func disputed(_ origin: RedisOrigin, _ cluster: LoopbackCluster) async throws {
        let slot = try cluster.slot(of: "disputed")
        let from = cluster.owner(ofSlot: slot)
        let to = cluster.nodes.first { $0 !== from }!
        let before = origin.status().redirections
        _ = try from.control.call("CLUSTER SETSLOT \(slot) NODE \(to.id)")
        async let written = origin.write("disputed", "1")
        await eventually { origin.status().redirections > before + 9 }
        _ = try to.control.call("CLUSTER SETSLOT \(slot) NODE \(to.id)")
        _ = try await written
        #expect(try to.control.call("GET disputed") == "$1\r\n1\r\n")
    }

    private static func unowned(_ origin: RedisOrigin, _ cluster: LoopbackCluster) async throws {
        let slot = try cluster.slot(of: "nobody")
        for node in cluster.nodes {
            _ = try node.control.call("CONFIG SET cluster-require-full-coverage no")
            _ = try node.control.call("CLUSTER DELSLOTS \(slot)")
        }
        guard case .unavailable(let reason)? = await origin.error("nobody") else {
            return #expect(Bool(false))
        }
        #expect(reason.contains("slot"), "\(reason)")
        let other = (0..<1000).map { "k\($0)" }.first { (try? cluster.slot(of: $0)) != slot }!
        #expect(await origin.error(other) == nil)
    }

    @Test(.timeLimit(.minutes(10))) func aReplicaIsUsedAfterItsPrimaryFails() async throws {
        let cluster = try await LoopbackCluster(replicas: 3)
        let (origin, ears) = try Self.origin(cluster)
        defer { origin.close() }
        await Self.waitUntilBelieved(origin)
        try await origin.write("a", "1")
        let victim = cluster.owner(ofSlot: try cluster.slot(of: "a"))
        let replica = cluster.nodes[3 + cluster.nodes.firstIndex { $0 === victim }!]
        await eventually { (try? replica.control.call("DBSIZE")) == ":1\r\n" }
        let stamp = try await origin.reading("a").stamp
        victim.freeze()
        await eventually { !origin.isCurrentNow(stamp) }
        await eventually { ears.lost.all.contains { $0.contains("\(victim.port)") } }
        // The replica is elected, and the slot map shows that.
        await eventually { origin.isCurrentNow(try? await origin.reading("a").stamp) }
        #expect(try await origin.value("a") == "1")
        try await origin.write("a", "2")
        #expect(try replica.control.call("GET a") == "$1\r\n2\r\n")
        // The old primary continues, and becomes a replica before it is trusted again.
        victim.thaw()
        try await eventually { try victim.control.call("ROLE").contains("slave") }
        #expect(try await origin.value("a") == "2")
        _ = try replica.control.call("SET a 3")
        await eventually { ears.invalidated.all.contains("a") }
        // Kill another primary, while the cluster is half down anyway.
        let second = cluster.nodes.prefix(3).first { $0 !== victim }!
        second.process.killNow()
        await eventually { ears.lost.all.contains { $0.contains("\(second.port)") } }
        let keys = (0..<50).map { "k\($0)" }
        await eventually { await origin.readMany(keys).allSatisfy { (try? $0.get()) != nil } }
    }

    @Test(.timeLimit(.minutes(10))) func aReadUsesAReplicaIfThePrimaryDoesNotAnswer() async throws {
        let cluster = try await LoopbackCluster(replicas: 3)
        let limits = OriginLimits.with {
            $0.call = 20_000
            $0.heartbeatLimit = 20_000
        }
        let victim = cluster.owner(ofSlot: try cluster.slot(of: "a"))
        let replica = cluster.nodes[3 + cluster.nodes.firstIndex { $0 === victim }!]
        _ = try victim.control.call("SET a 1")
        await eventually { (try? replica.control.call("DBSIZE")) == ":1\r\n" }
        // A replica appears in the map once the other servers know that it has data.
        for node in cluster.nodes.prefix(3) {
            try await eventually { try node.control.call("CLUSTER SLOTS").contains(":\(replica.port)\r\n") }
        }
        let origin = RedisOrigin(try cluster.address, limits: limits, secondReadAfter: 20)
        defer { origin.close() }
        await Self.waitUntilBelieved(origin)
        // Prevent the election of a replica.
        for node in cluster.nodes { _ = try node.control.call("CONFIG SET cluster-node-timeout 60000") }
        victim.freeze()
        let reading = try await origin.reading("a")
        #expect(reading.value == Array("1".utf8) && reading.stamp == nil)
        victim.thaw()
    }

    /// Most of the addresses to start from are dead, and only a minority of the cluster is alive.
    @Test(.timeLimit(.minutes(10))) func readsFailWhileMostOfTheClusterIsDown() async throws {
        let cluster = try await LoopbackCluster()
        cluster.nodes[0].process.killNow()
        cluster.nodes[1].process.killNow()
        await eventually { (try? cluster.nodes[2].info().contains("cluster_state:fail")) == true }
        let (origin, _) = try Self.origin(cluster, .with { $0.call = 300 })
        defer { origin.close() }
        let results = await origin.readMany((0..<30).map { "k\($0)" })
        for result in results {
            switch result.failure {
            case .unavailable?, .unreachable?, .resting?, .timedOut?: break
            default: Issue.record("\(result)")
            }
        }
        #expect(results.contains { $0.failure?.description.contains("CLUSTERDOWN") == true })
    }

    @Test(.timeLimit(.minutes(10))) func readsOfAnUnreachableClusterFail() async throws {
        let redis = try RedisProcess(["--port", "0"])
        withExtendedLifetime(redis) {}
        let origin = RedisOrigin(try OriginAddress("redis+cluster://127.0.0.1:1,127.0.0.1:2"))
        guard case .unreachable? = await origin.error("a") else { return #expect(Bool(false)) }
        #expect(await origin.error("a") != nil)
        origin.close()
    }
}
