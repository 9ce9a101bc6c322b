import LarderPlatform
import Synchronization

/// A kind of write. The more memory it needs, the fewer bytes may wait to be written to LevelDB before it starts.
package enum PendingWrite: Sendable {
    case short
    /// Store a long record.
    case long
    /// Build a long value in memory.
    case build
}

/// Decides when a checkpoint is due, and when writers must wait for the checkpoint or fail with its error. (A
/// checkpoint writes the journal's entries to LevelDB.) Owns the counters for this, and the requests for a checkpoint.
///
/// Thread-safe.
final class CheckpointTrigger: Sendable {
    private let disk: DiskBudget
    private let memory: MemoryBudget
    private let liveBytes = Atomic<Int>(0)
    /// Like `liveBytes`, but a long frame counts only in part.
    private let countedBytes = Atomic<Int>(0)
    private let pace = Locked(WritePace())
    /// The sizes of the journal, and of the dirty bytes in memory, above which writers wait for a moment; `.max` while
    /// writers are not slowed down.
    private let pacedJournal = Atomic<Int>(.max)
    private let pacedMemory = Atomic<Int>(.max)
    /// Whether a writer was told to wait since the last call of ``takeWaiters()``.
    private let mayHaveWaiters = Atomic<Bool>(false)
    private let wanted = Atomic<Bool>(false)
    private let isStuck = Atomic<Bool>(false)
    /// The error of the last checkpoint; nil if it succeeded.
    private let failure = Locked<LarderError?>(nil)
    private let wake = Locked(Wake())

    /// The function that wakes the checkpointer.
    private struct Wake {
        var body: @Sendable () -> Void = {}
    }

    init(disk: DiskBudget, memory: MemoryBudget) { (self.disk, self.memory) = (disk, memory) }

    /// Sets the function that wakes the checkpointer.
    func onDue(_ body: @escaping @Sendable () -> Void) { wake.withLock { $0.body = body } }

    private var checkpointBytes: Int { disk.checkpointBytes }

    // MARK: Sizes

    /// The size of the journal's files, in bytes.
    var byteCount: Int { liveBytes.load(ordering: .relaxed) }

    /// Records the size of the journal's files, in bytes: in full, and with only a part of each long frame.
    func note(_ counts: (live: Int, counted: Int)) {
        liveBytes.store(counts.live, ordering: .relaxed)
        countedBytes.store(counts.counted, ordering: .relaxed)
    }

    // MARK: When a checkpoint is due

    /// Whether a checkpoint is due: there are too many changes, or a checkpoint was requested.
    var isDue: Bool { isTooMuch || isWanted }
    /// Whether a full checkpoint, not just a rewrite of the journal, was requested.
    var isWanted: Bool { wanted.load(ordering: .relaxed) }
    private var isTooMuch: Bool { byteCount >= checkpointBytes || memory.isCheckpointDue }

    /// Wakes the checkpointer if the journal, or the changes in memory, have reached their limit.
    func wakeIfTooMuch() { if isTooMuch { wake.withLock { $0 }.body() } }

    /// Requests a checkpoint, and wakes the checkpointer to run it now.
    func request() {
        want()
        wake.withLock { $0 }.body()
    }

    /// Requests a checkpoint from the next background round, or from the next writer that finds the journal full.
    func want() { wanted.store(true, ordering: .relaxed) }

    /// Clears the request when a full checkpoint begins.
    func begin() { wanted.store(false, ordering: .relaxed) }

    /// Records the error of a checkpoint; nil after a success.
    /// - Returns: whether the error differs from that of the last checkpoint.
    func note(failure new: LarderError?) -> Bool {
        failure.withLock { failure in
            defer { failure = new }
            isStuck.store(new != nil, ordering: .relaxed)
            return failure?.description != new?.description
        }
    }

    // MARK: When writers wait

    /// Whether so many bytes wait to be written to LevelDB that writers should wait. A long record or commit unit
    /// counts only in part, so one long value does not make other writers wait.
    func isFull(for write: PendingWrite = .short) -> Bool {
        let (live, counted) = (byteCount, countedBytes.load(ordering: .relaxed))
        switch write {
        case .short: break
        case .long: if live > bytesMax { return true }
        case .build: if live > checkpointBytes / 2 { return true }
        }
        return counted > bytesMax || live > bytesMax + Record.payloadBytesMax
            || memory.mustBlockWriters(besides: live - counted)
    }
    private var bytesMax: Int { max(1 << 20, 2 * checkpointBytes) }

    /// Whether the journal is far longer than writers can make it now: there was once more space, or no limit.
    var isOverlong: Bool { countedBytes.load(ordering: .relaxed) > 2 * bytesMax }

    /// Whether writers should wait: for room, or for a moment because they are faster than LevelDB.
    func mustWait(for write: PendingWrite = .short) -> Bool {
        let mustWait =
            isFull(for: write) || countedBytes.load(ordering: .relaxed) > pacedJournal.load(ordering: .relaxed)
            || waitingBytes > pacedMemory.load(ordering: .relaxed)
        if mustWait { mayHaveWaiters.store(true, ordering: .sequentiallyConsistent) }
        return mustWait
    }

    /// Returns whether writers may wait although there is room for them now.
    func takeWaiters() -> Bool {
        mayHaveWaiters.load(ordering: .relaxed) && !mustWait()
            && mayHaveWaiters.exchange(false, ordering: .sequentiallyConsistent)
    }

    /// The dirty bytes in memory that wait for LevelDB, without those for which ``isFull(for:)`` has another limit.
    private var waitingBytes: Int { memory.waitingBytes - byteCount + countedBytes.load(ordering: .relaxed) }

    /// Called when a checkpoint begins and ends.
    func setPacing(_ isOn: Bool) {
        pace.withLock { pace in
            pace.isOn = isOn
            pacedJournal.store(.max, ordering: .relaxed)
            pacedMemory.store(.max, ordering: .relaxed)
        }
    }

    /// Sets the speed of writers while a checkpoint is running: see ``WritePace``.
    /// - Parameter seconds: the time until the next call.
    /// - Returns: whether a checkpoint is running.
    func paceWriters(seconds: Double) -> Bool {
        pace.withLock { pace in
            guard pace.isOn else { return false }
            pace.note(passed: memory.passedBytes, seconds: seconds)
            let counted = countedBytes.load(ordering: .relaxed)
            pacedJournal.store(pace.limit(used: counted, most: bytesMax, seconds: seconds), ordering: .relaxed)
            pacedMemory.store(
                pace.limit(used: waitingBytes, most: memory.waitingBytesMax, seconds: seconds), ordering: .relaxed)
            return true
        }
    }

    /// Returns the error for writes if the journal is full and checkpoints fail; otherwise nil. One atomic load while
    /// checkpoints succeed.
    func refusal(_ operation: String) -> LarderError? {
        guard isStuck.load(ordering: .relaxed), isFull(), let cause = failure.withLock({ $0 }) else { return nil }
        return LarderError(
            .writesSuspended, "the journal is full, because checkpoints fail: \(cause.message)",
            operation: operation, database: cause.database, underlying: cause)
    }
}
