import LarderTestSupport
import Testing

/// Tests of an origin that accepts connections but never replies, and of ORIGIN and ORIGIN PATH, which wait for it.
@Suite struct OriginHangingTests {
    /// Commands for another database that run on threads that may block.
    private static let others = ["DBSIZE", "KEYS *", "SCAN 0", "CHANGES SINCE 0", "POLICY", "INFO", "ORIGIN"]

    /// Sends each of these lines on its own connection, and returns the connections. Their replies have not arrived
    /// yet.
    private static func ask(_ lines: [String], _ daemon: DaemonProcess) throws -> [SocketClient] {
        try lines.map { line in
            let client = try daemon.connect()
            #expect(try client.call("SELECT hanging") == "+OK\r\n")
            try client.send(line.split(separator: " ").map(String.init))
            return client
        }
    }

    @Test("an origin that does not reply delays neither other databases nor the shutdown")
    func aHangingOriginDelaysNothingElse() throws {
        let redis = try RedisProcess()
        // This limit is longer than a test waits for any reply, so a command that waits for the origin fails the test.
        let daemon = try DaemonProcess(["--origin-limit", "60000"])
        let client = try daemon.connect()
        #expect(try client.call("SET k v") == "+OK\r\n")
        let owner = try daemon.connect()
        #expect(try owner.call("SELECT hanging") == "+OK\r\n")
        #expect(try owner.call("ORIGIN unix://\(redis.socketPath)") == "+OK\r\n")
        redis.freeze()
        defer { redis.thaw() }
        let same = Array(repeating: "ORIGIN PATH", count: 10)
        let different = (0..<70).map { "ORIGIN PATH larder-\($0)/0" }
        let changes = (0..<5).map { "ORIGIN unix://\(redis.socketPath)?db=\($0 + 1)" }
        let asking = try Self.ask(same + different + changes, daemon)
        for line in Self.others { #expect(!(try client.call(line)).hasPrefix("-"), "\(line)") }
        #expect(try client.call("GET k") == bulkReply("v"))
        // Above the limit of pending requests, ORIGIN PATH replies at once, as if the chain ended here.
        let ends = try daemon.connect()
        #expect(try ends.call("SELECT hanging") == "+OK\r\n")
        #expect(try ends.call("ORIGIN PATH one-more").hasPrefix("*1\r\n"))
        #expect(try daemon.stop() == .exited(0))
        for (line, client) in zip(same + different + changes, asking) {
            let reply = try String(decoding: client.receiveToEnd(), as: UTF8.self)
            #expect(
                reply.hasPrefix("-ERR the daemon is shutting down") || reply.hasPrefix("*1\r\n"),
                "\(line): \(reply)")
        }
        #expect(try String(decoding: asking[0].receiveToEnd(), as: UTF8.self) == "")
    }

    /// A change that was in progress when the daemon stopped has no effect.
    @Test("a change of the origin in progress at the shutdown has no effect")
    func anUnfinishedORIGINCommandHasNoEffect() throws {
        let place = try TemporaryDirectory(inMemory: true)
        let redis = try RedisProcess()
        redis.freeze()
        defer { redis.thaw() }
        let daemon = try DaemonProcess(["--origin-limit", "60000"], in: place)
        let client = try daemon.connect()
        try client.send(["ORIGIN", "unix://\(redis.socketPath)"])
        #expect(try daemon.connect().call("PING") == "+PONG\r\n")
        #expect(try daemon.stop() == .exited(0))
        let reply = try String(decoding: client.receiveToEnd(), as: UTF8.self)
        #expect(reply.hasPrefix("-ERR the daemon is shutting down"), "\(reply)")
        let again = try DaemonProcess(in: place)
        #expect(try again.connect().call("ORIGIN").hasPrefix("*2\r\n$3\r\nurl\r\n$0\r\n"))
    }

    /// A change whose client has disconnected delays no other change, and has no effect.
    @Test("a pending ORIGIN command has no effect once its client has disconnected")
    func originsOfDisconnectedClientsAreNotSet() throws {
        let redis = try RedisProcess()
        redis.freeze()
        defer { redis.thaw() }
        let daemon = try DaemonProcess(["--origin-limit", "60000"])
        let observer = try daemon.connect()
        let first = try Self.ask(["ORIGIN unix://\(redis.socketPath)"], daemon)[0]
        func awaitSettings(_ count: Int) throws {
            try observer.eventually("CLIENT LIST") { $0.split(separator: " cmd=origin ").count - 1 == count }
        }
        try awaitSettings(1)
        let gone = try daemon.connect()
        try gone.send(["ORIGIN", "unix:///nowhere"])
        try awaitSettings(2)
        gone.close()
        let last = try Self.ask(["ORIGIN NONE"], daemon)[0]
        redis.thaw()
        for client in [first, last] { #expect(String(decoding: try client.receive(), as: UTF8.self) == "+OK\r\n") }
        #expect(try observer.call("ORIGIN").hasPrefix("*2\r\n$3\r\nurl\r\n$0\r\n"))
    }

    @Test func originIsRefusedInATransaction() throws {
        let daemon = try DaemonProcess()
        let client = try daemon.connect()
        #expect(try client.call("MULTI") == "+OK\r\n")
        for line in ["ORIGIN PATH", "ORIGIN NONE"] {
            #expect(try client.call(line) == "-ERR Command not allowed inside a transaction\r\n", "\(line)")
        }
    }
}
