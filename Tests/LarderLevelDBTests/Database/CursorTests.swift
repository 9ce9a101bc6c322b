import LarderLevelDB
import LarderTestSupport
import Testing

@Suite struct CursorTests {
    let workspace: Workspace
    var database: Database { workspace.database }

    init() throws { workspace = try Workspace() }

    private func fill(_ texts: String...) throws {
        for text in texts { try database.put(bytes(text), bytes("value of \(text)")) }
    }

    /// Returns the cursor's key after a move, "end", or the error that the move threw.
    private func place(_ cursor: Cursor, _ move: Move) -> String {
        do {
            try move(cursor)
            return cursor.isValid ? String(decoding: cursor.key, as: UTF8.self) : "end"
        } catch {
            return "\(error.code)"
        }
    }

    @Test func cursorsOfAnEmptyDatabaseFindNoEntry() throws {
        for prefix in [[], [1], [0xff]] as [[UInt8]] {
            let cursor = try database.cursor(prefix: prefix)
            #expect(!cursor.isValid)
            #expect(place(cursor, .first) == "end")
            #expect(place(cursor, .last) == "end")
            #expect(place(cursor, .to([1])) == "end")
            #expect(place(cursor, .backwardTo([1])) == "end")
        }
    }

    @Test func aCursorMovesForwardAndBackward() throws {
        try fill("a", "b", "c")
        let cursor = try database.cursor()
        try cursor.seekToFirst()
        #expect(try keys(cursor) == [bytes("a"), bytes("b"), bytes("c")])
        try cursor.seekToLast()
        #expect(try keys(cursor, backward: true) == [bytes("c"), bytes("b"), bytes("a")])
        try cursor.seekToFirst()
        #expect(place(cursor, .next) == "b")
        #expect(place(cursor, .previous) == "a")
        #expect(place(cursor, .previous) == "end")
        // After the end is reached, only a seek positions the cursor again.
        #expect(place(cursor, .next) == "invalid argument")
        #expect(place(cursor, .previous) == "invalid argument")
        #expect(place(cursor, .last) == "c")
    }

    @Test func keysAndValuesCanBeCopiedOrReadInPlace() throws {
        try fill("a", "b")
        try database.put(bytes("c"), [])
        let cursor = try database.cursor()
        try cursor.seekToFirst()
        #expect(cursor.key == bytes("a"))
        #expect(cursor.value == bytes("value of a"))
        #expect(try cursor.withKey { [UInt8]($0) } == bytes("a"))
        #expect(try cursor.withValue { [UInt8]($0) } == bytes("value of a"))
        try cursor.seekToLast()
        #expect(cursor.value == [])
        #expect(try cursor.withValue { $0.count } == 0)
    }

    @Test("reading a cursor that is not at an entry fails") func atNoEntryReadingIsAnError() throws {
        try fill("a")
        let cursor = try database.cursor()
        let before = failure { () throws(LevelDBError) in _ = try cursor.withKey { $0.count } }
        #expect(before?.code == .invalidArgument)
        #expect(before?.message == "the cursor is not at an entry")
        #expect(failure { () throws(LevelDBError) in try cursor.next() }?.code == .invalidArgument)
        try cursor.seekToFirst()
        try cursor.next()
        let after = failure { () throws(LevelDBError) in _ = try cursor.withValue { $0.count } }
        #expect(after?.code == .invalidArgument)
        #expect(after?.operation == "value")
    }

