import LarderEngine
import Testing

@testable import LarderServer

@Suite struct ConnectionCommandTests {
    @Test func pingEchoAndQuitReplyAsInRedis() throws {
        let call = try SocketlessServer().connect()
        #expect(call("PING") == "+PONG\r\n")
        #expect(call("ping hello") == Wire.bulk("hello"))
        #expect(call("PING a b") == Wire.arity("ping"))
        #expect(call("ECHO hello") == Wire.bulk("hello"))
        #expect(call("ECHO") == Wire.arity("echo"))
        #expect(call("QUIT") == Wire.ok)
        #expect(call.session.isClosing)
        #expect(call("PING") == "", "requests after QUIT get no reply")
    }

    @Test func unknownCommandsReturnAnErrorWithTheirArguments() throws {
        let call = try SocketlessServer().connect()
        #expect(call("NOSUCH") == Wire.error("ERR unknown command 'NOSUCH', with args beginning with: "))
        #expect(
            call("NoSuch a b") == Wire.error("ERR unknown command 'NoSuch', with args beginning with: 'a' 'b' "))
        #expect(
            call(["x\r\ny", "a\nb"])
                == Wire.error("ERR unknown command 'x  y', with args beginning with: 'a b' "))
        let long = String(repeating: "a", count: 300)
        let cut = String(repeating: "a", count: 128)
        #expect(
            call([long, long, long]) == Wire.error("ERR unknown command '\(cut)', with args beginning with: '\(cut)' "))
        // A Kelvin sign is not treated as the letter K, although Unicode maps it to the lower-case k.
        #expect(call(["\u{212A}EYS", "*"]).hasPrefix("-ERR unknown command"))
        #expect(call([""]) == Wire.error("ERR unknown command '', with args beginning with: "))
        call.feed(Array("*1\r\n$3\r\n\u{0}ab\r\n".utf8) + Array("*1\r\n$2\r\n".utf8) + [0xFF, 0xFE, 13, 10])
        let count = call.session.replyQueue.sendableCount
        let bytes = call.session.replies.withBytes { Array($0[..<count]) }
        let raw =
            Array("-ERR unknown command '', with args beginning with: \r\n-ERR unknown command '".utf8) + [0xFF, 0xFE]
            + Array("', with args beginning with: \r\n".utf8)
        #expect(bytes == raw)
    }

    @Test("HELLO selects the protocol version and describes the server") func hello() throws {
        let server = try SocketlessServer()
        let call = server.connect()
        func map(_ header: String, _ version: Int) -> String {
            header + Wire.bulk("server") + Wire.bulk("redis") + Wire.bulk("version") + Wire.bulk("7.0.0")
                + Wire.bulk("proto") + Wire.int(version) + Wire.bulk("id") + Wire.int(Int(call.session.id))
                + Wire.bulk("mode") + Wire.bulk("standalone") + Wire.bulk("role") + Wire.bulk("master")
                + Wire.bulk("modules") + "*0\r\n"
        }
        #expect(call("HELLO") == map("*14\r\n", 2))
        #expect(call("HELLO 3") == map("%7\r\n", 3))
        #expect(call("GET nothing") == Wire.null3)
        #expect(call("HELLO 3 AUTH default secret SETNAME me") == map("%7\r\n", 3))
        #expect(call("CLIENT GETNAME") == Wire.bulk("me"))
        #expect(call("HELLO 2") == map("*14\r\n", 2))
        #expect(call("GET nothing") == Wire.null)
        for (line, text) in [
            ("HELLO 4", "NOPROTO unsupported protocol version"),
            ("HELLO 1", "NOPROTO unsupported protocol version"),
            ("HELLO x", "ERR Protocol version is not an integer or out of range"),
            ("HELLO 3 AUTH someone secret", "WRONGPASS invalid username-password pair or user is disabled."),
            ("HELLO 3 AUTH default", "ERR Syntax error in HELLO option 'AUTH'"),
            ("HELLO 3 SETNAME", "ERR Syntax error in HELLO option 'SETNAME'"),
            ("HELLO 3 BAD", "ERR Syntax error in HELLO option 'BAD'"),
        ] {
            #expect(call(line) == Wire.error(text), "\(line)")
        }
        #expect(call("GET nothing") == Wire.null, "a HELLO that failed changes nothing")
    }

    @Test func selectAcceptsNumbersAndNames() throws {
        let server = try SocketlessServer()
        let call = server.connect()
        #expect(call("SET k zero") == Wire.ok)
        #expect(call("SELECT books") == Wire.ok)
        #expect(call("GET k") == Wire.null)
        #expect(call("SET k book") == Wire.ok)
        #expect(call("SELECT 0") == Wire.ok)
        #expect(call("GET k") == Wire.bulk("zero"))
        #expect(call("SELECT 15") == Wire.ok)
        let invalid =
            "ERR invalid database name: a name has 1 to 64 characters of a-z, 0-9, '.', '_' and '-', begins with a "
            + "letter, a digit or '_', and is 0 to 15 if it is a number"
        for (name, text) in [
            ("16", "ERR DB index is out of range"), ("-1", "ERR DB index is out of range"),
            ("2147483647", "ERR DB index is out of range"),
            ("9223372036854775807", "ERR value is out of range, value must between -2147483648 and 2147483647"),
            ("Books", invalid), ("a/b", invalid),
            ("..", invalid), ("", invalid), ("01", invalid), (String(repeating: "a", count: 65), invalid),
            ("ä", invalid), ("99999999999999999999999", invalid),
        ] {
            #expect(call(["SELECT", name]) == Wire.error(text), "\(name)")
        }
        #expect(call("SELECT") == Wire.arity("select"))
    }

    @Test("CLIENT ID, GETNAME and SETNAME identify the connection") func client() throws {
        let server = try SocketlessServer()
        let call = server.connect()
        #expect(call("CLIENT ID") == Wire.int(Int(call.session.id)))
        #expect(server.connect()("CLIENT ID") == Wire.int(Int(call.session.id) + 1))
        #expect(call("CLIENT GETNAME") == Wire.null)
        #expect(call("CLIENT SETNAME me") == Wire.ok)
        #expect(call("client getname") == Wire.bulk("me"))
        #expect(call(["CLIENT", "SETNAME", ""]) == Wire.ok)
        #expect(call("CLIENT GETNAME") == Wire.null)
        #expect(call("CLIENT SETINFO LIB-NAME redis-py") == Wire.ok)
        #expect(call("CLIENT SETINFO lib-ver 5.0") == Wire.ok)
        // Valkey's clients also send these.
        for line in ["CLIENT CAPA redirect", "READONLY", "READWRITE"] { #expect(call(line) == Wire.ok) }
        #expect(call("CLIENT CAPA") == Wire.arity("client|capa"))
        let plain = "cannot contain spaces, newlines or special characters."
        for (words, text) in [
            (["CLIENT", "SETNAME", "a b"], "ERR Client names \(plain)"),
            (["CLIENT", "SETNAME", "a\n"], "ERR Client names \(plain)"),
            (["CLIENT", "SETNAME", String(repeating: "a", count: 257)], "ERR Client names \(plain)"),
            (["CLIENT", "SETINFO", "LIB-NAME", "a b"], "ERR lib-name \(plain)"),
            (["CLIENT", "SETINFO", "LIB-VER", "a b"], "ERR lib-ver \(plain)"),
            (["CLIENT", "SETINFO", "BAD", "a"], "ERR Unrecognized option 'BAD'"),
            (["CLIENT", "BAD"], "ERR unknown subcommand 'BAD'. Try CLIENT HELP."),
            (["CLIENT"], "ERR wrong number of arguments for 'client' command"),
            (["CLIENT", "ID", "x"], "ERR wrong number of arguments for 'client|id' command"),
            (["CLIENT", "SETNAME"], "ERR wrong number of arguments for 'client|setname' command"),
        ] {
            #expect(call(words) == Wire.error(text), "\(words)")
        }
        #expect(call("CLIENT HELP").hasPrefix("*"))
        #expect(call("COMMAND HELP").hasPrefix("*"))
    }
}
