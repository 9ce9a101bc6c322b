/// By whom and by what an entry is written. Means nothing to the engine; who listens to changes gets it back.
package struct WriteOrigin: Hashable, Sendable {
    /// What kind of command it is.
    package var tag: UInt16
    /// Which client; 0 for none.
    package var client: Int64

    package init(tag: UInt16 = 0, client: Int64 = 0) {
        self.tag = tag
        self.client = client
    }
}

/// A database, for those who are told what happened in it.
package protocol DatabaseIdentity: AnyObject, Sendable {
    var name: String { get }
}

/// What happened to one entry, and is committed.
package struct EntryChange: Sendable {
    package enum Kind: Sendable {
        case stored(RecordHeader)
        case removed
        /// It was found to be expired when its space was reclaimed; `deadline` is when that was.
        case swept(RecordHeader, deadline: Int64)
    }

    /// What there was before.
    package enum Former: Sendable, Equatable {
        /// Nobody looked.
        case unknown
        /// Nothing that could be read.
        case absent
        case fresh(DeadlineRule)
    }

    package let database: any DatabaseIdentity
    package let key: [UInt8]
    package let kind: Kind
    package let former: Former
    package let origin: WriteOrigin
}

/// Is told what was committed, in the order of the commits, before those who wrote it get their answer. Called by any
/// thread, possibly with shards locked: must be short, must not block, must not call the engine.
package protocol ChangeObserver: AnyObject, Sendable {
    func changed(_ changes: [EntryChange])
    /// A database has lost all its entries.
    func emptied(_ database: any DatabaseIdentity)
    /// Entries of a database that follow its policy may end at another time than before.
    func policyChanged(_ database: any DatabaseIdentity)
}
