/// Applies the changes of an update to the journal and the entries in memory.
extension Update {
    /// Queues the changes for the journal, and applies them to the entries in memory. Called with the shard locks held.
    func apply(in database: Database, _ state: DatabaseState, _ durability: Durability?) throws(LarderError) -> UInt64 {
        let store = try database.writableStore(state.presence, "update")
        try database.checkFits(storedByteCount, limit: state.diskLimit)
        return apply(in: database, to: store, durability ?? database.context.options.durability)
    }

    /// Like ``apply(in:_:_:)``, but does not check whether writes are accepted and fit on the disk.
    func apply(in database: Database, to store: EpochStore, _ durability: Durability) -> UInt64 {
        let sequence = database.pipeline.enqueue(durability, alone: large != nil) { batch, sequence in
            write(database, into: batch, store, sequence)
        }
        note(sequence)
        return sequence
    }

    /// Adds the changes to the journal batch of their commit unit.
    func write(_ database: Database, into batch: JournalBatch, _ store: EpochStore, _ sequence: UInt64) {
        batch.select(database: database.name, number: database.number, epoch: store.epoch)
        if database.context.changes.isOn, !database.isLedger { noteChanges(database, in: batch, sequence) }
        for index in operations.indices {
            let operation = operations[index]
            let key = slots[operation.pointee.slot].pointee.key
            if operation.pointee.isRemoval {
                batch.remove(key: key, sequence: sequence)
            } else if let large {
                batch.put(key: key, header: operation.pointee.stored.header, staged: large.staged, sequence: sequence)
            } else {
                batch.put(key: key, operation.pointee.stored.view, sequence: sequence)
            }
        }
    }

    /// Adds the changes to the batch, for ``ChangeStream``.
    private func noteChanges(_ database: Database, in batch: JournalBatch, _ sequence: UInt64) {
        var storedKeys: Set<Key>?
        for index in operations.indices {
            let operation = operations[index].pointee
            let (slot, note) = (slots[operation.slot].pointee, operation.note)
            let key = Array(slot.key)
            if !operation.isRemoval {
                batch.changes.append(
                    EntryChange(
                        database: database, key: key, kind: .stored(operation.stored.header), previous: note.previous,
                        origin: note.origin, deadline: database.applied.rules.deadline(operation.stored.header),
                        isUnseen: note.isUnseen, sequence: sequence))
                continue
            }
            if note.previous == .unknown, storedKeys == nil {
                // If a key is repeated, the update may also store the key that it removes.
                let puts = operations.indices.map { operations[$0].pointee }.filter { !$0.isRemoval }
                storedKeys = Set(puts.map { Key(slots[$0.slot].pointee.key) })
            }
            let isKnown = note.previous != .unknown || storedKeys?.contains(Key(slot.key)) ?? false
            let (previous, hasExpired) = isKnown ? (note.previous, note.previousHasExpired) : lookedUp(slot)
            batch.changes.append(
                EntryChange(
                    database: database, key: key, kind: .removed, previous: previous, origin: note.origin,
                    isUnseen: note.isUnseen, removesExpired: hasExpired, sequence: sequence))
        }
    }

    /// Looks up, in memory only, a key that is about to be removed. Called with the shard's lock held.
    /// - Returns: the previous state of the key, and whether its entry has expired.
    private func lookedUp(_ slot: Slot) -> (EntryChange.Previous, hasExpired: Bool) {
        guard let entry = slot.withShard({ $0.table.find(slot.key, hash: slot.hash) }) else { return (.unknown, false) }
        if !entry.hasRecord { return (.absent, false) }
        return entry.isFoundExpired ? (.absent, true) : (.unknown, false)
    }

    /// Applies the changes to the entries in memory. Called with the shard locks held.
    func note(_ sequence: UInt64) {
        for index in operations.indices {
            withDatabase {
                $0.shards.prefetch(after: index, of: operations.count) {
                    slots[operations[$0].pointee.slot].pointee.hash
                }
            }
            let operation = operations[index]
            let slot = slots[operation.pointee.slot]
            let (key, hash, lease) = (slot.pointee.key, slot.pointee.hash, operation.pointee.note.lease)
            slot.pointee.withShard { shard in
                if operation.pointee.isRemoval {
                    if !hadFreshEntry(operation.pointee.note, shard, key, hash) {
                        shard.counters.removalsWithoutEntry += 1
                    }
                    shard.remove(key, hash, sequence: sequence, lease: lease)
                } else if let large {
                    shard.put(large.take(operation.pointee.stored.header), hash, sequence: sequence, lease: lease)
                } else {
                    shard.put(key, hash, operation.pointee.stored.view, sequence: sequence, lease: lease)
                }
                if operation.pointee.note.isUnseen { shard.reads.noteUnseen(Key(key)) }
                if operation.pointee.note.isRenewal { shard.counters.renewals += 1 }
            }
        }
    }

    /// Whether a key to be removed has a fresh entry; true if that is unknown because the entry was not loaded.
    private func hadFreshEntry(_ note: ChangeNote, _ shard: Shard, _ key: UnsafeRawBufferPointer, _ hash: Int) -> Bool {
        switch note.previous {
        case .fresh: return true
        case .absent: return false
        case .unknown:
            guard let entry = shard.table.find(key, hash: hash) else { return true }
            return entry.hasRecord && !entry.isFoundExpired
        }
    }
}

extension Database {
    /// Stores records, and removes the keys without a record, in one commit unit. Called with all shard locks held.
    /// - Parameter enqueue: queues a commit unit, lets its argument fill the batch, and returns the unit's sequence.
    func apply(
        _ records: [(key: Key, record: Record?)], to store: EpochStore,
        enqueue: ((JournalBatch, UInt64) -> Void) -> UInt64
    ) -> UInt64 {
        let update = Update()
        update.add(records.map(\.key), areDistinct: true)
        update.prepare(self, now: unnoticedNow(), .none)
        update.begin()
        for (index, (_, record)) in records.enumerated() {
            if let record { update.put(index, record) } else { update.remove(index) }
        }
        let sequence = enqueue { batch, sequence in update.write(self, into: batch, store, sequence) }
        update.note(sequence)
        return sequence
    }
}
