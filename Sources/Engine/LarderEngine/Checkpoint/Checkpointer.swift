import LarderPlatform
import Synchronization

/// Writes to LevelDB the entries that are only in the journal and in memory. After that, the journal's oldest segments
/// can be removed.
///
/// A checkpoint begins a new segment, writes and syncs all earlier entries to LevelDB, and then removes old segments.
/// An entry that was written again in the meantime is left to the next checkpoint. The segment with the entry's newer
/// state stays, and is synced before the older segments are removed.
///
/// If the same keys are written over and over, little of a long journal is still needed. That part is appended to the
/// journal again (``RewritePass``); then the old segments can be removed.
///
/// Thread-safe: `turn` allows one checkpoint or flush at a time. Lock order: a database's `openLock`, `turn`, a store's
/// `indexLock`, shard locks.
final class Checkpointer: Checkpointing {
    private let context: EngineContext
    private let table: DatabaseTable
    private let journal: CommitJournal
    private let trigger: CheckpointTrigger
    private let pipeline: CommitPipeline
    private let evictor: Evictor
    private let turn = CheckpointTurn()
    private let loop = BackgroundLoop()
    /// Slows writers down while a checkpoint is running.
    private let paceLoop = BackgroundLoop()
    // Changed with `turn` held:
    /// When the last checkpoint other than a rewrite began, in monotonic milliseconds.
    private let lastBegan: Atomic<Int64>
    /// Whether a database was skipped because another thread is opening, purging or deleting it.
    private let metBusy = Atomic<Bool>(false)
    /// Whether no database needs a lost part of the journal; false if that is not known yet.
    private let isJournalEnough = Atomic<Bool>(false)

    init(
        context: EngineContext, table: DatabaseTable, journal: CommitJournal, pipeline: CommitPipeline,
        evictor: Evictor
    ) {
        self.context = context
        self.table = table
        self.journal = journal
        trigger = journal.trigger
        self.pipeline = pipeline
        self.evictor = evictor
        lastBegan = Atomic(context.time.monotonic())
        trigger.onDue { [loop] in loop.wake() }
    }

    /// - Parameter onDemand: whether the thread starts only when it is needed: when the journal is long enough for a
    ///   checkpoint, or when ``startIfOld()`` finds that the last checkpoint was long ago.
    func start(onDemand: Bool) {
        let pause = context.options.maintenanceMilliseconds
        loop.start("larder-checkpoint", onDemand: onDemand) { [self] in
            if !checkpointIfDue() { loop.rest() }
            return pause
        }
        paceLoop.start("larder-pace", onDemand: onDemand) { [self] in pace() }
    }

    /// The time between two changes of the writers' speed, in milliseconds.
    private static let pacePause: Int64 = 10

    /// - Returns: the pause until the next call, in milliseconds.
    private func pace() -> Int64 {
        let isPacing = trigger.paceWriters(seconds: Double(Self.pacePause) / 1000)
        noteRoom()
        return isPacing ? Self.pacePause : .max
    }

    /// Starts the thread if it is not running, there is something to write, and the last checkpoint was long ago.
    func startIfOld() { if loop.isAsleep, trigger.byteCount > 0, isOld { loop.wake() } }

    /// Stops the thread, after waiting for the running checkpoint.
    func stop() {
        loop.stop()
        paceLoop.stop()
    }

    /// Runs a checkpoint if there is enough to write, or if the last checkpoint was long ago. The second condition
    /// limits how long entries that expired in memory keep their space.
    /// - Returns: false if it failed.
    @discardableResult
    func checkpointIfDue() -> Bool {
        guard trigger.isDue || isOld else { return true }
        return attempt { true }
    }

    /// Whether the last checkpoint is long ago. Checkpoints are rare, because many entries are overwritten or expire
    /// within minutes. These are never written to LevelDB.
    private var isOld: Bool {
        let (options, isCrowded) = (context.options, trigger.byteCount > context.memory.limitBytes / 4)
        return context.time.monotonic() - lastBegan.load(ordering: .relaxed)
            >= min(options.checkpointMilliseconds, isCrowded ? options.crowdedCheckpointMilliseconds : .max)
    }

