import LarderPlatform
import LarderTestSupport
import Testing

@testable import LarderEngine

/// Tests of lookups of absent keys by threads that must not wait for the disk.
@Suite struct AbsenceTests {
    private func look(_ database: Database, _ key: String) throws -> ReadOutcome {
        var ticket = CommitTicket.none
        return try Array(key.utf8).withUnsafeBytes { bytes in
            try database.read(bytes, .memoryOnly, ticket: &ticket) { _, _ in }
        }
    }

    /// Returns a larder with entries on disk, open tables and almost no entries in memory.
    private func stored(_ count: Int, memoryBytes: Int) throws -> TestLarder {
        let larder = try TestLarder { $0.memoryBytes = memoryBytes }
        let database = try larder.database(policy: .never)
        for number in 0..<count { try database.put("there\(number)", "value") }
        try database.flush()
        larder.close()
        #expect(try larder.database().value("there0") == "value")
        return larder
    }

    @Test(arguments: [0, 1 << 20]) func mostLookupsOfAbsentKeysNeedNoDisk(memoryBytes: Int) throws {
        let larder = try stored(500, memoryBytes: memoryBytes)
        let database = try larder.database()
        let misses = try larder.engine().statistics.misses.read()
        let known = try (0..<500).count { try look(database, "absent\($0)") == .miss }
        #expect(known > 450)
        #expect(try larder.engine().statistics.misses.read() - misses == known)
        #expect(try (1..<500).allSatisfy { try look(database, "there\($0)") == .cold })
    }

    /// An update that may not read from disk finds a new key absent, and stores an entry for it.
    @Test(arguments: [0, 1 << 20]) func newKeysAreStoredWithoutReadingTheDisk(memoryBytes: Int) throws {
        let larder = try stored(500, memoryBytes: memoryBytes)
        let database = try larder.database()
        var made = 0
        for number in 0..<200 {
            let key = Key("new\(number)")
            let ticket = try database.perform([key], .records, .memoryOnly, now: database.now()) { update in
                #expect(update.current(0) == nil)
                Array("1".utf8).withUnsafeBytes { update.put(0, payload: $0) }
            }
            guard ticket != nil else { continue }
            made += 1
            #expect(try look(database, "new\(number)") == .hit)
        }
        #expect(made > 150)
        #expect(try database.perform([Key("there3")], .records, .memoryOnly, now: database.now()) { _ in } == nil)
        try database.flush()
        #expect(try (0..<200).count { try database.value("new\($0)") == "1" } == made)
    }

    @Test(arguments: [0, 1 << 20]) func shortScriptsStoreNewKeysWithoutReadingTheDisk(memoryBytes: Int) throws {
        let larder = try stored(500, memoryBytes: memoryBytes)
        let database = try larder.database()
        let few = Update()
        var applied = 0
        for number in 0..<200 {
            let key = Array("script\(number)".utf8)
            key.withUnsafeBytes { key in
                few.end()
                #expect(few.add(key))
                var ticket = CommitTicket.none
                let end = database.withBatch(few, now: database.now(), ticket: &ticket) {
                    #expect($0.read(0) == nil)
                    $0.put(0, payload: key)
                    return true
                }
                if end { applied += 1 }
            }
        }
        #expect(applied > 150)
        let found = try (0..<200).count { try database.value("script\($0)") == "script\($0)" }
        #expect(found == applied)
    }

    /// A lookup of a long value in LevelDB's memtable would copy the value, so the engine does not look for it there.
    @Test func lookupsInTheMemtableSkipLongValues() throws {
        let larder = try TestLarder { $0.memoryBytes = 1 << 20 }
        let database = try larder.database(policy: .never)
        try database.put("long", String(repeating: "x", count: 2 << 20))
        try database.put("short", "x")
        let store = try #require(try database.flushedStore())
        func lacks(_ key: String) -> Bool {
            Key(key).withBytes { store.lacks($0, hash: Key(key).hash) }
        }
        #expect(!lacks("long"))
        #expect(!lacks("short"))
        #expect(lacks("other"))
        try database.remove("long")
        try database.flush()
        #expect(!lacks("long"), "long values are not looked up in the memtable")
        #expect(try look(database, "long") == .miss)
    }

    /// In long histories in which nearly every entry is evicted from memory, no stored key is reported as absent.
    @Test(arguments: [0, 30_000]) func aStoredKeyIsNeverReportedAsAbsent(memoryBytes: Int) throws {
        var generator = SeededGenerator(seed: UInt64(memoryBytes) + 5)
        let larder = try TestLarder { $0.memoryBytes = memoryBytes }
        var database = try larder.database(policy: .never)
        var expected: [String: String] = [:]
        var known = 0
        for step in 0..<6000 {
            let key = "k\(Int.random(in: 0..<400, using: &generator))"
            switch Int.random(in: 0..<1000, using: &generator) {
            case ..<300:
                let value = "\(step) " + String(repeating: "v", count: Int.random(in: 0..<300, using: &generator))
                try database.put(key, value)
                expected[key] = value
            case ..<400:
                try database.remove(key)
                expected[key] = nil
            case ..<410: try database.flush()
            case ..<412: try database.flushedStore()?.compactAll()
            case ..<414:
                larder.close()
                database = try larder.database()
            case ..<415:
                _ = try database.purge()
                expected = [:]
            case ..<700:
                let found = try look(database, key)
                if found == .miss { known += 1 }
                if found != .cold { #expect((found == .hit) == (expected[key] != nil), "\(key) at step \(step)") }
            default: #expect(try database.value(key) == expected[key], "\(key) at step \(step)")
            }
        }
        #expect(known > 200)
    }
}
