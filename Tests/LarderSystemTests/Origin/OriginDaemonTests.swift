import LarderTestSupport
import Testing

/// Tests of the daemon in front of real servers.
@Suite struct OriginDaemonTests {
    @Test("entries from a Redis origin are cached until the origin reports a change")
    func aRedisOriginInvalidatesChangedKeys() throws {
        let redis = try RedisProcess()
        let daemon = try DaemonProcess()
        let (behind, client) = (try redis.connect(), try daemon.connect())
        #expect(try client.call("ORIGIN unix://\(redis.socketPath)") == "+OK\r\n")
        #expect(try behind.call("SET a one") == "+OK\r\n")
        #expect(try client.call("GET a") == bulkReply("one"))
        #expect(try behind.call("SET a two") == "+OK\r\n")
        try client.eventually("GET a", bulkReply("two"))
        // After the daemon's own write, it must still be notified of writes by others.
        #expect(try client.call("SET a three") == "+OK\r\n")
        #expect(try client.call("GET a") == bulkReply("three"))
        #expect(try behind.call("SET a four") == "+OK\r\n")
        try client.eventually("GET a", bulkReply("four"))
        #expect(try behind.call("DEL a") == ":1\r\n")
        try client.eventually("GET a", "$-1\r\n")
        #expect(try client.call("INCR n") == ":1\r\n")
        #expect(try behind.call("INCR n") == ":2\r\n")
        try client.eventually("GET n", bulkReply("2"))
        #expect(try behind.call("FLUSHALL") == "+OK\r\n")
        try client.eventually("GET n", "$-1\r\n")
    }

    @Test("an entry that expires at the origin expires here too") func entriesExpireWithTheirOriginsEntry() throws {
        let redis = try RedisProcess()
        let daemon = try DaemonProcess()
        let (behind, client) = (try redis.connect(), try daemon.connect())
        _ = try client.call("ORIGIN unix://\(redis.socketPath)")
        // On a busy machine, the entry may expire before it is read.
        repeat { _ = try behind.call("SET a one PX 300") } while try client.call("GET a") != bulkReply("one")
        try client.eventually("GET a", "$-1\r\n")
    }

    @Test("entries of a frozen origin are not trusted after the heartbeat limit")
    func entriesOfAFrozenOriginAreNotTrusted() throws {
        let redis = try RedisProcess()
        let daemon = try DaemonProcess([
            "--origin-limit", "300", "--origin-heartbeat", "50", "--origin-heartbeat-limit", "100",
        ])
        let (behind, client) = (try redis.connect(), try daemon.connect())
        _ = try client.call("POLICY low GRACE 3600")
        _ = try client.call("ORIGIN unix://\(redis.socketPath)")
        _ = try behind.call("SET a one")
        // On a busy machine, a reply may take longer than the limit, so read again.
        try client.eventually("GET a", bulkReply("one"))
        redis.freeze()
        defer { redis.thaw() }
        var reply = bulkReply("one")
        for _ in 0..<200_000 where reply == bulkReply("one") { reply = try client.call("GET a") }
        #expect(reply.hasPrefix("-ORIGIN "))
        var fetched = reply
        for _ in 0..<100 where fetched.hasPrefix("-ORIGIN ") { fetched = try client.call("FETCH a") }
        #expect(fetched.contains("stale"), "\(fetched)")
        redis.thaw()
        try client.eventually("GET a", bulkReply("one"))
    }

    @Test func aLarderCanBeTheOriginOfALarder() throws {
        let (back, front) = (try DaemonProcess(), try DaemonProcess())
        let (behind, client) = (try back.connect(), try front.connect())
        #expect(try client.call("ORIGIN unix://\(back.socketPath)") == "+OK\r\n")
        #expect(try behind.call("SET a one") == "+OK\r\n")
        #expect(try client.call("GET a") == bulkReply("one"))
        #expect(try behind.call("SET a two") == "+OK\r\n")
        try client.eventually("GET a", bulkReply("two"))
        let refused = try behind.call("ORIGIN unix://\(front.socketPath)")
        #expect(refused.contains("a cycle: "), "\(refused)")
        #expect(try behind.call("GET a") == bulkReply("two"))
    }

    @Test func unusableOriginsAreExplained() throws {
        let daemon = try DaemonProcess(["--origin-limit", "500"])
        let client = try daemon.connect()
        let directory = try TemporaryDirectory(inMemory: true)
        #expect(try client.call("ORIGIN unix://\(directory.path)/none") == "+OK\r\n", "it may become available")
        #expect(try client.call("GET a").hasPrefix("-ORIGIN "))
        #expect(try client.call("SET a v").hasPrefix("-ORIGIN "))
        #expect(try client.call("PING") == "+PONG\r\n")
        for (url, text) in [
            ("http://x", "not the address of an origin"), ("redis://", "is not a server"),
            ("redis://u:secret@localhost", "PASSWORDFILE path"),
        ] {
            let reply = try client.call("ORIGIN \(url)")
            #expect(reply.hasPrefix("-") && reply.contains(text) && !reply.contains("secret"), "\(reply)")
        }
    }

    @Test func thePasswordOfAnOriginIsReadFromAFile() throws {
        let redis = try RedisProcess(["--requirepass", "sesame"])
        let daemon = try DaemonProcess()
        let client = try daemon.connect()
        let directory = try TemporaryDirectory(inMemory: true)
        _ = try client.call("ORIGIN unix://\(redis.socketPath)")
        let refusal = try client.call("GET a")
        #expect(refusal.hasPrefix("-ORIGIN ") && refusal.contains("password"), "\(refusal)")
        let path = try directory.makeFile("password", Array("sesame\n".utf8))
        #expect(try client.call("ORIGIN unix://\(redis.socketPath) PASSWORDFILE \(path)") == "+OK\r\n")
        try client.eventually("GET a", "$-1\r\n")
        #expect(try !client.call("ORIGIN").contains("sesame"))
    }

    @Test func theOriginSurvivesARestart() throws {
        let redis = try RedisProcess()
        let directory = try TemporaryDirectory(inMemory: true)
        _ = try redis.connect().call("SET a one")
        for round in 0..<2 {
            let daemon = try DaemonProcess(in: directory)
            let client = try daemon.connect()
            if round == 0 { _ = try client.call("ORIGIN unix://\(redis.socketPath) AROUND") }
            #expect(try client.call("GET a") == bulkReply("one"))
            #expect(try client.call("ORIGIN").contains("around"))
            _ = try daemon.stop()
        }
    }
}
