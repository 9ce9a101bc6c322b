import LarderEngine
import LarderOriginClients
import LarderOutboxes
import LarderTestSupport
import Testing

@testable import LarderServer

/// Tests of writes that are acknowledged here and delivered to the origin later.
@Suite struct OutboxTests {
    // MARK: Writing and reading

    /// Another origin may take a while to report its own chain. Writes during that time are acknowledged, and wait for
    /// the current origin.
    @Test func writesContinueWhileAnotherOriginIsBeingSet() throws {
        let fixture = try OriginFixture("BEHIND")
        let replies = Recorder<String>()
        nonisolated(unsafe) let writer = fixture.server.connect()
        fixture.origin.duringNextInquiry { replies.add(writer("SET k v")) }
        let reply = fixture.client("ORIGIN redis://elsewhere BEHIND")
        #expect(replies.all == [Wire.ok])
        #expect(reply.hasPrefix("-ERR 1 write is queued for the origin"), "\(reply)")
        fixture.deliver()
        #expect(fixture.origin.value("k") == "v")
        #expect(fixture.client("ORIGIN redis://elsewhere BEHIND") == Wire.ok)
        #expect(fixture.client("SET k w") == Wire.ok)
    }

    @Test(arguments: [
        "GET a", "MGET a b", "EXISTS a", "STRLEN a", "DUMP a", "TAGS a", "LCS a b", "MEMORY USAGE a", "TTL a",
    ])
    func queuedWritesCanBeReadInTransactions(_ line: String) throws {
        let fixture = try OriginFixture("BEHIND")
        #expect(fixture.client("SET a one") == Wire.ok)
        #expect(fixture.client("SELECT 0.outbox") == Wire.ok)
        let alone = fixture.client(line)
        #expect(!alone.hasPrefix("-"), "\(alone)")
        for other in [line, "SET a two"] {
            #expect(fixture.client("MULTI") == Wire.ok)
            #expect(fixture.client(other) == "+QUEUED\r\n")
            let reply = fixture.client("EXEC")
            #expect(other == line ? reply == Wire.array(alone) : reply.contains("-ORIGIN"), "\(other): \(reply)")
        }
    }

    @Test func aWriteIsAcknowledgedAndDeliveredLater() throws {
        let fixture = try OriginFixture("BEHIND")
        #expect(fixture.client("SET a one") == Wire.ok)
        #expect(fixture.origin.value("a") == nil)
        #expect(fixture.client("GET a") == Wire.bulk("one"))
        #expect(fixture.field("outbox") == 1)
        fixture.server.time.advance(milliseconds: 5)
        #expect(fixture.field("outbox-oldest-milliseconds") == 5)
        fixture.deliver()
        #expect(fixture.origin.value("a") == "one")
        #expect(fixture.field("outbox") == 0 && fixture.field("delivered") == 1)
        #expect(fixture.client("GET a") == Wire.bulk("one"))
        #expect(fixture.origin.takeReads() == [], "the write is cached")
        fixture.origin.change("a", to: "two")
        #expect(fixture.client("GET a") == Wire.bulk("two"))
    }

