import LarderTestSupport
import Synchronization
import Testing

@testable import LarderEngine
@testable import LarderServer

/// Tests of commands that must read from the disk. They run on threads that may block, while their event loop serves
/// all other clients. Without memory for entries, every entry in LevelDB must be read from the disk.
@Suite(.serialized) struct ColdCommandTests {
    /// Counts the slices (runs of commands on a thread that may block), and makes each slice wait at a gate.
    private final class Slices: Sendable {
        let gate = Gate()
        private let number = Atomic<Int>(0)
        var count: Int { number.load(ordering: .relaxed) }

        func begin() {
            number.wrappingAdd(1, ordering: .relaxed)
            gate.pass()
        }
    }

    private func server(
        threads: Int = 1, _ slices: Slices, limits: Limits = Limits(),
        configure: (inout EngineOptions) -> Void = { _ in }
    ) throws -> InProcessServer {
        try InProcessServer(
            threads: threads, limits: limits,
            configure: {
                $0.memoryBytes = 0
                configure(&$0)
            }, beforeColdSlice: { slices.begin() })
    }

    /// Moves all entries written so far from memory to LevelDB.
    private func makeCold(_ engine: Engine) throws {
        for database in engine.databases { _ = try database.checkpointer.flush(database) }
    }

    /// Moves all entries of a server from memory to LevelDB. Opening the server's larder again in this process returns
    /// the server's own engine.
    private func makeCold(_ server: InProcessServer) throws {
        try makeCold(try Engine.open(server.directory.path + "/larder"))
    }

    /// Limits with which no slice reaches its time limit, even on a slow machine.
    private var patient: Limits {
        var limits = Limits()
        limits.coldSliceMilliseconds = 3_600_000
        return limits
    }

