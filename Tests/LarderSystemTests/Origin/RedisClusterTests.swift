import LarderPlatform
import LarderTestSupport
import Testing

/// Tests of the cluster that origin tests use, with each installed server.
@Suite(.enabled(if: RedisCluster.isAvailable, "neither redis-server nor valkey-server is installed"))
struct RedisClusterTests {
    @Test(arguments: RedisProcess.programs) func nodesRedirectKeysOfOtherNodes(program: String) throws {
        let cluster = try RedisCluster(program: program)
        for node in 0..<3 {
            let key = try cluster.key(on: node)
            #expect(try cluster.primary(ofKey: key) == node)
            #expect(try cluster.call(key: key, "SET \(key) here") == "+OK\r\n")
            let slot = ClusterSlot.of(key)
            #expect(try cluster.call(node, "CLUSTER KEYSLOT \(key)") == ":\(slot)\r\n")
            #expect(
                try cluster.call((node + 1) % 3, "GET \(key)")
                    == "-MOVED \(slot) 127.0.0.1:\(cluster.servers[node].port)\r\n")
        }
        #expect(ClusterSlot.of("{user}a") == ClusterSlot.of("{user}b"))
        #expect(try cluster.call(0, "CLUSTER KEYSLOT a{}b") == ":\(ClusterSlot.of("a{}b"))\r\n")
    }

    @Test(arguments: RedisProcess.programs) func aMovedSlotTakesItsKeysAlong(program: String) throws {
        let cluster = try RedisCluster(program: program)
        let key = try cluster.key(on: 0)
        let slot = ClusterSlot.of(key)
        let keys = (0..<10).map { "{\(key)}\($0)" }
        for key in keys { _ = try cluster.call(0, "SET \(key) v") }
        var asked = 0
        try cluster.moveSlot(slot, to: 1) { stage in
            let replies = try keys.map { try cluster.call(0, "GET \($0)") }
            asked = replies.count { $0.starts(with: "-ASK \(slot) ") }
            switch stage {
            case .begun: #expect(asked == 0)
            case .halfway:
                #expect(asked == 5)
                #expect(try cluster.call(0, "MGET \(keys.joined(separator: " "))").starts(with: "-TRYAGAIN"))
            case .emptied: #expect(asked == 10)
            }
        }
        #expect(try cluster.primary(ofSlot: slot) == 1)
        for key in keys { #expect(try cluster.call(1, "GET \(key)") == "$1\r\nv\r\n") }
        try cluster.waitUntilReady()
        #expect(try cluster.call(2, "GET \(key)").starts(with: "-MOVED \(slot) 127.0.0.1:\(cluster.servers[1].port)"))
    }

    @Test(arguments: RedisProcess.programs, ["SIGKILL", "SIGSTOP"])
    func aReplicaReplacesAFailedPrimary(program: String, signal: String) throws {
        let cluster = try RedisCluster(replicas: 3, isDurable: true, program: program)
        let key = try cluster.key(on: 0)
        let slot = ClusterSlot.of(key)
        #expect(try cluster.replicas(of: 0) == [3])
        _ = try cluster.call(key: key, "SET \(key) v")
        let waiting = try cluster.servers[0].connect()
        try waiting.send(["WAIT", "1", "0"])
        #expect(try waiting.receive() == Array(":1\r\n".utf8))
        if signal == "SIGKILL" { cluster.kill(0) } else { cluster.freeze(0) }
        #expect(!cluster.upNodes.contains(0))
        #expect(try cluster.waitForFailover(ofSlot: slot, from: 0) == 3)
        #expect(try cluster.call(key: key, "GET \(key)") == "$1\r\nv\r\n")
        if signal == "SIGKILL" { try cluster.restart(0) } else { cluster.thaw(0) }
        try cluster.waitUntilReplica(0)
        try cluster.waitUntilReady()
        #expect(try cluster.replicas(of: 3) == [0])
    }

    @Test func aDurableClusterKeepsItsDataAcrossARestart() throws {
        let cluster = try RedisCluster(isDurable: true)
        for node in 0..<3 { _ = try cluster.call(node, "SET \(try cluster.key(on: node)) v\(node)") }
        let keys = try (0..<3).map { try cluster.key(on: $0) }
        try cluster.restartAll()
        try cluster.waitUntilReady()
        for node in 0..<3 { #expect(try cluster.call(node, "GET \(keys[node])") == "$2\r\nv\(node)\r\n") }
    }

    @Test func clientsAreRedirectedToAnnouncedPorts() throws {
        let cluster = try RedisCluster()
        let ports = cluster.nodes.map { 1000 + $0 }
        try cluster.announce(ports: ports)
        let key = try cluster.key(on: 2)
        #expect(try cluster.call(0, "GET \(key)") == "-MOVED \(ClusterSlot.of(key)) 127.0.0.1:1002\r\n")
        #expect(!(try cluster.call(0, "CLUSTER SLOTS")).contains("\(cluster.servers[0].port)"))
        // The same holds after a restart.
        cluster.kill(2)
        try cluster.restart(2)
        try cluster.waitUntilReady()
        #expect(try cluster.call(0, "GET \(key)") == "-MOVED \(ClusterSlot.of(key)) 127.0.0.1:1002\r\n")
    }

    @Test func aRedisServerThatCannotStartIsAnError() throws {
        let (descriptor, port) = try #require(LoopbackPort.listen())
        defer { close(descriptor) }
        #expect(throws: ChildProcess.Failure.self) {
            _ = try RedisProcess(port: port)
        }
    }
}
