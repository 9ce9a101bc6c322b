import LarderEngine
import LarderOriginClients
import LarderTestSupport
import Testing

@testable import LarderServer

/// Tests of a database in front of an origin: which keys it requests, which values it caches, and which entries it
/// treats as current.
@Suite struct OriginTests {
    @Test(arguments: ["", "AROUND", "BEHIND"]) func malformedWritesAreNotSentToTheOrigin(_ words: String) throws {
        let fixture = try OriginFixture(words)
        #expect(fixture.client("MSET a 1 b").contains("wrong number of arguments for 'mset'"))
        #expect(fixture.origin.takeCommands() == [])
    }

    /// These commands are refused, because the entry would not exist at the origin. MOVE would also remove the entry
    /// from its previous database.
    @Test(arguments: ["MOVE k 0", "COPY k k DB 0", "COPY k k DB 0 REPLACE", "SWAPDB 0 1", "SWAPDB 1 0"])
    func entriesCannotBeMovedToADatabaseWithAnOrigin(_ line: String) throws {
        let fixture = try OriginFixture()
        let other = fixture.server.connect()
        _ = other("SELECT 1")
        _ = other("SET k mine")
        #expect(other(line).contains("database '0', because it has an origin"))
        #expect(other("GET k") == Wire.bulk("mine"))
        for line in ["MULTI", line] { _ = other(line) }
        #expect(other("EXEC").contains("has an origin"))
        #expect(other("GET k") == Wire.bulk("mine"))
    }

    @Test(arguments: ["MOVE k 1", "COPY k k DB 1"]) func entriesCannotBeMovedFromADatabaseWithAnOrigin(_ line: String)
        throws
    {
        let fixture = try OriginFixture()
        fixture.origin.change("k", to: "v")
        #expect(fixture.client(line).contains("database '0', because it has an origin"))
        #expect(fixture.origin.takeCommands() == [])
    }

    // MARK: Reading

    @Test func aMissingKeyIsRequestedOnceAndThenCached() throws {
        let fixture = try OriginFixture()
        fixture.origin.change("a", to: "one")
        #expect(fixture.client("GET a") == Wire.bulk("one"))
        #expect(fixture.origin.takeReads() == ["a"])
        #expect(fixture.client("GET a") == Wire.bulk("one"))
        #expect(fixture.client("STRLEN a") == Wire.int(3))
        #expect(fixture.client("EXISTS a a") == Wire.int(2))
        #expect(fixture.client("MGET a a") == Wire.bulks("one", "one"))
        #expect(fixture.client("GETRANGE a 1 2") == Wire.bulk("ne"))
        #expect(fixture.origin.takeReads() == [])
    }

    @Test func absentKeysAreCached() throws {
        let fixture = try OriginFixture()
        #expect(fixture.client("GET a") == Wire.null)
        #expect(fixture.client("GET a") == Wire.null)
        #expect(fixture.client("EXISTS a") == Wire.int(0))
        #expect(fixture.client("TTL a") == Wire.int(-2))
        #expect(fixture.origin.takeReads() == ["a"])
        fixture.origin.change("a", to: "one")
        #expect(fixture.client("GET a") == Wire.bulk("one"))
    }

    @Test func aChangeAtTheOriginIsSeenByTheNextRead() throws {
        let fixture = try OriginFixture()
        for value in ["one", "two", nil, "three"] {
            fixture.origin.change("a", to: value)
            #expect(fixture.client("GET a") == (value.map(Wire.bulk) ?? Wire.null))
        }
    }

    @Test func mgetReadsMissingKeysWithOneRequest() throws {
        let fixture = try OriginFixture()
        fixture.origin.change("a", to: "1")
        fixture.origin.change("c", to: "3")
        _ = fixture.client("GET a")
        #expect(fixture.client("MGET a b c") == "*3\r\n" + Wire.bulk("1") + Wire.null + Wire.bulk("3"))
        #expect(fixture.origin.takeReads().sorted() == ["a", "b", "c"])
    }

