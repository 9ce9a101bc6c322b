import Platform
import Synchronization

/// The larder's journal in use: appends what is committed, at the level asked for, syncs it, and removes what checkpoints
/// have made superfluous. It owns the journal, and knows whether a failed commit is still to be rolled back.
///
/// Thread-safe. The proof for `@unchecked Sendable`: the journal's segments, `rollbacks` and `keptSequence` are read and
/// changed with `lock` held, except for the fsync and the removal of segments, which the journal allows beside everything
/// else. Lock order: shard locks, the journal's `removing`, `lock`, the journal's `lock`.
final class CommitJournal: @unchecked Sendable {
    /// Where a checkpoint begins.
    struct Cut {
        /// The last segment that the checkpoint makes superfluous.
        let segment: UInt64
        /// The last commit unit in it.
        let sequence: UInt64
        fileprivate let rollbacks: UInt64
    }

    private let context: LarderContext
    let trigger: CheckpointTrigger
    private let segments: Journal
    /// Held while a group is appended, with its fsync where it asks for one. The journal has a lock of its own for its list of
    /// segments, which the thread that syncs, those that stage and the counters take meanwhile.
    private let lock = Lock()
    /// Goes up when a failed commit was rolled back: what a checkpoint has seen before may be gone.
    private var rollbacks: UInt64 = 0
    /// What was refused up to it counts all the same, although the journal does not have it; 0 where nothing does.
    private var keptSequence: UInt64 = 0
    /// Whether a failed commit could not be rolled back yet: memory has what was refused, and may lack what was not.
    private let owes = Atomic<Bool>(false)
    private let unsynced = Atomic<Bool>(false)
    private let syncing = Atomic<Bool>(false)

    init(context: LarderContext, trigger: CheckpointTrigger) throws(LarderError) {
        self.context = context
        self.trigger = trigger
        do throws(FileError) {
            segments = try Journal(
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
                try segments.append(batch)
                if level == .always {
                    do throws(FileError) {
                        // Of all segments: what is acknowledged is worth nothing behind one that the machine may lose.
                        try segments.sync()
                    } catch {
                        doubt = Self.doubt(segments.rollBackLast(batch))
                        throw error
                    }
                }
            }
        } catch {
            // A segment that was given up is to be followed by a checkpoint, which makes it superfluous.
            trigger.request()
            throw LarderError(.io, error.description + doubt, operation: "commit", underlying: error)
        }
        switch level {
        case .os: break
        case .everysecond: unsynced.store(true, ordering: .relaxed)
        case .always: context.statistics.syncs.add()
        }
        trigger.wakeIfTooMuch()
    }

    private static func doubt(_ taken: Journal.RollbackOutcome) -> String {
        let (failure, event): (FileError, String)
        switch taken {
        case .done: return ""
        case .unlessMachineFails(let error): (failure, event) = (error, "the machine fail")
        case .unlessProcessEnds(let error): (failure, event) = (error, "this process end")
        }
        return ". It could not be rolled back for certain either (\(failure)): whether it counts is not known, should "
            + "\(event) before another write is committed"
    }

    /// Writes the payload of a long record ahead of its commit. May take long.
    func stage(_ payload: UnsafeRawBufferPointer, bytesBefore: Int, isSynced: Bool) throws(LarderError)
        -> StagedFrame
    {
        do throws(FileError) {
            return try segments.stage(payload, bytesBefore: bytesBefore, isSynced: isSynced)
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
    private func countBytes() { trigger.note(segments.byteCounts) }

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
            try segments.sync(above: cut?.segment ?? 0)
            context.statistics.syncs.add()
        } catch {
            // The system may have dropped what it could not write: LevelDB gets it from memory instead.
            trigger.request()
            throw LarderError(.io, error.description, operation: "fsync", underlying: error)
        }
    }

    /// As ``sync(behind:)``, where that has failed: what could not be synced is copied, and the copies are synced.
    func syncCopies() throws(LarderError) {
        do throws(FileError) {
            syncing.store(true, ordering: .relaxed)
            defer { syncing.store(false, ordering: .relaxed) }
            try segments.withoutRemovals { () throws(FileError) in
                try lock.withLock { () throws(FileError) in try segments.copyUnsyncedHeld() }
            }
        } catch {
            throw LarderError(.io, error.description, operation: "copy", underlying: error)
        }
        try sync()
    }

