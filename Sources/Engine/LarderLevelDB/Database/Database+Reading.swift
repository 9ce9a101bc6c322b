import CLarderLevelDB
import CLarderLevelDBFiles

extension Database {
    /// Reads one value.
    ///
    /// An empty value is returned as an empty array, and a missing value as nil. LevelDB's C function can distinguish
    /// the two only if malloc(0) returns a pointer, as with glibc, musl and macOS. On other systems an empty value may
    /// be read as missing, so do not store empty values there.
    ///
    /// Damaged files make the call throw `.corruption`, with one exception: if a table file is deleted while the
    /// database is open, LevelDB behaves as if that table did not have the key. Opening the database again detects the
    /// loss.
    package func get(
        _ key: UnsafeRawBufferPointer, options: ReadOptions = ReadOptions()
    ) throws(LevelDBError) -> [UInt8]? {
        let value = try takeValue(key, options, "get")
        defer { Self.release(value) }
        return value.map { [UInt8]($0) }
    }

    /// Reads one value.
    package func get(_ key: [UInt8], options: ReadOptions = ReadOptions()) throws(LevelDBError) -> [UInt8]? {
        try key.withRawBytes { (key) throws(LevelDBError) in try get(key, options: options) }
    }

    /// Reads one value, like ``get(_:options:)``, but without copying it to an array.
    /// - Parameter body: receives the bytes, which are valid until it returns; nil if the key is missing. Called with
    ///   no lock held: it may use this database, and even close it.
    @inlinable
    package func withValue<Result>(
        _ key: UnsafeRawBufferPointer, options: ReadOptions = ReadOptions(),
        _ body: (UnsafeRawBufferPointer?) -> Result
    ) throws(LevelDBError) -> Result {
        let value = try takeValue(key, options, "get")
        defer { Self.release(value) }
        return body(value)
    }

    /// Like ``withValue(_:options:_:)-(UnsafeRawBufferPointer,_,_)``.
    @inlinable
    package func withValue<Result>(
        _ key: [UInt8], options: ReadOptions = ReadOptions(), _ body: (UnsafeRawBufferPointer?) -> Result
    ) throws(LevelDBError) -> Result {
        try key.withRawBytes { (key) throws(LevelDBError) in try withValue(key, options: options, body) }
    }

    /// Whether the key exists. Costs as much as reading the value. ``lacksUnlocked(_:)`` checks without reading the
    /// disk, but cannot always answer.
    package func has(
        _ key: UnsafeRawBufferPointer, options: ReadOptions = ReadOptions()
    ) throws(LevelDBError) -> Bool {
        let value = try takeValue(key, options, "has")
        defer { Self.release(value) }
        return value != nil
    }

    /// Whether the key exists.
    package func has(_ key: [UInt8], options: ReadOptions = ReadOptions()) throws(LevelDBError) -> Bool {
        try key.withRawBytes { (key) throws(LevelDBError) in try has(key, options: options) }
    }

    /// Whether LevelDB's memory and the Bloom filters of its open tables prove that LevelDB does not have a key. Reads
    /// no file: returns false if LevelDB has the key, or would have to read a file to find out. Takes a microsecond or
    /// two; longer if LevelDB has the value in memory, because LevelDB then copies it.
    ///
    /// Takes no lock: the caller must ensure that the database is not closed during the call.
    package func lacksUnlocked(_ key: UnsafeRawBufferPointer) -> Bool {
        guard let handle = try? openHandle("has") else { return false }
        let options = ReadOptionsHandle.shared(verifyChecksums: true, fillCache: false)
        // Returns false if the gate is locked for writing, so that this call does not wait.
        return gate.reads.withReadLockUnlessBusy {
            larder_leveldb_lacks(handle, options, key.characters, key.count) != 0
        } ?? false
    }

    /// Reads the newest value of a key, and verifies checksums. Returns a copy that LevelDB has allocated; nil if the
    /// key is missing. The copy stays valid until the caller passes it to ``release(_:)``, even after the database is
    /// closed.
    ///
    /// Takes no lock: the caller must ensure that the database is not closed during the call.
    package func takeUnlocked(
        _ key: UnsafeRawBufferPointer, fillCache: Bool
    ) throws(LevelDBError) -> UnsafeRawBufferPointer? {
        let options = ReadOptionsHandle.shared(verifyChecksums: true, fillCache: fillCache)
        return try takeValue(try openHandle("get"), options, key, "get")
    }

    /// Frees the result of ``takeUnlocked(_:fillCache:)``.
    @usableFromInline package static func release(_ value: UnsafeRawBufferPointer?) {
        if let value { leveldb_free(UnsafeMutableRawPointer(mutating: value.baseAddress)) }
    }

    @usableFromInline
    func takeValue(
        _ key: UnsafeRawBufferPointer, _ options: ReadOptions, _ operation: StaticString
    ) throws(LevelDBError) -> UnsafeRawBufferPointer? {
        try withHandles(options, operation) { (handle, readOptions) throws(LevelDBError) in
            try takeValue(handle, readOptions, key, operation)
        }
    }

    @inline(__always)
    private func takeValue(
        _ handle: OpaquePointer, _ options: OpaquePointer, _ key: UnsafeRawBufferPointer, _ operation: StaticString
    ) throws(LevelDBError) -> UnsafeRawBufferPointer? {
        var length = 0
        let value = try checked(operation, path: path, key: key) { status in
            gate.reads.withReadLock { leveldb_get(handle, options, key.characters, key.count, &length, status) }
        }
        return value.map { UnsafeRawBufferPointer(start: $0, count: length) }
    }
}

/// Options of a read.
package struct ReadOptions: Sendable {
    /// Whether to verify the checksum of every block that is read from a file. The default is true: without
    /// verification, a flipped bit would be returned as data. Blocks in the cache are not verified again; they were
    /// verified only if the read that loaded them requested verification.
    package var verifyChecksums = true

    /// Whether to add the blocks that are read to the cache. The default is true. Use false for a full scan, which
    /// would evict frequently used blocks.
    package var fillCache = true

    /// The snapshot to read. The default is nil: the newest state. Reads throw `.invalidArgument` for a snapshot of
    /// another database, and `.closed` for a closed snapshot.
    package var snapshot: Snapshot?

    package init(verifyChecksums: Bool = true, fillCache: Bool = true, snapshot: Snapshot? = nil) {
        self.verifyChecksums = verifyChecksums
        self.fillCache = fillCache
        self.snapshot = snapshot
    }
}
