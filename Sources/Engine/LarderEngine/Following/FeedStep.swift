import LarderVocabulary

/// The current entry of a key in a feed.
package struct FeedEntry: Sendable {
    package let key: [UInt8]
    package let record: Record
    /// The header of the entry as reported to another larder.
    package let header: RecordHeader
    /// When the entry expires, in milliseconds since 1970; nil for never.
    package let deadline: Int64?
}

/// A change as the feed reports it to readers.
package struct FeedItem: Sendable {
    package let change: FeedChange<FeedEntry>
    /// The number of the commit unit of the change. For an entry of a full pass: the commit unit of the reader's
    /// position.
    package let sequence: UInt64
    package let version: ChangeVersion
}

/// The next changes after a position.
package struct FeedStep: Sendable {
    package enum State: String, Sendable {
        /// A full pass is under way. The step returns some of its entries, and changes made since the pass began.
        case scan
        /// The step returns changes, and there are more.
        case changes
        /// There are no more changes for now.
        case current
    }

    /// Why a full pass begins.
    package enum Reason: String, Sendable {
        /// The reader requested a full pass.
        case asked
        /// The position belongs to another feed: of another database, of another larder, or of an earlier change log
        /// that was lost.
        case otherFeed = "other-feed"
        /// The change log no longer has all changes after the position.
        case forgotten
    }

    /// A range of keys. A step of a full pass returns every entry in its range.
    package struct Range: Hashable, Sendable {
        /// The key after which the range begins; nil if the range begins with the first key.
        package var after: [UInt8]?
        /// The last key of the range; nil if the range has no end.
        package var through: [UInt8]?
    }

    /// The position to continue from.
    package var position: FeedPosition
    package var state: State
    /// Why a full pass begins; nil if none begins.
    package var reason: Reason?
    package var range: Range?
    /// The larder's time when the step began, in milliseconds since 1970.
    package var time: Int64
    package var changes: [FeedItem] = []
}

/// The limits of a step.
package struct FeedOptions: Sendable {
    /// The step returns only changes of keys with this prefix, and purges that may concern such keys.
    package var prefix: [UInt8] = []
    /// The maximum number of changes, or entries of a full pass, that one step returns.
    package var count = 100
    /// The number of bytes of keys and values at which a step ends. The last change or entry may exceed it.
    package var bytes = 1_048_576

    package init() {}
}
