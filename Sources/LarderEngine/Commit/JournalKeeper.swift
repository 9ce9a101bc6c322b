import Synchronization
import Threading

/// The larder's journal in use: takes what is committed, says when LevelDB should get it, and gives it back after a crash
/// or a failed commit.
///
/// Thread-safe. The proof for `@unchecked Sendable`: the journal's segments and `era` are read and changed with `lock` held,
/// except for the fsync and the removal of segments, which the journal allows beside everything else. Lock order: shard
/// locks, `removal`, `lock`.
final class JournalKeeper: @unchecked Sendable {
    /// Where a checkpoint begins.
    struct Cut {
        /// The last segment that the checkpoint makes superfluous.
        let segment: UInt64
        /// The last commit unit in it.
        let sequence: UInt64
        fileprivate let era: UInt64
    }

    let context: LarderContext
    private let memory: MemoryBudget
    let journal: Journal
    let lock = Lock()
    /// Held while segments are removed, which takes some fsyncs, so that they do not go while entries are taken back from
    /// them. Writers need not wait for it.
    let removal = Lock()
    /// Goes up when a failed commit was taken back: what a checkpoint has seen before may be gone.
    var era: UInt64 = 0
    var lastSequence: UInt64 = 0
    /// Whether a failed commit could not be taken back yet: memory has what was refused, and may lack what was not.
    let owes = Atomic<Bool>(false)
    private let liveBytes = Atomic<Int>(0)
    /// As `liveBytes`, without the rest of long frames.
    private let countedBytes = Atomic<Int>(0)
    let unsynced = Atomic<Bool>(false)
    private let syncing = Atomic<Bool>(false)
    private let needsCheckpoint = Atomic<Bool>(false)
    /// Why the last checkpoint failed; nil when it did not.
    private var checkpointFailure: LarderError?
    private let isStuck = Atomic<Bool>(false)
    /// Wakes the checkpointer. Set before anything is written.
    var onFull: () -> Void = {}

    init(context: LarderContext, memory: MemoryBudget) throws(LarderError) {
        self.context = context
        self.memory = memory
        do throws(FileError) {
            journal = try Journal(
                directory: context.directory + "/JOURNAL", segmentBytes: context.options.journalSegmentBytes,
                faults: context.options.journalFaults)
        } catch {
            throw LarderError(.io, error.description, operation: "open journal", underlying: error)
        }
    }

    // MARK: Writing

    /// Appends what was applied, at the level asked for. By one thread at a time.
    func append(_ batch: JournalBatch, _ level: Durability) throws(LarderError) {
        try context.options.beforeCommit?()
        // Why a write that is refused may count all the same.
        var doubt = ""
        do throws(FileError) {
            try lock.withLock { () throws(FileError) in
                defer { countBytes() }
                if let failure = context.sequences.refusal(of: batch.lastSequence) { throw failure }
                try journal.append(batch)
                if level == .always {
                    do throws(FileError) {
                        // Of all segments: what is acknowledged is worth nothing behind one that the machine may lose.
                        try journal.sync()
                    } catch {
                        doubt = Self.doubt(journal.takeBackLast(batch))
                        throw error
                    }
                }
                lastSequence = batch.lastSequence
            }
        } catch {
            // A segment that was given up is to be followed by a checkpoint, which makes it superfluous.
            requestCheckpoint()
            throw LarderError(.io, error.description + doubt, operation: "commit", underlying: error)
        }
        switch level {
        case .os: break
        case .everysecond: unsynced.store(true, ordering: .relaxed)
        case .always: context.statistics.syncs.add()
        }
        if isTooMuch { onFull() }
    }

    private static func doubt(_ taken: Journal.Taken) -> String {
        let (failure, event): (FileError, String)
        switch taken {
        case .back: return ""
        case .backUnlessMachineFails(let error): (failure, event) = (error, "the machine fail")
        case .backUnlessProcessEnds(let error): (failure, event) = (error, "this process end")
        }
        return ". It could not be taken back for certain either (\(failure)): whether it counts is not known, should "
            + "\(event) before another write is committed"
    }

