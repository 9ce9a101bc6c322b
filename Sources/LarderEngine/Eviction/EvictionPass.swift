import LevelDB

/// One step of the eviction: looks at the entries of a range of keys in LevelDB, removes those that are gone and those
/// that are worth the least, and has LevelDB merge the tables of the range, which gives their space back.
///
/// Ranges follow each other in the order of the keys, because LevelDB gives space back by ranges: removing the same
/// number of entries everywhere would cost writing all tables anew.
///
/// - It writes to LevelDB directly, not through the journal, with each batch synced. No checkpoint writes meanwhile, so
///   nothing newer is removed. An entry that is dirty in memory is left alone.
/// - A crash leaves an entry removed or as it was. The journal may bring it back, with its newest value: it removes and
///   overwrites again whatever was removed and overwritten after it was stored.
///
/// Confined to one thread.
struct EvictionPass {
    let database: Database
    let store: EpochStore
    let estimate: EvictionEstimate
    /// Entries that are worth at most this are removed.
    let threshold: Double
    let rangeBytes: Int
    /// About how many bytes are to go; what is worth the least goes first.
    let wantedBytes: Int

    /// What a pass has done.
    struct Outcome {
        /// The first key behind the range in LevelDB's form; nil at the end.
        var next: [UInt8]?
        var seenBytes = 0
        /// Of these, what had expired or was purged.
        var gone = 0
        var evicted = 0
        var evictedBytes = 0

        var hasRemoved: Bool { gone + evicted > 0 }
    }

    private static let entriesMax = 1 << 17
    private static let batchBytes = 1 << 20
    /// How many keys are handled with a shard's lock held once.
    private static let slice = 64

    /// Handles the range that begins at `start`.
    /// - Parameter leastShare: of the range's bytes that must go; otherwise it is left as it is, because giving the
    ///   space back would cost too much. 0: what is worth least goes, at least a fourth of the bytes.
    func run(from start: [UInt8], leastShare: Double) throws(LarderError) -> Outcome {
        var outcome = Outcome()
        var found = Found()
        // LevelDB does not merge what one table has: an entry and its removal must not get into the same one.
        store.settleMemory()
        try store.indexLock.withLock { () throws(LarderError) in
            found = try collect(from: start)
            outcome.next = found.next
            outcome.seenBytes = found.seenBytes
            let victims = select(found, leastShare: leastShare)
            if victims.isEmpty { return }
            try remove(found, victims)
            settle(found, victims, &outcome)
        }
        guard outcome.hasRemoved, let first = found.entries.first, let last = found.entries.last else { return outcome }
        let statistics = database.context.statistics
        statistics.evicted.add(outcome.evicted)
        statistics.evictedBytes.add(outcome.evictedBytes)
        statistics.expiredSwept.add(outcome.gone)
        let (from, to) = (found.key(first), found.key(last))
        try store.access("compact") { (database) throws(LevelDBError) in try database.compact(from: from, to: to) }
        return outcome
    }

    // MARK: Collecting

    /// The entries of a range.
    private struct Found {
        struct Entry {
            let offset: Int
            let keyCount: Int
            let byteCount: Int
            /// Nil for a record that cannot be read.
            let header: RecordHeader?
        }

        /// The keys in LevelDB's form, one behind the other.
        var keys: [UInt8] = []
        var entries: [Entry] = []
        var seenBytes = 0
        var next: [UInt8]?

        func key(_ entry: Entry) -> [UInt8] { Array(keys[entry.offset..<(entry.offset + entry.keyCount)]) }
    }

    private func collect(from start: [UInt8]) throws(LarderError) -> Found {
        let purges = database.removalRules.purges
        return try store.access("evict") { (leveldb) throws(LevelDBError) in
            var options = ReadOptions()
            options.fillCache = false
            let cursor = try leveldb.cursor(options, prefix: [KeyKind.record])
            defer { cursor.close() }
            var found = Found()
            try cursor.seek(to: start)
            while cursor.isValid {
                let offset = found.keys.count
                try cursor.withKey { found.keys.append(contentsOf: $0) }
                let keyCount = found.keys.count - offset
                guard found.entries.count < Self.entriesMax, found.seenBytes < rangeBytes else {
                    found.next = Array(found.keys[offset...])
                    return found
                }
                let (header, count) = try cursor.withValue { (try? RecordHeader(parsing: $0, purges), $0.count) }
                found.entries.append(
                    Found.Entry(offset: offset, keyCount: keyCount, byteCount: keyCount + count, header: header))
                found.seenBytes += keyCount + count
                try cursor.next()
            }
            return found
        }
    }

