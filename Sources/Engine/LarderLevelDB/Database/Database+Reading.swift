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
    package func get(_ key: [UInt8], options: ReadOptions = ReadOptions()) throws(LevelDBError) -> [UInt8]? {
        try withValue(key, options: options) { $0.map { [UInt8]($0) } }
    }

    /// Reads one value, like ``get(_:options:)``, but without copying it to an array.
    /// - Parameter body: receives the bytes, which are valid until it returns; nil if the key is missing. Called with
    ///   no lock held: it may use this database, and even close it.
    @inlinable
    package func withValue<Result>(
        _ key: [UInt8], options: ReadOptions = ReadOptions(), _ body: (UnsafeRawBufferPointer?) -> Result
    ) throws(LevelDBError) -> Result {
        let value = try key.withRawBytes { (key) throws(LevelDBError) in try takeValue(key, options) }
        defer { Self.release(value) }
        return body(value)
    }

    /// Whether LevelDB's memory and the Bloom filters of its open tables prove that LevelDB does not have a key. Reads
    /// no file: returns false if LevelDB has the key, or would have to read a file to find out. Takes a microsecond or
    /// two; longer if LevelDB has the value in memory, because LevelDB then copies it.
    ///
    /// Takes no lock: the caller must ensure that the database is not closed during the call.
    package func lacksUnlocked(_ key: UnsafeRawBufferPointer) -> Bool {
        guard let handle = try? openHandle("get") else { return false }
        let options = ReadOptionsHandle.shared(fillCache: false)
        // Returns false if the gate is locked for writing, so that this call does not wait.
        return gate.readUnlessBusy { larder_leveldb_lacks(handle, options, key.characters, key.count) != 0 } ?? false
    }

    /// Reads the newest value of a key, and verifies checksums. Returns a copy that LevelDB has allocated; nil if the
    /// key is missing. The copy stays valid until the caller passes it to ``release(_:)``, even after the database is
    /// closed.
    ///
    /// Takes no lock: the caller must ensure that the database is not closed during the call.
    package func takeUnlocked(
        _ key: UnsafeRawBufferPointer, fillCache: Bool
    ) throws(LevelDBError) -> UnsafeRawBufferPointer? {
        let options = ReadOptionsHandle.shared(fillCache: fillCache)
        return try takeValue(try openHandle("get"), options, key)
    }

    /// Frees the result of ``takeUnlocked(_:fillCache:)``.
    @usableFromInline package static func release(_ value: UnsafeRawBufferPointer?) {
        if let value { leveldb_free(UnsafeMutableRawPointer(mutating: value.baseAddress)) }
    }

    @usableFromInline
    func takeValue(
        _ key: UnsafeRawBufferPointer, _ options: ReadOptions
    ) throws(LevelDBError) -> UnsafeRawBufferPointer? {
        try withHandles(options, "get") { (handle, readOptions) throws(LevelDBError) in
            try takeValue(handle, readOptions, key)
        }
    }

    @inline(__always)
    private func takeValue(
        _ handle: OpaquePointer, _ options: OpaquePointer, _ key: UnsafeRawBufferPointer
    ) throws(LevelDBError) -> UnsafeRawBufferPointer? {
        var length = 0
        let value = try checked("get", path: path, key: key) { status in
            gate.read { larder_leveldb_get(handle, options, key.characters, key.count, &length, status) }
        }
        return value.map { UnsafeRawBufferPointer(start: $0, count: length) }
    }
}

/// LevelDB's reads of its tables' files.
package enum TableReads {
    /// Runs `body`. LevelDB's calls on this thread throw `.ioError` meanwhile if they would have to read a file. So an
    /// event loop can read what is in the block cache.
    package static func refused<Result>(during body: () -> Result) -> Result {
        larder_leveldb_refuse_reads(1)
        defer { larder_leveldb_refuse_reads(0) }
        return body()
    }
}

/// Options of a read. Reads verify the checksum of every block that is read from a file: without verification, a
/// flipped bit would be returned as data.
package struct ReadOptions: Sendable {
    /// Whether to add the blocks that are read to the cache. The default is true. Use false for a full scan, which
    /// would evict frequently used blocks.
    package var fillCache = true

    /// The snapshot to read. The default is nil: the newest state. Reads throw `.invalidArgument` for a snapshot of
    /// another database, and `.closed` for a closed snapshot.
    package var snapshot: Snapshot?

    package init(fillCache: Bool = true, snapshot: Snapshot? = nil) {
        (self.fillCache, self.snapshot) = (fillCache, snapshot)
    }
}
