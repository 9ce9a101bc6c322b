/// The client and the kind of command that wrote an entry. The engine only passes it to listeners.
package struct WriteOrigin: Hashable, Sendable {
    /// The kind of command.
    package var tag: UInt16
    /// The client; 0 for none.
    package var client: Int64
    /// Whether the change was made in another larder, so that its version is final.
    package var isForeign = false
    /// When the change was made, and its sequence if it comes from another larder; 0 if unknown.
    package var version = ChangeVersion(time: 0)

    package init(tag: UInt16 = 0, client: Int64 = 0) {
        self.tag = tag
        self.client = client
    }
}

/// A database as seen by listeners for changes.
package protocol DatabaseIdentity: AnyObject, Sendable {
    var name: String { get }
}

/// A committed change of one entry.
package struct EntryChange: Sendable {
    package enum Kind: Sendable {
        case stored(RecordHeader)
        case removed
        /// The entry was found expired when its space was reclaimed; `deadline` is when it expired.
        case swept(RecordHeader, deadline: Int64)
        /// The entry was evicted to keep a disk limit.
        case evicted(RecordHeader)
    }

    /// The entry before the change.
    package enum Previous: Sendable, Equatable {
        /// Not read.
        case unknown
        /// Absent or unreadable.
        case absent
        case fresh(DeadlineRule)
    }

    package let database: any DatabaseIdentity
    package let key: [UInt8]
    package let kind: Kind
    package let previous: Previous
    package var origin: WriteOrigin
    /// When a stored entry expires under the current rules; nil for never.
    package var deadline: Int64?
    /// Whether readers see no difference; only observers with ``ChangeObserver/wantsUnseen`` are notified.
    package var isUnseen = false
    /// Whether a removed entry had already expired.
    package var removesExpired = false
    /// The commit unit of the change; 0 for changes that are only detected, such as an expiry, and not written.
    package var sequence: UInt64 = 0
}

/// An observer of commits. Called in the order of the commits, before their writers get a result, by any thread,
/// possibly with shards locked. Calls must be short, must not block, and must not call the engine.
package protocol ChangeObserver: AnyObject, Sendable {
    /// Whether it is notified of changes that readers do not see.
    var wantsUnseen: Bool { get }
    func changed(_ changes: [EntryChange])
    /// A purge has emptied a database. Called before ``emptied(_:)``, which is called for every way to empty a
    /// database.
    func purged(_ database: any DatabaseIdentity)
    /// A database has lost all its entries.
    func emptied(_ database: any DatabaseIdentity)
    /// The contents of a database were replaced by unknown entries.
    func replaced(_ database: any DatabaseIdentity)
    /// A database was deleted, after ``emptied(_:)``. No more notifications about it follow.
    func deleted(_ database: any DatabaseIdentity)
    /// The fetch of a key has ended without a stored value, so one of the waiters may fetch the key itself.
    func fetchAgain(_ key: [UInt8], in database: any DatabaseIdentity)
    /// The policy of a database has changed, and with it the expiry of entries that follow it.
    func policyChanged(_ database: any DatabaseIdentity)
    /// Entries with at least one of these tags were removed or became stale.
    func purged(tags: [[UInt8]], in database: any DatabaseIdentity)
    /// The purges of tags have changed: entries with tags may have been removed or become stale.
    func purgesChanged(_ database: any DatabaseIdentity)
}

extension ChangeObserver {
    package var wantsUnseen: Bool { false }
    package func purged(_ database: any DatabaseIdentity) {}
    package func replaced(_ database: any DatabaseIdentity) { emptied(database) }
    package func deleted(_ database: any DatabaseIdentity) {}
    package func purged(tags: [[UInt8]], in database: any DatabaseIdentity) {}
    package func purgesChanged(_ database: any DatabaseIdentity) { policyChanged(database) }
}
