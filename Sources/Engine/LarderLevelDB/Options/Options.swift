import CLarderLevelDB
import CLarderLevelDBFiles

/// The options for opening a database. A value out of range makes ``Database/init(path:options:)`` throw
/// `.invalidArgument`; no value is silently replaced by another one.
package struct Options: Sendable {
    /// Whether to create a database if there are no LevelDB files. The default is false: opening a missing database
    /// throws `.notFound`, and nothing is written.
    ///
    /// If the directory has LevelDB files but no `CURRENT`, opening throws `.corruption`, whether this is true or
    /// false. LevelDB itself would treat the database as missing, and delete the tables.
    package var createIfMissing = false

    /// Whether opening throws `.invalidArgument` if the database exists. The default is false.
    package var errorIfExists = false

    /// Whether opening and compactions fail at the first damage instead of skipping it. The default is false. If true,
    /// a damaged end of the log is an error, and one unreadable entry may make the whole database unopenable. If false,
    /// the damaged end of the log is ignored.
    package var paranoidChecks = false

    /// The compression of table blocks. The default is snappy.
    package var compression: Compression = .snappy

    /// The number of bits per key of the Bloom filter that is stored with each table. The default is 0: no filter.
    ///
    /// With 10 bits, about one in a hundred lookups of a missing key reads a block unnecessarily. Without a filter,
    /// every such lookup reads a block in each level. Costs this number of bits of memory and disk per key. The range
    /// is 0 to ``bloomBitsPerKeyMax``. The option may change for an existing database; each table keeps the filter with
    /// which it was written.
    package var bloomBitsPerKey = 0

    /// The cache for uncompressed blocks. The default is nil: LevelDB creates a cache of 8 MiB for this database alone.
    package var blockCache: BlockCache?

    /// The number of bytes that LevelDB collects in memory before it writes them to a table. The default is 4 MiB; the
    /// range is ``writeBufferRange``.
    ///
    /// A larger buffer makes bulk writes faster, and opening after a crash slower. Up to two such buffers exist at a
    /// time.
    package var writeBufferBytes = 4 << 20

    /// The uncompressed size in bytes of a table block, which is the unit of reading and caching. The default is 4096;
    /// the range is ``blockRange``. Larger blocks compress better, but make reads of single entries slower.
    package var blockBytes = 4096

    /// The number of keys in a block after which a key is stored completely. The other keys are stored without the
    /// prefix that they share with the previous key. The default is 16; the range is ``blockRestartRange``. Rarely
    /// worth changing.
    package var blockRestartInterval = 16

    /// The number of files that this database may keep open. The default is 1000; the range is ``openFilesRange``. Ten
    /// are reserved for files other than tables. Lower it if many databases share the file descriptors of one process.
    /// Reading a table that is not open costs an open(2) and two additional reads.
    package var maxOpenFiles = 1000

    /// The size in bytes at which LevelDB ends a table and begins the next one. The default is 2 MiB; the range is
    /// ``fileRange``. Larger tables mean fewer files, but longer compactions.
    package var maxFileBytes = 2 << 20

    package init() {}

    // The allowed ranges. LevelDB would silently clip most values to them.
    package static let bloomBitsPerKeyMax = 64
    package static let writeBufferRange = 64 << 10...1 << 30
    package static let blockRange = 1 << 10...4 << 20
    package static let blockRestartRange = 1...65536
    package static let openFilesRange = 74...50000
    package static let fileRange = 1 << 20...1 << 30

    /// Describes the option that is out of range; nil if there is none.
    func complaint() -> String? {
        let checks: [(String, Int, ClosedRange<Int>)] = [
            ("bloomBitsPerKey", bloomBitsPerKey, 0...Self.bloomBitsPerKeyMax),
            ("blockCache.bytes", blockCache?.bytes ?? 0, 0...Int.max / 2),
            ("writeBufferBytes", writeBufferBytes, Self.writeBufferRange),
            ("blockBytes", blockBytes, Self.blockRange),
            ("blockRestartInterval", blockRestartInterval, Self.blockRestartRange),
            ("maxOpenFiles", maxOpenFiles, Self.openFilesRange),
            ("maxFileBytes", maxFileBytes, Self.fileRange),
        ]
        for (name, value, range) in checks where !range.contains(value) {
            return "\(name) is \(value), but must be from \(range.lowerBound) to \(range.upperBound)"
        }
        return nil
    }
}

/// An LRU cache for uncompressed table blocks. It does not keep blocks that are longer than a sixteenth of the
/// capacity, because LevelDB would exceed the capacity for them. Several databases may share a cache, which exists
/// until all of them have been released.
///
/// Thread-safe. `@unchecked Sendable`: the pointer never changes, and LevelDB's cache has its own lock.
package final class BlockCache: @unchecked Sendable {
    /// The requested capacity in bytes.
    package let bytes: Int
    let handle: OpaquePointer

    /// - Parameter bytes: the capacity in bytes, at least 0. LevelDB counts only the blocks, not its own overhead. With
    ///   a negative capacity, opening a database with this cache throws `.invalidArgument`.
    package init(bytes: Int) {
        self.bytes = bytes
        handle = larder_leveldb_cache(max(0, bytes))
    }

    /// The total size in bytes of the blocks in the cache. For tests.
    package var keptBytes: Int { larder_leveldb_cache_bytes(handle) }

    deinit { leveldb_cache_destroy(handle) }
}

/// The compression of table blocks. Each block records its compression, so the option may change for an existing
/// database; it applies to later writes.
package enum Compression: Hashable, Sendable {
    /// No compression, for values that are already compressed.
    case none
    /// Snappy, a fast compression. Blocks that do not shrink by at least an eighth are stored uncompressed.
    case snappy
}
