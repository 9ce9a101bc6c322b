import Threading

/// Puts into LevelDB what is only in the journal and in memory, so that the journal can be cut at its beginning.
///
/// A checkpoint ends the journal's segment, hands every entry that was written up to there to LevelDB, synced, and then
/// removes the segments. An entry that was written again meanwhile is left to the next checkpoint: the segment that has
/// its newer state stays, and is synced before the older ones go.
///
/// Where the journal is long and little of it is still of use, because the same keys are written over and over, that is
/// written into the journal again instead (``RewritePass``), and the segments go in the same way.
///
/// Thread-safe. One checkpoint or flush at a time; the proof for `@unchecked Sendable` is that the rest is constant.
/// Lock order: a database's `openLock`, `turn`, a store's `indexLock`, shard locks.
final class Checkpointer: @unchecked Sendable {
    private let context: EngineContext
    private let table: DatabaseTable
    private let keeper: JournalKeeper
    private let pipeline: CommitPipeline
    private let turn = Lock()
    private let loop = BackgroundLoop()
    /// When the last checkpoint that was no rewrite began, in monotonic milliseconds. Guarded by `turn`.
    private var lastBegan: Int64 = 0
    /// Whether a database was left out because another thread is opening, purging or deleting it. Guarded by `turn`.
    private var metBusy = false
    /// Whether no database needs more of the journal than was found at the start. Guarded by `turn`.
    private var isJournalEnough = false

    init(context: EngineContext, table: DatabaseTable, keeper: JournalKeeper, pipeline: CommitPipeline) {
        self.context = context
        self.table = table
        self.keeper = keeper
        self.pipeline = pipeline
        lastBegan = context.time.monotonic()
        keeper.onFull = { [loop] in loop.wake() }
    }

    func start() {
        let pause = context.options.maintenanceMilliseconds
        loop.start("larder-checkpoint") { [self] in
            checkpointIfDue()
            return pause
        }
    }

    /// Waits for the checkpoint under way.
    func stop() { loop.stop() }

    /// A checkpoint if there is enough to write, or if the last is long ago: entries that expire in memory are to give
    /// their space back too.
    func checkpointIfDue() {
        guard keeper.isDue || turn.withLock({ isOld }) else { return }
        _ = attempt { true }
    }

    /// Whether the last checkpoint is long ago. Called with `turn` held.
    private var isOld: Bool { context.time.monotonic() - lastBegan >= context.options.checkpointMilliseconds }

    /// A checkpoint if it is needed still when it can begin.
    /// - Returns: false when it failed.
    private func attempt(if isNeeded: () -> Bool) -> Bool {
        do throws(LarderError) {
            try turn.withLock { () throws(LarderError) in
                guard isNeeded() else { return }
                if isRewriteDue { try rewriteInTurn() } else { try checkpointInTurn() }
                _ = keeper.note(failure: nil)
            }
            pipeline.tellOfCheckpoint()
            return true
        } catch {
            // Said once, not four times a second.
            let isNew = keeper.note(failure: error)
            context.report(isNew ? .error : .debug, "a checkpoint failed, and is tried again: \(error)")
            keeper.wantCheckpoint()
            pipeline.tellOfCheckpoint()
            return false
        }
    }

    /// A checkpoint whether one is due or not. For larders without threads of their own.
    func checkpointIfDirty() {
        if keeper.byteCount > 0 { keeper.wantCheckpoint() }
        checkpointIfDue()
    }

    /// For writers that find too much waiting: writes a checkpoint on this thread, or waits for the one under way.
    /// - Returns: false when there is no room and the checkpoint failed. Then writes are refused until one succeeds.
    func assist() -> Bool { attempt { keeper.isFull } }

    /// As ``isFull``, for those who are about to store a long record.
    var isFullForLong: Bool { keeper.isFullForLong }

    /// As ``isFull``, for those who are about to build a long value.
    var isFullForBuilding: Bool { keeper.isFullForBuilding }

    /// As ``assist()``, for those who are about to build a long value.
    func assistForBuilding() -> Bool { attempt { keeper.isFullForBuilding } }

