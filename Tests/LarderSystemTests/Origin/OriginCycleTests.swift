import LarderTestSupport
import Testing

/// Tests of larders whose origins form a cycle, which none of the larders could detect when its origin was set.
@Suite struct OriginCycleTests {
    /// The directories of several larders, whose daemons may or may not run.
    private struct Ring {
        let places: [TemporaryDirectory]

        init(_ count: Int) throws {
            places = try (0..<count).map { _ in try TemporaryDirectory(inMemory: true) }
        }

        func start(_ index: Int) throws -> DaemonProcess {
            try DaemonProcess(["--origin-limit", "1000"], in: places[index])
        }

        func next(_ index: Int) -> String { "unix://\(places[(index + 1) % places.count].path)/socket" }

        /// Sets the origin of each daemon while the next daemon does not run, then starts all of them.
        /// - Parameter options: the text after the URL, with a space before each word.
        func close(_ options: String = "") throws -> [DaemonProcess] {
            for index in places.indices {
                let daemon = try start(index)
                #expect(try daemon.connect().call("ORIGIN \(next(index))\(options)") == "+OK\r\n")
                try daemon.stop()
            }
            return try places.indices.map { try start($0) }
        }
    }

    private static func awaitCycle(
        _ client: SocketClient, sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        try client.eventually("ORIGIN", sourceLocation: sourceLocation) {
            $0.contains("\r\ndown\r\n") && $0.contains("a cycle: unix://")
        }
    }

