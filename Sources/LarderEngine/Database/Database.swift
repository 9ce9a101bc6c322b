import Platform
import Synchronization

/// A named database of a larder: entries under keys, one policy.
///
/// - What commands see is the *applied* state: the entries in memory of its shard, and where those know nothing of a key, the
///   store. What is on the disk is the *durable* state; it follows when the commit pipeline has written.
/// - A shard's lock orders everything done to its keys. Changes of the whole database hold all shard locks.
/// - Memory before store: an entry that the store does not have leaves memory only after the store has it, so who finds
///   nothing in memory finds in the store what was applied before, or something newer.
///
/// Thread-safe. The proof for `@unchecked Sendable`: `applied` and `durable` are written with all shard locks held and
/// read with at least one; shards guard themselves; the rest is constant.
package final class Database: DatabaseIdentity, @unchecked Sendable {
    package let name: String
    let number: Int
    let files: DatabaseFiles
    let context: EngineContext
    private let time: EngineTime
    let pipeline: CommitPipeline
    let checkpointer: any Checkpointing
    let roster: any DatabaseRoster
    let damage: DamageReports
    let life = DatabaseLife()
    let shards: DatabaseShards
    /// Whether memory has all entries and nobody may see them, because some were refused. Guarded by all shard locks.
    private var isWithheld = false
    /// What the journal has of the database while its epoch is not known. Guarded by all shard locks.
    var unresolved = UnresolvedOperations()

    // Looked at by every command; the shard locks see to it that no two accesses overlap.
    @exclusivity(unchecked) var applied: DatabaseState
    @exclusivity(unchecked) var durable: DatabaseState

    init(
        name: String, number: Int, exists: Bool, context: EngineContext, pipeline: CommitPipeline,
        checkpointer: any Checkpointing, roster: any DatabaseRoster, damage: DamageReports
    ) {
        self.name = name
        self.number = number
        self.context = context
        time = context.time
        self.pipeline = pipeline
        self.checkpointer = checkpointer
        self.roster = roster
        self.damage = damage
        files = DatabaseFiles(name: name, context: context, damage: damage)
        shards = DatabaseShards(budget: context.memory)
        context.memory.register(shards.all)
        let rules = FreshnessRules(policy: context.options.defaultPolicy)
        applied = DatabaseState(presence: exists ? .closed : .absent, rules: rules)
        durable = applied
    }

    deinit {
        // Nobody looks at them through the budget any more when they go.
        context.memory.unregister(shards.all)
        for shard in shards.all { context.statistics.take(shard.takeCounters()) }
    }

    /// What was done to this database's keys since the larder was opened.
    package var counts: Shard.Counters {
        shards.all.reduce(into: Shard.Counters()) { counts, shard in
            shard.lock.withLock {
                counts.add(shard.formerCounters)
                counts.add(shard.counters)
            }
        }
    }

    /// The state that commands see now.
    var appliedState: DatabaseState { shards.withOneLocked { applied } }

    /// The state on the disk.
    var durableState: DatabaseState { shards.withOneLocked { durable } }

    // MARK: What the commit pipeline and the checkpointer call

    /// Drops everything that is applied but not durable; the journal then gives back what LevelDB does not have. Called
    /// with all shard locks held.
    func revertToDurable() {
        clearEntries()
        revertStateOnly()
    }

    /// As ``revertToDurable()``, with the entries left as they are. Called with all shard locks held.
    func revertStateOnly() {
        isWithheld = false
        if let store = applied.store, store !== durable.store {
            store.end(.deleted)
            context.disposalQueue.add(store)
        }
        applied = durable
    }

    /// Whether memory has all that LevelDB does not have: it lets go of that when the database is changed as a whole, before
    /// that is durable. Called with all shard locks held.
    var isMemoryWhole: Bool {
        if applied.isShut { return true }
        return isWithheld || applied.store === durable.store
    }

    /// As ``revertStateOnly()``, where the journal cannot tell for now what counts: until it can, reads answer `error`, and
    /// neither what was refused and memory has still, nor what LevelDB has of before. Called with all shard locks held.
    func revertIncompletely(isCleared: Bool, _ error: LarderError) {
        let isWhole = isMemoryWhole && !isCleared
        revertStateOnly()
        guard case .open = durable.presence else { return }
        // What is clean was there before.
        if isWhole, shards.all.allSatisfy({ $0.table.dirtyCount == 0 }) { return }
        isWithheld = isWhole
        applied.presence = .failed(
            LarderError(.io, "the journal cannot be read: \(error)", operation: "use", database: name))
    }

    /// The epoch that the entries in memory belong to; 0 where there is none, or nobody knows. Called with a shard lock held.
    var epochOfEntries: UInt64 {
        if applied.isShut { return durable.epoch }
        return applied.epoch
    }

    /// The store that the entries in memory belong to; nil when it is not open. Called with a shard lock held.
    var storeOfEntries: EpochStore? {
        // What a larder that is being closed has applied is still to be written.
        if applied.isShut { return durable.store }
        return applied.store
    }

    /// By which entries are taken out of LevelDB. Called with a shard lock held.
    var removalRulesLocked: RemovalRules { RemovalRules(applied: applied.rules, durable: durable.rules) }
    var removalRules: RemovalRules { shards.withOneLocked { removalRulesLocked } }

    /// How many entries LevelDB does not have yet.
    var dirtyCount: Int { shards.sum { $0.dirtyCount } }
    /// Whether the journal has something of the database that nothing else on the disk has.
    var needsJournal: Bool { dirtyCount > 0 || shards.withAllLocked { !unresolved.isEmpty } }
    /// The bytes in memory of entries that LevelDB does not have yet.
    var dirtyByteCount: Int { shards.sum { $0.dirtyByteCount } }

    /// Forgets all entries in memory and tells waiting readers that everything changed. Called with all shard locks held.
    func clearEntries() {
        unresolved = UnresolvedOperations()
        for shard in shards.all { shard.clear() }
    }

    // MARK: What can be asked at any time

    /// The policy that entries without a rule of their own follow now.
    package var rules: FreshnessRules { appliedState.rules }

    package var policy: UpdatePolicy { rules.policy }

    /// The engine's time, for one command or call.
    package func now() -> Int64 { time.now() }
    /// How far ``now()`` is ahead of the wall clock, which was set back, in milliseconds.
    package var timeAhead: Int64 { time.offsetMilliseconds }
    /// As ``now()``, for work in the background, which nobody notices.
    func unnoticedNow() -> Int64 { time.unnoticed() }

    /// Whether there are files that were not opened, or could not be.
    var isUnopened: Bool { durableState.isUnopened }

    /// Whether a command can run without opening, creating or reopening files first. Cheap; for event loops, which
    /// leave ``prepare(forWriting:policy:)`` to a thread that may block.
    package func isReady(forWriting: Bool) -> Bool { appliedState.isReady(forWriting: forWriting) }

    /// Whether there are no files, and nobody has deleted the database.
    var isAbsent: Bool { appliedState.isAbsent }

    /// Whether the database has files.
    package var exists: Bool { appliedState.exists }

    /// `open`, `closed`, `absent`, `failed`, `damaged` or `deleted`.
    package var condition: String { appliedState.condition }

    /// Whether nothing is written to the open LevelDB because what it has goes on in a new one.
    var isBeingSalvaged: Bool { durableState.store?.isFrozen ?? false }

    /// What became of the last damage since the larder was opened; nil where there was none.
    package var lastSalvage: SalvageSummary? { life.lastSalvage }

    func deletedError(_ operation: String) -> LarderError {
        LarderError(.deleted, "the database was deleted; open it again by name", operation: operation, database: name)
    }
}
