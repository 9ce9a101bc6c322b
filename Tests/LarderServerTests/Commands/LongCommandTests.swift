import LarderPlatform
import LarderTestSupport
import Testing

@testable import LarderEngine
@testable import LarderServer

/// Tests of commands with long values. They have the same effect as commands with short values, and other clients need
/// not wait for them.
@Suite(.serialized) struct LongCommandTests {
    private static let long = [UInt8](repeating: 0x78, count: Database.largeValueBytesMin + 7)

    private func command(_ words: String..., value: [UInt8] = long, after: String...) -> [UInt8] {
        encodeRequest(words.map { Array($0.utf8) } + [value] + after.map { Array($0.utf8) })
    }

    private func bulk(_ bytes: [UInt8]) -> [UInt8] { Array("$\(bytes.count)\r\n".utf8) + bytes + Array("\r\n".utf8) }

    @Test("commands that move to the thread for long values count their reads once", arguments: [0, 64 << 20])
    func longReadsAreCountedOnce(_ memoryBytes: Int) throws {
        let server = try InProcessServer(configure: { $0.memoryBytes = memoryBytes })
        defer { server.stop() }
        let client = try server.connect()
        try client.send(command("SET", "big"))
        #expect(try client.receive() == Array(Wire.ok.utf8))
        for (request, hits, misses) in [
            ("MGET big nope", 1, 1), ("BITOP NOT d big", 1, 0), ("BITOP OR d big nope", 1, 1),
        ] {
            #expect(try client.call("SAVE") == Wire.ok && client.call("CONFIG RESETSTAT") == Wire.ok)
            try client.send(encodeRequest(request))
            _ = try client.receive()
            let info = try client.call("INFO stats")
            #expect(
                info.contains("keyspace_hits:\(hits)\r") && info.contains("keyspace_misses:\(misses)\r"), "\(request)")
        }
    }

    @Test("every command that stores a value accepts long values") func everyCommandThatStoresOneValue() throws {
        let server = try InProcessServer()
        defer { server.stop() }
        let client = try server.connect()
        func expect(_ request: [UInt8], _ reply: String, _ what: Comment) throws {
            try client.send(request)
            #expect(try client.receive() == Array(reply.utf8), what)
        }
        func expectLong(_ key: String) throws {
            try client.send(encodeRequest("GET \(key)"))
            #expect(try client.receive() == bulk(Self.long), "\(key)")
        }
        try expect(command("SET", "a"), Wire.ok, "SET")
        try expectLong("a")
        #expect(try client.call("STRLEN a") == ":\(Self.long.count)\r\n")
        try expect(command("SET", "b", after: "EX", "100"), Wire.ok, "SET EX")
        try expectLong("b")
        #expect(try [":99\r\n", ":100\r\n"].contains(client.call("TTL b")))
        try expect(command("SET", "b", after: "KEEPTTL"), Wire.ok, "SET KEEPTTL")
        #expect(try [":99\r\n", ":100\r\n"].contains(client.call("TTL b")))
        try expect(command("SET", "a", after: "NX"), "$-1\r\n", "SET NX")
        try expect(command("SET", "c", after: "XX"), "$-1\r\n", "SET XX")
        try expect(command("SET", "c", after: "NX", "GET"), "$-1\r\n", "SET NX GET")
        try expectLong("c")
        try expect(command("SET", "a", after: "PXAT", "1"), Wire.ok, "SET of what has expired")
        #expect(try client.call("GET a") == "$-1\r\n")
        try expect(command("SETEX", "d", "100"), Wire.ok, "SETEX")
        try expectLong("d")
        try expect(command("PSETEX", "e", "100000"), Wire.ok, "PSETEX")
        try expectLong("e")
        try expect(command("SETNX", "d"), ":0\r\n", "SETNX")
        try expect(command("SETNX", "f"), ":1\r\n", "SETNX")
        try expectLong("f")
        #expect(try client.call("SET g short") == Wire.ok)
        try expect(command("GETSET", "g"), Wire.bulk("short"), "GETSET")
        try expectLong("g")
        #expect(try client.call("SET g short") == Wire.ok)
        try expect(command("MSET", "h", "1", "i"), Wire.ok, "MSET")
        try expectLong("i")
        // A transaction accepts long values too, within the limit for the size of a transaction.
        #expect(try client.call("MULTI") == Wire.ok)
        try expect(command("SET", "j"), "+QUEUED\r\n", "SET in MULTI")
        #expect(try client.call("EXEC") == "*1\r\n+OK\r\n")
        try expectLong("j")
        // No temporary file of a long value remains.
        let files = try FileSystem.list(server.directory.path + "/larder/JOURNAL")
        #expect(!files.contains { StagedFrame.isName($0) })
    }

    /// Long values send the same keyspace events and invalidations as short ones.
    @Test func longValuesSendEventsAndInvalidations() throws {
        let server = try InProcessServer()
        defer { server.stop() }
        let (client, listener, tracker) = (try server.connect(), try server.connect(), try server.connect())
        #expect(try client.call("CONFIG SET notify-keyspace-events KEA") == Wire.ok)
        try listener.send(encodeRequest("PSUBSCRIBE __keyevent@0__:*"))
        _ = try listener.receive()
        try tracker.send(encodeRequest("HELLO 3"))
        _ = try tracker.receive()
        #expect(try tracker.call("CLIENT TRACKING ON") == Wire.ok)
        try tracker.send(encodeRequest("GET k"))
        _ = try tracker.receive()
        try client.send(command("SET", "k"))
        #expect(try client.receive() == Array(Wire.ok.utf8))
        #expect(try String(decoding: listener.receive(), as: UTF8.self).contains("__keyevent@0__:set"))
        #expect(try String(decoding: tracker.receive(), as: UTF8.self).contains("invalidate"))
    }

    /// Commands of other clients run while a long value is written to the disk, including commands that write.
    @Test(arguments: [1, 2]) func otherClientsAreServedWhileALongValueIsWritten(threads: Int) throws {
        let gate = Gate()
        let server = try InProcessServer(
            threads: threads,
            configure: {
                $0.journalFaults = JournalFaults { call, path in
                    if case .write = call, path.contains("ahead-") { gate.pass() }
                    return nil
                }
            })
        defer {
            gate.open()
            server.stop()
        }
        let (client, second, other) = (try server.connect(), try server.connect(), try server.connect())
        #expect(try other.call("SET a 1") == Wire.ok)
        gate.close()
        try client.send(command("SET", "long"))
        gate.waitUntil()
        // A client that also stores a long value waits for the first client; other clients do not wait.
        try second.send(command("SET", "longer") + encodeRequest("PING"))
        for round in 0..<100 {
            #expect(try other.call("SET a \(round)") == Wire.ok)
            #expect(try other.call("GET a") == Wire.bulk("\(round)"))
        }
        #expect(try other.call("EXISTS long longer") == ":0\r\n")
        gate.open()
        #expect(try client.receive() == Array(Wire.ok.utf8))
        #expect(try second.receive() == Array(Wire.ok.utf8))
        #expect(try second.receive() == Array("+PONG\r\n".utf8))
        #expect(try other.call("EXISTS long longer") == ":2\r\n")
    }

    /// A long value in memory is copied into the reply by another thread, so that the event loop can serve other
    /// clients.
    @Test func aLongReplyIsCopiedByAnotherThread() throws {
        let gate = Gate()
        let server = try InProcessServer(beforeColdSlice: { gate.pass() })
        defer {
            gate.open()
            server.stop()
        }
        let (client, other) = (try server.connect(), try server.connect())
        try client.send(command("SET", "long"))
        #expect(try client.receive() == Array(Wire.ok.utf8))
        gate.close()
        try client.send(encodeRequest("GET long") + encodeRequest("GET long") + encodeRequest("PING"))
        gate.waitUntil()
        #expect(try other.call("SET a 1") == Wire.ok)
        #expect(try other.call("GET a") == Wire.bulk("1"))
        gate.open()
        for _ in 0..<2 { #expect(try client.receive() == bulk(Self.long)) }
        #expect(try client.receive() == Array("+PONG\r\n".utf8))
    }

    @Test func aFailedWriteOfALongValueAffectsNoOtherWrite() throws {
        let server = try InProcessServer(configure: {
            $0.journalFaults = JournalFaults { call, path in
                if case .write = call, path.contains("ahead-") { return .fail(28) }
                return nil
            }
        })
        defer { server.stop() }
        let client = try server.connect()
        try client.send(command("SET", "long") + encodeRequest("SET a 1"))
        #expect(try String(decoding: client.receive(), as: UTF8.self).contains("the write was not committed: write"))
        #expect(try client.receive() == Array(Wire.ok.utf8))
        #expect(try client.call("EXISTS long a") == ":1\r\n")
    }
}
