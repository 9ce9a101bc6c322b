import CLarderLevelDB

extension Database {
    /// Creates a snapshot of the current state. Cheap: LevelDB only records a sequence number.
    package func snapshot() throws(LevelDBError) -> Snapshot {
        try withHandle("snapshot") { handle in
            snapshotDidOpen()
            return Snapshot(self, databaseHandle: handle)
        }
    }

    /// Creates a cursor over the current state, or over the snapshot in `options`. The cursor is at no entry before the
    /// first seek.
    /// - Parameter prefix: limits the cursor to keys with this prefix. The default is empty: all keys.
    package func cursor(_ options: ReadOptions = ReadOptions(), prefix: [UInt8] = []) throws(LevelDBError) -> Cursor {
        try withHandles(options, "cursor") { handle, readOptions in
            cursorDidOpen()
            return gate.reads.withReadLock {
                Cursor(self, handle: leveldb_create_iterator(handle, readOptions), options, prefix: prefix)
            }
        }
    }

    /// Creates a new iterator for a cursor whose iterator was closed. Does not take the database's lock, because the
    /// cursor keeps the database from being closed.
    func renew(_ slot: IteratorSlot, _ options: ReadOptions) throws(LevelDBError) {
        guard let snapshot = options.snapshot else {
            let readOptions = ReadOptionsHandle.shared(fillCache: options.fillCache)
            let handle = try openHandle("cursor")
            return gate.reads.withReadLock { slot.handle = leveldb_create_iterator(handle, readOptions) }
        }
        // Take the snapshot's lock before the gate, in the same order as reads, to avoid a deadlock.
        try snapshot.withHandles(options, "cursor") { handle, readOptions in
            gate.reads.withReadLock { slot.handle = leveldb_create_iterator(handle, readOptions) }
        }
    }

    /// Passes the database's handle and LevelDB's read options, with the snapshot if there is one, to `body`. Like
    /// ``withHandle(_:_:)``, for reads.
    @inline(__always)
    func withHandles<Result>(
        _ options: ReadOptions, _ operation: StaticString,
        _ body: (OpaquePointer, OpaquePointer) throws(LevelDBError) -> Result
    ) throws(LevelDBError) -> Result {
        guard let snapshot = options.snapshot else {
            return try withHandle(operation) { (handle) throws(LevelDBError) -> Result in
                try body(handle, ReadOptionsHandle.shared(fillCache: options.fillCache))
            }
        }
        guard snapshot.database === self else {
            throw LevelDBError(
                code: .invalidArgument, message: "the snapshot belongs to another database, \(snapshot.database.path)",
                operation: operation.description, path: path)
        }
        return try snapshot.withHandles(options, operation, body)
    }
}
