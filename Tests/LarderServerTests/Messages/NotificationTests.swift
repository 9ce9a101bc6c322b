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
        server.state.notifier.tick()
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

    @Test func theNumberOfWatchedDeadlinesIsLimited() throws {
        var limits = Limits()
        limits.watchedDeadlinesMax = 3
        let server = try SocketlessServer(policy: .never, limits: limits)
        #expect(server.state.notifier.setEvents("Ex"))
        let (listener, writer) = (server.connect(), server.connect())
        _ = listener("PSUBSCRIBE __key*")
        for index in 0..<10 { _ = writer("SET k\(index) v PX 100") }
        server.time.advance(milliseconds: 100)
        server.state.notifier.expire()
        #expect(heard(server, listener).count == 3)
    }

    /// If more entries have deadlines than the server can watch, this is logged once.
    @Test func tooManyDeadlinesToWatchAreLoggedOnce() throws {
        var limits = Limits()
        limits.watchedDeadlinesMax = 2
        let server = try SocketlessServer(policy: .never, limits: limits)
        let warnings = Recorder<Int>()
        server.state.notifier.onTooManyDeadlines { warnings.add($0) }
        #expect(server.state.notifier.setEvents("Ex"))
        let writer = server.connect()
        for key in ["a", "b", "a"] { _ = writer("SET \(key) v PX 100") }
        #expect(warnings.all == [])
        for key in ["c", "d"] { _ = writer("SET \(key) v PX 100") }
        #expect(warnings.all == [2])
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
