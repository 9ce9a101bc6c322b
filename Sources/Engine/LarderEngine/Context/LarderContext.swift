import LarderLevelDB
import LarderPlatform
import Synchronization

/// The state shared by everything that reads or writes files of one larder. Thread-safe.
final class LarderContext: Sendable {
    let directory: String
    let options: EngineOptions
    let time: EngineTime
    let statistics = Statistics()
    private let blockCache: BlockCache
    /// The last commit unit in the journal when the larder was opened; `max` if unknown.
    let journalEnd = Atomic<UInt64>(.max)
    /// When the ledger lost facts (functions, origins, or purges of tags), in milliseconds since 1970; 0 if it lost
    /// none; negative until the ledger was read.
    let factsLost = Atomic<Int64>(-1)
    let sequences: Sequences
    let timeKeeper: TimeKeeper
    let disk: DiskBudget
    let held: HeldBytes
    let disposalQueue = DisposalQueue()

    init(directory: String, options: EngineOptions, time: EngineTime) {
        self.directory = directory
        self.options = options
        self.time = time
        let report: @Sendable (CacheEvent.Level, String) -> Void = { [onEvent = options.onEvent] level, message in
            onEvent(CacheEvent(level, message, metadata: ["larder": directory]))
        }
        sequences = Sequences(directory: directory, report: report)
        timeKeeper = TimeKeeper(directory: directory, time: time, report: report)
        disk = DiskBudget(
            directory: directory, limitBytes: options.diskBytesMax, checkpointBytes: options.checkpointBytes)
        held = HeldBytes(disk)
        blockCache = BlockCache(bytes: options.blockCacheBytes)
    }

    /// Reports an event.
    /// - Parameters:
    ///   - more: metadata in addition to the larder and the database.
    ///   - error: the error that a caller's code has thrown.
    func report(
        _ level: CacheEvent.Level, _ message: String, database: String? = nil, _ more: [String: String] = [:],
        error: (any Error)? = nil
    ) {
        var metadata = more
        metadata["larder"] = directory
        metadata["database"] = database
        options.onEvent(CacheEvent(level, message, metadata: metadata, error: error))
    }

    /// Returns a new number for an epoch (a LevelDB). Numbers are never reused. So a LevelDB that is still being closed
    /// never writes into its successor's directory. Operations in the journal never apply to another epoch.
    func nextEpoch(after previous: UInt64) -> UInt64 { sequences.nextEpoch(after: previous) }

    /// Records a number of an epoch or file that was found on the disk, so that the number is not reused.
    func noteEpoch(_ epoch: UInt64) { sequences.noteEpoch(epoch) }

    /// Returns the options for opening or creating a LevelDB.
    /// - Parameter databaseLimit: the database's own disk limit; `.max` for none.
    func levelDBOptions(create: Bool, databaseLimit: Int = .max) -> LarderLevelDB.Options {
        var result = LarderLevelDB.Options()
        result.createIfMissing = create
        result.errorIfExists = create
        // Without this option LevelDB ignores errors in its log, and merges tables without verifying checksums.
        result.paranoidChecks = true
        result.compression = options.compression ? .snappy : .none
        result.bloomBitsPerKey = options.bloomBitsPerKey
        result.blockCache = blockCache
        let limit = min(disk.boundBytes ?? .max, databaseLimit)
        if limit < .max {
            result.writeBufferBytes = min(options.writeBufferBytes, DiskThresholds.writeBufferBytes(limit: limit))
            result.maxFileBytes = min(result.maxFileBytes, DiskThresholds.tableBytes(limit: limit))
        } else {
            result.writeBufferBytes = options.writeBufferBytes
        }
        result.blockBytes = options.blockBytes
        result.maxOpenFiles = options.openFilesMax
        return result
    }
}

/// Detects whether this process was forked after a larder was opened. The child process must not use the engine: it has
/// none of the engine's threads, and another thread may have been changing LevelDB's state during the fork.
enum ForkGuard {
    private static let forked = Atomic<Bool>(false)

    private static let installed: Void = {
        _ = pthread_atfork(nil, nil, { ForkGuard.forked.store(true, ordering: .relaxed) })
    }()

    static func install() { installed }

    /// Whether this process was forked after ``install()``. One relaxed atomic load.
    static var isForked: Bool { forked.load(ordering: .relaxed) }

    static func check(_ operation: String) throws(LarderError) {
        guard isForked else { return }
        throw LarderError(
            .forked,
            "this process was forked after the larder was opened; open a larder in the child after exec, "
                + "or use larderd through LarderClient", operation: operation)
    }
}
