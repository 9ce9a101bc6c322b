import LarderLevelDB
import LarderTestSupport
import Testing

/// Tests of yielding cursors: they release merged tables and continue with the current entries.
@Suite struct YieldingTests {
    private let directory: TemporaryDirectory
    private let yields = Guarded(true)
    private let database: Database
    private static let count = 400

    init() throws {
        directory = try TemporaryDirectory(inMemory: true)
        let options = Options(createIfMissing: true, compression: .none, maxFileBytes: 1 << 20)
        database = try Database(path: directory.path + "/db", options: options) { [yields] in yields.with { $0 } }
        try write(0)
        try database.compact()
    }

    private func write(_ version: UInt8) throws {
        for number in 0..<Self.count { try database.put(key(number), [UInt8](repeating: version, count: 10_000)) }
    }

    private func tables() throws -> Set<String> {
        Set(try Files.names(in: directory.path + "/db", endingWith: ".ldb"))
    }

    private func cursor(at number: Int, _ options: ReadOptions = ReadOptions()) throws -> Cursor {
        let cursor = try database.cursor(options)
        try cursor.seek(to: key(number))
        return cursor
    }

    @Test func mergedTablesAreRemovedWhileACursorIsOpen() throws {
        let previous = try tables()
        #expect(!previous.isEmpty)
        let cursor = try cursor(at: 7)
        try write(1)
        try database.compact()
        #expect(try tables().isDisjoint(with: previous))
        // The cursor keeps its position and continues with the current entries.
        #expect(cursor.isValid)
        #expect(cursor.key == key(7))
        #expect(cursor.value.first == 0)
        try cursor.next()
        #expect(cursor.key == key(8))
        #expect(cursor.value.first == 1)
        try cursor.previous()
        #expect(cursor.key == key(7))
        #expect(cursor.value.first == 1)
    }

    @Test func aCursorThatDoesNotYieldKeepsMergedTables() throws {
        yields.with { $0 = false }
        let previous = try tables()
        let cursor = try cursor(at: 7)
        try write(1)
        try database.compact()
        #expect(try tables().isSuperset(of: previous))
        try cursor.next()
        #expect(cursor.value.first == 0)
    }

    @Test func aCursorOfASnapshotDoesNotShowLaterWrites() throws {
        let snapshot = try database.snapshot()
        defer { snapshot.close() }
        let previous = try tables()
        let cursor = try cursor(at: 7, ReadOptions(snapshot: snapshot))
        try write(1)
        for number in 0..<20 { try database.delete(key(number)) }
        try database.compact()
        #expect(try tables().isDisjoint(with: previous))
        var found = 0
        while cursor.isValid {
            #expect(cursor.value.first == 0)
            found += 1
            try cursor.next()
        }
        #expect(found == Self.count - 7)
    }

    @Test func aCursorContinuesAfterItsEntryWasDeleted() throws {
        let (forward, backward, last) = (try cursor(at: 7), try cursor(at: 7), try cursor(at: Self.count - 1))
        for number in [6, 7, 8, Self.count - 1] { try database.delete(key(number)) }
        try database.compact()
        #expect(forward.key == key(7))
        try forward.next()
        #expect(forward.key == key(9))
        try backward.previous()
        #expect(backward.key == key(5))
        try last.previous()
        #expect(last.key == key(Self.count - 2))
    }

    @Test func unpositionedCursorsSurviveACompaction() throws {
        let (fresh, ended) = (try database.cursor(), try cursor(at: Self.count - 1))
        try ended.next()
        #expect(!ended.isValid)
        try write(1)
        try database.compact()
        #expect(!fresh.isValid && !ended.isValid)
        try fresh.seekToFirst()
        #expect(fresh.key == key(0))
        #expect(throws: LevelDBError.self) { try ended.next() }
        try ended.seekToLast()
        #expect(ended.key == key(Self.count - 1))
        ended.close()
        #expect(throws: LevelDBError.self) { try ended.seekToFirst() }
    }

    /// Runs all kinds of reads while tables are being merged.
    @Test func readsContinueDuringCompactions() throws {
        let (database, isOver) = (database, Guarded(false))
        onThreads(4) { index in
            if index == 0 {
                for version in 1..<6 {
                    try? write(UInt8(version))
                    try? database.compact()
                }
                isOver.with { $0 = true }
            }
            var random = SeededGenerator(seed: UInt64(index))
            while !isOver.with({ $0 }) {
                let number = random.below(Self.count)
                #expect((try? database.get(key(number)))?.count == 10_000)
                guard index > 1, let cursor = try? cursor(at: number) else { continue }
                var expected = number
                while cursor.isValid {
                    #expect(cursor.key == key(expected))
                    expected += 1
                    try? cursor.next()
                }
                #expect(expected == Self.count)
            }
        }
    }
}
