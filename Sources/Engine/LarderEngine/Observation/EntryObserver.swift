/// A change as reported to an observer of entries.
package enum ObservedChange: Sendable, Equatable {
    /// An entry was stored, or its lifetime was changed.
    case stored(key: [UInt8])
    case removed(key: [UInt8])
    /// The entry was evicted because of a disk limit.
    case evicted(key: [UInt8])
    /// The entry has expired, and the key was not stored again.
    case expired(key: [UInt8])
    /// All entries of the database were removed.
    case purged
    /// The entries with at least one of these tags were removed or are stale now.
    case purgedTags([[UInt8]])
    /// Any entry of the database may have changed. The details are unknown.
    case anything
    /// The database was deleted. No change follows.
    case deleted
}

/// An observer of entries. It is notified of the changes of a key in the order of their commits. After a notification,
/// reads return the state after the change, or a newer one. Any thread may call the observer, possibly with locks held:
/// calls must be short, must not block, and must not call the engine.
package protocol EntryObserver: AnyObject, Sendable {
    func noticed(_ change: ObservedChange, in database: Database)
}

/// The entries that an observer observes.
package enum ObservedKeys: Sendable {
    case key([UInt8])
    /// All keys with this prefix; all keys if it is empty.
    case prefix([UInt8])
}
