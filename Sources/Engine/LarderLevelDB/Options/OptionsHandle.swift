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
        filterPolicy = options.bloomBitsPerKey > 0 ? larder_leveldb_bloom_filter(Int32(options.bloomBitsPerKey)) : nil
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

    /// - Parameter snapshot: must not be released while the options are in use; nil for the newest state.
    init(fillCache: Bool, snapshot: OpaquePointer?) {
        handle = leveldb_readoptions_create()
        leveldb_readoptions_set_verify_checksums(handle, 1)
        leveldb_readoptions_set_fill_cache(handle, fillCache ? 1 : 0)
        leveldb_readoptions_set_snapshot(handle, snapshot)
    }

    deinit { leveldb_readoptions_destroy(handle) }

    private static let filling = ReadOptionsHandle(fillCache: true, snapshot: nil)
    private static let passing = ReadOptionsHandle(fillCache: false, snapshot: nil)

    /// Returns shared options for a read of the newest state.
    @inline(__always)
    static func shared(fillCache: Bool) -> OpaquePointer { fillCache ? filling.handle : passing.handle }
}
