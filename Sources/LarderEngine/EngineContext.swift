import LevelDB
import Synchronization
import Threading

/// What all parts of one larder share. Thread-safe.
final class EngineContext: Sendable {
    let directory: String
    let options: EngineOptions
    let time: EngineTime
    let statistics = Statistics()
    let graveyard = Graveyard()
    let changes = ChangeFeed()
    let memory: MemoryBudget
    private let blockCache: BlockCache
    /// The last commit unit that the journal had at the start; `max` where nobody knows.
    let journalEnd = Atomic<UInt64>(.max)
    private let lastEpoch = Atomic<UInt64>(0)

    init(directory: String, options: EngineOptions, time: EngineTime) {
        self.directory = directory
        self.options = options
        self.time = time
        memory = MemoryBudget(limitBytes: options.memoryBytes)
        blockCache = BlockCache(bytes: options.blockCacheBytes)
    }

    func report(_ level: EngineEvent.Level, _ message: String) {
        options.onEvent(EngineEvent(level: level, message: message))
    }

    /// A number no epoch of this larder has had: at least the current time in milliseconds. Never reused, so that a
    /// LevelDB that is still being closed can never write into the directory of its successor.
    func nextEpoch(after previous: UInt64) -> UInt64 {
        while true {
            let last = lastEpoch.load(ordering: .relaxed)
            let next = max(last, min(previous, 1 << 62), UInt64(max(0, time.now()))) + 1
            if lastEpoch.compareExchange(expected: last, desired: next, ordering: .relaxed).exchanged { return next }
        }
    }

    /// An epoch that was found on the disk: where the clock was set back since, the time does not keep from its number.
    func noteEpoch(_ epoch: UInt64) {
        // No clock has shown such a time: nobody gets near it by counting.
        guard epoch < 1 << 62 else { return }
        var last = lastEpoch.load(ordering: .relaxed)
        while last < epoch {
            let result = lastEpoch.compareExchange(expected: last, desired: epoch, ordering: .relaxed)
            if result.exchanged { return }
            last = result.original
        }
    }

    func levelDBOptions(create: Bool) -> LevelDB.Options {
        var result = LevelDB.Options()
        result.createIfMissing = create
        result.errorIfExists = create
        // Without it LevelDB passes over whatever is wrong with its log, and merges tables without looking at checksums.
        result.paranoidChecks = true
        result.compression = options.compression ? .snappy : .none
        result.bloomBitsPerKey = options.bloomBitsPerKey
        result.blockCache = blockCache
        result.writeBufferBytes = options.writeBufferBytes
        result.blockBytes = options.blockBytes
        result.maxOpenFiles = options.openFilesMax
        return result
    }
}
