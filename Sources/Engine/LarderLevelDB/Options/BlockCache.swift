import CLarderLevelDB
import CLarderLevelDBFiles

/// A cache for uncompressed table blocks that evicts the least recently used block. It does not keep blocks that are
/// longer than a sixteenth of the capacity, because LevelDB would exceed the capacity for them. Several databases may
/// share a cache, which exists until all of them have been released.
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
