import LarderEngine
import Testing

@testable import LarderServer

/// A reply of FETCH.
struct FetchReply: Equatable {
    var state: String
    var value: String?
    var token: String?
    var version: String?
    var age: Int
    var ttl: Int

    /// Parses a reply in RESP2.
    init?(_ text: String) {
        let lines = text.split(separator: "\r\n", omittingEmptySubsequences: false).map(String.init)
        guard lines.first == "*6" else { return nil }
        var place = 1
        func next() -> String? {
            guard place < lines.count else { return nil }
            let head = lines[place]
            place += 1
            if head == "$-1" { return nil }
            if head.hasPrefix(":") { return String(head.dropFirst()) }
            place += 1
            return lines[place - 1]
        }
        state = next() ?? ""
        value = next()
        token = next()
        version = next()
        age = next().flatMap { Int($0) } ?? .min
        ttl = next().flatMap { Int($0) } ?? .min
    }
}

extension TestClient {
    /// Runs FETCH with `words` and returns its reply, or nil if there is no reply yet.
    func fetch(_ words: String) -> FetchReply? {
        let text = self("FETCH " + words)
        return FetchReply(text)
    }

    /// Returns the reply to a FETCH that had to wait; nil if there is no reply yet.
    func takeFetched() -> FetchReply? { FetchReply(takeSendable()) }
}

