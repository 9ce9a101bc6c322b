import LarderEngine
import LarderPlatform
import LarderTestSupport
import Testing

@testable import LarderServer

/// Tests of CLIENT TRACKING: which clients are notified of which changes, and that no client keeps stale data.
@Suite struct TrackingTests {
    private static func invalidation(_ keys: String...) -> String {
        ">2\r\n$10\r\ninvalidate\r\n*\(keys.count)\r\n" + keys.map { Wire.bulk($0) }.joined()
    }

    private static let everything = ">2\r\n$10\r\ninvalidate\r\n_\r\n"

    private static func start(
        _ options: String = "", policy: UpdatePolicy = .never, limits: Limits = Limits(),
        configure: (inout EngineOptions) -> Void = { _ in }
    ) throws -> (SocketlessServer, TestClient, TestClient) {
        let server = try SocketlessServer(policy: policy, limits: limits, configure: configure)
        let (reader, writer) = (server.connect(), server.connect())
        _ = reader("HELLO 3")
        #expect(reader("CLIENT TRACKING ON" + (options.isEmpty ? "" : " " + options)) == Wire.ok)
        return (server, reader, writer)
    }

    @Test func invalidationsAreSentAfterTheCommit() throws {
        let (server, reader, writer) = try Self.start()
        _ = writer("SET k v")
        #expect(reader("GET k") == Wire.bulk("v"))
        writer.feed(encodeRequest("SET k w"))
        server.deliver()
        #expect(reader.takeSendable().isEmpty)
        server.commit()
        server.deliver()
        #expect(reader.takeSendable() == Self.invalidation("k"))
        #expect(writer.takeSendable() == Wire.ok)
        // The client is notified only once, until it reads the key again.
        _ = writer("SET k x")
        server.deliver()
        #expect(reader.takeSendable().isEmpty)
    }

    /// Requests on the fast path are tracked too, alone and in a pipeline.
    @Test(arguments: ["GET k", "MGET k l", "EXISTS k", "STRLEN k", "TTL k", "TYPE k"])
    func everyReadIsTracked(_ line: String) throws {
        let (server, reader, writer) = try Self.start()
        _ = writer("SET k v")
        reader.feed(encodeRequest(line) + encodeRequest(line))
        server.commit()
        _ = reader.takeSendable()
        _ = writer("DEL k")
        server.deliver()
        #expect(reader.takeSendable() == Self.invalidation("k"))
    }

    @Test func readsFromTheDiskAreTracked() throws {
        let (server, reader, writer) = try Self.start { $0.memoryBytes = 0 }
        _ = writer("SET k v")
        server.engine.maintain()
        #expect(reader("GET k") == Wire.bulk("v"))
        #expect(reader.colds == 1)
        _ = writer("SET k w")
        server.deliver()
        #expect(reader.takeSendable() == Self.invalidation("k"))
    }

    @Test func readsInTransactionsAreTracked() throws {
        let (server, reader, writer) = try Self.start()
        for line in ["MULTI", "GET k", "SET l v", "EXEC"] { _ = reader(line) }
        server.deliver()
        _ = reader.takeSendable()
        _ = writer("MSET k v l w")
        server.deliver()
        #expect(reader.takeSendable() == Self.invalidation("k"))
    }

    /// A client reads a key after changing it, before its change is reported. This read is tracked, so the client is
    /// notified of later changes by other clients.
    @Test(
        "a read after the client's own change is tracked",
        arguments: [["MULTI", "SET k 1", "GET k", "EXEC"], ["SET k 1", "GET k"]])
    func aReadAfterAnOwnChangeIsTracked(_ lines: [String]) throws {
        let (server, reader, writer) = try Self.start("NOLOOP")
        _ = reader("GET k")
        reader.feed(lines.flatMap { encodeRequest($0) })
        server.commit()
        server.deliver()
        #expect(!reader.takeSendable().contains("invalidate"))
        _ = writer("SET k 2")
        server.deliver()
        #expect(reader.takeSendable() == Self.invalidation("k"))
    }

