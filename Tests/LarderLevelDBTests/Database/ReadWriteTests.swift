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
        try database.put(bytes("a"), bytes("2"), sync: true)
        #expect(try database.get(bytes("a")) == bytes("2"))
        #expect(try database.has(bytes("a")))
        try database.delete(bytes("a"))
        #expect(try database.get(bytes("a")) == nil)
        #expect(try !database.has(bytes("a")))
        try database.delete(bytes("a"), sync: true)
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
            #expect(try database.has(bytes("empty")))
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
        #expect(try database.get(UnsafeRawBufferPointer(start: nil, count: 0)) == bytes("value"))
        try database.delete(UnsafeRawBufferPointer(start: nil, count: 0))
        #expect(try !database.has([]))
        try database.put(UnsafeRawBufferPointer(start: nil, count: 0), UnsafeRawBufferPointer(start: nil, count: 0))
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
        for verify in [true, false] {
            for fill in [true, false] {
                let options = ReadOptions(verifyChecksums: verify, fillCache: fill)
                #expect(try database.get(bytes("a"), options: options) == bytes("1"))
                #expect(try database.has(bytes("a"), options: options))
                #expect(try database.get(bytes("b"), options: options) == nil)
                let cursor = try database.cursor(options)
                try cursor.seekToFirst()
                #expect(try keys(cursor) == [bytes("a")])
            }
        }
    }

    @Test func twoDatabasesAreIndependent() throws {
        let other = try workspace.open("other")
        try database.put(bytes("a"), bytes("1"))
        #expect(try other.get(bytes("a")) == nil)
    }

    @Test func recordsTooLargeForLevelDBAreRefused() throws {
        let byte = UnsafeMutableRawBufferPointer.allocate(byteCount: 1, alignment: 1)
        defer { byte.deallocate() }
        // Never read, because it is refused for its length.
        let large = UnsafeRawBufferPointer(start: byte.baseAddress, count: WriteBatch.recordBytesMax + 1)
        let most = UnsafeRawBufferPointer(start: byte.baseAddress, count: WriteBatch.recordBytesMax)
        let endless = UnsafeRawBufferPointer(start: byte.baseAddress, count: Int.max)
        let one = UnsafeRawBufferPointer(start: byte.baseAddress, count: 1)
        for (key, value) in [(large, one), (one, large), (one, most), (most, one), (endless, endless)] {
            let error = failure { () throws(LevelDBError) in try database.put(key, value) }
            #expect(error?.code == .invalidArgument)
            #expect(error?.key == nil)
        }
        #expect(failure { () throws(LevelDBError) in try database.delete(endless) }?.code == .invalidArgument)
        #expect(try database.get([0]) == nil)
    }
}
