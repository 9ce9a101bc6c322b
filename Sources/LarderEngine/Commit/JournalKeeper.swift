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

    private let context: EngineContext
    private let journal: Journal
    private let lock = Lock()
    /// Held while segments are removed, which takes some fsyncs, so that they do not go while entries are taken back from
    /// them. Writers need not wait for it.
    private let removal = Lock()
    /// Goes up when a failed commit was taken back: what a checkpoint has seen before may be gone.
    private var era: UInt64 = 0
    private var lastSequence: UInt64 = 0
    /// Whether a failed commit could not be taken back yet: memory has what was refused, and may lack what was not.
    private let owes = Atomic<Bool>(false)
    private let liveBytes = Atomic<Int>(0)
    /// As `liveBytes`, without the rest of long frames.
    private let countedBytes = Atomic<Int>(0)
    private let unsynced = Atomic<Bool>(false)
    private let syncing = Atomic<Bool>(false)
    private let needsCheckpoint = Atomic<Bool>(false)
    /// Why the last checkpoint failed; nil when it did not.
    private var checkpointFailure: LarderError?
    private let isStuck = Atomic<Bool>(false)
    /// Wakes the checkpointer. Set before anything is written.
    var onFull: () -> Void = {}

    init(context: EngineContext) throws(LarderError) {
        self.context = context
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
    private func countBytes() {
        let counts = journal.byteCounts
        liveBytes.store(counts.live, ordering: .relaxed)
        countedBytes.store(counts.counted, ordering: .relaxed)
    }

    /// Whether so much waits for LevelDB that writers should wait. Of a long record, or a long commit unit, a part counts
    /// only: nobody waits because of what another has stored, as long as that is not more than one of the longest.
    var isFull: Bool {
        let (live, counted) = (liveBytes.load(ordering: .relaxed), countedBytes.load(ordering: .relaxed))
        return counted > bytesMax || live > bytesMax + Record.payloadBytesMax
            || context.memory.isFullOfDirty(besides: live - counted)
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
        liveBytes.load(ordering: .relaxed) >= context.options.checkpointBytes || context.memory.isCheckpointDue
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

    private func requestCheckpoint() {
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

    // MARK: Reading

    /// Applies what the journal has to the databases it belongs to. Before anything else uses them.
    /// - Returns: the sequence of the last commit unit.
    func recover(_ table: DatabaseTable) throws(LarderError) -> UInt64 {
        // Nobody else has them yet; the locks keep one thread's eviction off the other's shards.
        let databases = table.all
        for database in databases { database.lockAll() }
        let applier = JournalApplier(usesThreads: true, noteEpoch: context.noteEpoch, find: table.find)
        let report: JournalReport
        do {
            defer {
                applier.finish()
                for database in databases.reversed() { database.unlockAll() }
            }
            report = try lock.withLock { () throws(LarderError) in try journal.replay(applier.add) }
        }
        for name in applier.unknownNames.sorted() {
            let isForeign = if case .foreign = DatabaseDirectory(context.directory + "/" + name) { true } else { false }
            context.report(
                isForeign ? .error : .info,
                "the journal has operations of database '\(name)', which is not there any more"
                    + (isForeign ? ", but something else is; they are passed over" : ""))
        }
        context.timeKeeper.goOn(fromStamp: applier.latestStored)
        context.sequences.wasCut = report.damage != nil || report.cut != nil
        // An empty journal does not tell how far an earlier process came.
        context.sequences.begin(behind: report.lastSequence, now: context.time.now())
        // Without a segment nobody knows how far the journal went, and nothing of it was needed any more.
        if report.segments > 0 {
            context.journalEnd.store(report.lastSequence, ordering: .relaxed)
            if report.damage != nil || report.cut != nil { try findWhoNeedsMore(report, table) }
        }
        if let damage = report.damage { try setAside(damage, report) }
        if let cut = report.cut, cut.bytes > 0 {
            context.report(
                .info, "the journal's last \(cut.bytes) bytes are what was being written at the end: \(cut.reason)")
        }
        if report.operations > 0 {
            context.report(
                .info, "replayed \(report.operations) operations, \(report.bytes) bytes of the journal")
            requestCheckpoint()
        }
        journal.begin(behind: context.sequences.base)
        lastSequence = report.lastSequence
        countBytes()
        if report.operations > 0 { syncFound() }
        return context.sequences.base
    }

    /// What was found is about to be shown, and may not be on the disk yet: the process that wrote it ended before it had it
    /// synced, or at a level that promises this for later.
    private func syncFound() {
        guard context.options.durability == .always else { return unsynced.store(true, ordering: .relaxed) }
        do throws(LarderError) {
            try sync()
        } catch {
            context.report(.error, "\(error.message); a failure of the machine may undo what the journal had")
        }
    }

    /// Opens all databases, and sets those aside whose LevelDB needs a part of the journal that is lost. Now, because the
    /// next start would not know of the loss any more.
    private func findWhoNeedsMore(_ report: JournalReport, _ table: DatabaseTable) throws(LarderError) {
        if report.damage != nil, context.options.onDamage == .fail { return }
        for database in table.all where database.exists {
            do throws(LarderError) {
                try database.prepare(forWriting: false)
            } catch {
                if database.needsMoreJournal { throw error }
                context.report(
                    .error,
                    "database '\(database.name)' cannot be opened, so that nobody knows whether it needs the part of the "
                        + "journal that is lost: \(error)")
            }
        }
    }

    private func setAside(_ damage: JournalDamage, _ report: JournalReport) throws(LarderError) {
        guard context.options.onDamage == .salvage else {
            throw LarderError(
                .damaged,
                "the journal is damaged: \(damage). What stands before the damage can be used; nothing was changed. "
                    + "Open with the damage set aside to go on with that", operation: "open larder")
        }
        let place = try DamagedFiles.place(for: "journal", context: context)
        do throws(FileError) {
            try journal.setAside(report, to: place)
        } catch {
            throw LarderError(.io, error.description, operation: "set the journal aside", underlying: error)
        }
        context.statistics.setAside.add()
        context.report(
            .error, "the journal is damaged: \(damage); what stands behind the damage was set aside at \(place)")
    }

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

    /// Takes databases back to what is durable: their state, and the entries that the journal has. Called with all their
    /// shard locks held. Where the journal cannot be read for now it is still to be done: ``owesTakeBack``.
    /// - Parameter last: the last sequence that failed.
    func takeBack(_ databases: [Database], failed last: UInt64) {
        removal.withLock { lock.withLock { takeBackLocked(databases, last) } }
    }

    private func takeBackLocked(_ databases: [Database], _ last: UInt64) {
        era += 1
        let byName = Dictionary(databases.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
        var isCleared = false
        do throws(LarderError) {
            // First without effect: what cannot be read must not cost what is in memory.
            try replay { _, _ in }
            isCleared = true
            for database in databases { database.revertToDurable() }
            let applier = JournalApplier(usesThreads: false) { byName[$0] }
            defer { applier.finish() }
            try replay(applier.add)
            owes.store(false, ordering: .releasing)
        } catch {
            // Of what was changed as a whole memory has let go already.
            let isWhole = !isCleared && databases.allSatisfy(\.isMemoryWhole)
            if isWhole, error.code == .damaged { return keepRefused(databases, last, error) }
            for database in databases { database.revertIncompletely(isCleared: isCleared, error) }
            // Said once, not with every attempt.
            context.report(
                owes.exchange(true, ordering: .acquiringAndReleasing) ? .debug : .error,
                "the journal cannot be read after a failed commit (\(error)): until it can, nothing is written, and "
                    + "databases that were written to answer with errors")
        }
    }

    /// As ``Journal/replay(known:_:)``, where damage is an error.
    private func replay(_ visit: JournalVisit) throws(LarderError) {
        let report = try journal.replay(visit)
        if let damage = report.damage { throw LarderError(.damaged, "\(damage)", operation: "read journal") }
    }

    /// A damaged journal will not tell what was there before. Memory has all that was acknowledged, and the next checkpoint
    /// puts it into LevelDB, with what was refused.
    private func keepRefused(_ databases: [Database], _ last: UInt64, _ error: LarderError) {
        for database in databases { database.revertStateOnly() }
        lastSequence = max(lastSequence, last)
        owes.store(false, ordering: .releasing)
        requestCheckpoint()
        context.report(
            .error,
            "the journal is damaged (\(error)), and a commit failed: what is in memory goes into LevelDB, and writes that "
                + "were refused count")
    }

    func close() { lock.withLock { journal.close() } }
}
