import CLarderLevelDB

// After a failed write, close and open the database before the next write. Otherwise LevelDB may append the next write
// after an incomplete record of its log: the write then returns normally, but is lost.

extension Database {
    /// Stores a value. Throws `.invalidArgument` if key and value together are longer than
    /// ``WriteBatch/recordBytesMax``. After any other error, the database must be closed and opened again before the
    /// next write, because later writes might be lost.
    package func put(
        _ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, options: WriteOptions = WriteOptions()
    ) throws(LevelDBError) {
        if let complaint = WriteBatch.complaint(keyBytes: key.count, valueBytes: value.count) {
            throw LevelDBError(code: .invalidArgument, message: complaint, operation: "put", path: path)
        }
        try withHandle("put") { (handle) throws(LevelDBError) in
            try checked("put", path: path, key: key) { status in
                leveldb_put(
                    handle, WriteOptionsHandle.shared(options), key.characters, key.count, value.characters,
                    value.count, status)
            }
        }
    }

    /// Stores a value.
    package func put(
        _ key: [UInt8], _ value: [UInt8], options: WriteOptions = WriteOptions()
    ) throws(LevelDBError) {
        try key.withRawBytes { (key) throws(LevelDBError) in
            try value.withRawBytes { (value) throws(LevelDBError) in try put(key, value, options: options) }
        }
    }

    /// Deletes a key, if it exists. For errors see ``put(_:_:options:)``.
    package func delete(
        _ key: UnsafeRawBufferPointer, options: WriteOptions = WriteOptions()
    ) throws(LevelDBError) {
        if let complaint = WriteBatch.complaint(keyBytes: key.count, valueBytes: 0) {
            throw LevelDBError(code: .invalidArgument, message: complaint, operation: "delete", path: path)
        }
        try withHandle("delete") { (handle) throws(LevelDBError) in
            try checked("delete", path: path, key: key) { status in
                leveldb_delete(handle, WriteOptionsHandle.shared(options), key.characters, key.count, status)
            }
        }
    }

    /// Deletes a key.
    package func delete(_ key: [UInt8], options: WriteOptions = WriteOptions()) throws(LevelDBError) {
        try key.withRawBytes { (key) throws(LevelDBError) in try delete(key, options: options) }
    }

    /// Applies either all of `batch` or nothing. No reader sees a part of it. An empty batch is allowed. Throws
    /// `.invalidArgument` if a put or delete was too large; for other errors see ``put(_:_:options:)``.
    package func write(_ batch: WriteBatch, options: WriteOptions = WriteOptions()) throws(LevelDBError) {
        if let complaint = batch.complaint {
            throw LevelDBError(code: .invalidArgument, message: complaint, operation: "write", path: path)
        }
        try withHandle("write") { (handle) throws(LevelDBError) in
            try checked("write", path: path) { status in
                leveldb_write(handle, WriteOptionsHandle.shared(options), batch.handle, status)
            }
        }
    }
}
