/// Calls for commands with very many keys. Everything possible is prepared before the locks are taken, so that all
/// locks together are held for a fraction of a microsecond per key.
extension Database {
    /// Stores one payload under each of the keys at one instant, as one commit unit, without reading the present
    /// entries. If a key occurs twice, its last payload is stored. The database must be ready for writing.
    /// - Returns: the ticket that the reply has to wait for.
    package func put(
        _ keys: [Key], payloads: [UnsafeRawBufferPointer], now: Int64, origin: WriteOrigin
    ) throws(LarderError) -> CommitTicket {
        precondition(keys.count == payloads.count, "every key has a payload")
        try ForkGuard.check("update")
        let locked = DatabaseShards.set(of: keys)
        shards.lock(locked)
        defer { shards.unlock(locked) }
        let store = try writableStore(applied, "update")
        try checkFits(payloads.reduce(0) { $0 + $1.count }, limit: applied.diskLimit)
        let rules = applied.rules
        let governed = RecordHeader(storedAt: now, generation: applied.generation)
        // With a jitter each entry has its own deadline.
        let own = rules.jitter == 0 ? [] : keys.map { _ in rules.stored(.governed, now: now) }
        func header(_ index: Int) -> RecordHeader {
            guard !own.isEmpty else { return governed }
            return RecordHeader(storedAt: now, rule: own[index], generation: governed.generation)
        }
        let stateSequence = applied.sequence
        let sequence = pipeline.enqueue(context.options.durability) { batch, sequence in
            batch.select(database: name, number: number, epoch: store.epoch)
            for index in keys.indices {
                keys[index].withBytes { key in
                    batch.put(key: key, header: header(index), payload: payloads[index], sequence: sequence)
                    if context.changes.isOn { batch.changes.add(stored(key, header(index), origin), sequence) }
                }
            }
        }
        for index in keys.indices {
            fetchAhead(keys, index)
            let hash = keys[index].hash
            keys[index].withBytes { key in
                shards.with(hash) { shard in
                    _ = shard.put(key, hash, header(index), payloads[index], sequence: sequence)
                }
            }
        }
        return CommitTicket(sequence: max(sequence, stateSequence))
    }

    /// Removes the entries of the keys at one instant, as one commit unit.
    /// - Parameter ticket: raised to cover the commits that the reply has to wait for.
    /// - Returns: the number of fresh entries removed; nil, with nothing removed, if LevelDB must be read to find a
    ///   key, or if a listener needs the removed entries.
    package func removeInMemory(_ keys: [Key], now: Int64, ticket: inout CommitTicket) throws(LarderError) -> Int? {
        try ForkGuard.check("update")
        let locked = DatabaseShards.set(of: keys)
        shards.lock(locked)
        defer { shards.unlock(locked) }
        guard case .open = applied.presence, !context.changes.isOn else { return nil }
        var sequence = applied.sequence
        guard let known = survey(keys, now, &sequence) else { return nil }
        ticket = max(ticket, CommitTicket(sequence: sequence))
        // Fetches of keys without an entry are outdated too.
        for key in keys { key.withBytes { bytes in shards[key].leases?.changed(bytes, .outdated, isRemoval: true) } }
        guard known.stored > 0 else { return 0 }
        let store = try writableStore(applied, "update")
        let unit = pipeline.enqueue(context.options.durability) { batch, unit in
            batch.select(database: name, number: number, epoch: store.epoch)
            // A key that occurs twice is removed twice, with the same result.
            for key in keys { key.withBytes { batch.remove(key: $0, sequence: unit) } }
        }
        var removed = 0
        for index in keys.indices {
            fetchAhead(keys, index)
            let hash = keys[index].hash
            keys[index].withBytes { key in
                shards.with(hash) { shard in
                    // A key that occurs twice no longer has an entry the second time.
                    guard let record = shard.table.find(key, hash: hash)?.record else { return }
                    if isFresh(record, now) ?? false { removed += 1 }
                    // In place, so that no eviction can remove the entries found above.
                    shard.removeInPlace(key, hash, sequence: unit, lease: .none)
                }
            }
        }
        shards.forEach(in: locked) { $0.makeRoom() }
        ticket = max(ticket, CommitTicket(sequence: unit))
        return removed
    }

    /// Looks keys up in memory. Called with all their shard locks held.
    /// - Parameter sequence: raised to the last commit that the reply has to wait for.
    /// - Returns: the number of keys with an entry, expired or not, and the number with a fresh one; a repeated key is
    ///   counted each time. Returns nil if memory cannot tell whether a key has an entry, or if an entry cannot be
    ///   read. The slow path reports the error.
    private func survey(_ keys: [Key], _ now: Int64, _ sequence: inout UInt64) -> (stored: Int, fresh: Int)? {
        switch applied.presence {
        case .absent: return (0, 0)
        case .open: break
        case .closed, .failed, .deleted, .shut: return nil
        }
        var (stored, fresh) = (0, 0)
        for index in keys.indices {
            fetchAhead(keys, index)
            let isKnown = shards.with(keys[index].hash) { shard in
                guard let entry = shard.find(keys[index]) else {
                    return keys[index].withBytes { isAbsentBelow(shard, $0, keys[index].hash) }
                }
                sequence = max(sequence, undecided(entry))
                guard let record = entry.record else { return true }
                guard let header = try? RecordHeader(parsing: record, applied.rules.purges) else { return false }
                stored += 1
                switch applied.rules.freshness(header, now: now) {
                case .fresh:
                    shard.table.touch(entry)
                    fresh += 1
                case .stale: break
                case .gone: shard.foundExpired(entry)
                }
                return true
            }
            guard isKnown else { return nil }
        }
        return (stored, fresh)
    }

    /// Whether a stored record is fresh; nil if its header cannot be read.
    private func isFresh(_ record: UnsafeRawBufferPointer, _ now: Int64) -> Bool? {
        guard let header = try? RecordHeader(parsing: record, applied.rules.purges) else { return nil }
        return applied.rules.freshness(header, now: now) == .fresh
    }

    /// Prefetches the memory of the keys after this position. Called with all their shard locks held.
    @inline(__always)
    func fetchAhead(_ keys: [Key], _ position: Int) {
        if position + 16 < keys.count {
            let hash = keys[position + 16].hash
            shards.with(hash) { $0.table.prefetchSlot(hash) }
        }
        if position + 8 < keys.count {
            let hash = keys[position + 8].hash
            shards.with(hash) { $0.table.prefetchEntry(hash) }
        }
    }
}