    // MARK: Choosing

    private struct Victim {
        let index: Int
        let hash: Int
        let isGone: Bool
    }

    private func select(_ found: Found, leastShare: Double) -> [Victim] {
        let removalRules = database.removalRules
        let rules = database.rules
        var victims: [Victim] = []
        var others: [(victim: Victim, worth: Double, bytes: Int)] = []
        var bytes = 0
        found.keys.withUnsafeBytes { keys in
            for (index, entry) in found.entries.enumerated() {
                // A newer Larder may have written what this one cannot read; damage is for the salvage.
                guard let header = entry.header else { continue }
                let key = UnsafeRawBufferPointer(
                    rebasing: keys[(entry.offset + 1)..<(entry.offset + entry.keyCount)])
                let hash = Key.hash(key)
                guard let reads = database.diskReads(of: key, hash) else { continue }
                if removalRules.isGone(header, now: estimate.now) {
                    victims.append(Victim(index: index, hash: hash, isGone: true))
                    bytes += entry.byteCount
                    continue
                }
                let worth = estimate.worth(
                    reads: reads, storedAt: header.storedAt, end: rules.end(header), bytes: entry.byteCount)
                others.append((Victim(index: index, hash: hash, isGone: false), worth, entry.byteCount))
            }
        }
        others.sort { $0.worth < $1.worth }
        let cheap = others.prefix { $0.worth <= threshold }
        let cheapBytes = cheap.reduce(0) { $0 + $1.bytes }
        let enough = leastShare * Double(found.seenBytes)
        guard Double(bytes + cheapBytes) >= enough else { return [] }
        // In a round of which nothing else is to be had, a fourth.
        let most = leastShare > 0 ? cheapBytes : max(cheapBytes, found.seenBytes / 4)
        for other in others where bytes < min(max(1, most), wantedBytes) {
            victims.append(other.victim)
            bytes += other.bytes
        }
        return victims.sorted { $0.index < $1.index }
    }

    // MARK: Removing

    private func remove(_ found: Found, _ victims: [Victim]) throws(LarderError) {
        let indexing = ExpiryIndex.Rules(database.rules.policy)
        var next = 0
        while next < victims.count {
            let batch = LevelDB.WriteBatch()
            let first = next
            // The index first, then the keys in order: this tells a salvage what a damaged piece of a batch may have
            // had.
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

    /// LevelDB has removed the entries: memory forgets them, and observers are told. With the lock of an entry's shard
    /// held, so that a later write of the key is told later.
    private func settle(_ found: Found, _ victims: [Victim], _ outcome: inout Outcome) {
        var byShard: [[Victim]] = Array(repeating: [], count: Shard.count)
        for victim in victims { byShard[Shard.index(victim.hash)].append(victim) }
        for (index, part) in byShard.enumerated() {
            for start in stride(from: 0, to: part.count, by: Self.slice) {
                let slice = part[start..<min(start + Self.slice, part.count)]
                database.shards[index].lock.withLock { settleSlice(found, slice, database.shards[index], &outcome) }
            }
        }
    }

    private func settleSlice(
        _ found: Found, _ slice: ArraySlice<Victim>, _ shard: Shard, _ outcome: inout Outcome
    ) {
        var changes: [EntryChange] = []
        for victim in slice {
            let entry = found.entries[victim.index]
            guard let header = entry.header else { continue }
            let key = Array(found.keys[(entry.offset + 1)..<(entry.offset + entry.keyCount)])
            let (isNewer, wasFound) = key.withUnsafeBytes { shard.evicted($0, victim.hash, isGone: victim.isGone) }
            if victim.isGone {
                outcome.gone += 1
                if !wasFound { database.context.statistics.expired.add() }
            } else {
                outcome.evicted += 1
                shard.counters.evicted += 1
                outcome.evictedBytes += entry.byteCount
            }
            // Whoever has written it meanwhile tells that.
            guard !isNewer, database.context.changes.isOn else { continue }
            if victim.isGone {
                if let change = database.sweptChange(key, header, database.applied.rules) { changes.append(change) }
            } else {
                changes.append(database.evictedChange(key, header))
            }
        }
        database.context.changes.tell(changes)
    }
}

extension Database {
    /// How often an entry was read lately, as far as memory knows; nil if memory has a newer state of the key than
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
    /// An entry was removed from LevelDB.
    /// - Returns: whether memory has a newer state, which stays; and whether a read had found the entry expired.
    func evicted(_ key: UnsafeRawBufferPointer, _ hash: Int, isGone: Bool) -> (isNewer: Bool, wasFound: Bool) {
        // What is being read of it is not kept.
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
