import LarderLevelDB
import Testing

@Suite struct MaintenanceTests {
    let workspace: Workspace
    var database: Database { workspace.database }

    init() throws { workspace = try Workspace(Options(compression: .none)) }

    private func fill() throws {
        for number in 0..<1000 { try database.put(key(number), [UInt8](repeating: 1, count: 1000)) }
    }

    @Test func propertiesAreReturnedAndUnknownOnesAreNil() throws {
        try fill()
        #expect(try database.property("leveldb.stats")?.contains("Compactions") == true)
        #expect(try database.property("leveldb.sstables")?.contains("--- level 0 ---") == true)
        #expect(try database.property("leveldb.num-files-at-level0") == "0")
        let memory = try database.property("leveldb.approximate-memory-usage").flatMap { Int($0) }
        #expect(try #require(memory) > 1_000_000)
        for unknown in [
            "", "x", "leveldb.", "leveldb.num-files-at-level99", "leveldb.num-files-at-level", "leveldb.stats\0",
        ] {
            #expect(try database.property(unknown) == nil)
        }
    }

    /// LevelDB's approximate size counts only tables, so it does not include recent writes.
    @Test func theApproximateSizeExcludesTheMemtable() throws {
        try fill()
        #expect(try database.approximateSize(from: [], to: [0xff]) == 0)
        try database.compact()
        let all = try database.approximateSize(from: [], to: [0xff])
        #expect((1_000_000...1_100_000).contains(all))
        let half = try database.approximateSize(from: key(0), to: key(500))
        #expect((450_000...550_000).contains(half))
        #expect(try database.approximateSize(from: [0xff], to: []) == 0)
        #expect(try database.approximateSize(from: [], to: []) == 0)
    }

    @Test func compactionFreesTheSpaceOfDeletedEntries() throws {
        try fill()
        try database.compact()
        for number in 0..<1000 { try database.delete(key(number)) }
        try database.compact()
        // A single compaction does not always free all of the space.
        try database.compact()
        #expect(try database.approximateSize(from: [], to: [0xff]) < 1000)
    }

    @Test func compactingAKeyRangeKeepsAllEntries() throws {
        try fill()
        try database.compact(from: key(100), to: key(200))
        try database.compact(from: nil, to: key(200))
        try database.compact(from: key(900), to: nil)
        try database.compact(from: [], to: [])
        try database.compact(from: key(200), to: key(100))
        for number in 0..<1000 { #expect(try database.has(key(number))) }
    }
}
