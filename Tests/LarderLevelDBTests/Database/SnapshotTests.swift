import LarderLevelDB
import Testing

@Suite struct SnapshotTests {
    let workspace: Workspace
    var database: Database { workspace.database }

    init() throws { workspace = try Workspace(Options(writeBufferBytes: 64 << 10)) }

    @Test("a snapshot does not show later writes") func laterWritesDoNotShow() throws {
        try database.put(bytes("changed"), bytes("old"))
        try database.put(bytes("deleted"), bytes("old"))
        let snapshot = try database.snapshot()
        let batch = WriteBatch()
        batch.put(bytes("changed"), bytes("new"))
        batch.put(bytes("added"), bytes("new"))
        batch.delete(bytes("deleted"))
        try database.write(batch)
        // The snapshot also keeps the old values after they were written to tables and merged.
        for _ in 0..<2 {
            let then = ReadOptions(snapshot: snapshot)
            #expect(try database.get(bytes("changed"), options: then) == bytes("old"))
            #expect(try database.get(bytes("deleted"), options: then) == bytes("old"))
            #expect(try database.get(bytes("added"), options: then) == nil)
            #expect(try database.withValue(bytes("changed"), options: then) { $0?.count } == 3)
            let cursor = try database.cursor(then)
            try cursor.seekToFirst()
            #expect(try keys(cursor) == [bytes("changed"), bytes("deleted")])
            #expect(try database.get(bytes("changed")) == bytes("new"))
            #expect(try database.get(bytes("deleted")) == nil)
            for number in 0..<2000 { try database.put(bytes("other") + key(number), [UInt8](repeating: 0, count: 100)) }
            for number in 0..<2000 { try database.delete(bytes("other") + key(number)) }
            try database.compact()
        }
    }

    @Test func snapshotsOfDifferentTimesShowDifferentStates() throws {
        var snapshots: [Snapshot] = []
        for number in 0..<10 {
            snapshots.append(try database.snapshot())
            try database.put(bytes("n"), bytes("\(number)"))
        }
        for (number, snapshot) in snapshots.enumerated().reversed() {
            let expected = number == 0 ? nil : bytes("\(number - 1)")
            #expect(try database.get(bytes("n"), options: ReadOptions(snapshot: snapshot)) == expected)
            snapshot.close()
        }
    }

    @Test func readOptionsDoNotChangeTheResultOfASnapshotRead() throws {
        try database.put(bytes("a"), bytes("1"))
        let snapshot = try database.snapshot()
        for fill in [true, false] {
            let options = ReadOptions(fillCache: fill, snapshot: snapshot)
            #expect(try database.get(bytes("a"), options: options) == bytes("1"))
        }
    }

    @Test func aClosedSnapshotRefusesReads() throws {
        let snapshot = try database.snapshot()
        #expect(!snapshot.isClosed)
        snapshot.close()
        snapshot.close()
        #expect(snapshot.isClosed)
        let options = ReadOptions(snapshot: snapshot)
        let errors = [
            failure { () throws(LevelDBError) in _ = try database.get([1], options: options) },
            failure { () throws(LevelDBError) in _ = try database.withValue([1], options: options) { $0 == nil } },
            failure { () throws(LevelDBError) in _ = try database.cursor(options) },
        ]
        #expect(errors.map { $0?.code } == [.closed, .closed, .closed])
        #expect(errors.map { $0?.operation } == ["get", "get", "cursor"])
        #expect(errors[0]?.message == "the snapshot was closed")
        // A refused cursor does not prevent the database from being closed.
        try database.close()
    }

    @Test func aCursorOutlivesItsSnapshot() throws {
        for number in 0..<10 { try database.put(key(number), bytes("old")) }
        let snapshot = try database.snapshot()
        let cursor = try database.cursor(ReadOptions(snapshot: snapshot))
        snapshot.close()
        for number in 0..<10 { try database.delete(key(number)) }
        try database.compact()
        try cursor.seekToFirst()
        #expect(try keys(cursor).count == 10)
    }

    @Test func aSnapshotOfAnotherDatabaseIsRefused() throws {
        let other = try workspace.open("other")
        let foreign = ReadOptions(snapshot: try other.snapshot())
        let error = failure { () throws(LevelDBError) in _ = try database.get([1], options: foreign) }
        #expect(error?.code == .invalidArgument)
        #expect(error?.message == "the snapshot belongs to another database, \(other.path)")
        #expect(failure { () throws(LevelDBError) in _ = try database.cursor(foreign) }?.code == .invalidArgument)
    }
}
