import LarderVocabulary

/// The place of a change among all changes of a database: the number of its commit unit, and its index among the
/// changes with that number.
package struct ChangePlace: Hashable, Comparable, Sendable {
    package var sequence: UInt64
    package var step: Int

    package init(_ sequence: UInt64, _ step: Int = 0) { (self.sequence, self.step) = (sequence, step) }

    package static func < (left: ChangePlace, right: ChangePlace) -> Bool {
        (left.sequence, left.step) < (right.sequence, right.step)
    }
}

package struct LoggedChange: Sendable {
    package let place: ChangePlace
    /// What was changed. The log has no entries, so `removed` also stands for a stored entry.
    package let kind: FeedChange<Never>
    package let version: ChangeVersion
}

/// A feed that a later feed continues. Its places up to `end` are valid in the later feed.
struct PreviousFeed: Hashable {
    let feed: UInt64
    let end: ChangePlace
}

/// The state of a database's feed without the changes.
struct FeedState: Hashable {
    /// The random ID of the feed. A place in another feed is valid in this feed only if this feed continues the other
    /// feed.
    var feed: UInt64
    var last: ChangePlace
    /// The last purge of the whole database; nil if none is known.
    var purge: ChangeVersion?
    /// When a follower last read the feed.
    var readAt: Int64
    /// The earlier feeds that this one continues, the oldest first.
    var previousFeeds: [PreviousFeed] = []
}

/// The result of reading a feed after a place.
package enum FoundChanges: Sendable {
    /// The next changes (empty at the end of the feed), the feed's ID, the place from which to continue, and whether
    /// there are more changes.
    case changes([LoggedChange], feed: UInt64, upTo: ChangePlace, hasMore: Bool)
    /// The place belongs to another feed: the feed of another database or larder, or a feed whose changes are lost.
    case otherFeed
    /// The log no longer has all changes after the place.
    case forgotten
}
