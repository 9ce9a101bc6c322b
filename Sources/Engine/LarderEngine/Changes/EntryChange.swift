/// The client and the kind of command that wrote an entry. The engine only passes it to listeners.
package struct WriteOrigin: Hashable, Sendable {
    /// The kind of command.
    package var tag: UInt16
    /// The client; 0 for none.
    package var client: Int64
    /// Whether the change was made in another larder, so that its version is final.
    package var isForeign = false
    /// When the change was made, and where it comes from another larder its sequence there; 0 if that is not known.
    package var version = ChangeVersion(time: 0)

    package init(tag: UInt16 = 0, client: Int64 = 0) {
        self.tag = tag
        self.client = client
    }
}

/// A database, as listeners to changes see it.
package protocol DatabaseIdentity: AnyObject, Sendable {
    var name: String { get }
}

/// A committed change of one entry.
package struct EntryChange: Sendable {
    package enum Kind: Sendable {
        case stored(RecordHeader)
        case removed
        /// It was found expired when its space was reclaimed; `deadline` is when it expired.
        case swept(RecordHeader, deadline: Int64)
        /// It was removed to keep a limit of the disk.
        case evicted(RecordHeader)
    }

    /// The entry before the change.
    package enum Former: Sendable, Equatable {
        /// Not read.
        case unknown
        /// Absent or unreadable.
        case absent
        case fresh(DeadlineRule)
    }

    package let database: any DatabaseIdentity
    package let key: [UInt8]
    package let kind: Kind
    package let former: Former
    package var origin: WriteOrigin
    /// When a stored entry expires, by the rules at that moment; nil if it never does.
    package var deadline: Int64?
    /// Whether readers of the entry see no difference: only those who ask for it are told.
    package var isUnseen = false
    /// Whether a removal has removed an entry that had expired.
    package var removesExpired = false
    /// The commit unit of the change; 0 for what is found and not written, such as an expiry.
    package var sequence: UInt64 = 0
}

/// An observer of commits. It is called in the order of the commits, before their writers get an answer, by any thread,
/// possibly with shards locked. Calls must be short, must not block, and must not call the engine.
package protocol ChangeObserver: AnyObject, Sendable {
    /// Whether it is told of changes that readers do not see.
    var hearsUnseen: Bool { get }
    func changed(_ changes: [EntryChange])
    /// A purge has emptied a database. Told before ``emptied(_:)``, which tells the same of every other way.
    func purged(_ database: any DatabaseIdentity)
    /// A database has lost all its entries.
    func emptied(_ database: any DatabaseIdentity)
    /// A database has other entries than before, and nobody knows which.
    func replaced(_ database: any DatabaseIdentity)
    /// A database was deleted, and told to be emptied. Nothing happens in it any more.
    func deleted(_ database: any DatabaseIdentity)
    /// Nobody fetches a key any more that somebody did, and no value was stored.
    func fetchAgain(_ key: [UInt8], in database: any DatabaseIdentity)
    /// Entries of a database that follow its policy may end at another time than before.
    func policyChanged(_ database: any DatabaseIdentity)
    /// Entries with some of these tags are gone, or stale.
    func purged(tags: [[UInt8]], in database: any DatabaseIdentity)
    /// Entries with tags may be gone, or stale.
    func purgesChanged(_ database: any DatabaseIdentity)
}

extension ChangeObserver {
    package var hearsUnseen: Bool { false }
    package func purged(_ database: any DatabaseIdentity) {}
    package func replaced(_ database: any DatabaseIdentity) { emptied(database) }
    package func deleted(_ database: any DatabaseIdentity) {}
    package func purged(tags: [[UInt8]], in database: any DatabaseIdentity) {}
    package func purgesChanged(_ database: any DatabaseIdentity) { policyChanged(database) }
}
