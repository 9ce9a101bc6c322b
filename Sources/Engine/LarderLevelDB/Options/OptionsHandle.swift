import CLarderLevelDB
import CLarderLevelDBFiles

/// ``Options`` as a LevelDB object. Also owns the filter policy and retains the block cache, because both must exist as
/// long as the database is open.
///
/// Nothing changes after `init`, and LevelDB does not change the object.
final class OptionsHandle {
    let handle: OpaquePointer
    private let filterPolicy: OpaquePointer?
    private let blockCache: BlockCache?

    /// - Parameter options: must be in range.
    init(_ options: Options) {
        handle = leveldb_options_create()
        blockCache = options.blockCache
        filterPolicy =
            options.bloomBitsPerKey > 0 ? larder_leveldb_bloom_filter(Int32(options.bloomBitsPerKey)) : nil
        if let environment = larder_leveldb_environment() { leveldb_options_set_env(handle, environment) }
        leveldb_options_set_create_if_missing(handle, options.createIfMissing ? 1 : 0)
        leveldb_options_set_error_if_exists(handle, options.errorIfExists ? 1 : 0)
        leveldb_options_set_paranoid_checks(handle, options.paranoidChecks ? 1 : 0)
        switch options.compression {
        case .none: leveldb_options_set_compression(handle, Int32(leveldb_no_compression))
        case .snappy: leveldb_options_set_compression(handle, Int32(leveldb_snappy_compression))
        }
        if let filterPolicy { leveldb_options_set_filter_policy(handle, filterPolicy) }
        if let blockCache { leveldb_options_set_cache(handle, blockCache.handle) }
        leveldb_options_set_write_buffer_size(handle, options.writeBufferBytes)
        leveldb_options_set_block_size(handle, options.blockBytes)
        leveldb_options_set_block_restart_interval(handle, Int32(options.blockRestartInterval))
        leveldb_options_set_max_open_files(handle, Int32(options.maxOpenFiles))
        leveldb_options_set_max_file_size(handle, options.maxFileBytes)
    }

    deinit {
        leveldb_options_destroy(handle)
        if let filterPolicy { leveldb_filterpolicy_destroy(filterPolicy) }
    }
}

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
