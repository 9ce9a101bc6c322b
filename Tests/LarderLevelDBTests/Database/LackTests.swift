import LarderPlatform
import LarderTestSupport
import Testing

@testable import LarderLevelDB

/// Tests of keys whose absence can be proved without reading a file, from LevelDB's memory and Bloom filters.
@Suite struct LackTests {
    private static func lacks(_ database: Database, _ key: [UInt8]) -> Bool {
        key.withUnsafeBytes { database.lacksUnlocked($0) }
    }

    private static let filtering = Options(bloomBitsPerKey: 10)

    @Test func theMemtableProvesThatAKeyIsPresentOrAbsent() throws {
        let workspace = try Workspace(Self.filtering)
        let database = workspace.database
        #expect(Self.lacks(database, bytes("a")))
        #expect(Self.lacks(database, []))
        try database.put(bytes("a"), bytes("1"))
        try database.put(bytes("empty"), [])
        #expect(!Self.lacks(database, bytes("a")))
        #expect(!Self.lacks(database, bytes("empty")))
        #expect(Self.lacks(database, bytes("b")))
        try database.delete(bytes("a"))
        #expect(Self.lacks(database, bytes("a")))
    }

    /// Tables that are not open yet prove nothing, because opening a table reads its file.
    @Test func filtersOfOpenTablesProveThatAKeyIsAbsent() throws {
        let workspace = try Workspace(Self.filtering)
        for number in 0..<1000 { try workspace.database.put(key(2 * number), bytes("value")) }
        // The second reopen finds the table in the manifest, but does not open its file.
        for _ in 0..<2 { try workspace.reopen(Self.filtering) }
        let database = workspace.database
        #expect((0..<100).allSatisfy { !Self.lacks(database, key(2 * $0 + 1)) }, "no table is open")
        // An ordinary read opens the table.
        #expect(try database.get(key(500)) != nil)
        #expect((0..<1000).allSatisfy { !Self.lacks(database, key(2 * $0)) })
        let known = (0..<1000).count { Self.lacks(database, key(2 * $0 + 1)) }
        #expect(known > 900, "\(known) of 1000")
        // After these lookups, which read no files, the same thread can read from files.
        #expect(try database.get(key(0)) == bytes("value"))
        #expect(try database.get(key(1)) == nil)
    }

    /// The key is in a table, and a newer removal hides it.
    @Test func aKeyInATableWithANewerRemovalIsAbsent() throws {
        let workspace = try Workspace(Self.filtering)
        try workspace.database.put(key(1), bytes("value"))
        try workspace.reopen(Self.filtering)
        try workspace.database.delete(key(1))
        #expect(Self.lacks(workspace.database, key(1)))
        try workspace.database.put(key(1), bytes("again"))
        #expect(!Self.lacks(workspace.database, key(1)))
    }

    @Test func tablesWithoutFiltersDoNotProveThatAKeyIsAbsent() throws {
        let workspace = try Workspace()
        for number in 0..<1000 { try workspace.database.put(key(2 * number), bytes("value")) }
        try workspace.reopen()
        #expect(try workspace.database.get(key(500)) != nil)
        // Looks up keys in blocks other than the one that was read. The last key is excluded, because it is after the
        // end of the table.
        let other = (0..<999).filter { abs($0 - 250) > 300 }
        #expect(other.allSatisfy { !Self.lacks(workspace.database, key(2 * $0 + 1)) })
    }

    /// Tables have LevelDB's own filter format, so LevelDB and Larder can use each other's filters.
    @Test func tablesUseTheFilterFormatOfLevelDB() throws {
        let workspace = try Workspace(Self.filtering)
        try workspace.database.put(bytes("a"), bytes("1"))
        try workspace.reopen(Self.filtering)
        let table = try #require(try workspace.files(endingWith: ".ldb").first)
        let content = try #require(try FileSystem.read("\(workspace.path)/\(table)"))
        #expect(String(decoding: content, as: UTF8.self).contains("filter.leveldb.BuiltinBloomFilter2"))
    }

    @Test("a closed database does not prove the absence of a key") func aClosedDatabaseLacksNothing() throws {
        let workspace = try Workspace(Self.filtering)
        try workspace.database.close()
        #expect(!Self.lacks(workspace.database, bytes("a")))
    }
}
