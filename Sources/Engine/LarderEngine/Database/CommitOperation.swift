/// One change inside a commit unit. It contains the resulting record, never a relative change such as an increment.
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

    /// The bytes of the record that it stores.
    var byteCount: Int {
        switch self {
        case .put(_, let record, _): record.stored.count
        case .putLarge(let value, _, _): value.staged.byteCount
        case .remove: 0
        }
    }

    var isLong: Bool {
        if case .putLarge = self { return true }
        return false
    }
}

/// The information about an operation for listeners to changes.
package struct ChangeNote: Sendable {
    var origin = WriteOrigin()
    var previous = EntryChange.Previous.unknown
    /// Whether the previous entry exists and has expired.
    var previousHasExpired = false
    /// The operation's place in a transaction of several databases.
    var step = 0
    /// Whether readers of the entry see no difference. If so, watchers and listeners are not notified.
    var isUnseen = false
    /// Whether only the entry's lifetime changes.
    var isRenewal = false
    var lease = LeaseEffect.outdated
}
