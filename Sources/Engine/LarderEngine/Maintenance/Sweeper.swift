import LarderLevelDB
import LarderPlatform
import Synchronization

/// Deletes expired entries of one database from LevelDB, step by step, in the order of the expiry index. From time to
/// time, a scan of all entries (``FullSweep``) also deletes expired entries that are not in the index. An *index
/// record* is LevelDB's record for one entry in this index.
///
/// - A step reads at most ``recordsPerStep`` index records of each kind (own deadline, and deadline by the policy).
/// - Each step continues where the last one stopped. A new start would make LevelDB skip all deleted records.
/// - The sweep writes to LevelDB directly, not through the journal. A crash does no harm: to readers, an expired entry
///   is the same as a missing one. No checkpoint writes to the store at the same time, so no newer record is deleted.
/// - If memory has a newer state of an expired entry, the sweep leaves the entry's record and index record in place,
///   and returns to them later. A checkpoint may replace both in the meantime, but it is also possible that the newer
///   state never reaches LevelDB.
/// - The sweep also deletes index records of records that were overwritten or removed. The reverse does not occur: even
///   after a crash, no record lacks its index record.
///
/// Used only by the maintenance thread.
struct Sweeper {
    static let recordsPerStep = 512
    /// The time in milliseconds after which the sweep starts from the beginning of the index again. It then finds index
    /// records that it had to leave in place.
    private static let restartMilliseconds: Int64 = 3_600_000
    /// The time in milliseconds after which the sweep returns to the first index record that it left in place.
    static let returnMilliseconds: Int64 = 60_000
    /// The time in milliseconds between the starts of two scans if tags were purged in the meantime.
    private static let purgedScanMilliseconds: Int64 = 600_000
    /// The time in milliseconds between the starts of two scans of all entries if nothing requires an earlier one.
    private static let scanMilliseconds: Int64 = 6 * 3_600_000

    private var store: EpochStore?
    private var resume: [UInt8: [UInt8]] = [:]
    private var restartedAt: Int64 = 0
    /// For each kind, the first index record that the sweep left in place. `leftSince`: when it left the first of them.
    private var left: [UInt8: [UInt8]] = [:]
    private var leftSince: Int64 = 0
    private var scan: FullSweep?
    private var scanBegan: Int64?
    /// The commit unit of the last purge of a tag when the last scan began.
    private var scannedPurge: UInt64 = 0
    /// The bytes deleted since ``takeCompactable(_:)`` last returned the store. LevelDB frees their space when it
    /// merges tables.
    private var deletedBytes = 0
    /// The number of removals that checkpoints had written when the last scan began.
    private var removalsAtScan = 0
    /// The number of removals since ``removalsAtScan`` when ``hasManyRemovals(_:_:)`` last measured the files.
    private var removalsJudged = 0
    /// The number and size of the entries that the last complete scan left in place; nil before the first scan.
    private var live: Removal?
    /// Whether ``takeCompactable(_:)`` has compared the size of the files with the result of the last scan.
    private var isCompared = true
    /// Whether the running scan continues without pauses, because it probably finds much to delete.
    private var isHurried = false
    /// The store's number of writes when it was last checked.
    private var lastGeneration: UInt64 = 0
    /// When the number of writes last changed.
    private var unchangedSince: Int64 = 0
    /// The number of writes when the last scan began.
    private var generationAtScan: UInt64 = 0
    /// Whether ``mayHaveDeadEntries(_:_:)`` was already called in the current idle period.
    private var isIdleChecked = false
    /// The time in milliseconds without a write after which the store counts as idle. Then the sweep may free the space
    /// of deleted entries earlier.
    static let restMilliseconds: Int64 = 60_000
    private var isAtRest = false
    /// The number of databases in the larder. They share the disk space that deleted entries may take: see
    /// ``leastBytes(sharedBy:_:)``.
    var databases = 1

    /// Returns how many deleted bytes in a database justify a merge of tables. The result decreases with the number of
    /// databases, so that the space of deleted entries in all databases together is limited.
    static func leastBytes(sharedBy databases: Int, _ context: EngineContext) -> Int {
        max(64 << 10, context.options.compactionBytesMin / max(1, (databases + 1) / 2))
    }

    private func leastBytes(_ database: Database) -> Int { Self.leastBytes(sharedBy: databases, database.context) }

    /// The number and size of entries, usually of removed ones.
    struct Removal {
        var entries = 0
        var bytes = 0
        /// The number of removed entries that no read has found expired and counted.
        var unfound = 0
    }

    /// Returns the store if its tables should be merged now, otherwise nil. They should be merged if a caller has
    /// requested it, and in two other cases. (*least* is ``leastBytes(sharedBy:_:)``.)
    ///
    /// - The sweep has deleted at least *least* bytes, and at least half of the store's size on the disk, so that a
    ///   merge writes no more than was deleted. If the store is idle, a fifth suffices.
    /// - A scan of all entries has just ended. The files have at least *least* bytes, and are much larger than the
    ///   entries left in place: twice as large, or larger than 1.25 times these entries plus twice *least*. This finds
    ///   entries that were overwritten, or deleted by checkpoints.
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

