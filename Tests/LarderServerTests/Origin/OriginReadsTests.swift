import LarderEngine
import LarderOriginClients
import LarderTestSupport
import Testing

@testable import LarderServer

/// Tests of the ways in which a database learns of changes at its origin, and of reads from replicas when the origin is
/// slow.
@Suite struct OriginReadsTests {
    private func fixture(_ words: String, hasGrace: Bool = true) throws -> OriginFixture {
        try OriginFixture(words, policy: .high, hasGrace: hasGrace)
    }

    // MARK: Options

    @Test(
        "options of ORIGIN are shown in the form in which they were given",
        arguments: [
            "redis://h THROUGH", "redis://h BEHIND STALE USER u PASSWORDFILE /f", "redis://h AROUND BCAST",
            "redis://h THROUGH STALE BCAST PREFIX a: PREFIX STALE REPLICAS 20 USER u", "redis://h THROUGH LIFETIMES",
        ]) func optionsAreShownAsGiven(line: String) throws
    {
        let words = line.split(separator: " ").map(String.init)
        #expect(try OriginSettings(words: words).words == words)
    }

    @Test(arguments: [
        ("PREFIX a", "'PREFIX' is not allowed here"), ("BCAST PREFIX", "'PREFIX' is not allowed here"),
        ("BCAST LIFETIMES", "'LIFETIMES' is not allowed"), ("LIFETIMES BCAST", "'BCAST' is not allowed"),
        ("LIFETIMES PREFIX a", "'PREFIX' is not allowed"), ("BCAST BCAST", "'BCAST' is not allowed"),
        ("BCAST PREFIX ab PREFIX a", "'ab' and 'a' overlap"), ("BCAST PREFIX a PREFIX a", "overlap"),
        ("REPLICAS", "REPLICAS takes milliseconds"), ("REPLICAS 0", "1 to 60000"), ("REPLICAS x", "1 to 60000"),
        ("REPLICAS 60001", "1 to 60000"), ("REPLICAS 1 REPLICAS 1", "'REPLICAS' is not allowed"),
    ]) func originWithInvalidReadOptionsChangesNothing(words: String, reason: String) throws {
        let fixture = try self.fixture("STALE")
        let reply = fixture.client("ORIGIN redis://there \(words)")
        #expect(reply.hasPrefix("-ERR ") && reply.contains(reason), "\(reply)")
        #expect(fixture.origin.reads == OriginReads())
    }

    @Test func originRefusesTooManyPrefixes() throws {
        let fixture = try self.fixture("STALE")
        let many = (100..<165).map { "PREFIX \($0)" }.joined(separator: " ")
        #expect(fixture.client("ORIGIN redis://there BCAST \(many)").contains("at most 64 prefixes"))
    }

