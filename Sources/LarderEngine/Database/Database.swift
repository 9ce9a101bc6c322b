import Synchronization
import Threading

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
    /// Whether there are files, and whether they are open.
    ///
    /// Copied by every command. The errors are boxed, so that a copy is one reference and not all their texts.
    enum Presence {
        /// No files. The first write creates them.
        case absent
        /// Files that were not opened yet.
        case closed
        case open(EpochStore)
        /// Files that could not be opened; the next use tries again.
        indirect case failed(LarderError)
        /// Deleted. This object stays so; the name may be used again through a new one.
        case deleted
        /// The larder was closed.
        indirect case shut(LarderError)
    }

    /// All that is changed for the whole database at once.
    struct State {
        var presence: Presence
        var rules: FreshnessRules
        var generation: UInt32 = 0
        /// Whether governed entries may lack their key in the expiry index. See ``ExpiryIndex``.
        var isUnindexed = false
        /// How often the policy was changed since the files were opened.
        var policyChanges = 0
        /// The epoch that entries belong to; 0 where there is none, or nobody knows.
        var epoch: UInt64 = 0
        /// Operations of the journal count that name an epoch from this one to ``epoch``.
        var journalFrom: UInt64 = 0
        /// Whether there are files, and POINTER, which names the epoch, cannot be read. What the journal has of the database
        /// is kept until it can.
        var isEpochUnknown = false
        /// Whether POINTER says that the epoch's directory need not be there.
        var isUnmade = false
        /// The commit unit that made it so.
        var sequence: UInt64 = 0

        var store: EpochStore? {
            if case .open(let store) = presence { return store }
            return nil
        }

        /// Takes over what POINTER says.
        mutating func adopt(_ pointer: PointerFile) {
            rules = pointer.rules
            epoch = pointer.epoch
            journalFrom = pointer.journalFrom
            isEpochUnknown = false
            isUnmade = pointer.isUnmade
            generation = pointer.generation
            isUnindexed = pointer.isUnindexed
        }

        /// As of files without entries, whose epoch need not be there.
        mutating func startEmpty(_ epoch: UInt64, _ rules: FreshnessRules) {
            adopt(PointerFile(epoch: epoch, rules: rules, isUnmade: true))
        }

        /// As of no files.
        mutating func endFiles(leaving presence: Presence) {
            self.presence = presence
            (epoch, journalFrom, isEpochUnknown, isUnmade) = (0, 0, false, false)
        }

        /// What POINTER has to say.
        var pointer: PointerFile {
            PointerFile(
                epoch: epoch, rules: rules, generation: generation, isUnindexed: isUnindexed,
                journalFrom: journalFrom, isUnmade: isUnmade)
        }

        /// Whether operations of the journal count that name an epoch.
        func counts(_ epoch: UInt64) -> Bool { self.epoch != 0 && epoch >= journalFrom && epoch <= self.epoch }
    }

    package let name: String
    let number: Int
    let directory: String
    let context: EngineContext
    private let time: EngineTime
    let pipeline: CommitPipeline
    let checkpointer: any Checkpointing
    let roster: any DatabaseRoster
    let damage: DamageReports
    /// Taken by what opens, creates, purges or deletes; before any shard lock, never under one.
    let openLock = Lock()
    private let shards: [Shard]
    private let unmanagedShards: UnsafeMutablePointer<Unmanaged<Shard>>
    /// The epoch that needs a part of the journal that is lost; 0 when none does. Guarded by `openLock`.
    var epochAheadOfJournal: UInt64 = 0
    var needsMoreJournal: Bool { epochAheadOfJournal != 0 }
    /// Whether that is settled. Guarded by `openLock`.
    var hasCheckedJournal = false
    /// Whether memory has all entries and nobody may see them, because some were refused. Guarded by all shard locks.
    private var isWithheld = false
    /// What the journal has of the database while its epoch is not known. Guarded by all shard locks.
    var unresolved = UnresolvedOperations()

    /// What became of the last damage.
    let salvage = SalvageStatus()

    // Looked at by every command; the shard locks see to it that no two accesses overlap.
    @exclusivity(unchecked) var applied: State
    @exclusivity(unchecked) var durable: State

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
        directory = context.directory + "/" + name
        shards = (0..<Shard.count).map { _ in Shard(budget: context.memory) }
        unmanagedShards = .allocate(capacity: Shard.count)
        for index in 0..<Shard.count {
            (unmanagedShards + index).initialize(to: Unmanaged.passUnretained(shards[index]))
        }
        context.memory.register(shards)
        let rules = FreshnessRules(policy: context.options.defaultPolicy)
        applied = State(presence: exists ? .closed : .absent, rules: rules)
        durable = applied
    }

    deinit {
        // Nobody looks at them through the budget any more when they go.
        context.memory.unregister(shards)
        for shard in shards { context.statistics.take(shard.takeCounters()) }
        unmanagedShards.deallocate()
    }

    /// What was done to this database's keys since the larder was opened.
    package var counts: Shard.Counters {
        shards.reduce(into: Shard.Counters()) { counts, shard in
            shard.lock.withLock {
                counts.add(shard.formerCounters)
                counts.add(shard.counters)
            }
        }
    }

    // MARK: Locks

    func shardIndex(_ key: Key) -> Int { Shard.index(key.hash) }
    func shard(_ index: Int) -> Shard { shards[index] }

    /// Runs `body` on the shard of a hash, without counting references: the shards live as long as the database.
    @inline(__always)
    func withShard<Result>(_ hash: Int, _ body: (Shard) -> Result) -> Result {
        unmanagedShards[Shard.index(hash)]._withUnsafeGuaranteedRef(body)
    }

    func lockAll() { for shard in shards { shard.lock.lock() } }
    func unlockAll() { for shard in shards.reversed() { shard.lock.unlock() } }

    /// Runs `body` with all shard locks held.
    func withAllShards<Result, Failure: Error>(_ body: () throws(Failure) -> Result) throws(Failure) -> Result {
        lockAll()
        defer { unlockAll() }
        return try body()
    }

    /// The state that commands see now.
    var appliedState: State { shards[0].lock.withLock { applied } }

    /// The state on the disk.
    var durableState: State { shards[0].lock.withLock { durable } }

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
        if case .shut = applied.presence { return true }
        return isWithheld || applied.store === durable.store
    }

    /// As ``revertStateOnly()``, where the journal cannot tell for now what counts: until it can, reads answer `error`, and
    /// neither what was refused and memory has still, nor what LevelDB has of before. Called with all shard locks held.
    func revertIncompletely(isCleared: Bool, _ error: LarderError) {
        let isWhole = isMemoryWhole && !isCleared
        revertStateOnly()
        guard case .open = durable.presence else { return }
        // What is clean was there before.
        if isWhole, (0..<Shard.count).allSatisfy({ shard($0).table.dirtyCount == 0 }) { return }
        isWithheld = isWhole
        applied.presence = .failed(
            LarderError(.io, "the journal cannot be read: \(error)", operation: "use", database: name))
    }

    /// The epoch that the entries in memory belong to; 0 where there is none, or nobody knows. Called with a shard lock held.
    var epochOfEntries: UInt64 {
        if case .shut = applied.presence { return durable.epoch }
        return applied.epoch
    }

    /// The store that the entries in memory belong to; nil when it is not open. Called with a shard lock held.
    var storeOfEntries: EpochStore? {
        // What a larder that is being closed has applied is still to be written.
        if case .shut = applied.presence { return durable.store }
        return applied.store
    }

    /// By which entries are taken out of LevelDB. Called with a shard lock held.
    var removalRulesLocked: RemovalRules { RemovalRules(applied: applied.rules, durable: durable.rules) }
    var removalRules: RemovalRules { shards[0].lock.withLock { removalRulesLocked } }

    /// How many entries LevelDB does not have yet.
    var dirtyCount: Int { sum { $0.dirtyCount } }
    /// Whether the journal has something of the database that nothing else on the disk has.
    var needsJournal: Bool { dirtyCount > 0 || withAllShards { !unresolved.isEmpty } }
    /// The bytes in memory of entries that LevelDB does not have yet.
    var dirtyByteCount: Int { sum { $0.dirtyByteCount } }

    /// Takes every shard's lock in turn.
    private func sum(_ count: (EntryTable) -> Int) -> Int {
        (0..<Shard.count).reduce(0) { sum, index in sum + shard(index).lock.withLock { count(shard(index).table) } }
    }

    /// Forgets all entries in memory and tells waiting readers that everything changed. Called with all shard locks held.
    func clearEntries() {
        unresolved = UnresolvedOperations()
        for shard in shards { shard.clear() }
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
    var isUnopened: Bool {
        switch durableState.presence {
        case .closed, .failed: true
        case .open, .absent, .deleted, .shut: false
        }
    }

    /// Whether a command can run without opening, creating or reopening files first. Cheap; for event loops, which
    /// leave ``prepare(forWriting:policy:)`` to a thread that may block.
    package func isReady(forWriting: Bool) -> Bool {
        let state = appliedState
        switch state.presence {
        case .open(let store): return !(forWriting && store.isSuspended && !store.isFrozen)
        case .absent: return !forWriting
        case .closed, .failed: return false
        case .deleted, .shut: return true
        }
    }

    /// Whether there are no files, and nobody has deleted the database.
    var isAbsent: Bool {
        if case .absent = appliedState.presence { true } else { false }
    }

    /// Whether the database has files.
    package var exists: Bool {
        switch appliedState.presence {
        case .absent, .deleted, .shut: false
        case .closed, .open, .failed: true
        }
    }

    /// `open`, `closed`, `absent`, `failed`, `damaged` or `deleted`.
    package var condition: String {
        switch appliedState.presence {
        case .absent: "absent"
        case .closed: "closed"
        case .open(let store):
            store.isFrozen || store.knownDamage != nil ? "damaged" : store.isSuspended ? "failed" : "open"
        case .failed(let error): error.code == .damaged ? "damaged" : "failed"
        case .deleted: "deleted"
        case .shut: "closed"
        }
    }

    /// Whether nothing is written to the open LevelDB because what it has goes on in a new one.
    var isBeingSalvaged: Bool { durableState.store?.isFrozen ?? false }

    /// What became of the last damage since the larder was opened; nil where there was none.
    package var lastSalvage: SalvageSummary? { salvage.last }

    func deletedError(_ operation: String) -> LarderError {
        LarderError(.deleted, "the database was deleted; open it again by name", operation: operation, database: name)
    }
}
