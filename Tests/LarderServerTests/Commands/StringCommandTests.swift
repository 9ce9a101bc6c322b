import LarderEngine
import Testing

@testable import LarderServer

@Suite struct StringCommandTests {
    private static let badPolicy =
        "ERR invalid policy: must be one of highest, high, middle, low, lowest, never, or a number of seconds "
        + "from 0.001 to 9000000000"

    /// U+212A, the Kelvin sign, is a `k` in Unicode's lower case.
    @Test func optionsAreMatchedAsASCII() throws {
        let call = try SocketlessServer().connect()
        #expect(call("CHANGES SINCE $ BLOC\u{212A} 1") == Wire.error("ERR syntax error"))
        #expect(call("CLIENT KILL ID 99999 S\u{212A}IPME YES") == Wire.error("ERR syntax error"))
    }

    @Test func setStoresAValueThatGETReturnsAndGETDELRemoves() throws {
        let call = try SocketlessServer().connect()
        #expect(call("GET k") == Wire.null)
        #expect(call("STRLEN k") == Wire.int(0))
        #expect(call("SET k value") == Wire.ok)
        #expect(call("get k") == Wire.bulk("value"))
        #expect(call("STRLEN k") == Wire.int(5))
        #expect(call(["SET", "k", ""]) == Wire.ok)
        #expect(call("GET k") == Wire.bulk(""))
        #expect(call("GETDEL k") == Wire.bulk(""))
        #expect(call("GETDEL k") == Wire.null)
        #expect(call("GET k") == Wire.null)
    }

    @Test func keysAndValuesMayContainAnyBytes() throws {
        let server = try SocketlessServer()
        let call = server.connect()
        let all = (0...255).map { UInt8($0) }
        call.feed(Array("*3\r\n$3\r\nSET\r\n$256\r\n".utf8) + all + Array("\r\n$256\r\n".utf8) + all + [13, 10])
        call.feed(Array("*2\r\n$3\r\nGET\r\n$256\r\n".utf8) + all + [13, 10])
        call.feed(Array("*2\r\n$3\r\nGET\r\n$0\r\n\r\n*3\r\n$3\r\nSET\r\n$0\r\n\r\n$1\r\nv\r\n".utf8))
        call.feed(Array("*2\r\n$3\r\nGET\r\n$0\r\n\r\n".utf8))
        server.commit()
        let count = call.session.replyQueue.sendableCount
        let bytes = call.session.replies.withBytes { Array($0[..<count]) }
        let expected = Array("+OK\r\n$256\r\n".utf8) + all + Array("\r\n$-1\r\n+OK\r\n$1\r\nv\r\n".utf8)
        #expect(bytes == expected)
    }

    @Test("keys of up to 65,536 bytes are accepted, longer ones are errors") func theLongestKey() throws {
        let call = try SocketlessServer().connect()
        let longest = String(repeating: "k", count: 65_536)
        #expect(call(["SET", longest, "v"]) == Wire.ok)
        #expect(call(["GET", longest]) == Wire.bulk("v"))
        let error = Wire.error("ERR key is 65537 bytes long, the longest is 65536")
        for command in ["GET", "DEL", "EXISTS", "TTL", "TYPE", "PERSIST", "META", "GETDEL", "STRLEN", "MGET"] {
            #expect(call([command, longest + "k"]) == error)
        }
        #expect(call(["SET", longest + "k", "v"]) == error)
        #expect(call(["MSET", "a", "1", longest + "k", "v"]) == error)
        #expect(call(["EXPIRE", longest + "k", "1"]) == error)
        #expect(call("GET a") == Wire.null)
    }

    @Test func msetStoresAndMGETReturnsSeveralKeys() throws {
        let call = try SocketlessServer().connect()
        #expect(call("MGET a b") == Wire.array(Wire.null, Wire.null))
        #expect(call("MSET a 1 b 2 a 3") == Wire.ok)
        #expect(call("MGET a nothing b a") == Wire.array(Wire.bulk("3"), Wire.null, Wire.bulk("2"), Wire.bulk("3")))
        #expect(call("MGET a") == Wire.bulks("3"))
        #expect(call("MSET a") == Wire.arity("mset"))
        #expect(call("MSET a 1 b") == Wire.arity("mset"))
        #expect(call("MGET") == Wire.arity("mget"))
    }

