import LevelDB
import Platform
import Synchronization

/// Deletes expired entries of one database from LevelDB, step by step, along the expiry index; and now and then, by a
/// scan of all entries, those that are not in the index.
///
/// - A step reads at most ``recordsPerStep`` index records of each kind.
/// - It remembers where it stopped, so that it does not seek over what it deleted before.
/// - It writes to LevelDB directly, not through the journal: nobody can tell an expired entry from a missing one, so a
///   crash does no harm. No checkpoint writes meanwhile, so nothing newer is deleted.
/// - An entry that is only in memory, or newer there, is left to the checkpoint. Index records whose entry was
///   overwritten or removed are dropped.
///
/// Confined to the thread that maintains the larder.
struct Sweeper {
    static let recordsPerStep = 512
    /// After this time the scan starts from the beginning again, for index records that it had to leave.
    private static let restartMilliseconds: Int64 = 3_600_000
    /// The time between the starts of two scans if tags were purged.
    private static let purgedScanMilliseconds: Int64 = 600_000
    /// The time between the starts of two scans of all entries.
    private static let scanMilliseconds: Int64 = 6 * 3_600_000

    private var store: EpochStore?
    private var resume: [UInt8: [UInt8]] = [:]
    private var restartedAt: Int64 = 0
    private var scan: FullSweep?
    private var scanBegan: Int64?
    /// The last purge of a tag before the last scan.
    private var scannedPurge: UInt64 = 0
    /// Deleted bytes since ``takeCompactable(_:)`` last returned a store. LevelDB gives them back when it merges
    /// tables.
    private var deletedBytes = 0
    /// How many removals checkpoints had written when the last scan began.
    private var removalsAtScan = 0
    /// How many there were since, when the files were last found too small to matter.
    private var removalsJudged = 0
    /// What the last complete scan has left; nil before there was one.
    private var live: Removal?
    /// Whether the files were compared with what the last scan left.
    private var isCompared = true
    /// Whether the running scan must finish soon.
    private var isHurried = false
    /// The number of writes to the store when it was last looked at, and since when it is that.
    private var lastGeneration: UInt64 = 0
    private var unchangedSince: Int64 = 0
    /// The number of writes when the last scan began.
    private var generationAtScan: UInt64 = 0
    /// Whether it was decided whether the rest since then calls for a scan.
    private var isRestJudged = false
    /// Without a write for so long, the store is at rest: there is time to give back what is left of former entries.
    static let restMilliseconds: Int64 = 60_000
    private var isAtRest = false
    /// How many databases share what may be left on the disk of former entries.
    var databases = 1

    /// The fewest bytes worth merging tables for. What all databases leave together is bounded, however many they are.
    private func leastBytes(_ database: Database) -> Int {
        max(64 << 10, database.context.options.compactionBytesMin / max(1, (databases + 1) / 2))
    }

    /// What a part of a sweep has deleted.
    struct Removal {
        var entries = 0
        var bytes = 0
        /// How many of the entries no read had found expired.
        var unfound = 0
    }

    /// The store, if so much was deleted from it that merging its tables is worthwhile: at least half of its size on
    /// the disk, so that no more is written than was deleted; at rest a fifth. The sweep knows what it has deleted. Other
    /// deletions and overwrites are found by a scan of all entries, which begins when the files are opened, when
    /// checkpoints have written many removals, and at rest after much was written. Behind it, files that take more than
    /// 1.25 times what it has left and twice the least of the options are merged.
    mutating func takeCompactable(_ database: Database) -> EpochStore? {
        let least = leastBytes(database)
        if let store, store.wantsCompaction.exchange(false, ordering: .relaxed) { return store }
        guard let store, deletedBytes >= least || !isCompared else { return nil }
        let size = FileSystem.size(store.path)
        let isMuchDeleted = deletedBytes >= least && deletedBytes >= size / (isAtRest ? 5 : 2)
        let isMuchDead =
            !isCompared && size >= least
            && live.map { $0.bytes <= size / 2 || $0.bytes + $0.bytes / 4 + 2 * least < size } ?? false
        isCompared = true
        guard isMuchDeleted || isMuchDead else { return nil }
        deletedBytes = 0
        return store
    }

