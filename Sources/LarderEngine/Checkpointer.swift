import Threading

/// Puts into LevelDB what is only in the journal and in memory, so that the journal can be cut at its beginning.
///
/// A checkpoint ends the journal's segment, hands every entry that was written up to there to LevelDB, synced, and then
/// removes the segments. An entry that was written again meanwhile is left to the next checkpoint: the segment that has
/// its newer state stays, and is synced before the older ones go.
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
    /// When the last checkpoint began, in monotonic milliseconds. Guarded by `turn`.
    private var lastBegan: Int64 = 0
    private var lastFailure: String?

    /// Entries of one shard looked at with its lock held once.
    private static let sliceCount = 256

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
        let now = context.time.monotonic()
        let isOld = turn.withLock { now - lastBegan >= context.options.checkpointMilliseconds }
        guard keeper.isDue || isOld else { return }
        do throws(LarderError) {
            try checkpoint()
            lastFailure = nil
        } catch {
            // Said once, not four times a second.
            let text = error.description
            context.report(text == lastFailure ? .debug : .error, "a checkpoint failed, and is tried again: \(text)")
            lastFailure = text
            keeper.wantCheckpoint()
        }
    }

    /// A checkpoint whether one is due or not. For larders without threads of their own.
    func checkpointIfDirty() {
        if keeper.byteCount > 0 { keeper.wantCheckpoint() }
        checkpointIfDue()
    }

    /// For writers that find too much waiting: writes a checkpoint on this thread, or waits for the one under way.
    func assist() {
        guard keeper.isFull else { return }
        checkpointIfDue()
    }

    /// Puts everything that is committed into LevelDB.
    func checkpoint() throws(LarderError) {
        try turn.withLock { () throws(LarderError) in try checkpointInTurn() }
    }

    /// Called with `turn` held.
    private func checkpointInTurn() throws(LarderError) {
        lastBegan = context.time.monotonic()
        guard let cut = keeper.cut() else { return }
        do throws(LarderError) {
            // What LevelDB gets must not be ahead of a journal that a failing machine has lost the end of.
            try keeper.sync()
        } catch {
            // What cannot be synced has to get into LevelDB all the more.
            context.report(.debug, "before a checkpoint: \(error)")
        }
        var newest: UInt64 = 0
        var passes: [CheckpointPass] = []
        var failure: LarderError?
        for database in table.all {
            do throws(LarderError) {
                guard let pass = try pass(database, upTo: cut.sequence) else { continue }
                newest = max(newest, pass.newestLeft)
                passes.append(pass)
            } catch {
                failure = error
            }
        }
        do throws(LarderError) {
            if let failure { throw failure }
            if newest > 0 {
                // What was written again must be as safe as what it took the place of.
                pipeline.drain()
                try keeper.sync(behind: cut)
                for pass in passes { try pass.noteNewest() }
            }
            guard try keeper.finish(cut) else {
                keeper.wantCheckpoint()
                return
            }
        } catch {
            for pass in passes { pass.abandon() }
            throw error
        }
        for pass in passes { pass.finish() }
        context.statistics.checkpoints.add()
    }

    /// Puts what is committed of one database into LevelDB. What is written meanwhile may stay in memory.
    /// - Returns: what was let go because it is expired.
    @discardableResult
    func flush(_ database: Database) throws(LarderError) -> PurgeReport {
        if !database.isReady(forWriting: true) { try database.prepare(forWriting: false) }
        pipeline.drain()
        return try turn.withLock { () throws(LarderError) in
            // One that is being purged or deleted has nothing that is worth writing.
            guard database.isReady(forWriting: false),
                let pass = try pass(database, upTo: pipeline.lastDecided)
            else { return PurgeReport() }
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
        if !database.isReady(forWriting: true) { try database.prepareUnlessBusy() }
        guard let pass = CheckpointPass(database, upTo: sequence) else { return nil }
        do throws(LarderError) {
            try pass.run(sliceCount: Self.sliceCount)
        } catch {
            pass.abandon()
            // A database that was purged or deleted meanwhile has nothing to write any more.
            guard pass.store.ending == .none else { return nil }
            throw error
        }
        return pass
    }
}
