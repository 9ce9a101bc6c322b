import LarderEngine

/// A store in this process whose speed is measured. Each store has its own directory. `close()` closes the store.
protocol EmbeddedStore: AnyObject {
    /// Stores one entry. When the call returns, the operating system has its bytes.
    func put(_ index: Int) throws
    /// Stores several entries, all or none of them.
    func putBatch(_ indices: ArraySlice<Int>) throws
    /// - Returns: whether the entry was found; its value was copied for the caller.
    func get(_ index: Int) throws -> Bool
    /// Looks up a key that was never stored.
    /// - Returns: whether the key was found, which is an error.
    func getAbsent(_ index: Int) throws -> Bool
    /// Does the work that the store's writes have deferred.
    func writeOut() throws
    func close() throws
}

extension EmbeddedStore {
    func writeOut() throws {}
}

/// The same keys and values for every store.
struct Entries {
    static let count = 100_000

    let textKeys: [String]
    let keys: [[UInt8]]
    let absentKeys: [[UInt8]]
    let absentTextKeys: [String]
    let values: Values

    init(valueBytes: Int, count: Int = Entries.count) {
        textKeys = (0..<count).map(Keys.text)
        keys = textKeys.map { Array($0.utf8) }
        // Absent keys sort between existing ones, so that only the Bloom filter can exclude them.
        absentTextKeys = textKeys.map { $0 + "-" }
        absentKeys = absentTextKeys.map { Array($0.utf8) }
        values = Values(bytes: valueBytes)
    }
}

/// LevelDB's options for every store: those of a larder.
enum StoreOptions {
    static let blockCacheBytes = 32 << 20
    static let writeBufferBytes = 4 << 20
    static let bloomBitsPerKey = 10

    /// Large enough for all entries of the benchmark.
    static let memoryBytes = 256 << 20

    static let summary =
        "bloom filter 10 bits, snappy, write buffer 4 MiB, block cache 32 MiB, checksums verified, writes not synced; "
        + "memory tier, where there is one, large enough for all"

    static func engine(memoryBytes: Int) -> EngineOptions {
        var options = EngineOptions()
        options.durability = .os
        options.memoryBytes = memoryBytes
        options.blockCacheBytes = blockCacheBytes
        options.writeBufferBytes = writeBufferBytes
        options.bloomBitsPerKey = bloomBitsPerKey
        options.compression = true
        return options
    }
}