    /// Returns whether checkpoints have written so many removals since the last scan that another scan is worthwhile:
    /// at least a quarter of the entries that the last scan left in place. Then a scan costs only a few reads for each
    /// removal.
    private mutating func hasManyRemovals(_ store: EpochStore, _ database: Database) -> Bool {
        let removals = store.removalCount - removalsAtScan
        guard removals > removalsJudged, removals >= (live?.entries ?? 0) / 4 else { return false }
        removalsJudged = removals
        return FileSystem.size(store.path) >= leastBytes(database)
    }

    /// Records whether the store is idle.
    private mutating func noteRest(_ store: EpochStore, _ database: Database, _ monotonic: Int64) {
        let generation = store.writeGeneration
        // With dirty entries, the store is only between two checkpoints.
        if generation != lastGeneration || database.dirtyCount > 0 {
            (lastGeneration, unchangedSince, isIdleChecked) = (generation, monotonic, false)
        }
        isAtRest = monotonic - unchangedSince >= Self.restMilliseconds
    }

    /// Returns whether an idle store may have so many deleted or overwritten entries that a scan is worthwhile. Returns
    /// true at most once per idle period.
    private mutating func mayHaveDeadEntries(_ store: EpochStore, _ database: Database) -> Bool {
        guard isAtRest, !isIdleChecked else { return false }
        isIdleChecked = true
        let size = FileSystem.size(store.path)
        guard size >= 2 * leastBytes(database) else { return false }
        // Estimate a mebibyte for each write, because a checkpoint writes about that much at a time.
        let isMuchWritten = Int(clamping: lastGeneration - generationAtScan) << 20 >= size / 10
        let removals = store.removalCount - removalsAtScan
        guard let live, live.entries > 0 else { return isMuchWritten || removals > 0 }
        let areLarge = live.bytes / live.entries >= 65_536
        return isMuchWritten || removals >= max(1, live.entries / 20) || areLarge && removals > 0
    }

