import Platform
import Synchronization

/// Says when LevelDB should get what the journal has, and when writers have to wait for that, or hear that it fails. It owns
/// the counts that this follows from, and the wish for a checkpoint.
///
/// Thread-safe. The proof for `@unchecked Sendable`: `failure` is guarded by `lock`; `onDue` is set before anything is
/// written; the rest is constant or atomic. `lock` is taken alone.
final class CheckpointTrigger: @unchecked Sendable {
    private let checkpointBytes: Int
    private let memory: MemoryBudget
    private let liveBytes = Atomic<Int>(0)
    /// As `liveBytes`, without the rest of long frames.
    private let countedBytes = Atomic<Int>(0)
    private let wanted = Atomic<Bool>(false)
    private let isStuck = Atomic<Bool>(false)
    private let lock = Lock()
    /// Why the last checkpoint failed; nil when it did not.
    private var failure: LarderError?
    /// Wakes the checkpointer. Set before anything is written.
    var onDue: () -> Void = {}

    init(checkpointBytes: Int, memory: MemoryBudget) {
        self.checkpointBytes = checkpointBytes
        self.memory = memory
    }

    // MARK: What there is

    /// Bytes of the journal's files.
    var byteCount: Int { liveBytes.load(ordering: .relaxed) }

    /// Takes note of the journal's length.
    func note(_ counts: (live: Int, counted: Int)) {
        liveBytes.store(counts.live, ordering: .relaxed)
        countedBytes.store(counts.counted, ordering: .relaxed)
    }

    // MARK: When a checkpoint is due

    /// Whether a checkpoint is due.
    var isDue: Bool { isTooMuch || isWanted }
    /// Whether a checkpoint was asked for that puts everything into LevelDB.
    var isWanted: Bool { wanted.load(ordering: .relaxed) }
    private var isTooMuch: Bool { byteCount >= checkpointBytes || memory.isCheckpointDue }

    /// Wakes the checkpointer if there is enough for it.
    func wakeIfTooMuch() { if isTooMuch { onDue() } }

    /// Asks for a checkpoint now.
    func request() {
        want()
        onDue()
    }

    /// Has the next round of the background, or the next writer that finds the journal full, write a checkpoint.
    func want() { wanted.store(true, ordering: .relaxed) }

    /// A checkpoint begins that puts everything into LevelDB.
    func begin() { wanted.store(false, ordering: .relaxed) }

    /// Notes how a checkpoint ended.
    /// - Returns: whether that is news.
    func note(failure new: LarderError?) -> Bool {
        lock.withLock {
            defer { failure = new }
            isStuck.store(new != nil, ordering: .relaxed)
            return failure?.description != new?.description
        }
    }

    // MARK: When writers wait

    /// Whether so much waits for LevelDB that writers should wait. Of a long record, or a long commit unit, a part counts
    /// only: nobody waits because of what another has stored, as long as that is not more than one of the longest.
    var isFull: Bool {
        let (live, counted) = (byteCount, countedBytes.load(ordering: .relaxed))
        return counted > bytesMax || live > bytesMax + Record.payloadBytesMax
            || memory.isFullOfDirty(besides: live - counted)
    }
    /// Whether so much waits for LevelDB that those should wait who store long records.
    var isFullForLong: Bool { byteCount > bytesMax || isFull }
    /// Whether so much waits for LevelDB that those should wait who build values in memory beside it.
    var isFullForBuilding: Bool { byteCount > checkpointBytes / 2 || isFullForLong }
    private var bytesMax: Int { max(1 << 20, 2 * checkpointBytes) }

    /// The error for writes while the journal is full and LevelDB does not take what it has; else nil. One atomic load while
    /// checkpoints succeed.
    func refusal(_ operation: String) -> LarderError? {
        guard isStuck.load(ordering: .relaxed), isFull, let cause = lock.withLock({ failure }) else { return nil }
        return LarderError(
            .writesSuspended, "the journal is full, and the checkpoint that is to empty it fails: \(cause.message)",
            operation: operation, database: cause.database, underlying: cause)
    }
}
