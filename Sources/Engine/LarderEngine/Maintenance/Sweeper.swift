import LarderLevelDB
import LarderPlatform
import Synchronization

/// Deletes expired entries of one database from LevelDB, step by step, in the order of the expiry index. At intervals,
/// a scan of all entries also deletes those that are not in the index.
///
/// - A step reads at most ``recordsPerStep`` index records of each kind.
/// - The sweep remembers where it stopped, so that it does not seek over records that it deleted before.
/// - It writes to LevelDB directly, not through the journal: an expired entry is indistinguishable from a missing one,
///   so a crash does no harm. No checkpoint writes at the same time, so nothing newer is deleted.
/// - If memory has a newer state of an expired record, the record and its index record are left to the checkpoint: the
///   newer state may never reach LevelDB, or a checkpoint may be writing it. The sweep returns to them later.
/// - Index records whose record in LevelDB was overwritten or removed are deleted. Even after a crash, a record that
///   should have an index record never lacks it.
///
/// Confined to the thread that maintains the larder.
struct Sweeper {
    static let recordsPerStep = 512
    /// The time in milliseconds after which the sweep starts from the beginning again, for index records that it had to
    /// leave in place.
    private static let restartMilliseconds: Int64 = 3_600_000
    /// The time in milliseconds after which the sweep returns to the first index record that it left to a checkpoint.
    static let returnMilliseconds: Int64 = 60_000
    /// The time in milliseconds between the starts of two scans if tags were purged.
    private static let purgedScanMilliseconds: Int64 = 600_000
    /// The time in milliseconds between the starts of two scans of all entries.
    private static let scanMilliseconds: Int64 = 6 * 3_600_000

    private var store: EpochStore?
    private var resume: [UInt8: [UInt8]] = [:]
    private var restartedAt: Int64 = 0
    /// The first index record of each kind that was left to a checkpoint, and the time when the first was left.
    private var left: [UInt8: [UInt8]] = [:]
    private var leftSince: Int64 = 0
    private var scan: FullSweep?
    private var scanBegan: Int64?
    /// The last purge of a tag when the last scan began.
    private var scannedPurge: UInt64 = 0
    /// The bytes deleted since ``takeCompactable(_:)`` last returned a store. LevelDB frees them when it merges tables.
    private var deletedBytes = 0
    /// The number of removals that checkpoints had written when the last scan began.
    private var removalsAtScan = 0
    /// The number of removals since ``removalsAtScan`` when the files were last checked and found too small.
    private var removalsJudged = 0
    /// The entries left in place by the last complete scan; nil before the first one.
    private var live: Removal?
    /// Whether the size of the files has been compared with the result of the last scan.
    private var isCompared = true
    /// Whether the running scan must finish soon.
    private var isHurried = false
    /// The last seen number of writes to the store, and the time since which it has not changed.
    private var lastGeneration: UInt64 = 0
    private var unchangedSince: Int64 = 0
    /// The number of writes when the last scan began.
    private var generationAtScan: UInt64 = 0
    /// Whether ``mayHaveRemains(_:_:)`` was already called in the current idle period.
    private var isRestJudged = false
    /// The time in milliseconds without a write after which the store counts as idle, so that the space of old entries
    /// can be freed.
    static let restMilliseconds: Int64 = 60_000
    private var isAtRest = false
    /// The number of databases that share the allowed disk space of old entries.
    var databases = 1

    /// The minimum number of deleted bytes for which merging tables is worthwhile. It decreases with the number of
    /// databases, so that the remains in all of them together are bounded.
    static func leastBytes(sharedBy databases: Int, _ context: EngineContext) -> Int {
        max(64 << 10, context.options.compactionBytesMin / max(1, (databases + 1) / 2))
    }

    private func leastBytes(_ database: Database) -> Int {
        Self.leastBytes(sharedBy: databases, database.context)
    }

    /// The result of a part of a sweep.
    struct Removal {
        var entries = 0
        var bytes = 0
        /// The number of removed entries that no read had found expired.
        var unfound = 0
    }

