import LarderEngine
import Testing

@testable import LarderServer

/// Tests of ENTRIES and PLACE, which transfer entries with all their metadata to another larder and back.
@Suite struct EntryCommandTests {
    private static func entry(
        _ key: String, _ value: String, _ storedAt: Int, _ rule: String, _ deadline: Int, grace: Int = -1,
        codec: String = "raw", tags: [String] = []
    ) -> String {
        Wire.array(
            Wire.bulk(key), Wire.bulk(value), Wire.int(storedAt), Wire.bulk(rule), Wire.int(deadline), Wire.int(grace),
            Wire.bulk(codec), "*\(tags.count)\r\n" + tags.map { Wire.bulk($0) }.joined())
    }

    private static func step(_ next: String?, _ entries: String...) -> String {
        Wire.array(next.map { Wire.bulk($0) } ?? Wire.null, "*\(entries.count)\r\n" + entries.joined())
    }

    // MARK: PLACE

    @Test("PLACE keeps the age, the deadline and the metadata of an entry") func theAgeIsKept() throws {
        let server = try SocketlessServer(policy: .high)
        let call = server.connect()
        let now = Int(server.engine.now())
        #expect(call("PLACE k v STOREDAT \(now - 50_000)") == "+stored\r\n")
        #expect(call("PTTL k") == Wire.int(10_000))
        #expect(call("ENTRIES") == Self.step(nil, Self.entry("k", "v", now - 50_000, "governed", now + 10_000)))
        #expect(call("PLACE own v STOREDAT 5 PXAT \(now + 7) GRACE 1.5 CODEC json TAGS 2 a b") == "+stored\r\n")
        #expect(
            call("ENTRIES PREFIX o")
                == Self.step(
                    nil, Self.entry("own", "v", 5, "own", now + 7, grace: 1500, codec: "json", tags: ["a", "b"])))
        #expect(call("PURGE TAG a") == Wire.ok)
        #expect(call("GET own") == Wire.null, "the entry has its tags")
        #expect(call("PLACE never v STOREDAT 5 NEVER CODEC 77") == "+stored\r\n")
        #expect(call("ENTRIES PREFIX n") == Self.step(nil, Self.entry("never", "v", 5, "never", -1, codec: "77")))
        // A storage time in the future is reduced to now.
        #expect(call("PLACE k v STOREDAT \(now + 5_000_000)") == "+stored\r\n")
        #expect(call("PTTL k") == Wire.int(60_000))
    }

    @Test("PLACE does not overwrite a newer entry") func newerEntriesAreKept() throws {
        let server = try SocketlessServer()
        let call = server.connect()
        let now = Int(server.engine.now())
        #expect(call("SET k new") == Wire.ok)
        #expect(call("PLACE k old STOREDAT \(now - 1)") == "+kept\r\n")
        #expect(call("GET k") == Wire.bulk("new"))
        #expect(call("PLACE k same STOREDAT \(now)") == "+stored\r\n", "an import can be repeated")
        #expect(call("PLACE k other STOREDAT \(now) NX") == "+kept\r\n")
        #expect(call("PLACE k2 other STOREDAT 0 NX NEVER") == "+stored\r\n")
        #expect(call("MGET k k2") == Wire.bulks("same", "other"))
        #expect(call("SET stale new PX 1 GRACE 100") == Wire.ok)
        server.time.advance(milliseconds: 10)
        #expect(call("PLACE stale old STOREDAT 5 NX NEVER") == "+kept\r\n", "a stale entry is kept if it is newer")
        #expect(call("DEL k") == Wire.int(1))
        #expect(call("PLACE k back STOREDAT \(now)") == "+stored\r\n")
    }

    @Test func placeDoesNotStoreExpiredEntries() throws {
        let server = try SocketlessServer(policy: .high)
        let call = server.connect()
        let now = Int(server.engine.now())
        #expect(call("PLACE k v STOREDAT \(now - 60_000)") == "+expired\r\n")
        #expect(call("PLACE k v STOREDAT 5 PXAT \(now)") == "+expired\r\n")
        #expect(call("PLACE k v STOREDAT 5 PXAT \(now - 2000) GRACE 2") == "+expired\r\n")
        #expect(call("ENTRIES") == Self.step(nil))
        #expect(call("PLACE k v STOREDAT 5 PXAT \(now - 1999) GRACE 2") == "+stored\r\n")
        #expect(call("GET k") == Wire.null)
        #expect(call("ENTRIES") == Self.step(nil, Self.entry("k", "v", 5, "own", now - 1999, grace: 2000)))
        server.time.advance(milliseconds: 1)
        #expect(call("ENTRIES") == Self.step(nil))
    }

    /// A shorter policy that the database had before an import does not affect the imported entry. COPY from another
    /// database behaves in the same way.
    @Test func anImportedEntryExpiresByItsOwnAge() throws {
        let server = try SocketlessServer(policy: .highest)
        let call = server.connect()
        let now = Int(server.engine.now())
        #expect(call("POLICY low JITTER 100") == Wire.ok)
        #expect(call("PLACE k v STOREDAT \(now - 20_000)") == "+stored\r\n")
        #expect(call("PTTL k") == Wire.int(86_400_000 - 20_000), "without jitter")
    }

    @Test func placeRefusesInvalidArguments() throws {
        let server = try SocketlessServer()
        let call = server.connect()
        #expect(call("PLACE k v STOREDAT") == Wire.arity("place"))
        for words in [
            "STOREDAT 1 STOREDAT 2", "STOREDAT 1 NEVER PXAT 5", "STOREDAT 1 EX 5", "STOREDAT 1 NX NX",
            "STOREDAT 1 GRACE",
        ] {
            #expect(call("PLACE k v \(words)") == Wire.syntaxError, "\(words)")
        }
        #expect(call("PLACE k v STOREDAT x") == Wire.notAnInteger)
        #expect(call("PLACE k v STOREDAT -1") == Wire.error("ERR STOREDAT takes milliseconds since 1970, 0 or more"))
        #expect(call("PLACE k v STOREDAT 1 PXAT 0") == Wire.error("ERR invalid expire time in 'place' command"))
        #expect(call("PLACE k v NX NEVER") == Wire.error("ERR PLACE needs STOREDAT and milliseconds since 1970"))
        #expect(call("PLACE k v STOREDAT 1 CODEC x").hasPrefix("-ERR the codec must be"))
        #expect(call("PLACE k v STOREDAT 1 TAGS 2 a").hasPrefix("-ERR TAGS needs the number"))
        #expect(call("EXISTS k") == Wire.int(0))
    }

    @Test("PLACE works in a transaction") func inATransaction() throws {
        let server = try SocketlessServer(policy: .never)
        let call = server.connect()
        #expect(call("MULTI") == Wire.ok)
        #expect(call("PLACE k v STOREDAT 5") == "+QUEUED\r\n")
        #expect(call("GET k") == "+QUEUED\r\n")
        #expect(call("EXEC") == Wire.array("+stored\r\n", Wire.bulk("v")))
    }

    // MARK: ENTRIES

    @Test("ENTRIES AFTER continues an enumeration after a key") func enumerationContinuesAfterAKey() throws {
        let server = try SocketlessServer(policy: .never)
        let call = server.connect()
        for key in ["a", "b", "b1", "b2", "c"] { #expect(call("PLACE \(key) v\(key) STOREDAT 5") == "+stored\r\n") }
        func entry(_ key: String) -> String { Self.entry(key, "v\(key)", 5, "governed", -1) }
        #expect(call("ENTRIES COUNT 2") == Self.step("b", entry("a"), entry("b")))
        #expect(call("ENTRIES COUNT 2 AFTER b") == Self.step("b2", entry("b1"), entry("b2")))
        #expect(call("ENTRIES AFTER b2 COUNT 2") == Self.step(nil, entry("c")))
        #expect(call("ENTRIES AFTER b10") == Self.step(nil, entry("b2"), entry("c")), "the key need not exist")
        #expect(call("ENTRIES PREFIX b COUNT 2") == Self.step("b1", entry("b"), entry("b1")))
        #expect(call("ENTRIES PREFIX b AFTER b1") == Self.step(nil, entry("b2")))
        #expect(call("ENTRIES PREFIX b AFTER a") == Self.step(nil, entry("b"), entry("b1"), entry("b2")))
        #expect(call("ENTRIES PREFIX b AFTER c") == Self.step(nil))
        // Each entry has three bytes. ENTRIES ends with the entry that makes the total reach the limit.
        #expect(call("ENTRIES BYTES 3") == Self.step("a", entry("a")))
        #expect(call("ENTRIES BYTES 4") == Self.step("b", entry("a"), entry("b")))
        for words in ["COUNT", "AFTER", "MATCH x"] {
            #expect(call("ENTRIES \(words)") == Wire.syntaxError, "\(words)")
        }
        #expect(call("ENTRIES COUNT 0").hasPrefix("-ERR COUNT must be 1 or more"))
        #expect(call("ENTRIES BYTES -1").hasPrefix("-ERR BYTES must be 1 or more"))
    }

    @Test("ENTRIES reads from an open snapshot") func entriesReadsFromASnapshot() throws {
        let server = try SocketlessServer(policy: .never)
        let call = server.connect()
        #expect(call("PLACE a v STOREDAT 5") == "+stored\r\n")
        #expect(call("SNAPSHOT OPEN") == Wire.ok)
        #expect(call("PLACE b v STOREDAT 5") == "+stored\r\n")
        #expect(call("ENTRIES") == Self.step(nil, Self.entry("a", "v", 5, "governed", -1)))
    }

    /// If a soft purge or a policy makes an entry expire early, ENTRIES exports the earlier deadline, because another
    /// larder does not know the reason.
    @Test("ENTRIES exports the earlier deadline of entries that a soft purge or a policy made expire")
    func earlyExpiryIsExported() throws {
        let server = try SocketlessServer(policy: .high)
        let call = server.connect()
        let now = Int(server.engine.now())
        #expect(call("SET soft v GRACE 100 TAGS 1 t") == Wire.ok)
        #expect(call("SET short v GRACE 100") == Wire.ok)
        server.time.advance(milliseconds: 10_000)
        #expect(call("PURGE TAG t SOFT") == Wire.ok)
        #expect(
            call("ENTRIES PREFIX so")
                == Self.step(nil, Self.entry("soft", "v", now, "own", now + 10_000, grace: 100_000, tags: ["t"])))
        // The entry expires under a short policy, and does not reappear under a longer one.
        #expect(call("POLICY highest") == Wire.ok)
        server.time.advance(milliseconds: 1000)
        #expect(call("POLICY never") == Wire.ok)
        #expect(call("GET short") == Wire.null)
        let left = call("ENTRIES PREFIX sh")
        #expect(left == Self.step(nil, Self.entry("short", "v", now, "own", now, grace: 100_000)))
    }
}
