import LarderPlatform
// Re-export the types that the engine shares with clients in other processes, because they are part of the engine's
// interface.
@_exported import LarderVocabulary
import Synchronization

/// An open larder: a directory of named databases.
///
/// A process that opens a larder several times gets the same engine. The engine shuts down when the last reference to
/// it is released, or by ``shutdown()``.
///
/// Thread-safe.
package final class Engine: Sendable {
    private struct State: ~Copyable {
        var lockFile: LarderLock?
        var isShutDown = false
    }

    /// The directory, without symbolic links.
    package let directory: String
    package let pipeline: CommitPipeline
    let context: EngineContext
    private let table: DatabaseTable
    private let damage: DamageReports
    private let journal: CommitJournal
    private let evictor: Evictor
    private let checkpointer: Checkpointer
    private let maintenance: Maintenance
    private let replay: BackgroundReplay
    private let images: LarderImages
    /// The internal database in which the larder stores its own facts.
    package let ledger: Ledger
    /// Notifies observers of entries.
    package let observation: Observation
    private let state: Locked<State>

    /// Opens a larder, and creates its directory if it is missing. Does not open its databases. Replays the journal
    /// before it returns, unless ``EngineOptions/onReplayFailure`` is set.
    /// - Parameters:
    ///   - options: ignored if the process has the larder open already.
    /// - Throws: ``LarderError/Code/larderHeld`` if another process has it open.
    package static func open(
        _ directory: String, options: EngineOptions = EngineOptions(), time: any TimeSource = SystemTimeSource()
    ) throws(LarderError) -> Engine {
        ForkGuard.install()
        try ForkGuard.check("open larder")
        return try EngineRegistry.shared.open(try prepareDirectory(directory)) { (path) throws(LarderError) in
            try Engine(path, options, EngineTime(time))
        }
    }

    private static func prepareDirectory(_ directory: String) throws(LarderError) -> String {
        guard !directory.isEmpty, !directory.utf8.contains(0) else {
            throw LarderError(
                .invalidArgument, "the path of the larder's directory is empty", operation: "open larder")
        }
        try LarderError.wrapping("open larder") { () throws(FileError) in try FileSystem.makeDirectories(directory) }
        guard let path = FileSystem.canonical(directory) else {
            throw LarderError(.io, "\(directory) cannot be resolved", operation: "open larder")
        }
        return path
    }

    private init(_ path: String, _ options: EngineOptions, _ time: EngineTime) throws(LarderError) {
        directory = path
        state = Locked(State(lockFile: try LarderLock(directory: path, socket: options.holderSocket)))
        context = EngineContext(directory: path, options: options, time: time)
        try context.sequences.load()
        let hasLedger = try Ledger.findOrRemakeDirectory(context)
        table = DatabaseTable()
        damage = DamageReports()
        journal = try CommitJournal(
            context: context.larder, trigger: CheckpointTrigger(disk: context.larder.disk, memory: context.memory))
        let recovery = JournalRecovery(journal: journal, table: table, context: context)
        pipeline = CommitPipeline(
            context: context.larder, journal: journal, changes: context.changes, changeLog: context.changeLog,
            rollBack: recovery.rollBack)
        evictor = Evictor(context: context, table: table)
        checkpointer = Checkpointer(
            context: context, table: table, journal: journal, pipeline: pipeline, evictor: evictor)
        images = LarderImages(
            context: context, table: table, journal: journal, checkpointer: checkpointer, pipeline: pipeline)
        observation = Observation(context)
        // Create the ledger's database first: databases are locked in the order of their creation, and the ledger must
        // be the first.
        let facts = table.findOrAdd(DatabaseName.ledger) { [context, pipeline, checkpointer, table, damage] number in
            Database(
                name: DatabaseName.ledger, number: number, exists: hasLedger, context: context, pipeline: pipeline,
                checkpointer: checkpointer, roster: table, damage: damage)
        }
        guard let facts else { preconditionFailure("a new table is open") }
        ledger = Ledger(facts)
        maintenance = Maintenance(
            context: context, table: table, damage: damage, journal: journal, checkpointer: checkpointer,
            evictor: evictor, observation: observation)
        replay = BackgroundReplay(recovery)
        let rest: ReplayPlan?
        do throws(LarderError) {
            try context.timeKeeper.begin()
            try readDirectory()
            rest = try recovery.recover()
            pipeline.begin(behind: context.sequences.base)
            try ledger.load(table.all)
        } catch {
            giveUp()
            throw error
        }
        context.changeLog.prepare()
        evictor.noteLimits()
        pipeline.start(onDemand: options.startsThreadsOnDemand)
        if options.backgroundMaintenance { maintenance.startSyncing() }
        replay.start(rest, of: table.all) { [maintenance] in
            if options.backgroundMaintenance { maintenance.start() }
        }
    }

    deinit { shutdown() }

    /// Releases everything after the larder could not be opened. Does not change the disk. `deinit` still runs
    /// afterwards.
    private func giveUp() {
        state.withLock { $0.isShutDown = true }
        for database in table.all { database.shut() }
        journal.close()
        table.removeAll()
        state.withLock { $0.lockFile = nil }
    }

    /// Finds the databases in the larder's directory, and removes the leftovers of a crash.
    private func readDirectory() throws(LarderError) {
        let names: [String]
        names = try LarderError.wrapping("open larder") { () throws(FileError) in try FileSystem.list(directory) }
        DamagedFiles.clear(context.larder)
        if ledger.database.exists { ledger.database.adoptPointer() }
        for name in names {
            let path = directory + "/" + name
            if name.hasPrefix(DiskBudget.imagePrefix) {
                try? FileSystem.removeTree(path)
            } else if name.hasPrefix(".creating-") || name.hasPrefix(".deleted-") {
                if let epoch = name.split(separator: "-").last.flatMap({ UInt64($0) }) { context.noteEpoch(epoch) }
                try? FileSystem.removeTree(path)
            } else if DatabaseName.isValid(name) {
                switch DatabaseDirectory(path) {
                case .database: try add(name, exists: true).adoptPointer()
                case .absent: break
                case .foreign: context.report(.warning, "\(path) is not a database of this larder; it is ignored")
                case .unreadable(let error):
                    context.report(
                        .error,
                        "\(error): database '\(name)' cannot be used until that is fixed; its operations stay in the "
                            + "journal", database: name)
                    try add(name, exists: true).adoptPointer()
                }
            }
        }
        noteDatabases()
    }

    /// Reports databases that existed before and are missing now, or were missing and are back. Records the existing
    /// ones, so that the next start can compare.
    private func noteDatabases() {
        let (missing, back) = context.sequences.found(Set(table.all.filter(\.exists).map(\.name)))
        for name in back {
            context.statistics.databasesMissing.add()
            context.report(
                .error,
                "database '\(name)' is back after it was lost. It lacks operations that only the journal had then, so "
                    + "entries may be older than acknowledged writes and removals: purge it if that does harm",
                database: name)
        }
        for name in missing {
            context.statistics.databasesMissing.add()
            context.report(
                .error,
                "database '\(name)' is lost: its files are missing from \(directory)/\(name), and what only the journal had is "
                    + "dropped. Unless they were removed on purpose, close the larder and restore them, from a backup if "
                    + "necessary", database: name)
        }
    }

    private func add(_ name: String, exists: Bool) throws(LarderError) -> Database {
        let database = table.findOrAdd(name) { number in
            Database(
                name: name, number: number, exists: exists, context: context, pipeline: pipeline,
                checkpointer: checkpointer, roster: table, damage: damage)
        }
        guard let database else {
            throw LarderError(.closed, "the larder was closed", operation: "open", database: name)
        }
        return database
    }

    /// Whether all databases are replayed. Until then, a call on a database blocks until that database is replayed.
    /// One atomic load.
    package var isReplayed: Bool { replay.isOver }

    /// Whether the use of a database does not block because of the replay. Always false for databases that were created
    /// during the replay: until it is over, creating their files blocks. Two atomic loads.
    package func isReplayed(_ database: Database) -> Bool {
        replay.isOver || database.isReplayed.load(ordering: .acquiring)
    }

    /// How much of the journal was replayed, and its size, in bytes; nil when all databases are replayed. Does not block.
    package var replayProgress: (done: Int, total: Int)? { replay.progress }

    /// Calls `body` now, and whenever another database is replayed, until all are. `body` is called on any thread, and
    /// must not block. Can be called once.
    package func onReplayProgress(_ body: @escaping @Sendable () -> Void) { replay.onProgress(body) }

    /// Whether the engine has not been shut down.
    var isUsable: Bool { state.withLock { !$0.isShutDown } }
}

