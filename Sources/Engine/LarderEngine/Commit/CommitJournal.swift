import LarderPlatform
import Synchronization

/// The journal of an open larder: appends commits at the requested durability, syncs them, and removes segments that
/// checkpoints have made obsolete. It owns the ``Journal``, and records whether a failed commit still has to be rolled
/// back.
///
/// Thread-safe: `lock` guards the calls of the journal, except those that the journal allows at any time: fsyncs,
/// removals of segments, staging and counters. Lock order: shard locks, the journal's `removing`, `lock`, the journal's
/// `lock`.
final class CommitJournal: Sendable {
    /// The part of the journal that a checkpoint makes obsolete.
    struct Cut {
        /// The last segment that the checkpoint makes obsolete.
        let segment: UInt64
        /// The last commit unit in that segment.
        let sequence: UInt64
        /// The last commit unit in the journal when the checkpoint started.
        let end: UInt64
        /// The size of the part; `.max` if it is the whole journal.
        let byteCount: Int
        fileprivate let rollbacks: UInt64
    }

    private let context: LarderContext
    let trigger: CheckpointTrigger
    private let segments: Journal
    private let marks: JournalMarkFile
    /// Held while a group is appended, and synced if necessary. The journal has a lock of its own for its list of
    /// segments: the syncing thread, threads that stage long values, and the counters take only the journal's lock.
    private let lock = Lock()
    /// The number of rollbacks of failed commits. If it has changed during a checkpoint, no segments are removed: a
    /// rollback may have removed entries that the checkpoint has read.
    private let rollbacks = Atomic<UInt64>(0)
    /// The sequence up to which failed units were kept in memory, although the journal does not contain them; 0 if
    /// there are none.
    private let keptSequence = Atomic<UInt64>(0)
    /// Whether a failed commit could not be rolled back yet. Memory then has entries of the failed commit, and may lack
    /// other entries.
    private let owes = Atomic<Bool>(false)
    /// Whether appended frames would be lost: see ``Journal/isGone``.
    private let gone = Atomic<Bool>(false)
    private let unsynced = Atomic<Bool>(false)
    private let syncing = Atomic<Bool>(false)

    init(context: LarderContext, trigger: CheckpointTrigger) throws(LarderError) {
        self.context = context
        self.trigger = trigger
        marks = JournalMarkFile(directory: context.directory) { [sequences = context.sequences] in
            sequences.reservedUnits
        }
        segments = try LarderError.wrapping("open journal") { [marks] () throws(FileError) in
            try Journal(
                directory: context.directory + "/JOURNAL", segmentBytes: context.options.journalSegmentBytes,
                marks: marks, faults: context.options.journalFaults)
        }
    }

    // MARK: Whether the files are in place

    /// Checks whether another program has removed or replaced the journal's files. Reports a change of the result.
    /// Called often.
    func checkFiles() {
        let isGone = segments.isGone
        guard gone.exchange(isGone, ordering: .relaxed) != isGone else { return }
        if isGone {
            segments.noteGone()
            context.report(.error, Self.lossText(context))
        } else {
            context.report(.info, "the larder's files are back: \(context.directory)")
        }
    }

    private static func lossText(_ context: LarderContext) -> String {
        "the larder's files in \(context.directory) were removed or replaced while they were open. Writes are refused "
            + "until they are back; a restart without them loses the writes that they contain, and begins new files"
    }

    /// Returns the error for writes if the journal's files are gone, or if the journal is full and checkpoints fail;
    /// nil if writes are accepted. Usually two atomic loads.
    func refusal(_ operation: String) -> LarderError? {
        guard gone.load(ordering: .relaxed) else { return trigger.refusal(operation) }
        return LarderError(
            .writesSuspended, Self.lossText(context), operation: operation,
            underlying: FileError.gone(context.directory))
    }

    /// - Throws: if appended frames would be lost, because the journal's files were removed or replaced.
    func requireInPlace(_ operation: String) throws(LarderError) {
        checkFiles()
        if gone.load(ordering: .relaxed), let error = refusal(operation) { throw error }
    }

    // MARK: Writing