    @Test("the key of a cursor that is not at an entry terminates the process")
    func askingForACopyAtNoEntryStopsTheProgram() async {
        await #expect(processExitsWith: .failure) {
            let workspace = try Workspace()
            // The process terminates without cleaning up, so the directory is removed first.
            workspace.directory.remove()
            _ = try workspace.database.cursor().key
        }
    }

    @Test func seekFindsTheKeyOrTheNextOne() throws {
        try fill("b", "d", "f")
        let cursor = try database.cursor()
        let expected = [
            ("a", "b"), ("b", "b"), ("c", "d"), ("d", "d"), ("dd", "f"), ("f", "f"), ("g", "end"), ("", "b"),
        ]
        for (target, found) in expected {
            #expect(place(cursor, .to(bytes(target))) == found)
        }
    }

    @Test func seekBackwardFindsTheKeyOrTheOneBefore() throws {
        try fill("b", "d", "f")
        let cursor = try database.cursor()
        let expected = [
            ("a", "end"), ("b", "b"), ("c", "b"), ("d", "d"), ("dd", "d"), ("f", "f"), ("g", "f"), ("", "end"),
        ]
        for (target, found) in expected {
            #expect(
                place(cursor, .backwardTo(bytes(target))) == found)
        }
        try database.put([], bytes("empty key"))
        #expect(
            place(try database.cursor(), .backwardTo([])) == "")
    }

    @Test func aCursorWithAPrefixStaysWithinThePrefix() throws {
        try fill("a", "b", "b1", "b2", "b3", "c")
        let cursor = try database.cursor(prefix: bytes("b"))
        let moves: [(Move, String)] = [
            (.first, "b"),
            (.previous, "end"),
            (.last, "b3"),
            (.next, "end"),
            (.next, "invalid argument"),
            (.to(""), "b"),
            (.to("a"), "b"),
            (.to("b11"), "b2"),
            (.to("b4"), "end"),
            (.to("c"), "end"),
            (.backwardTo("z"), "b3"),
            (.backwardTo("c"), "b3"),
            (.backwardTo("b11"), "b1"),
            (.backwardTo("b"), "b"),
            (.backwardTo("a"), "end"),
        ]
        for (number, (move, found)) in moves.enumerated() { #expect(place(cursor, move) == found, "move \(number)") }
        try cursor.seekToFirst()
        #expect(try keys(cursor) == ["b", "b1", "b2", "b3"].map(bytes))
        try cursor.seekToLast()
        #expect(try keys(cursor, backward: true) == ["b3", "b2", "b1", "b"].map(bytes))
        for none in ["0", "b0", "bb", "d"] {
            let cursor = try database.cursor(prefix: bytes(none))
            #expect(place(cursor, .first) == "end")
            #expect(place(cursor, .last) == "end")
        }
    }

    /// The keys with a prefix end before the prefix with its last byte incremented. This does not work for the byte
    /// 0xFF. If all bytes of the prefix are 0xFF, no later key exists.
    @Test(
        arguments: [
            [0xff], [0xff, 0xff], [0x61, 0xff], [0x61, 0xff, 0xff], [0xfe], [0xfe, 0xff], [0x00], [0x00, 0xff], [0x61],
            [],
        ] as [[UInt8]])
    func aCursorFindsAllKeysOfAPrefixThatEndsIn0xFF(prefix: [UInt8]) throws {
        let tails: [[UInt8]] = [[], [0], [0x61], [0xfe], [0xff], [0xff, 0], [0xff, 0xff], [0xff, 0xff, 0xff]]
        let heads: [[UInt8]] = [[], [0], [0x61], [0x62], [0xfe], [0xff], [0x61, 0xff], [0xff, 0xff]]
        var model: [[UInt8]] = []
        for head in heads { for tail in tails where !model.contains(head + tail) { model.append(head + tail) } }
        for key in model { try database.put(key, bytes("value")) }
        let expected = model.filter { $0.starts(with: prefix) }.sorted { $0.lexicographicallyPrecedes($1) }
        try #require(!expected.isEmpty)
        let cursor = try database.cursor(prefix: prefix)
        try cursor.seekToFirst()
        #expect(try keys(cursor) == expected)
        try cursor.seekToLast()
        #expect(try keys(cursor, backward: true) == expected.reversed())
        for target in model + [[0x61, 0x61, 0x61], [0xff, 0xff, 0xff, 0xff, 0xff, 0xff]] {
            try cursor.seek(to: target)
            #expect((cursor.isValid ? cursor.key : nil) == expected.first { !$0.lexicographicallyPrecedes(target) })
            try cursor.seekBackward(to: target)
            #expect((cursor.isValid ? cursor.key : nil) == expected.last { !target.lexicographicallyPrecedes($0) })
        }
    }

    @Test func aCursorShowsTheStateAtItsCreation() throws {
        try fill("a", "b")
        let cursor = try database.cursor()
        try fill("aa")
        try database.delete(bytes("b"))
        try database.put(bytes("a"), bytes("new"))
        try database.compact()
        try cursor.seekToFirst()
        #expect(cursor.value == bytes("value of a"))
        #expect(try keys(cursor) == [bytes("a"), bytes("b")])
    }

    @Test func aCursorSkipsDeletedEntriesInTables() throws {
        for number in 0..<3000 { try database.put(key(number), bytes("value")) }
        try database.compact()
        for number in 0..<3000 where number % 100 != 0 { try database.delete(key(number)) }
        let cursor = try database.cursor(ReadOptions(fillCache: false))
        try cursor.seekToFirst()
        #expect(try keys(cursor) == stride(from: 0, to: 3000, by: 100).map(key))
        try cursor.seekToLast()
        #expect(try keys(cursor, backward: true) == stride(from: 2900, through: 0, by: -100).map(key))
    }

    @Test func aCursorMayMoveToAnotherThread() throws {
        try fill("a", "b")
        struct Passed: @unchecked Sendable { let cursor: Cursor }  // Used by one thread at a time.
        let passed = Passed(cursor: try database.cursor())
        onThreads(1) { _ in #expect(throws: Never.self) { try passed.cursor.seekToFirst() } }
        #expect(passed.cursor.key == bytes("a"))
        onThreads(1) { _ in passed.cursor.close() }
        try database.close()
    }
}
