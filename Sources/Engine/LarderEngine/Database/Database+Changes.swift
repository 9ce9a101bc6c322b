extension Database {
    /// Returns the change that reports a stored entry to observers. Called with a shard lock held.
    func stored(_ key: [UInt8], _ header: RecordHeader, _ note: ChangeNote) -> EntryChange {
        EntryChange(
            database: self, key: key, kind: .stored(header), previous: note.previous, origin: note.origin,
            deadline: applied.rules.deadline(header), isUnseen: note.isUnseen)
    }

    /// Returns the change that reports the removal of an expired entry; nil if there are no observers.
    func sweptChange(_ key: [UInt8], _ header: RecordHeader, _ rules: FreshnessRules) -> EntryChange? {
        guard context.changes.isOn, let deadline = rules.deadline(header) else { return nil }
        return EntryChange(
            database: self, key: key, kind: .swept(header, deadline: deadline), previous: .absent, origin: WriteOrigin()
        )
    }
}

extension Database {
    /// Returns the change that reports an entry evicted because of a disk limit.
    func evictedChange(_ key: [UInt8], _ header: RecordHeader) -> EntryChange {
        EntryChange(
            database: self, key: key, kind: .evicted(header), previous: .fresh(header.rule), origin: WriteOrigin())
    }
}

/// What the observers of changes need to know about an operation.
package struct ChangeNote: Sendable {
    var origin = WriteOrigin()
    var previous = EntryChange.Previous.unknown
    /// Whether the previous entry exists and has expired.
    var previousHasExpired = false
    /// The operation's index in a transaction of several databases.
    var step = 0
    /// Whether readers of the entry see no difference. If so, watchers and most observers are not notified.
    var isUnseen = false
    /// Whether only the entry's lifetime changes.
    var isRenewal = false
    var lease = LeaseEffect.outdated
}

extension ChangeFeed {
    /// Notifies observers of the difference between two states of a database.
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

/// The changes of entries in one batch of the journal, for observers.
final class ChangeList: CommitNotes {
    private(set) var changes: [EntryChange] = []

    var count: Int { changes.count }

    func add(_ change: EntryChange, _ sequence: UInt64) {
        var change = change
        change.sequence = sequence
        changes.append(change)
    }

    /// Passes the changes to the change log, before they are committed.
    func prepare(_ log: ChangeLog) { log.prepare(&changes) }

    func clear() { if !changes.isEmpty { changes = [] } }

    /// Sorts the changes of one unit, which were added database by database, into the order in which they were made.
    /// - Parameters:
    ///   - first: the index of the unit's first change.
    ///   - steps: for each change of the unit, in the order of adding, its place in the unit. The sort is stable.
    func order(from first: Int, by steps: [Int]) {
        // The counts differ if observers were added or removed in the meantime.
        guard changes.count - first == steps.count else { return }
        let order = steps.indices.sorted { (steps[$0], $0) < (steps[$1], $1) }
        let noted = Array(changes[first...])
        for (place, index) in order.enumerated() { changes[first + place] = noted[index] }
    }
}

extension JournalBatch {
    /// The changes of entries for observers. Filled only if there are observers.
    var changes: ChangeList {
        if let list = notes as? ChangeList { return list }
        let list = ChangeList()
        notes = list
        return list
    }
}