    /// Appends a batch at the requested durability. Called by one thread at a time.
    /// - Parameter mayBlock: whether the call may block to free space on a full file system, or to reserve sequences.
    /// - Returns: false, without appending, if the call would have to block and `mayBlock` is false.
    func append(_ batch: JournalBatch, _ level: Durability, mayBlock: Bool) throws(LarderError) -> Bool {
        try context.options.beforeCommit?()
        var attempts = 0
        while true {
            if context.sequences.refusal(of: batch.lastSequence) != nil {
                if !mayBlock { return false }
                // The background thread that reserves sequences in advance has found no disk space, or has not run in
                // time. So reserve them here.
                context.sequences.extendIfNeeded(last: batch.lastSequence)
            }
            guard let failure = attempt(batch, level) else { break }
            if failure.error.isFullDisk, failure.doubt.isEmpty, context.disk.limitBytes != nil {
                if !mayBlock { return false }
                attempts += 1
                if attempts <= Self.attemptsMax, hasRoom(for: batch.byteCount, isRemoval: batch.removesOnly) {
                    continue
                }
            }
            // The journal may have abandoned the segment because of the error. A checkpoint makes that segment
            // obsolete.
            trigger.request()
            throw LarderError(
                .io, failure.error.description + failure.doubt + context.disk.note(failure.error),
                operation: "commit", underlying: failure.error)
        }
        switch level {
        case .os: break
        case .everysecond: unsynced.store(true, ordering: .relaxed)
        case .always: context.statistics.syncs.add()
        }
        trigger.wakeIfTooMuch()
        return true
    }

    /// The maximum number of attempts to free space for one batch.
    private static let attemptsMax = 4

    /// Frees space on a full file system. Returns whether space was freed, or enough space is free anyway.
    private func hasRoom(for bytes: Int, isRemoval: Bool = false) -> Bool {
        context.disk.relieve(bytes, takesReserve: isRemoval) || context.disk.room.map { $0 > 2 * bytes } ?? false
    }

    /// Appends a batch once, without retries.
    /// - Returns: nil after success, otherwise the error. `doubt` explains why the batch may survive despite the error;
    ///   it is empty if the batch cannot survive.
    private func attempt(_ batch: JournalBatch, _ level: Durability) -> (error: FileError, doubt: String)? {
        var doubt = ""
        do throws(FileError) {
            try lock.withLock { () throws(FileError) in
                defer { countBytes() }
                if let failure = context.sequences.refusal(of: batch.lastSequence) { throw failure }
                try segments.append(batch)
                if level == .always {
                    do throws(FileError) {
                        // Sync all segments: a write must not be acknowledged while a machine failure may lose an
                        // earlier write.
                        try segments.sync()
                    } catch {
                        doubt = Self.doubt(segments.rollBackLast(batch))
                        throw error
                    }
                }
            }
            return nil
        } catch {
            return (error, doubt)
        }
    }

    private static func doubt(_ taken: Journal.RollbackOutcome) -> String {
        let (failure, event): (FileError, String)
        switch taken {
        case .done: return ""
        case .unlessMachineFails(let error): (failure, event) = (error, "the machine fails")
        case .unlessProcessEnds(let error): (failure, event) = (error, "this process terminates")
        }
        return ". It could not be rolled back either (\(failure)): if \(event) before another write is committed, "
            + "this write may or may not survive"
    }

    /// Writes the payload of a long record to a file of its own, before its commit. May take long.
    func stage(_ payload: UnsafeRawBufferPointer, bytesBefore: Int, isSynced: Bool) throws(LarderError)
        -> StagedFrame
    {
        var attempts = 0
        while true {
            do throws(FileError) {
                return try segments.stage(payload, bytesBefore: bytesBefore, isSynced: isSynced)
            } catch {
                attempts += 1
                if error.isFullDisk, attempts <= Self.attemptsMax, hasRoom(for: payload.count) { continue }
                throw LarderError(
                    .commitFailed,
                    "the write was not committed: \(error.description)" + context.disk.note(error),
                    operation: "commit", underlying: error)
            }
        }
    }

    /// Reserves sequence numbers in advance if few are left. May take long.
    func reserveSequencesIfNeeded() {
        context.sequences.extendIfNeeded(last: max(lastAppended, context.sequences.base))
    }

    /// Whether an fsync is under way, so that appending may take long.
    var isBusy: Bool { syncing.load(ordering: .relaxed) }
    private func countBytes() { trigger.note(segments.byteCounts) }