    /// Waits until no other checkpoint runs, and runs a checkpoint. Does nothing once `isNeeded` returns false, which may
    /// be before the other checkpoint has ended. If the file system is full, frees space and retries.
    /// - Returns: false if the checkpoint failed.
    private func attempt(if isNeeded: () -> Bool) -> Bool {
        for number in 0... {
            do throws(LarderError) {
                guard turn.take(while: isNeeded) else { return true }
                defer { turn.unlock() }
                if isRewriteDue { try rewriteInTurn() } else { try checkpointInTurn() }
                _ = trigger.note(failure: nil)
                break
            } catch {
                if number < Self.reliefsMax, relieve(after: error) { continue }
                // Log an error once. Its repetitions, up to four a second, are logged at the debug level.
                let isNew = trigger.note(failure: error)
                context.report(isNew ? .error : .debug, "a checkpoint failed and will be retried: \(error)")
                trigger.want()
                pipeline.reportCheckpoint()
                return false
            }
        }
        pipeline.reportCheckpoint()
        return true
    }

    /// The maximum number of attempts to free space for one checkpoint.
    private static let reliefsMax = 4

    /// Frees space on a full file system, and reopens databases whose writes failed.
    /// - Returns: whether space was freed, or a database that refused writes accepts them again.
    private func relieve(after error: LarderError) -> Bool {
        let disk = context.larder.disk
        guard error.code == .io || error.code == .writesSuspended, disk.limitBytes != nil else { return false }
        var isBetter = disk.relieve(2 * trigger.byteCount, takesReserve: false)
        for database in table.all {
            guard let store = database.durableState.store, store.isSuspended, !store.isFrozen else { continue }
            isBetter = (try? database.prepare(forWriting: true)) != nil || isBetter
        }
        return isBetter
    }

    /// Runs a checkpoint if the journal is not empty, even if none is due. For larders without background threads.
    func checkpointIfDirty() {
        if trigger.byteCount > 0 { trigger.want() }
        checkpointIfDue()
    }

    /// Called by writers if too many changes wait for LevelDB: runs a checkpoint on this thread, or waits until the
    /// running one has made room.
    /// - Returns: false if the checkpoint failed. Writes are then refused until a checkpoint succeeds or the journal is
    ///   no longer full.
    func assist(for write: PendingWrite) -> Bool { attempt { trigger.mustWait(for: write) } }

    /// Lets waiting writers continue if the running checkpoint has made room for them.
    private func noteRoom() {
        guard trigger.takeWaiters() else { return }
        turn.noteRoom()
        pipeline.reportCheckpoint()
    }

    /// Whether so many changes wait to be written to LevelDB that writers should assist.
    func isFull(for write: PendingWrite) -> Bool { trigger.mustWait(for: write) }

    /// Runs a checkpoint: writes all committed entries to LevelDB.
    func checkpoint() throws(LarderError) {
        try turn.withLock { () throws(LarderError) in try checkpointInTurn() }
    }

    /// Runs `body` while no checkpoint is running.
    func withTurn<Result, Failure: Error>(_ body: () throws(Failure) -> Result) throws(Failure) -> Result {
        try turn.withLock(body)
    }

    /// Runs a checkpoint. If the journal is overlong, and the file system lacks the space for all of its entries, writes
    /// them in parts: the removal of a part's segments frees space for the next part. Called with `turn` held.
    private func checkpointInTurn() throws(LarderError) {
        trigger.setPacing(true)
        paceLoop.wake()
        defer { trigger.setPacing(false) }
        while try checkpointPart() {}
    }

