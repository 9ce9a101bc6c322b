/// What commands call that have very many keys: the locks of all of them are held for a fraction of a microsecond a key,
/// because nothing is made there that could be made before or need not be made.
extension Database {
    /// Stores payloads under as many keys, all at one instant and as one commit unit, without looking at what is there; the
    /// later one counts of a key that is named twice. The database must be ready for writing.
    ///
    /// - Returns: what the answer has to wait for.
    package func put(
        _ keys: [Key], payloads: [UnsafeRawBufferPointer], now: Int64, origin: WriteOrigin
    ) throws(LarderError) -> CommitTicket {
        precondition(keys.count == payloads.count, "every key has a payload")
        try ForkGuard.check("update")
        let locked = DatabaseShards.set(of: keys)
        shards.lock(locked)
        defer { shards.unlock(locked) }
        let store = try writableStore(applied, "update")
        let header = RecordHeader(storedAt: now, rule: .governed, codec: .raw, generation: applied.generation)
        let stateSequence = applied.sequence
        let sequence = pipeline.enqueue(context.options.durability) { batch, sequence in
            batch.select(database: name, number: number, epoch: store.epoch)
            for index in keys.indices {
                keys[index].withBytes { key in
                    batch.put(key: key, header: header, payload: payloads[index], sequence: sequence)
                    if context.changes.isOn { batch.changes.add(stored(key, header, origin)) }
                }
            }
        }
        for index in keys.indices {
            fetchAhead(keys, index)
            let hash = keys[index].hash
            keys[index].withBytes { key in
                shards.with(hash) { shard in _ = shard.put(key, hash, header, payloads[index], sequence: sequence) }
            }
        }
        return CommitTicket(sequence: max(sequence, stateSequence))
    }

    /// How many of the keys have a fresh entry at one instant, one that is named twice counting twice.
    /// - Parameter ticket: raised to what the answer has to wait for.
    /// - Returns: nil where only the disk can tell.
    package func countInMemory(_ keys: [Key], now: Int64, ticket: inout CommitTicket) throws(LarderError) -> Int? {
        try ForkGuard.check("get")
        let locked = DatabaseShards.set(of: keys)
        shards.lock(locked)
        defer { shards.unlock(locked) }
        var sequence = applied.sequence
        guard let known = survey(keys, now, &sequence) else { return nil }
        ticket = max(ticket, CommitTicket(sequence: sequence))
        if let first = keys.first {
            shards.with(first.hash) { shard in
                shard.counters.hits += known.fresh
                shard.counters.misses += keys.count - known.fresh
            }
        }
        return known.fresh
    }

    /// Removes what is stored under the keys, at one instant and as one commit unit.
    /// - Parameter ticket: raised to what the answer has to wait for.
    /// - Returns: how many fresh entries there were; nil where only the disk can tell, or somebody listens to changes and is
    ///   to hear what there was. Then nothing was done.
    package func removeInMemory(_ keys: [Key], now: Int64, ticket: inout CommitTicket) throws(LarderError) -> Int? {
        try ForkGuard.check("update")
        let locked = DatabaseShards.set(of: keys)
        shards.lock(locked)
        defer { shards.unlock(locked) }
        guard case .open = applied.presence, !context.changes.isOn else { return nil }
        var sequence = applied.sequence
        guard let known = survey(keys, now, &sequence) else { return nil }
        ticket = max(ticket, CommitTicket(sequence: sequence))
        guard known.stored > 0 else { return 0 }
        let store = try writableStore(applied, "update")
        let unit = pipeline.enqueue(context.options.durability) { batch, unit in
            batch.select(database: name, number: number, epoch: store.epoch)
            // One that is named twice is removed twice, which is the same.
            for key in keys { key.withBytes { batch.remove(key: $0, sequence: unit) } }
        }
        var removed = 0
        for index in keys.indices {
            fetchAhead(keys, index)
            let hash = keys[index].hash
            keys[index].withBytes { key in
                shards.with(hash) { shard in
                    // Not there any more when it is named again.
                    guard let record = shard.table.find(key, hash: hash)?.record else { return }
                    if isFresh(record, now) ?? false { removed += 1 }
                    // Nothing is evicted meanwhile: what was seen above must not vanish before its turn.
                    shard.removeInPlace(key, hash, sequence: unit)
                }
            }
        }
        shards.forEach(in: locked) { $0.makeRoom() }
        ticket = max(ticket, CommitTicket(sequence: unit))
        return removed
    }

    /// What memory knows of keys. Called with the locks held of all their shards.
    /// - Parameter sequence: raised to what an answer has to wait for.
    /// - Returns: how many keys have an entry, expired or not, and how many a fresh one, those named twice counting twice;
    ///   nil where only the disk can tell of one, or one cannot be read, which the slow way complains of.
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
                guard let entry = shard.find(keys[index]) else { return false }
                sequence = max(sequence, undecided(entry))
                guard let record = entry.record else { return true }
                guard let header = try? RecordHeader(parsing: record) else { return false }
                stored += 1
                switch applied.rules.freshness(header, now: now) {
                case .fresh:
                    shard.table.touch(entry)
                    fresh += 1
                case .expired: shard.foundExpired(entry)
                }
                return true
            }
            guard isKnown else { return nil }
        }
        return (stored, fresh)
    }

    /// Whether a stored record is fresh; nil where its header cannot be read.
    private func isFresh(_ record: UnsafeRawBufferPointer, _ now: Int64) -> Bool? {
        guard let header = try? RecordHeader(parsing: record) else { return nil }
        return applied.rules.freshness(header, now: now) == .fresh
    }

    /// Has the processor fetch what memory has of the keys that follow. Called with the locks held of all their shards.
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