    /// As ``assist()``, for those who are about to store a long record.
    func assistForLong() -> Bool { attempt { keeper.isFullForLong } }

    /// Whether so much waits for LevelDB that writers should assist.
    var isFull: Bool { keeper.isFull }

    /// Puts everything that is committed into LevelDB.
    func checkpoint() throws(LarderError) {
        try turn.withLock { () throws(LarderError) in try checkpointInTurn() }
    }

    /// Called with `turn` held.
    private func checkpointInTurn() throws(LarderError) {
        lastBegan = context.time.monotonic()
        if isAnyBusy { return keeper.wantCheckpoint() }
        guard try checkUnopened() else { return keeper.wantCheckpoint() }
        guard let cut = keeper.cut(isRewrite: false) else { return }
        do throws(LarderError) {
            // What LevelDB gets must not be ahead of a journal that a failing machine has lost the end of.
            try keeper.sync()
        } catch {
            // What cannot be synced has to get into LevelDB all the more.
            context.report(.debug, "before a checkpoint: \(error)")
        }
        metBusy = false
        var passes: [CheckpointPass] = []
        var failure: LarderError?
        for database in table.all {
            do throws(LarderError) {
                if let pass = try pass(database, upTo: cut.sequence) { passes.append(pass) }
            } catch {
                failure = error
            }
        }
        if try end(cut, passes, failure) { context.statistics.checkpoints.add() }
    }

    /// Whether a rewrite of the journal is worth more than a checkpoint: half of it is left afterwards, at the most. Called
    /// with `turn` held.
    private var isRewriteDue: Bool {
        guard !keeper.isWanted, !context.memory.isCheckpointDue, !isOld, !isAnyBusy else { return false }
        let dirty = table.all.filter { $0.dirtyCount > 0 }
        let bytes = dirty.reduce(0) { $0 + $1.journalBytesOfDirty }
        return bytes > 0 && bytes <= keeper.byteCount / 2 && dirty.allSatisfy { $0.isReady(forWriting: true) }
    }

    /// Writes what is of use in the journal into it once more, whether that is worth it or not. For tests.
    func rewrite() throws(LarderError) {
        try turn.withLock { () throws(LarderError) in try rewriteInTurn() }
    }

    /// Called with `turn` held.
    private func rewriteInTurn() throws(LarderError) {
        guard try checkUnopened(), let cut = keeper.cut(isRewrite: true) else { return }
        metBusy = false
        var passes: [RewritePass] = []
        // Whatever is dirty: after the cut, so that nothing in the segments before it is left out.
        for database in table.all where database.dirtyCount > 0 {
            guard let pass = RewritePass(database, upTo: cut.sequence) else {
                metBusy = true
                continue
            }
            pass.write()
            passes.append(pass)
        }
        if try end(cut, passes, nil) { context.statistics.journalRewrites.add() }
    }

    /// Lets segments of the journal go, once what is still of use in them is elsewhere.
    /// - Returns: false when they have to stay for now.
    private func end(_ cut: JournalKeeper.Cut, _ passes: [some CheckpointWork], _ failure: LarderError?)
        throws(LarderError) -> Bool
    {
        var hasEnded = false
        do throws(LarderError) {
            if let failure { throw failure }
            // A purge that was applied has cleared the entries of before, and the journal is all that has them until it is
            // on the disk. If it fails, and what was written again too, that is known here.
            pipeline.drain()
            if passes.contains(where: { $0.newest > 0 }), keeper.isCurrent(cut) {
                // What was written again must be as safe as what it took the place of.
                try keeper.sync(behind: cut)
                for pass in passes { try pass.noteNewest() }
            }
            if !metBusy, !isAnyBusy { hasEnded = try keeper.finish(cut) }
        } catch {
            for pass in passes { pass.abandon() }
            throw error
        }
        guard hasEnded else {
            for pass in passes { pass.abandon() }
            keeper.wantCheckpoint()
            return false
        }
        for pass in passes { pass.finish() }
        return true
    }