    /// - Returns: whether only a part of the journal was written and removed, so that more parts follow.
    private func checkpointPart() throws(LarderError) -> Bool {
        lastBegan.store(context.time.monotonic(), ordering: .relaxed)
        try journal.requireInPlace("checkpoint")
        // If another program has removed the files of a LevelDB, suspend that LevelDB. The journal then keeps the
        // entries written to it.
        for database in table.all { database.durableState.store?.suspendIfGone() }
        try pipeline.rollBackWhatFailed("checkpoint")
        guard try checkUnopened() else {
            trigger.want()
            return false
        }
        let part = trigger.isOverlong ? evictor.partBytes.flatMap { journal.cut(isRewrite: false, oldest: $0) } : nil
        var room = try evictor.makeRoom(part: part?.byteCount)
        defer { evictor.wake() }
        guard let cut = part ?? journal.cut(isRewrite: false) else {
            noteNothingInJournal()
            return false
        }
        try syncJournal()
        metBusy.store(false, ordering: .relaxed)
        var passes: [any CheckpointWork] = []
        var failure: LarderError?
        /// Why the entries of a database cannot be written to LevelDB; nil if all can be written.
        var obstacle: LarderError?
        for database in table.all {
            do throws(LarderError) {
                if let pass = try pass(database, upTo: cut.sequence, journalEnd: cut.end, &room) { passes.append(pass) }
            } catch {
                if let pass = rewrite(database, cut, because: error) { passes.append(pass) } else { failure = error }
                obstacle = error
            }
        }
        // Pause: otherwise the next checkpoint would start immediately, and meet the same obstacle.
        if obstacle != nil { loop.rest() }
        let end = try end(cut, passes, failure) { () throws(LarderError) in try noteComplete(passes, cut) }
        if end { context.statistics.checkpoints.add() }
        // If the journal is full, report the obstacle: another checkpoint could not shorten the journal either.
        if trigger.isFull(), let obstacle { throw obstacle }
        return end && cut.sequence < cut.end
    }

    /// Tries to sync the journal before LevelDB is written: LevelDB must not have commits that the journal loses if the
    /// machine fails. If only the journal's files cannot be synced, logs the error and returns.
    /// - Throws: if the journal's directory cannot be synced either. LevelDB's files then probably cannot be synced
    ///   either: writing to them would not shorten the journal, and a machine failure could destroy the database.
    private func syncJournal() throws(LarderError) {
        do throws(LarderError) {
            return try journal.sync()
        } catch {
            context.report(.debug, "the journal could not be synced before a checkpoint: \(error)")
        }
        do throws(LarderError) {
            try journal.syncCopies()
        } catch {
            context.report(.debug, "the journal could not be synced before a checkpoint: \(error)")
            try journal.syncDirectory(context.directory + "/JOURNAL")
            // Return without an error: the journal cannot be synced, so the entries are safer in LevelDB.
        }
    }

    /// Appends a database's entries to the journal again, and returns the pass that has done that.
    private func rewritten(_ database: Database, upTo sequence: UInt64) -> RewritePass {
        let pass = RewritePass(database, upTo: sequence)
        pass.write()
        return pass
    }

    /// For a database whose LevelDB accepts no writes for now: appends its entries to the journal again, so that the
    /// old segments can be removed. Called with `turn` held.
    /// - Returns: nil if the disk has no space for the entries, or if appending them would not shorten the journal.
    private func rewrite(_ database: Database, _ cut: CommitJournal.Cut, because error: LarderError) -> RewritePass? {
        let bytes = database.journalBytesOfDirty + database.shards.withAllLocked { database.unresolved.byteCount }
        guard bytes < context.options.checkpointBytes || bytes <= trigger.byteCount / 4 * 3 else { return nil }
        guard (try? FileSystem.probe(directory: context.directory + "/JOURNAL", bytes: bytes + (1 << 20))) != nil else {
            return nil
        }
        context.report(
            .debug, "the journal keeps the operations of database '\(database.name)': \(error)", database: database.name
        )
        return rewritten(database, upTo: cut.sequence)
    }

    /// Whether a rewrite of the journal is better than a checkpoint: it shortens the journal to two fifths or less. If
    /// less is gained, the entries are soon written to LevelDB nevertheless, so that the disk is written to more. Called
    /// with `turn` held.
    private var isRewriteDue: Bool {
        guard !trigger.isWanted, !context.memory.isCheckpointDue, !isOld else { return false }
        let dirty = table.all.filter { $0.dirtyCount > 0 }
        let bytes = dirty.reduce(0) { $0 + $1.journalBytesOfDirty }
        return bytes > 0 && bytes <= trigger.byteCount / 5 * 2 && dirty.allSatisfy { $0.isReady(forWriting: true) }
    }

