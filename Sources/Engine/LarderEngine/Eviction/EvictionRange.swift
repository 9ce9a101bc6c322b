import LarderLevelDB

/// The keys and headers of the entries in a range of keys in LevelDB. A value.
struct EvictionRange {
    struct Entry {
        let offset: Int
        let keyCount: Int
        let byteCount: Int
        /// The record's header; nil if the record cannot be read.
        let header: RecordHeader?
    }

    /// An entry to evict.
    struct Victim {
        let index: Int
        let hash: Int
        let isGone: Bool
    }

    /// The keys of all entries as LevelDB stores them, concatenated.
    var keys: [UInt8] = []
    var entries: [Entry] = []
    var seenBytes = 0
    /// The first key after the range; nil at the end.
    var next: [UInt8]?

    /// The maximum number of keys that are handled before a shard's lock is released for a moment.
    private static let slice = 64

    func key(_ entry: Entry) -> [UInt8] { Array(storedKey(entry)) }

    func storedKey(_ entry: Entry) -> ArraySlice<UInt8> { keys[entry.offset..<(entry.offset + entry.keyCount)] }

    /// Adds the entries from `start` to `last`, or to the end if `last` is nil. If `bytesMax` or `entriesMax` is
    /// reached before that, stops and sets `next`.
    mutating func collect(
        _ store: EpochStore, from start: [UInt8], through last: [UInt8]? = nil, bytesMax: Int, entriesMax: Int,
        _ purges: TagPurges?, operation: String = "evict"
    ) throws(LarderError) {
        let (bytesMax, entriesMax) = (seenBytes + bytesMax, entries.count + entriesMax)
        next = nil
        try store.access(operation) { (leveldb) throws(LevelDBError) in
            try leveldb.scan([KeyKind.record], from: start) { (cursor) throws(LevelDBError) in
                let offset = keys.count
                try cursor.withKey { keys.append(contentsOf: $0) }
                if let last, last.lexicographicallyPrecedes(keys[offset...]) {
                    keys.removeSubrange(offset...)
                    return false
                }
                let keyCount = keys.count - offset
                guard entries.count < entriesMax, seenBytes < bytesMax else {
                    next = Array(keys[offset...])
                    return false
                }
                let (header, count) = try cursor.withValue { (try? RecordHeader(parsing: $0, purges), $0.count) }
                entries.append(
                    Entry(offset: offset, keyCount: keyCount, byteCount: keyCount + count, header: header))
                seenBytes += keyCount + count
                return true
            }
        }
    }

    /// Updates memory and notifies observers after LevelDB has removed the entries. Does both with the lock of the
    /// entry's shard held: observers must be notified of the removal before any later write of the key.
    func updateMemoryAndNotify(_ database: Database, _ victims: [Victim], _ outcome: inout EvictionOutcome) {
        var byShard: [[Victim]] = Array(repeating: [], count: Shard.count)
        for victim in victims { byShard[Shard.index(victim.hash)].append(victim) }
        for (index, part) in byShard.enumerated() {
            for start in stride(from: 0, to: part.count, by: Self.slice) {
                let slice = part[start..<min(start + Self.slice, part.count)]
                database.shards[index].lock.withLock { updateSlice(database, slice, database.shards[index], &outcome) }
            }
        }
    }

    private func updateSlice(
        _ database: Database, _ slice: ArraySlice<Victim>, _ shard: Shard, _ outcome: inout EvictionOutcome
    ) {
        var changes: [EntryChange] = []
        for victim in slice {
            let entry = entries[victim.index]
            guard let header = entry.header else { continue }
            let key = Array(keys[(entry.offset + 1)..<(entry.offset + entry.keyCount)])
            let (isNewer, wasFound) = key.withUnsafeBytes { shard.evicted($0, victim.hash, isGone: victim.isGone) }
            if victim.isGone {
                outcome.gone += 1
                if !wasFound { database.context.statistics.expired.add() }
            } else if !isNewer {
                outcome.evicted += 1
                shard.counters.evicted += 1
                shard.evictedKeys.add(victim.hash, deadline: database.applied.rules.deadline(header))
                outcome.evictedBytes += entry.byteCount
            }
            // If memory has a newer state, only an old version was removed, so do not publish a removal.
            guard !isNewer, database.context.changes.isOn else { continue }
            if victim.isGone {
                if let change = database.sweptChange(key, header, database.applied.rules) { changes.append(change) }
            } else {
                changes.append(EntryChange(database: database, key: key, kind: .evicted))
            }
        }
        database.context.changes.publish(changes)
    }
}

/// The result of a step of the eviction. A value.
struct EvictionOutcome {
    /// The first key after the range, as LevelDB stores it; nil at the end.
    var next: [UInt8]?
    var seenBytes = 0
    /// The number of removed entries that had expired or were purged.
    var gone = 0
    var evicted = 0
    var evictedBytes = 0
    /// The increase in free space of the file system.
    var freedBytes = 0

    var hasRemoved: Bool { gone + evicted > 0 }

    func count(in statistics: Statistics) {
        statistics.evicted.add(evicted)
        statistics.evictedBytes.add(evictedBytes)
        statistics.expiredSwept.add(gone)
    }
}