    private static func expectCycle(
        _ client: SocketClient, sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        try awaitCycle(client, sourceLocation: sourceLocation)
        for command in ["GET a", "SET a v", "INCR n", "DEL a"] {
            let reply = try client.call(command)
            #expect(
                reply.hasPrefix("-ORIGIN ") && reply.contains("a cycle: "), "\(reply)", sourceLocation: sourceLocation)
        }
    }

    @Test(arguments: [2, 3]) func aCycleIsReportedAndRecoversWhenItEnds(count: Int) throws {
        let daemons = try Ring(count).close()
        let clients = try daemons.map { try $0.connect() }
        for (daemon, client) in zip(daemons, clients) {
            try Self.expectCycle(client)
            _ = try daemon.process.waitForErrorLine(
                containing: "cached entries are revalidated: the origin cannot be used: a cycle")
        }
        // End the cycle.
        #expect(try clients[0].call("ORIGIN NONE") == "+OK\r\n")
        #expect(try clients[0].call("SET a v") == "+OK\r\n")
        for client in clients { try client.eventually("GET a", bulkReply("v")) }
        for client in clients.dropFirst() {
            try client.eventually("ORIGIN") { $0.contains("\r\nup\r\n") }
        }
    }

    /// The suspension of an origin in a cycle is not reported to the next larder: such reports would circulate forever.
    @Test func invalidationsDoNotCirculateInACycle() throws {
        let clients = try Ring(3).close(" BCAST").map { ($0, try $0.connect()) }
        for (_, client) in clients { try Self.awaitCycle(client) }
        for (_, client) in clients { try Self.expectCycle(client) }
        for (_, client) in clients { #expect(try client.call("ORIGIN").contains("\r\ninvalidated\r\n:0\r\n")) }
        // After the cycle has ended, each larder forwards the changes that it is notified of.
        let origin = clients[0].1
        #expect(try origin.call("ORIGIN NONE") == "+OK\r\n")
        for value in ["v", "w"] {
            #expect(try origin.call("SET a \(value)") == "+OK\r\n")
            for (_, client) in clients { try client.eventually("GET a", bulkReply(value)) }
            for (_, client) in clients.dropFirst() {
                try client.eventually("ORIGIN") { $0.contains("\r\nup\r\n") }
            }
        }
    }

    /// An origin with lifetimes is checked only if it may have failed. It must be checked again when the cycle has
    /// ended.
    @Test("an origin with LIFETIMES is used again after a cycle has ended")
    func anOriginWithLIFETIMESRecoversAfterACycle() throws {
        let clients = try Ring(2).close(" LIFETIMES").map { ($0, try $0.connect()) }
        for (_, client) in clients { try Self.expectCycle(client) }
        #expect(try clients[0].1.call("ORIGIN NONE") == "+OK\r\n")
        try clients[1].1.eventually("ORIGIN") { $0.contains("\r\nup\r\n") }
    }

    /// Writes queued in a cycle can never be delivered, and stay in their database.
    @Test func writesQueuedInACycleAreKept() throws {
        let clients = try Ring(2).close(" BEHIND").map { ($0, try $0.connect()) }
        for (_, client) in clients { try Self.awaitCycle(client) }
        let client = clients[0].1
        #expect(try client.call("SET a v") == "+OK\r\n")
        let notified = try client.call("ORIGIN")
        #expect(notified.contains("ORIGIN NONE DISCARD drops them"), "\(notified)")
        let refused = try client.call("ORIGIN NONE")
        #expect(refused.hasPrefix("-ERR 1 write is queued"), "\(refused)")
        #expect(try client.call("ORIGIN NONE DISCARD") == "+OK\r\n")
        #expect(try client.call("GET a") == bulkReply("v"))
        try clients[1].1.eventually("GET a", bulkReply("v"))
    }

    @Test func aCycleCreatedConcurrentlyIsDetected() throws {
        let ring = try Ring(2)
        let clients = try (0..<2).map { try ring.start($0) }.map { ($0, try $0.connect()) }
        for (index, client) in clients.enumerated() { try client.1.send(["ORIGIN", ring.next(index)]) }
        let replies = try clients.map { String(decoding: try $0.1.receive(), as: UTF8.self) }
        // The larder whose origin was set later may detect the cycle at once.
        if let refusal = replies.first(where: { $0 != "+OK\r\n" }) {
            #expect(refusal.contains("a cycle: "))
            #expect(replies.contains("+OK\r\n"))
        } else {
            for (_, client) in clients { try Self.expectCycle(client) }
        }
    }

    /// The same larder may occur twice in a chain, with different databases.
    @Test func anotherDatabaseOfTheSameLarderIsNotACycle() throws {
        let ring = try Ring(2)
        let (one, two) = (try ring.start(0), try ring.start(1))
        let (front, behind) = (try one.connect(), try two.connect())
        #expect(try front.call("ORIGIN \(ring.next(0))") == "+OK\r\n")
        #expect(try behind.call("ORIGIN \(ring.next(1))?db=1") == "+OK\r\n")
        #expect(try front.call("SET a v") == "+OK\r\n")
        #expect(try front.call("GET a") == bulkReply("v"))
        _ = try front.call("SELECT 1")
        #expect(try front.call("GET a") == bulkReply("v"))
    }

    /// A database of the same larder can be the origin. The daemon then listens to its own changes, but only to those
    /// of the origin's database: otherwise it would notify itself forever.
    @Test(arguments: ["", " BCAST"]) func aDatabaseOfTheSameLarderCanBeTheOrigin(options: String) throws {
        let ring = try Ring(2)
        let (one, two) = (try ring.start(0), try ring.start(1))
        let (front, behind) = (try one.connect(), try two.connect())
        // Set a database of the same larder as the origin, and databases of two larders as the origins of each other.
        for (client, database, url) in [
            (front, "shop", "\(ring.next(1))?db=0"), (front, "x", "\(ring.next(0))?db=y"),
            (behind, "z", "\(ring.next(1))?db=w"),
        ] {
            #expect(try client.call("SELECT \(database)") == "+OK\r\n")
            #expect(try client.call("ORIGIN \(url)\(options)") == "+OK\r\n")
        }
        let (store, shop) = (try one.connect(), try one.connect())
        let bystander = try one.connect()
        #expect(try shop.call("SELECT shop") == "+OK\r\n")
        for round in 0..<20 {
            #expect(try store.call("SET k \(round)") == "+OK\r\n")
            try shop.eventually("GET k", bulkReply("\(round)"))
            #expect(try shop.call("SET k shop-\(round)") == "+OK\r\n")
            #expect(try store.call("GET k") == bulkReply("shop-\(round)"))
        }
        let clients = [shop, front, behind]
        let lost = try clients.map { try $0.origin("lost") }
        _ = try bystander.call("HELLO 3")
        #expect(try bystander.call("CLIENT TRACKING ON") == "+OK\r\n")
        // Report that all entries of these databases may have changed.
        for client in clients { #expect(try client.call("POLICY middle") == "+OK\r\n") }
        for round in 0..<100 { #expect(try bystander.call("ECHO \(round)") == bulkReply("\(round)")) }
        #expect(try clients.map { try $0.origin("lost") } == lost)
        #expect(try shop.origin("invalidated") <= 200)
        // Report that all entries of the origin may have changed.
        #expect(try store.call("POLICY middle") == "+OK\r\n")
        try shop.eventually(origin: "lost") { $0 > lost[0] }
        for round in 0..<100 { #expect(try shop.call("ECHO \(round)") == bulkReply("\(round)")) }
        #expect(try shop.origin("lost") <= lost[0] + 2)
        #expect(try behind.origin("lost") == lost[2])
    }
}
