import LarderTestSupport
import Testing

/// Tests of MULTI and EXEC in a database with an origin. The origin executes them as its own transaction.
@Suite(.timeLimit(.minutes(10))) struct OriginTransactionTests {
    private func transaction(_ client: SocketClient, _ lines: String...) throws -> String {
        _ = try client.call("MULTI")
        for line in lines { _ = try client.call(line) }
        return try client.call("EXEC")
    }

    @Test func aRedisOriginExecutesTransactions() throws {
        let redis = try RedisProcess()
        let daemon = try DaemonProcess()
        let (behind, client) = (try redis.connect(), try daemon.connect())
        #expect(try client.call("ORIGIN unix://\(redis.socketPath)") == "+OK\r\n")
        #expect(try client.call("GET a") == "$-1\r\n")
        #expect(
            try transaction(client, "SET a one", "INCR n", "INCR a", "GET a", "MGET a n")
                == "*5\r\n+OK\r\n:1\r\n-ERR value is not an integer or out of range\r\n" + bulkReply("one") + "*2\r\n"
                + bulkReply("one") + bulkReply("1"))
        #expect(try behind.call("GET a") == bulkReply("one"))
        #expect(try client.call("GET a") == bulkReply("one"))
        #expect(try behind.call("SET a two") == "+OK\r\n")
        try client.eventually("GET a", bulkReply("two"))
        // As in Redis, a failing command does not undo the other commands.
        let reply = try transaction(client, "SET a three", "SET b v TAGS 1 t")
        #expect(reply == "*2\r\n+OK\r\n-ERR syntax error\r\n")
        #expect(try behind.call("GET a") == bulkReply("three"))
    }

    @Test func aLarderOriginExecutesTransactions() throws {
        let (back, front) = (try DaemonProcess(), try DaemonProcess())
        let (behind, client) = (try back.connect(), try front.connect())
        #expect(try client.call("ORIGIN unix://\(back.socketPath) BEHIND") == "+OK\r\n")
        #expect(try client.call("SET a one") == "+OK\r\n")
        #expect(try transaction(client, "APPEND a x", "STRLEN a") == "*2\r\n:4\r\n:4\r\n")
        #expect(try behind.call("GET a") == bulkReply("onex"))
    }

    /// If the origin refuses MULTI, the commands after it must not be executed one by one.
    @Test func aRefusedMULTIExecutesNothing() throws {
        let redis = try RedisProcess(["--user", "default", "on", "nopass", "~*", "&*", "+@all", "-multi"])
        let daemon = try DaemonProcess()
        let client = try daemon.connect()
        #expect(try client.call("ORIGIN unix://\(redis.socketPath)") == "+OK\r\n")
        let reply = try transaction(client, "SET a one", "SET b two")
        #expect(reply.hasPrefix("-NOPERM ") && reply.contains("multi"), "\(reply)")
        #expect(try client.call("EXISTS a b") == ":0\r\n")
    }

    @Test(.enabled(if: RedisCluster.isAvailable)) func aClusterExecutesTransactionsWithinASlot() throws {
        let cluster = try RedisCluster()
        let daemon = try DaemonProcess()
        let client = try daemon.connect()
        #expect(try client.call("ORIGIN \(cluster.url)") == "+OK\r\n")
        let name = try cluster.key(on: 0)
        let done = "*2\r\n+OK\r\n:1\r\n"
        #expect(try transaction(client, "SET {\(name)}a v", "INCR {\(name)}n") == done)
        let other = try cluster.key(on: 1)
        #expect(try transaction(client, "SET \(name) v", "SET \(other) v").hasPrefix("-CROSSSLOT "))
        #expect(try cluster.call(key: name, "EXISTS \(name)") == ":0\r\n")
        try cluster.moveSlot(ClusterSlot.of(name), to: 1) { stage in
            if stage != .emptied { return }
            let reply = try transaction(client, "SET {\(name)}b v", "STRLEN {\(name)}b")
            #expect(reply == done, "by ASK")
            // If several keys are not at the new server yet, a cluster replies TRYAGAIN.
            let refused = try transaction(client, "SET {\(name)}d v", "SET {\(name)}e v")
            #expect(refused.hasPrefix("-ORIGIN ") && !refused.contains("not answer within"), "\(refused)")
        }
        // The slot's old owner redirects to the new one.
        #expect(try transaction(client, "SET {\(name)}c v", "INCR {\(name)}l") == done)
        #expect(try cluster.call(1, "EXISTS {\(name)}a {\(name)}b {\(name)}c {\(name)}d") == ":3\r\n")
        #expect(try client.origin("redirections") > 0)
    }
}
