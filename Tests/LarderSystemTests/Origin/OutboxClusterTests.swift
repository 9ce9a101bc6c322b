import LarderPlatform
import LarderTestSupport
import Testing

/// Tests of writes that the daemon acknowledges and delivers later. The receivers are a cluster whose slots move and
/// whose servers fail, and another larder.
@Suite(.timeLimit(.minutes(10))) struct OutboxClusterTests {
    private static let options = [
        "--origin-limit", "500", "--origin-heartbeat", "50", "--origin-heartbeat-limit", "200",
    ]

    @Test(.enabled(if: RedisCluster.isAvailable), arguments: RedisProcess.programs)
    func queuedWritesAreDeliveredWhileASlotMoves(program: String) throws {
        let cluster = try RedisCluster(program: program)
        let daemon = try DaemonProcess(Self.options)
        let client = try daemon.connect()
        #expect(try client.call("ORIGIN \(cluster.url) BEHIND") == "+OK\r\n")
        let name = try cluster.key(on: 0)
        let slot = ClusterSlot.of(name)
        let keys = (0..<20).map { "{\(name)}\($0)" }
        func write(_ value: String) throws {
            for key in keys { #expect(try client.call("SET \(key) \(value)") == "+OK\r\n") }
        }
        try write("before")
        try client.eventually(origin: "outbox") { $0 == 0 }
        var round = 0
        for target in [1, 2, 0] {
            try cluster.moveSlot(slot, to: target) { stage in
                round += 1
                try write("v\(round)")
                #expect(try client.call("DEL \(keys[round % 20])") == ":1\r\n")
                #expect(try client.call("SET \(keys[round % 20]) again\(round)") == "+OK\r\n")
                // Deliveries do not wait for the end of the move: keys that were moved are delivered with ASK, the
                // others as usual.
                try client.eventually(origin: "outbox") { $0 == 0 }
                #expect(stage != .emptied || round % 3 == 0)
            }
            try write("at\(target)")
            try client.eventually(origin: "outbox") { $0 == 0 }
            for key in keys {
                #expect(try cluster.call(target, "GET \(key)") == bulkReply("at\(target)"))
                try client.eventually("GET \(key)", bulkReply("at\(target)"))
            }
        }
        #expect(try client.origin("redirections") > 0)
        #expect(try client.origin("superseded") == 0)
    }

    /// Queued writes for a killed primary are delivered to the replica that replaces it. Meanwhile, writes for other
    /// primaries are delivered at once.
    @Test(.enabled(if: RedisCluster.isAvailable)) func queuedWritesAreDeliveredAfterAFailover() throws {
        let cluster = try RedisCluster(replicas: 3)
        let daemon = try DaemonProcess(Self.options)
        let client = try daemon.connect()
        #expect(try client.call("ORIGIN \(cluster.url) BEHIND") == "+OK\r\n")
        let (name, other) = (try cluster.key(on: 0), try cluster.key(on: 1))
        let slot = ClusterSlot.of(name)
        let keys = (0..<300).map { "{\(name)}\($0)" }
        for key in keys { #expect(try client.call("SET \(key) before") == "+OK\r\n") }
        cluster.kill(0)
        for (number, key) in keys.enumerated() {
            let (line, reply) = number % 3 == 0 ? ("DEL \(key)", ":1\r\n") : ("SET \(key) after\(number)", "+OK\r\n")
            #expect(try client.call(line) == reply)
        }
        #expect(try client.call("SET \(other) there") == "+OK\r\n")
        let direct = try cluster.servers[1].connect()
        try direct.eventually("GET \(other)", bulkReply("there"))
        let winner = try cluster.waitForFailover(ofSlot: slot, from: 0)
        try client.eventually(origin: "outbox") { $0 == 0 }
        for (number, key) in keys.enumerated() {
            let expected = number % 3 == 0 ? "$-1\r\n" : bulkReply("after\(number)")
            #expect(try cluster.call(winner, "GET \(key)") == expected)
            try client.eventually("GET \(key)", expected)
        }
    }

    @Test("queued writes are delivered to a larder that was killed or frozen")
    func queuedWritesReachALarderThatWasKilled() throws {
        let place = try TemporaryDirectory(inMemory: true)
        var back = try DaemonProcess(in: place)
        let front = try DaemonProcess(Self.options)
        let client = try front.connect()
        #expect(try client.call("ORIGIN unix://\(back.socketPath) BEHIND") == "+OK\r\n")
        func check(_ keys: [String], _ value: (String) -> String) throws {
            try client.eventually(origin: "outbox") { $0 == 0 }
            let behind = try back.connect()
            for key in keys {
                #expect(try behind.call("GET \(key)") == value(key))
                #expect(try client.call("GET \(key)") == value(key))
            }
        }
        let keys = (0..<50).map { "k\($0)" }
        for key in keys { #expect(try client.call("SET \(key) one\(key) EX 1000") == "+OK\r\n") }
        try check(keys) { bulkReply("one\($0)") }
        let left = Int(try back.connect().call("PTTL k0").dropFirst().dropLast()) ?? 0
        #expect((500_000...1_000_000).contains(left), "\(left)")
        back.kill()
        for key in keys { #expect(try client.call("SET \(key) two\(key)") == "+OK\r\n") }
        #expect(try client.call("DEL k0 k1") == ":2\r\n")
        #expect(try client.call("GET k0") == "$-1\r\n")
        #expect(try client.origin("outbox") == keys.count)
        back = try DaemonProcess(in: place)
        try check(Array(keys.dropFirst(2))) { bulkReply("two\($0)") }
        try check(["k0", "k1"]) { _ in "$-1\r\n" }
        // The server hangs during delivery attempts, so their outcome is unknown. After it continues, the delivery
        // script compares the values.
        for key in keys { #expect(try client.call("SET \(key) three\(key)") == "+OK\r\n") }
        back.process.send(signal: SIGSTOP)
        for key in keys { #expect(try client.call("SET \(key) four\(key)") == "+OK\r\n") }
        try client.eventually("ORIGIN") { $0.contains("$4\r\ndown\r\n") }
        back.process.send(signal: SIGCONT)
        try check(keys) { bulkReply("four\($0)") }
    }
}
