import LarderTestSupport
import Testing

/// Tests of scripts and of values that are not strings, in a database whose origin is a redis-server.
@Suite(.timeLimit(.minutes(10))) struct OriginScriptTests {
    private let redis: RedisProcess
    private let daemon: DaemonProcess
    private let behind: SocketClient
    private let client: SocketClient

    init() throws {
        redis = try RedisProcess()
        daemon = try DaemonProcess()
        behind = try redis.connect()
        client = try daemon.connect()
        #expect(try client.call("ORIGIN unix://\(redis.socketPath)") == "+OK\r\n")
        try client.eventually("GET a", "$-1\r\n")
    }

    @Test("a script loaded at the larder runs at the origin") func scriptsLoadedAtTheLarderRunAtTheOrigin() throws {
        let script = "return(redis.call('incr',KEYS[1]))"
        let digest = String(try client.call("SCRIPT LOAD \(script)").split(separator: "\r\n")[1])
        #expect(try behind.call("SCRIPT EXISTS \(digest)") == "*1\r\n:0\r\n")
        #expect(try client.call("EVALSHA \(digest) 1 n") == ":1\r\n")
        #expect(try behind.call("SCRIPT EXISTS \(digest)") == "*1\r\n:1\r\n")
        #expect(try behind.call("SCRIPT FLUSH") == "+OK\r\n")
        #expect(try client.call("EVALSHA \(digest) 1 n") == ":2\r\n")
        #expect(try client.call("GET n") == bulkReply("2"))
        #expect(try client.call("EVALSHA_RO \(digest) 1 n").hasPrefix("-ERR Write commands are not allowed"))
    }

    @Test("a transaction at the origin may contain scripts") func aTransactionHasScripts() throws {
        let digest = String(
            try client.call("SCRIPT LOAD return(redis.call('incrby',KEYS[1],ARGV[1]))").split(separator: "\r\n")[1])
        func transaction(_ lines: String...) throws -> String {
            _ = try client.call("MULTI")
            for line in lines { #expect(try client.call(line) == "+QUEUED\r\n", "\(line)") }
            return try client.call("EXEC")
        }
        // The origin does not know the script.
        #expect(
            try transaction("SET n 5", "EVALSHA \(digest) 1 n 2", "GET n") == "*3\r\n+OK\r\n:7\r\n" + bulkReply("7"))
        #expect(try behind.call("GET n") == bulkReply("7"))
        for round in 1...200 {
            #expect(try client.call("GET u") == (round == 1 ? "$-1\r\n" : bulkReply("\(round - 1)")))
            _ = try transaction("EVAL return(redis.call('set','u','\(round)')) 1 n", "STRLEN n")
            #expect(try client.call("GET u") == bulkReply("\(round)"))
        }
        let unknown = String(repeating: "0", count: 40)
        // Valkey's error is shorter than Redis's.
        let reply = try transaction("EVALSHA \(unknown) 1 n", "GET n")
        #expect(reply.hasPrefix("*2\r\n-NOSCRIPT No matching script.") && reply.hasSuffix("\r\n" + bulkReply("7")))
        #expect(try transaction("EVAL return(1) 0", "GET n").contains("-ORIGIN "), "its node is unknown without keys")
    }

    @Test("a transaction at the origin may call the origin's functions")
    func aTransactionHasFunctionsOfTheOrigin() throws {
        let library =
            "#!lua name=l\nredis.register_function('add', function(keys, args) "
            + "return redis.call('incrby', keys[1], args[1]) end)"
        #expect(try String(decoding: behind.call(["FUNCTION", "LOAD", library]), as: UTF8.self) == bulkReply("l"))
        for line in ["MULTI", "SET n 5", "FCALL add 1 n 2", "FCALL other 1 n", "GET n"] {
            #expect(try client.call(line) == (line == "MULTI" ? "+OK\r\n" : "+QUEUED\r\n"), "\(line)")
        }
        // Only the origin detects that a function is unknown.
        #expect(
            try client.call("EXEC") == "*4\r\n+OK\r\n:7\r\n-ERR Function not found\r\n" + bulkReply("7"))
        #expect(try behind.call("GET n") == bulkReply("7"))
        #expect(try client.call("GET n") == bulkReply("7"))
    }

    /// Regression test: without waiting for invalidations, some of these reads returned the previous value.
    @Test("after EVAL, a connection reads the new value of a key that its script changed without declaring it")
    func aReadAfterAScriptReturnsTheValueOfAnUndeclaredKey() throws {
        for round in 1...500 {
            #expect(try client.call("GET u") == (round == 1 ? "$-1\r\n" : bulkReply("\(round - 1)")))
            _ = try client.call("EVAL return(redis.call('set','u','\(round)')) 0")
            #expect(try client.call("GET u") == bulkReply("\(round)"))
        }
    }

    @Test("commands about keys of other types give the same replies as Redis") func otherTypesAreDescribedAsRedisDoes()
        throws
    {
        _ = try behind.call("RPUSH l 1 2")
        _ = try behind.call("HSET h f v")
        _ = try behind.call("PEXPIREAT h 4000000000000")
        _ = try behind.call("SET s v")
        for line in [
            "TYPE l", "TYPE h", "TTL l", "PEXPIRETIME h", "EXPIRETIME h", "EXISTS l h s x l", "TOUCH l x", "DUMP l",
            "OBJECT ENCODING l", "OBJECT REFCOUNT h", "MGET l s x h", "GET l",
        ] {
            #expect(try client.call(line) == behind.call(line), "\(line)")
        }
        #expect(try client.call("TYPE s") == "+string\r\n")
    }
}
