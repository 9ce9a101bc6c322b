extension Database {
    /// Notes operations of a unit with the batch that commits it, for ``ChangeFeed``.
    func noteChanges(_ operations: [CommitOperation], in batch: JournalBatch) {
        guard context.changes.isOn else { return }
        for operation in operations where !operation.note.isUnseen {
            let (kind, note): (EntryChange.Kind, ChangeNote) =
                switch operation {
                case .put(_, let record, let note): (.stored(record.header), note)
                case .putLarge(_, let header, let note): (.stored(header), note)
                case .remove(_, let note): (.removed, note)
                }
            batch.changes.add(
                EntryChange(
                    database: self, key: Array(operation.key.bytes), kind: kind, former: note.former,
                    origin: note.origin))
        }
    }

    /// The change for an expired entry whose space is reclaimed; nil if nobody listens.
    func sweptChange(_ key: [UInt8], _ header: RecordHeader, _ rules: FreshnessRules) -> EntryChange? {
        guard context.changes.isOn, let deadline = rules.deadline(header) else { return nil }
        return EntryChange(
            database: self, key: key, kind: .swept(header, deadline: deadline), former: .absent, origin: WriteOrigin())
    }
}

extension ChangeFeed {
    /// Tells listeners how a database differs from its former state.
    func tell(_ database: Database, was: DatabaseState, is new: DatabaseState) {
        guard isOn, let current else { return }
        if was.store !== new.store { current.emptied(database) }
        if was.rules != new.rules { current.policyChanged(database) }
    }
}

/// The changes in a batch.
final class ChangeList: CommitNotes {
    private(set) var changes: [EntryChange] = []

    var count: Int { changes.count }

    func add(_ change: EntryChange) { changes.append(change) }

    func clear() { if !changes.isEmpty { changes = [] } }

    /// Sorts the changes of one unit, noted database by database, into the order in which they were made.
    /// - Parameters:
    ///   - first: the index of the first change.
    ///   - steps: their places in the unit, in the order in which they were noted. The sort is stable.
    func order(from first: Int, by steps: [Int]) {
        // Listening may have begun or ended meanwhile.
        guard changes.count - first == steps.count else { return }
        let order = steps.indices.sorted { (steps[$0], $0) < (steps[$1], $1) }
        let noted = Array(changes[first...])
        for (place, index) in order.enumerated() { changes[first + place] = noted[index] }
    }
}

extension JournalBatch {
    /// The operations as changes for listeners. Computed only while somebody listens.
    var changes: ChangeList {
        if let list = notes as? ChangeList { return list }
        let list = ChangeList()
        notes = list
        return list
    }
}
