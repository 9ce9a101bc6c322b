import LarderEngine
import LarderTestSupport
import Testing

@testable import LarderServer

/// Tests of keyspace notifications: which are sent, when, and how often.
@Suite struct NotificationTests {
    /// Starts a server that publishes `events`, and a client that receives all of them.
    private static func start(_ events: String, policy: UpdatePolicy = .never) throws -> (SocketlessServer, TestClient)
    {
        let server = try SocketlessServer(policy: policy)
        #expect(server.state.notifier.setEvents(events))
        let listener = server.connect()
        _ = listener("PSUBSCRIBE __key*")
        return (server, listener)
    }

    /// Returns the messages that a listener has received, as `channel payload`.
    private func heard(_ server: SocketlessServer, _ listener: TestClient) -> [String] {
        server.deliver()
        return RawReply.split(Array(listener.takeSendable().utf8)).map { message in
            let words = String(decoding: message, as: UTF8.self).split(
                separator: "\r\n", omittingEmptySubsequences: false)
            return words.count > 8 ? "\(words[6]) \(words[8])" : "?"
        }
    }

    @Test func keyspaceEventsAreSentAfterTheCommit() throws {
        let (server, listener) = try Self.start("KEA")
        let writer = server.connect()
        _ = writer("SET other v")
        _ = heard(server, listener)
        writer.feed(encodeRequest("SET k v"))
        #expect(heard(server, listener) == [])
        server.commit()
        #expect(heard(server, listener) == ["__keyspace@0__:k set", "__keyevent@0__:set k"])
        #expect(writer.takeSendable() == Wire.ok)
    }

    @Test(arguments: [
        ("INCREX k BYINT 5", ["incrby"]), ("INCREX k BYFLOAT 1", ["incrbyfloat"]),
        ("INCREX k EX 100", ["incrby", "expire"]), ("INCREX t EX 9 ENX", ["incrby"]), ("INCREX k UBOUND 0", []),
        ("INCREX t PERSIST", ["incrby", "persist"]), ("INCREX k PERSIST", ["incrby"]), ("INCREX k EXAT 1", ["del"]),
    ])
    func increxSendsAnEventForEachChange(_ line: String, _ events: [String]) throws {
        let (server, listener) = try Self.start("EA")
        let writer = server.connect()
        _ = writer("SET k 1")
        _ = writer("SET t 1 EX 50")
        _ = heard(server, listener)
        #expect(!writer(line).hasPrefix("-"))
        #expect(heard(server, listener).map { String($0.dropFirst("__keyevent@0__:".count).dropLast(2)) } == events)
    }

    @Test func uncommittedChangesSendNoEvents() throws {
        let isFailing = Guarded(false)
        let server = try SocketlessServer(policy: .never) { options in
            options.beforeCommit = { () throws(LarderError) in
                if isFailing.value { throw LarderError(.io, "the disk is gone", operation: "commit") }
            }
        }
        #expect(server.state.notifier.setEvents("KEA"))
        let (listener, writer) = (server.connect(), server.connect())
        _ = listener("PSUBSCRIBE __key*")
        #expect(writer("SET k v") == Wire.ok)
        #expect(heard(server, listener).count == 2)
        // A policy change fails, and so do the writes that follow it.
        isFailing.value = true
        let database = try server.engine.database()
        let ticket = try database.changePolicy(DatabasePolicy(.high), now: database.now())
        writer.feed(encodeRequest("SET k w"))
        server.commit()
        #expect(writer.takeSendable().hasPrefix("-"))
        #expect(server.engine.pipeline.failure(of: ticket) != nil)
        #expect(heard(server, listener) == [])
    }

    @Test func eachCommandSendsItsKeyspaceEvents() throws {
        let (server, listener) = try Self.start("Eg$")
        let writer = server.connect()
        let cases: [(String, [String])] = [
            ("SET k v", ["set k"]), ("SET k v EX 100", ["set k", "expire k"]), ("SET k v KEEPTTL", ["set k"]),
            ("MSET k v l w", ["set k", "set l"]), ("EXPIRE k 100", ["expire k"]), ("PERSIST k", ["persist k"]),
            ("PERSIST k", []), ("EXPIRE k -1", ["del k"]), ("DEL k l nothing", ["del l"]), ("GET k", []),
            ("SET k v XX", []), ("SET k v", ["set k"]), ("GETDEL k", ["del k"]), ("EXPIRE k 10", []),
        ]
        for (line, events) in cases {
            _ = writer(line)
            #expect(heard(server, listener) == events.map { "__keyevent@0__:\($0)" }, "\(line)")
        }
    }

