import LarderLevelDB

/// One step of the eviction: reads the entries of a range of keys in LevelDB, removes those that are gone and the least
/// valuable ones, and has LevelDB merge the tables of the range, which frees their space.
///
/// Ranges follow each other in the order of the keys, because LevelDB frees space by ranges: removing the same number
/// of entries everywhere would cost writing all tables again.
///
/// - It writes to LevelDB directly, not through the journal, with each batch synced. No checkpoint writes at the same
///   time, so nothing newer is removed. Entries that are dirty in memory are skipped.
/// - A crash leaves an entry removed or unchanged. The journal may restore it, with its newest value, because it also
///   repeats all later removals and writes.
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
    ///   unchanged, because freeing the space would cost too much. 0: evicts the least valuable entries, at least a
    ///   fourth of the bytes.
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
                // A newer Larder may have written a record that this one cannot read; damage is left to the salvage.
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
        // In a round in which nothing else can be evicted, a fourth.
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
            // The index first, then the keys in order: so a salvage can tell which keys a damaged piece of a batch may
            // have had.
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
    /// Handles the removal of an entry from LevelDB.
    /// - Returns: whether memory has a newer state, which stays; and whether a read had found the entry expired.
    func evicted(_ key: UnsafeRawBufferPointer, _ hash: Int, isGone: Bool) -> (isNewer: Bool, wasFound: Bool) {
        // A read under way must not keep it.
        if isGone { reads.swept(hash) } else { reads.changed(key, hash) }
        guard let entry = table.find(key, hash: hash) else { return (false, false) }
        // LevelDB may have lost the index key too.
        entry.head.pointee.indexed = 0
        if entry.isDirty { return (true, false) }
        let wasFound = entry.head.pointee.isFoundExpired
        dropIfClean(entry)
        return (false, wasFound)
    }
}
