/// Operations for commands with very many keys. They do as much as possible before they lock the shards, so that the
/// locks are held for only a fraction of a microsecond per key.
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
        let store = try writableStore(applied.presence, "update")
        try checkFits(payloads.reduce(0) { $0 + $1.count }, limit: applied.diskLimit)
        let rules = applied.rules
        let governed = RecordHeader(storedAt: now, generation: applied.generation)
        // If the policy has a jitter, each entry has its own random deadline.
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
            shards.prefetch(after: index, of: keys.count) { keys[$0].hash }
            let hash = keys[index].hash
            keys[index].withBytes { key in
                shards.with(hash) { shard in
                    _ = shard.put(key, hash, header(index), payloads[index], sequence: sequence)
                }
            }
        }
        return CommitTicket(sequence: max(sequence, stateSequence))
    }
}