    /// Runs one step of limited length.
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
            (generationAtScan, isIdleChecked) = (store.writeGeneration, false)
            restart(monotonic)
        }
        noteRest(store, database, monotonic)
        if monotonic - restartedAt > Self.restartMilliseconds { restart(monotonic) }
        if !left.isEmpty, monotonic - leftSince >= Self.returnMilliseconds { returnToSkipped() }
        let now = database.unnoticedNow()
        let interval = state.rules.policy.intervalMilliseconds
        // Use the database's grace. An entry with a shorter grace of its own is removed later than necessary.
        let past = now - state.rules.grace
        let governedBefore = max(min(state.rules.deadBefore, past), interval.map { past - $0 } ?? 0)
        let hadLeft = !left.isEmpty
        defer { if !hadLeft, !left.isEmpty { leftSince = monotonic } }
        // Bucket times are never before the deadline, so index keys of entries that must stay are not reached.
        let unreportedFrom = database.context.expiryHold.state.unreportedFrom
        var more = try sweep(KeyKind.ownDeadline, upTo: min(past, unreportedFrom - 1), database, store)
        if governedBefore > 0 { more = try sweep(KeyKind.governed, upTo: governedBefore, database, store) || more }
        try resumeScanning(database, store, state, monotonic)
        // Continue a scan without pauses if it adds entries to the index, or probably finds much to delete.
        return more || scan.map { $0.indexingFor != nil || isHurried } ?? false
    }

    /// Starts a scan of all entries if one is due, and runs one step of the current scan.
    private mutating func resumeScanning(
        _ database: Database, _ store: EpochStore, _ state: DatabaseState, _ monotonic: Int64
    ) throws(LarderError) {
        let mustIndex = state.isUnindexed && ExpiryIndex.indexes(state.rules.policy)
        if store.lacksIndex.exchange(false, ordering: .relaxed) {
            scan = FullSweep(indexingFor: state.policyChanges, all: true)
            scanBegan = monotonic
        } else if mustIndex, scan?.indexingFor != state.policyChanges {
            // Begin a new scan: entries that were written under the previous policy may have keys before the position
            // of a running scan.
            scan = FullSweep(indexingFor: state.policyChanges)
            scanBegan = monotonic
        } else if scan == nil {
            let lastPurge = state.rules.purges?.last ?? 0
            isHurried = hasManyRemovals(store, database) || mayHaveDeadEntries(store, database)
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

    /// Returns to the index records that the sweep left in place.
    private mutating func returnToSkipped() {
        for (kind, first) in left where resume[kind].map({ first.lexicographicallyPrecedes($0) }) ?? false {
            resume[kind] = first
        }
        left = [:]
    }

    /// Runs a step for index records of one kind whose time is at most `limit`.
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
        // Continue with the next key in byte order.
        resume[kind] = last + [0]
        return due.count == Self.recordsPerStep
    }

    private static func collect(_ kind: UInt8, from start: [UInt8], upTo limit: Int64, _ store: EpochStore)
        throws(LarderError) -> [[UInt8]]
    {
        try store.access("sweep") { (database) throws(LevelDBError) in
            var found: [[UInt8]] = []
            try database.scan([kind], from: start) { cursor in
                let key = cursor.key
                // Include malformed (too short) index keys, so that they are deleted.
                let bucket = key.withUnsafeBytes { ExpiryIndex.parse($0)?.bucket } ?? 0
                guard bucket <= limit else { return false }
                found.append(key)
                return found.count < recordsPerStep
            }
            return found
        }
    }

    /// Removes the expired entries of index records that are due.
    /// - Returns: the number and size of the removed entries, and the first index record that was left in place because
    ///   memory has a newer state.
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
            // Delete keys in order and without duplicates. Then a salvage can infer which keys a damaged part of the
            // batch may have had.
            removed.sort { $0.lexicographicallyPrecedes($1) }
            for (position, key) in removed.enumerated() where position == 0 || removed[position - 1] != key {
                batch.delete(key)
            }
            if !batch.isEmpty { try store.write(batch, sync: false) }
            database.context.changes.publish(changes)
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

    /// Decides what to do with an index record that is due. The decision depends on the record in LevelDB, not on a
    /// newer state in memory, which a crash may lose.
    private static func judge(
        _ index: [UInt8], _ bucket: Int64, _ key: Key, _ database: Database, _ store: EpochStore
    ) throws(LarderError) -> Judgement {
        let removalRules = database.removalRules
        let (header, count): (RecordHeader, Int)
        // Reads of LevelDB would make it merge the tables that it searches.
        if case .known(let known) = RecordInMemory(key, in: database, removalRules.purges) {
            guard let known else { return .dropIndex }
            (header, count) = known
        } else {
            guard let (parsed, byteCount) = try store.header(of: key, removalRules.purges) else { return .dropIndex }
            guard let readable = try? parsed.get() else { return .keep }
            (header, count) = (readable, byteCount)
        }
        let rules = database.rules
        let now = database.unnoticedNow()
        let mayBeOwn = mayBeOwn(index, bucket, header, ExpiryIndex.key(for: key, header, policy: rules.policy))
        guard removalRules.isGone(header, now: now) else { return mayBeOwn ? .keep : .dropIndex }
        guard let wasFound = database.dropFromMemory(key) else { return mayBeOwn ? .leave : .dropIndex }
        database.context.statistics.expiryLag.note(end: rules.endOfLife(header), now: now)
        return .remove(
            byteCount: key.stored.count + count, wasFound: wasFound,
            database.sweptChange(Array(key.bytes), header, rules))
    }

    static func note(_ removal: Removal, _ database: Database) {
        guard removal.entries > 0 else { return }
        if !database.indexing.open.isEmpty { database.indexing.churn.wrappingAdd(removal.entries, ordering: .relaxed) }
        database.context.statistics.expiredSwept.add(removal.entries)
        database.context.statistics.expired.add(removal.unfound)
        database.context.report(
            .debug, "swept \(removal.entries) entries of database '\(database.name)'", database: database.name)
    }

    /// Returns whether `index` may be the index key of the record that LevelDB has. A governed entry (its deadline
    /// follows from the policy) may have been indexed under an earlier policy. So for governed entries only the times
    /// are compared.
    private static func mayBeOwn(_ index: [UInt8], _ bucket: Int64, _ header: RecordHeader, _ key: [UInt8]?) -> Bool {
        if case .governed = header.rule { return index[0] == KeyKind.governed && header.storedAt <= bucket }
        return index == key
    }
}

/// The sweep's accesses to the entries in memory.
extension Database {
    /// Records in memory that LevelDB may no longer have the entry's index key, because an index key is being deleted.
    func forgetIndexed(_ key: Key) {
        shards.withLocked(key.hash) { shard in
            if let entry = shard.find(key) { shard.table.forgetIndexed(entry) }
        }
    }

    /// Drops a key from memory before it is deleted from LevelDB.
    /// - Returns: whether a read has already found the entry expired, and counted that; nil, without dropping it, if
    ///   memory has a newer state.
    func dropFromMemory(_ key: Key) -> Bool? {
        shards.withLocked(key.hash) { shard in
            shard.reads.swept(key.hash)
            guard let entry = shard.find(key) else { return false }
            guard !entry.isDirty else { return nil }
            let wasFound = entry.isFoundExpired
            shard.dropIfClean(entry)
            return wasFound
        }
    }
}