extension Engine {
    // MARK: Databases

    /// Returns the database with this name. Creates no files; the first write does that, or
    /// ``Database/prepare(forWriting:policy:)``.
    package func database(_ name: String = DatabaseName.standard) throws(LarderError) -> Database {
        try DatabaseName.check(name, operation: "open")
        return try add(name, exists: false)
    }

    /// Opens the database with this name, and creates its files if they are missing.
    /// - Parameter policy: the database's new policy; nil to keep the current policy.
    package func openDatabase(
        _ name: String, policy: UpdatePolicy? = nil, grace: Int64? = nil, jitter: Int? = nil
    ) throws(LarderError) -> Database {
        let database = try database(name)
        try database.prepare(
            forWriting: true, policy: policy.map { DatabasePolicy($0, grace: grace ?? 0, jitter: jitter ?? 0) })
        if let policy {
            let present = database.rules.settings
            let settings = DatabasePolicy(policy, grace: grace ?? present.grace, jitter: jitter ?? present.jitter)
            if settings != present { try database.setPolicy(policy, grace: grace, jitter: jitter) }
        }
        return database
    }

    /// The log of the latest changes of databases that have followers.
    package var changeLog: ChangeLog { context.changeLog }

    /// The number of failed fetches from origins that callers have reported.
    package var originFailures: Int { context.leases.failures.read() }