    @Test func eventsForNewKeysAreSentIfEnabled() throws {
        let (server, listener) = try Self.start("Kn")
        let writer = server.connect()
        for line in ["SET k v", "SET k w", "MSET k v l w", "DEL k", "SET k v"] { _ = writer(line) }
        #expect(
            heard(server, listener) == ["__keyspace@0__:k new", "__keyspace@0__:l new", "__keyspace@0__:k new"])
    }

    // MARK: Expiry

    @Test func anExpiredEventIsSentOnceAtTheDeadline() throws {
        let (server, listener) = try Self.start("Ex")
        let writer = server.connect()
        _ = writer("SET a v PX 500")
        _ = writer("SET kept v PX 500")
        _ = writer("SET gone v PX 500")
        _ = writer("SET later v PX 500")
        _ = writer("SET kept v")
        _ = writer("DEL gone")
        _ = writer("PEXPIRE later 5000")
        server.time.advance(milliseconds: 499)
        server.state.notifier.expire()
        #expect(heard(server, listener) == [])
        server.time.advance(milliseconds: 1)
        server.state.notifier.expire()
        server.state.notifier.expire()
        while server.engine.maintain() {}
        _ = writer("GET a")
        #expect(heard(server, listener) == ["__keyevent@0__:expired a"])
        server.time.advance(milliseconds: 5000)
        server.state.notifier.expire()
        #expect(heard(server, listener) == ["__keyevent@0__:expired later"])
    }

    /// A write after a deadline is reported after the expiry, even if the expiry had not been reported yet.
    @Test func anExpiryIsReportedBeforeLaterWrites() throws {
        let (server, listener) = try Self.start("E$gx")
        let writer = server.connect()
        _ = writer("SET a v PX 100")
        _ = writer("SET b v PX 100")
        _ = heard(server, listener)
        server.time.advance(milliseconds: 200)
        _ = writer("SET a w")
        _ = writer("DEL b")
        server.state.notifier.expire()
        #expect(
            heard(server, listener) == ["__keyevent@0__:expired a", "__keyevent@0__:set a", "__keyevent@0__:expired b"])
    }

    /// Once the event is enabled, the deadlines of existing entries are watched too. Entries that had already expired
    /// are not reported.
    @Test func entriesThatHadExpiredBeforeEnablingSendNoEvent() throws {
        let server = try SocketlessServer(policy: .never)
        let (listener, writer) = (server.connect(), server.connect())
        _ = writer("SET early v PX 100")
        _ = writer("SET late v PX 5000")
        _ = writer("SET disk v PX 5000")
        server.engine.maintain()
        server.time.advance(milliseconds: 1000)
        #expect(server.state.notifier.setEvents("Ex"))
        _ = listener("PSUBSCRIBE __key*")
        server.state.notifier.expire()
        while server.engine.maintain() {}
        #expect(heard(server, listener) == [])
        server.time.advance(milliseconds: 4000)
        server.state.notifier.expire()
        #expect(heard(server, listener).sorted() == ["__keyevent@0__:expired disk", "__keyevent@0__:expired late"])
    }

    @Test func expiryByPolicySendsItsEventWhenTheEntryIsSwept() throws {
        let (server, listener) = try Self.start("Ex", policy: .highest)
        let writer = server.connect()
        _ = writer("SET memory v")
        server.time.advance(milliseconds: 60_000)
        server.state.notifier.expire()
        #expect(heard(server, listener) == [])
        while server.engine.maintain() {}
        #expect(heard(server, listener) == ["__keyevent@0__:expired memory"])
        _ = writer("SET disk v")
        server.engine.maintain()
        server.time.advance(milliseconds: 60_000)
        while server.engine.maintain() {}
        while server.engine.maintain() {}
        #expect(heard(server, listener) == ["__keyevent@0__:expired disk"])
    }

    /// As in Redis, an entry that expires during the pause is not returned, and its expiry is reported after the pause.
    @Test func expiredEventsAreSentAfterCLIENTPAUSE() throws {
        let (server, listener) = try Self.start("Ex", policy: .highest)
        let (writer, reader) = (server.connect(), server.connect())
        _ = writer("SET own v PX 100")
        _ = writer("SET governed v")
        #expect(writer("CLIENT PAUSE 100000 WRITE") == Wire.ok)
        server.time.advance(milliseconds: 60_000)
        server.state.notifier.expire()
        while server.engine.maintain() {}
        #expect(heard(server, listener) == [])
        #expect(reader("EXISTS own governed") == ":0\r\n")
        server.time.advance(milliseconds: 60_000)
        while server.engine.maintain() {}
        server.state.notifier.expire()
        #expect(
            heard(server, listener).sorted() == ["__keyevent@0__:expired governed", "__keyevent@0__:expired own"])
    }

    @Test func clientUnpauseSendsPendingExpiredEventsAtOnce() throws {
        let (server, listener) = try Self.start("Ex")
        let writer = server.connect()
        _ = writer("SET own v PX 100")
        #expect(writer("CLIENT PAUSE 100000 WRITE") == Wire.ok)
        server.time.advance(milliseconds: 200)
        server.state.notifier.expire()
        #expect(heard(server, listener) == [])
        #expect(writer("CLIENT UNPAUSE") == Wire.ok)
        server.state.notifier.expire()
        #expect(heard(server, listener) == ["__keyevent@0__:expired own"])
    }

    /// Entries removed by a purge are not reported individually, and send no expired event later.
    @Test func purgedEntriesSendNoExpiredEvents() throws {
        let (server, listener) = try Self.start("EA")
        let writer = server.connect()
        _ = writer("SET a v PX 100")
        _ = writer("FLUSHDB")
        _ = heard(server, listener)
        server.time.advance(milliseconds: 1000)
        server.state.notifier.expire()
        #expect(heard(server, listener) == [])
    }

    /// The memory for deadlines is enough for about ten entries of each kind. Entries with equal and with different
    /// deadlines, in memory and on the disk, expire; some are changed before.
    @Test(arguments: [0, 64 << 20]) func moreDeadlinesThanFitInMemorySendAllEvents(memory: Int) throws {
        var limits = Limits()
        limits.deadlineBytesMax = 20 * 200
        let server = try SocketlessServer(policy: .never, limits: limits) { $0.memoryBytes = memory }
        let (listener, writer) = (server.connect(), server.connect())
        _ = listener("PSUBSCRIBE __key*")
        func set(_ range: Range<Int>) {
            for index in range {
                _ = writer("SET k\(index) v PX \(index % 3 == 0 ? 30_000 : 20_000 + 100 * index)")
                if index % 10 == 9 { _ = writer("SET never\(index) v PX 400") }
                if index % 10 == 9 { _ = writer("PERSIST never\(index)") }
            }
        }
        set(0..<150)
        try server.engine.save()
        #expect(server.state.notifier.setEvents("Ex"))
        set(150..<300)
        _ = writer("DEL k3 k4 k152 k153")
        _ = writer("SET k6 v PX 500000000")
        _ = writer("PERSIST k154")
        _ = writer("POLICY highest")
        var found: [String] = []
        for _ in 0..<700 {
            server.time.advance(milliseconds: 100)
            server.state.notifier.expire()
            server.engine.maintain()
            found += heard(server, listener)
        }
        let expected = (0..<300).filter { ![3, 4, 6, 152, 153, 154].contains($0) }
        #expect(found.count == expected.count)
        #expect(found.sorted() == expected.map { "__keyevent@0__:expired k\($0)" }.sorted())
    }

    /// Entries that live for a day or longer, or have a grace, are not in the expiry index by their deadline. A later
    /// daemon finds them too.
    @Test func existingEntriesWithLongLifetimesOrAGraceSendTheirEvents() throws {
        let first = try SocketlessServer(policy: .never)
        let clock = first.time
        let writer = first.connect()
        _ = writer("SET day v EX 100000")
        _ = writer("SET graced v EX 99999 GRACE 3600")
        _ = writer("SET short v EX 99998")
        _ = writer("SET week v EX 604800")
        clock.advance(milliseconds: 99_000_000)
        _ = writer("EXPIRE week 1002")
        try first.engine.save()
        first.engine.shutdown()
        let server = try SocketlessServer(reopening: first, clock: clock)
        let listener = server.connect()
        _ = listener("PSUBSCRIBE __key*")
        #expect(server.state.notifier.setEvents("Ex"))
        server.state.notifier.expire()
        for (milliseconds, key) in [(998_000, "short"), (1000, "graced"), (1000, "day"), (2000, "week")] {
            clock.advance(milliseconds: Int64(milliseconds) - 1)
            server.state.notifier.expire()
            #expect(heard(server, listener) == [], "\(key)")
            clock.advance(milliseconds: 1)
            server.state.notifier.expire()
            server.engine.maintain()
            server.state.notifier.expire()
            #expect(heard(server, listener) == ["__keyevent@0__:expired \(key)"])
        }
    }

    /// Random commands, with little memory for deadlines.
    @Test(arguments: [0, 64 << 20]) func everyExpiryIsReportedOnce(memory: Int) throws {
        var random = SeededGenerator(seed: testSeed())
        var limits = Limits()
        limits.deadlineBytesMax = 20 * 200
        let server = try SocketlessServer(policy: .low, limits: limits) { $0.memoryBytes = memory }
        #expect(server.state.notifier.setEvents("Ex"))
        let (listener, writer) = (server.connect(), server.connect())
        _ = listener("PSUBSCRIBE __key*")
        var deadlines: [String: Int64] = [:]
        for step in 0..<3000 {
            let key = "k\(random.below(150))"
            let life = random.oneIn(10) ? 90_000_000 : Int64(random.below(random.oneIn(3) ? 200_000 : 3000) + 1)
            let end = server.engine.now() + life
            switch random.below(8) {
            case 0:
                _ = writer("DEL \(key)")
                deadlines[key] = nil
            case 1:
                if writer("PERSIST \(key)") == Wire.int(1) { deadlines[key] = nil }
            case 2:
                if writer("PEXPIRE \(key) \(life)") == Wire.int(1) { deadlines[key] = end }
            case 3:
                _ = writer("SET \(key) v")
                deadlines[key] = nil
            default:
                _ = writer("SET \(key) v PX \(life)" + (random.oneIn(5) ? " GRACE 20" : ""))
                deadlines[key] = end
            }
            if random.oneIn(100) { try server.engine.save() }
            if random.oneIn(300) { _ = writer("POLICY \(random.oneIn(2) ? "low" : "never")") }
            if random.oneIn(400) {
                _ = writer("FLUSHDB")
                deadlines = [:]
            }
            server.time.advance(milliseconds: Int64(random.below(random.oneIn(50) ? 40_000 : 100)))
            server.state.notifier.expire()
            if random.oneIn(10) { server.engine.maintain() }
            let due = deadlines.filter { $0.value <= server.engine.now() }.keys
            for key in due { deadlines[key] = nil }
            let found = heard(server, listener).map { String($0.dropFirst("__keyevent@0__:expired ".count)) }
            #expect(found.sorted() == due.sorted(), "step \(step)")
        }
    }

    /// SET with a past deadline stores nothing, but sends all events that Redis sends immediately or later.
    @Test("SET with a past deadline sends the events of storing and expiry")
    func setWithAPastDeadlineSendsStoringAndExpiryEvents() throws {
        let (server, listener) = try Self.start("E$gxn")
        let writer = server.connect()
        let all = ["set k", "expire k", "expired k"].map { "__keyevent@0__:\($0)" }
        for line in ["SET k v PXAT 1", "SET k v NX PXAT 1"] {
            #expect(writer(line) == Wire.ok)
            #expect(heard(server, listener) == ["__keyevent@0__:new k"] + all, "\(line)")
        }
        #expect(writer("SET k v XX PXAT 1") == Wire.null)
        #expect(heard(server, listener) == [])
        _ = writer("SET k v PX 100")
        _ = heard(server, listener)
        #expect(writer("SET k v GET PXAT 1") == Wire.bulk("v"))
        #expect(heard(server, listener) == all)
        #expect(writer("EXISTS k") == Wire.int(0))
        server.time.advance(milliseconds: 1000)
        server.state.notifier.expire()
        #expect(heard(server, listener) == [])
    }

    // MARK: Flags

    @Test(arguments: [
        ("KEA", "AKE"), ("", ""), ("Kx", "xK"), ("E$", "$E"), ("AKEmn", "AKEm"), ("KEAmn", "AKEm"),
        ("g$lshztxeKEtmdn", "AKEm"), ("Kn", "nK"),
    ])
    func notifyKeyspaceEventsIsShownInTheFormOfRedis(_ given: String, _ shown: String) throws {
        #expect(KeyspaceEvents(given)?.text == shown)
    }

    @Test func changesAreNotRecordedIfEventsAreDisabled() throws {
        let server = try SocketlessServer()
        #expect(!server.engine.changes.isOn)
        #expect(!server.state.notifier.setEvents("bad"))
        #expect(server.state.notifier.setEvents("A"))
        #expect(!server.engine.changes.isOn)
        #expect(server.state.notifier.setEvents("KA"))
        #expect(server.engine.changes.isOn)
        #expect(server.state.notifier.setEvents(""))
        #expect(!server.engine.changes.isOn)
    }

    @Test func watchedDeadlinesExpireInOrder() {
        var generator = SeededGenerator(seed: testSeed())
        var watch = DeadlineWatch<Int>()
        var model: [Int: Int64] = [:]
        for step in 0..<20_000 {
            let key = Int.random(in: 0..<200, using: &generator)
            if generator.oneIn(4) {
                watch.set(key, nil)
                model[key] = nil
            } else if generator.oneIn(3) {
                let now = Int64(step)
                while let due = watch.popDue(now: now) {
                    #expect((model.removeValue(forKey: due) ?? .max) <= now)
                }
                #expect(!model.values.contains { $0 <= now })
            } else {
                let deadline = Int64(step + Int.random(in: -5...500, using: &generator))
                watch.set(key, deadline)
                model[key] = deadline
            }
            #expect(watch.count == model.count)
        }
    }
}
