import Larder

/// The library's cache, with bytes as values and text as keys.
final class CacheStore: EmbeddedStore {
    private let entries: Entries
    private let cache: Cache

    init(_ directory: String, _ entries: Entries) throws {
        self.entries = entries
        cache = try Self.open(directory)
    }

    static func open(_ directory: String) throws -> Cache {
        var options = CacheOptions(durability: .os)
        options.memoryBytes = StoreOptions.memoryBytes
        options.blockCacheBytes = StoreOptions.blockCacheBytes
        options.writeBufferBytes = StoreOptions.writeBufferBytes
        options.bloomBitsPerKey = StoreOptions.bloomBitsPerKey
        return try Cache(named: "bench", policy: .never, directory: directory, options: options)
    }

    func put(_ index: Int) throws { try cache.setBytes(entries.values[index], forKey: entries.textKeys[index]) }

    func putBatch(_ indices: ArraySlice<Int>) throws {
        try cache.batch { batch in
            for index in indices { try batch.setBytes(entries.values[index], forKey: entries.textKeys[index]) }
        }
    }

    func get(_ index: Int) throws -> Bool { try cache.bytes(forKey: entries.textKeys[index]) != nil }

    func getAbsent(_ index: Int) throws -> Bool { try cache.bytes(forKey: entries.absentTextKeys[index]) != nil }

    /// A snapshot reads LevelDB, so creating one writes all entries to it.
    func writeOut() throws { try cache.snapshot().close() }

    func close() throws { cache.close() }
}
