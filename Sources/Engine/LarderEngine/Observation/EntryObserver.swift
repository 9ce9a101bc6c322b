/// A change that an observer of entries is told.
package enum ObservedChange: Sendable, Equatable {
    /// An entry was stored, or given another lifetime.
    case stored(key: [UInt8])
    case removed(key: [UInt8])
    /// It was removed to keep a limit of the disk.
    case evicted(key: [UInt8])
    /// Its deadline has passed, and nothing was stored since.
    case expired(key: [UInt8])
    /// The database has lost all entries that it had.
    case purged
    /// Entries with some of these tags are gone, or stale.
    case purgedTags([[UInt8]])
    /// Everything may have changed, and nobody knows what has.
    case anything
    /// The database was deleted. The last change.
    case deleted
}

/// An observer of some of a larder's entries. It hears of the changes of a key in the order of their commits, and when it
/// hears of one, a reader finds that state or a newer one. Called by any thread, possibly with locks held: calls must be
/// short, must not block, and must not call the engine.
package protocol EntryObserver: AnyObject, Sendable {
    func noticed(_ change: ObservedChange, in database: Database)
}

/// Which entries an observer wants to hear of.
package enum ObservedKeys: Sendable {
    case key([UInt8])
    /// All keys that begin with it; all, if it is empty.
    case prefix([UInt8])
}