    /// Whether checkpoints have written so many removals since the last scan that the next is worthwhile: a fourth of
    /// what that scan left, so that it costs a few reads for each.
    private mutating func hasManyRemovals(_ store: EpochStore, _ database: Database) -> Bool {
        let removals = store.removalCount - removalsAtScan
        guard removals > removalsJudged, removals >= (live?.entries ?? 0) / 4 else { return false }
        removalsJudged = removals
        return FileSystem.size(store.path) >= leastBytes(database)
    }

    /// Notes whether the store is at rest.
    private mutating func noteRest(_ store: EpochStore, _ monotonic: Int64) {
        let generation = store.writeGeneration
        if generation != lastGeneration {
            (lastGeneration, unchangedSince, isRestJudged) = (generation, monotonic, false)
        }
        isAtRest = monotonic - unchangedSince >= Self.restMilliseconds
    }

    /// Whether a store at rest may have much that is left of former entries. Asked once for each rest.
    private mutating func mayHaveRemains(_ store: EpochStore, _ database: Database) -> Bool {
        guard isAtRest, !isRestJudged else { return false }
        isRestJudged = true
        let size = FileSystem.size(store.path)
        guard size >= 2 * leastBytes(database) else { return false }
        // A checkpoint writes a mebibyte at a time.
        let isMuchWritten = Int(clamping: lastGeneration - generationAtScan) << 20 >= size / 10
        let removals = store.removalCount - removalsAtScan
        guard let live, live.entries > 0 else { return isMuchWritten || removals > 0 }
        let areLarge = live.bytes / live.entries >= 65_536
        return isMuchWritten || removals >= max(1, live.entries / 20) || areLarge && removals > 0
    }

    /// One bounded step.
    /// - Returns: whether there may be more to do now.
    mutating func step(_ database: Database) throws(LarderError) -> Bool {
        let state = database.durableState
        guard let store = state.store, store.isMade, !store.isSuspended, !store.isFrozen else { return false }
        let monotonic = database.context.time.monotonic()
        if self.store !== store {
            self.store = store
            scan = nil
            scanBegan = nil
            scannedPurge = 0
            deletedBytes = 0
            live = nil
            removalsAtScan = store.removalCount
            removalsJudged = 0
            (generationAtScan, isRestJudged) = (store.writeGeneration, false)
            restart(monotonic)
        }
        noteRest(store, monotonic)
        if monotonic - restartedAt > Self.restartMilliseconds { restart(monotonic) }
        let now = database.unnoticedNow()
        let interval = state.rules.policy.intervalMilliseconds
        // An entry with its own grace may be found later than it could be, by the database's grace.
        let past = now - state.rules.grace
        let governedBefore = max(min(state.rules.deadBefore, past), interval.map { past - $0 } ?? 0)
        var more = try sweep(KeyKind.ownDeadline, upTo: past, database, store)
        if governedBefore > 0 {
            more = try sweep(KeyKind.governed, upTo: governedBefore, database, store) || more
        }
        try goOnScanning(database, store, state, monotonic)
        // A scan for entries that live long is not urgent; one that indexes is, and so is one after many removals.
        return more || scan.map { $0.indexingFor != nil || isHurried } ?? false
    }