    /// Writes the payload of a long record ahead of its commit. May take long.
    func writeAhead(_ payload: UnsafeRawBufferPointer, bytesBefore: Int, isSynced: Bool) throws(LarderError)
        -> JournalAhead
    {
        do throws(FileError) {
            return try journal.writeAhead(payload, bytesBefore: bytesBefore, isSynced: isSynced)
        } catch {
            throw LarderError(
                .commitFailed, "the write was not committed: \(error.description)", operation: "commit",
                underlying: error)
        }
    }

    /// Reserves sequences in good time. May take long.
    func reserveSequencesIfNeeded() {
        context.sequences.extendIfNeeded(last: max(lastAppended, context.sequences.base))
    }

    /// Whether appending may take long, because an fsync is under way.
    var isBusy: Bool { syncing.load(ordering: .relaxed) }
    func countBytes() {
        let counts = journal.byteCounts
        liveBytes.store(counts.live, ordering: .relaxed)
        countedBytes.store(counts.counted, ordering: .relaxed)
    }

    /// Whether so much waits for LevelDB that writers should wait. Of a long record, or a long commit unit, a part counts
    /// only: nobody waits because of what another has stored, as long as that is not more than one of the longest.
    var isFull: Bool {
        let (live, counted) = (liveBytes.load(ordering: .relaxed), countedBytes.load(ordering: .relaxed))
        return counted > bytesMax || live > bytesMax + Record.payloadBytesMax
            || memory.isFullOfDirty(besides: live - counted)
    }
    /// Whether so much waits for LevelDB that those should wait who store long records.
    var isFullForLong: Bool { liveBytes.load(ordering: .relaxed) > bytesMax || isFull }
    /// Whether so much waits for LevelDB that those should wait who build values in memory beside it.
    var isFullForBuilding: Bool {
        liveBytes.load(ordering: .relaxed) > context.options.checkpointBytes / 2 || isFullForLong
    }
    private var bytesMax: Int { max(1 << 20, 2 * context.options.checkpointBytes) }
    /// Whether a checkpoint is due.
    var isDue: Bool { isTooMuch || isWanted }
    /// Whether a checkpoint was asked for that puts everything into LevelDB.
    var isWanted: Bool { needsCheckpoint.load(ordering: .relaxed) }
    private var isTooMuch: Bool {
        liveBytes.load(ordering: .relaxed) >= context.options.checkpointBytes || memory.isCheckpointDue
    }
    /// The error for writes while the journal is full and LevelDB does not take what it has; else nil. One atomic load while
    /// checkpoints succeed.
    func refusal(_ operation: String) -> LarderError? {
        guard isStuck.load(ordering: .relaxed), isFull, let cause = lock.withLock({ checkpointFailure }) else {
            return nil
        }
        return LarderError(
            .writesSuspended, "the journal is full, and the checkpoint that is to empty it fails: \(cause.message)",
            operation: operation, database: cause.database, underlying: cause)
    }

    /// Bytes of the journal's files.
    var byteCount: Int { liveBytes.load(ordering: .relaxed) }

    func requestCheckpoint() {
        needsCheckpoint.store(true, ordering: .relaxed)
        onFull()
    }

    /// fsyncs what was appended since the last time, if any of it asked for that. May take long.
    func syncIfNeeded() throws(LarderError) {
        guard unsynced.exchange(false, ordering: .relaxed) else { return }
        try sync()
    }

    /// fsyncs what was appended.
    /// - Parameter cut: what stands before it need not be synced.
    func sync(behind cut: Cut? = nil) throws(LarderError) {
        syncing.store(true, ordering: .relaxed)
        defer { syncing.store(false, ordering: .relaxed) }
        do throws(FileError) {
            try journal.sync(above: cut?.segment ?? 0)
            context.statistics.syncs.add()
        } catch {
            // The system may have dropped what it could not write: LevelDB gets it from memory instead.
            requestCheckpoint()
            throw LarderError(.io, error.description, operation: "fsync", underlying: error)
        }
    }