    /// Opens the databases that nobody has used since a start with a journal, once: with its segments goes the knowledge of
    /// where it ended, and one of them may need more. Called with `turn` held.
    /// - Returns: false when another thread is doing something with one.
    /// - Throws: the damage of one that needs more. The journal stays until it is set aside.
    private func checkUnopened() throws(LarderError) -> Bool {
        if isJournalEnough || context.journalEnd.load(ordering: .relaxed) == .max { return true }
        for database in table.all where database.isUnopened {
            do throws(LarderError) {
                guard try database.prepareUnlessBusy() else { return false }
            } catch {
                if database.needsMoreJournal { throw error }
                context.report(
                    .warning,
                    "nobody knows whether database '\(database.name)' needs more of the journal than there was: \(error)"
                )
            }
        }
        isJournalEnough = true
        return true
    }

    /// Whether the files of a database are about to go: its entries are not in memory any more, and the journal has to stay
    /// until the files are gone, for the case that they stay.
    private var isAnyBusy: Bool { table.all.contains { $0.isLosingFiles.load(ordering: .acquiring) } }

    /// Gives a database back what the journal has of it, after its files were to be removed and are still there. Called with
    /// all its shard locks held.
    func restore(_ database: Database) { keeper.takeBack([database]) }

    /// Opens the databases that the journal has entries of, or might have had, and nobody has used. Before the larder is
    /// closed, when they cannot be opened any more.
    func openWhatIsDirty() {
        do throws(LarderError) {
            _ = try turn.withLock { () throws(LarderError) in try checkUnopened() }
        } catch {
            context.report(.warning, "the journal stays: \(error)")
        }
        for database in table.all where database.dirtyCount > 0 && !database.isReady(forWriting: true) {
            do throws(LarderError) {
                _ = try database.prepareUnlessBusy()
            } catch {
                context.report(.warning, "the journal keeps what it has of database '\(database.name)': \(error)")
            }
        }
    }

    /// Puts what is committed of one database into LevelDB. What is written meanwhile may stay in memory.
    /// - Returns: what was let go because it is expired.
    @discardableResult
    func flush(_ database: Database) throws(LarderError) -> PurgeReport {
        if !database.isReady(forWriting: true) { try database.prepare(forWriting: false) }
        pipeline.drain()
        // What LevelDB gets must not be ahead of a journal that a failing machine has lost the end of.
        try keeper.sync()
        while true {
            if let report = try flushInTurn(database) { return report }
            // Waits for who is opening, purging or deleting it.
            try database.prepare(forWriting: false)
        }
    }

    /// - Returns: nil when another thread is about to do something with the files.
    private func flushInTurn(_ database: Database) throws(LarderError) -> PurgeReport? {
        try turn.withLock { () throws(LarderError) -> PurgeReport? in
            metBusy = false
            // What is decided may end with a change of a whole database, which the journal does not have.
            let sequence = min(pipeline.lastDecided, keeper.lastAppended)
            guard let pass = try pass(database, upTo: sequence) else { return metBusy ? nil : PurgeReport() }
            pass.finish()
            return pass.expired
        }
    }

    /// How many failed commits were taken back. With a shard lock held it stands still.
    var takenBack: UInt64 { keeper.takenBack }

    /// - Returns: nil when there is nothing to write.
    private func pass(_ database: Database, upTo sequence: UInt64) throws(LarderError) -> CheckpointPass? {
        guard database.dirtyCount > 0 else { return nil }
        // What the journal had for a database that was not opened since.
        if !database.isReady(forWriting: true), try !database.prepareUnlessBusy() {
            metBusy = true
            return nil
        }
        guard let pass = CheckpointPass(database, upTo: sequence) else {
            // Purged or deleted meanwhile, or else the journal must stay.
            guard database.dirtyCount > 0 else { return nil }
            throw LarderError(.io, "its files are not open", operation: "checkpoint", database: database.name)
        }
        do throws(LarderError) {
            try pass.write()
        } catch {
            pass.abandon()
            // A database that was purged or deleted meanwhile has nothing to write any more.
            guard pass.store.ending == .none else { return nil }
            throw error
        }
        return pass
    }
}