    /// Rewrites the journal even if that saves little space. For tests.
    func rewrite() throws(LarderError) {
        try turn.withLock { () throws(LarderError) in try rewriteInTurn() }
    }

    /// Rewrites the journal. Called with `turn` held.
    private func rewriteInTurn() throws(LarderError) {
        try journal.requireInPlace("checkpoint")
        try pipeline.rollBackWhatFailed("checkpoint")
        guard try checkUnopened(), let cut = journal.cut(isRewrite: true) else { return }
        // Sync first: a power failure must not leave a gap before the new frames. A replay ignores everything after a
        // gap, and the segments with the old copies will be removed.
        try journal.sync()
        metBusy.store(false, ordering: .relaxed)
        // Begin the passes after the cut, so that they include everything in the older segments.
        let passes = table.all.filter(\.needsJournal).map { rewritten($0, upTo: cut.sequence) }
        if try end(cut, passes, nil, before: {}) { context.statistics.journalRewrites.add() }
    }

    /// Removes the segments up to the cut. `passes` must have stored, in LevelDB or in newer segments, all entries of
    /// these segments that are still needed.
    /// - Returns: false if the segments must stay for now.
    private func end(
        _ cut: CommitJournal.Cut, _ passes: [any CheckpointWork], _ failure: LarderError?,
        before: () throws(LarderError) -> Void
    ) throws(LarderError) -> Bool {
        var hasEnded = false
        do throws(LarderError) {
            if let failure { throw failure }
            // A purge that is applied but not yet durable has removed entries from memory. If the purge fails, only the
            // journal still has these entries. So wait for the purge and for newer writes: `drain` returns after they
            // have succeeded or failed.
            pipeline.drain()
            if passes.contains(where: { $0.newest > 0 }), journal.isCurrent(cut) {
                // An entry's new state must be as durable as its old state, whose segment is about to be removed.
                try journal.sync(behind: cut)
                for pass in passes { try pass.noteNewest() }
            }
            try before()
            for case let store? in passes.map(\.openStore) { try syncNames(store) }
            for case let pass as CheckpointPass in passes {
                // Throws if a write has failed since: the entries may then be in an unsynced log.
                try unlessGone(pass.store) { () throws(LarderError) in try pass.store.noteSynced() }
            }
            try noteSynced()
            if !metBusy.load(ordering: .relaxed) { hasEnded = try journal.finish(cut) }
        } catch {
            for pass in passes { pass.abandon() }
            throw error
        }
        guard hasEnded else {
            for pass in passes { pass.abandon() }
            trigger.want()
            return false
        }
        for pass in passes { pass.finish() }
        if cut.sequence == cut.end { noteNothingInJournal() }
        return true
    }

    /// Records that the journal has only entries that LevelDB does not have yet. Called with `turn` held.
    private func noteNothingInJournal() {
        for database in table.all {
            database.isWrittenInJournal.store(false, ordering: .relaxed)
            database.isEvictedInJournal.store(false, ordering: .relaxed)
        }
    }

    /// For each LevelDB that has all entries up to the cut, records there that it no longer needs the journal. After
    /// the old segments are removed, a power failure may lose the header of the next segment. Without this record, the
    /// journal would then seem to have lost entries. Synced by ``noteSynced()``.
    private func noteComplete(_ passes: [any CheckpointWork], _ cut: CommitJournal.Cut) throws(LarderError) {
        guard !metBusy.load(ordering: .relaxed), journal.isCurrent(cut) else { return }
        for database in table.all where !passes.contains(where: { $0.database === database && $0.newest > 0 }) {
            guard let store = database.durableState.store, store.journalNeeded.load(ordering: .relaxed) != 0,
                store.isMade, !store.isFrozen, !store.isSuspended
            else { continue }
            try unlessGone(store) { () throws(LarderError) in try store.note(journalNeeded: 0, sync: false) }
        }
    }

