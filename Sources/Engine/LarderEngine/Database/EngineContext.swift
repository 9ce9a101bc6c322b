import LarderPlatform
import Synchronization

/// The state that all databases of one larder share. Thread-safe.
final class EngineContext: Sendable {
    let larder: LarderContext
    // Copies of properties of ``larder``, to save an indirection:
    let directory: String
    let options: EngineOptions
    let time: EngineTime
    let statistics: Statistics

    let changes = ChangeStream()
    let changeLog: ChangeLog
    let memory: MemoryBudget
    /// Whether a checkpoint has freed memory since the maintenance thread last returned free memory to the system.
    let hasFreedMemory = Atomic<Bool>(false)
    let leases: LeaseContext
    let expiryHold: ExpiryHold
    /// Held while two databases are exchanged, one pair at a time. Taken before every other lock.
    let exchanging = Lock()
    /// The thread that builds and cleans indexes: see ``IndexWork``.
    let indexLoop = BackgroundLoop()

    init(directory: String, options: EngineOptions, time: EngineTime) {
        let larder = LarderContext(directory: directory, options: options, time: time)
        self.larder = larder
        self.directory = directory
        self.options = options
        self.time = time
        expiryHold = ExpiryHold(time)
        statistics = larder.statistics
        changeLog = ChangeLog(stream: changes, larder: larder)
        memory = MemoryBudget(limitBytes: options.memoryBytes, largestPart: options.largestMemoryPart)
        leases = LeaseContext(time: time) { [changes] database, key in
            guard changes.isOn else { return }
            changes.publish([EntryChange(database: database, key: Array(key.bytes), kind: .fetchEnded)])
        }
    }

    var disposalQueue: DisposalQueue { larder.disposalQueue }
    var sequences: Sequences { larder.sequences }
    var timeKeeper: TimeKeeper { larder.timeKeeper }
    var journalEnd: UInt64 { larder.journalEnd.load(ordering: .relaxed) }

    func report(_ level: CacheEvent.Level, _ message: String, database: String? = nil) {
        larder.report(level, message, database: database)
    }

    /// Reports damage of the larder's files.
    func reportDamage(_ message: String, _ level: CacheEvent.Level = .error, database: String? = nil) {
        larder.report(level, message, database: database, ["damage": "true"])
    }

    func nextEpoch(after previous: UInt64) -> UInt64 { larder.nextEpoch(after: previous) }

    func noteEpoch(_ epoch: UInt64) { larder.noteEpoch(epoch) }
}
