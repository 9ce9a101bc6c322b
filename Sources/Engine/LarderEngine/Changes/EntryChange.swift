/// Where a write comes from, and its version. Only observers use the client and the kind of command.
package struct WriteOrigin: Hashable, Sendable {
    /// The kind of command.
    package var tag: UInt16
    /// The client's ID; 0 for none.
    package var client: Int64
    /// Whether the change was made in another larder. If so, its version is kept.
    package var isForeign = false
    /// The time of the change and, for a change from another larder, its commit sequence number. Each is 0 if unknown.
    package var version = ChangeVersion(time: 0)

    package init(tag: UInt16 = 0, client: Int64 = 0) {
        self.tag = tag
        self.client = client
    }
}

/// A database, as observers of changes identify it.
package protocol DatabaseIdentity: AnyObject, Sendable {
    var name: String { get }
}

/// A committed change of one entry.
package struct EntryChange: Sendable {
    package enum Kind: Sendable {
        case stored(RecordHeader)
        case removed
        /// The expired entry was removed to reclaim its space. `deadline` is the time of its expiry.
        case swept(RecordHeader, deadline: Int64)
        /// The entry was evicted to stay within a disk limit.
        case evicted(RecordHeader)
    }

    /// The entry before the change.
    package enum Previous: Sendable, Equatable {
        /// The previous entry was not read.
        case unknown
        /// There was no entry, or it could not be read.
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
    /// Whether the change makes no difference to readers. If so, only observers with ``ChangeObserver/wantsUnseen`` are
    /// notified.
    package var isUnseen = false
    /// Whether a removed entry had already expired.
    package var removesExpired = false
    /// The number of the change's commit unit; 0 for a change that is detected but not written, such as an expiry.
    package var sequence: UInt64 = 0
}

/// An observer of commits. Its functions are called in the order of the commits, before the writers get their results.
/// Any thread may call them, possibly with locks of the database held. They must return quickly, must not block, and
/// must not call the engine.
package protocol ChangeObserver: AnyObject, Sendable {
    /// Whether the observer is notified of changes that make no difference to readers.
    var wantsUnseen: Bool { get }
    func changed(_ changes: [EntryChange])
    /// Called when a purge has emptied a database, before ``emptied(_:)``.
    func purged(_ database: any DatabaseIdentity)
    /// Called when a database has lost all its entries.
    func emptied(_ database: any DatabaseIdentity)
    /// Called when the contents of a database were replaced by unknown entries.
    func replaced(_ database: any DatabaseIdentity)
    /// Called when a database was deleted, after ``emptied(_:)``. No more notifications about the database follow.
    func deleted(_ database: any DatabaseIdentity)
    /// Called when the fetch of a key has ended without a stored value. One of the callers that wait for the key may
    /// then fetch it.
    func fetchAgain(_ key: [UInt8], in database: any DatabaseIdentity)
    /// Called when a database's policy has changed. This changes the deadlines of all entries that follow the policy.
    func policyChanged(_ database: any DatabaseIdentity)
    /// Called when entries with at least one of these tags were removed or became stale.
    func purged(tags: [[UInt8]], in database: any DatabaseIdentity)
    /// Called when unknown tags were purged. Any entry with tags may be removed or stale now.
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
