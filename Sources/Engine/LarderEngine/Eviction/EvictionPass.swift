import LarderLevelDB

/// One step of the eviction: reads the entries of a range of keys in LevelDB, removes those that are gone and the least
/// valuable ones, and has LevelDB merge the tables of the range, which frees their space.
///
/// Each step continues after the range of the previous one, because LevelDB frees space by merging a range. If the same
/// number of removals was spread over all keys, all tables would have to be written again.
///
/// - It writes to LevelDB directly, not through the journal, with each batch synced. No checkpoint writes at the same
///   time, so nothing newer is removed. Entries that are dirty in memory are skipped.
/// - After a crash, each entry is either removed or unchanged. A replay of the journal may restore a removed entry, but
///   only with its newest value, because it repeats later writes and removals too.
///
/// Confined to one thread.
struct EvictionPass {
    let database: Database
    let store: EpochStore
    let estimate: EvictionEstimate
    /// Entries that are worth at most this are removed.
    let threshold: Double
    let rangeBytes: Int
    /// The approximate number of bytes to evict; the least valuable entries go first.
    let wantedBytes: Int

    private static let entriesMax = 1 << 17
    private static let batchBytes = 1 << 20

    /// Handles the range that begins at `start`.
    /// - Parameter leastShare: the least share of the range's bytes to evict; if less can be evicted, the range is left
    ///   unchanged, because freeing the space would cost too much. 0 evicts the least valuable entries, at least a
    ///   quarter of the bytes.
    func run(from start: [UInt8], leastShare: Double) throws(LarderError) -> EvictionOutcome {
        var outcome = EvictionOutcome()
        var found = EvictionRange()
        // LevelDB does not merge entries within one table, so an entry and its removal must not be in the same one.
        store.settleMemory()
        try store.indexLock.withLock { () throws(LarderError) in
            found = try collect(from: start)
            outcome.next = found.next
            outcome.seenBytes = found.seenBytes
            let victims = select(found, leastShare: leastShare)
            if victims.isEmpty { return }
            try remove(found, victims)
            found.settle(database, victims, &outcome)
        }
        guard outcome.hasRemoved, let first = found.entries.first, let last = found.entries.last else { return outcome }
        outcome.count(in: database.context.statistics)
        try store.compact(from: found.key(first), to: found.key(last))
        return outcome
    }

    // MARK: Collecting

    private func collect(from start: [UInt8]) throws(LarderError) -> EvictionRange {
        var found = EvictionRange()
        try found.collect(
            store, from: start, bytesMax: rangeBytes, entriesMax: Self.entriesMax, database.removalRules.purges)
        return found
    }

    // MARK: Choosing

    private func select(_ found: EvictionRange, leastShare: Double) -> [EvictionRange.Victim] {
        let removalRules = database.removalRules
        let rules = database.rules
        let isKept = DatabaseName.isKept(database.name)
        var victims: [EvictionRange.Victim] = []
        var others: [(victim: EvictionRange.Victim, worth: Double, bytes: Int)] = []
        var bytes = 0
        found.keys.withUnsafeBytes { keys in
            for (index, entry) in found.entries.enumerated() {
                // Skip records that cannot be read: a newer Larder may have written them, or they are damaged, which is
                // left to a salvage.
                guard let header = entry.header else { continue }
                let key = UnsafeRawBufferPointer(
                    rebasing: keys[(entry.offset + 1)..<(entry.offset + entry.keyCount)])
                let hash = Key.hash(key)
                guard let reads = database.diskReads(of: key, hash) else { continue }
                if removalRules.isGone(header, now: estimate.now) {
                    victims.append(EvictionRange.Victim(index: index, hash: hash, isGone: true))
                    bytes += entry.byteCount
                    continue
                }
                if isKept { continue }
                let worth = estimate.worth(
                    reads: reads, storedAt: header.storedAt, end: rules.end(header), bytes: entry.byteCount)
                others.append((EvictionRange.Victim(index: index, hash: hash, isGone: false), worth, entry.byteCount))
            }
        }
        others.sort { $0.worth < $1.worth }
        let cheap = others.prefix { $0.worth <= threshold }
        let cheapBytes = cheap.reduce(0) { $0 + $1.bytes }
        let enough = leastShare * Double(found.seenBytes)
        guard Double(bytes + cheapBytes) >= enough else { return [] }
        // Evict at least a quarter of the bytes if the previous round has evicted nothing.
        let most = leastShare > 0 ? cheapBytes : max(cheapBytes, found.seenBytes / 4)
        for other in others where bytes < min(max(1, most), wantedBytes) {
            victims.append(other.victim)
            bytes += other.bytes
        }
        return victims.sorted { $0.index < $1.index }
    }

    // MARK: Removing

    private func remove(_ found: EvictionRange, _ victims: [EvictionRange.Victim]) throws(LarderError) {
        let indexing = ExpiryIndex.Rules(database.rules.policy)
        var next = 0
        while next < victims.count {
            let batch = LarderLevelDB.WriteBatch()
            let first = next
            // Delete the index keys first, and then the entries in the order of their keys, so that a salvage can infer
            // the keys in a damaged part of a batch.
            while next < victims.count, batch.byteCount < Self.batchBytes / 2 {
                let entry = found.entries[victims[next].index]
                if let header = entry.header {
                    let slot = indexing.slot(header)
                    let key = found.key(entry)
                    if slot != 0 { batch.delete(key.withUnsafeBytes { ExpiryIndex.key(slot, storedKey: $0) }) }
                }
                next += 1
                if next - first >= 16_384 { break }
            }
            for victim in victims[first..<next] { batch.delete(found.key(found.entries[victim.index])) }
            try store.write(batch, sync: true)
        }
    }
}

extension Database {
    /// How often an entry was read recently, according to memory; nil if memory has a newer state of the key than
    /// LevelDB.
    func diskReads(of key: UnsafeRawBufferPointer, _ hash: Int) -> Double? {
        shards.with(hash) { shard in
            shard.lock.withLock {
                let noted = Double(shard.table.diskReads.count(hash))
                guard let entry = shard.table.find(key, hash: hash) else { return noted }
                return entry.isDirty ? nil : noted + Double(shard.table.hotness(entry))
            }
        }
    }
}

extension Shard {
    /// Updates memory after an entry was removed from LevelDB.
    /// - Returns: whether memory has a newer state, which stays; and whether a read had found the entry expired.
    func evicted(_ key: UnsafeRawBufferPointer, _ hash: Int, isGone: Bool) -> (isNewer: Bool, wasFound: Bool) {
        // A read in progress must not keep the entry in memory.
        if isGone { reads.swept(hash) } else { reads.changed(key, hash) }
        guard let entry = table.find(key, hash: hash) else { return (false, false) }
        // The entry's index key may have been removed from LevelDB too.
        entry.head.pointee.indexed = 0
        if entry.isDirty { return (true, false) }
        let wasFound = entry.head.pointee.isFoundExpired
        dropIfClean(entry)
        return (false, wasFound)
    }
}
