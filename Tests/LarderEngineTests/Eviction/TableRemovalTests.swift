import LarderLevelDB
import LarderLevelDBFormat
import LarderPlatform
import LarderTestSupport
import Testing

@testable import LarderEngine

/// Tests that whole tables can be removed from every level.
@Suite struct TableRemovalTests {
    private static let valueBytes = 500

    private func text(_ generation: Int, _ number: Int) -> String {
        "\(generation).\(number)." + String(repeating: "x", count: Self.valueBytes)
    }

    /// Some entries have four versions in three levels. The index keys of all versions are in the table of the oldest
    /// version.
    @Test func removingAllTablesRevivesNoOlderVersions() throws {
        let larder = try TestLarder { $0.compression = false }
        let database = try larder.database(policy: .never)
        let deadline = larder.time.wallMilliseconds() + 3_600_000
        var newest: [Int: Int] = [:]
        for (generation, count) in [200, 100, 50, 25].enumerated() {
            for number in 0..<count {
                try database.put("k\(number)", text(generation, number), rule: .own(deadline))
                newest[number] = generation
            }
            for number in 100 + 10 * generation..<110 + 10 * generation where generation > 0 {
                try database.remove("k\(number)")
                newest[number] = nil
            }
            try database.flushedStore()?.flushMemtable()
        }
        // Empties the journal, because otherwise a crash copy would restore the entries from it.
        try larder.engine().save()
        let store = try #require(try database.flushedStore())
        let levels = Set(try #require(try ManifestScan.scan(directory: store.path)).tables.values.map(\.level))
        #expect(levels.count > 2)
        var evicted = 0
        while true {
            let outcome = try TableRemoval(database: database, store: store, wantedBytes: 1).run(now: database.now())
            if outcome.seenBytes == 0 { break }
            #expect(!store.isSuspended)
            var left = 0
            for number in 0..<200 {
                guard let value = try database.value("k\(number)") else { continue }
                left += 1
                #expect(newest[number].map { value == text($0, number) } ?? false, "k\(number)")
            }
            // The oldest table has 70 entries that are in no other table.
            if evicted == 0 { #expect(outcome.evicted == 70) }
            evicted += outcome.evicted
            #expect(left == newest.count - evicted)
            try larder.crashCopy().expectHealthy()
        }
        #expect(evicted == newest.count)
        #expect(try larder.engine().statistics.evicted.read() == evicted)
        try database.put("k0", "again")
        larder.close()
        #expect(try larder.database().contents() == ["k0": "again"])
    }

    /// A salvage writes the format record and all entries into new tables, which can be removed too.
    @Test func allTablesOfASalvagedDatabaseCanBeEvicted() throws {
        let larder = try TestLarder()
        let database = try larder.database(policy: .never)
        for number in 0..<100 { try database.put("k\(number)", text(0, number)) }
        let damaged = try #require(try database.flushedStore())
        try database.salvage(damaged, LarderError(.damaged, "a test says so", operation: "test"))
        #expect(try database.contents().count == 100)
        let store = try #require(try database.flushedStore())
        store.flushMemtable()
        #expect(store !== damaged)
        let outcome = try TableRemoval(database: database, store: store, wantedBytes: .max).run(now: database.now())
        #expect(outcome.evicted == 100)
        #expect(try database.contents().isEmpty)
    }

    /// The sweep recreates missing index keys from the entries.
    @Test func theSweepRecreatesMissingIndexKeys() throws {
        let larder = try TestLarder()
        let database = try larder.database(policy: .high)
        try database.put("own", "1", rule: .own(database.now() + 5000))
        try database.put("governed", "1")
        let store = try #require(try database.flushedStore())
        try larder.maintain()
        let before = try database.rawKeys()
        for key in before where key.first != KeyKind.record && key.first != KeyKind.metadata {
            try store.rawDelete(key)
        }
        store.lacksIndex.store(true, ordering: .relaxed)
        try larder.maintain()
        #expect(try database.rawKeys() == before)
    }
}