    /// One step of a scan of all entries, if one is due or running.
    private mutating func goOnScanning(
        _ database: Database, _ store: EpochStore, _ state: DatabaseState, _ monotonic: Int64
    ) throws(LarderError) {
        let mustIndex = state.isUnindexed && ExpiryIndex.indexes(state.rules.policy)
        if mustIndex, scan?.indexingFor != state.policyChanges {
            // Entries that were written under the former policy may lie behind the position of a running scan.
            scan = FullSweep(indexingFor: state.policyChanges)
            scanBegan = monotonic
        } else if scan == nil {
            let lastPurge = state.rules.purges?.last ?? 0
            isHurried = hasManyRemovals(store, database) || mayHaveRemains(store, database)
            if lastPurge > scannedPurge, scanBegan.map({ monotonic - $0 >= Self.purgedScanMilliseconds }) ?? true {
                isHurried = true
            }
            if isHurried || scanBegan.map({ monotonic - $0 >= Self.scanMilliseconds }) ?? true {
                scan = FullSweep()
                scannedPurge = lastPurge
                scanBegan = monotonic
                removalsAtScan = store.removalCount
                removalsJudged = 0
                generationAtScan = store.writeGeneration
            }
        }
        guard var current = scan else { return }
        let removed = try current.step(database, store).bytes
        deletedBytes += removed
        store.noteDead(removed)
        scan = current.isOver ? nil : current
        if current.isOver {
            live = current.live
            isCompared = false
        }
        if current.isOver, let policyChanges = current.indexingFor {
            try database.finishIndexing(store, policyChanges: policyChanges)
        }
    }

    private mutating func restart(_ monotonic: Int64) {
        resume = [:]
        restartedAt = monotonic
    }

    /// Handles index records of one kind with bucket times up to and including `limit`.
    private mutating func sweep(_ kind: UInt8, upTo limit: Int64, _ database: Database, _ store: EpochStore)
        throws(LarderError) -> Bool
    {
        let start = resume[kind] ?? ExpiryIndex.start(kind, 0)
        let due = try Self.collect(kind, from: start, upTo: limit, store)
        guard let last = due.last else { return false }
        let removed = try Self.remove(due, database, store).bytes
        deletedBytes += removed
        store.noteDead(removed)
        // The least key behind `last` in byte order.
        resume[kind] = last + [0]
        return due.count == Self.recordsPerStep
    }

    private static func collect(_ kind: UInt8, from start: [UInt8], upTo limit: Int64, _ store: EpochStore)
        throws(LarderError) -> [[UInt8]]
    {
        try store.access("sweep") { (database) throws(LevelDBError) in
            var options = ReadOptions()
            options.fillCache = false
            let cursor = try database.cursor(options, prefix: [kind])
            defer { cursor.close() }
            var found: [[UInt8]] = []
            try cursor.seek(to: start)
            while cursor.isValid, found.count < recordsPerStep {
                let key = cursor.key
                // A record that is too short to be an index key is included, to be dropped.
                let bucket = key.withUnsafeBytes { ExpiryIndex.parse($0)?.bucket } ?? 0
                guard bucket <= limit else { break }
                found.append(key)
                try cursor.next()
            }
            return found
        }
    }

    private static func remove(_ due: [[UInt8]], _ database: Database, _ store: EpochStore) throws(LarderError)
        -> Removal
    {
        let removal = try store.indexLock.withLock { () throws(LarderError) in
            var removal = Removal()
            var changes: [EntryChange] = []
            let batch = LevelDB.WriteBatch()
            var removed: [[UInt8]] = []
            for index in due {
                guard let (bucket, key) = index.withUnsafeBytes({ ExpiryIndex.parse($0) }) else {
                    batch.delete(index)
                    continue
                }
                switch try judge(index, bucket, key, database, store) {
                case .keep: break
                case .dropIndex: batch.delete(index)
                case .remove(let byteCount, let wasFound, let change):
                    if let change { changes.append(change) }
                    batch.delete(index)
                    removed.append(key.stored)
                    removal.entries += 1
                    if !wasFound { removal.unfound += 1 }
                    removal.bytes += byteCount + index.count
                }
            }
            // In order and each once: this tells a salvage what a damaged piece of a batch may have had.
            removed.sort { $0.lexicographicallyPrecedes($1) }
            for (position, key) in removed.enumerated() where position == 0 || removed[position - 1] != key {
                batch.delete(key)
            }
            if !batch.isEmpty { try store.write(batch, sync: false) }
            database.context.changes.tell(changes)
            return removal
        }
        database.context.statistics.indexSwept.add(due.count)
        note(removal, database)
        return removal
    }