    /// Records how much of each LevelDB is synced, so that a later loss is detected. Called before segments are
    /// removed, because a lost part can be restored only from them.
    private func noteSynced() throws(LarderError) {
        for database in table.all {
            // Skip suspended stores, in which a write has failed: the journal keeps their entries.
            guard let store = database.durableState.store, !store.isSuspended else { continue }
            try unlessGone(store) { () throws(LarderError) in try store.noteSynced() }
        }
    }

    /// Syncs the names of LevelDB's files, because LevelDB syncs its writes to a new log, but never the log's name.
    /// Called before segments are removed, and before entries become clean.
    private func syncNames(_ store: EpochStore) throws(LarderError) {
        guard store.ending == .none, store.isMade, !store.isSuspended else { return }
        try unlessGone(store) { () throws(LarderError) in try journal.syncDirectory(store.path) }
    }

    /// Runs `body`, and ignores its failure if the store was purged or deleted in the meantime and is no longer needed.
    private func unlessGone(_ store: EpochStore, _ body: () throws(LarderError) -> Void) throws(LarderError) {
        do throws(LarderError) { try body() } catch { if isCurrent(store) { throw error } }
    }

    /// Whether a store that could not be written or read is still in use. First waits for running purges and deletions,
    /// which move the files before they mark the store as ended.
    private func isCurrent(_ store: EpochStore) -> Bool {
        pipeline.drain()
        return store.ending == .none
    }

    /// Opens the databases that have not been opened since the start, once, before segments are removed. One of them
    /// may need a lost part of the journal, and this cannot be detected later. Called with `turn` held.
    /// - Returns: false if another thread is working on one of the databases.
    /// - Throws: the damage of a database that needs a lost part. The journal stays until that database is set aside.
    private func checkUnopened() throws(LarderError) -> Bool {
        if isJournalEnough.load(ordering: .relaxed) || context.journalEnd == .max { return true }
        for database in table.all where database.isUnopened {
            do throws(LarderError) {
                guard try database.prepareUnlessBusy() else { return false }
            } catch {
                if database.life.needsMoreJournal { throw error }
                // If the database will be salvaged, the salvage logs the damage.
                let isSalvaged = error.code == .damaged && context.options.onDamage == .salvage
                context.report(
                    isSalvaged ? .debug : .warning,
                    "cannot determine whether database '\(database.name)' needs a lost part of the journal: \(error)",
                    database: database.name)
            }
        }
        isJournalEnough.store(true, ordering: .relaxed)
        return true
    }

    /// Opens the databases that have not been opened yet but may have entries in the journal. Called before the larder
    /// is closed, because they cannot be opened afterwards.
    func openWhatIsDirty() {
        do throws(LarderError) {
            _ = try turn.withLock { () throws(LarderError) in try checkUnopened() }
        } catch {
            context.report(.warning, "the journal is kept for the next start: \(error)")
        }
        for database in table.all where database.needsJournal && !database.isReady(forWriting: true) {
            do throws(LarderError) {
                _ = try database.prepareUnlessBusy()
            } catch {
                context.report(
                    .warning, "the journal keeps the operations of database '\(database.name)': \(error)",
                    database: database.name)
            }
        }
    }

    /// Writes all committed entries of one database to LevelDB. Entries written during the call may stay in memory.
    /// - Returns: the number of entries dropped because they have expired.
    @discardableResult
    func flush(_ database: Database) throws(LarderError) -> PurgeReport {
        if !database.isReady(forWriting: true) { try database.prepare(forWriting: false) }
        let sequence = try syncForFlush()
        while true {
            let report = try turn.withLock { () throws(LarderError) in try flushInTurn(database, upTo: sequence) }
            if let report { return report }
            // This waits for the thread that is opening, purging or deleting the database.
            try database.prepare(forWriting: false)
        }
    }

    /// Like ``flush(_:)``, but does nothing if another checkpoint or flush is running. The running one may take seconds
    /// if other databases have large values.
    /// - Returns: nil if nothing was done.
    func flushIfIdle(_ database: Database) throws(LarderError) -> PurgeReport? {
        if !database.isReady(forWriting: true) { try database.prepare(forWriting: false) }
        guard turn.tryLock() else { return nil }
        defer { turn.unlock() }
        return try flushInTurn(database, upTo: try syncForFlush())
    }