    @Test("ORIGIN shows the reads settings, which survive a restart") func readOptionsOfORIGINSurviveARestart() throws {
        let fixture = try self.fixture("BCAST PREFIX a: PREFIX b: REPLICAS 30")
        let expected = OriginReads(hearing: .broadcast(prefixes: ["a:", "b:"]), secondReadAfter: 30)
        #expect(fixture.origin.reads == expected)
        let shown = fixture.client("ORIGIN")
        for (name, value) in [
            ("hears", Wire.bulk("broadcast")), ("prefixes", Wire.bulk("a: b:")), ("replicas", Wire.int(30)),
            ("bound", Wire.int(750)),
        ] { #expect(shown.contains(Wire.bulk(name) + value), "\(name) in \(shown)") }
        let line = fixture.client("INFO larder").split(separator: "\r\n").first { $0.hasPrefix("origin_0:") } ?? ""
        #expect(line.contains("hears=broadcast,bound=750,replicas=30,") && !line.contains("a:"), "\(line)")
        fixture.server.engine.shutdown()
        let other = ScriptedOrigin()
        let again = try SocketlessServer(reopening: fixture.server, origin: other)
        #expect(again.connect()("PING") == "+PONG\r\n")
        #expect(other.reads == expected)
    }

    /// Reads a file in the first format. It did not record how a database learns of changes, because there was only one
    /// way.
    @Test func originsFilesOfThePreviousFormatAreRead() throws {
        let text = "larder-origins 1\n0 unix:///r THROUGH\nx redis://h BEHIND STALE USER u PASSWORDFILE /p\n"
        var file = OriginFile()
        for line in text.split(separator: "\n").dropFirst() {
            let words = line.split(separator: " ").map(String.init)
            file.settings[words[0]] = try OriginSettings(words: Array(words.dropFirst()))
        }
        #expect(String(decoding: file.bytes, as: UTF8.self).hasPrefix(text))
        let read = try OriginFile(parsing: file.bytes)
        #expect(read.settings == file.settings)
        #expect(read.settings.values.allSatisfy { $0.reads == OriginReads() })
    }

    // MARK: Replicas

    @Test func valuesFromAReplicaAreStale() throws {
        let fixture = try self.fixture("STALE REPLICAS 20")
        fixture.origin.change("a", to: "new")
        fixture.origin.setReplica("a", "old")
        fixture.origin.hold()
        #expect(fixture.client("GET a") == Wire.bulk("old"))
        let fetched = try #require(fixture.client.fetch("a"))
        #expect(fetched.state == "stale" && fetched.value == "old" && fetched.token == nil)
        #expect(fixture.client("STRLEN a") == Wire.int(3))
        #expect(fixture.origin.takeReads() == ["a"], "the request continues")
        let shown = fixture.client("ORIGIN")
        #expect(shown.contains(Wire.bulk("replica-answers") + Wire.int(1)))
        #expect(shown.contains(Wire.bulk("replica-served") + Wire.int(3)))
        #expect(shown.contains(Wire.bulk("stale-served") + Wire.int(3)))
        fixture.origin.answer()
        #expect(fixture.client("GET a") == Wire.bulk("new"), "the replica's value was not cached")
        #expect(try #require(fixture.client.fetch("a")).state == "fresh")
        #expect(fixture.origin.takeReads() == [])
    }

    @Test("without the option STALE, only FETCH gets a replica's value")
    func withoutSTALEOnlyFETCHGetsAReplicasValue() throws {
        let fixture = try self.fixture("REPLICAS 20")
        fixture.origin.change("a", to: "new")
        fixture.origin.setReplica("a", "old")
        fixture.origin.hold()
        #expect(fixture.client("GET a") == "", "the read waits for the primary")
        let other = fixture.server.connect()
        #expect(try #require(other.fetch("a")).state == "stale")
        #expect(fixture.client.takeSendable() == "")
        fixture.origin.answer()
        fixture.server.commit()
        #expect(fixture.client.takeSendable() == Wire.bulk("new"))
    }

    @Test("a replica's value is not served if the policy has no grace")
    func replicaValuesAreNotServedWithoutAGrace() throws {
        let fixture = try self.fixture("STALE REPLICAS 20", hasGrace: false)
        fixture.origin.change("a", to: "new")
        fixture.origin.setReplica("a", "old")
        fixture.origin.hold()
        let other = fixture.server.connect()
        #expect(fixture.client("GET a") == "")
        #expect(other("FETCH a") == "")
        fixture.origin.answer()
        fixture.server.commit()
        #expect(fixture.client.takeSendable() == Wire.bulk("new"))
        #expect(other.takeSendable().contains("fresh"))
    }

    @Test func aKeyMissingOnAReplicaIsReadFromThePrimary() throws {
        let fixture = try self.fixture("STALE REPLICAS 20")
        fixture.origin.change("a", to: "new")
        fixture.origin.setReplica("a", nil)
        fixture.origin.hold()
        #expect(fixture.client("GET a") == "")
        fixture.origin.answer()
        fixture.server.commit()
        #expect(fixture.client.takeSendable() == Wire.bulk("new"))
    }

    @Test("MGET waits until each of its keys has a reply") func mgetWaitsForAReplyForEachKey() throws {
        let fixture = try self.fixture("STALE REPLICAS 20")
        fixture.origin.change("a", to: "new")
        fixture.origin.change("b", to: "new")
        fixture.origin.setReplica("a", "old")
        fixture.origin.hold()
        #expect(fixture.client("MGET a b") == "")
        fixture.origin.answer()
        fixture.server.commit()
        #expect(fixture.client.takeSendable() == Wire.bulks("new", "new"))
    }

    /// A client writes through this database, and the primary freezes before its replica gets the write. Reads must
    /// return the cached value, and not the replica's.
    @Test func cachedEntriesArePreferredToAReplicasValue() throws {
        let fixture = try self.fixture("STALE REPLICAS 20")
        #expect(fixture.client("SET a two") == Wire.ok)
        fixture.origin.setReplica("a", "one")
        fixture.origin.lose()
        fixture.origin.hold()
        #expect(fixture.client("GET a") == Wire.bulk("two"))
        // The key was invalidated, so the replica may have a newer value.
        fixture.origin.change("a", to: "three")
        #expect(fixture.client("GET a") == Wire.bulk("one"))
    }

    @Test func aReplicasValueIsServedIfThePrimaryFails() throws {
        let fixture = try self.fixture("STALE REPLICAS 20")
        fixture.origin.setReplica("a", "old")
        fixture.origin.fail(.resting("there"))
        #expect(fixture.client("GET a") == Wire.bulk("old"))
        #expect(fixture.client("GET b").hasPrefix("-ORIGIN "))
    }

    // MARK: Lifetimes

    @Test func withLIFETIMESEntriesAreServedUntilTheyExpire() throws {
        let fixture = try self.fixture("LIFETIMES", hasGrace: false)
        fixture.origin.stopTracking()
        fixture.origin.change("a", to: "one", tells: false)
        fixture.origin.change("short", to: "s", lifetime: 5_000, tells: false)
        #expect(fixture.client("MGET a b short") == "*3\r\n" + Wire.bulk("one") + Wire.null + Wire.bulk("s"))
        fixture.origin.change("a", to: "two", tells: false)
        fixture.origin.change("b", to: "new", tells: false)
        fixture.origin.change("short", to: "t", tells: false)
        _ = fixture.origin.takeReads()
        fixture.server.time.advance(milliseconds: 5_001)
        #expect(fixture.client("MGET a b short") == "*3\r\n" + Wire.bulk("one") + Wire.null + Wire.bulk("t"))
        #expect(fixture.origin.takeReads() == ["short"])
        // The cached entries stay valid until their lifetimes end, although the connection was lost.
        fixture.origin.lose()
        fixture.origin.fail(.unreachable("there"))
        #expect(fixture.client("GET a") == Wire.bulk("one"))
        #expect(try #require(fixture.client.fetch("a")).state == "fresh")
        fixture.server.time.advance(milliseconds: 55_000)
        #expect(fixture.client("GET a").hasPrefix("-ORIGIN "))
        fixture.origin.fail(nil)
        #expect(fixture.client("GET a") == Wire.bulk("two"))
        #expect(fixture.client("GET b") == Wire.bulk("new"))
    }

    @Test func lifetimesCountFromTheStartOfTheRequest() throws {
        let fixture = try self.fixture("LIFETIMES")
        fixture.origin.stopTracking()
        fixture.origin.change("a", to: "one", tells: false)
        fixture.origin.answerLate(milliseconds: 30_000)
        #expect(fixture.client("GET a") == Wire.bulk("one"))
        #expect(fixture.client("GET a") == Wire.bulk("one"))
        #expect(fixture.origin.takeReads() == ["a"], "half a minute of the lifetime is left")
        fixture.origin.answerLate(milliseconds: 0)
        // With the shorter policy, the cached entry has expired and is requested again. The new entry is then served
        // from the cache.
        _ = fixture.client("POLICY highest")
        #expect(fixture.client("GET a") == Wire.bulk("one"))
        #expect(fixture.origin.takeReads() == ["a"])
        #expect(fixture.client("GET a") == Wire.bulk("one"))
        #expect(fixture.origin.takeReads() == [])
    }

    @Test("with LIFETIMES, a client reads its own writes without a request")
    func withLIFETIMESAClientReadsItsOwnWrites() throws {
        let fixture = try self.fixture("LIFETIMES")
        fixture.origin.stopTracking()
        #expect(fixture.client("GET a") == Wire.null)
        #expect(fixture.client("SET a one") == Wire.ok)
        _ = fixture.origin.takeReads()
        #expect(fixture.client("GET a") == Wire.bulk("one"))
        #expect(fixture.origin.takeReads() == [])
        #expect(fixture.client("INCR n") == Wire.int(1))
        #expect(fixture.client("GET n") == Wire.bulk("1"))
        #expect(fixture.client("DEL a n") == Wire.int(2))
        #expect(fixture.client("MGET a n") == "*2\r\n" + Wire.null + Wire.null)
    }

    @Test func withLIFETIMESOneRequestServesAllWaiters() throws {
        let fixture = try self.fixture("LIFETIMES")
        fixture.origin.stopTracking()
        fixture.origin.change("a", to: "one", tells: false)
        let others = (0..<5).map { _ in fixture.server.connect() }
        fixture.origin.hold()
        for client in others { #expect(client("GET a") == "") }
        fixture.origin.answer()
        fixture.server.commit()
        for client in others { #expect(client.takeSendable() == Wire.bulk("one")) }
        #expect(fixture.origin.takeReads() == ["a"])
    }

    @Test("LIFETIMES is refused under the policy `never`") func lifetimesAreRefusedUnderThePolicyNever() throws {
        let fixture = try self.fixture("THROUGH", hasGrace: false)
        _ = fixture.client("POLICY never")
        #expect(fixture.client("ORIGIN redis://there LIFETIMES").contains("the policy of this database is never"))
        #expect(fixture.origin.reads == OriginReads())
        _ = fixture.client("POLICY low")
        #expect(fixture.client("ORIGIN redis://there LIFETIMES") == Wire.ok)
        #expect(fixture.client("ORIGIN").contains(Wire.bulk("bound") + Wire.int(86_400_000)))
    }
}
