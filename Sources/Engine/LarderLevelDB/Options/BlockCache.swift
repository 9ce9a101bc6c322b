import CLarderLevelDB
import CLarderLevelDBFiles

/// Memory for uncompressed table blocks; the least recently used are evicted first. A block that is longer than a
/// sixteenth of it is not kept, because LevelDB would exceed the capacity for it. Several databases may share one. It
/// exists as long as the last of them.
///
/// Thread-safe. `@unchecked Sendable`: the pointer never changes, and LevelDB's cache has its own lock.
package final class BlockCache: @unchecked Sendable {
    /// The requested capacity in bytes.
    package let bytes: Int
    let handle: OpaquePointer

    /// - Parameter bytes: capacity, at least 0. LevelDB counts blocks, not its own bookkeeping. A negative number is an
    ///   error when a database is opened with this cache.
    package init(bytes: Int) {
        self.bytes = bytes
        handle = larder_leveldb_cache(max(0, bytes))
    }

    /// The bytes of the blocks in it. For tests.
    package var keptBytes: Int { larder_leveldb_cache_bytes(handle) }

    deinit { leveldb_cache_destroy(handle) }
}
