import CLarderLevelDB

/// Read options as a LevelDB object. Options without a snapshot are created once and shared by all reads.
///
/// `@unchecked Sendable`: nothing changes after `init`, and LevelDB does not change the object.
final class ReadOptionsHandle: @unchecked Sendable {
    let handle: OpaquePointer

    private init(verifyChecksums: Bool, fillCache: Bool) {
        handle = leveldb_readoptions_create()
        leveldb_readoptions_set_verify_checksums(handle, verifyChecksums ? 1 : 0)
        leveldb_readoptions_set_fill_cache(handle, fillCache ? 1 : 0)
    }

    /// Creates options for one read of a snapshot.
    /// - Parameter snapshot: must not be released while the options are in use.
    convenience init(verifyChecksums: Bool, fillCache: Bool, snapshot: OpaquePointer) {
        self.init(verifyChecksums: verifyChecksums, fillCache: fillCache)
        leveldb_readoptions_set_snapshot(handle, snapshot)
    }

    deinit { leveldb_readoptions_destroy(handle) }

    private static let checkedFilling = ReadOptionsHandle(verifyChecksums: true, fillCache: true)
    private static let checkedPassing = ReadOptionsHandle(verifyChecksums: true, fillCache: false)
    private static let uncheckedFilling = ReadOptionsHandle(verifyChecksums: false, fillCache: true)
    private static let uncheckedPassing = ReadOptionsHandle(verifyChecksums: false, fillCache: false)

    /// Returns shared options for a read of the newest state.
    @inline(__always)
    static func shared(verifyChecksums: Bool, fillCache: Bool) -> OpaquePointer {
        switch (verifyChecksums, fillCache) {
        case (true, true): checkedFilling.handle
        case (true, false): checkedPassing.handle
        case (false, true): uncheckedFilling.handle
        case (false, false): uncheckedPassing.handle
        }
    }
}
