import CLevelDB

/// Memory for uncompressed table blocks, least recently used ones leaving first. Several databases may share one; it
/// lives as long as the last of them.
///
/// Thread-safe. The proof for `@unchecked Sendable`: the pointer never changes, and LevelDB's cache locks for itself.
package final class BlockCache: @unchecked Sendable {
    /// The capacity in bytes that was asked for.
    package let bytes: Int
    let handle: OpaquePointer

    /// - Parameter bytes: capacity, 0 and up. LevelDB counts blocks, not its own bookkeeping. A negative number is an
    ///   error when a database is opened with this cache.
    package init(bytes: Int) {
        self.bytes = bytes
        handle = leveldb_cache_create_lru(max(0, bytes))
    }

    deinit { leveldb_cache_destroy(handle) }
}