    /// Returns the store if merging its tables is worthwhile: if the deleted bytes are at least half of its size on the
    /// disk, so that no more is written than was deleted, or a fifth if it is idle. The sweep knows its own deletions.
    /// Other deletions and overwrites are found by a scan of all entries. A scan begins when the files are opened,
    /// after checkpoints have written many removals, and when the store is idle after many writes. After a scan, files
    /// are merged if they are larger than 1.25 times the entries left in place plus twice the minimum from the options.
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

    /// Whether checkpoints have written so many removals since the last scan that the next one is worthwhile: at least
    /// a fourth of the entries that the last scan left. The cost is then a few reads for each removal.
    private mutating func hasManyRemovals(_ store: EpochStore, _ database: Database) -> Bool {
        let removals = store.removalCount - removalsAtScan
        guard removals > removalsJudged, removals >= (live?.entries ?? 0) / 4 else { return false }
        removalsJudged = removals
        return FileSystem.size(store.path) >= leastBytes(database)
    }

    /// Records whether the store is idle.
    private mutating func noteRest(_ store: EpochStore, _ monotonic: Int64) {
        let generation = store.writeGeneration
        if generation != lastGeneration {
            (lastGeneration, unchangedSince, isRestJudged) = (generation, monotonic, false)
        }
        isAtRest = monotonic - unchangedSince >= Self.restMilliseconds
    }

    /// Whether an idle store may have many remains of old entries. Called once per idle period.
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

