import LarderPlatform
import Synchronization

/// A named database of a larder: entries under keys, one policy.
///
/// - Commands see the *applied* state: the entries in memory and, for keys that memory does not have, those in the
///   store (LevelDB). The disk has the *durable* state, which changes when the commit pipeline has written the changes.
/// - A shard's lock orders all operations on its keys. Changes of the whole database hold all shard locks.
/// - Memory before store: an entry leaves memory only after the store has it. A reader that finds nothing in memory
///   finds the last applied entry, or a newer one, in the store.
///
/// Thread-safe. `@unchecked Sendable`: `applied` and `durable` are written with all shard locks held and read with at
/// least one; shards guard themselves; the rest is constant.
package final class Database: DatabaseIdentity, @unchecked Sendable {
    package let name: String
    /// Whether this is the larder's internal database: see ``Ledger``.
    let isLedger: Bool
    let number: Int
    let files: DatabaseFiles
    let context: EngineContext
    private let time: EngineTime
    let pipeline: CommitPipeline
    let checkpointer: any Checkpointing
    let roster: DatabaseTable
    let damage: DamageReports
    let life = DatabaseLife()
    let shards: DatabaseShards
    let indexing: DatabaseIndexes
    /// Whether the journal may have entries that LevelDB has too. Changed with the checkpointer's turn held.
    let isWrittenInJournal = Atomic<Bool>(false)
    /// Whether the journal may have entries that were evicted, and that its replay would restore.
    let isEvictedInJournal = Atomic<Bool>(false)
    /// Whether the part of the journal with its operations was replayed in the background.
    let isReplayed = Atomic<Bool>(false)
    /// The policy and the disk limit at the start, for callers that do not wait for the replay. Constant after that.
    package internal(set) var atStart: (settings: DatabasePolicy, diskLimit: Int)
    /// Whether the entries in memory are hidden, because some belong to a failed commit. Guarded by all shard locks.
    private var isWithheld = false
    /// The database's operations in the journal, while the epoch is unknown. Guarded by all shard locks.
    var unresolved = UnresolvedOperations()

    // Read by every command, so Swift does not check these accesses for overlaps. The shard locks prevent overlaps.
    @exclusivity(unchecked) var applied: DatabaseState
    @exclusivity(unchecked) var durable: DatabaseState

    init(
        name: String, number: Int, exists: Bool, context: EngineContext, pipeline: CommitPipeline,
        checkpointer: any Checkpointing, roster: DatabaseTable, damage: DamageReports
    ) {
        self.name = name
        isLedger = name == DatabaseName.ledger
        self.number = number
        self.context = context
        time = context.time
        self.pipeline = pipeline
        self.checkpointer = checkpointer
        self.roster = roster
        self.damage = damage
        files = DatabaseFiles(name: name, context: context.larder, damage: damage)
        shards = DatabaseShards(
            budget: context.memory, disk: context.larder.disk, pinnedBytesMin: context.options.pinnedBytesMin)
        indexing = DatabaseIndexes(context.options.indexMaker) { [loop = context.indexLoop] in loop.wake() }
        // The ledger has few entries, and takes no part in the memory budget of the other databases.
        if !isLedger { context.memory.register(shards.all) }
        let rules = FreshnessRules(policy: context.options.defaultPolicy)
        applied = DatabaseState(presence: exists ? .closed : .absent, rules: rules)
        durable = applied
        atStart = (rules.settings, 0)
    }

    deinit {
        // The shards are about to be released, so the memory budget must not use them any more.
        context.memory.unregister(shards.all)
        for shard in shards.all { context.statistics.take(shard.takeCounters()) }
    }
}

extension Database {
    /// Adds to the counters of hits and misses, for reads that are not counted otherwise, or to correct double counts.
    package func noteReads(hits: Int, misses: Int) {
        shards.withLocked(0) { shard in
            shard.counters.hits += hits
            shard.counters.misses += misses
        }
    }

    /// Counts a purge by a user of the library.
    /// - Parameter entries: the known number of removed entries.
    package func notePurge(entries: Int) {
        shards.withLocked(0) { shard in
            shard.counters.purges += 1
            shard.counters.removals += entries
        }
    }

