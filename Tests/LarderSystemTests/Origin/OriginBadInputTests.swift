import LarderPlatform
import LarderTestSupport
import Testing

/// Tests of origins that do not exist or misbehave: the daemon returns an error for each.
@Suite(.timeLimit(.minutes(10))) struct OriginBadInputTests {
    /// Returns the reply to GET with the given origin.
    private func answer(_ url: String, _ options: [String] = ["--origin-limit", "1000"]) throws -> String {
        let daemon = try DaemonProcess(options)
        let client = try daemon.connect()
        #expect(try client.call("ORIGIN \(url)") == "+OK\r\n")
        let reply = try client.call("GET a")
        #expect(try client.call("PING") == "+PONG\r\n")
        return reply
    }

    @Test("an origin that cannot be reached is explained") func anUnreachableOriginIsExplained() throws {
        let closed = LoopbackPort.freeWithClusterBus()
        let reply = try answer("redis+cluster://127.0.0.1:\(closed),127.0.0.1:\(closed + 1)")
        #expect(reply.hasPrefix("-ORIGIN the origin cannot be reached: "), "\(reply)")
        let web = try FakeServer { _ in .last(Array("HTTP/1.1 400 Bad Request\r\n\r\n".utf8)) }
        defer { web.stop() }
        #expect(try answer("unix://\(web.path)").contains("is it a Redis server?"))
    }

    @Test func oldProtocolsAndMissingPasswordsAreExplained() throws {
        let old = try FakeServer { _ in .text("-ERR unknown command 'HELLO'\r\n") }
        defer { old.stop() }
        #expect(try answer("unix://\(old.path)").contains("supports only RESP2; Redis 6 or later is required"))
        let locked = try RedisProcess(["--requirepass", "sesame"])
        #expect(try answer("unix://\(locked.socketPath)").contains("the server requires a password"))
    }

    @Test("a cluster that is partly down at the start recovers", .enabled(if: RedisCluster.isAvailable))
    func aClusterThatIsPartlyDownRecovers() throws {
        let cluster = try RedisCluster(isDurable: true)
        let keys = try (0..<3).map { try cluster.key(on: $0) }
        cluster.kill(0)
        cluster.kill(1)
        let daemon = try DaemonProcess(["--origin-limit", "500"])
        let client = try daemon.connect()
        #expect(try client.call("ORIGIN \(cluster.url)") == "+OK\r\n")
        for key in keys.prefix(2) { #expect(try client.call("GET \(key)").hasPrefix("-ORIGIN ")) }
        try client.eventually("GET \(keys[2])") { $0.contains("CLUSTERDOWN") }
        for node in [0, 1] { try cluster.restart(node) }
        for key in keys { try client.eventually("GET \(key)", "$-1\r\n") }
    }

    @Test(.enabled(if: RedisCluster.isAvailable)) func keysOfAnUnassignedSlotReturnAnError() throws {
        let cluster = try RedisCluster()
        let (key, other) = (try cluster.key(on: 0), try cluster.key(on: 1))
        for node in cluster.nodes {
            _ = try cluster.call(node, "CONFIG SET cluster-require-full-coverage no")
            _ = try cluster.call(node, "CLUSTER DELSLOTS \(ClusterSlot.of(key))")
        }
        let daemon = try DaemonProcess()
        let client = try daemon.connect()
        #expect(try client.call("ORIGIN \(cluster.url)") == "+OK\r\n")
        for line in ["GET \(key)", "SET \(key) v", "INCR \(key)"] {
            let reply = try client.call(line)
            #expect(reply.hasPrefix("-ORIGIN the origin is unavailable for this key: "), "\(line): \(reply)")
            #expect(reply.contains("slot"), "\(reply)")
        }
        #expect(try client.call("SET \(other) v") == "+OK\r\n")
        #expect(try client.call("GET \(other)") == bulkReply("v"))
    }

    /// A value of 512 MiB is not stored, not even in part or for a moment.
    @Test("a value of 512 MiB at the origin is not cached") func aValueOfHalfAGigabyte() throws {
        let redis = try RedisProcess(["--client-output-buffer-limit", "normal", "0", "0", "0"])
        #expect(try redis.connect().call("SETRANGE a \((512 << 20) - 1) x") == ":\(512 << 20)\r\n")
        let daemon = try DaemonProcess(["--origin-limit", "60000", "--origin-heartbeat-limit", "60000"])
        let client = try daemon.connect()
        #expect(try client.call("ORIGIN unix://\(redis.socketPath)") == "+OK\r\n")
        #expect(
            try client.call("GET a")
                == "-ORIGIN the value has \(512 << 20) bytes; origins are limited to \(64 << 20)\r\n"
        )
        #expect(try client.call("STRLEN a").hasPrefix("-ORIGIN the value has "))
        if let peak = daemon.peakResidentBytes { #expect(peak < 256 << 20, "\(peak >> 20) MiB") }
        // The connection stays open, and other keys work.
        #expect(try client.call("SET b v") == "+OK\r\n")
        #expect(try client.call("GET b") == bulkReply("v"))
        #expect(try client.origin("lost") == 0)
    }

    /// The daemon's clock is ahead of the origin's by a day, or behind it.
    @Test(
        "lifetimes are right if the origin's clock differs by a day", .enabled(if: FaultLibrary.isAvailable),
        arguments: [1, -1], ["THROUGH", "BEHIND"])
    func theClocksDifferByADay(sign: Int64, writing: String) throws {
        let day: Int64 = 86_400_000_000_000
        let place = try TemporaryDirectory(inMemory: true)
        let faults = try FaultControl(in: place)
        faults.wallOffset = sign * day
        let redis = try RedisProcess()
        let daemon = try DaemonProcess(in: place, faults: faults)
        let (behind, client) = (try redis.connect(), try daemon.connect())
        _ = try client.call("POLICY never")
        #expect(try client.call("ORIGIN unix://\(redis.socketPath) \(writing)") == "+OK\r\n")
        func left(_ reply: String) -> Int { Int(reply.dropFirst().dropLast()) ?? 0 }
        // A value that is read has the same lifetime here as at the origin.
        _ = try behind.call("SET there v PX 600000")
        #expect(try client.call("GET there") == bulkReply("v"))
        #expect((400_000...600_000).contains(left(try client.call("PTTL there"))))
        _ = try behind.call("SET short v PX 300")
        try client.eventually("GET short", "$-1\r\n")
        // The write has the requested lifetime, at the origin and here.
        #expect(try client.call("SET here v EX 600") == "+OK\r\n")
        try behind.eventually("GET here", bulkReply("v"))
        for client in [client, behind] { #expect((400_000...600_000).contains(left(try client.call("PTTL here")))) }
        #expect(try client.call("SET brief v PX 300") == "+OK\r\n")
        for client in [client, behind] { try client.eventually("GET brief", "$-1\r\n") }
        #expect(try client.call("EXPIRE here 300") == ":1\r\n")
        #expect((200_000...300_000).contains(left(try behind.call("PTTL here"))))
    }

    @Test func aCycleOfOriginsIsRefused() throws {
        let (one, two, three) = (try DaemonProcess(), try DaemonProcess(), try DaemonProcess())
        #expect(try one.connect().call("ORIGIN unix://\(two.socketPath)") == "+OK\r\n")
        #expect(try two.connect().call("ORIGIN unix://\(three.socketPath)") == "+OK\r\n")
        for (daemon, origin) in [(two, one), (three, one), (three, three)] {
            let reply = try daemon.connect().call("ORIGIN unix://\(origin.socketPath) BCAST")
            #expect(reply.hasPrefix("-ERR ") && reply.contains("a cycle: "), "\(reply)")
        }
        #expect(try three.connect().call("SET a v") == "+OK\r\n")
        #expect(try one.connect().call("GET a") == bulkReply("v"))
    }
}
