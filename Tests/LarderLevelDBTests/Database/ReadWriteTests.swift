import LarderLevelDB
import Testing

@Suite struct ReadWriteTests {
    let workspace: Workspace
    var database: Database { workspace.database }

    init() throws { workspace = try Workspace() }

    @Test func storedKeysAreFoundAndDeletedKeysAreNot() throws {
        #expect(try database.get(bytes("a")) == nil)
        try database.put(bytes("a"), bytes("1"))
        #expect(try database.get(bytes("a")) == bytes("1"))
        try database.put(bytes("a"), bytes("2"))
        #expect(try database.get(bytes("a")) == bytes("2"))
        try database.delete(bytes("a"))
        #expect(try database.get(bytes("a")) == nil)
        try database.delete(bytes("a"))
    }

    @Test func keysAndValuesMayContainAnyByte() throws {
        let all = [UInt8](0...255)
        try database.put(all, all.reversed())
        try database.put([0], [0])
        try workspace.reopen()
        #expect(try database.get(all) == all.reversed())
        #expect(try database.get([0]) == [0])
        #expect(try database.get([0, 0]) == nil)
    }

    @Test func largeValuesAreReadCompletely() throws {
        let large = (0..<5_000_000).map { UInt8(truncatingIfNeeded: $0 &* 2_654_435_761 >> 13) }
        try database.put(bytes("large"), large)
        #expect(try database.get(bytes("large")) == large)
        try workspace.reopen()
        #expect(try database.get(bytes("large")) == large)
    }

    /// LevelDB returns the length 0 for both an empty value and a missing key; only the returned pointer differs.
    @Test func anEmptyValueIsNotAbsent() throws {
        try database.put(bytes("empty"), [])
        for _ in 0..<2 {
            #expect(try database.get(bytes("empty")) == [])
            #expect(try database.withValue(bytes("empty")) { $0?.count } == 0)
            #expect(try database.get(bytes("none")) == nil)
            #expect(try database.withValue(bytes("none")) { $0 == nil })
            try workspace.reopen()
        }
    }

    @Test func anEmptyKeyCanBeStoredAndDeleted() throws {
        #expect(try database.get([]) == nil)
        try database.put([], bytes("value"))
        #expect(try database.get([]) == bytes("value"))
        try database.delete([])
        #expect(try database.get([]) == nil)
        try database.put([], [])
        #expect(try database.get([]) == [])
    }

    @Test func withValueGivesAccessToTheBytes() throws {
        try database.put(bytes("a"), [1, 2, 3])
        let sum = try database.withValue(bytes("a")) { value in value?.reduce(0) { $0 + Int($1) } }
        #expect(sum == 6)
    }

    /// The body runs without the database's lock, which is not recursive.
    @Test func withValueMayUseAndCloseTheDatabaseInItsBody() throws {
        try database.put(bytes("a"), bytes("1"))
        let inner = try database.withValue(bytes("a")) { value in
            let again = try? database.get(bytes("a"))
            try? database.close()
            return (again, value.map { [UInt8]($0) })
        }
        #expect(inner.0 == bytes("1"))
        #expect(inner.1 == bytes("1"))
        #expect(database.isClosed)
    }

    @Test func readOptionsDoNotChangeTheResultOfARead() throws {
        try database.put(bytes("a"), bytes("1"))
        try workspace.reopen()
        for fill in [true, false] {
            let options = ReadOptions(fillCache: fill)
            #expect(try database.get(bytes("a"), options: options) == bytes("1"))
            #expect(try database.get(bytes("b"), options: options) == nil)
            let cursor = try database.cursor(options)
            try cursor.seekToFirst()
            #expect(try keys(cursor) == [bytes("a")])
        }
    }

    @Test func twoDatabasesAreIndependent() throws {
        let other = try workspace.open("other")
        try database.put(bytes("a"), bytes("1"))
        #expect(try other.get(bytes("a")) == nil)
    }
}
