import CLarderLevelDB

/// LevelDB's C functions alone: the baseline for everything else.
final class RawStore: EmbeddedStore {
    private let entries: Entries
    private let filter: OpaquePointer
    private let cache: OpaquePointer
    private let options: OpaquePointer
    private let readOptions: OpaquePointer
    private let writeOptions: OpaquePointer
    private let batch: OpaquePointer
    private var database: OpaquePointer?

    init(_ directory: String, _ entries: Entries) throws(BenchError) {
        self.entries = entries
        filter = leveldb_filterpolicy_create_bloom(Int32(StoreOptions.bloomBitsPerKey))
        cache = leveldb_cache_create_lru(StoreOptions.blockCacheBytes)
        options = leveldb_options_create()
        readOptions = leveldb_readoptions_create()
        writeOptions = leveldb_writeoptions_create()
        batch = leveldb_writebatch_create()
        leveldb_options_set_create_if_missing(options, 1)
        leveldb_options_set_filter_policy(options, filter)
        leveldb_options_set_cache(options, cache)
        leveldb_options_set_write_buffer_size(options, StoreOptions.writeBufferBytes)
        leveldb_options_set_compression(options, Int32(leveldb_snappy_compression))
        leveldb_readoptions_set_verify_checksums(readOptions, 1)
        let options = options
        database = try Self.checked { leveldb_open(options, directory, $0) }
    }

    deinit {
        if let database { leveldb_close(database) }
        leveldb_writebatch_destroy(batch)
        leveldb_writeoptions_destroy(writeOptions)
        leveldb_readoptions_destroy(readOptions)
        leveldb_options_destroy(options)
        leveldb_cache_destroy(cache)
        leveldb_filterpolicy_destroy(filter)
    }

    func put(_ index: Int) throws { try put(entries.keys[index], entries.values[index]) }

    func put(_ key: [UInt8], _ value: [UInt8]) throws(BenchError) {
        try Self.checked { status in
            key.withUnsafeCharacters { key in
                value.withUnsafeCharacters { value in
                    leveldb_put(
                        database, writeOptions, key.baseAddress, key.count, value.baseAddress, value.count, status)
                }
            }
        }
    }

    func putBatch(_ indices: ArraySlice<Int>) throws {
        leveldb_writebatch_clear(batch)
        for index in indices {
            entries.keys[index].withUnsafeCharacters { key in
                entries.values[index].withUnsafeCharacters { value in
                    leveldb_writebatch_put(batch, key.baseAddress, key.count, value.baseAddress, value.count)
                }
            }
        }
        try Self.checked { leveldb_write(database, writeOptions, batch, $0) }
    }

    func get(_ index: Int) throws -> Bool { try withValue(entries.keys[index]) { $0 != nil } }

    func getAbsent(_ index: Int) throws -> Bool { try withValue(entries.absentKeys[index]) { $0 != nil } }

    /// Runs `body` on LevelDB's own copy of the value, without a further copy, as a C program would.
    func withValue<Result>(_ key: [UInt8], _ body: (UnsafeRawBufferPointer?) throws -> Result) throws -> Result {
        var length = 0
        let value = try Self.checked { status in
            key.withUnsafeCharacters { key in
                leveldb_get(database, readOptions, key.baseAddress, key.count, &length, status)
            }
        }
        defer { leveldb_free(value) }
        return try body(value.map { UnsafeRawBufferPointer(start: $0, count: length) })
    }

    /// Merges all tables, with this store's options.
    func mergeTables() { leveldb_compact_range(database, nil, 0, nil, 0) }

    func close() {
        if let database { leveldb_close(database) }
        database = nil
    }

    private static func checked<Result>(_ body: (UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>) -> Result)
        throws(BenchError) -> Result
    {
        var message: UnsafeMutablePointer<CChar>?
        let result = body(&message)
        if let message {
            defer { leveldb_free(message) }
            throw BenchError("LevelDB: \(String(cString: message))")
        }
        return result
    }
}

extension [UInt8] {
    func withUnsafeCharacters<Result>(_ body: (UnsafeBufferPointer<CChar>) -> Result) -> Result {
        withUnsafeBytes { body($0.bindMemory(to: CChar.self)) }
    }
}
