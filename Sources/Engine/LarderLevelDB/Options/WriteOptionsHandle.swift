import CLarderLevelDB

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