    /// A write without effect does not end the tracking of a key that was read after an earlier write.
    @Test(
        "a write without effect does not end tracking",
        arguments: [["GET k"], []], [["SET k 1", "GET k"], ["MULTI", "SET k 1", "GET k", "EXEC"]])
    func aWriteWithoutEffectKeepsTrackedKeys(_ first: [String], _ lines: [String]) throws {
        let (server, reader, writer) = try Self.start("NOLOOP")
        for line in first { _ = reader(line) }
        reader.feed((lines + ["SET k 2 NX"]).flatMap { encodeRequest($0) })
        server.commit()
        server.deliver()
        let replies = reader.takeSendable()
        #expect(replies.contains(Wire.bulk("1")) && replies.hasSuffix(Wire.null3), "\(replies)")
        #expect(!replies.contains("invalidate"))
        _ = writer("SET k 3")
        server.deliver()
        #expect(reader.takeSendable() == Self.invalidation("k"))
    }

    /// As in Redis, a client that has read a key is notified of its own change once, before it reads the key again. So
    /// a larder that uses this server as its origin may keep the value that it reads after its own write.
    @Test(arguments: [true, false]) func anOwnChangeIsReportedBeforeTheNextReadOfThePipeline(isRead: Bool) throws {
        let (server, reader, writer) = try Self.start()
        if isRead { _ = reader("GET k") }
        for value in ["1", "2", "3"] {
            reader.feed(encodeRequest("SET k \(value)") + encodeRequest("GET k") + encodeRequest("STRLEN k"))
            server.commit()
            server.deliver()
            let notified = isRead || value != "1" ? Self.invalidation("k") : ""
            #expect(reader.takeSendable() == Wire.ok + notified + Wire.bulk(value) + ":1\r\n")
        }
        // The second change, after which the client does not read the key, is reported with its commit.
        reader.feed(encodeRequest("SET k 4") + encodeRequest("GET k") + encodeRequest("SET k 5"))
        server.commit()
        server.deliver()
        let replies = Wire.ok + Self.invalidation("k") + Wire.bulk("4") + Wire.ok
        #expect([replies + Self.invalidation("k"), Self.invalidation("k") + replies].contains(reader.takeSendable()))
        // The client is still notified of other clients' changes.
        _ = reader("GET k")
        _ = writer("SET k 6")
        server.deliver()
        #expect(reader.takeSendable() == Self.invalidation("k"))
        // In a transaction, no message can precede the replies: the notification follows the commit.
        _ = reader("GET k")
        for line in ["MULTI", "SET k 7", "GET k", "EXEC"] { reader.feed(encodeRequest(line)) }
        server.commit()
        server.deliver()
        #expect(reader.takeSendable().contains(Self.invalidation("k")))
    }

    // MARK: Expiry and eviction

    @Test(arguments: ["SET k v PX 1000", "SET k v"]) func expiriesInvalidateTrackedKeys(_ line: String) throws {
        let (server, reader, writer) = try Self.start(policy: .every(milliseconds: 1000) ?? .highest)
        _ = writer(line)
        for read in ["GET k", "MGET k l"] { _ = reader(read) }
        server.time.advance(milliseconds: 999)
        server.state.notifier.expire()
        server.deliver()
        #expect(reader.takeSendable().isEmpty)
        server.time.advance(milliseconds: 1)
        server.state.notifier.expire()
        server.deliver()
        #expect(reader.takeSendable() == Self.invalidation("k"))
        #expect(server.state.tracking.trackedKeys == 1)
    }

    @Test func broadcastTrackingReportsExpiries() throws {
        let (server, reader, writer) = try Self.start("BCAST PREFIX a")
        _ = writer("SET a1 v PX 1000")
        _ = writer("SET b1 v PX 1000")
        server.deliver()
        #expect(reader.takeSendable() == Self.invalidation("a1"))
        server.time.advance(milliseconds: 1000)
        server.state.notifier.expire()
        server.deliver()
        #expect(reader.takeSendable() == Self.invalidation("a1"))
    }

    @Test func purgesAndPolicyChangesInvalidateAllKeys() throws {
        let (server, reader, writer) = try Self.start(policy: .low)
        _ = writer("SET k v")
        for line in ["FLUSHDB", "FLUSHALL", "PURGE", "POLICY highest"] {
            _ = reader("GET k")
            _ = writer(line)
            server.deliver()
            #expect(reader.takeSendable() == Self.everything, "\(line)")
            #expect(server.state.tracking.trackedKeys == 0)
        }
        _ = writer("SET key v")
        _ = reader("GET key")
        _ = writer("PURGE PREFIX k")
        server.deliver()
        #expect(reader.takeSendable() == Self.invalidation("key"))
    }