    @Test func readsOfAPipelineTakeOneRequest() throws {
        let fixture = try OriginFixture()
        for name in ["a", "b", "c", "d"] { fixture.origin.change(name, to: "v" + name) }
        _ = fixture.client("GET b")
        _ = fixture.client("GET x")
        _ = fixture.origin.takeReads()
        fixture.origin.hold()
        let names = ["a", "b", "x", "c", "a", "d"]
        fixture.client.feed(names.flatMap { encodeRequest(["GET", $0]) })
        #expect(fixture.origin.takeReads().sorted() == ["a", "c", "d"])
        fixture.origin.answer()
        fixture.server.commit()
        let replies = ["va", "vb", nil, "vc", "va", "vd"].map { $0.map(Wire.bulk) ?? Wire.null }.joined()
        #expect(fixture.client.takeSendable() == replies)
        #expect(fixture.origin.takeReads() == [])
    }

    @Test func onlyPurgedEntriesOfAPipelineAreRequestedAgain() throws {
        let fixture = try OriginFixture()
        for name in ["a", "b", "c"] { fixture.origin.change(name, to: "v" + name) }
        _ = fixture.client("MGET a b c")
        _ = fixture.origin.takeReads()
        _ = try fixture.server.engine.database("0").purge(.prefix(Array("b".utf8)))
        fixture.client.feed(["a", "b", "c"].flatMap { encodeRequest(["GET", $0]) })
        fixture.server.commit()
        #expect(fixture.client.takeSendable() == Wire.bulk("va") + Wire.bulk("vb") + Wire.bulk("vc"))
        #expect(fixture.origin.takeReads() == ["b"])
    }