    /// The databases that have files, in the order of their names. Does not wait until they are replayed.
    package var databases: [Database] {
        table.all.filter { !$0.isLedger && (isReplayed($0) ? $0.exists : FileSystem.exists($0.files.directory)) }
            .sorted { $0.name < $1.name }
    }

    /// Ends all leases of all databases, so that values being fetched now are not stored.
    package func endAllLeases() { for database in table.all { database.leases.end(prefix: []) } }

    /// Deletes a database with its files, even while it is open. From then on, calls on its handles fail.
    package func deleteDatabase(_ name: String, counting: Bool = false) throws(LarderError) -> PurgeReport {
        try existing(name, "delete").delete(counting: counting)
    }

    /// Moves a damaged database to `DAMAGED/`, and starts an empty one with the same policy.
    /// - Throws: ``LarderError/Code/invalidArgument`` if the database is not damaged.
    package func setAsideDamaged(_ name: String) throws(LarderError) {
        try DatabaseRepair(database: try existing(name, "set aside")).setAside()
    }

    /// Salvages a damaged database: copies everything that can be read from its files, and its entries in the journal
    /// and in memory, into new files. First reads the whole database to find the damage.
    /// - Throws: ``LarderError/Code/invalidArgument`` if the database is not damaged.
    package func salvageDamaged(_ name: String) throws(LarderError) -> SalvageSummary {
        try DatabaseRepair(database: try existing(name, "salvage")).salvage()
    }

    private func existing(_ name: String, _ operation: String) throws(LarderError) -> Database {
        try DatabaseName.check(name, operation: operation)
        guard isUsable else {
            throw LarderError(.closed, "the larder was closed", operation: operation, database: name)
        }
        guard let database = table.find(name), database.exists else {
            throw LarderError(.noSuchDatabase, "there is no database '\(name)'", operation: operation, database: name)
        }
        return database
    }

    // MARK: The larder

    /// The engine's clock. Callers that need the time very often read it directly.
    package var clock: EngineTime { context.time }

    package var changes: ChangeStream { context.changes }

    package var leases: LeaseContext { context.leases }