    // MARK: The table

    @Test func theNumberOfTrackedKeysIsLimited() throws {
        var limits = Limits()
        limits.trackedKeysMax = 4
        let (server, reader, writer) = try Self.start(limits: limits)
        var notified: [String] = []
        for index in 0..<10 {
            let reply = reader("GET k\(index)")
            server.deliver()
            notified += (reply + reader.takeSendable()).split(separator: "\r\n").map(String.init).filter {
                $0.hasPrefix("k")
            }
        }
        #expect(notified.count == 6 && Set(notified).count == 6)
        #expect(server.state.tracking.trackedKeys == 4)
        // Each key is reported once, when it is evicted from the table or when it changes.
        for index in 0..<10 { _ = writer("SET k\(index) v") }
        server.deliver()
        notified += reader.takeSendable().split(separator: "\r\n").map(String.init).filter { $0.hasPrefix("k") }
        #expect(notified.sorted() == (0..<10).map { "k\($0)" })
        #expect(server.state.tracking.trackedKeys == 0)
    }

    /// If the table becomes smaller, it drops keys, and the clients are notified of them. 0 means no limit, as in
    /// Redis.
    @Test func loweringTheTrackingLimitInvalidatesKeys() throws {
        var limits = Limits()
        limits.trackedKeysMax = 4
        let (server, reader, writer) = try Self.start(limits: limits)
        #expect(writer("CONFIG SET tracking-table-max-keys 0") == Wire.ok)
        for index in 0..<10 { _ = reader("GET k\(index)") }
        #expect(server.state.tracking.trackedKeys == 10)
        #expect(writer("CONFIG SET tracking-table-max-keys 3") == Wire.ok)
        #expect(writer("CONFIG GET tracking-table-max-keys") == Wire.bulks("tracking-table-max-keys", "3"))
        server.deliver()
        let notified = reader.takeSendable().split(separator: "\r\n").filter { $0.hasPrefix("k") }
        #expect(notified.count == 7 && Set(notified).count == 7)
        #expect(server.state.tracking.trackedKeys == 3)
    }

    /// The invalidation for a connection's own FLUSHALL follows the reply, regardless of when the message is sent.
    @Test func aClientsOwnFLUSHALLIsReportedAfterItsReply() throws {
        let (server, reader, writer) = try Self.start()
        _ = writer("SET k v")
        for line in ["FLUSHALL", "FLUSHDB", "PURGE"] {
            _ = reader("GET k")
            reader.session.parser.append(encodeRequest(line))
            guard case .work(let work) = CommandRunner(reader.session).run(outputBytesMax: 1 << 20) else {
                Issue.record("\(line) is not deferred")
                continue
            }
            let result = WorkResult(work, version: .three)
            server.deliver()
            #expect(reader.takeSendable() == "", "\(line)")
            reader.session.finish(result)
            let sent = reader.takeSendable()
            #expect(sent.hasSuffix(Self.everything) && sent.utf8.count > Self.everything.utf8.count, "\(sent)")
            // The purge of another connection is reported at once.
            _ = reader("GET k")
            _ = writer(line)
            #expect(reader.takeSendable() == Self.everything)
        }
    }

    @Test func prefixesOfBroadcastTrackingAreLimited() throws {
        var limits = Limits()
        limits.subscriptionBytesMax = 1000
        let (server, _, writer) = try Self.start(limits: limits)
        let client = server.connect()
        _ = client("HELLO 3")
        #expect(client("CLIENT TRACKING ON BCAST PREFIX a PREFIX b PREFIX c") == Wire.ok)
        let long = String(repeating: "d", count: 900)
        #expect(client("CLIENT TRACKING ON BCAST PREFIX \(long)").contains("--max-subscriptions"))
        _ = writer("SET \(long) v")
        #expect(client.takeSendable() == "")
        _ = writer("SET abc v")
        #expect(client.takeSendable() == Self.invalidation("abc"))
    }

    @Test func disconnectedClientsAreUntracked() throws {
        let (server, reader, writer) = try Self.start()
        _ = reader("GET k")
        #expect(server.engine.changes.isOn)
        reader.session.end()
        #expect(!server.engine.changes.isOn)
        #expect(server.state.tracking.trackedKeys == 0)
        _ = writer("SET k v")
        server.deliver()
        #expect(reader.takeSendable().isEmpty)
    }

