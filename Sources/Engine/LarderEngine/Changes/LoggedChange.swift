/// Where a change stands among all changes of a database: the commit unit, and how many of its changes came before.
package struct ChangePlace: Hashable, Comparable, Sendable {
    package var sequence: UInt64
    package var step: Int

    package init(_ sequence: UInt64, _ step: Int = 0) {
        self.sequence = sequence
        self.step = step
    }

    package static func < (left: ChangePlace, right: ChangePlace) -> Bool {
        (left.sequence, left.step) < (right.sequence, right.step)
    }
}

/// A change that a ``ChangeLog`` remembers.
package struct LoggedChange: Sendable {
    package enum Kind: Sendable {
        /// A key has another entry than before, or none.
        case key([UInt8])
        /// The database was emptied.
        case purge
        /// The entries whose keys begin with this are gone.
        case purgePrefix([UInt8])
        /// The entries with some of these tags are gone, or stale.
        case purgeTags([[UInt8]])
    }

    package let place: ChangePlace
    package let kind: Kind
    package let version: ChangeVersion
}

/// A feed of an earlier process, or of one before that: its places count up to its end.
struct FormerFeed: Hashable {
    let feed: UInt64
    let end: ChangePlace
}

/// What is known of a database's feed apart from its changes.
struct FeedState: Hashable {
    /// Names the feed: another random number for each. With another one a place says nothing.
    var feed: UInt64
    /// The place of the last change.
    var last: ChangePlace
    /// The last purge of everything.
    var purge: ChangeVersion?
    /// When somebody last read it.
    var readAt: Int64
    /// Feeds that this one continues from, the oldest first.
    var formers: [FormerFeed] = []
}

/// What is left of a feed for somebody who has read up to a place.
package enum FoundChanges: Sendable {
    /// The next changes; empty at the end. The feed, the place behind them, and whether there are more.
    case changes([LoggedChange], feed: UInt64, upTo: ChangePlace, hasMore: Bool)
    /// The place is of another feed: of another database, another larder, or of changes that were lost.
    case otherFeed
    /// The changes behind the place are forgotten.
    case forgotten
}
