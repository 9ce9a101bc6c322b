import CLarderLevelDB

// After a failed write, close and open the database before the next write. Otherwise LevelDB may append the next write
// after an incomplete record of its log: the write then returns normally, but is lost.

extension Database {
    // LevelDB's options of a write, created once and shared by all writes. `nonisolated(unsafe)` is safe here, because
    // nothing changes them.
    private nonisolated(unsafe) static let syncing = makeWriteOptions(sync: true)
    private nonisolated(unsafe) static let passing = makeWriteOptions(sync: false)

    private static func makeWriteOptions(sync: Bool) -> OpaquePointer? {
        let options = leveldb_writeoptions_create()
        leveldb_writeoptions_set_sync(options, sync ? 1 : 0)
        return options
    }

    @inline(__always)
    private static func writeOptions(sync: Bool) -> OpaquePointer? { sync ? syncing : passing }

    /// Stores a value. Throws `.invalidArgument` if key and value together are longer than
    /// ``WriteBatch/recordBytesMax``. After any other error, the database must be closed and opened again before the
    /// next write, because later writes might be lost.
    /// - Parameter sync: whether to return only after LevelDB's log was synced to the disk (with fdatasync; on macOS
    ///   with the call that LevelDB was built with). Without it, the write is in the operating system's cache: it
    ///   survives the termination of the process, but not a machine failure. A write with sync also makes earlier
    ///   writes to the *current* log durable, but not those to a previous log, which LevelDB has closed without a sync.
    package func put(
        _ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, sync: Bool = false
    ) throws(LevelDBError) {
        if let complaint = WriteBatch.complaint(keyBytes: key.count, valueBytes: value.count) {
            throw LevelDBError(code: .invalidArgument, message: complaint, operation: "put", path: path)
        }
        try withHandle("put") { (handle) throws(LevelDBError) in
            try checked("put", path: path, key: key) { status in
                leveldb_put(
                    handle, Self.writeOptions(sync: sync), key.characters, key.count, value.characters,
                    value.count, status)
            }
        }
    }

    /// Stores a value.
    package func put(
        _ key: [UInt8], _ value: [UInt8], sync: Bool = false
    ) throws(LevelDBError) {
        try key.withRawBytes { (key) throws(LevelDBError) in
            try value.withRawBytes { (value) throws(LevelDBError) in try put(key, value, sync: sync) }
        }
    }

    /// Deletes a key, if it exists. For errors see ``put(_:_:sync:)``.
    package func delete(
        _ key: UnsafeRawBufferPointer, sync: Bool = false
    ) throws(LevelDBError) {
        if let complaint = WriteBatch.complaint(keyBytes: key.count, valueBytes: 0) {
            throw LevelDBError(code: .invalidArgument, message: complaint, operation: "delete", path: path)
        }
        try withHandle("delete") { (handle) throws(LevelDBError) in
            try checked("delete", path: path, key: key) { status in
                leveldb_delete(handle, Self.writeOptions(sync: sync), key.characters, key.count, status)
            }
        }
    }

    /// Deletes a key.
    package func delete(_ key: [UInt8], sync: Bool = false) throws(LevelDBError) {
        try key.withRawBytes { (key) throws(LevelDBError) in try delete(key, sync: sync) }
    }

    /// Applies either all of `batch` or nothing. No reader sees a part of it. An empty batch is allowed. Throws
    /// `.invalidArgument` if a put or delete was too large; for other errors see ``put(_:_:sync:)``.
    package func write(_ batch: WriteBatch, sync: Bool = false) throws(LevelDBError) {
        if let complaint = batch.complaint {
            throw LevelDBError(code: .invalidArgument, message: complaint, operation: "write", path: path)
        }
        try withHandle("write") { (handle) throws(LevelDBError) in
            try checked("write", path: path) { status in
                leveldb_write(handle, Self.writeOptions(sync: sync), batch.handle, status)
            }
        }
    }
}