    /// Returns the engine's time in milliseconds since 1970. Each command or call reads the time only once.
    package func now() -> Int64 { context.time.now() }
    /// The time in milliseconds by which the engine's clock is ahead of the wall clock, because the wall clock was set
    /// back. Add it to an instant of the wall clock to get the engine's instant; subtract it for the reverse.
    package var clockOffsetMilliseconds: Int64 { context.time.offsetMilliseconds }
    /// All counters. During the replay, without the latest counts of shards that are locked, so it never blocks then.
    package var statistics: Statistics {
        let isReplayed = isReplayed
        for shard in context.memory.all where isReplayed || shard.lock.tryLock() {
            if isReplayed { shard.lock.lock() }
            context.statistics.take(shard.takeCounters())
            shard.lock.unlock()
        }
        return context.statistics
    }
    package var options: EngineOptions { context.options }
    /// The limit and the present total size of entries in memory, in bytes. During the replay, the size is approximate.
    package var memory: (limitBytes: Int, usedBytes: Int) {
        (context.memory.limitBytes, isReplayed ? context.memory.measure() : context.memory.usedBytes)
    }
    /// Changes the memory limit. Evicts excess entries, except dirty ones, before it returns; during the replay, leaves
    /// them to later writes. Thread-safe.
    package func changeMemoryLimit(to bytes: Int) { context.memory.changeLimit(to: bytes, evicts: isReplayed) }
    /// The limit of the total size of the larder's files, in bytes; nil for none.
    package var diskLimitBytes: Int? { context.larder.disk.limitBytes }
    /// The total size of the larder's files, in bytes. Costs one system call for each file.
    package var diskBytes: Int { context.larder.disk.measure() }
    /// Changes the limit of the total size of the larder's files. The eviction removes excess entries in the
    /// background. Thread-safe.
    /// - Parameter bytes: at least ``DiskThresholds/larderBytesMin``; nil for none.
    package func changeDiskLimit(to bytes: Int?) { context.larder.disk.changeLimit(to: bytes) }
    /// The number of bytes of pending outbox writes, which are never evicted.
    package var held: HeldBytes { context.larder.held }
    /// Why the last write failed, or why a replayed database currently accepts no writes; nil if writes succeed.
    package var writeFailure: LarderError? {
        pipeline.lastFailure ?? pipeline.refusal("write") ?? databaseFailure("write")
    }

    private func databaseFailure(_ operation: String) -> LarderError? {
        for database in table.all where isReplayed(database) {
            if case .failed(let error) = database.appliedState.presence, error.code == .io,
                error.systemErrorNumber != nil
            {
                return error
            }
            if let error = database.durableState.store?.suspension(operation) { return error }
        }
        return nil
    }

    /// The largest resident memory of the process since the last reset: of twice a second, and of this call.
    package func residentPeak(_ residentBytes: Int) -> Int {
        context.memory.residentPeak.max(residentBytes, ordering: .relaxed).newValue
    }

    package func resetResidentPeak() { context.memory.residentPeak.store(0, ordering: .relaxed) }
    /// The size of the journal's files, in bytes.
    package var journalByteCount: Int { journal.trigger.byteCount }
    /// Returns the time of the monotonic clock in milliseconds, for timers.
    package func monotonic() -> Int64 { context.time.monotonic() }
    /// The number of failed commits that were rolled back. Values stored before the last rollback may be lost. One
    /// atomic load.
    package var rollbackCount: UInt64 { checkpointer.rollbackCount }

    /// Runs one round of maintenance on the calling thread: due syncs, retries after failed writes, removal of expired
    /// entries, and removal of purged files. If the larder has no background threads, also runs a checkpoint, evictions
    /// and compactions.
    /// - Returns: whether there are more expired entries to remove now.
    @discardableResult
    package func maintain() -> Bool { isUsable && !ForkGuard.isForked && maintenance.round() }

    /// Commits all applied changes, and writes them to LevelDB with an fsync. May block.
    /// - Throws: also if a database's files cannot be used. Its entries then stay in the journal.
    package func save() throws(LarderError) {
        try ForkGuard.check("save")
        guard isUsable else { throw LarderError(.closed, "the larder was closed", operation: "save") }
        try pipeline.waitForAllCommits()
        try checkpointer.checkpoint()
        if let failure = databaseFailure("save") { throw failure }
    }