    @Test func oneRequestServesAllWaiters() throws {
        let fixture = try OriginFixture()
        fixture.origin.change("a", to: "one")
        let others = (0..<5).map { _ in fixture.server.connect() }
        fixture.origin.hold()
        for client in others { #expect(client("GET a") == "") }
        #expect(fixture.origin.takeReads() == ["a"])
        fixture.origin.answer()
        fixture.server.commit()
        for client in others { #expect(client.takeSendable() == Wire.bulk("one")) }
    }

    @Test func aReplyIsNotCachedIfTheKeyChangedInTheMeantime() throws {
        let fixture = try OriginFixture()
        fixture.origin.change("a", to: "old")
        fixture.origin.hold()
        #expect(fixture.client("GET a") == "")
        fixture.origin.change("a", to: "new")
        let late = fixture.server.connect()
        #expect(late("GET a") == "", "a later read sends its own request")
        fixture.origin.answer()
        fixture.server.commit()
        #expect(fixture.client.takeSendable() == Wire.bulk("old"), "the value at the start of the command")
        #expect(late.takeSendable() == Wire.bulk("new"))
        #expect(late("GET a") == Wire.bulk("new"))
    }

    @Test func theShorterLifetimeOfOriginAndPolicyCounts() throws {
        let fixture = try OriginFixture(policy: .high)
        fixture.origin.change("short", to: "s", lifetime: 5_000)
        fixture.origin.change("long", to: "l", lifetime: 3_600_000)
        #expect(fixture.client("PTTL long") == Wire.int(60_000), "the policy also limits the first reply")
        #expect(fixture.client("META long").contains(Wire.bulk("rule") + Wire.bulk("governed")))
        _ = fixture.client("MGET short long")
        let short = Int(fixture.client("PTTL short").dropFirst().dropLast()) ?? 0
        let long = Int(fixture.client("PTTL long").dropFirst().dropLast()) ?? 0
        #expect((4_000...5_000).contains(short))
        #expect(long == 60_000)
        _ = fixture.origin.takeReads()
        fixture.server.time.advance(milliseconds: 5_001)
        _ = fixture.client("GET short")
        #expect(fixture.origin.takeReads() == ["short"])
    }

    @Test("a lifetime at the origin that is longer than any policy counts as none", arguments: [1 << 53, Int64.max])
    func hugeLifetimes(_ lifetime: Int64) throws {
        let fixture = try OriginFixture(policy: .never)
        fixture.origin.change("a", to: "v", lifetime: lifetime)
        for _ in 0..<2 { #expect(fixture.client("GET a") == Wire.bulk("v")) }
        #expect(fixture.client("PTTL a") == Wire.int(-1))
    }

    /// The lifetime in a reply starts with the request, so the time until the reply arrives is a part of it.
    @Test func aLifetimeCountsFromTheStartOfTheRequest() throws {
        var random = SeededGenerator(seed: testSeed())
        let fixture = try OriginFixture(policy: .high)
        for number in 0..<40 {
            let (age, lifetime) = (Int64(random.below(50_000)), 1 + Int64(random.below(100_000)))
            fixture.origin.change("k\(number)", to: "v", lifetime: lifetime)
            fixture.origin.answerLate(milliseconds: age)
            _ = fixture.client("GET k\(number)")
            fixture.origin.answerLate(milliseconds: 0)
            let left = Int64(fixture.client("PTTL k\(number)").dropFirst().dropLast()) ?? 0
            // A value that expired before it arrived is absent.
            #expect(left == -2 || left >= 0 && left <= lifetime - age, "\(lifetime) ms, \(age) ms under way: \(left)")
            #expect(left != -2 || lifetime - age < 10_000)
        }
    }

    @Test func purgedEntriesAreRequestedAgain() throws {
        let fixture = try OriginFixture()
        fixture.origin.change("a", to: "one")
        _ = fixture.client("GET a")
        #expect(fixture.origin.takeReads() == ["a"])
        _ = fixture.client("PURGE")
        #expect(fixture.client("STRLEN a") == Wire.int(3))
        #expect(fixture.origin.takeReads() == ["a"])
        #expect(fixture.client("GET a") == Wire.bulk("one"))
        #expect(fixture.origin.takeReads() == [])
    }

    @Test func aLongValueIsReturnedAndNotCached() throws {
        let fixture = try OriginFixture()
        let most = String(repeating: "v", count: 1 << 20)
        fixture.origin.change("fits", to: most)
        fixture.origin.change("long", to: most + "v")
        for _ in 0..<2 {
            #expect(fixture.client("GET fits") == Wire.bulk(most))
            #expect(fixture.client("GET long") == Wire.bulk(most + "v"))
            #expect(fixture.client("STRLEN long") == Wire.int((1 << 20) + 1))
        }
        #expect(fixture.origin.takeReads() == ["fits", "long", "long", "long", "long"])
    }

    @Test func originsWithoutInvalidationsAreReadEachTime() throws {
        let fixture = try OriginFixture()
        fixture.origin.stopTracking()
        fixture.origin.change("a", to: "one", tells: false)
        #expect(fixture.client("GET a") == Wire.bulk("one"))
        fixture.origin.change("a", to: "two", tells: false)
        #expect(fixture.client("GET a") == Wire.bulk("two"))
    }

    // MARK: Losing the origin

    @Test func afterALostConnectionKeysAreRequestedAgain() throws {
        let fixture = try OriginFixture()
        fixture.origin.change("a", to: "one")
        _ = fixture.client("MGET a b")
        fixture.origin.change("a", to: "two", tells: false)
        fixture.origin.change("b", to: "three", tells: false)
        #expect(fixture.client("MGET a b") == "*2\r\n" + Wire.bulk("one") + Wire.null, "the change was not reported")
        fixture.origin.lose()
        #expect(fixture.client("MGET a b") == Wire.bulks("two", "three"))
    }

    @Test func anUnreachableOriginIsExplainedInTheError() throws {
        let fixture = try OriginFixture()
        fixture.origin.fail(.unreachable("there:6379: connection refused"))
        #expect(
            fixture.client("GET a")
                == Wire.error("ORIGIN the origin cannot be reached: there:6379: connection refused"))
        fixture.origin.fail(.refused("WRONGTYPE Operation against a key holding the wrong kind of value"))
        #expect(fixture.client("GET l").hasPrefix("-WRONGTYPE "))
        fixture.origin.fail(nil)
        #expect(fixture.client("GET a") == Wire.null, "failures are not remembered")
    }

    @Test func fetchReturnsStaleValuesWithinTheirGrace() throws {
        let fixture = try OriginFixture()
        _ = fixture.client("POLICY high GRACE 600")
        fixture.origin.change("a", to: "one")
        _ = fixture.client("GET a")
        fixture.origin.lose()
        fixture.origin.fail(.unreachable("gone"))
        #expect(fixture.client("GET a").hasPrefix("-ORIGIN "), "GET cannot mark a value as stale")
        let stale = try #require(fixture.client.fetch("a"))
        #expect(stale.state == "stale" && stale.value == "one" && stale.token == nil)
        #expect(fixture.client("FETCH b").hasPrefix("-ORIGIN "))
        fixture.server.time.advance(milliseconds: 661_000)
        #expect(fixture.client("FETCH a").hasPrefix("-ORIGIN "), "the grace is over")
    }

    @Test func getReturnsStaleValuesWithTheSTALEOption() throws {
        let fixture = try OriginFixture("STALE")
        _ = fixture.client("POLICY high GRACE 600")
        fixture.origin.change("a", to: "one")
        _ = fixture.client("GET a")
        fixture.origin.lose()
        fixture.origin.fail(.timedOut(milliseconds: 2000))
        #expect(fixture.client("GET a") == Wire.bulk("one"))
        let stale = try #require(fixture.client.fetch("a"))
        #expect(stale.state == "stale" && stale.value == "one", "FETCH marks the value as stale here too")
        #expect(fixture.client("GET b").hasPrefix("-ORIGIN "))
        fixture.origin.fail(nil)
        fixture.origin.change("a", to: "two")
        #expect(fixture.client("GET a") == Wire.bulk("two"))
    }

    @Test func withoutAGraceNoStaleValueIsServed() throws {
        let fixture = try OriginFixture("STALE")
        fixture.origin.change("a", to: "one")
        _ = fixture.client("GET a")
        fixture.origin.lose()
        fixture.origin.fail(.closed)
        #expect(fixture.client("GET a").hasPrefix("-ORIGIN "))
        #expect(fixture.client("FETCH a").hasPrefix("-ORIGIN "))
    }

    // MARK: Writing

    @Test func aSetIsWrittenThroughAndCached() throws {
        let fixture = try OriginFixture()
        #expect(fixture.client("SET a one") == Wire.ok)
        #expect(fixture.origin.value("a") == "one")
        #expect(fixture.client("GET a") == Wire.bulk("one"))
        #expect(fixture.origin.takeReads() == [])
        fixture.origin.change("a", to: "two")
        #expect(fixture.client("GET a") == Wire.bulk("two"))
    }

    @Test func withAROUNDWritesAreNotCached() throws {
        let fixture = try OriginFixture("AROUND")
        #expect(fixture.client("SET a one") == Wire.ok)
        #expect(fixture.client("GET a") == Wire.bulk("one"))
        #expect(fixture.origin.takeReads() == ["a"])
    }

    @Test func aFailedWriteInvalidatesTheEntry() throws {
        let fixture = try OriginFixture()
        _ = fixture.client("SET a one")
        fixture.origin.fail(.timedOut(milliseconds: 2000))
        #expect(
            fixture.client("SET a two") == Wire.error("ORIGIN the origin did not answer within 2000 ms"))
        fixture.origin.fail(nil)
        fixture.origin.change("a", to: "two", tells: false)
        #expect(fixture.client("GET a") == Wire.bulk("two"))
    }

    @Test func otherCommandsAreForwardedUnchanged() throws {
        let fixture = try OriginFixture()
        #expect(fixture.client("INCR n") == Wire.int(1))
        #expect(fixture.client("GET n") == Wire.bulk("1"))
        #expect(fixture.client("INCR n") == Wire.int(2))
        #expect(fixture.client("GET n") == Wire.bulk("2"))
        #expect(fixture.client("APPEND n x") == Wire.error("ERR only INCR"))
        #expect(fixture.client("SET n 1 NX") == Wire.error("ERR only INCR"))
        #expect(fixture.origin.takeCommands().suffix(2) == ["APPEND n x", "SET n 1 NX"])
    }

    @Test func msetAndDELOfSeveralKeysAreWrittenThrough() throws {
        let fixture = try OriginFixture()
        #expect(fixture.client("MSET a 1 b 2") == Wire.ok)
        #expect(fixture.client("MGET a b") == Wire.bulks("1", "2"))
        #expect(fixture.client("DEL a b c") == Wire.int(2))
        #expect(fixture.client("MGET a b") == "*2\r\n" + Wire.null + Wire.null)
    }

    @Test func lifetimesAreSentToTheOrigin() throws {
        let fixture = try OriginFixture()
        _ = fixture.client("SET a v PX 5000")
        _ = fixture.client("SET b v KEEPTTL")
        _ = fixture.client("SET c v POLICY high")
        _ = fixture.client("SET d v")
        let commands = fixture.origin.takeCommands()
        _ = fixture.client("SET e v PXAT 4000000000000")
        #expect(fixture.origin.takeCommands()[0].hasPrefix("write e until("))
        #expect(commands[0] == "write a milliseconds(5000)")
        #expect(Array(commands[1...]) == ["write b kept", "write c milliseconds(60000)", "write d unlimited"])
    }

    @Test func larderOptionsAreRefusedForARedisOrigin() throws {
        let fixture = try OriginFixture()
        #expect(fixture.client("SET a v TAGS 1 t").contains("because origins do not support them"))
        #expect(fixture.client("RELEASE a 1").hasPrefix("-ERR RELEASE is not allowed"))
        #expect(fixture.origin.value("a") == nil)
    }

    /// Returns the reply to EXEC after some commands.
    private func transaction(_ fixture: OriginFixture, _ lines: String...) -> String {
        _ = fixture.client("MULTI")
        for line in lines { #expect(fixture.client(line) == "+QUEUED\r\n") }
        return fixture.client("EXEC")
    }

    @Test func aTransactionIsExecutedByTheOrigin() throws {
        let fixture = try OriginFixture()
        fixture.origin.change("a", to: "old")
        #expect(fixture.client("MGET a b") == "*2\r\n" + Wire.bulk("old") + Wire.null)
        #expect(
            transaction(fixture, "SET a 1", "GET a", "SET b 2", "APPEND b x")
                == "*4\r\n" + Wire.ok + Wire.bulk("1") + Wire.ok + Wire.error("ERR only SET and GET"))
        #expect(fixture.origin.takeCommands() == ["MULTI SET a 1; GET a; SET b 2; APPEND b x EXEC"])
        _ = fixture.origin.takeReads()
        #expect(fixture.client("MGET a b") == Wire.bulks("1", "2"))
        #expect(fixture.origin.takeReads().sorted() == ["a", "b"], "the cached values were invalidated")
        #expect(fixture.client("EXEC") == Wire.error("ERR EXEC without MULTI"))
    }

    @Test func aFailedTransactionIsDiscarded() throws {
        let fixture = try OriginFixture()
        fixture.origin.fail(.timedOut(milliseconds: 2000))
        #expect(transaction(fixture, "SET a 1") == Wire.error("ORIGIN the origin did not answer within 2000 ms"))
        fixture.origin.fail(nil)
        #expect(fixture.client("GET a") == Wire.null)
        #expect(fixture.client("EXEC") == Wire.error("ERR EXEC without MULTI"))
        fixture.origin.hold()
        #expect(transaction(fixture, "SET a 1", "GET a") == "", "it waits")
        fixture.origin.answer()
        fixture.server.commit()
        #expect(fixture.client.takeSendable() == "*2\r\n" + Wire.ok + Wire.bulk("1"))
    }

    @Test func transactionsWithOtherCommandsAreRefused() throws {
        let fixture = try OriginFixture()
        for other in ["PING", "SELECT 1", "EVAL return(1) 0", "META a"] {
            _ = fixture.client("SELECT 0")
            #expect(transaction(fixture, "SET a 1", other).contains("ORIGIN a database with an origin"), "\(other)")
        }
        _ = fixture.client("SELECT 0")
        #expect(fixture.client("WATCH a") == Wire.ok)
        #expect(transaction(fixture, "SET a 1").contains("because WATCH cannot detect changes at the origin"))
        _ = fixture.client("MULTI")
        #expect(fixture.client("SET a").hasPrefix("-ERR wrong number"))
        #expect(fixture.client("EXEC").hasPrefix("-EXECABORT"))
        #expect(fixture.origin.value("a") == nil)
        #expect(fixture.origin.takeCommands() == [])
        #expect(transaction(fixture, "SET a 1") == "*1\r\n" + Wire.ok, "the failed EXEC has ended the watch")
    }

    @Test func aReplyFromBeforeAWriteIsNotServedAfterIt() throws {
        let fixture = try OriginFixture()
        fixture.origin.change("a", to: "old")
        fixture.origin.hold()
        let reader = fixture.server.connect()
        #expect(reader("GET a") == "")
        #expect(fixture.client("SET a new") == "")
        fixture.origin.answer()
        fixture.server.commit()
        #expect(fixture.client.takeSendable() == Wire.ok)
        #expect(reader.takeSendable() == Wire.bulk("old"))
        #expect(reader("GET a") == Wire.bulk("new"))
    }

    // MARK: The setting

    @Test func theOriginIsShownSavedAndRemoved() throws {
        let fixture = try OriginFixture("AROUND STALE")
        let shown = fixture.client("ORIGIN")
        #expect(shown.contains(Wire.bulk("redis://there")) && shown.contains(Wire.bulk("around")))
        fixture.server.engine.shutdown()
        let other = ScriptedOrigin()
        let again = try SocketlessServer(reopening: fixture.server, origin: other)
        let client = again.connect()
        #expect(client("ORIGIN").contains(Wire.bulk("around")))
        other.change("a", to: "there")
        #expect(client("GET a") == Wire.bulk("there"))
        #expect(client("ORIGIN NONE") == Wire.ok)
        #expect(other.hasClosed)
        #expect(client("SET a here") == Wire.ok)
        #expect(other.value("a") == "there")
        #expect(client("GET a") == Wire.bulk("here"))
    }

    /// When the origin is removed, a waiting client still gets the origin's reply to its request. The command does not
    /// run a second time, and no later request gets that reply.
    @Test func waitingWritesGetTheirRepliesAfterTheOriginIsRemoved() throws {
        let fixture = try OriginFixture()
        fixture.origin.change("a", to: "old")
        let (writer, second, other) = (fixture.server.connect(), fixture.server.connect(), fixture.server.connect())
        fixture.origin.hold()
        #expect(fixture.client("GET a") == "")
        #expect(writer("INCR n") == "")
        _ = second("MULTI")
        _ = second("SET t 1")
        #expect(second("EXEC") == "")
        #expect(other("ORIGIN NONE") == Wire.ok)
        fixture.origin.answer()
        fixture.server.commit()
        #expect(writer.takeSendable() == Wire.int(1))
        #expect(second.takeSendable() == "*1\r\n" + Wire.ok)
        #expect(other("MGET n t") == "*2\r\n" + Wire.null + Wire.null, "the commands ran only at the origin")
        _ = fixture.client.takeSendable()
        fixture.origin.letGo()
        #expect(other("ORIGIN redis://there") == Wire.ok)
        fixture.origin.change("a", to: "new", tells: false)
        #expect(fixture.client("GET a") == Wire.bulk("new"))
        #expect(writer("INCR n") == Wire.int(2))
    }

    @Test("the origin of one database does not affect another database")
    func theOriginOfADatabaseAffectsNoOtherDatabase() throws {
        let fixture = try OriginFixture()
        _ = fixture.client("SELECT 1")
        #expect(fixture.client("SET a here") == Wire.ok)
        #expect(fixture.client("GET a") == Wire.bulk("here"))
        _ = fixture.client("SELECT 0")
        #expect(fixture.client("GET a") == Wire.null)
        #expect(fixture.origin.value("a") == nil)
    }

    @Test func originWithInvalidArgumentsChangesNothing() throws {
        let fixture = try OriginFixture()
        #expect(fixture.client("ORIGIN redis://x BESIDE").contains("'BESIDE' is not allowed here"))
        #expect(fixture.client("ORIGIN bad:x").contains("'bad:x' is no address"))
        fixture.origin.change("a", to: "one")
        #expect(fixture.client("GET a") == Wire.bulk("one"))
    }

    @Test func aCycleOfOriginsIsRefused() throws {
        let origin = ScriptedOrigin()
        let server = try SocketlessServer(origin: origin)
        let client = server.connect()
        let own = client("ORIGIN PATH").split(separator: "\r\n").last.map(String.init) ?? ""
        origin.setPath(["another", own])
        #expect(client("ORIGIN unix:///other").contains("a cycle: redis://there has this database"))
        origin.setPath(["another"])
        #expect(client("ORIGIN unix:///other") == Wire.ok)
        #expect(client("ORIGIN PATH") == Wire.bulks(own, "another"))
        // A request whose chain already contains this larder is not forwarded again.
        _ = origin.takeCommands()
        #expect(client("ORIGIN PATH first \(own) last") == Wire.bulks(own))
        #expect(origin.takeCommands() == [])
        #expect(client("ORIGIN PATH first") == Wire.bulks(own, "another"))
        #expect(origin.takeCommands() == ["ORIGIN PATH first \(own)"])
    }

    @Test func concurrentlyCreatedCyclesSuspendTheOrigins() throws {
        let origin = ScriptedOrigin()
        let server = try SocketlessServer(origin: origin)
        let client = server.connect()
        let own = client("ORIGIN PATH").split(separator: "\r\n").last.map(String.init) ?? ""
        origin.setPath(["another"], then: ["another", own])
        #expect(client("ORIGIN unix:///other") == Wire.ok)
        #expect(client("GET a").contains("-ORIGIN the origin cannot be used: a cycle: "))
    }

    /// A larder whose upstream chain has a cycle can be set as an origin. Until the cycle ends, reads return an error
    /// that names the cycle.
    @Test func anOriginInACycleIsSuspendedUntilTheCycleEnds() throws {
        let origin = ScriptedOrigin()
        let server = try SocketlessServer(origin: origin)
        let client = server.connect()
        origin.setPath(["one", "two", "three", "two"])
        #expect(client("ORIGIN unix:///other") == Wire.ok)
        let reply = client("GET a")
        #expect(
            reply.contains("-ORIGIN the origin cannot be used: a cycle in the upstream chain of redis://there: "),
            "\(reply)")
        origin.setPath(["one", "two", "three"])
        server.time.advance(milliseconds: 1_000)
        server.state.origins.checkCycles()
        #expect(client("GET a") == Wire.null)
    }

