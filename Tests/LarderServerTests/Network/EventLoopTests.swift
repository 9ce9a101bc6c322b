import LarderEngine
import LarderPlatform
import LarderTestSupport
import Testing

@testable import LarderServer

/// Tests of sockets and event loops in the test's own process, so that sanitizers can check them.
@Suite(.serialized) struct EventLoopTests {
    private static let fill = String(repeating: "0123456789abcdef", count: 640)

    @Test(arguments: [1, 2]) func repliesAreInTheOrderOfRequests(_ threads: Int) throws {
        let server = try InProcessServer(threads: threads)
        defer { server.stop() }
        let clients = try (0..<8).map { _ in try server.connect() }
        for (number, client) in clients.enumerated() {
            var requests: [UInt8] = []
            for index in 0..<500 {
                requests += encodeRequest("SET k\(number) \(index)") + encodeRequest("GET k\(number)")
                if index % 100 == 0 { requests += encodeRequest("DBSIZE") + encodeRequest("SCAN 0") }
            }
            try client.send(requests)
        }
        for client in clients {
            for index in 0..<500 {
                #expect(try client.receive() == Array(Wire.ok.utf8))
                #expect(try client.receive() == Array(Wire.bulk("\(index)").utf8))
                if index % 100 == 0 { _ = try client.receive(2) }
            }
        }
    }

    /// A client that closes its sending side still gets every reply. This holds even if its commands wait until the
    /// client has read earlier replies.
    @Test(arguments: [1, 2]) func halfClosedClientsGetTheirReplies(_ threads: Int) throws {
        var limits = Limits()
        limits.outputBytesPause = 50_000
        let server = try InProcessServer(threads: threads, limits: limits)
        defer { server.stop() }
        let client = try server.connect()
        var requests = encodeRequest(["SET", "k", Self.fill])
        for _ in 0..<300 { requests += encodeRequest("GET k") }
        requests += encodeRequest("DBSIZE") + encodeRequest("SET last 1") + encodeRequest("GET last")
        try client.send(requests)
        client.endSending()
        let replies = RawReply.split(try client.receiveToEnd())
        #expect(replies.count == 304)
        #expect(replies[1...300].allSatisfy { $0 == Array(Wire.bulk(Self.fill).utf8) })
        #expect(replies.suffix(3) == [Array(":1\r\n".utf8), Array("+OK\r\n".utf8), Array("$1\r\n1\r\n".utf8)])
    }

    @Test func halfClosedClientsGetRepliesOfWritesThatWaited() throws {
        let server = try InProcessServer { $0.pendingBytesMax = 20_000 }
        defer { server.stop() }
        let clients = try (0..<4).map { _ in try server.connect() }
        var requests: [UInt8] = []
        for index in 0..<200 { requests += encodeRequest(["SET", "k\(index)", Self.fill]) }
        for client in clients {
            try client.send(requests)
            client.endSending()
        }
        for client in clients {
            #expect(try client.receiveToEnd() == Array(String(repeating: Wire.ok, count: 200).utf8))
        }
    }

    /// A client may send all its requests before it reads the first reply, as many client libraries do.
    @Test func aClientMaySendAllRequestsBeforeReadingReplies() throws {
        var limits = Limits()
        limits.outputBytesPause = 10_000
        let server = try InProcessServer(limits: limits)
        defer { server.stop() }
        let client = try server.connect()
        try client.send(encodeRequest(["SET", "k", Self.fill]))
        let requests = (0..<4000).flatMap { encodeRequest(["ECHO", "\($0) " + Self.fill.prefix(1000)]) }
        try client.send(requests + encodeRequest("GET k"))
        #expect(try client.receive() == Array(Wire.ok.utf8))
        for index in 0..<4000 {
            #expect(try client.receive() == Array(Wire.bulk("\(index) " + Self.fill.prefix(1000)).utf8))
        }
        #expect(try client.receive() == Array(Wire.bulk(Self.fill).utf8))
    }

    @Test("total_net_output_bytes includes replies that the socket does not accept at once")
    func longRepliesAreCountedAsOutput() throws {
        let server = try InProcessServer()
        defer { server.stop() }
        let client = try server.connect()
        let value = String(repeating: Self.fill, count: 400)
        #expect(try client.call(["SET", "k", value]) == Array(Wire.ok.utf8))
        #expect(try client.call("GET k").utf8.count > value.utf8.count)
        let info = try client.call("INFO stats")
        let field = try #require(info.split(separator: "\r\n").first { $0.hasPrefix("total_net_output_bytes:") })
        #expect(try #require(Int(field.dropFirst(23))) > value.utf8.count, "\(field)")
    }

