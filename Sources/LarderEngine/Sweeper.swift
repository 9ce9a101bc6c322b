import LevelDB

/// Deletes expired entries of one database, step by step, along the expiry index.
///
/// - A step reads at most ``recordsPerStep`` index records of each kind and commits what it found as one unit.
/// - It remembers where it stopped, so that it does not seek over what it deleted before.
/// - An entry is deleted only if it is still expired when its shard is locked; index records whose entry was
///   overwritten or removed are dropped.
///
/// Confined to the thread that maintains the larder.
struct Sweeper {
    static let recordsPerStep = 512
    /// After so long the scan starts from the beginning again, for index records that it had to leave behind.
    private static let restartMilliseconds: Int64 = 3_600_000

    private var store: EpochStore?
    private var resume: [UInt8: [UInt8]] = [:]
    private var restartedAt: Int64 = 0
    private var indexing = IndexingPass()
    /// Bytes that were deleted since ``takeCompactable(_:)`` last said so. LevelDB gives them back when it merges tables.
    private var deletedBytes = 0

    /// What a part of a sweep deleted.
    struct Removal {
        var entries = 0
        var bytes = 0
    }

    /// The store, when so much was deleted from it that merging its tables is worth the while: at least half of what it
    /// takes on the disk, so that no more is written than was deleted.
    mutating func takeCompactable(_ database: Database) -> EpochStore? {
        guard let store, deletedBytes >= database.context.options.compactionBytesMin else { return nil }
        guard deletedBytes >= FileSystem.size(store.path) / 2 else { return nil }
        deletedBytes = 0
        return store
    }

    /// One bounded step.
    /// - Returns: whether there may be more to do now.
    mutating func step(_ database: Database) throws(LarderError) -> Bool {
        let state = database.durableState
        guard let store = state.store, !store.isSuspended else { return false }
        let monotonic = database.context.time.monotonic()
        if self.store !== store {
            self.store = store
            indexing = IndexingPass()
            deletedBytes = 0
            restart(monotonic)
        }
        if monotonic - restartedAt > Self.restartMilliseconds { restart(monotonic) }
        let now = database.now()
        let interval = state.rules.policy.intervalMilliseconds
        let governedBefore = max(state.rules.deadBefore, interval.map { now - $0 } ?? 0)
        var more = try sweep(KeyKind.ownDeadline, upTo: now, database, store)
        if governedBefore > 0 {
            more = try sweep(KeyKind.governed, upTo: governedBefore, database, store) || more
        }
        if state.isUnindexed, interval != nil {
            let (removal, hasMore) = try indexing.step(database, store, state)
            deletedBytes += removal.bytes
            more = hasMore || more
        }
        return more
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
        deletedBytes += try Self.remove(due, database).bytes
        // The next key after `last` in byte order.
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
                // What is too short to be an index key is taken along, to be dropped.
                let bucket = key.withUnsafeBytes { ExpiryIndex.parse($0)?.bucket } ?? 0
                guard bucket <= limit else { break }
                found.append(key)
                try cursor.next()
            }
            return found
        }
    }

    private static func remove(_ due: [[UInt8]], _ database: Database) throws(LarderError) -> Removal {
        let parsed = due.map { index in index.withUnsafeBytes { ExpiryIndex.parse($0) } }
        let keys = parsed.map { $0?.key ?? Key([]) }
        let removal = try database.commit(keys, .headers) { update -> Removal in
            var removal = Removal()
            for (position, index) in due.enumerated() where !update.unreadable.contains(position) {
                guard let bucket = parsed[position]?.bucket, let header = update.stored(position)?.header else {
                    update.dropIndex(index)
                    continue
                }
                if update.rules.freshness(header, now: update.now) == .expired {
                    removal.entries += 1
                    removal.bytes += update.byteCount(position) + index.count
                    update.remove(position)
                    update.dropIndex(index)
                } else if !mayBeOwn(index, bucket, header, update.indexKey(position, header)) {
                    update.dropIndex(index)
                }
            }
            return removal
        }
        database.context.statistics.indexSwept.add(due.count)
        note(removal, database)
        return removal
    }

    static func note(_ removal: Removal, _ database: Database) {
        guard removal.entries > 0 else { return }
        database.context.statistics.expiredSwept.add(removal.entries)
        database.context.report(.debug, "swept \(removal.entries) entries of database '\(database.name)'")
    }

    /// Whether `index` may be the one index key of an entry that is not expired: one from the future, or one that a
    /// policy of which the sweep did not know yet let live on. Governed entries may have been indexed under an earlier
    /// policy, so that only the time can tell.
    private static func mayBeOwn(_ index: [UInt8], _ bucket: Int64, _ header: RecordHeader, _ key: [UInt8]?) -> Bool {
        if case .governed = header.rule { return index[0] == KeyKind.governed && header.storedAt <= bucket }
        return index == key
    }
}