@Suite struct FetchTests {
    /// After SWAPDB, neither database serves or refreshes anything that now belongs to the other one.
    @Test(arguments: [false, true]) func swapdbEndsLeasesAndCachedAbsencesOfBothDatabases(isSoftlyPurged: Bool) throws {
        let server = try SocketlessServer(policy: .never)
        let (call, old) = (server.connect(), server.connect())
        #expect(call("SET stale old EX 10 GRACE 1000 TAGS 1 t") == Wire.ok)
        #expect(call("SET both old EX 10 GRACE 1000 TAGS 1 t") == Wire.ok)
        if isSoftlyPurged {
            #expect(call("PURGE TAG t SOFT") == Wire.ok)
        } else {
            server.time.advance(milliseconds: 11_000)
        }
        #expect(call("SET fresh old") == Wire.ok)
        // This value was fetched from the origin before the databases were swapped.
        let lead = try #require(old.fetch("stale"))
        #expect(lead.state == "lead" && lead.value == "old")
        let token = try #require(lead.token)
        let cold = try #require(old.fetch("cold")?.token)
        let none = try #require(old.fetch("none")?.token)
        #expect(old("RELEASE none \(none) ABSENT 100000") == Wire.ok)
        for line in ["SELECT 1", "SET both new", "SELECT 0", "SWAPDB 0 1"] { #expect(call(line) == Wire.ok) }
        for index in 0...1 {
            #expect(call("SELECT \(index)") == Wire.ok)
            for key in ["stale", "cold", "none"] {
                let found = try #require(call.fetch(key))
                #expect(found.state == "lead" && found.value == nil, "\(key) in \(index)")
            }
        }
        #expect(call("GET fresh") == Wire.bulk("old"))
        #expect(call.fetch("both")?.state == "lead")
        #expect(old.fetch("both")?.value == "new")
        for (key, token) in [("stale", token), ("cold", cold)] {
            #expect(old("RELEASE \(key) \(token) UNCHANGED") == Wire.null)
            #expect(old("SET \(key) late TOKEN \(token)") == Wire.null)
            #expect(old("EXISTS \(key)") == Wire.int(0))
        }
    }

    @Test func swapdbOfEmptyDatabasesEndsLeases() throws {
        let server = try SocketlessServer(policy: .never)
        let (call, old) = (server.connect(), server.connect())
        let token = try #require(old.fetch("k")?.token)
        let none = try #require(old.fetch("none")?.token)
        #expect(old("RELEASE none \(none) ABSENT 100000") == Wire.ok)
        #expect(call("SWAPDB 0 1") == Wire.ok)
        #expect(call.fetch("none")?.state == "lead")
        #expect(old("SET k late TOKEN \(token)") == Wire.null)
    }

    @Test("one client gets the lease, and the others are served or wait")
    func oneClientLeadsAndTheOthersAreServedOrWait() throws {
        let server = try SocketlessServer(policy: .high)
        let (one, two, three) = (server.connect(), server.connect(), server.connect())
        let lead = try #require(one.fetch("k"))
        #expect(lead.state == "lead" && lead.value == nil && lead.version == nil)
        let token = try #require(lead.token)
        let wait = try #require(two.fetch("k"))
        #expect(wait.state == "wait" && wait.token == nil && wait.ttl == 30_000)
        #expect(three.fetch("k WAIT 1000") == nil, "it waits")
        #expect(one("SET k v TOKEN \(token)") == Wire.ok)
        let filled = try #require(three.takeFetched())
        #expect(filled.state == "fresh" && filled.value == "v" && filled.ttl == 60_000)
        let fresh = try #require(two.fetch("k"))
        #expect(fresh == filled)
        let version = try #require(fresh.version)
        #expect(two("DIGEST k") == Wire.bulk(version))
        let same = try #require(two.fetch("k IFNOT \(version)"))
        #expect(same.state == "same" && same.value == nil && same.version == version)
        #expect(two.fetch("k IFNOT 0000000000000000")?.state == "fresh")
    }

    @Test("a token is valid only once, and not after another write of the key")
    func aTokenIsValidOnceAndUntilAnotherWrite() throws {
        let server = try SocketlessServer()
        let (one, two) = (server.connect(), server.connect())
        func token(_ key: String = "k") throws -> String { try #require(one.fetch(key)?.token) }
        for write in [
            "SET k newer", "DEL k", "SETRANGE k 0 x", "FLUSHDB", "FLUSHDB", "RENAME other k", "GETDEL k", "UNLINK x k",
            "DELEX k", "PURGE PREFIX k", "MSET k 1 other 2", "PURGE",
        ] {
            for isStale in [false, true] {
                _ = two("DEL k")
                if isStale { _ = two("SET k old PX 1 GRACE 60") }
                server.time.advance(milliseconds: 2)
                _ = two("SET other o")
                let token = try token()
                _ = two(write)
                let before = two("GET k")
                #expect(one("SET k older TOKEN \(token)") == Wire.null, "\(write)")
                #expect(one("RELEASE k \(token)") == Wire.null, "\(write)")
                #expect(two("GET k") == before, "\(write)")
            }
        }
        _ = two("DEL k")
        let first = try token()
        #expect(one("SET k 1 TOKEN \(first)") == Wire.ok)
        #expect(one("SET k 2 TOKEN \(first)") == Wire.null, "a token is valid only once")
        let other = try token("other")
        #expect(one("SET k 3 TOKEN \(other)") == Wire.null, "the token of another key")
        #expect(one("SET unknown 3 TOKEN 77") == Wire.null, "a token that was never granted")
        #expect(two("GET k") == Wire.bulk("1"))
        for bad in ["0x5", "-1", "18446744073709551616", "", "1.0"] {
            #expect(
                one(["SET", "k", "v", "TOKEN", bad])
                    == Wire.error("ERR invalid token: must be the number that FETCH returned"))
        }
    }

    @Test func tokenCanBeCombinedWithOtherOptionsOfSET() throws {
        let server = try SocketlessServer()
        let one = server.connect()
        var token = try #require(one.fetch("k")?.token)
        #expect(one("SET k v XX TOKEN \(token)") == Wire.null, "the condition does not hold")
        #expect(one("SET k v NX GET EX 50 GRACE 60 TOKEN \(token)") == Wire.null, "GET returns the old value: none")
        #expect(one("TTL k") == Wire.int(50))
        #expect(one("DEL k") == Wire.int(1))
        token = try #require(one.fetch("k")?.token)
        let other = try #require(one.fetch("l")?.token)
        #expect(one("MSETEX 2 k 1 l 2 EX 5 TOKEN \(token) 5") == Wire.int(0), "all or none")
        #expect(one("EXISTS k l") == Wire.int(0))
        #expect(one("MSETEX 2 k 1 l 2 TOKEN \(token)") == Wire.syntaxError)
        #expect(one("MSETEX 2 k 1 l 2 TOKEN \(token) \(other) EX 5") == Wire.int(1))
        #expect(one("MGET k l") == Wire.bulks("1", "2"))
    }

    @Test("stale values are served while one client refreshes them") func staleIsServedWhileOneRefreshes() throws {
        let server = try SocketlessServer(policy: .high)
        let (one, two) = (server.connect(), server.connect())
        #expect(one("POLICY high GRACE 600") == Wire.ok)
        #expect(one("SET k old") == Wire.ok)
        server.time.advance(milliseconds: 60_000)
        #expect(one("GET k") == Wire.null, "only FETCH returns stale values")
        #expect(one("EXISTS k") == Wire.int(0))
        #expect(one("TTL k") == Wire.int(-2))
        let lead = try #require(one.fetch("k WAIT 500"))
        #expect(lead.state == "lead" && lead.value == "old" && lead.age == 60_000 && lead.ttl == 0)
        let stale = try #require(two.fetch("k WAIT 500"))
        #expect(stale.state == "stale" && stale.value == "old" && stale.token == nil)
        #expect(one("SET k new TOKEN \(try #require(lead.token))") == Wire.ok)
        #expect(two.fetch("k")?.value == "new")
        server.time.advance(milliseconds: 660_000)
        let gone = try #require(one.fetch("k"))
        #expect(gone.state == "lead" && gone.value == nil)
    }

    @Test("after RELEASE FAILED, FETCH returns a failure or a stale value for the given time")
    func fetchReturnsAFailureAfterRELEASEFAILED() throws {
        let server = try SocketlessServer(policy: .high)
        let (one, two) = (server.connect(), server.connect())
        var token = try #require(one.fetch("k")?.token)
        #expect(two.fetch("k WAIT 9000") == nil)
        #expect(one("RELEASE k \(token) FAILED 5000") == Wire.ok)
        let failed = try #require(two.takeFetched())
        #expect(failed.state == "failed" && failed.value == nil && failed.ttl == 5000)
        #expect(one.fetch("k")?.state == "failed")
        server.time.advance(milliseconds: 5000)
        token = try #require(one.fetch("k")?.token)
        #expect(one("SET k v GRACE 600 TOKEN \(token)") == Wire.ok)
        server.time.advance(milliseconds: 60_000)
        token = try #require(one.fetch("k")?.token)
        #expect(one("RELEASE k \(token) FAILED 5000") == Wire.ok)
        #expect(two.fetch("k WAIT 9000")?.state == "stale", "the stale value is returned during the back-off")
        #expect(two("SET k other") == Wire.ok)
        #expect(two.fetch("k")?.state == "fresh", "a write ends the back-off")
    }

    @Test func releaseAbsentIsCachedForTheGivenTime() throws {
        let server = try SocketlessServer(policy: .high)
        let (one, two) = (server.connect(), server.connect())
        #expect(one("SET k v GRACE 600") == Wire.ok)
        server.time.advance(milliseconds: 60_000)
        let token = try #require(one.fetch("k")?.token)
        #expect(one("RELEASE k \(token) ABSENT 7000") == Wire.ok)
        let absent = try #require(two.fetch("k WAIT 5"))
        #expect(absent.state == "absent" && absent.value == nil && absent.ttl == 7000)
        server.time.advance(milliseconds: 6999)
        #expect(two.fetch("k")?.state == "absent")
        server.time.advance(milliseconds: 1)
        let again = try #require(two.fetch("k"))
        #expect(again.state == "lead" && again.value == nil, "the stale value is removed")
        #expect(two("RELEASE k \(try #require(again.token)) ABSENT 1") == Wire.ok, "ABSENT needs no stored value")
    }

    /// A value stored in the millisecond of the request is not accepted, because it may be older than the request.
    @Test("FETCH MAXAGE 0 accepts only values stored after the request") func aMaximumAgeOfZeroAcceptsNoExistingValue()
        throws
    {
        let server = try SocketlessServer(policy: .high)
        let (one, two) = (server.connect(), server.connect())
        #expect(one("SET k v") == Wire.ok)
        #expect(two.fetch("k MAXAGE 1")?.state == "fresh")
        let lead = try #require(two.fetch("k MAXAGE 0"))
        #expect(lead.state == "lead" && lead.value == "v")
        #expect(one.fetch("k MAXAGE 0")?.state == "wait")
        #expect(one.fetch("k MAXAGE 0 WAIT 100") == nil)
        #expect(two("SET k w TOKEN \(try #require(lead.token))") == Wire.ok)
        // The waiting client was woken by the store, so the value is newer than the client's request, whatever the
        // clock says.
        let fresh = try #require(one.takeFetched())
        #expect(fresh.state == "fresh" && fresh.value == "w")
        #expect(two.fetch("k MAXAGE 0")?.state == "lead")
    }

    @Test("RELEASE UNCHANGED starts a new lifetime for the stored value")
    func releaseUnchangedStartsANewLifetime() throws {
        let server = try SocketlessServer(policy: .high)
        let (one, two) = (server.connect(), server.connect())
        #expect(one("SET k v EX 10 GRACE 600 CODEC json") == Wire.ok)
        server.time.advance(milliseconds: 15_000)
        let token = try #require(one.fetch("k")?.token)
        #expect(two.fetch("k MAXAGE 0 WAIT 100") == nil, "the value is too old for this caller")
        #expect(one("RELEASE k \(token) UNCHANGED") == Wire.ok)
        let fresh = try #require(two.takeFetched())
        #expect(fresh.state == "fresh" && fresh.value == "v" && fresh.age == 0 && fresh.ttl == 10_000)
        #expect(one("META k").contains("json"))
        let other = try #require(one.fetch("other")?.token)
        #expect(
            one("RELEASE other \(other) UNCHANGED")
                == Wire.error("ERR UNCHANGED needs a stored value, and there is none; the lease was released"))
        #expect(two.fetch("other")?.state == "lead")
    }