    @Test func aClientThatNeverReadsIsDisconnected() throws {
        var limits = Limits()
        limits.outputBytesPause = 10_000
        limits.inputBytesPause = 10_000
        limits.outputStallMilliseconds = 1
        let server = try InProcessServer(limits: limits)
        defer { server.stop() }
        let idle = try server.connect()
        #expect(try idle.call("PING") == "+PONG\r\n")
        let client = try server.connect()
        let requests = (0..<20_000).flatMap { _ in encodeRequest(["ECHO", String(Self.fill.prefix(1000))]) }
        // Send until the server reads no more, long before everything is sent. Then the server closes the connection,
        // and sending fails.
        #expect(throws: SocketClient.Failure.self) { try client.send(requests) }
        let line = server.logLines.line(containing: "bytes of replies were unread")
        #expect(line?.contains(" info client ") == true)
        #expect(try idle.call("PING") == "+PONG\r\n", "a client without unread replies stays connected")
    }

    @Test("a thousand connections are served at the same time", arguments: [1, 2])
    func aThousandConnections(_ threads: Int) throws {
        let server = try InProcessServer(threads: threads)
        defer { server.stop() }
        var clients = try (0..<1000).map { _ in try server.connect() }
        for (index, client) in clients.enumerated() { try client.send(["SET", "k\(index)", "\(index)"]) }
        for client in clients { #expect(try client.receive() == Array(Wire.ok.utf8)) }
        for (index, client) in clients.enumerated() {
            #expect(try client.call("GET k\(index)") == Wire.bulk("\(index)"))
        }
        #expect(try server.connectedClients() >= 1001)
        clients = []
        while try server.connectedClients() > 2 { nap() }
    }

    @Test func clientsAboveTheMaximumAreRefused() throws {
        var limits = Limits()
        limits.clientsMax = 3
        let server = try InProcessServer(limits: limits)
        defer { server.stop() }
        let clients = try (0..<10).map { _ in try server.connect() }
        var served: [SocketClient] = []
        for client in clients {
            try? client.send(["PING"])
            let reply = String(decoding: (try? client.receive()) ?? [], as: UTF8.self)
            if reply == "+PONG\r\n" { served.append(client) } else { #expect(reply.contains("max number of clients")) }
        }
        #expect(served.count == 3)
        #expect(server.logLines.line(containing: "refused a connection")?.contains("--max-clients") == true)
        served[0].close()
        // New clients are refused until the server has noticed that the first one disconnected.
        while true {
            let client = try server.connect()
            try? client.send(["PING"])
            if (try? client.receive()) == Array("+PONG\r\n".utf8) { break }
        }
    }

    @Test("clients that disconnect in the middle of a request are cleaned up")
    func clientsThatDisconnectMidRequestAreCleanedUp() throws {
        let server = try InProcessServer()
        defer { server.stop() }
        let whole = encodeRequest(["SET", "k", Self.fill])
        for cut in [0, 1, 5, 30, 5000, whole.count - 1] {
            let client = try server.connect()
            try client.send(Array(whole[..<cut]))
            client.close()
        }
        let reader = try server.connect()
        try reader.send(whole)
        for _ in 0..<500 { try reader.send(encodeRequest("GET k")) }
        _ = try reader.receive(3)
        reader.close()
        let other = try server.connect()
        #expect(try other.call("STRLEN k") == Wire.int(Self.fill.utf8.count))
        while try server.connectedClients() > 3 { nap() }
    }

    @Test("a value of 100 MB is stored and returned") func aHundredMegabytes() throws {
        let server = try InProcessServer()
        defer { server.stop() }
        let client = try server.connect()
        let count = 100_000_000
        let header = "*3\r\n$3\r\nSET\r\n$3\r\nbig\r\n$\(count)\r\n"
        var request = Array(header.utf8) + [UInt8](repeating: 0, count: count) + [13, 10]
        for index in stride(from: header.utf8.count, to: request.count - 2, by: 4099) {
            request[index] = UInt8(truncatingIfNeeded: index)
        }
        try client.send(request)
        #expect(try client.receive() == Array(Wire.ok.utf8))
        #expect(try client.call("STRLEN big") == Wire.int(count))
        try client.send(["GET", "big"])
        let reply = try client.receive()
        #expect(reply.count == request.count - header.utf8.count + "$\(count)\r\n".utf8.count)
        let isSame = reply.withUnsafeBytes { reply in
            request.withUnsafeBytes {
                memcmp($0.baseAddress! + header.utf8.count, reply.baseAddress! + 12, count + 2) == 0
            }
        }
        #expect(isSame)
        #expect(try client.call("PING") == "+PONG\r\n")
    }

    @Test func snapshotsOfDisconnectedClientsAreClosed() throws {
        let server = try InProcessServer(threads: 2)
        defer { server.stop() }
        let watcher = try server.connect()
        #expect(try watcher.call("SET k v") == Wire.ok)
        for round in 0..<40 {
            let client = try server.connect()
            try client.send(encodeRequest("SNAPSHOT OPEN") + encodeRequest("GET k"))
            if round % 2 == 0 { #expect(try client.receive(2).last == Array(Wire.bulk("v").utf8)) }
            client.close()
        }
        while try !watcher.call("INFO larder").contains("open_snapshots:0\r\n") { nap() }
    }

    @Test func aFailedCommitIsReportedAsAnErrorReply() throws {
        let isFailing = Guarded(false)
        let server = try InProcessServer(threads: 2) { $0.beforeCommit = failing(while: isFailing) }
        defer { server.stop() }
        let client = try server.connect()
        #expect(try client.call("SET k 1") == Wire.ok)
        isFailing.value = true
        let failure = Wire.error("ERR commit in database '0': the write was not committed: no more room")
        try client.send(Array("SET k 2\r\nPING\r\nSET other 2\r\nPURGE PREFIX zzz\r\nECHO x\r\n".utf8))
        let replies = try client.receive(5).map { String(decoding: $0, as: UTF8.self) }
        #expect(replies[0] == failure)
        #expect(replies[1] == "+PONG\r\n")
        #expect(replies[2] == failure)
        #expect(replies[4] == Wire.bulk("x"))
        isFailing.value = false
        #expect(try client.call("MGET k other") == Wire.array(Wire.bulk("1"), Wire.null))
        #expect(try client.call("SET k 3") == Wire.ok)
        #expect(try server.connect().call("GET k") == Wire.bulk("3"))
    }

    // MARK: Stopping

    @Test(arguments: [1, 2]) func stoppingFinishesReceivedCommands(_ threads: Int) throws {
        let server = try InProcessServer(threads: threads)
        let clients = try (0..<4).map { _ in try server.connect() }
        for (number, client) in clients.enumerated() {
            var requests: [UInt8] = []
            for index in 0..<2000 { requests += encodeRequest("SET k\(number):\(index) v") }
            try client.send(requests)
            #expect(try client.receive() == Array(Wire.ok.utf8))
        }
        server.stop()
        var acknowledged = 0
        for client in clients {
            let replies = RawReply.split(try client.receiveToEnd())
            #expect(replies.allSatisfy { $0 == Array(Wire.ok.utf8) })
            acknowledged += replies.count + 1
        }
        #expect(server.logLines.line(containing: "stopping: the test is over") != nil)
        #expect(server.logLines.line(containing: "stopped") != nil)
        #expect(access(server.socketPath, F_OK) != 0, "the socket is gone")
        let engine = try Engine.open(server.directory.path + "/larder")
        #expect(try engine.database().count(includingExpired: false) >= acknowledged)
        engine.shutdown()
    }

    /// If deferred work is still running when its loop has stopped, its result is discarded.
    @Test("the server can stop while deferred work runs", arguments: [1, 2])
    func stoppingWhileAWorkerRuns(_ threads: Int) throws {
        let gate = Gate()
        var limits = Limits()
        limits.stopMilliseconds = 1
        let server = try InProcessServer(threads: threads, limits: limits) {
            // Make the commit pipeline's own thread commit, and wait at the gate. Without `always`, the event loop
            // itself would commit.
            $0.durability = .always
            $0.beforeCommit = { () throws(LarderError) in gate.pass() }
        }
        let clients = try (0..<4).map { _ in try server.connect() }
        #expect(try clients[0].call("SET k v") == Wire.ok)
        gate.close()
        try clients[0].send(encodeRequest("SET k w"))
        gate.waitUntil()
        try clients[1].send(encodeRequest("DBSIZE"))
        try clients[2].send(encodeRequest("SNAPSHOT OPEN"))
        try clients[3].send(encodeRequest("PURGE PREFIX k"))
        server.beginStopping()
        for client in clients { #expect(try client.receiveToEnd().isEmpty) }
        gate.open()
        server.stop()
        #expect(server.logLines.line(containing: "the daemon is stopping") != nil)
    }

    @Test("the server can stop although a client never reads") func stoppingWithAClientThatNeverReads() throws {
        var limits = Limits()
        limits.stopMilliseconds = 1
        let server = try InProcessServer(limits: limits)
        let client = try server.connect()
        #expect(try client.call(["SET", "k", Self.fill]) == Array(Wire.ok.utf8))
        for _ in 0..<200 { try client.send(encodeRequest("GET k")) }
        server.stop()
        #expect(RawReply.split(try client.receiveToEnd()).count <= 200)
    }

    @Test("SHUTDOWN stops the server after pending replies") func shutdownStops() throws {
        let server = try InProcessServer(threads: 2)
        let client = try server.connect()
        try client.send(encodeRequest("SET k v") + encodeRequest("SHUTDOWN"))
        #expect(try client.receiveToEnd() == Array(Wire.ok.utf8))
        #expect(server.logLines.line(containing: "stopping: SHUTDOWN from client") != nil)
        server.stop()
    }
}
