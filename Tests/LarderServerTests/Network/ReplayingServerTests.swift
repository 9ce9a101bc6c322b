import LarderPlatform
import LarderTestSupport
import Testing

@testable import LarderEngine
@testable import LarderServer

/// Tests of a server that accepts connections while the journal is being replayed.
@Suite(.serialized) struct ReplayingServerTests {
    /// Starts a server with a copy of another one's files: what it finds after the other one got SIGKILL.
    private func server(
        after other: InProcessServer? = nil, threads: Int = 1, faults: JournalFaults? = nil,
        onReplayed: @escaping @Sendable (String) -> Void = { _ in }
    ) throws -> InProcessServer {
        try InProcessServer(copying: other, threads: threads) { options in
            // Without background work, the files do not change while they are copied.
            options.backgroundMaintenance = false
            options.durability = .os
            options.onReplayFailure = { Issue.record("the replay failed: \($0)") }
            options.onReplayed = onReplayed
            options.journalFaults = faults
        }
    }

    /// Returns a server whose databases `early` and `late` have an entry in the journal.
    private func filledServer() throws -> InProcessServer {
        let server = try self.server()
        let client = try server.connect()
        for name in ["early", "late"] {
            #expect(try client.call("SELECT \(name)") == Wire.ok)
            #expect(try client.call("SET k \(name)") == Wire.ok)
        }
        return server
    }

    /// A server that has replayed `early`, and replays `late` when the gate is opened.
    private struct HeldReplay {
        let first: InProcessServer
        let server: InProcessServer
        let gate: Gate

        func end() {
            gate.open()
            server.stop()
            first.stop()
        }
    }

    private func heldReplay(threads: Int = 1, faults: JournalFaults? = nil) throws -> HeldReplay {
        let gate = Gate(isClosed: true)
        let first = try filledServer()
        let second = try server(after: first, threads: threads, faults: faults) { if $0 == "early" { gate.pass() } }
        gate.waitUntil()
        return HeldReplay(first: first, server: second, gate: gate)
    }

    /// Returns a client that has selected a database and sent a request.
    private func client(_ server: InProcessServer, _ database: String, _ request: String) throws -> SocketClient {
        let client = try server.connect()
        #expect(try client.call("SELECT \(database)") == Wire.ok)
        try client.send(request.split(separator: " ").map(String.init))
        return client
    }

    private func hasReply(_ client: SocketClient) -> Bool {
        var byte: UInt8 = 0
        return recv(client.descriptor, &byte, 1, Int32(MSG_PEEK) | Int32(MSG_DONTWAIT)) > 0
    }