    /// Counters of the operations on this database's keys since the larder was opened.
    package var counts: Shard.Counters {
        shards.all.reduce(into: Shard.Counters()) { counts, shard in
            shard.lock.withLock {
                counts.add(shard.previousCounters)
                counts.add(shard.counters)
            }
        }
    }

    /// The state as seen by commands.
    var appliedState: DatabaseState { shards.withOneLocked { applied } }

    /// The state on the disk.
    var durableState: DatabaseState { shards.withOneLocked { durable } }

    // MARK: For the commit pipeline and the checkpointer

    /// Drops all entries from memory, and makes the durable state the applied one. The caller then restores from the
    /// journal the entries that LevelDB does not have. Called with all shard locks held.
    func revertToDurable() {
        clearEntries()
        revertStateOnly()
    }

    /// Reverts the state and leaves the entries as they are. Called with all shard locks held.
    func revertStateOnly() {
        isWithheld = false
        if let store = applied.store, store !== durable.store {
            store.end(.deleted)
            context.disposalQueue.add(store)
        }
        applied = durable
        indexes.follow()
    }

    /// Whether memory has every entry that LevelDB lacks. False while a change of the whole database has dropped
    /// entries, but is not durable yet. Called with all shard locks held.
    var isMemoryWhole: Bool {
        if applied.isShut { return true }
        return isWithheld || applied.store === durable.store
    }

    /// Like ``revertStateOnly()``, for a journal that cannot be read. Until it can be read, uses of the database fail
    /// with `error`: memory still has entries of failed commits, and LevelDB has older ones. Called with all shard
    /// locks held.
    func revertIncompletely(isCleared: Bool, _ error: LarderError) {
        let isWhole = isMemoryWhole && !isCleared
        revertStateOnly()
        guard case .open = durable.presence else { return }
        // Clean entries do not belong to the failed commit, so they need not be hidden.
        if isWhole, shards.all.allSatisfy({ $0.table.dirtyCount == 0 }) { return }
        isWithheld = isWhole
        applied.presence = .failed(
            LarderError(.io, "the journal cannot be read: \(error)", operation: "use", database: name))
    }

    /// The epoch (number of the LevelDB) of the entries in memory; 0 if there is none, or it is unknown. Called with a
    /// shard lock held.
    var epochOfEntries: UInt64 {
        if applied.isShut { return durable.epoch }
        return applied.epoch
    }

    /// The store of the entries in memory; nil if it is not open. Called with a shard lock held.
    var storeOfEntries: EpochStore? {
        // A larder that is being closed still has applied entries to write.
        if applied.isShut { return durable.store }
        return applied.store
    }

    /// The rules by which entries are removed from LevelDB. Called with a shard lock held.
    var removalRulesLocked: RemovalRules {
        RemovalRules(applied: applied.rules, durable: durable.rules, context.expiryHold.state)
    }
    var removalRules: RemovalRules { shards.withOneLocked { removalRulesLocked } }

    /// The number of entries that LevelDB does not have yet.
    var dirtyCount: Int { shards.sum { $0.dirtyCount } }
    /// Whether some of the database's entries are on the disk only in the journal.
    var needsJournal: Bool { dirtyCount > 0 || shards.withAllLocked { !unresolved.isEmpty } }
    /// The bytes in memory of entries that LevelDB does not have yet.
    var dirtyByteCount: Int { shards.sum { $0.dirtyByteCount } }

    /// Records that entries of LevelDB, or entries that are being written to it, are about to be evicted.
    func noteEviction() {
        if isWrittenInJournal.load(ordering: .relaxed) { isEvictedInJournal.store(true, ordering: .relaxed) }
    }

    /// Ensures that a crash restores no evicted entry: removes them from the journal.
    package func dropEvictedFromJournal() throws(LarderError) {
        if isEvictedInJournal.load(ordering: .relaxed) { try checkpointer.checkpoint() }
    }

    /// Drops all entries from memory, and marks reads in progress as outdated. Called with all shard locks held.
    func clearEntries() {
        unresolved = UnresolvedOperations()
        for shard in shards.all { shard.clear() }
        indexing.dirty.removeAll()
    }

    // MARK: Changes

