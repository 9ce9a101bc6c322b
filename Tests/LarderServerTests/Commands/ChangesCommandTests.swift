import LarderEngine
import Testing

@testable import LarderServer

/// Tests of CHANGES, UNPLACE, and the forms of PLACE and PURGE that larders use to follow other larders.
@Suite struct ChangesCommandTests {
    /// Returns the position in a reply of CHANGES.
    private func position(_ reply: String) throws -> String {
        let words = reply.split(separator: "\r\n").map { String($0) }
        return words[try #require(words.firstIndex(of: "position")) + 2]
    }

    @Test func changesRepliesInTheDocumentedForm() throws {
        let server = try SocketlessServer(policy: .high)
        let call = server.connect()
        let now = Int(server.engine.now())
        #expect(call("SET k v TAGS 1 t GRACE 2") == Wire.ok)
        let scan = call("CHANGES SINCE 0")
        let first = try position(scan)
        let sequence = try #require(Int(first.split(separator: ":")[1].split(separator: ".")[0]))
        #expect(
            scan
                == Wire.array(
                    Wire.bulk("position"), Wire.bulk(first), Wire.bulk("state"), Wire.bulk("scan"),
                    Wire.bulk("reason"), Wire.bulk("asked"), Wire.bulk("range"), Wire.array(Wire.null, Wire.null),
                    Wire.bulk("time"), Wire.int(now), Wire.bulk("changes"),
                    Wire.array(
                        Wire.array(
                            Wire.bulk("stored"), Wire.int(sequence), Wire.bulk("\(now)-0"), Wire.bulk("k"),
                            Wire.bulk("v"), Wire.int(now), Wire.bulk("governed"), Wire.int(now + 60_000),
                            Wire.int(2000), Wire.bulk("raw"), Wire.bulks("t")))))
        #expect(call("DEL k") == Wire.int(1))
        #expect(call("CHANGES SINCE \(first)").contains(Wire.bulk("removed")))
        #expect(call("PURGE TAG t u") == Wire.ok)
        #expect(call("PURGE").hasPrefix("*6"))
        let changes = call("CHANGES SINCE \(first) COUNT 10 BYTES 100")
        #expect(changes.contains(Wire.bulk("state") + Wire.bulk("current") + Wire.bulk("reason") + Wire.null))
        for kind in ["purged-tags", "purged"] { #expect(changes.contains(Wire.bulk(kind)), "\(kind)") }
        #expect(changes.contains(Wire.bulks("t", "u")))
        // In RESP3, the reply is a map.
        _ = call("HELLO 3")
        #expect(call("CHANGES SINCE \(first)").hasPrefix("%6\r\n"))
        #expect(call("CHANGES SINCE $").contains(Wire.bulk("current")))
    }

    /// A change during a fetch invalidates the fetched value. This also applies if the key had no entry, and if the
    /// database has no followers.
    @Test(
        "replicated removals and purges end leases, so values fetched before them are not stored",
        arguments: ["UNPLACE k 5-7", "PURGE UPTO 5-7", "PURGE UPTO 5-7 PREFIX k", "PURGE UPTO 5-7 TAG t"],
        [false, true])
    func replicatedRemovalsEndLeases(_ line: String, isFollowed: Bool) throws {
        let server = try SocketlessServer(policy: .never)
        let (call, old) = (server.connect(), server.connect())
        #expect(call("SET other v") == Wire.ok)
        if isFollowed { _ = try position(call("CHANGES SINCE $")) }
        let token = try #require(old.fetch("k")?.token)
        #expect(!call(line).hasPrefix("-"))
        #expect(old("SET k late TOKEN \(token) TAGS 1 t") == Wire.null)
        #expect(call("GET other") == Wire.bulk("v"))
        let again = try #require(old.fetch("k")?.token)
        #expect(old("RELEASE k \(again) ABSENT 100000") == Wire.ok)
        #expect(call.fetch("k")?.state == "absent")
        #expect(!call(line).hasPrefix("-"))
        #expect(call.fetch("k")?.state == "lead")
    }

    /// A purge has a later version than the entries that it removes, and an earlier version than entries stored after
    /// the purge. This holds even if the clock is behind.
    @Test(arguments: ["PURGE", "FLUSHDB", "FLUSHALL"])
    func entriesStoredAfterAPurgeHaveALaterVersion(_ purge: String) throws {
        let server = try SocketlessServer(policy: .never)
        let call = server.connect()
        #expect(call("SET a v") == Wire.ok)
        var place = try position(call("CHANGES SINCE $"))
        func versions() throws -> [ChangeVersion] {
            let reply = call("CHANGES SINCE \(place)")
            place = try position(reply)
            return reply.split(separator: "\r\n").filter { $0.contains("-") && !$0.hasPrefix("$") }
                .compactMap { ChangeVersion($0) }
        }
        // The clock of the other larder is ahead by a second.
        let ahead = server.engine.now() + 1000
        #expect(call("PLACE b v STOREDAT 1 VERSION \(ahead)-900") == "+stored\r\n")
        #expect(!call(purge).hasPrefix("-"))
        #expect(call("SET c v") == Wire.ok)
        let found = try versions()
        #expect(found.count == 2)
        #expect(found[0] > ChangeVersion(time: ahead, sequence: 900), "the purge has a later version than the entry")
        #expect(found[1] > found[0])
        // This purge comes from the other larder.
        #expect(call("PURGE UPTO \(ahead + 5)-900") == Wire.int(1))
        #expect(call("SET d v") == Wire.ok)
        let later = try versions()
        #expect(later.last.map { $0 > ChangeVersion(time: ahead + 5, sequence: 900) } == true)
        #expect(call("PURGE UPTO \(ahead + 5)-900") == Wire.int(0), "the same purge removes nothing")
        #expect(call("GET d") == Wire.bulk("v"))
    }

    /// Two larders may make different changes with the same version. Both larders must then keep the same change.
    @Test("two larders resolve changes with the same version in the same way")
    func theSameVersionOnBothSidesIsDecidedAlike() throws {
        let servers = [try SocketlessServer(policy: .never), try SocketlessServer(policy: .never)]
        let calls = servers.map { $0.connect() }
        for call in calls { _ = try position(call("CHANGES SINCE $")) }
        let now = servers[0].engine.now()
        let changes = [
            "PLACE %k a STOREDAT \(now) VERSION \(now)-7", "PLACE %k b STOREDAT \(now) VERSION \(now)-7",
            "PLACE %k b STOREDAT \(now) PXAT \(now + 9999) VERSION \(now)-7",
            "PLACE %k b STOREDAT \(now) TAGS 1 t VERSION \(now)-7",
            "PLACE %k b STOREDAT \(now) GRACE 5 VERSION \(now)-7",
            "PLACE %k b STOREDAT \(now) CODEC json VERSION \(now)-7", "PLACE %k b STOREDAT \(now - 1) VERSION \(now)-7",
            "UNPLACE %k \(now)-7",
        ]
        for (one, first) in changes.enumerated() {
            for (two, second) in changes.enumerated() {
                let key = "k\(one)-\(two)"
                for (call, lines) in zip(calls, [[first, second], [second, first]]) {
                    for line in lines { _ = call(line.replacing("%k", with: key)) }
                }
                let found = calls.map { $0("META \(key)") + $0("TAGS \(key)") + $0("GET \(key)") }
                #expect(found[0] == found[1], "\(first) and \(second)")
            }
        }
        // A purge of the whole database and an entry have the same version.
        for (call, lines) in zip(
            calls,
            [
                ["PURGE UPTO \(now + 1)-7", "PLACE p v STOREDAT 1 VERSION \(now + 1)-7"],
                ["PLACE p v STOREDAT 1 VERSION \(now + 1)-7", "PURGE UPTO \(now + 1)-7"],
            ])
        {
            for line in lines { #expect(!call(line).hasPrefix("-")) }
        }
        for call in calls { #expect(call("EXISTS p") == Wire.int(0)) }
    }

    /// A follower (a larder that copies this one) may still have an entry that was evicted here. The follower is
    /// therefore notified when a client removes a missing key. Other clients see no difference.
    @Test func theRemovalOfAMissingKeyIsReportedToFollowers() throws {
        let server = try SocketlessServer(policy: .never)
        let (call, other) = (server.connect(), server.connect())
        #expect(call("SET k v") == Wire.ok)
        #expect(call("DEL gone") == Wire.int(0), "there is no follower yet")
        var place = try position(call("CHANGES SINCE $"))
        func changes() throws -> String {
            let reply = call("CHANGES SINCE \(place)")
            place = try position(reply)
            return reply
        }
        for line in ["WATCH gone", "MULTI", "SET l v"] { _ = other(line) }
        #expect(call("DEL gone") == Wire.int(0))
        #expect(other("EXEC") == Wire.array(Wire.ok))
        let notified = try changes()
        #expect(notified.contains(Wire.bulk("removed")) && notified.contains(Wire.bulk("gone")), "\(notified)")
        // Changes from another larder are forwarded to the next larder. They stop at a larder that has already applied
        // them.
        #expect(call("UNPLACE away 5-7") == "+absent\r\n")
        #expect(try changes().contains(Wire.bulk("5-7") + Wire.bulk("away")))
        for version in ["5-7", "5-6"] { #expect(call("UNPLACE away \(version)") == "+absent\r\n") }
        #expect(try changes().contains(Wire.bulk("changes") + "*0\r\n"))
        // Deleting a key does not create the files of a database that has none.
        #expect(call("SELECT empty") == Wire.ok)
        _ = call("CHANGES SINCE $")
        #expect(call("DEL gone") == Wire.int(0))
    }

    /// A follower may still have entries that were evicted here. So the purge of a prefix is reported as one change,
    /// before the removals of single entries.
    @Test func aPrefixPurgeIsReportedToFollowers() throws {
        let server = try SocketlessServer(policy: .never)
        let call = server.connect()
        for key in ["a:1", "b:1"] { #expect(call("SET \(key) v") == Wire.ok) }
        let place = try position(call("CHANGES SINCE $"))
        #expect(call("PURGE PREFIX a:").contains(Wire.bulk("entries") + Wire.int(1)))
        let purge = Wire.bulk("a:")
        let notified = call("CHANGES SINCE \(place)")
        let (first, second) = (notified.range(of: Wire.bulk("purged-prefix")), notified.range(of: Wire.bulk("removed")))
        #expect(try #require(first).upperBound < #require(second).lowerBound, "\(notified)")
        #expect(notified.contains(purge) && notified.contains(Wire.bulk("a:1")), "\(notified)")
        // The purge is also reported if no entries are left to remove, and to followers of a longer or shorter prefix.
        let next = try position(notified)
        #expect(call("PURGE PREFIX a:2").contains(Wire.bulk("entries") + Wire.int(0)))
        for prefix in ["a", "a:2", "a:2:x"] {
            #expect(call("CHANGES SINCE \(next) PREFIX \(prefix)").contains(Wire.bulk("a:2")))
        }
        #expect(call("CHANGES SINCE \(next) PREFIX b").contains(Wire.bulk("changes") + "*0\r\n"))
    }

    @Test func changesWithBLOCKWaitsForTheNextChange() throws {
        let server = try SocketlessServer(policy: .never)
        let (call, other) = (server.connect(), server.connect())
        #expect(other("SET k before") == Wire.ok)
        for milliseconds in [1000, 0] {
            #expect(call("CHANGES SINCE $ BLOCK \(milliseconds)") == "")
            server.time.advance(milliseconds: 500)
            server.commit()
            #expect(call.takeSendable() == "")
            #expect(other("SET k v") == Wire.ok)
            server.commit()
            let reply = call.takeSendable()
            #expect(reply.contains(Wire.bulk("stored")) && !reply.contains("before"), "\(reply)")
        }
        #expect(call("CHANGES SINCE $ BLOCK 1000") == "")
        server.time.advance(milliseconds: 1000)
        call.run()
        server.commit()
        let reply = call.takeSendable()
        #expect(reply.contains(Wire.bulk("current")) && reply.hasSuffix("*0\r\n"), "\(reply)")
    }

    @Test func changesRefusesInvalidArguments() throws {
        let server = try SocketlessServer()
        let call = server.connect()
        #expect(call("CHANGES") == Wire.arity("changes"))
        #expect(call("CHANGES SINCE") == Wire.arity("changes"))
        for words in [
            "BEHIND 0", "SINCE 0 COUNT", "SINCE 0 COUNT 1 COUNT 1", "SINCE 0 MATCH x", "SINCE 0 BLOCK",
        ] {
            #expect(call("CHANGES \(words)") == Wire.syntaxError, "\(words)")
        }
        #expect(call("CHANGES SINCE 0 COUNT x") == Wire.notAnInteger)
        for word in ["COUNT", "BYTES"] {
            for number in ["0", "-1"] {
                #expect(call("CHANGES SINCE 0 \(word) \(number)") == "-ERR \(word) must be 1 or more\r\n")
            }
        }
        for words in ["SINCE 0 BLOCK -1", "SINCE 0 BLOCK x", "SINCE 0 BLOCK 99999999999999"] {
            #expect(call("CHANGES \(words)").hasPrefix("-ERR BLOCK takes milliseconds"), "\(words)")
        }
        for position in ["x", "-1", "ffff:1.1", String(repeating: "9", count: 200_000)] {
            #expect(call(["CHANGES", "SINCE", position]).hasPrefix("-ERR invalid position"), "\(position.prefix(20))")
        }
        #expect(call("UNPLACE k") == Wire.arity("unplace"))
        #expect(call("UNPLACE k x").hasPrefix("-ERR invalid version"))
        #expect(call("UNPLACE k 5 TAG") == Wire.syntaxError)
        #expect(call("PURGE UPTO x").hasPrefix("-ERR invalid version"))
        #expect(call("PURGE UPTO 5 PREFIX") == Wire.syntaxError)
        #expect(call("PURGE UPTO") == Wire.syntaxError)
        #expect(call("PLACE k v STOREDAT 5 OVER 5") == Wire.syntaxError)
        #expect(call("PLACE k v STOREDAT 5 NX VERSION 5") == Wire.syntaxError)
        #expect(call("MULTI") == Wire.ok)
        #expect(call("CHANGES SINCE 0").hasPrefix("-ERR"), "it may block")
        #expect(call("DISCARD") == Wire.ok)
        #expect(call("SNAPSHOT OPEN") == Wire.ok)
        #expect(call("CHANGES SINCE 0").hasPrefix("-ERR a snapshot is open"))
    }

    @Test("PLACE and UNPLACE have no effect if the entry was changed later") func theLaterChangeWins() throws {
        let server = try SocketlessServer(policy: .never)
        let call = server.connect()
        let now = Int(server.engine.now())
        #expect(call("SET k here") == Wire.ok)
        #expect(call("PLACE k old STOREDAT \(now - 5) VERSION \(now - 5)-7") == "+kept\r\n")
        #expect(call("UNPLACE k \(now - 1)-99") == "+kept\r\n")
        // A later change can store an older value, as RENAME does.
        #expect(call("PLACE k renamed STOREDAT \(now - 9) VERSION \(now + 1)-7") == "+stored\r\n")
        #expect(call("PLACE k renamed STOREDAT \(now - 9) VERSION \(now + 2)-7") == "+kept\r\n", "it is the same entry")
        #expect(call("PLACE k late STOREDAT \(now - 20) VERSION \(now - 20)-0") == "+kept\r\n")
        #expect(call("PLACE k known STOREDAT \(now - 20) VERSION \(now - 20)-0 OVER \(now - 9)") == "+stored\r\n")
        #expect(call("UNPLACE k \(now) TAG t") == "+absent\r\n", "the entry does not have the tag")
        #expect(call("UNPLACE k \(now)") == "+removed\r\n")
        #expect(call("UNPLACE k \(now)") == "+absent\r\n")
        // With equal versions, the greater value wins, so that two larders get the same value.
        #expect(call("PLACE k b STOREDAT \(now) VERSION \(now)") == "+stored\r\n")
        #expect(call("PLACE k a STOREDAT \(now) VERSION \(now)") == "+kept\r\n")
        #expect(call("PLACE k c STOREDAT \(now) VERSION \(now)") == "+stored\r\n")
        // An expired entry still removes the previous entry.
        #expect(call("PLACE k x STOREDAT \(now) PXAT 5 VERSION \(now)-9") == "+expired\r\n")
        #expect(call("GET k") == Wire.null)
    }

    @Test("PLACE does not restore an entry that was removed or purged later") func recordedRemovalsDecideConflicts()
        throws
    {
        let server = try SocketlessServer(policy: .never)
        let call = server.connect()
        let now = Int(server.engine.now())
        _ = call("CHANGES SINCE $")
        #expect(call("SET k v") == Wire.ok)
        server.time.advance(milliseconds: 10)
        #expect(call("DEL k") == Wire.int(1))
        #expect(call("PLACE k v STOREDAT \(now + 5) VERSION \(now + 5)-9") == "+kept\r\n", "the removal is later")
        #expect(call("PLACE k v STOREDAT \(now + 10) VERSION \(now + 11)-1") == "+stored\r\n")
        // A change that returns to its own larder has no effect, and neither does a smaller value with the same
        // version.
        for value in ["v", "a"] {
            #expect(call("PLACE k \(value) STOREDAT \(now + 10) VERSION \(now + 11)-1") == "+kept\r\n")
        }
        #expect(call("UNPLACE k \(now + 11)-0") == "+kept\r\n")
        #expect(call("PURGE UPTO \(now + 11)-0") == Wire.int(0))
        #expect(call("PURGE UPTO \(now + 11)-2") == Wire.int(1))
        #expect(call("PLACE other v STOREDAT \(now + 1) VERSION \(now + 1)-1") == "+kept\r\n", "the purge is later")
        let changes = call("CHANGES SINCE 0")
        #expect(changes.contains("*0\r\n"), "\(changes)")
    }

    @Test func replicatedPurgesKeepLaterEntries() throws {
        let server = try SocketlessServer(policy: .never)
        let call = server.connect()
        let now = Int(server.engine.now())
        #expect(call("PLACE a v STOREDAT \(now - 10) TAGS 1 t") == "+stored\r\n")
        #expect(call("PLACE ab v STOREDAT \(now - 10)") == "+stored\r\n")
        #expect(call("SET b v TAGS 1 t") == Wire.ok)
        #expect(call("PURGE UPTO \(now - 1)-5 PREFIX a TAG t") == Wire.int(1))
        #expect(call("PURGE UPTO \(now - 1)-5 PREFIX b") == Wire.int(0))
        #expect(call("PURGE UPTO \(now - 1)-5") == Wire.int(1))
        #expect(call("GET b") == Wire.bulk("v"))
        // No larder follows this one yet, so the purge of a tag is applied as an ordinary purge.
        #expect(call("PURGE UPTO \(now - 1)-5 TAG t") == Wire.int(0))
        #expect(call("GET b") == Wire.null)
        _ = call("CHANGES SINCE $")
        #expect(call("SET b v TAGS 1 t") == Wire.ok)
        #expect(call("PURGE UPTO \(now - 1)-5 TAG t") == Wire.int(0))
        #expect(call("GET b") == Wire.bulk("v"), "the entry is later than the purge")
    }

    @Test("ENTRIES NOVALUES returns null instead of values") func entriesWithoutValues() throws {
        let server = try SocketlessServer(policy: .never)
        let call = server.connect()
        #expect(call("SET k value") == Wire.ok)
        #expect(call("ENTRIES NOVALUES COUNT 5").contains(Wire.bulk("k") + Wire.null + ":"))
        #expect(call("ENTRIES NOVALUES NOVALUES") == Wire.syntaxError)
    }
}
