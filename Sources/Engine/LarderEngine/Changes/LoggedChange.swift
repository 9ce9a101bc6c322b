/// The place of a change among all changes of a database: the commit unit, and its index in the unit.
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

/// A change in a ``ChangeLog``.
package struct LoggedChange: Sendable {
    package enum Kind: Sendable {
        /// The key's entry was changed or removed.
        case key([UInt8])
        /// The database was emptied.
        case purge
        /// The entries with this key prefix were removed.
        case purgePrefix([UInt8])
        /// The entries with at least one of these tags were removed or became stale.
        case purgeTags([[UInt8]])
    }

    package let place: ChangePlace
    package let kind: Kind
    package let version: ChangeVersion
}

/// A previous feed: its places are valid up to its end.
struct PreviousFeed: Hashable {
    let feed: UInt64
    let end: ChangePlace
}

/// The state of a database's feed without the changes.
struct FeedState: Hashable {
    /// The ID of this feed: a random number. Change places of other feeds are not valid in it.
    var feed: UInt64
    /// The place of the last change.
    var last: ChangePlace
    /// The last purge of everything.
    var purge: ChangeVersion?
    /// When it was last read.
    var readAt: Int64
    /// The feeds that this one continues, the oldest first.
    var previousFeeds: [PreviousFeed] = []
}

/// The result of reading a feed after a place.
package enum FoundChanges: Sendable {
    /// The next changes, empty at the end of the feed; the feed's ID; the place after the changes; and whether there
    /// are more.
    case changes([LoggedChange], feed: UInt64, upTo: ChangePlace, hasMore: Bool)
    /// The place belongs to another feed: one of another database or larder, or one whose changes are lost.
    case otherFeed
    /// The changes after the place are forgotten.
    case forgotten
}