    @Test func onlyDefaultTrackingDisablesTheFastPath() throws {
        let (server, reader, writer) = try Self.start()
        #expect(!reader.session.prechecks.allowsAll && writer.session.prechecks.allowsAll)
        #expect(reader("CLIENT TRACKING OFF") == Wire.ok)
        #expect(reader("CLIENT TRACKING ON BCAST") == Wire.ok)
        #expect(reader.session.prechecks.allowsAll)
        _ = server
    }

    // MARK: Settings

    /// Keys that were read under the previous settings are invalidated too.
    @Test(arguments: ["", " NOLOOP", " OPTIN", " OPTOUT"])
    func repeatedCLIENTTRACKINGKeepsTrackedKeys(_ options: String) throws {
        let (server, reader, writer) = try Self.start()
        _ = writer("SET k v")
        #expect(reader("GET k") == Wire.bulk("v"))
        _ = reader("SELECT 1")
        #expect(reader("CLIENT TRACKING ON\(options)") == Wire.ok)
        #expect(server.state.tracking.trackingClients == 1)
        _ = writer("SET k w")
        server.deliver()
        #expect(reader.takeSendable() == Self.invalidation("k"))
        // Keys of the previously selected database are reported too.
        #expect(writer("PURGE").isEmpty == false)
        server.deliver()
        #expect(reader.takeSendable() == Self.everything)
    }

    /// A client that starts tracking during the notification of a purge is not notified, because it reads newer data.
    @Test func clientsThatStartTrackingDuringAPurgeStayTracked() throws {
        let tracking = Tracking(keysMax: 10) { _ in nil }
        let queue = PushQueue(PendingBytes())
        let notified = Recorder<Int64>()
        queue.deliver = { for id in $0.connections { notified.add(id) } }
        let late = TrackingClient(
            Subscriber(id: 2, queue: queue), TrackingSettings(), database: "0", mayNotify: { _ in true })
        let first = TrackingClient(Subscriber(id: 1, queue: queue), TrackingSettings(), database: "0") { _ in
            // Start tracking while the affected clients are determined.
            if tracking.trackingClients == 1 { tracking.willRead([1], tracking.add(late)) }
            return true
        }
        tracking.willRead([2], tracking.add(first))
        tracking.invalidateAll(in: ["0"])
        queue.deliverAll()
        #expect(notified.all == [1])
        #expect(tracking.trackedKeys == 1)
        tracking.invalidate([[1], [2]], in: "0")
        queue.deliverAll()
        #expect(notified.all == [1, 2])
        tracking.remove(first)
        tracking.remove(late)
        #expect(tracking.trackedKeys == 0 && tracking.trackedItems == 0)
    }

    // MARK: Over sockets

    /// Before each reply to a client, the client has either read or been notified of every change that was acknowledged
    /// before its request.
    @Test(arguments: [1, 2, 4]) func noClientKeepsAStaleValue(_ threads: Int) throws {
        let server = try InProcessServer(threads: threads)
        defer { server.stop() }
        let acknowledged = Guarded(0)
        let isOver = Guarded(false)
        let writer = WorkThread(name: "writer") {
            guard let client = try? server.connect() else { return }
            var value = 0
            while !isOver.value, value < 100_000 {
                value += 1
                guard (try? client.call("SET k \(value)")) == "+OK\r\n" else { return }
                acknowledged.value = value
            }
        }
        let reader = try server.connect()
        _ = try reader.call("HELLO 3")
        _ = try reader.call("CLIENT TRACKING ON")
        var cached: Int?
        var kept = 0
        for _ in 0..<2000 {
            let least = acknowledged.value
            try reader.send(["PING"])
            while true {
                let reply = String(decoding: try reader.receive(), as: UTF8.self)
                if reply == "+PONG\r\n" { break }
                #expect(reply == Self.invalidation("k"))
                cached = nil
            }
            if let cached {
                kept += 1
                #expect(cached >= least)
            } else {
                try reader.send(["GET", "k"])
                while true {
                    let reply = String(decoding: try reader.receive(), as: UTF8.self)
                    if reply == Self.invalidation("k") {
                        cached = nil
                        continue
                    }
                    cached = reply.split(separator: "\r\n").last.flatMap { Int($0) }
                    break
                }
            }
        }
        isOver.value = true
        writer.join()
        _ = kept
    }
}