    /// Runs one bounded step.
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
        if !left.isEmpty, monotonic - leftSince >= Self.returnMilliseconds { goBack() }
        let now = database.unnoticedNow()
        let interval = state.rules.policy.intervalMilliseconds
        // If an entry has a shorter grace of its own, it is found later than necessary.
        let past = now - state.rules.grace
        let governedBefore = max(min(state.rules.deadBefore, past), interval.map { past - $0 } ?? 0)
        let hadLeft = !left.isEmpty
        defer { if !hadLeft, !left.isEmpty { leftSince = monotonic } }
        var more = try sweep(KeyKind.ownDeadline, upTo: past, database, store)
        if governedBefore > 0 {
            more = try sweep(KeyKind.governed, upTo: governedBefore, database, store) || more
        }
        try resumeScanning(database, store, state, monotonic)
        // A scan that indexes or follows many removals is urgent; other scans are not.
        return more || scan.map { $0.indexingFor != nil || isHurried } ?? false
    }

    /// One step of a scan of all entries, if one is due or running.
    private mutating func resumeScanning(
        _ database: Database, _ store: EpochStore, _ state: DatabaseState, _ monotonic: Int64
    ) throws(LarderError) {
        let mustIndex = state.isUnindexed && ExpiryIndex.indexes(state.rules.policy)
        if store.lacksIndex.exchange(false, ordering: .relaxed) {
            scan = FullSweep(indexingFor: state.policyChanges, all: true)
            scanBegan = monotonic
        } else if mustIndex, scan?.indexingFor != state.policyChanges {
            // Entries that were written under the previous policy may lie after the position of a running scan.
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
        left = [:]
        restartedAt = monotonic
    }

    /// Returns to the index records that were left to checkpoints.
    private mutating func goBack() {
        for (kind, first) in left where resume[kind].map({ first.lexicographicallyPrecedes($0) }) ?? false {
            resume[kind] = first
        }
        left = [:]
    }

    /// Handles index records of one kind with bucket times up to and including `limit`.
    private mutating func sweep(_ kind: UInt8, upTo limit: Int64, _ database: Database, _ store: EpochStore)
        throws(LarderError) -> Bool
    {
        let start = resume[kind] ?? ExpiryIndex.start(kind, 0)
        let due = try Self.collect(kind, from: start, upTo: limit, store)
        guard let last = due.last else { return false }
        let (removal, firstLeft) = try Self.remove(due, database, store)
        deletedBytes += removal.bytes
        store.noteDead(removal.bytes)
        if left[kind] == nil { left[kind] = firstLeft }
        // The next key in byte order.
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
                // Malformed (too short) index keys are included, so that they are deleted.
                let bucket = key.withUnsafeBytes { ExpiryIndex.parse($0)?.bucket } ?? 0
                guard bucket <= limit else { break }
                found.append(key)
                try cursor.next()
            }
            return found
        }
    }

    /// Removes the expired entries among due index records.
    /// - Returns: the removed entries, and the first index record that was left to a checkpoint.
    private static func remove(_ due: [[UInt8]], _ database: Database, _ store: EpochStore) throws(LarderError)
        -> (Removal, left: [UInt8]?)
    {
        var firstLeft: [UInt8]?
        let removal = try store.indexLock.withLock { () throws(LarderError) in
            var removal = Removal()
            var changes: [EntryChange] = []
            let batch = LarderLevelDB.WriteBatch()
            var removed: [[UInt8]] = []
            for index in due {
                guard let (bucket, key) = index.withUnsafeBytes({ ExpiryIndex.parse($0) }) else {
                    batch.delete(index)
                    continue
                }
                switch try judge(index, bucket, key, database, store) {
                case .keep: break
                case .leave: firstLeft = firstLeft ?? index
                case .dropIndex:
                    database.forgetIndexed(key)
                    batch.delete(index)
                case .remove(let byteCount, let wasFound, let change):
                    if let change { changes.append(change) }
                    batch.delete(index)
                    removed.append(key.stored)
                    removal.entries += 1
                    if !wasFound { removal.unfound += 1 }
                    removal.bytes += byteCount + index.count
                }
            }
            // In order and without duplicates, so that a salvage can tell which keys a damaged piece of a batch may
            // have had.
            removed.sort { $0.lexicographicallyPrecedes($1) }
            for (position, key) in removed.enumerated() where position == 0 || removed[position - 1] != key {
                batch.delete(key)
            }
            if !batch.isEmpty { try store.write(batch, sync: false) }
            database.context.changes.notify(changes)
            return removal
        }
        database.context.statistics.indexSwept.add(due.count)
        note(removal, database)
        return (removal, firstLeft)
    }

    private enum Judgement {
        case keep, leave, dropIndex
        case remove(byteCount: Int, wasFound: Bool, EntryChange?)
    }

    /// Decides what to do with a due index record. The decision is based only on LevelDB, whose content is certain to
    /// exist after a crash.
    private static func judge(
        _ index: [UInt8], _ bucket: Int64, _ key: Key, _ database: Database, _ store: EpochStore
    ) throws(LarderError) -> Judgement {
        let removalRules = database.removalRules
        guard let (parsed, count) = try store.header(of: key, removalRules.purges) else { return .dropIndex }
        guard let header = try? parsed.get() else { return .keep }
        let rules = database.rules
        let now = database.unnoticedNow()
        let mayBeOwn = mayBeOwn(index, bucket, header, ExpiryIndex.key(for: key, header, policy: rules.policy))
        guard removalRules.isGone(header, now: now) else { return mayBeOwn ? .keep : .dropIndex }
        guard let letGo = database.letGo(key) else { return mayBeOwn ? .leave : .dropIndex }
        database.context.statistics.expiryLag.note(end: rules.endOfLife(header), now: now)
        return .remove(
            byteCount: key.stored.count + count, wasFound: letGo.wasFound,
            database.sweptChange(Array(key.bytes), header, rules))
    }

    static func note(_ removal: Removal, _ database: Database) {
        guard removal.entries > 0 else { return }
        database.context.statistics.expiredSwept.add(removal.entries)
        database.context.statistics.expired.add(removal.unfound)
        database.context.report(.debug, "swept \(removal.entries) entries of database '\(database.name)'")
    }

    /// Whether `index` may be the index key of LevelDB's record. Governed entries may have been indexed under an
    /// earlier policy, so only the time can be compared.
    private static func mayBeOwn(_ index: [UInt8], _ bucket: Int64, _ header: RecordHeader, _ key: [UInt8]?) -> Bool {
        if case .governed = header.rule { return index[0] == KeyKind.governed && header.storedAt <= bucket }
        return index == key
    }
}

/// The sweep's accesses to the entries in memory.
extension Database {
    /// Records that an index key is deleted: LevelDB may no longer have the index key of this key's record.
    func forgetIndexed(_ key: Key) {
        let shard = shards[key]
        shard.lock.withLock { shard.find(key)?.head.pointee.indexed = 0 }
    }

    /// The result of ``letGo(_:)``.
    struct LetGo {
        /// Whether a read had found it expired.
        let wasFound: Bool
    }

    /// Forgets a key that will be deleted from LevelDB.
    /// - Returns: nil if memory has a newer state.
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