    /// Their values are too long for an event loop.
    @Test func pipelinedReadsOfManyBytesCountEachKeyOnce() throws {
        let server = try InProcessServer()
        defer { server.stop() }
        let client = try server.connect()
        let value = String(repeating: "v", count: 100_000)
        #expect(try client.call("SET k \(value)") == Wire.ok)
        for _ in 0..<3 { try client.send(["MGET"] + Array(repeating: "k", count: 20)) }
        for reply in try client.receive(3) { #expect(reply.count > 2_000_000) }
        #expect(try client.call("INFO stats").contains("keyspace_hits:60\r"))
    }

    @Test("a pipeline that needs the disk moves to another thread only once")
    func aPipelineThatReadsTheDiskChangesThreadsOnce() throws {
        let slices = Slices()
        let server = try server(slices, limits: patient)
        defer { server.stop() }
        let client = try server.connect()
        for index in 0..<64 { #expect(try client.call("SET k\(index) \(index)") == Wire.ok) }
        try makeCold(server)
        let before = slices.count
        try client.send((0..<64).flatMap { encodeRequest("GET k\($0)") })
        for index in 0..<64 { #expect(try client.receive() == Array(Wire.bulk("\(index)").utf8)) }
        #expect(slices.count == before + 1)
        #expect(try client.call("PING") == "+PONG\r\n")
        #expect(try client.call("SET k0 x") == Wire.ok)
        #expect(slices.count == before + 1, "a command without disk reads stays on the loop")
    }

    @Test(arguments: [1, 2]) func repliesAreInOrderIfSomeCommandsReadTheDisk(_ threads: Int) throws {
        let slices = Slices()
        var limits = patient
        limits.coldSliceCommands = 3
        let server = try server(threads: threads, slices, limits: limits)
        defer { server.stop() }
        let clients = try (0..<4).map { _ in try server.connect() }
        var requests: [UInt8] = []
        var expected = ""
        for index in 0..<300 {
            requests += encodeRequest("ECHO \(index)") + encodeRequest("GET c\(index % 10)")
            expected += Wire.bulk("\(index)") + Wire.bulk("cold")
            if index % 50 == 7 {
                requests += encodeRequest("SET own\(index) \(index)") + encodeRequest("GET own\(index)")
                requests += encodeRequest("GETDEL own\(index)") + encodeRequest("EXISTS own\(index) c1 c1")
                expected += Wire.ok + Wire.bulk("\(index)") + Wire.bulk("\(index)") + Wire.int(2)
            }
            if index % 100 == 9 {
                requests += encodeRequest("KEYS c3") + encodeRequest("MGET c1 nothing c2")
                expected += Wire.bulks("c3") + Wire.array(Wire.bulk("cold"), Wire.null, Wire.bulk("cold"))
            }
        }
        for index in 0..<10 { #expect(try clients[0].call("SET c\(index) cold") == Wire.ok) }
        try makeCold(server)
        for client in clients {
            try client.send(requests)
            client.endSending()
            let replies = String(decoding: try client.receiveToEnd(), as: UTF8.self)
            #expect(replies == expected)
        }
        #expect(slices.count > 100)
    }

    @Test func otherClientsAreServedWhileOneReadsTheDisk() throws {
        let slices = Slices()
        let server = try server(slices, limits: patient)
        defer { server.stop() }
        let other = try server.connect()
        #expect(try other.call("SET k v") == Wire.ok)
        try makeCold(server)
        slices.gate.close()
        // There are more clients than threads that may block.
        let waiting = try (0..<Limits().coldThreads + 3).map { _ in try server.connect() }
        for client in waiting { try client.send(encodeRequest("GET k") + encodeRequest("PING behind")) }
        slices.gate.waitUntil()
        #expect(try other.call("PING") == "+PONG\r\n")
        #expect(try other.call("SET k w") == Wire.ok)
        #expect(try other.call("DBSIZE") == Wire.int(1), "counts run on other threads")
        slices.gate.open()
        for client in waiting {
            // The slices wait at the gate until the value is written, so they read the new value.
            #expect(try client.receive() == Array(Wire.bulk("w").utf8))
            #expect(try client.receive() == Array(Wire.bulk("behind").utf8))
        }
    }

    @Test("a commit that ends during a disk read determines the replies that wait for it")
    func commitsDuringADiskReadReleaseTheHeldReplies() throws {
        let slices = Slices()
        let isFailing = Guarded(false)
        let server = try server(slices, limits: patient) { $0.beforeCommit = failing(while: isFailing) }
        defer { server.stop() }
        let client = try server.connect()
        let other = try server.connect()
        #expect(try other.call("MSET k v seen 0") == Wire.ok)
        try makeCold(server)
        for fails in [false, true] {
            slices.gate.close()
            isFailing.value = fails
            try client.send(encodeRequest("SET mine 1") + encodeRequest("GET k") + encodeRequest("PING"))
            slices.gate.waitUntil()
            // This write is committed after the write of `client`, whose commit has therefore succeeded or failed too.
            let reply = try other.call("SET seen 1")
            #expect(reply.hasPrefix(fails ? "-ERR" : "+OK"))
            isFailing.value = false
            slices.gate.open()
            let replies = try client.receive(3).map { String(decoding: $0, as: UTF8.self) }
            #expect(replies[0].hasPrefix(fails ? "-ERR commit" : "+OK"))
            #expect(replies[1] == Wire.bulk("v"))
            #expect(replies[2] == "+PONG\r\n")
        }
    }

    /// A write that a session made on another thread is committed and acknowledged even if the session's event loop is
    /// asleep.
    @Test("writes made on another thread are committed and acknowledged") func writesOfAColdSliceAreAcknowledged()
        throws
    {
        let slices = Slices()
        let server = try server(slices, limits: patient)
        defer { server.stop() }
        let client = try server.connect()
        #expect(try client.call("SET k v") == Wire.ok)
        try makeCold(server)
        try client.send(
            encodeRequest("GETDEL k") + encodeRequest("SET k w NX GET") + encodeRequest("SET a b")
                + encodeRequest("EXPIRE k 100"))
        let replies = try client.receive(4).map { String(decoding: $0, as: UTF8.self) }
        #expect(replies == [Wire.bulk("v"), Wire.null, Wire.ok, Wire.int(1)])
    }

    @Test(arguments: [1, 2])
    func clientsThatDisconnectDuringADiskReadAreCleanedUp(_ threads: Int) throws {
        let slices = Slices()
        let server = try server(threads: threads, slices, limits: patient)
        defer { server.stop() }
        let other = try server.connect()
        #expect(try other.call("SET k v") == Wire.ok)
        try makeCold(server)
        slices.gate.close()
        for _ in 0..<8 {
            let client = try server.connect()
            try client.send(encodeRequest("GET k") + encodeRequest("SET written 1"))
            client.close()
        }
        slices.gate.waitUntil()
        slices.gate.open()
        while try server.connectedClients() > 2 { nap() }
        #expect(try other.call("GET written") == Wire.bulk("1"))
    }

    /// When the shutdown's time limit has passed, connections are closed even while their sessions are on other
    /// threads. Such a session must not use its closed connection when it returns.
    @Test("the daemon can stop while sessions read the disk", arguments: [1, 2])
    func theDaemonCanStopDuringDiskReads(_ threads: Int) throws {
        let slices = Slices()
        var limits = patient
        limits.stopMilliseconds = 1
        let server = try server(threads: threads, slices, limits: limits)
        let clients = try (0..<6).map { _ in try server.connect() }
        #expect(try clients[0].call("SET k v") == Wire.ok)
        try makeCold(server)
        slices.gate.close()
        for client in clients { try client.send(encodeRequest("GET k") + encodeRequest("SET late 1")) }
        slices.gate.waitUntil()
        server.beginStopping()
        for client in clients { #expect(try client.receiveToEnd().isEmpty) }
        slices.gate.open()
        server.stop()
        #expect(server.logLines.line(containing: "the daemon is stopping") != nil)
    }

    /// With enough time for the shutdown, cold commands complete.
    @Test func commandsThatReadTheDiskCompleteDuringAShutdown() throws {
        let slices = Slices()
        let server = try server(slices, limits: patient)
        let client = try server.connect()
        #expect(try client.call("SET k v") == Wire.ok)
        try makeCold(server)
        slices.gate.close()
        try client.send(encodeRequest("GET k") + encodeRequest("GET k"))
        slices.gate.waitUntil()
        server.beginStopping()
        slices.gate.open()
        #expect(try client.receiveToEnd() == Array((Wire.bulk("v") + Wire.bulk("v")).utf8))
        server.stop()
    }

    /// Checks, without an event loop, which commands move to another thread, and that their slice ends.
    @Test("commands that need the disk move to a thread that may block") func commandsThatNeedTheDisk() throws {
        let server = try SocketlessServer { $0.memoryBytes = 0 }
        let client = server.connect()
        #expect(client("SET k v") == Wire.ok)
        for line in [
            "GET k", "MGET k", "MGET k x", "STRLEN k", "TTL k", "TYPE k", "META k", "EXISTS k", "EXISTS k x",
            "EXPIRE k 100", "PERSIST k", "SET k v NX", "SET k v GET", "SET k v KEEPTTL", "GETDEL k", "DEL k",
        ] {
            #expect(client("SET k v").hasPrefix("+OK"))
            try makeCold(server.engine)
            let before = client.colds
            _ = client(line)
            #expect(client.colds == before + 1, "\(line)")
        }
        let before = client.colds
        for line in ["PING", "SET k v", "SET k v EX 5", "MSET a 1 b 2", "ECHO x", "SELECT 1", "SELECT 0"] {
            _ = client(line)
        }
        #expect(client.colds == before)
        try makeCold(server.engine)
        client.feed((0..<5).flatMap { _ in encodeRequest("GET k") })
        #expect(client.takeSendable() == String(repeating: Wire.bulk("v"), count: 5))
        #expect(client.colds == before + 3, "slices of two commands each")
    }

    /// A command with large arguments leaves the event loop whether or not it needs the disk. Its effect is the same.
    @Test("commands with large arguments move to a thread that may block") func commandsWithLargeArguments() throws {
        let server = try SocketlessServer()
        let client = server.connect()
        let (most, half) = (Limits.loopBytesMax, Limits.loopBytesMax / 2)
        let long = String(repeating: "l", count: most + 1)
        let cases: [(words: [String], leaves: Bool)] = [
            (["SET", "k", String(repeating: "s", count: half)], false), (["SET", "k", long], true),
            (["APPEND", "k", long], true), (["GETRANGE", "k", "0", "1"], false),
            (["MSET", "a", String(repeating: "a", count: half), "b", String(repeating: "b", count: half)], true),
            (["SET", "k", "short"], false),
        ]
        for (words, leaves) in cases {
            let before = client.colds
            _ = client(words)
            #expect(client.colds == before + (leaves ? 1 : 0), "\(words[0]) of \(words.map(\.utf8.count))")
        }
        #expect(client("STRLEN a") == Wire.int(half))
        #expect(client("GET k") == Wire.bulk("short"))
    }

    /// A command whose reply takes long to copy leaves the event loop too, even if the data is in memory.
    @Test("commands with long replies move to a thread that may block", arguments: [false, true])
    func commandsThatReplyMuch(_ isTracking: Bool) throws {
        let server = try SocketlessServer()
        let client = server.connect()
        if isTracking {
            _ = client("HELLO 3")
            #expect(client("CLIENT TRACKING ON") == Wire.ok)
        }
        let half = String(repeating: "h", count: Limits.loopBytesMax / 2)
        let long = String(repeating: "l", count: Limits.loopBytesMax + 1)
        for (key, value) in [("a", "short"), ("half", half), ("long", long)] {
            #expect(client(["SET", key, value]) == Wire.ok)
        }
        _ = client("GET b")
        let missing = isTracking ? "_\r\n" : Wire.null
        let cases: [(words: [String], reply: String, leaves: Bool)] = [
            (["GET", "half"], Wire.bulk(half), false), (["GET", "long"], Wire.bulk(long), true),
            (["MGET", "a", "b", "half"], Wire.array(Wire.bulk("short"), missing, Wire.bulk(half)), false),
            (["MGET", "a", "half", "half"], Wire.array(Wire.bulk("short"), Wire.bulk(half), Wire.bulk(half)), true),
            (
                ["MGET", "long", "b", "a", "long"],
                Wire.array(Wire.bulk(long), missing, Wire.bulk("short"), Wire.bulk(long)), true
            ),
        ]
        for (words, reply, leaves) in cases {
            let before = client.colds
            #expect(client(words) == reply, "\(words)")
            #expect(client.colds == before + (leaves ? 1 : 0), "\(words)")
        }
    }

    /// A long comparison leaves the event loop, a short one does not. The reads are counted once.
    @Test func aShortComparisonRunsOnTheEventLoop() throws {
        let client = try SocketlessServer().connect()
        #expect(client(["MSET", "a", "x", "b", "xy", "long", String(repeating: "ab", count: 1000)]) == Wire.ok)
        let before = client.colds
        #expect(client("LCS a b LEN") == Wire.int(1))
        #expect(client.colds == before)
        #expect(client("LCS long long LEN") == Wire.int(2000))
        #expect(client.colds == before + 1)
        let counts = client("INFO stats").split(separator: "\r\n").filter { $0.hasPrefix("keyspace_") }
        #expect(counts.prefix(2) == ["keyspace_hits:4", "keyspace_misses:0"])
    }

    /// Once keys were read from the disk, their entries, or their absence, are kept in memory. Each read is counted
    /// once.
    @Test func mgetCachesTheEntriesItReadsFromTheDisk() throws {
        let first = try SocketlessServer()
        #expect(first.connect()("MSET a 1 b 2") == Wire.ok)
        first.engine.shutdown()
        let server = try SocketlessServer(reopening: first)
        let client = server.connect()
        #expect(client("GET d") == Wire.null)
        let before = client.colds
        for _ in 0..<2 { #expect(client("MGET a b c") == Wire.array(Wire.bulk("1"), Wire.bulk("2"), Wire.null)) }
        #expect(client.colds == before + 1)
        let counts = client("INFO stats").split(separator: "\r\n").filter { $0.hasPrefix("keyspace_") }
        #expect(counts.prefix(2) == ["keyspace_hits:4", "keyspace_misses:3"])
    }

    @Test("a transaction whose replies are long runs on another thread") func longTransactionsLeaveTheLoop() throws {
        let server = try SocketlessServer()
        let client = server.connect()
        let value = String(repeating: "v", count: Limits.loopBytesMax / 4)
        #expect(client(["SET", "k", value]) == Wire.ok)
        for count in [1, 3] {
            let before = client.colds
            _ = client("MULTI")
            for _ in 0..<count { _ = client("MGET k k") }
            let values = Wire.array(Wire.bulk(value), Wire.bulk(value))
            #expect(client("EXEC") == "*\(count)\r\n" + String(repeating: values, count: count))
            #expect(client.colds == before + (count == 1 ? 0 : 1))
        }
    }

    /// Values whose total is longer than the limit of one reply cause an error, and none of them is sent. This holds
    /// for values in memory, on disk and in a snapshot.
    @Test("a reply whose values exceed the limit is replaced by an error", arguments: [0, 1 << 20])
    func valuesOfOneReplyAreBounded(_ memoryBytes: Int) throws {
        var limits = Limits()
        limits.replyBytesMax = 100
        let server = try SocketlessServer(limits: limits) { $0.memoryBytes = memoryBytes }
        let client = server.connect()
        let (half, longer) = (String(repeating: "h", count: 50), String(repeating: "l", count: 51))
        #expect(client(["MSET", "half", half, "longer", longer]) == Wire.ok)
        let error = Wire.error("ERR the values exceed 100 bytes, the limit for one reply (--max-reply)")
        for view in ["PING", "SNAPSHOT OPEN"] {
            _ = client(view)
            #expect(client("MGET half half nothing") == Wire.array(Wire.bulk(half), Wire.bulk(half), Wire.null))
            #expect(client("MGET half longer") == error)
            #expect(client("MGET longer half half half half") == error)
            #expect(client("GET longer") == Wire.bulk(longer))
            #expect(client("EXISTS half longer longer nothing") == Wire.int(3))
            client.feed(encodeRequest("PING a") + encodeRequest("MGET longer longer") + encodeRequest("PING b"))
            #expect(client.takeSendable() == Wire.bulk("a") + error + Wire.bulk("b"))
        }
        // All replies of EXEC are one reply. Writes still run.
        for line in ["MULTI", "MGET half half", "GET half", "GET half", "SET half h", "EXISTS half"] {
            if line == "MULTI" { _ = client("SNAPSHOT CLOSE") }
            _ = client(line)
        }
        let values = Wire.array(Wire.bulk(half), Wire.bulk(half))
        #expect(client("EXEC") == Wire.array(values, error, error, Wire.ok, error))
        #expect(client("GET half") == Wire.bulk("h"))
        _ = client("SNAPSHOT CLOSE")
        #expect(client("DEL half longer longer nothing") == Wire.int(2))
    }
}