    @Test func setNXAndXXStoreOnlyIfTheirConditionHolds() throws {
        let call = try SocketlessServer().connect()
        #expect(call("SET k 1 XX") == Wire.null)
        #expect(call("SET k 1 NX") == Wire.ok)
        #expect(call("SET k 2 nx") == Wire.null)
        #expect(call("SET k 2 XX") == Wire.ok)
        #expect(call("SET k 3 GET") == Wire.bulk("2"))
        #expect(call("SET k 4 NX GET") == Wire.bulk("3"))
        #expect(call("SET other 4 XX GET") == Wire.null)
        #expect(call("GET other") == Wire.null)
        #expect(call("SET other 4 NX GET") == Wire.null)
        #expect(call("GET other") == Wire.bulk("4"))
        #expect(call("GET k") == Wire.bulk("3"))
    }

    @Test(arguments: [
        "SET k v NX XX", "SET k v XX NX", "SET k v EX", "SET k v EX 1 PX 1", "SET k v KEEPTTL EX 1",
        "SET k v EX 1 KEEPTTL", "SET k v PX 1 EXAT 2", "SET k v BAD", "SET k v BAD 1", "SET k v POLICY",
        "SET k v POLICY low EX 1", "SET k v EX 1 POLICY low", "SET k v POLICY low POLICY low", "SET k v CODEC",
        "SET k v CODEC raw CODEC raw", "SET k v PERSIST", "SET k v EX nonsense BAD", "SET k v EX 0 NX XX",
        "SET k v EX nonsense EX 1 BAD", "SET k v GET extra", "SET k v POLICY nonsense KEEPTTL",
    ])
    func setRefusesContradictoryOptionsAndStoresNothing(_ line: String) throws {
        let call = try SocketlessServer().connect()
        #expect(call(line) == Wire.syntaxError)
        #expect(call("EXISTS k") == Wire.int(0))
    }

    @Test(arguments: [
        ("SET k v EX 1.5", "ERR value is not an integer or out of range"),
        ("SET k v EX 99999999999999999999", "ERR value is not an integer or out of range"),
        ("SET k v PX +1", "ERR value is not an integer or out of range"),
        ("SET k v EX 0", "ERR invalid expire time in 'set' command"),
        ("SET k v PX -1", "ERR invalid expire time in 'set' command"),
        ("SET k v EXAT 0", "ERR invalid expire time in 'set' command"),
        ("SET k v PXAT -9223372036854775808", "ERR invalid expire time in 'set' command"),
        ("SET k v EX 9223372036854775807", "ERR invalid expire time in 'set' command"),
        ("SET k v EX 9223372036854775", "ERR invalid expire time in 'set' command"),
        ("SET k v PX 9223372036854775807", "ERR invalid expire time in 'set' command"),
        ("SET k v EXAT 9223372036854776", "ERR invalid expire time in 'set' command"),
        ("SET k v POLICY nonsense", badPolicy),
        ("SET k v POLICY -1", badPolicy),
        ("SET k v CODEC nonsense", "ERR the codec must be raw, json, plist or custom"),
        ("SET k", "ERR wrong number of arguments for 'set' command"),
        ("GET", "ERR wrong number of arguments for 'get' command"),
        ("GET a b", "ERR wrong number of arguments for 'get' command"),
    ])
    func setAndGetExplainInvalidArguments(_ line: String, _ text: String) throws {
        let call = try SocketlessServer().connect()
        #expect(call(line) == Wire.error(text))
        #expect(call("EXISTS k") == Wire.int(0))
    }

    @Test("SET accepts all forms of lifetimes") func setWithLifetimes() throws {
        let server = try SocketlessServer(policy: .never)
        let call = server.connect()
        let now = Int(server.engine.now())
        for (option, deadline) in [
            ("EX 10", now + 10_000), ("PX 10", now + 10), ("EXAT \(now / 1000 + 7)", (now / 1000 + 7) * 1000),
            ("PXAT \(now + 3)", now + 3), ("POLICY high", now + 60_000), ("POLICY 0.25", now + 250),
            ("POLICY never", -1), ("EX 1 EX 20", now + 20_000),
        ] {
            #expect(call("SET k v \(option)") == Wire.ok)
            #expect(call("PEXPIRETIME k") == Wire.int(deadline), "\(option)")
        }
        #expect(call("SET k v PX 100") == Wire.ok)
        #expect(call("SET k w KEEPTTL") == Wire.ok)
        #expect(call("PTTL k") == Wire.int(100))
        #expect(call("SET k x KEEPTTL KEEPTTL XX GET") == Wire.bulk("w"))
        #expect(call("PTTL k") == Wire.int(100))
        #expect(call("SET k v") == Wire.ok)
        #expect(call("PTTL k") == Wire.int(-1))
    }