    @Test func aReleasedLeaseGoesToTheLongestWaiter() throws {
        let server = try SocketlessServer()
        let clients = (0..<4).map { _ in server.connect() }
        let token = try #require(clients[0].fetch("k")?.token)
        for client in clients[1...] { #expect(client.fetch("k WAIT 5000") == nil) }
        #expect(clients[0]("RELEASE k \(token)") == Wire.ok)
        let second = try #require(clients[1].takeFetched())
        #expect(second.state == "lead")
        #expect(clients[2].takeFetched() == nil && clients[3].takeFetched() == nil)
        // The connection of the client that has the lease closes.
        clients[1].session.end()
        server.deliver()
        let third = try #require(clients[2].takeFetched())
        #expect(third.state == "lead" && third.token != second.token)
        // The connection of a client that waits for the lease closes.
        clients[3].session.end()
        #expect(clients[2]("RELEASE k \(try #require(third.token))") == Wire.ok)
        let last = server.connect()
        #expect(last.fetch("k")?.state == "lead")
        #expect(server.engine.leases.waiters.read() == 0)
        withExtendedLifetime(last) { #expect(server.engine.leases.leases.read() == 1) }
    }

    @Test func aLeaseExpiresAfterItsTime() throws {
        let server = try SocketlessServer()
        let (one, two, three) = (server.connect(), server.connect(), server.connect())
        let token = try #require(one.fetch("k LEASE 100")?.token)
        #expect(two.fetch("k WAIT 5000") == nil)
        #expect(three.fetch("k WAIT 5000") == nil)
        one.session.end()
        server.deliver()
        #expect(two.takeFetched() == nil, "a lease with a time outlives its holder's connection")
        server.time.advance(milliseconds: 100)
        // The loop wakes both clients at that instant, in any order.
        three.run()
        server.deliver()
        #expect(two.takeFetched()?.state == "lead", "the longest wait first")
        #expect(three.takeFetched() == nil)
        #expect(three.session.waits.fetching.waiting != nil)
        #expect(server.connect()("SET k v TOKEN \(token)") == Wire.null)
    }

    /// Reclaiming the space of entries that had already expired is not a change.
    @Test("reclaiming the space of expired entries ends no lease") func reclaimingExpiredEntriesEndsNoLease() throws {
        let server = try SocketlessServer()
        let (one, two) = (server.connect(), server.connect())
        #expect(one("SET k v PX 1") == Wire.ok)
        server.time.advance(milliseconds: 2)
        let token = try #require(one.fetch("k")?.token)
        #expect(two("PURGE EXPIRED").contains(":1"))
        #expect(two.fetch("k")?.state == "wait")
        #expect(one("SET k new TOKEN \(token)") == Wire.ok)
    }

    @Test(arguments: ["DEL k", "PURGE", "PURGE PREFIX k", "GETDEL k"], [false, true])
    func aRemovalPassesTheLeaseToTheLongestWaiter(_ removal: String, _ isStored: Bool) throws {
        let server = try SocketlessServer()
        let clients = (0..<4).map { _ in server.connect() }
        if isStored { #expect(clients[0]("SET k v PX 1 GRACE 60") == Wire.ok) }
        server.time.advance(milliseconds: 2)
        #expect(clients[0].fetch("k")?.state == "lead")
        // The order of the waits differs from the order of the connections.
        for index in [3, 1, 2] { #expect(clients[index].fetch("k MAXAGE 0 WAIT 5000") == nil) }
        _ = clients[0](removal)
        // The removal ends one lease, even if the key has no entry. A GETDEL of a missing key is not a removal.
        guard removal != "GETDEL k" || isStored else { return }
        #expect(clients[3].takeFetched()?.state == "lead")
        for index in [1, 2] {
            #expect(clients[index].takeFetched() == nil)
            #expect(clients[index].session.waits.fetching.waiting != nil)
        }
    }

    /// Regression test: an event loop kept running the command until its time limit, and served no other client.
    @Test("a woken waiter that must wait again does not block the event loop")
    func aWokenWaiterThatWaitsAgainDoesNotBlockTheLoop() throws {
        let server = try SocketlessServer()
        let (one, two, three) = (server.connect(), server.connect(), server.connect())
        #expect(one.fetch("k")?.state == "lead")
        #expect(two.fetch("k WAIT 5000") == nil)
        #expect(three.fetch("k WAIT 5000") == nil)
        three.session.waits.fetching.waiting?.news.set(true)
        server.deliver()
        #expect(three.takeFetched() == nil)
        #expect(three.session.waits.fetching.waiting.map { $0.news.value == nil } == true)
    }

    @Test("a waiter gets the lease when the lease of the previous waiter has expired")
    func aWaiterIsNotifiedIfTheNextLeaseExpires() throws {
        let server = try SocketlessServer()
        let (one, two, three) = (server.connect(), server.connect(), server.connect())
        #expect(one.fetch("k")?.state == "lead")
        #expect(two.fetch("k WAIT 5000 LEASE 100") == nil)
        #expect(three.fetch("k WAIT 20000") == nil)
        one.session.end()
        server.deliver()
        #expect(two.takeFetched()?.state == "lead")
        let until = try #require(three.waitsUntil)
        #expect(until == server.time.monotonicMilliseconds() + 100)
        server.time.advance(milliseconds: 100)
        three.run()
        #expect(three.takeFetched()?.state == "lead")
    }

    /// A refresh whose store is refused does not count as a refresh, so its duration does not make later refreshes
    /// begin earlier.
    @Test func aRefusedStoreDoesNotMakeRefreshesEarlier() throws {
        let server = try SocketlessServer()
        let (one, two) = (server.connect(), server.connect())
        let token = try #require(one.fetch("k LEASE 200000")?.token)
        server.time.advance(milliseconds: 100_000)
        #expect(one("MSETEX 2 k 1 l 2 TOKEN \(token) 5") == Wire.int(0))
        #expect(two("SET k v EX 1000") == Wire.ok)
        server.time.advance(milliseconds: 900_000)
        #expect(two.fetch("k")?.state == "fresh", "the last refresh did not take 100 seconds")
    }

    @Test func fetchWithWAITReturnsAfterItsTimeout() throws {
        let server = try SocketlessServer()
        let (one, two) = (server.connect(), server.connect())
        #expect(one.fetch("k")?.state == "lead")
        two.feed("FETCH k WAIT 50\r\nPING\r\n".utf8)
        #expect(two.takeSendable() == "", "the next command waits too")
        server.time.advance(milliseconds: 50)
        two.run()
        let text = two.takeSendable()
        #expect(text.hasSuffix("+PONG\r\n"))
        #expect(FetchReply(text)?.state == "wait")
        #expect(server.engine.leases.waiters.read() == 0)
    }

    @Test("one client refreshes an entry before its deadline, and others get the current value")
    func oneClientRefreshesBeforeTheDeadline() throws {
        let server = try SocketlessServer(policy: .middle)
        let (one, two) = (server.connect(), server.connect())
        #expect(one("SET k v EX 1000") == Wire.ok)
        server.time.advance(milliseconds: 949_000)
        #expect(one.fetch("k")?.state == "fresh")
        server.time.advance(milliseconds: 1000)
        let early = try #require(one.fetch("k"))
        #expect(early.state == "lead" && early.value == "v" && early.ttl == 50_000)
        #expect(two.fetch("k")?.state == "fresh")
        // The refresh takes 100 seconds, so the next one starts 200 seconds before the deadline.
        let token = try #require(two.fetch("slow LEASE 200000")?.token)
        server.time.advance(milliseconds: 100_000)
        #expect(two("SET slow v EX 1000 TOKEN \(token)") == Wire.ok)
        server.time.advance(milliseconds: 799_000)
        #expect(two.fetch("slow")?.state == "fresh")
        server.time.advance(milliseconds: 1000)
        #expect(two.fetch("slow")?.state == "lead")
        #expect(one("SET ever v POLICY never") == Wire.ok)
        #expect(one.fetch("ever")?.ttl == -1)
    }

    @Test func trackingClientsAreNotifiedWhenALeaseIsReleased() throws {
        let server = try SocketlessServer()
        let (one, two) = (server.connect(), server.connect())
        #expect(two("HELLO 3").hasPrefix("%"))
        #expect(two("CLIENT TRACKING ON OPTIN") == Wire.ok)
        let push = ">2\r\n" + Wire.bulk("invalidate") + Wire.bulks("k")
        var token = try #require(one.fetch("k")?.token)
        #expect(two("FETCH k").contains("wait"))
        #expect(one("RELEASE k \(token)") == Wire.ok)
        #expect(two.takeSendable() == push, "given up")
        token = try #require(one.fetch("k")?.token)
        #expect(two("FETCH k").contains("wait"))
        #expect(one("SET k v TOKEN \(token)") == Wire.ok)
        #expect(two.takeSendable() == push, "filled")
        #expect(one("DEL k") == Wire.int(1))
        #expect(one.fetch("k")?.state == "lead")
        #expect(two("FETCH k").contains("wait"))
        one.session.end()
        server.deliver()
        #expect(two.takeSendable() == push, "the holder has disconnected")
    }

    @Test func trackingClientsAreNotifiedWhenALeaseExpires() throws {
        let server = try SocketlessServer()
        let (one, two) = (server.connect(), server.connect())
        #expect(two("HELLO 3").hasPrefix("%"))
        #expect(two("CLIENT TRACKING ON OPTIN") == Wire.ok)
        let push = ">2\r\n" + Wire.bulk("invalidate") + Wire.bulks("k")
        #expect(one.fetch("k")?.state == "lead")
        #expect(two("FETCH k").contains("wait"))
        #expect(one("DEL k") == Wire.int(0))
        #expect(two.takeSendable() == push, "DEL of a missing key ends the lease")
        #expect(one.fetch("k LEASE 5")?.state == "lead")
        #expect(two("FETCH k").contains("wait"))
        server.time.advance(milliseconds: 10)
        _ = server.engine.maintain()
        server.deliver()
        #expect(two.takeSendable() == push, "the lease has expired")
    }

    @Test(arguments: ["", " SOFT"]) func aPurgeOfATagEndsTheLeasesOfItsKeysOnly(_ soft: String) throws {
        let server = try SocketlessServer()
        let (one, two, three) = (server.connect(), server.connect(), server.connect())
        #expect(one("SET k old EX 1 GRACE 100 TAGS 2 t u") == Wire.ok)
        server.time.advance(milliseconds: 1000)
        let lead = try #require(one.fetch("k"))
        #expect(lead.state == "lead" && lead.value == "old")
        #expect(three("PURGE TAG other" + soft) == Wire.ok)
        #expect(one("SET k new EX 1 GRACE 100 TAGS 2 t u TOKEN \(lead.token ?? "")") == Wire.ok)
        server.time.advance(milliseconds: 1000)
        let token = try #require(one.fetch("k")?.token)
        #expect(two.fetch("k MAXAGE 1 WAIT 3000") == nil, "it waits")
        #expect(three("PURGE TAG u" + soft) == Wire.ok)
        let next = try #require(two.takeFetched())
        #expect(next.state == "lead")
        #expect(one("SET k older TOKEN \(token)") == Wire.null)
        // The next lease, of the waiting client, has the same tags.
        #expect(three("PURGE TAG t" + soft) == Wire.ok)
        #expect(two("SET k older TOKEN \(next.token ?? "")") == Wire.null)
    }

    @Test("in a transaction, a token is valid only once, and not after a write of the key")
    func tokensInTransactions() throws {
        let server = try SocketlessServer()
        let one = server.connect()
        for (before, first) in [
            ("SET k newer", Wire.ok), ("SET k newer TOKEN $", Wire.ok), ("DEL k", Wire.int(1)),
            ("SETNX other 1", Wire.int(1)), ("EXPIRE k 100", Wire.int(1)),
        ] {
            #expect(one("SET k stored EX 50") == Wire.ok)
            let token = try #require(one.fetch("k MAXAGE 0")?.token)
            #expect(one("MULTI") == Wire.ok)
            for words in [before, "SET k older TOKEN $"] {
                #expect(one(words.replacing("$", with: token)) == "+QUEUED\r\n")
            }
            let isValid = before.contains("other")
            #expect(one("EXEC") == "*2\r\n" + first + (isValid ? Wire.ok : Wire.null), "\(before)")
        }
    }

    @Test func resetReleasesTheConnectionsLeases() throws {
        let server = try SocketlessServer()
        let (one, two) = (server.connect(), server.connect())
        let token = try #require(one.fetch("k")?.token)
        #expect(two.fetch("k WAIT 3000") == nil)
        #expect(one("RESET") == "+RESET\r\n")
        #expect(two.takeFetched()?.state == "lead")
        #expect(one("SET k older TOKEN \(token)") == Wire.null)
        #expect(one.fetch("other")?.state == "lead", "the client can get leases again")
    }

    @Test func flushallEndsLeasesOfDatabasesThatHaveNoFilesYet() throws {
        let server = try SocketlessServer()
        let (one, two, three) = (server.connect(), server.connect(), server.connect())
        let token = try #require(one.fetch("k")?.token)
        #expect(two.fetch("k WAIT 3000") == nil)
        #expect(three("FLUSHALL") == Wire.ok)
        #expect(two.takeFetched()?.state == "lead")
        #expect(one("SET k older TOKEN \(token)") == Wire.null)
    }

    /// An expired lease is no longer counted, even if no client requests the key again.
    @Test func expiredLeasesAreNotCounted() throws {
        let server = try SocketlessServer()
        let one = server.connect()
        for number in 0..<50 { #expect(one.fetch("k\(number) LEASE 1")?.state == "lead") }
        server.time.advance(milliseconds: 10)
        _ = server.engine.maintain()
        #expect(server.engine.leases.leases.read() == 0)
    }

    @Test func infoReportsLeasesAndMisses() throws {
        let server = try SocketlessServer(policy: .high)
        let (one, two) = (server.connect(), server.connect())
        func field(_ name: String) -> String? {
            one("INFO everything").split(separator: "\r\n").first { $0.hasPrefix(name + ":") }
                .map { String($0.dropFirst(name.count + 1)) }
        }
        let token = try #require(one.fetch("k")?.token)
        #expect(two.fetch("k WAIT 1000") == nil)
        #expect(field("leases") == "1" && field("lease_waiters") == "1" && field("leases_granted") == "1")
        #expect(field("blocked_clients") == "1")
        #expect(one("RELEASE k \(token) FAILED 100") == Wire.ok)
        #expect(two.takeFetched()?.state == "failed")
        #expect(field("leases") == "0" && field("lease_waiters") == "0" && field("fetch_failures") == "1")
        _ = server.connect().fetch("other LEASE 50")
        server.time.advance(milliseconds: 50)
        _ = two.fetch("other")
        #expect(field("leases_lost") == "1" && field("leases_granted") == "3")
        #expect(one("SET e v") == Wire.ok)
        #expect(one("SET p v TAGS 1 t") == Wire.ok)
        #expect(one("PURGE TAG t") == Wire.ok)
        #expect(one("GET p") == Wire.null)
        server.time.advance(milliseconds: 60_000)
        #expect(one("GET e") == Wire.null)
        #expect(one("GET nothing") == Wire.null)
        #expect(field("keyspace_misses_expired") == "1" && field("keyspace_misses_purged") == "1")
        #expect(one("SET s v PX 10 GRACE 100") == Wire.ok)
        server.time.advance(milliseconds: 20)
        _ = one.fetch("s")
        #expect(field("stale_served") == "0")
        #expect(two.fetch("s")?.state == "stale")
        #expect(field("stale_served") == "1")
    }

    @Test func fetchAndReleaseRefuseInvalidArguments() throws {
        let server = try SocketlessServer()
        let call = server.connect()
        #expect(call("FETCH") == Wire.arity("fetch"))
        for words in ["MAXAGE", "WAIT 5 WAIT 5", "nonsense 5", "IFNOT 0000000000000000 IFNOT 0000000000000000"] {
            #expect(call("FETCH k \(words)") == Wire.syntaxError, "\(words)")
        }
        for (words, word, least) in [
            ("LEASE 0", "LEASE", 1), ("LEASE 31536000000", "LEASE", 1), ("WAIT -1", "WAIT", 0),
            ("MAXAGE x", "MAXAGE", 0),
            ("WAIT 86400001", "WAIT", 0),
        ] {
            #expect(
                call("FETCH k \(words)") == Wire.error("ERR \(word) takes milliseconds, from \(least) to 86400000"))
        }
        #expect(
            call("FETCH k IFNOT 12")
                == Wire.error("ERR the version must be 16 hexadecimal digits, as returned by FETCH and DIGEST"))
        #expect(call("RELEASE k 5 ABSENT 0") == Wire.error("ERR ABSENT takes milliseconds, from 1 to 86400000"))
        #expect(call("RELEASE k 5 GONE") == Wire.syntaxError)
        #expect(call("RELEASE k 5") == Wire.null)
        #expect(call("MULTI") == Wire.ok)
        #expect(call("FETCH k").hasPrefix("-ERR"), "a transaction cannot wait")
        #expect(call("EXEC").hasPrefix("-EXECABORT"))
        #expect(call("SNAPSHOT OPEN") == Wire.ok)
        #expect(
            call("FETCH k")
                == Wire.error("ERR a snapshot is open, and FETCH reads current entries: SNAPSHOT CLOSE first"))
    }
}
