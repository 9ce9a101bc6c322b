import LarderEngine

/// A store inside this process that is measured. It has a directory of its own, and `close()` closes it.
protocol EmbeddedStore: AnyObject {
    /// Stores one entry, which the operating system has when the call returns.
    func put(_ index: Int) throws
    /// Stores entries all or none.
    func putBatch(_ indices: ArraySlice<Int>) throws
    /// - Returns: whether the entry was there; its value was given to the caller.
    func get(_ index: Int) throws -> Bool
    /// - Returns: whether the key was there, although it was never stored.
    func getAbsent(_ index: Int) throws -> Bool
    /// Does the work that its writes have deferred.
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
        // Between existing keys, so that only the Bloom filter can exclude them.
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

    /// Enough for all entries of the benchmark.
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