    @Test func setWithADeadlineInThePastRemovesTheEntry() throws {
        let server = try SocketlessServer()
        let call = server.connect()
        let past = server.engine.now() - 1
        for option in ["", " GET", " XX", " XX GET"] {
            #expect(call("SET k old") == Wire.ok)
            let reply = option.hasSuffix("GET") ? Wire.bulk("old") : Wire.ok
            #expect(call("SET k new PXAT \(past)\(option)") == reply)
            #expect(call("GET k") == Wire.null)
        }
        #expect(call("SET k new PXAT \(server.engine.now())") == Wire.ok)
        #expect(call("EXISTS k") == Wire.int(0))
        #expect(call("SET k new NX EXAT 1") == Wire.ok)
        #expect(call("EXISTS k") == Wire.int(0))
    }

    @Test("SET with KEEPTTL keeps an entry's own deadline, but a lifetime that follows the policy restarts")
    func keepttlKeepsTheDeadlineRule() throws {
        let server = try SocketlessServer(policy: .high)
        let call = server.connect()
        #expect(call("SET governed v") == Wire.ok)
        #expect(call("SET own v POLICY never") == Wire.ok)
        server.time.advance(milliseconds: 30_000)
        #expect(call("SET governed w KEEPTTL") == Wire.ok)
        #expect(call("SET own w KEEPTTL") == Wire.ok)
        #expect(call("SET absent w KEEPTTL") == Wire.ok)
        #expect(call("PTTL governed") == Wire.int(60_000))
        #expect(call("PTTL own") == Wire.int(-1))
        #expect(call("PTTL absent") == Wire.int(60_000))
    }

    @Test("SET stores the codec of a value") func codecs() throws {
        let call = try SocketlessServer().connect()
        #expect(call("SET k {} CODEC json") == Wire.ok)
        #expect(call("META k").contains("$5\r\ncodec\r\n$4\r\njson\r\n"))
        #expect(call("SET k {} codec PLIST EX 5") == Wire.ok)
        #expect(call("META k").contains("$5\r\ncodec\r\n$5\r\nplist\r\n"))
        #expect(call("SET k {}") == Wire.ok)
        #expect(call("META k").contains("$5\r\ncodec\r\n$3\r\nraw\r\n"))
    }

    @Test func readsDoNotCreateADatabase() throws {
        let server = try SocketlessServer()
        let call = server.connect()
        #expect(call("SELECT empty") == Wire.ok)
        for line in [
            "GET a", "MGET a b", "EXISTS a", "TTL a", "DEL a b", "UNLINK a", "GETDEL a", "EXPIRE a 1", "PERSIST a",
            "KEYS *", "SCAN 0", "DBSIZE", "META a", "POLICY", "PURGE", "PURGE EXPIRED", "PURGE PREFIX a", "FLUSHDB",
            "FLUSHALL", "SNAPSHOT OPEN", "SNAPSHOT CLOSE", "TYPE a", "STRLEN a", "PEXPIREAT a 1",
        ] {
            #expect(!call(line).hasPrefix("-"), "\(line)")
        }
        #expect(server.engine.databases.isEmpty)
        #expect(call("SET a 1") == Wire.ok)
        #expect(server.engine.databases.map(\.name) == ["empty"])
    }

    @Test("values of 1 MiB are stored and returned") func largeValues() throws {
        let call = try SocketlessServer().connect()
        let value = String(repeating: "0123456789abcdef", count: 1 << 16)
        #expect(call(["SET", "big", value]) == Wire.ok)
        #expect(call("STRLEN big") == Wire.int(1 << 20))
        #expect(call("GET big") == Wire.bulk(value))
        #expect(call("MGET big big") == Wire.bulks(value, value))
    }
}