    /// Syncs the journal if a batch that requires it was appended since the last call, or if the loss of the whole
    /// journal would not be detected. May take long.
    func syncIfNeeded() throws(LarderError) {
        guard unsynced.exchange(false, ordering: .relaxed) || segments.isUnmarked else { return }
        try sync()
    }

    /// Syncs the journal.
    /// - Parameter cut: a checkpoint's cut, to sync only the segments that it does not make obsolete; nil to sync all.
    func sync(behind cut: Cut? = nil) throws(LarderError) {
        syncing.store(true, ordering: .relaxed)
        defer { syncing.store(false, ordering: .relaxed) }
        do throws(FileError) {
            try segments.sync(above: cut?.segment ?? 0)
            context.statistics.syncs.add()
        } catch {
            // The system may have dropped pages that it could not write. So request a checkpoint, which writes the
            // entries from memory to LevelDB.
            trigger.request()
            throw LarderError(.io, error.description, operation: "fsync", underlying: error)
        }
    }

    /// The maximum number of failed fsyncs from which ``syncCopies()`` recovers in one call.
    private static let copiesMax = 16

    /// Recovers from a failed ``sync(behind:)``: copies the unsynced segments and syncs the copies. If an fsync of
    /// another segment fails then, copies that one too.
    func syncCopies() throws(LarderError) {
        for count in 1... {
            try copyUnsynced()
            do throws(LarderError) { return try sync() } catch { if count == Self.copiesMax { throw error } }
        }
    }

    private func copyUnsynced() throws(LarderError) {
        try LarderError.wrapping("copy") { () throws(FileError) in
            syncing.store(true, ordering: .relaxed)
            defer { syncing.store(false, ordering: .relaxed) }
            try segments.withoutRemovals { () throws(FileError) in
                try lock.withLock { () throws(FileError) in try segments.copyUnsynced() }
            }
        }
    }

    /// Syncs the names of the files in a directory, before a checkpoint relies on them.
    func syncDirectory(_ path: String) throws(LarderError) {
        try LarderError.wrapping("checkpoint") { () throws(FileError) in try segments.files.syncDirectory(path) }
    }

    // MARK: Checkpoints

    /// The number of failed commits that were rolled back. It does not change while a shard lock is held.
    var rollbackCount: UInt64 { rollbacks.load(ordering: .acquiring) }

    /// Begins a checkpoint or a rewrite: later appends go to a new segment.
    /// - Parameters:
    ///   - isRewrite: whether this only rewrites the journal, so that a requested checkpoint stays requested.
    ///   - bytes: for a checkpoint of only the oldest segments: see ``Journal/oldest(bytes:)``.
    /// - Returns: nil when the journal is empty.
    func cut(isRewrite: Bool, oldest bytes: Int? = nil) -> Cut? {
        lock.withLock {
            if !isRewrite { trigger.begin() }
            let end = lastAppendedLocked
            // Kept units are not in the journal, so a part must include them.
            let kept = keptSequence.load(ordering: .relaxed)
            let part = bytes.flatMap(segments.oldest).flatMap { $0.sequence >= kept ? $0 : nil }
            guard let segment = part?.number ?? segments.rotate() else { return nil }
            return Cut(
                segment: segment, sequence: part?.sequence ?? end, end: end, byteCount: part?.byteCount ?? .max,
                rollbacks: rollbackCount)
        }
    }

    /// Whether no commit was rolled back since the cut. If none was, each entry that the checkpoint has read since the
    /// cut is committed as soon as its commit unit is decided.
    func isCurrent(_ cut: Cut) -> Bool { rollbackCount == cut.rollbacks }

    /// Removes the segments that a checkpoint made obsolete.
    /// - Returns: false, without removing any, if a failed commit was rolled back in the meantime.
    func finish(_ cut: Cut) throws(LarderError) -> Bool {
        try LarderError.wrapping("checkpoint") { () throws(FileError) in
            defer { countBytes() }
            return try segments.removeSegments(upTo: cut.segment) { isCurrent(cut) }
        }
    }

    /// The last commit unit appended to the journal.
    var lastAppended: UInt64 { lock.withLock { lastAppendedLocked } }
    private var lastAppendedLocked: UInt64 { max(segments.lastAppended, keptSequence.load(ordering: .relaxed)) }

    // MARK: A failed commit

