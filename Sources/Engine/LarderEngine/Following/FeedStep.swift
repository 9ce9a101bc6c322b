/// A change as followers are told of it.
package struct FeedChange: Sendable {
    package enum Kind: Sendable {
        /// The entry that the key has now.
        /// - Parameters:
        ///   - header: as another larder is told of it.
        ///   - deadline: nil for never.
        case stored(key: [UInt8], Record, header: RecordHeader, deadline: Int64?)
        case removed(key: [UInt8])
        /// The database was emptied.
        case purged
        /// The entries whose keys begin with this are gone, also those that were evicted before.
        case purgedPrefix([UInt8])
        /// The entries with some of these tags are gone, or stale.
        case purgedTags([[UInt8]])
    }

    package let kind: Kind
    /// The commit unit; of an entry that a full pass names: where its reader continues behind the pass.
    package let sequence: UInt64
    package let version: ChangeVersion
}

/// What follows behind a position.
package struct FeedStep: Sendable {
    package enum State: String, Sendable {
        /// A full pass is under way: its entries, and what has changed meanwhile.
        case scan
        /// There are more changes.
        case changes
        /// There are no more changes for now.
        case current
    }

    /// Why a full pass begins.
    package enum Reason: String, Sendable {
        /// It was asked for.
        case asked
        /// The position is of another feed: another database or larder, or of changes that were lost.
        case otherFeed = "other-feed"
        /// The changes behind the position are forgotten.
        case forgotten
    }

    /// The part of the keys of which a full pass has named every entry.
    package struct Range: Hashable, Sendable {
        /// The part begins behind this key; nil: with the first.
        package var after: [UInt8]?
        /// The last key that belongs to it; nil: there are no more.
        package var through: [UInt8]?
    }

    /// Where to continue.
    package var position: FeedPosition
    package var state: State
    /// Nil unless a full pass begins.
    package var reason: Reason?
    package var range: Range?
    /// Of the larder, in milliseconds since 1970.
    package var time: Int64
    package var changes: [FeedChange] = []
}

/// Which changes a step has.
package struct FeedOptions: Sendable {
    /// Only those of keys that begin with it; purges in any case, but for those of a prefix that has no such keys.
    package var prefix: [UInt8] = []
    /// How many changes at most, and how many entries of a full pass.
    package var count = 100
    /// The change and the entry that bring keys and values to so many bytes are the last.
    package var bytes = 1_048_576

    package init() {}
}
