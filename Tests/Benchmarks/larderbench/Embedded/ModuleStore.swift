import LarderLevelDB

/// The module LevelDB: the safe Swift interface, without entries, policies or commits.
final class ModuleStore: EmbeddedStore {
    private let entries: Entries
    private let database: LarderLevelDB.Database
    private let batch = WriteBatch()

    init(_ directory: String, _ entries: Entries) throws {
        self.entries = entries
        var options = LarderLevelDB.Options()
        options.createIfMissing = true
        options.bloomBitsPerKey = StoreOptions.bloomBitsPerKey
        options.blockCache = BlockCache(bytes: StoreOptions.blockCacheBytes)
        options.writeBufferBytes = StoreOptions.writeBufferBytes
        database = try LarderLevelDB.Database(path: directory + "/db", options: options)
    }

    func put(_ index: Int) throws { try putBatch([index]) }

    func putBatch(_ indices: ArraySlice<Int>) throws {
        batch.clear()
        for index in indices { batch.put(entries.keys[index], entries.values[index]) }
        try database.write(batch)
    }

    func get(_ index: Int) throws -> Bool { try database.get(entries.keys[index]) != nil }

    func getAbsent(_ index: Int) throws -> Bool { try database.get(entries.absentKeys[index]) != nil }

    func close() throws { try database.close() }
}
