import LarderPlatform
import LarderTestSupport
import Testing

@testable import LarderEngine
@testable import LarderServer

/// Tests of short commands that build long values.
@Suite(.serialized) struct LongBuildTests {
    private static let end = Database.largeValueBytesMin

    /// Regression test: four concurrent commands took four times the memory of one.
    @Test func longValuesAreBuiltOneAtATimeToLimitMemory() throws {
        var limits = Limits()
        limits.valueBytesMax = Self.end + 100
        let server = try InProcessServer(limits: limits)
        defer { server.stop() }
        let clients = try (0..<6).map { _ in try server.connect() }
        let requests = [
            "SETRANGE a \(Self.end) x", "SETBIT b \(8 * Self.end) 1", "BITFIELD c SET u8 \(8 * Self.end) 1",
            "SETRANGE d \(Self.end) x", "SETRANGE e \(Self.end) x", "SETRANGE f \(Self.end) x",
        ]
        for (client, request) in zip(clients, requests) {
            try client.send(request.split(separator: " ").map(String.init))
        }
        for client in clients { #expect(try client.receive().first != UInt8(ascii: "-")) }
        let call = clients[0]
        for key in ["a", "b", "c", "d", "e", "f"] {
            #expect(try call.call("STRLEN \(key)") == ":\(Self.end + 1)\r\n")
        }
        // Commands that extend a value in place use the same thread.
        #expect(try call.call("APPEND a y") == ":\(Self.end + 2)\r\n")
        #expect(try call.call("BITOP NOT g a") == ":\(Self.end + 2)\r\n")
        #expect(try call.call("GETRANGE a \(Self.end) -1") == Wire.bulk("xy"))
        #expect(try call.call("GETBIT b \(8 * Self.end)") == ":1\r\n")
    }

    /// A transaction starts again if it must build a long value. Its commands are counted, and shown to MONITOR, once.
    @Test func aTransactionThatStartsAgainIsCountedOnce() throws {
        let server = try InProcessServer()
        defer { server.stop() }
        let (call, monitor) = (try server.connect(), try server.connect())
        #expect(try call.call("SET text x") == Wire.ok)
        #expect(try monitor.call("MONITOR") == Wire.ok)
        let commands = [
            ["STRLEN", "text"], ["INCR", "text"], ["EVAL", "return 1", "0"], ["SETRANGE", "long", "\(Self.end)", "x"],
        ]
        _ = try call.call("MULTI")
        for words in commands { #expect(try call.call(words) == Array("+QUEUED\r\n".utf8)) }
        #expect(try call.call("EXEC").hasPrefix("*4"))
        #expect(try call.call("PING end") == Wire.bulk("end"))
        var shown: [String] = []
        while shown.last?.contains("\"PING\"") != true {
            shown.append(String(decoding: try monitor.receive(), as: UTF8.self))
        }
        for name in ["STRLEN", "INCR", "EVAL", "SETRANGE"] {
            #expect(shown.count { $0.contains("\"\(name)\"") } == 1, "\(name): \(shown)")
        }
        let info = try call.call("INFO commandstats")
        #expect(info.contains("cmdstat_strlen:calls=1,"), "\(info)")
        #expect(info.firstMatch(of: #/cmdstat_incr:calls=1,.*failed_calls=1\b/#) != nil, "\(info)")
        #expect(try call.call("INFO errorstats").contains("errorstat_ERR:count=1\r"))
    }

    /// Only the thread for long values builds them, for any command.
    @Test(arguments: [
        "SETRANGE k \(end) x", "SETBIT k \(8 * end) 1", "BITFIELD k SET u8 \(8 * end) 1", "APPEND long x",
        "BITOP NOT k long", "SETRANGE long 0 x", "SETBIT long 0 1",
    ])
    func onlyTheBuildThreadBuildsLongValues(_ line: String) throws {
        let server = try SocketlessServer()
        let call = server.connect()
        #expect(call("SETRANGE long \(Self.end) x") == Wire.int(Self.end + 1))
        let session = Session(id: 77, server: server.state)
        session.parser.append(encodeRequest(line))
        guard case .cold = CommandRunner(session).run(outputBytesMax: .max) else {
            Issue.record("it ran on the loop")
            return
        }
        let elsewhere = CommandRunner.Slice(commandsMax: 2, until: .max, mayBuildLong: false)
        guard case .cold = CommandRunner(session).run(outputBytesMax: .max, slice: elsewhere) else {
            Issue.record("it ran on any thread")
            return
        }
        #expect(session.isCommandLong)
        guard
            case .needsInput = CommandRunner(session).run(
                outputBytesMax: .max, slice: CommandRunner.Slice(commandsMax: 2, until: .max))
        else {
            Issue.record("it did not run at all")
            return
        }
        server.commit()
        session.replyQueue.releaseDecided()
        #expect(session.replies.withBytes { $0.first } != UInt8(ascii: "-"))
        session.end()
    }

    /// Regression test: a transaction of short commands built all its long values in memory at the same time.
    @Test("all long values that a transaction builds may together be as long as one value")
    func theSizeOfValuesBuiltByATransactionIsLimited() throws {
        var limits = Limits()
        limits.valueBytesMax = Self.end + 1000
        let server = try SocketlessServer(limits: limits)
        let call = server.connect()
        _ = call("MULTI")
        for key in ["a", "b", "c"] { _ = call("SETRANGE \(key) \(Self.end) x") }
        _ = call("SET d v")
        let reply = call("EXEC")
        #expect(
            reply.hasPrefix("*4\r\n:\(Self.end + 1)\r\n-ERR the values that one command or transaction builds exceed")
        )
        #expect(reply.hasSuffix("\r\n+OK\r\n"))
        #expect(call("MGET b c d") == Wire.array(Wire.null, Wire.null, Wire.bulk("v")))
    }

    /// The whole EXEC moves to the thread that builds long values, and has no effect before it runs there. The many
    /// keys are in all shards, whose locks the transaction holds when it finds that it must move.
    @Test(.timeLimit(.minutes(10))) func aTransactionWithALongValueRunsOnTheBuildThread() throws {
        let server = try InProcessServer()
        defer { server.stop() }
        let client = try server.connect()
        _ = try client.call("SET n 5")
        _ = try client.call("MULTI")
        _ = try client.call("INCR n")
        _ = try client.call("EXISTS " + (0..<200).map { "absent\($0)" }.joined(separator: " "))
        _ = try client.call("SETRANGE k \(Self.end) x")
        _ = try client.call("APPEND k y")
        #expect(try client.call("EXEC") == "*4\r\n:6\r\n:0\r\n:\(Self.end + 1)\r\n:\(Self.end + 2)\r\n")
        #expect(try client.call("GET n") == Wire.bulk("6"))
    }
}