    @Test func writesAreDeliveredInOrderAndOncePerKey() throws {
        let fixture = try OriginFixture("BEHIND")
        for line in ["SET a 1", "SET b 1", "MSET c 1 c 2 a 2", "DEL d", "SET e 1", "DEL e"] {
            #expect(!fixture.client(line).hasPrefix("-"), "\(line)")
        }
        fixture.deliver()
        #expect(
            fixture.origin.takeCommands() == [
                "write b unlimited", "write c unlimited", "write a unlimited", "remove d", "remove e",
            ])
        #expect(fixture.origin.value("c") == "2" && fixture.origin.value("a") == "2")
        fixture.deliver()
        #expect(fixture.origin.takeCommands() == [])
    }

    @Test func readsReturnPendingWritesEvenAfterInvalidations() throws {
        let fixture = try OriginFixture("BEHIND")
        fixture.origin.change("a", to: "old")
        fixture.origin.change("b", to: "old")
        #expect(fixture.client("MGET a b") == Wire.bulks("old", "old"))
        #expect(fixture.client("SET a new") == Wire.ok)
        #expect(fixture.client("DEL b") == Wire.int(1))
        // Purge the entries here, and change them at the origin: replies must still have the values of the pending
        // writes.
        #expect(fixture.client("PURGE").hasPrefix("*6"))
        fixture.origin.change("a", to: "foreign")
        fixture.origin.change("b", to: "foreign")
        fixture.origin.lose()
        _ = fixture.origin.takeReads()
        #expect(fixture.client("GET a") == Wire.bulk("new"))
        #expect(fixture.client("GET b") == Wire.null)
        #expect(fixture.client("MGET b a") == "*2\r\n" + Wire.null + Wire.bulk("new"))
        #expect(fixture.client("EXISTS a b") == Wire.int(1))
        #expect(fixture.client("STRLEN a") == Wire.int(3))
        #expect(fixture.client.fetch("a")?.value == "new")
        fixture.client.feed(["a", "b", "a"].flatMap { encodeRequest(["GET", $0]) })
        fixture.server.commit()
        #expect(fixture.client.takeSendable() == Wire.bulk("new") + Wire.null + Wire.bulk("new"))
        #expect(fixture.origin.takeReads() == [])
        fixture.deliver()
        #expect(fixture.origin.value("a") == "new" && fixture.origin.value("b") == nil)
        #expect(fixture.client("MGET a b") == "*2\r\n" + Wire.bulk("new") + Wire.null)
    }

    @Test func anOlderReplyDoesNotOverwriteAPendingWrite() throws {
        let fixture = try OriginFixture("BEHIND")
        fixture.origin.change("a", to: "old")
        fixture.origin.hold()
        let reader = fixture.server.connect()
        #expect(reader("GET a") == "")
        #expect(fixture.client("SET a new") == Wire.ok)
        fixture.origin.answer()
        fixture.server.commit()
        #expect(reader.takeSendable() == Wire.bulk("new"))
        #expect(fixture.client("GET a") == Wire.bulk("new"))
    }

    @Test("with write-behind, DEL returns the number of removed entries that this larder has")
    func delWithWriteBehindCountsLocalEntries() throws {
        let fixture = try OriginFixture("BEHIND")
        _ = fixture.client("MSET a 1 b 2 c 3")
        #expect(fixture.client("DEL a b x a") == Wire.int(2))
        #expect(fixture.client("UNLINK a c") == Wire.int(1))
        fixture.deliver()
        #expect(fixture.client("DEL a") == Wire.int(0))
    }

    @Test("the lifetime of a queued write counts from the write, not from its delivery")
    func lifetimesOfQueuedWritesCountFromTheWrite() throws {
        let fixture = try OriginFixture("BEHIND")
        _ = fixture.client("SET a v PX 5000")
        _ = fixture.client("SET b v POLICY high")
        _ = fixture.client("SET c v PX 100")
        fixture.server.time.advance(milliseconds: 200)
        #expect(fixture.client("GET c") == Wire.null)
        let left = Int(fixture.client("PTTL a").dropFirst().dropLast()) ?? 0
        #expect(left == 4_800)
        fixture.deliver()
        let commands = fixture.origin.takeCommands()
        // The lifetimes do not depend on the origin's clock.
        #expect(commands == ["write a milliseconds(4800)", "write b milliseconds(59800)", "remove c"])
    }

    @Test func forwardedCommandsWaitForPendingWrites() throws {
        let fixture = try OriginFixture("BEHIND")
        _ = fixture.client("SET n 5")
        let other = fixture.server.connect()
        #expect(other("INCR n") == "", "it waits")
        #expect(other.takeSendable() == "")
        #expect(fixture.client("INCR m") == Wire.int(1), "commands of other keys do not wait")
        fixture.deliver()
        #expect(other.takeSendable() == Wire.int(6))
        #expect(fixture.client("GET n") == Wire.bulk("6"))
        #expect(fixture.client("SET n 7 KEEPTTL") == Wire.ok)
        #expect(fixture.origin.value("n") == "7")
        let long = String(repeating: "x", count: Outbox.valueBytesMax + 1)
        #expect(fixture.client(["SET", "n", long]) == Wire.ok)
        #expect(fixture.origin.value("n")?.count == long.count)
    }

    @Test("a forwarded command that times out before queued writes is never executed")
    func aCommandThatTimesOutIsNeverExecuted() throws {
        let fixture = try OriginFixture("BEHIND")
        _ = fixture.client("SET n 5")
        fixture.origin.fail(.unreachable("gone"))
        let other = fixture.server.connect()
        #expect(other("INCR n") == "")
        fixture.deliver()
        #expect(other.takeSendable() == "")
        fixture.server.time.advance(milliseconds: 2_000)
        fixture.deliver()
        #expect(other.takeSendable().contains("queued writes of the command's keys were not delivered"))
        fixture.origin.fail(nil)
        fixture.deliverLater()
        #expect(fixture.origin.value("n") == "5")
    }

    @Test func transactionsWaitForPendingWrites() throws {
        let fixture = try OriginFixture("BEHIND")
        _ = fixture.client("SET a one")
        _ = fixture.client("MULTI")
        _ = fixture.client("GET a")
        _ = fixture.client("SET a two")
        #expect(fixture.client("EXEC") == "", "it waits")
        fixture.deliver()
        fixture.server.commit()
        #expect(fixture.client.takeSendable() == "*2\r\n" + Wire.bulk("one") + Wire.ok)
        #expect(fixture.origin.value("a") == "two")
    }

    @Test func theNumberOfPendingKeysIsLimited() throws {
        var limits = Limits()
        limits.originKeysMax = 16
        let fixture = try OriginFixture("BEHIND", limits: limits)
        for number in 0..<16 { #expect(fixture.client("SET \(number) v") == Wire.ok) }
        #expect(fixture.client("SET more v").contains("16 keys are pending"))
        #expect(fixture.client("SET 3 w") == Wire.ok, "the key is already pending")
        fixture.deliver()
        #expect(fixture.client("SET more v") == Wire.ok)
    }

    /// Pending writes are never evicted, so they must leave space to record the removal of delivered writes.
    @Test func pendingWritesUseAtMostHalfOfTheDisk() throws {
        let fixture = try OriginFixture("BEHIND") { $0.diskBytesMax = 16 << 20 }
        let value = String(repeating: "v", count: 200_000)
        func set(_ key: String, _ value: String) -> String {
            // The server has no background thread for checkpoints, so the test runs them.
            fixture.server.engine.maintain()
            return fixture.client("SET \(key) \(value)")
        }
        for number in 0..<41 { #expect(set("\(number)", value) == Wire.ok) }
        #expect(set("more", value).contains("may take 8388608 bytes, half of the disk limit"))
        #expect(set("3", "small") == Wire.ok, "the write replaces a longer pending one")
        #expect(set("more", value) == Wire.ok)
        #expect(!fixture.server.engine.held.hasRoom(for: 200_000))
        #expect(fixture.client("ORIGIN NONE DISCARD") == Wire.ok)
        #expect(fixture.server.engine.held.hasRoom(for: 8 << 20))
    }

    // MARK: Failures

    @Test func writesAreQueuedWhileTheOriginIsDown() throws {
        let fixture = try OriginFixture("BEHIND")
        fixture.origin.fail(.unreachable("gone"))
        for number in 0..<600 { #expect(fixture.client("SET \(number) v\(number)") == Wire.ok) }
        let rest = try #require(fixture.deliver())
        #expect((1...100).contains(rest))
        for _ in 0..<10 { fixture.deliverLater() }
        #expect((1...30_000).contains(try #require(fixture.deliver())))
        #expect(fixture.field("outbox") == 600 && fixture.field("delivered") == 0)
        fixture.origin.fail(nil)
        _ = fixture.origin.takeCommands()
        for _ in 0..<3 { fixture.deliverLater() }
        #expect(fixture.origin.takeCommands() == (0..<600).map { "write \($0) unlimited" })
        #expect(fixture.field("retried") == 256)
        #expect(fixture.field("outbox") == 0)
    }

    /// The first attempt after a recovery may fail once more. This must not cause the longest back-off.
    @Test func backOffRestartsWhenTheOriginRecovers() throws {
        let fixture = try OriginFixture("BEHIND")
        fixture.origin.fail(.unreachable("gone"))
        _ = fixture.client("SET a 1")
        for _ in 0..<10 { fixture.deliverLater() }
        fixture.origin.recover()
        let rest = try #require(fixture.deliver())
        #expect(rest <= 100)
        fixture.server.time.advance(milliseconds: 100)
        let second = try #require(fixture.deliver())
        #expect((1...200).contains(second))
    }

    @Test("a write that the origin refuses does not hold up writes of other keys")
    func aRefusedWriteDoesNotDelayOtherKeys() throws {
        let fixture = try OriginFixture("BEHIND")
        fixture.origin.fail("b", .refused("ERR not this one"))
        _ = fixture.client("MSET a 1 b 1 c 1")
        fixture.deliver()
        #expect(fixture.origin.value("a") == "1" && fixture.origin.value("c") == "1")
        #expect(fixture.field("outbox") == 1 && fixture.field("refused") == 1)
        #expect(fixture.client("GET b") == Wire.bulk("1"))
        _ = fixture.client("SET d 1")
        fixture.deliver()
        #expect(fixture.origin.value("d") == "1")
        fixture.origin.fail("b", nil)
        fixture.deliverLater()
        #expect(fixture.origin.value("b") == "1" && fixture.field("outbox") == 0)
    }

    @Test func aLoadingReplyIsNotCountedAsARefusedWrite() throws {
        let fixture = try OriginFixture("BEHIND")
        _ = fixture.client("SET a 1")
        fixture.origin.fail(.refused("LOADING Redis is loading the dataset in memory"))
        fixture.deliver()
        #expect(fixture.field("refused") == 0)
        fixture.origin.fail(nil)
        fixture.deliverLater()
        #expect(fixture.origin.value("a") == "1")
    }

    @Test func aDeliveryIsRetriedIfItsReplyWasLost() throws {
        let fixture = try OriginFixture("BEHIND")
        fixture.origin.fail("a", .timedOut(milliseconds: 2000))
        _ = fixture.client("SET a 1")
        fixture.deliver()
        #expect(fixture.origin.value("a") == nil)
        fixture.origin.fail("a", nil)
        fixture.deliverLater()
        #expect(fixture.origin.takeCommands() == ["write a unlimited", "repeat a"])
        #expect(fixture.origin.value("a") == "1")
        #expect(fixture.field("outbox") == 0)
    }

    @Test func aRetriedDeliveryDoesNotOverwriteANewerValue() throws {
        let fixture = try OriginFixture("BEHIND")
        fixture.origin.change("a", to: "old")
        fixture.origin.loseAnswers(true)
        _ = fixture.client("SET a mine")
        fixture.deliver()
        #expect(fixture.origin.value("a") == "mine" && fixture.field("outbox") == 1)
        fixture.origin.loseAnswers(false)
        fixture.origin.change("a", to: "newer")
        fixture.deliverLater()
        #expect(fixture.origin.value("a") == "newer")
        #expect(fixture.field("outbox") == 0 && fixture.field("superseded") == 1)
        #expect(fixture.client("GET a") == Wire.bulk("newer"))
    }

    @Test func aWriteDuringADeliveryIsDeliveredToo() throws {
        let fixture = try OriginFixture("BEHIND")
        _ = fixture.client("SET a 1")
        let done = Guarded(false)
        let (server, other) = (fixture.server, fixture.server.connect())
        let run = UncheckedCall { _ = other("SET a 2") }
        fixture.origin.duringNextWrite {
            run.body()
            done.with { $0 = true }
        }
        fixture.deliver()
        #expect(done.with { $0 })
        #expect(fixture.origin.value("a") == "1" && fixture.field("outbox") == 1)
        #expect(fixture.client("GET a") == Wire.bulk("2"))
        server.state.origins.deliver("0")
        #expect(fixture.origin.value("a") == "2" && fixture.field("outbox") == 0)
        #expect(fixture.client("GET a") == Wire.bulk("2"))
    }

    /// A closure that uses a session. `@unchecked Sendable`: it only runs on the test's own thread.
    private struct UncheckedCall: @unchecked Sendable {
        let body: () -> Void
    }

    // MARK: Restarts

    @Test func pendingWritesSurviveARestartInOrder() throws {
        let first = try OriginFixture("BEHIND")
        first.origin.fail(.unreachable("gone"))
        _ = first.client("MSET a 1 b 1 c 1")
        _ = first.client("SET a 2")
        _ = first.client("DEL b")
        first.deliver()
        let fixture = try OriginFixture(after: first)
        #expect(fixture.field("outbox") == 3)
        #expect(fixture.client("MGET a b c") == "*3\r\n" + Wire.bulk("2") + Wire.null + Wire.bulk("1"))
        #expect(fixture.origin.takeReads() == [])
        fixture.origin.fail(nil)
        _ = fixture.client("SET d 1")
        fixture.deliver()
        #expect(
            fixture.origin.takeCommands() == [
                "write c unlimited", "write a unlimited", "remove b", "write d unlimited",
            ])
        let again = try OriginFixture(after: fixture)
        #expect(again.field("outbox") == 0)
    }

    // MARK: The setting

    @Test func pendingWritesAreNotSentToAnotherOrigin() throws {
        let fixture = try OriginFixture("BEHIND")
        fixture.origin.fail(.unreachable("gone"))
        _ = fixture.client("SET a 1")
        for line in ["ORIGIN NONE", "ORIGIN redis://elsewhere BEHIND", "ORIGIN redis://there THROUGH"] {
            #expect(fixture.client(line).contains("1 write is queued for the origin"), "\(line)")
        }
        #expect(fixture.client("SET b 1") == Wire.ok, "it goes on")
        #expect(fixture.client("ORIGIN redis://there BEHIND STALE") == Wire.ok)
        #expect(fixture.field("outbox") == 2)
        #expect(fixture.client("ORIGIN NONE DISCARD") == Wire.ok)
        #expect(fixture.client("GET a") == Wire.bulk("1"), "cached entries stay")
        fixture.origin.fail(nil)
        #expect(fixture.client("ORIGIN redis://there BEHIND") == Wire.ok)
        #expect(fixture.field("outbox") == 0)
        fixture.deliver()
        #expect(fixture.origin.value("a") == nil)
        #expect(fixture.client("SET a 2") == Wire.ok)
        fixture.deliver()
        #expect(fixture.origin.value("a") == "2")
    }

    @Test func originDiscardDropsOnlyPendingWrites() throws {
        let fixture = try OriginFixture("BEHIND")
        _ = fixture.client("SET a 1")
        #expect(fixture.client("ORIGIN redis://elsewhere BEHIND DISCARD") == Wire.ok)
        #expect(fixture.field("outbox") == 0)
        #expect(fixture.client("SET b 1") == Wire.ok)
        #expect(fixture.client("ORIGIN redis://elsewhere BEHIND DISCARD") == Wire.ok)
        #expect(fixture.client("SET c 1") == Wire.ok)
        fixture.deliver()
        #expect(fixture.origin.takeCommands().filter { $0.hasPrefix("write") } == ["write c unlimited"])
        #expect(fixture.client("ORIGIN bad:x BEHIND").contains("is no address"))
        #expect(fixture.client("SET d 1") == Wire.ok, "it goes on")
        fixture.deliver()
        #expect(fixture.origin.value("d") == "1")
    }

    @Test func theOriginCanChangeWithAnEmptyOutbox() throws {
        let fixture = try OriginFixture("BEHIND")
        _ = fixture.client("SET a 1")
        fixture.deliver()
        #expect(fixture.client("ORIGIN redis://elsewhere") == Wire.ok)
        #expect(fixture.client("SET a 2") == Wire.ok)
        #expect(fixture.origin.value("a") == "2")
    }

    @Test func onlyAPurgeOfTheOutboxDropsPendingWrites() throws {
        let fixture = try OriginFixture("BEHIND")
        fixture.origin.change("a", to: "there")
        _ = fixture.client("MSET a 1 b 1")
        #expect(fixture.client("FLUSHALL") == Wire.ok)
        #expect(fixture.field("outbox") == 2)
        #expect(fixture.client("SWAPDB 1 0.outbox").hasPrefix("-ORIGIN "))
        _ = fixture.client("SELECT 0.outbox")
        #expect(fixture.client("PURGE PREFIX b").hasPrefix("*6"))
        _ = fixture.client("SELECT 0")
        #expect(fixture.field("outbox") == 1)
        _ = fixture.client("SELECT 0.outbox")
        #expect(fixture.client("FLUSHDB") == Wire.ok)
        _ = fixture.client("SELECT 0")
        #expect(fixture.field("outbox") == 0)
        #expect(fixture.client("GET a") == Wire.bulk("there"))
    }

    @Test("entries in the outbox that are not queued writes are ignored")
    func entriesThatAreNotQueuedWritesAreIgnored() throws {
        let fixture = try OriginFixture("BEHIND")
        try fixture.server.store("1", under: "strange", in: "0.outbox")
        let again = try OriginFixture(after: fixture)
        #expect(again.client("SET a 1") == Wire.ok)
        again.deliver()
        #expect(again.origin.value("a") == "1" && again.origin.value("strange") == nil)
        #expect(again.field("outbox") == 1)
        #expect(again.client("GET strange") == Wire.null)
    }

    /// The scripts that deliver writes have the same effect at a larder as at Redis.
    @Test(arguments: [false, true]) func deliveryScriptsDoTheSameAtALarderAndAtRedis(isLarder: Bool) throws {
        let larder = try SocketlessServer()
        let session = larder.connect()
        let redis = isLarder ? nil : try RedisProcess()
        let client = try redis?.connect()
        func run(_ words: [[UInt8]]) throws -> String {
            guard let client else {
                session.feed(encodeRequest(words))
                larder.commit()
                return session.takeSendable()
            }
            return String(decoding: try client.call(encodeRequest(words)), as: UTF8.self)
        }
        func call(_ line: String) throws -> String { try run(line.split(separator: " ").map { Array($0.utf8) }) }
        let key = Array("a".utf8)
        func digest() throws -> String {
            String(try run(OutboxScripts.looking(at: key)).split(separator: "\r\n").dropFirst().first ?? "")
        }
        func repeating(_ value: String?, until: Int64? = nil, over before: String) throws -> String {
            let entry = OutboxEntry(
                number: 1, acceptedAt: 0, until: until, value: value.map { Array($0.utf8) })
            return try run(OutboxScripts.repeating(key, entry, over: before, now: 1000))
        }
        #expect(try digest() == "")
        #expect(try repeating("one", over: "") == ":1\r\n")
        #expect(try digest() == "fe05bcdcdc4928012781a5f1a2a77cbb5398e106", "SHA-1 of one")
        #expect(try repeating("one", over: "") == ":1\r\n", "it was done before")
        #expect(try repeating("two", over: "") == ":0\r\n", "the origin has a newer value")
        #expect(try call("GET a") == Wire.bulk("one"))
        #expect(try repeating("two", until: 601_000, over: try digest()) == ":1\r\n")
        #expect(try call("GET a") == Wire.bulk("two"))
        let left = Int(try call("PTTL a").dropFirst().dropLast()) ?? 0
        #expect((500_000...600_000).contains(left), "\(left)")
        #expect(try repeating(nil, over: "other") == ":0\r\n")
        #expect(try repeating(nil, over: try digest()) == ":1\r\n")
        #expect(try call("EXISTS a") == Wire.int(0))
        #expect(try repeating(nil, over: "other") == ":1\r\n", "it was done before")
    }

    @Test func aNameMustLeaveSpaceForTheOutboxSuffix() throws {
        let server = try SocketlessServer(origin: ScriptedOrigin())
        let client = server.connect()
        for name in [String(repeating: "n", count: 60), "a.outbox"] {
            _ = client("SELECT \(name)")
            let reply = client("ORIGIN redis://there BEHIND")
            #expect(
                reply.hasPrefix("-ERR BEHIND needs a database")
                    || reply.contains("is an outbox and cannot have an origin"), "\(reply)")
        }
    }
}

/// Delivers pending writes on request of the test.
extension OriginFixture {
    /// Makes one delivery attempt. Returns the back-off before the next attempt in milliseconds; nil if none is needed.
    @discardableResult
    func deliver() -> Int64? {
        let pause = server.state.origins.deliver("0")
        server.commit()
        return pause
    }

    /// Makes one delivery attempt, after the back-off from previous failures.
    func deliverLater() {
        server.time.advance(milliseconds: 60_000)
        deliver()
    }

    /// Returns a number from the reply of ORIGIN; -1 if it is missing.
    func field(_ name: String) -> Int {
        let lines = client("ORIGIN").split(separator: "\r\n").map(String.init)
        return lines.firstIndex(of: name).flatMap { Int(lines[$0 + 1].dropFirst()) } ?? -1
    }
}
