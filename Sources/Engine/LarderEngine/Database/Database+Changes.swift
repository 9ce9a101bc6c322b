extension Database {
    /// Records the operations of a unit as changes for ``ChangeFeed``, in the batch that commits the unit.
    func noteChanges(_ operations: [CommitOperation], in batch: JournalBatch, _ sequence: UInt64) {
        guard context.changes.isOn, !isLedger else { return }
        var storedKeys: Set<Key>?
        for operation in operations {
            let key = Array(operation.key.bytes)
            switch operation {
            case .put(_, let record, let note): batch.changes.add(stored(key, record.header, note), sequence)
            case .putLarge(_, let header, let note): batch.changes.add(stored(key, header, note), sequence)
            case .remove(let removed, let note):
                if note.previous == .unknown, storedKeys == nil { storedKeys = Self.keysStored(by: operations) }
                let isKnown = note.previous != .unknown || storedKeys?.contains(removed) ?? false
                let (previous, hasExpired) = isKnown ? (note.previous, note.previousHasExpired) : lookedUp(removed)
                batch.changes.add(
                    EntryChange(
                        database: self, key: key, kind: .removed, previous: previous, origin: note.origin,
                        isUnseen: note.isUnseen, removesExpired: hasExpired), sequence)
            }
        }
    }

    /// The keys that operations store.
    private static func keysStored(by operations: [CommitOperation]) -> Set<Key> {
        var keys: Set<Key> = []
        for operation in operations {
            if case .remove = operation { continue }
            keys.insert(operation.key)
        }
        return keys
    }

    /// Looks up, in memory only, the entry of a key that is about to be removed. Called with the shard's lock held.
    /// - Returns: the previous state of the key, and whether its entry has expired.
    private func lookedUp(_ key: Key) -> (EntryChange.Previous, hasExpired: Bool) {
        guard let entry = key.withBytes({ shards[key].table.find($0, hash: key.hash) }) else {
            return (.unknown, false)
        }
        if entry.record == nil { return (.absent, false) }
        return entry.head.pointee.isFoundExpired ? (.absent, true) : (.unknown, false)
    }

    /// The change for an entry that was stored. Called with a shard lock held.
    func stored(_ key: [UInt8], _ header: RecordHeader, _ note: ChangeNote) -> EntryChange {
        EntryChange(
            database: self, key: key, kind: .stored(header), previous: note.previous, origin: note.origin,
            deadline: applied.rules.deadline(header), isUnseen: note.isUnseen)
    }

    /// The change for an expired entry whose space is reclaimed; nil without listeners.
    func sweptChange(_ key: [UInt8], _ header: RecordHeader, _ rules: FreshnessRules) -> EntryChange? {
        guard context.changes.isOn, let deadline = rules.deadline(header) else { return nil }
        return EntryChange(
            database: self, key: key, kind: .swept(header, deadline: deadline), previous: .absent, origin: WriteOrigin()
        )
    }
}

extension Database {
    /// The change for an entry that was evicted for a disk limit.
    func evictedChange(_ key: [UInt8], _ header: RecordHeader) -> EntryChange {
        EntryChange(
            database: self, key: key, kind: .evicted(header), previous: .fresh(header.rule), origin: WriteOrigin())
    }
}

extension ChangeFeed {
    /// Notifies listeners of the difference between two states of a database.
    func notify(_ database: Database, was: DatabaseState, is new: DatabaseState) {
        notifyEach { observer in
            if was.store !== new.store {
                // The new epoch has taken over the entries if the journal's operations of the previous epoch are still
                // valid.
                if new.store != nil, new.counts(was.epoch) {
                    observer.replaced(database)
                } else {
                    if was.store != nil, new.store != nil { observer.purged(database) }
                    observer.emptied(database)
                }
            }
            if case .deleted = new.presence { observer.deleted(database) }
            if was.rules.settings != new.rules.settings || was.rules.deadBefore != new.rules.deadBefore {
                observer.policyChanged(database)
            } else if was.rules != new.rules {
                observer.purgesChanged(database)
            }
        }
    }
}

/// The changes in a batch.
final class ChangeList: CommitNotes {
    private(set) var changes: [EntryChange] = []

    var count: Int { changes.count }

    func add(_ change: EntryChange, _ sequence: UInt64) {
        var change = change
        change.sequence = sequence
        changes.append(change)
    }

    /// Passes the changes to the log, before they are committed.
    func prepare(_ log: ChangeLog) { log.prepare(&changes) }

    func clear() { if !changes.isEmpty { changes = [] } }

    /// Sorts the changes of one unit, which were added database by database, into the order in which they were made.
    /// - Parameters:
    ///   - first: the index of the first change.
    ///   - steps: their places in the unit, in the order in which they were added. The sort is stable.
    func order(from first: Int, by steps: [Int]) {
        // The counts differ if listeners were added or removed in the meantime.
        guard changes.count - first == steps.count else { return }
        let order = steps.indices.sorted { (steps[$0], $0) < (steps[$1], $1) }
        let noted = Array(changes[first...])
        for (place, index) in order.enumerated() { changes[first + place] = noted[index] }
    }
}

extension JournalBatch {
    /// The changes for listeners. Filled only if there are listeners.
    var changes: ChangeList {
        if let list = notes as? ChangeList { return list }
        let list = ChangeList()
        notes = list
        return list
    }
}