    /// Creates an image: a copy of all files of the larder as of one instant. Passes it to `body`, and then removes it.
    /// The image can be opened as a larder, and contains every commit unit up to that instant. Other work continues,
    /// but checkpoints and changes of whole databases wait for some milliseconds.
    ///
    /// Tables in the image are hard links to the larder's tables, which never change. The other files are copied. They
    /// are small, because a checkpoint before the copy shortens the journal.
    /// - Parameters:
    ///   - names: names of further files in the larder's directory, which the caller has created. They are copied
    ///     unchanged.
    ///   - leavingOut: called with the damage of each database that cannot be copied. If nil, such damage is thrown as
    ///     an error.
    ///   - body: receives the directory of the image, which is on the larder's file system.
    package func withImage<Result>(
        adding names: [String], for operation: String = "backup", leavingOut: ((LarderError) -> Void)? = nil,
        _ body: (String) throws -> Result
    ) throws -> Result {
        try ForkGuard.check(operation)
        guard isUsable else { throw LarderError(.closed, "the larder was closed", operation: operation) }
        let place = directory + "/" + DiskBudget.imagePrefix + "\(context.nextEpoch(after: 0))"
        defer { try? FileSystem.removeTree(place) }
        do throws(LarderError) { try images.make(at: place, adding: names, leavingOut: leavingOut) } catch {
            throw LarderError(
                error.code, error.message, operation: operation, database: error.database, underlying: error.underlying)
        }
        return try body(place)
    }

    /// Starts a round of maintenance in the background now.
    package func wakeMaintenance() { maintenance.wake() }

    /// Suspends the removal of expired entries, and the notifications of `expired`, until `end`, an instant of the
    /// monotonic clock in milliseconds. Reads still do not return expired entries.
    package func holdExpiry(until end: Int64) {
        context.expiryHold.pause(until: end)
        maintenance.wake()
    }

    /// Returns the size of an entry in memory, in bytes.
    package static func entryBytes(keyCount: Int, _ header: RecordHeader, payloadCount: Int) -> Int {
        let fixed = RecordView(header, tail: UnsafeRawBufferPointer(start: nil, count: 0))
        let tailCount = header.byteCount - header.fixedCount + payloadCount
        let bytes = keyCount + PackedRecord(fixed, storedFrom: .max).byteCount + tailCount
        return EntryPointer.overheadBytes + (bytes + 7) / 8 * 8
    }

    package var isExpiryHeld: Bool { context.expiryHold.isPaused }

    /// Keeps expired entries whose own deadline is at or after `time`, in milliseconds since 1970, until their expiry
    /// is reported; `max` for none.
    package func keepExpired(from time: Int64) { context.expiryHold.keep(from: time) }

    /// Returns the process that, according to the LOCK file, has the larder in `directory` open. The process may no
    /// longer exist.
    package static func holder(of directory: String) -> (pid: String, socket: String?)? {
        LarderLock.readHolder(directory: directory)
    }

    /// Commits and syncs all applied changes, closes every database, and unlocks the larder for other processes.
    /// Idempotent. Later calls on handles, snapshots and cursors fail with ``LarderError/Code/closed``.
    package func shutdown() {
        let isFirst = state.withLock { state in
            defer { state.isShutDown = true }
            return !state.isShutDown
        }
        // The threads do not exist in a forked child, and the files belong to the parent.
        guard isFirst, !ForkGuard.isForked else { return }
        replay.wait()
        guard replay.isOver else {
            // The replay has failed: entries are missing in memory, so change no files.
            journal.close()
            table.removeAll()
            state.withLock { $0.lockFile = nil }
            return EngineRegistry.shared.closed(directory)
        }
        maintenance.stop()
        checkpointer.openWhatIsDirty()
        table.close()
        let databases = table.all
        for database in databases { database.beginShutdown() }
        pipeline.stop()
        do throws(LarderError) {
            try checkpointer.checkpoint()
        } catch {
            context.report(.error, "the last checkpoint failed; the journal is kept: \(error)")
        }
        for database in databases { database.shut() }
        // Commit or fail the units that were queued after the pipeline stopped, so that no caller waits forever.
        pipeline.drain()
        context.changeLog.close()
        journal.close()
        context.disposalQueue.clear { context.report($0, $1) }
        context.timeKeeper.end()
        // Break reference cycles.
        _ = damage.take()
        table.removeAll()
        state.withLock { $0.lockFile = nil }
        context.options.onShutdown()
        EngineRegistry.shared.closed(directory)
    }
}