    /// As ``sync(behind:)``, where that has failed: what could not be synced is copied, and the copies are synced.
    func syncCopies() throws(LarderError) {
        do throws(FileError) {
            syncing.store(true, ordering: .relaxed)
            defer { syncing.store(false, ordering: .relaxed) }
            try lock.withLock { () throws(FileError) in try journal.copyUnsynced() }
        } catch {
            throw LarderError(.io, error.description, operation: "copy", underlying: error)
        }
        try sync()
    }

    /// Has the disk know the names in a directory, of which the journal is to be independent.
    func syncDirectory(_ path: String) throws(LarderError) {
        do throws(FileError) {
            try journal.files.syncDirectory(path)
        } catch {
            throw LarderError(.io, error.description, operation: "checkpoint", underlying: error)
        }
    }

    // MARK: Checkpoints

    /// How many failed commits were taken back. With a shard lock held it stands still.
    var takenBack: UInt64 { lock.withLock { era } }

    /// Begins a checkpoint: what is appended from now on goes to a new segment.
    /// - Parameter isRewrite: a checkpoint that was asked for is still to come.
    /// - Returns: nil when the journal is empty.
    func cut(isRewrite: Bool) -> Cut? {
        lock.withLock {
            if !isRewrite { needsCheckpoint.store(false, ordering: .relaxed) }
            guard let segment = journal.rotate() else { return nil }
            return Cut(segment: segment, sequence: lastSequence, era: era)
        }
    }

    /// Whether no failed commit was taken back since. Then what was seen of entries since is committed, if it is decided.
    func isCurrent(_ cut: Cut) -> Bool { takenBack == cut.era }

    /// Removes what a checkpoint made superfluous.
    /// - Returns: false when a failed commit was taken back meanwhile: then nothing was removed.
    func finish(_ cut: Cut) throws(LarderError) -> Bool {
        do throws(FileError) {
            return try removal.withLock { () throws(FileError) in
                guard isCurrent(cut) else { return false }
                defer { countBytes() }
                try journal.removeSegments(upTo: cut.segment)
                return true
            }
        } catch {
            throw LarderError(.io, error.description, operation: "checkpoint", underlying: error)
        }
    }

    /// Has the next round of the background, or the next writer that finds the journal full, write a checkpoint.
    func wantCheckpoint() { needsCheckpoint.store(true, ordering: .relaxed) }

    /// Notes how a checkpoint ended.
    /// - Returns: whether that is news.
    func note(failure: LarderError?) -> Bool {
        lock.withLock {
            defer { checkpointFailure = failure }
            isStuck.store(failure != nil, ordering: .relaxed)
            return checkpointFailure?.description != failure?.description
        }
    }

    /// The last commit unit that the journal got.
    var lastAppended: UInt64 { lock.withLock { lastSequence } }

    // MARK: A failed commit

    /// Whether a failed commit could not be taken back yet, because the journal could not be read. One atomic load.
    ///
    /// Meanwhile nothing is committed, because everything behind it would be dropped when it is taken back, and nothing is
    /// put into LevelDB, because memory is not what was acknowledged.
    var owesTakeBack: Bool { owes.load(ordering: .acquiring) }

    /// - Throws: while a failed commit could not be taken back.
    func requireTakenBack(_ operation: String) throws(LarderError) {
        guard owesTakeBack else { return }
        // The next attempt is the checkpointer's, in its next round.
        wantCheckpoint()
        throw LarderError(
            .io, "the journal could not be read after an earlier commit failed, and that is tried again",
            operation: operation)
    }

    func close() { lock.withLock { journal.close() } }
}
