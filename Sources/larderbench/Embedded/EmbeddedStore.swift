import LarderEngine

/// A store inside this process that is measured. Opened on a directory of its own; closed by `close()`.
protocol EmbeddedStore: AnyObject {
    /// Stores one entry; on return the operating system has it.
    func put(_ index: Int) throws
    /// Stores entries all or none.
    func putBatch(_ indices: ArraySlice<Int>) throws
    /// - Returns: whether the entry was there, its value in the hands of the caller.
    func get(_ index: Int) throws -> Bool
    /// - Returns: whether the key, which was never stored, was there.
    func getAbsent(_ index: Int) throws -> Bool
    /// Does what it has put off although its writes have returned.
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
        // Between the keys that are there, so that only the Bloom filter tells that they are not.
        absentTextKeys = textKeys.map { $0 + "-" }
        absentKeys = absentTextKeys.map { Array($0.utf8) }
        values = Values(bytes: valueBytes)
    }
}

/// What every store is told of LevelDB's options: those that a larder has.
enum StoreOptions {
    static let blockCacheBytes = 32 << 20
    static let writeBufferBytes = 4 << 20
    static let bloomBitsPerKey = 10

    /// Room for all entries of the benchmark.
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