    /// Whether a failed commit still has to be rolled back, because the journal could not be read. One atomic load.
    ///
    /// Until that commit is rolled back, nothing is committed: the rollback would drop later commits too. Nothing is
    /// written to LevelDB either, because memory differs from the acknowledged state.
    var isRollbackPending: Bool { owes.load(ordering: .acquiring) }

    /// - Throws: if a failed commit still has to be rolled back.
    func requireRolledBack(_ operation: String) throws(LarderError) {
        guard isRollbackPending else { return }
        // The checkpointer retries the rollback in its next round.
        trigger.want()
        throw LarderError(
            .io, "an earlier commit failed and cannot be rolled back yet, because the journal is unreadable; retrying",
            operation: operation)
    }

    /// Runs `body`, which rolls back the entries in memory. In the meantime no commit runs, and no checkpoint ends.
    /// - Parameter body: may call ``replayLocked(_:)``, ``noteRolledBack()``, ``notePendingRollback()`` and
    ///   ``noteKept(_:)``.
    func rollBack(_ body: () -> Void) {
        segments.withoutRemovals {
            lock.withLock {
                rollbacks.wrappingAdd(1, ordering: .acquiringAndReleasing)
                body()
            }
        }
    }

    /// Records that the rollback is done: the failed commit's entries were removed from memory, or are to stay there.
    func noteRolledBack() { owes.store(false, ordering: .releasing) }

    /// Records that a rollback is owed: the entries of the failed commit are still in memory.
    /// - Returns: whether a rollback was owed already.
    func notePendingRollback() -> Bool { owes.exchange(true, ordering: .acquiringAndReleasing) }

    /// Records that the entries of failed commits are kept in memory, up to this sequence. Called within
    /// ``rollBack(_:)``.
    func noteKept(_ last: UInt64) { keptSequence.store(last, ordering: .relaxed) }

    // MARK: Reading

    /// Reads the file in which the last process marked how much of the journal was synced and removed. Called before
    /// ``replay(_:)``.
    /// - Throws: `newerFormat`. An invalid file is only reported.
    func loadMarks() throws(LarderError) {
        guard let file = context.sequences.previous else { return }
        switch marks.load(reserved: file.commitUnits) {
        case .done: break
        case .unusable(let why):
            context.report(
                .warning, "\(why): a loss of the journal's beginning or end will not be detected this time")
        case .newerVersion(let version):
            throw LarderError(
                .newerFormat,
                "\(JournalMarkFile.fileName) was written by a newer version of Larder (version \(version), this one reads "
                    + "\(JournalMark.version))", operation: "open larder")
        }
    }

    /// Begins to record how much of the journal is synced and removed. Call it after this process has reserved its
    /// sequence numbers.
    func beginMarks(_ report: JournalReport) { marks.begin(removed: report.precedingSequence) }

    /// Reads the journal, before anything is appended.
    func replay(_ visit: JournalVisit) throws(LarderError) -> JournalReport { try segments.replay(visit) }

    /// Reads again what ``replay(_:)`` has read at the start.
    /// - Parameter onOpened: called when batches may be appended. They are not visited.
    func replayAgain(onOpened: () -> Void, _ visit: JournalVisit) throws(LarderError) -> JournalReport {
        try segments.replay(onOpened: onOpened, visit)
    }

    /// Waits for the end of a replay in the background, which holds locks of shards.
    func waitForReplay() { segments.withoutRemovals {} }

    /// Like ``replay(_:)``, but called within ``rollBack(_:)``.
    func replayLocked(_ visit: JournalVisit) throws(LarderError) -> JournalReport { try segments.replayHeld(visit) }

    /// Prepares for appending after the segments that were found.
    /// - Parameter base: the commit unit after which to continue if there are no segments. Units up to it are durable
    ///   elsewhere.
    func begin(behind base: UInt64) {
        segments.begin(behind: base)
        countBytes()
    }

    /// Requests that the next background round syncs the segments that were found.
    func wantSync() { unsynced.store(true, ordering: .relaxed) }

    /// Moves damaged segments away. See ``Journal/setAside(_:to:)``.
    func setAside(_ report: JournalReport, to place: String) throws(FileError) {
        try segments.setAside(report, to: place)
    }

    func close() { lock.withLock { segments.close() } }
}