    /// Has the disk know the names in a directory, of which the journal is to be independent.
    func syncDirectory(_ path: String) throws(LarderError) {
        do throws(FileError) {
            try segments.files.syncDirectory(path)
        } catch {
            throw LarderError(.io, error.description, operation: "checkpoint", underlying: error)
        }
    }

    // MARK: Checkpoints

    /// How many failed commits were rolled back. With a shard lock held it stands still.
    var rollbackCount: UInt64 { lock.withLock { rollbacks } }

    /// Begins a checkpoint: what is appended from now on goes to a new segment.
    /// - Parameter isRewrite: a checkpoint that was asked for is still to come.
    /// - Returns: nil when the journal is empty.
    func cut(isRewrite: Bool) -> Cut? {
        lock.withLock {
            if !isRewrite { trigger.begin() }
            guard let segment = segments.rotate() else { return nil }
            return Cut(segment: segment, sequence: lastAppendedLocked, rollbacks: rollbacks)
        }
    }

    /// Whether no failed commit was rolled back since. Then what was seen of entries since is committed, if it is decided.
    func isCurrent(_ cut: Cut) -> Bool { rollbackCount == cut.rollbacks }

    /// Removes what a checkpoint made superfluous.
    /// - Returns: false when a failed commit was rolled back meanwhile: then nothing was removed.
    func finish(_ cut: Cut) throws(LarderError) -> Bool {
        do throws(FileError) {
            defer { countBytes() }
            return try segments.removeSegments(upTo: cut.segment) { isCurrent(cut) }
        } catch {
            throw LarderError(.io, error.description, operation: "checkpoint", underlying: error)
        }
    }

    /// The last commit unit that the journal got.
    var lastAppended: UInt64 { lock.withLock { lastAppendedLocked } }
    private var lastAppendedLocked: UInt64 { max(segments.lastAppended, keptSequence) }

    // MARK: A failed commit

    /// Whether a failed commit could not be rolled back yet, because the journal could not be read. One atomic load.
    ///
    /// Meanwhile nothing is committed, because everything behind it would be dropped when it is rolled back, and nothing is
    /// put into LevelDB, because memory is not what was acknowledged.
    var owesRollback: Bool { owes.load(ordering: .acquiring) }

    /// - Throws: while a failed commit could not be rolled back.
    func requireRolledBack(_ operation: String) throws(LarderError) {
        guard owesRollback else { return }
        // The next attempt is the checkpointer's, in its next round.
        trigger.want()
        throw LarderError(
            .io, "the journal could not be read after an earlier commit failed, and that is tried again",
            operation: operation)
    }

    /// Rolls back, which changes what is in memory: no commit, and no end of a checkpoint, comes in between.
    /// - Parameter body: may call ``replayLocked(_:)``, ``noteRolledBack()``, ``noteOwed()`` and ``noteKept(_:)``.
    func rollBack(_ body: () -> Void) {
        segments.withoutRemovals {
            lock.withLock {
                rollbacks += 1
                body()
            }
        }
    }

    /// What was refused is gone from memory, or counts.
    func noteRolledBack() { owes.store(false, ordering: .releasing) }

    /// What was refused is still in memory.
    /// - Returns: whether it was already.
    func noteOwed() -> Bool { owes.exchange(true, ordering: .acquiringAndReleasing) }

    /// What was refused counts, up to this sequence. Within ``rollBack(_:)``.
    func noteKept(_ last: UInt64) { keptSequence = last }

    // MARK: Reading

    /// Reads what the journal has, before anything is appended.
    func replay(_ visit: JournalVisit) throws(LarderError) -> JournalReport { try segments.replay(visit) }

    /// As ``replay(_:)``, within ``rollBack(_:)``.
    func replayLocked(_ visit: JournalVisit) throws(LarderError) -> JournalReport { try segments.replayHeld(visit) }

    /// Goes on behind what was found.
    /// - Parameter base: commit units up to it were elsewhere before the first segment.
    func begin(behind base: UInt64) {
        segments.begin(behind: base)
        countBytes()
    }

    /// Has what was found synced in the next round of the background.
    func wantSync() { unsynced.store(true, ordering: .relaxed) }

    /// Moves what is damaged to a place of its own. See ``Journal/setAside(_:to:)``.
    func setAside(_ report: JournalReport, to place: String) throws(FileError) {
        try segments.setAside(report, to: place)
    }

    func close() { lock.withLock { segments.close() } }
}
