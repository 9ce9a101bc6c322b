import LarderLevelDB

/// One step of the eviction. It reads the entries of a key range from LevelDB, and removes those that are expired,
/// purged, or of least worth (``EvictionEstimate``). Then it makes LevelDB merge the tables of the range, which frees
/// the space of the removed entries.
///
/// Each step continues after the range of the previous one, because LevelDB frees space only by merging the tables of a
/// range. If the same number of removals were spread over all keys, LevelDB would have to rewrite all tables.
///
/// - The step writes to LevelDB directly, not through the journal, and syncs each batch. No checkpoint writes to the
///   store at the same time, and entries that are dirty in memory are skipped. So no newer version is removed.
/// - After a crash, each entry is either removed or unchanged. A replay of the journal may restore a removed entry, but
///   only with its newest value: the replay repeats later writes and removals too. For this, removals of
///   absent keys are committed meanwhile: see ``Update/removeEvicted(_:)``.
///
/// Confined to one thread.
struct EvictionPass {
    let database: Database
    let store: EpochStore
    let estimate: EvictionEstimate
    /// The maximum worth of the entries to remove.
    let threshold: Double
    let rangeBytes: Int
    /// The approximate number of bytes to evict.
    let wantedBytes: Int

    private static let entriesMax = 1 << 17
    private static let batchBytes = 1 << 20

    /// Evicts entries from the key range that begins at `start`.
    /// - Parameter leastShare: the minimum share of the range's bytes that justifies a merge. If less can be evicted,
    ///   the range stays unchanged. With 0, the step also evicts entries above the threshold until a quarter of the
    ///   range's bytes are evicted.
    func run(from start: [UInt8], leastShare: Double) throws(LarderError) -> EvictionOutcome {
        var outcome = EvictionOutcome()
        var found = EvictionRange()
        // Write LevelDB's memory to a table first, so that the removals are in a later table: a merge does not drop
        // entries whose removals are in the same table.
        store.flushMemtable()
        try store.indexLock.withLock { () throws(LarderError) in
            found = try collect(from: start)
            outcome.next = found.next
            outcome.seenBytes = found.seenBytes
            let victims = select(found, leastShare: leastShare)
            if victims.isEmpty { return }
            database.noteEviction()
            try remove(found, victims)
            found.updateMemoryAndNotify(database, victims, &outcome)
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
                // Skip records that cannot be read: either a newer version of Larder has written them, or they are
                // damaged and a salvage handles them.
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
        // If `leastShare` is 0, the previous round has evicted nothing. Then evict at least a quarter of the bytes.
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
        var hints = HintMaker(database.indexing.open)
        // The hints are far from the entries, so the merge of this range does not free their space.
        defer { store.noteDead(hints.byteCount) }
        var next = 0
        while next < victims.count {
            let batch = LarderLevelDB.WriteBatch()
            let first = next
            // Delete the hints and index keys first, and then the entries in the order of their keys. If a part of the batch is
            // damaged later, a salvage can infer the deleted keys from this order.
            while next < victims.count, batch.byteCount < Self.batchBytes / 2 {
                let entry = found.entries[victims[next].index]
                if let header = entry.header {
                    let slot = indexing.slot(header)
                    let key = found.key(entry)
                    if slot != 0 { batch.delete(key.withUnsafeBytes { ExpiryIndex.key(slot, storedKey: $0) }) }
                    try deleteHints(of: key, &hints, batch)
                }
                next += 1
                if next - first >= 16_384 { break }
            }
            for victim in victims[first..<next] { batch.delete(found.key(found.entries[victim.index])) }
            try store.write(batch, sync: true)
        }
    }

    /// Adds the removal of an entry's hints to a batch. Otherwise they would take space until they are found stale.
    private func deleteHints(
        of key: [UInt8], _ hints: inout HintMaker, _ batch: LarderLevelDB.WriteBatch
    ) throws(LarderError) {
        if hints.isEmpty { return }
        guard let record = try store.get(Key(stored: key), fillCache: false) else { return }
        key.dropFirst().withUnsafeBytes { key in
            record.withUnsafeBytes { hints.forEachHint(key, $0) { _, hint, _ in batch.delete(hint) } }
        }
    }
}

extension Database {
    /// Returns how often an entry was read recently; nil if memory has a newer state of the key than LevelDB.
    func diskReads(of key: UnsafeRawBufferPointer, _ hash: Int) -> Double? {
        shards.withLocked(hash) { shard in
            let noted = Double(shard.table.diskReads.count(hash))
            guard let entry = shard.table.find(key, hash: hash) else { return noted }
            return entry.isDirty ? nil : noted + Double(shard.table.hotness(entry))
        }
    }
}

extension Shard {
    /// Updates memory after LevelDB has removed an entry.
    /// - Returns: whether memory has (and keeps) a newer state of the key, and whether a read has already counted the
    ///   entry as expired.
    func evicted(_ key: UnsafeRawBufferPointer, _ hash: Int, isGone: Bool) -> (isNewer: Bool, wasFound: Bool) {
        // A read in progress may have found the removed entry and must not put it into memory.
        if isGone { reads.swept(hash) } else { reads.changed(key, hash) }
        guard let entry = table.find(key, hash: hash) else { return (false, false) }
        // The entry's index key may have been removed from LevelDB too. Make the next checkpoint of the entry write it
        // again.
        table.forgetIndexed(entry)
        if entry.isDirty { return (true, false) }
        let wasFound = entry.isFoundExpired
        dropIfClean(entry)
        return (false, wasFound)
    }
}