    private enum Judgement {
        case keep, dropIndex
        case remove(byteCount: Int, wasFound: Bool, EntryChange?)
    }

    /// The decision about a due index record.
    private static func judge(
        _ index: [UInt8], _ bucket: Int64, _ key: Key, _ database: Database, _ store: EpochStore
    ) throws(LarderError) -> Judgement {
        switch database.known(key) {
        case .newer(let header, let rules):
            // The checkpoint handles the older record.
            guard let header, rules.freshness(header, now: database.unnoticedNow()) != .gone else {
                return .dropIndex
            }
            return mayBeOwn(index, bucket, header, ExpiryIndex.key(for: key, header, policy: rules.policy))
                ? .keep : .dropIndex
        case .unreadable: return .keep
        case .stored: break
        }
        let removalRules = database.removalRules
        guard let (parsed, count) = try store.header(of: key, removalRules.purges) else { return .dropIndex }
        guard let header = try? parsed.get() else { return .keep }
        let rules = database.rules
        let now = database.unnoticedNow()
        if removalRules.isGone(header, now: now) {
            guard let letGo = database.letGo(key) else { return .dropIndex }
            database.context.statistics.expiryLag.note(end: rules.endOfLife(header), now: now)
            return .remove(
                byteCount: key.stored.count + count, wasFound: letGo.wasFound,
                database.sweptChange(Array(key.bytes), header, rules))
        }
        return mayBeOwn(index, bucket, header, ExpiryIndex.key(for: key, header, policy: rules.policy))
            ? .keep : .dropIndex
    }

    static func note(_ removal: Removal, _ database: Database) {
        guard removal.entries > 0 else { return }
        database.context.statistics.expiredSwept.add(removal.entries)
        database.context.statistics.expired.add(removal.unfound)
        database.context.report(.debug, "swept \(removal.entries) entries of database '\(database.name)'")
    }

    /// Whether `index` may be the one index key of an entry that is not expired, because a policy that the sweep did
    /// not know yet lets it live. Governed entries may have been indexed under an earlier policy, so only the time can
    /// tell.
    private static func mayBeOwn(_ index: [UInt8], _ bucket: Int64, _ header: RecordHeader, _ key: [UInt8]?) -> Bool {
        if case .governed = header.rule { return index[0] == KeyKind.governed && header.storedAt <= bucket }
        return index == key
    }
}

/// The sweep's questions to the entries in memory.
extension Database {
    enum Known {
        /// Memory has a newer state than LevelDB: an entry with this header, or none.
        case newer(RecordHeader?, FreshnessRules)
        /// LevelDB has the newest state.
        case stored
        case unreadable
    }

    /// What memory has of a key whose index record may be dropped.
    func known(_ key: Key) -> Known {
        let shard = shards[key]
        return shard.lock.withLock {
            guard let entry = shard.find(key) else { return .stored }
            // It is no longer certain that LevelDB has the index key.
            entry.head.pointee.indexed = 0
            guard entry.isDirty else { return .stored }
            guard let record = entry.record else { return .newer(nil, applied.rules) }
            guard let header = try? RecordHeader(parsing: record, removalRulesLocked.purges) else { return .unreadable }
            return .newer(header, applied.rules)
        }
    }

    /// What memory has dropped of a key.
    struct LetGo {
        /// Whether a read had found it expired.
        let wasFound: Bool
    }

    /// Forgets a key that will be deleted from LevelDB.
    /// - Returns: nil when memory has a newer state.
    func letGo(_ key: Key) -> LetGo? {
        let shard = shards[key]
        return shard.lock.withLock {
            shard.reads.swept(key.hash)
            guard let entry = shard.find(key) else { return LetGo(wasFound: false) }
            guard !entry.isDirty else { return nil }
            let wasFound = entry.head.pointee.isFoundExpired
            shard.dropIfClean(entry)
            return LetGo(wasFound: wasFound)
        }
    }
}
