/// One change inside a commit unit: an absolute result, never "add one".
package enum CommitOperation: Sendable {
    case put(Key, Record, ChangeNote)
    /// The only operation of its unit.
    case putLarge(LargeValue, RecordHeader, ChangeNote)
    case remove(Key, ChangeNote)

    var key: Key {
        switch self {
        case .put(let key, _, _), .remove(let key, _): key
        case .putLarge(let value, _, _): value.key
        }
    }

    var note: ChangeNote {
        switch self {
        case .put(_, _, let note), .putLarge(_, _, let note), .remove(_, let note): note
        }
    }

    var isLong: Bool {
        if case .putLarge = self { return true }
        return false
    }
}

/// What is noted of an operation for those who listen to changes.
package struct ChangeNote: Sendable {
    var origin = WriteOrigin()
    var former = EntryChange.Former.unknown
    /// Where in a transaction of several databases the operation stands.
    var step = 0
    /// Whether who reads the entry can see no difference: those who watch it or listen to changes are not told.
    var isUnseen = false
}
