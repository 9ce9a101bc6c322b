import CLarderLevelDB
import LarderPlatform

/// The state of the database at one instant, for ``ReadOptions/snapshot``. It retains the database, which cannot be
/// closed while the snapshot is open.
///
/// While a snapshot is open, LevelDB cannot free the space of data that was deleted or overwritten after the snapshot
/// was created. Limit its lifetime, and call ``close()`` rather than wait for the last reference to be released.
///
/// Thread-safe. `@unchecked Sendable`: `handle` is read with `lock` held for reading and changed with `lock` held for
/// writing. While `handle` is not nil, the database cannot be closed.
package final class Snapshot: @unchecked Sendable {
    package let database: Database
    private let databaseHandle: OpaquePointer
    private let lock = ReadWriteLock()
    private var handle: OpaquePointer?

    /// - Parameter databaseHandle: the open handle of `database`. The caller has already counted this snapshot with
    ///   ``Database/snapshotDidOpen()``.
    init(_ database: Database, databaseHandle: OpaquePointer) {
        self.database = database
        self.databaseHandle = databaseHandle
        handle = leveldb_create_snapshot(databaseHandle)
    }

    deinit { release() }

    /// True after ``close()``.
    package var isClosed: Bool { lock.withReadLock { handle == nil } }

    /// Releases the snapshot after reads in progress have finished. Idempotent. Cursors that were created with it stay
    /// usable.
    package func close() {
        lock.withWriteLock { release() }
    }

    private func release() {
        guard let handle else { return }
        leveldb_release_snapshot(databaseHandle, handle)
        self.handle = nil
        database.snapshotDidClose()
    }

    /// Passes the database's handle and read options for this snapshot to `body`. Both stay valid until `body` returns:
    /// closing the snapshot waits for `body`, and the database cannot be closed before the snapshot.
    func withHandles<Result>(
        _ options: ReadOptions, _ operation: StaticString,
        _ body: (OpaquePointer, OpaquePointer) throws(LevelDBError)
            -> Result
    ) throws(LevelDBError) -> Result {
        try lock.withReadLock { () throws(LevelDBError) -> Result in
            guard let handle else {
                throw LevelDBError(
                    code: .closed, message: "the snapshot was closed", operation: operation.description,
                    path: database.path)
            }
            let readOptions = ReadOptionsHandle(fillCache: options.fillCache, snapshot: handle)
            return try withExtendedLifetime(readOptions) { () throws(LevelDBError) -> Result in
                try body(databaseHandle, readOptions.handle)
            }
        }
    }
}
