import CLarderLevelDB
import CLarderLevelDBFiles

/// A cache for uncompressed table blocks, which evicts the least recently used. A block that is longer than a sixteenth
/// of the capacity is not kept, because LevelDB would exceed the capacity for it. Several databases may share a cache.
/// It exists as long as the last of them.
///
/// Thread-safe. `@unchecked Sendable`: the pointer never changes, and LevelDB's cache has its own lock.
package final class BlockCache: @unchecked Sendable {
    /// The requested capacity in bytes.
    package let bytes: Int
    let handle: OpaquePointer

    /// - Parameter bytes: the capacity, at least 0. LevelDB counts only the blocks, without its own overhead. With a
    ///   negative number, opening a database with this cache fails.
    package init(bytes: Int) {
        self.bytes = bytes
        handle = larder_leveldb_cache(max(0, bytes))
    }

    /// The bytes of the blocks in the cache. For tests.
    package var keptBytes: Int { larder_leveldb_cache_bytes(handle) }

    deinit { leveldb_cache_destroy(handle) }
}
