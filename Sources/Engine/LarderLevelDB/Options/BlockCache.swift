import CLarderLevelDB

/// Memory for uncompressed table blocks; the least recently used leave first. Several databases may share one. It
/// exists as long as the last of them.
///
/// Thread-safe. The proof for `@unchecked Sendable`: the pointer never changes, and LevelDB's cache has its own lock.
package final class BlockCache: @unchecked Sendable {
    /// The requested capacity in bytes.
    package let bytes: Int
    let handle: OpaquePointer

    /// - Parameter bytes: capacity, at least 0. LevelDB counts blocks, not its own bookkeeping. A negative number is an
    ///   error when a database is opened with this cache.
    package init(bytes: Int) {
        self.bytes = bytes
        handle = leveldb_cache_create_lru(max(0, bytes))
    }

    deinit { leveldb_cache_destroy(handle) }
}
