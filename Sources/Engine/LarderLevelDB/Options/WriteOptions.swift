import CLarderLevelDB

/// Options of a write.
package struct WriteOptions: Sendable {
    /// Whether the write returns only after LevelDB's log was synced to the disk (with fdatasync; on macOS with the
    /// call that LevelDB was built with). The default is false: the write is then in the operating system's cache. It
    /// survives the termination of the process, but not a machine failure.
    ///
    /// A write with sync also makes earlier writes to the *current* log durable. It does not do so for earlier writes
    /// to a previous log, which LevelDB has closed without a sync.
    package var sync = false

    package init(sync: Bool = false) { self.sync = sync }
}

/// ``WriteOptions`` as a LevelDB object. Both variants are created once and shared by all writes.
///
/// `@unchecked Sendable`: nothing changes after `init`, and LevelDB does not change the object.
final class WriteOptionsHandle: @unchecked Sendable {
    private let handle: OpaquePointer

    private init(sync: Bool) {
        handle = leveldb_writeoptions_create()
        leveldb_writeoptions_set_sync(handle, sync ? 1 : 0)
    }

    deinit { leveldb_writeoptions_destroy(handle) }

    private static let syncing = WriteOptionsHandle(sync: true)
    private static let passing = WriteOptionsHandle(sync: false)

    @inline(__always)
    static func shared(_ options: WriteOptions) -> OpaquePointer {
        options.sync ? syncing.handle : passing.handle
    }
}