    /// Determines which entries to write, and then syncs the journal: LevelDB must not contain commits that the journal
    /// loses if the machine fails. The order matters: a sync does not cover frames that are appended later.
    /// - Returns: the last sequence to write.
    private func syncForFlush() throws(LarderError) -> UInt64 {
        pipeline.drain()
        try pipeline.rollBackWhatFailed("checkpoint")
        // The last decided unit may be a change of a whole database. Such changes are not in the journal.
        let sequence = min(pipeline.lastDecided, journal.lastAppended)
        try journal.sync()
        return sequence
    }

    /// Writes a database's entries up to `sequence` to LevelDB. Called with `turn` held.
    /// - Returns: the dropped expired entries; nil if nothing was written, because another thread works on the
    ///   database.
    private func flushInTurn(_ database: Database, upTo sequence: UInt64) throws(LarderError) -> PurgeReport? {
        metBusy.store(false, ordering: .relaxed)
        if let store = database.durableState.store, store.isFrozen {
            throw store.knownDamage
                ?? LarderError(.damaged, "it is being salvaged", operation: "checkpoint", database: database.name)
        }
        var room = EvictionRoom()
        guard let pass = try pass(database, upTo: sequence, &room) else {
            return metBusy.load(ordering: .relaxed) ? nil : PurgeReport()
        }
        do throws(LarderError) {
            try syncNames(pass.store)
            // Clean entries may exist only in LevelDB: record how much of it is synced, so that a loss of them is
            // detected as damage.
            try pass.store.noteSynced()
        } catch {
            pass.abandon()
            guard isCurrent(pass.store) else { return PurgeReport() }
            throw error
        }
        pass.finish()
        return pass.expired
    }

    /// The number of failed commits that were rolled back. It does not change while a shard lock is held.
    var rollbackCount: UInt64 { journal.rollbackCount }

    /// Writes a database's entries up to `sequence` to LevelDB.
    /// - Parameter room: the disk space that the running checkpoint may use.
    /// - Returns: nil if there is nothing to write, or if another thread is working on the database. In the second
    ///   case, `metBusy` is set.
    private func pass(
        _ database: Database, upTo sequence: UInt64, journalEnd: UInt64? = nil, _ room: inout EvictionRoom
    ) throws(LarderError) -> CheckpointPass? {
        guard database.needsJournal else { return nil }
        if database.isBeingSalvaged {
            throw LarderError(
                .writesSuspended, "the database is being salvaged; its new writes stay in memory",
                operation: "checkpoint", database: database.name)
        }
        // The entries may come from the journal of the last process. The database may not have been opened since.
        if !database.isReady(forWriting: true), try !database.prepareUnlessBusy() {
            metBusy.store(true, ordering: .relaxed)
            return nil
        }
        let isScarce = room.isScarce && !DatabaseName.isKept(database.name)
        let pass = CheckpointPass(
            database, upTo: sequence, journalEnd: journalEnd, room: room.left(database),
            free: isScarce ? evictor.scarceBytes : .max)
        guard let pass else {
            // If the database was purged or deleted in the meantime, nothing is left to write. Otherwise the journal
            // must keep the entries.
            guard database.needsJournal else { return nil }
            throw LarderError(.io, "its files are not open", operation: "checkpoint", database: database.name)
        }
        do throws(LarderError) {
            try pass.write(
                progress: { noteRoom() },
                sync: { () throws(LarderError) in
                    try journal.syncDirectory(pass.store.path)
                    // Record how much is synced, as at the end of a flush: if a later run fails, the journal may be
                    // rewritten without the clean entries.
                    try pass.store.noteSynced()
                    if isScarce { pass.free = evictor.scarceBytes }
                })
        } catch {
            pass.abandon()
            // A database that was purged or deleted in the meantime has nothing to write.
            guard isCurrent(pass.store) else { return nil }
            throw error
        }
        room.note(database, left: pass.room)
        return pass
    }
}