    /// Returns the change that reports the removal of an expired entry; nil if there are no subscribers.
    func sweptChange(_ key: [UInt8], _ header: RecordHeader, _ rules: FreshnessRules) -> EntryChange? {
        guard context.changes.isOn, let deadline = rules.deadline(header) else { return nil }
        return EntryChange(database: self, key: key, kind: .swept(header, deadline: deadline), previous: .absent)
    }

    // MARK: Available at any time

    /// The policy that entries without a rule of their own follow now.
    package var rules: FreshnessRules { shards.withOneLocked { applied.rules } }

    package var policy: UpdatePolicy { rules.policy }

    /// Returns the engine's time, for one command or call.
    package func now() -> Int64 { time.now() }
    /// The milliseconds by which ``now()`` is ahead of the wall clock: 0 unless the wall clock was set back.
    package var timeAhead: Int64 { time.offsetMilliseconds }
    /// Like ``now()``, but for background work: does not mark the time as used.
    func unnoticedNow() -> Int64 { time.unnoticed() }

    /// Whether there are files that are not open yet, or could not be opened.
    var isUnopened: Bool { durableState.isUnopened }

    /// Whether a command can run without opening, creating or reopening files first. Cheap: event loops call it, and
    /// leave ``prepare(forWriting:policy:)`` to a thread that may block.
    package func isReady(forWriting: Bool) -> Bool { appliedState.isReady(forWriting: forWriting) }

    /// Whether there are no files and the database was not deleted.
    var isAbsent: Bool { appliedState.isAbsent }

    /// Whether the database was deleted. If so, this object cannot be used again.
    package var isDeleted: Bool { if case .deleted = appliedState.presence { true } else { false } }

    /// Whether the database has files.
    package var exists: Bool { appliedState.exists }

    /// `open`, `closed`, `absent`, `failed`, `damaged` or `deleted`.
    package var condition: String { appliedState.condition }

    /// Whether LevelDB accepts no writes because a salvage copies its entries to a new one.
    var isBeingSalvaged: Bool { durableState.store?.isFrozen ?? false }

    /// The result of the last salvage since the larder was opened; nil if there was none.
    package var lastSalvage: SalvageSummary? { life.lastSalvage }

    /// Logs a message about the database. The message must not contain values of entries.
    /// - Parameters:
    ///   - key: the key that the message is about.
    ///   - error: the error that a caller's code has thrown.
    package func report(_ level: CacheEvent.Level, _ message: String, key: Key? = nil, error: (any Error)? = nil) {
        let more = key.map { ["key": $0.description] } ?? [:]
        context.larder.report(level, "database '\(name)': \(message)", database: name, more, error: error)
    }

    package func deletedError(_ operation: String) -> LarderError {
        LarderError(.deleted, "the database was deleted; open it again by name", operation: operation, database: name)
    }
}

/// The checkpointer's operations for a database. Thread-safe; operations that may run a checkpoint may block.
protocol Checkpointing: AnyObject, Sendable {
    /// Whether writers should help, because too many bytes wait to be written to LevelDB.
    func isFull(for write: PendingWrite) -> Bool
    /// The number of failed commits that were rolled back. It does not change while a shard lock is held.
    var rollbackCount: UInt64 { get }

    /// If ``isFull(for:)``: writes a checkpoint on this thread, or waits for the one under way.
    /// - Returns: false if the checkpoint failed.
    func assist(for write: PendingWrite) -> Bool
    /// Runs a checkpoint: writes all committed entries to LevelDB.
    func checkpoint() throws(LarderError)
    /// Writes the committed entries of one database to LevelDB. Entries written during the call may stay in memory.
    /// - Returns: the entries that were dropped because they had expired.
    @discardableResult
    func flush(_ database: Database) throws(LarderError) -> PurgeReport
    /// Like ``flush(_:)``, but does nothing while a checkpoint or another flush is running.
    /// - Returns: nil if nothing was done.
    func flushIfIdle(_ database: Database) throws(LarderError) -> PurgeReport?
    /// Runs `body` while no checkpoint is under way.
    func withTurn<Result, Failure: Error>(_ body: () throws(Failure) -> Result) throws(Failure) -> Result
}
