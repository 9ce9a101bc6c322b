import LarderLevelDB
import Testing

@Suite struct ClosingTests {
    let workspace: Workspace
    var database: Database { workspace.database }

    init() throws {
        workspace = try Workspace()
        try workspace.database.put(bytes("a"), bytes("1"))
    }

    @Test func everyCallAfterCloseThrowsClosed() throws {
        let batch = WriteBatch()
        batch.put(bytes("a"), bytes("2"))
        try database.close()
        #expect(database.isClosed)
        let errors = [
            failure { () throws(LevelDBError) in _ = try database.get(bytes("a")) },
            failure { () throws(LevelDBError) in _ = try database.withValue(bytes("a")) { $0 == nil } },
            failure { () throws(LevelDBError) in try database.write(batch) },
            failure { () throws(LevelDBError) in _ = try database.snapshot() },
            failure { () throws(LevelDBError) in _ = try database.cursor() },
            failure { () throws(LevelDBError) in try database.compact() },
        ]
        let operations = ["get", "get", "write", "snapshot", "cursor", "compact"]
        #expect(
            errors
                == operations.map { operation in
                    LevelDBError(
                        code: .closed, message: "the database was closed", operation: operation, path: database.path)
                })
        try workspace.reopen()
        #expect(try database.get(bytes("a")) == bytes("1"))
    }

    @Test func closeIsIdempotentAndReleasesTheLock() throws {
        let first = database
        try first.close()
        try first.close()
        try workspace.reopen()
        // A second close of `first` does not affect the database that was opened after the first close.
        try first.close()
        #expect(try database.get(bytes("a")) == bytes("1"))
    }

    @Test func closeIsRefusedWhileSnapshotsOrCursorsAreOpen() throws {
        var snapshots = [try database.snapshot(), try database.snapshot()]
        let cursor = try database.cursor()
        let error = failure { () throws(LevelDBError) in try database.close() }
        #expect(
            error?.description == "close in \(database.path): busy: open snapshots: 2, open cursors: 1")
        #expect(!database.isClosed)
        // After the refused close, the database, its snapshots and its cursors still work.
        #expect(try database.get(bytes("a"), options: ReadOptions(snapshot: snapshots[0])) == bytes("1"))
        try cursor.seekToFirst()
        #expect(cursor.key == bytes("a"))
        try database.put(bytes("b"), bytes("2"))

        snapshots[0].close()
        snapshots[0].close()
        #expect(
            failure { () throws(LevelDBError) in try database.close() }?.message
                == "open snapshots: 1, open cursors: 1")
        snapshots = []
        #expect(
            failure { () throws(LevelDBError) in try database.close() }?.message
                == "open snapshots: 0, open cursors: 1")
        cursor.close()
        cursor.close()
        try database.close()
        #expect(database.isClosed)
    }

    @Test func aReleasedCursorDoesNotKeepTheDatabaseOpen() throws {
        var cursor: Cursor? = try database.cursor()
        try cursor?.seekToFirst()
        #expect(failure { () throws(LevelDBError) in try database.close() }?.code == .busy)
        cursor = nil
        try database.close()
    }

    @Test func snapshotsAndCursorsKeepTheirDatabaseOpen() throws {
        var other: Database? = try workspace.open("other")
        weak let watched = other
        try other?.put(bytes("a"), bytes("1"))
        var cursor = try other?.cursor()
        var snapshot = try other?.snapshot()
        other = nil
        #expect(watched != nil)
        try cursor?.seekToFirst()
        #expect(cursor?.value == bytes("1"))
        cursor = nil
        #expect(watched != nil)
        if let held = snapshot {
            #expect(try held.database.get(bytes("a"), options: ReadOptions(snapshot: held)) == bytes("1"))
        }
        snapshot = nil
        #expect(watched == nil)
        // The database is closed by now; otherwise it could not be opened again.
        #expect(try workspace.open("other").get(bytes("a")) == bytes("1"))
    }

    @Test func aClosedCursorRefusesCalls() throws {
        let cursor = try database.cursor()
        try cursor.seekToFirst()
        cursor.close()
        #expect(!cursor.isValid)
        let errors = [
            failure { () throws(LevelDBError) in try cursor.seekToFirst() },
            failure { () throws(LevelDBError) in try cursor.seekToLast() },
            failure { () throws(LevelDBError) in try cursor.seek(to: [1]) },
            failure { () throws(LevelDBError) in try cursor.seekBackward(to: [1]) },
            failure { () throws(LevelDBError) in try cursor.next() },
            failure { () throws(LevelDBError) in try cursor.previous() },
            failure { () throws(LevelDBError) in _ = try cursor.withKey { $0.count } },
            failure { () throws(LevelDBError) in _ = try cursor.withValue { $0.count } },
        ]
        for error in errors { #expect(error?.code == .closed) }
        #expect(errors.map { $0?.operation } == ["seek", "seek", "seek", "seek", "next", "previous", "key", "value"])
    }
}