    @Test(arguments: [1, 2]) func requestsWaitOnlyForWhatTheyUse(_ threads: Int) throws {
        let replay = try heldReplay(threads: threads)
        defer { replay.end() }
        let (second, gate) = (replay.server, replay.gate)
        let other = try second.connect()
        #expect(try other.call("PING") == "+PONG\r\n")
        #expect(try other.call("CLIENT SETNAME other") == Wire.ok)
        #expect(try other.call("COMMAND COUNT").hasPrefix(":"))
        #expect(try other.call("SELECT early") == Wire.ok)
        #expect(try other.call("GET k") == Wire.bulk("early"))
        #expect(try other.call("SET k 2") == Wire.ok)
        #expect(try other.call("INCR k") == Wire.int(3))
        #expect(try other.call("MGET k none") == Wire.array(Wire.bulk("3"), Wire.null))
        let waiting = [
            (try client(second, "late", "GET k"), Wire.bulk("late")),
            (try client(second, "late", "STRLEN k"), Wire.int(4)),
            (try client(second, "late", "SET new 1"), Wire.ok),
            (try client(second, "early", "DBSIZE"), Wire.int(1)),
            (try client(second, "early", "COPY k copied DB late"), Wire.int(1)),
            (try client(second, "early", "MULTI"), Wire.ok),
            (try client(second, "early", "EVAL return(1) 0"), Wire.int(1)),
            (try client(second, "0", "SET k 0"), Wire.ok),
        ]
        for _ in 0..<4 { #expect(try second.connect().call("PING") == "+PONG\r\n") }
        #expect(!waiting.contains { hasReply($0.0) })
        let third = try server(after: second)
        defer { third.stop() }
        gate.open()
        for (client, reply) in waiting { #expect(try String(decoding: client.receive(), as: UTF8.self) == reply) }
        let late = try third.connect()
        #expect(try late.call("SELECT early") == Wire.ok)
        #expect(try late.call("GET k") == Wire.bulk("3"))
        #expect(try late.call("SELECT late") == Wire.ok)
        #expect(try late.call("GET k") == Wire.bulk("late"))
        #expect(try late.call("DBSIZE") == Wire.int(1))
        // Commands need no more checks after the replay.
        #expect(try other.call("GET copied") == Wire.null)
    }

    /// The origin's outbox is read when the replay is over.
    @Test(arguments: [1, 2]) func anOriginDoesNotDelayOtherDatabases(_ threads: Int) throws {
        let origin = try server()
        defer { origin.stop() }
        let first = try filledServer()
        defer { first.stop() }
        let setting = try first.connect()
        #expect(try setting.call("SELECT late") == Wire.ok)
        #expect(try setting.call("ORIGIN unix://\(origin.socketPath) BEHIND") == Wire.ok)
        #expect(try setting.call("SET queued 1") == Wire.ok)
        let gate = Gate(isClosed: true)
        let second = try server(after: first, threads: threads) { if $0 == "early" { gate.pass() } }
        defer { second.stop() }
        gate.waitUntil()
        let waiting = [
            (try client(second, "late", "GET queued"), Wire.bulk("1")),
            (try client(second, "late", "SET k 1"), Wire.ok),
            (try client(second, "late", "ORIGIN"), ""),
        ]
        let other = try second.connect()
        #expect(try other.call("SELECT early") == Wire.ok)
        #expect(try other.call("GET k") == Wire.bulk("early"))
        #expect(!waiting.contains { hasReply($0.0) })
        gate.open()
        for (client, reply) in waiting {
            let received = try String(decoding: client.receive(), as: UTF8.self)
            #expect(received == reply || reply.isEmpty && received.contains("unix://"))
        }
    }

    /// Returns the value of a field in the reply to INFO; nil if it is missing.
    private func field(_ info: String, _ name: String) -> String? {
        info.split(separator: "\r\n").first { $0.hasPrefix(name + ":") }.map { String($0.dropFirst(name.count + 1)) }
    }

    @Test(arguments: [1, 2]) func commandsThatNeedNoEntriesDoNotWait(_ threads: Int) throws {
        let replay = try heldReplay(threads: threads)
        defer { replay.end() }
        let (second, gate) = (replay.server, replay.gate)
        let info = try second.connect().call("INFO everything")
        #expect(field(info, "loading") == "1" && field(info, "async_loading") == "1")
        let total = try #require(field(info, "loading_total_bytes").flatMap(Int.init))
        let loaded = try #require(field(info, "loading_loaded_bytes").flatMap(Int.init))
        #expect(loaded > 0 && loaded < total)
        #expect(field(info, "loading_loaded_perc").flatMap(Double.init).map { $0 > 0 && $0 < 100 } == true)
        #expect(field(info, "databases") == "2" && field(info, "database_late") == nil)
        // A slow machine may not count the entries in time.
        var keyspace = ""
        for _ in 0..<100 where field(keyspace, "database_early") == nil {
            keyspace = try second.connect().call("INFO keyspace")
        }
        #expect(field(keyspace, "database_early")?.hasPrefix("keys=1,") == true)
        #expect(field(keyspace, "uncounted_databases") == "1")
        for line in [
            "INFO", "INFO persistence", "SLOWLOG GET", "SLOWLOG LEN", "SLOWLOG RESET", "CONFIG GET *", "CLIENT LIST",
            "MEMORY STATS", "MEMORY DOCTOR", "MEMORY PURGE", "LATENCY LATEST", "LATENCY DOCTOR", "LATENCY HISTOGRAM",
            "LATENCY RESET", "TIME", "ROLE", "LASTSAVE", "ACL WHOAMI", "COMMAND DOCS get", "CONFIG SET maxmemory 64mb",
            "CONFIG SET maxmemory 1mb notify-keyspace-events KEA", "CONFIG RESETSTAT", "PUBLISH c m",
            "SUBSCRIBE c __change@late__:k", "PUBSUB CHANNELS", "MONITOR",
        ] {
            for database in ["0", "early", "late"] {
                let reply = try client(second, database, line).receive()
                #expect(reply.first != UInt8(ascii: "-"), "\(line): \(String(decoding: reply, as: UTF8.self))")
            }
        }
        let waiting = try [
            client(second, "late", "MEMORY USAGE k"), client(second, "early", "DBSIZE"),
            client(second, "early", "SAVE"), client(second, "early", "FLUSHALL"),
        ]
        let databases = String(decoding: try client(second, "early", "DATABASES").receive(), as: UTF8.self)
        let (early, late) = try #require(
            databases.firstRange(of: "late").map { (databases[..<$0.lowerBound], databases[$0.lowerBound...]) })
        #expect(early.contains("entries\r\n:1\r\n") && early.contains("state\r\n$4\r\nopen\r\n"))
        #expect(late.contains("policy\r\n$6\r\nlowest\r\n") && late.contains("interval\r\n:604800000\r\n"))
        #expect(late.contains("entries\r\n:-1\r\n") && late.contains("state\r\n$7\r\nloading\r\n"))
        #expect(try client(second, "early", "MEMORY USAGE k").receive().first == UInt8(ascii: ":"))
        let (_, output, _) = try ChildProcess.run(
            DaemonProcess.program("larderctl"), ["--socket", second.socketPath, "doctor", "--json"])
        #expect(output.contains(#""database-unusable","reason":"the journal is still being replayed""#), "\(output)")
        for _ in 0..<4 { #expect(try second.connect().call("PING") == "+PONG\r\n") }
        #expect(!waiting.contains { hasReply($0) })
        gate.open()
        for client in waiting { #expect(try client.receive().first != UInt8(ascii: "-")) }
        let after = try second.connect().call("INFO everything")
        #expect(field(after, "loading") == "0" && field(after, "async_loading") == "0")
        #expect(field(after, "loading_total_bytes") == nil)
        #expect(try !second.connect().call("DATABASES").contains("loading"))
    }

    /// The failed commit is rolled back when the replay is over.
    @Test(arguments: [1, 2]) func aCommitThatFailsDuringTheReplayBlocksNoEventLoop(_ threads: Int) throws {
        let (isFailing, attempts) = (Guarded(false), Guarded(0))
        let faults = JournalFaults { call, _ in
            guard case .write = call, isFailing.value else { return nil }
            attempts.with { $0 += 1 }
            return .fail(EIO)
        }
        let replay = try heldReplay(threads: threads, faults: faults)
        defer {
            isFailing.value = false
            replay.end()
        }
        let server = replay.server
        isFailing.value = true
        let writer = try client(server, "early", "SET new 1")
        for _ in 0..<2000 where attempts.value < 1 { nap() }
        isFailing.value = false
        for _ in 0..<20 {
            let other = try server.connect()
            #expect(try other.call("INFO").hasPrefix("$"))
            #expect(try other.call("SELECT early") == Wire.ok)
            #expect(try other.call("GET k") == Wire.bulk("early"))
        }
        #expect(!hasReply(writer))
        replay.gate.open()
        #expect(try writer.receive().first == UInt8(ascii: "-"))
        #expect(attempts.value == 1)
        #expect(try client(server, "early", "GET new").receive() == Array(Wire.null.utf8))
        #expect(try client(server, "early", "GET k").receive() == Array(Wire.bulk("early").utf8))
        #expect(try client(server, "late", "GET k").receive() == Array(Wire.bulk("late").utf8))
    }

    @Test(arguments: [true, false]) func aStopWaitsForTheReplay(_ isCommand: Bool) throws {
        let replay = try heldReplay()
        defer { replay.end() }
        let (second, gate) = (replay.server, replay.gate)
        let writer = try client(second, "early", "SET k 2")
        #expect(try writer.receive() == Array(Wire.ok.utf8))
        let reader = try client(second, "late", "GET k")
        let stopping = try isCommand ? client(second, "0", "SHUTDOWN") : nil
        if !isCommand { second.beginStopping() }
        gate.open()
        #expect(try reader.receive() == Array(Wire.bulk("late").utf8))
        second.stop()
        withExtendedLifetime(stopping) {}
        let third = try server(after: second)
        defer { third.stop() }
        for (name, value) in [("early", "2"), ("late", "late")] {
            #expect(try client(third, name, "GET k").receive() == Array(Wire.bulk(value).utf8))
        }
    }
}
