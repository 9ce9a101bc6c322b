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

    /// Applies either all of `batch` or nothing. No reader sees a part of it. An empty batch is allowed.
    ///
    /// Throws `.invalidArgument` if a put or delete was larger than ``WriteBatch/recordBytesMax``. After any other
    /// error, the database must be closed and opened again before the next write, because later writes might be lost.
    /// - Parameter sync: whether to return only after LevelDB's log was synced to the disk (with fdatasync; on macOS
    ///   with the call that LevelDB was built with). Without it, the write is in the operating system's cache: it
    ///   survives the termination of the process, but not a machine failure. A write with sync also makes earlier
    ///   writes to the *current* log durable, but not those to a previous log, which LevelDB has closed without a sync.
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

    /// Merges the tables of a key range. This frees the space of deleted and overwritten entries, unless a snapshot or
    /// cursor needs them.
    ///
    /// Takes as long as reading and rewriting the range. Blocks only the caller, and ``close()``, which waits until the
    /// call has finished. If the merge fails, LevelDB reports that only at a later write.
    /// - Parameters:
    ///   - from: the first key of the range. The default is nil: all keys from the beginning.
    ///   - to: the last key of the range. The default is nil: all keys to the end.
    package func compact(from: [UInt8]? = nil, to: [UInt8]? = nil) throws(LevelDBError) {
        try withHandle("compact") { handle in
            Self.withOptionalBytes(from) { from, fromCount in
                Self.withOptionalBytes(to) { to, toCount in
                    leveldb_compact_range(handle, from, fromCount, to, toCount)
                }
            }
        }
    }

    private static func withOptionalBytes(_ bytes: [UInt8]?, _ body: (UnsafePointer<CChar>?, Int) -> Void) {
        guard let bytes else { return body(nil, 0) }
        bytes.withUnsafeBytes { body($0.characters, $0.count) }
    }
}
