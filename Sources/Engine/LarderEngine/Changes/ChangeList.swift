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

/// The changes of entries in one batch of the journal, for observers.
final class ChangeList {
    private(set) var changes: [EntryChange] = []

    var count: Int { changes.count }

    func add(_ change: EntryChange, _ sequence: UInt64) {
        var change = change
        change.sequence = sequence
        changes.append(change)
    }

    /// Passes the changes to the change log, before they are committed.
    func prepare(_ log: ChangeLog) { log.prepare(&changes) }

    /// Puts the changes of one unit, which were added database by database, into the order in which they were made.
    /// - Parameters:
    ///   - first: the index of the unit's first change.
    ///   - steps: for each change, in the order of adding, its position in the unit. The sort is stable.
    func order(from first: Int, by steps: [Int]) {
        // The counts differ if observers were turned on or off while the changes were added.
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
