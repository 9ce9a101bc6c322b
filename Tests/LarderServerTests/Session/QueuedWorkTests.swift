import LarderEngine
import LarderPlatform
import LarderTestSupport
import Testing

@testable import LarderServer

/// Tests of work for threads that may block, while these threads are busy with other work.
@Suite(.serialized) struct QueuedWorkTests {
    /// Starts a server whose two threads for long work are blocked at a gate, each by a KEYS command.
    private func occupied(_ gate: Gate) throws -> (InProcessServer, [SocketClient]) {
        let server = try InProcessServer(beforeWork: { name in if name == "keys" { gate.pass() } })
        let setUp = try server.connect()
        #expect(try setUp.call("SET k v") == Wire.ok)
        gate.close()
        let holders = try (0..<2).map { _ in try server.connect() }
        for holder in holders { try holder.send(["KEYS", "*"]) }
        gate.waitUntil(waiting: 2)
        return (server, holders)
    }

    /// Connects `count` clients, each of which sends one command and disconnects.
    private func sendAndLeave(_ server: InProcessServer, _ count: Int, _ command: String) throws {
        for _ in 0..<count {
            let client = try server.connect()
            try client.send([command])
            client.close()
        }
    }

    /// Regression test: a thousand connections that sent FLUSHDB and closed made all other clients wait for the fsyncs
    /// of each.
    @Test func queuedWorkOfClosedConnectionsIsDropped() throws {
        let gate = Gate()
        let (server, holders) = try occupied(gate)
        defer {
            gate.open()
            server.stop()
        }
        try sendAndLeave(server, 200, "FLUSHDB")
        // A client that is still connected, and a client that has closed only its sending side, are served.
        let stays = try server.connect()
        try stays.send(["DBSIZE"])
        let ends = try server.connect()
        try ends.send(["EXISTS", "k"])
        try ends.send(["DBSIZE"])
        ends.endSending()
        // The event loop notices closed connections on its ticks. The clients that sent KEYS, `stays`, `ends` and the
        // client of this check remain.
        while try server.connectedClients() > holders.count + 3 { nap() }
        gate.open()
        for holder in holders { #expect(try holder.receive() == Array(Wire.array(Wire.bulk("k")).utf8)) }
        #expect(try stays.receive() == Array(":1\r\n".utf8))
        #expect(try ends.receiveToEnd() == Array(":1\r\n:1\r\n".utf8))
        let info = try server.connect().call("INFO larder")
        #expect(info.contains("dropped_commands:200\r\n"))
        #expect(info.contains("purges:0\r\n"))
    }

    /// Disconnected clients are not counted any more, even before their queued work would run. Otherwise, this test
    /// would not end.
    @Test func closedConnectionsAreNotCountedAsClients() throws {
        let gate = Gate()
        let (server, holders) = try occupied(gate)
        defer {
            gate.open()
            server.stop()
        }
        try sendAndLeave(server, 50, "FLUSHALL")
        // The event loop notices closed connections on its ticks. The client of this check counts, and for a moment
        // also the clients of previous checks.
        while try server.connectedClients() > holders.count + 3 { nap() }
        #expect(try server.connect().call("INFO larder").contains("purges:0\r\n"))
        gate.open()
        for holder in holders { _ = try holder.receive() }
    }

    /// A transaction is completed in any case, and so is a command whose client wants no reply.
    @Test func commandsWithoutRepliesAreStillExecuted() throws {
        let gate = Gate()
        let (server, holders) = try occupied(gate)
        defer {
            gate.open()
            server.stop()
        }
        let client = try server.connect()
        try client.send(["CLIENT", "REPLY", "OFF"])
        try client.send(["FLUSHDB"])
        client.close()
        gate.open()
        for holder in holders { _ = try holder.receive() }
        let call = try server.connect()
        while try !call.call("INFO larder").contains("purges:1\r\n") { nap() }
        #expect(try call.call("GET k") == Wire.null)
    }

    /// Regression test: INFO and CONFIG waited for a thread like other commands.
    @Test("INFO, CONFIG and SCAN do not wait for long work") func infoConfigAndScanDoNotWaitForQueuedWork() throws {
        let gate = Gate()
        let (server, holders) = try occupied(gate)
        defer {
            gate.open()
            server.stop()
        }
        let client = try server.connect()
        #expect(try client.call("INFO").contains("db0:keys=1,expires=1,"))
        #expect(try client.call("CONFIG GET maxclients").contains("10000"))
        #expect(try client.call("CONFIG SET maxclients 9999") == Wire.ok)
        #expect(try client.call("SCAN 0").hasSuffix(Wire.array(Wire.bulk("k"))))
        // The files of a database that has not been used yet can be opened too.
        #expect(try client.call("SELECT other") == Wire.ok)
        #expect(try client.call("SET k v") == Wire.ok)
        gate.open()
        for holder in holders { _ = try holder.receive() }
    }

    /// Regression test: clients with slow queries occupied all threads for long work.
    @Test func shortQueriesAndLongCommandsDoNotWaitForLongQueries() throws {
        let gate = Gate()
        let server = try InProcessServer(beforeWork: { name in if name == "explain" { gate.pass() } })
        defer {
            gate.open()
            server.stop()
        }
        let client = try server.connect()
        #expect(try client.call("SET k {}") == Wire.ok)
        gate.close()
        let holders = try (0..<3).map { _ in try server.connect() }
        for holder in holders { try holder.send(["EXPLAIN", "QUERY", "COUNT", "SCAN"]) }
        gate.waitUntil(waiting: 2)
        #expect(try client.call("QUERY COUNT") == Wire.int(1))
        #expect(try client.call("KEYS *") == Wire.array(Wire.bulk("k")))
        gate.open()
        for holder in holders { #expect(try holder.receive().first == UInt8(ascii: "$")) }
    }

    @Test func durationsIncludeTheTimeInTheQueue() throws {
        let gate = Gate()
        let (server, holders) = try occupied(gate)
        defer {
            gate.open()
            server.stop()
        }
        let begin = MonotonicClock.nanoseconds()
        nap()
        let waited = (MonotonicClock.nanoseconds() - begin) / 1000
        gate.open()
        for holder in holders { _ = try holder.receive() }
        let stats = try server.connect().call("INFO commandstats")
        let keys = try #require(stats.split(separator: "\r\n").first { $0.hasPrefix("cmdstat_keys:calls=2,usec=") })
        let microseconds = try #require(Int64(keys.split(separator: "=")[2].prefix { $0 != "," }))
        #expect(microseconds >= 2 * waited)
    }

    /// A thread releases each finished item of work at once, even if the queue of work is never empty.
    @Test func finishedWorkIsReleasedAtOnce() {
        final class Held: Sendable {}
        let gate = Gate()
        let pool = WorkerPool(name: "test", threads: 1)
        defer {
            gate.open()
            pool.stop()
        }
        weak var held: Held?
        do {
            let object = Held()
            held = object
            pool.submit { withExtendedLifetime(object) {} }
        }
        gate.close()
        pool.submit { gate.pass() }
        pool.submit {}
        gate.waitUntil()
        #expect(held == nil)
    }
}