    @Test func aCycleCreatedLaterSuspendsTheOrigin() throws {
        let origin = ScriptedOrigin()
        let server = try SocketlessServer(origin: origin)
        let client = server.connect()
        let own = client("ORIGIN PATH").split(separator: "\r\n").last.map(String.init) ?? ""
        origin.setPath(["another"])
        #expect(client("ORIGIN unix:///other") == Wire.ok)
        func look(seconds: Int64 = 0) -> [String] {
            server.time.advance(milliseconds: seconds * 1000)
            _ = origin.takeCommands()
            server.state.origins.checkCycles()
            return origin.takeCommands()
        }
        #expect(look() == [])
        #expect(client("GET a") == Wire.null)
        // Simulates that the other larder was not available, and now has another origin.
        origin.setPath(["another", "third", own])
        origin.simulateRecovery()
        #expect(look() == ["ORIGIN PATH \(own)"])
        let reply = client("GET a")
        #expect(
            reply.contains("a cycle: redis://there has this database as its origin, over 1 other, "), "\(reply)")
        #expect(look() == [])
        // Without a reply, the previous result stays.
        origin.fail(.timedOut(milliseconds: 1))
        #expect(look(seconds: 1) == ["ORIGIN PATH \(own)"])
        origin.fail(nil)
        #expect(client("GET a").contains("a cycle: "))
        origin.setPath(["another", "third"])
        #expect(look(seconds: 1) == ["ORIGIN PATH \(own)"])
        #expect(client("GET a") == Wire.null)
        // A cycle that was just set up may appear in a reply only a little later. The chain is therefore requested
        // often at first, and rarely after that.
        for seconds: Int64 in [1, 2, 4, 8, 10, 10] {
            #expect(look(seconds: seconds - 1) == [])
            #expect(look(seconds: 1) == ["ORIGIN PATH \(own)"], "\(seconds)")
        }
    }

    /// A server that is not a larder gets only one request for its upstream chain.
    @Test("a server that is not a larder is asked for its upstream chain once per connection")
    func serversThatAreNotLardersArePolledOnce() throws {
        let fixture = try OriginFixture()
        let own = fixture.client("ORIGIN PATH").split(separator: "\r\n")[2]
        fixture.origin.refuseInquiries()
        fixture.origin.simulateRecovery()
        func look() -> [String] {
            fixture.server.time.advance(milliseconds: 60_000)
            _ = fixture.origin.takeCommands()
            fixture.server.state.origins.checkCycles()
            return fixture.origin.takeCommands()
        }
        #expect(look() == ["ORIGIN PATH \(own)"])
        #expect(look() == [])
        fixture.origin.simulateRecovery()
        #expect(look() == ["ORIGIN PATH \(own)"])
    }

    @Test func withADamagedOriginsFileReadsReturnAnError() throws {
        let fixture = try OriginFixture()
        fixture.server.engine.shutdown()
        let path = fixture.server.directory.path + "/larder/ORIGINS"
        try Files.write(path, Array("larder-origins 1\n0 redis://elsewhere THROUGH\ncrc64 0\n".utf8))
        let again = try SocketlessServer(reopening: fixture.server, origin: fixture.origin)
        #expect(again.connect()("GET a").contains("ORIGINS ("))
        #expect(again.connect()("PING") == "+PONG\r\n")
    }
}
