/// A change as reported to followers.
package struct FeedChange: Sendable {
    package enum Kind: Sendable {
        /// The current entry of the key.
        /// - Parameters:
        ///   - header: as reported to another larder.
        ///   - deadline: nil for never.
        case stored(key: [UInt8], Record, header: RecordHeader, deadline: Int64?)
        case removed(key: [UInt8])
        /// The database was emptied.
        case purged
        /// The entries with this key prefix are gone, including those that this larder had evicted before.
        case purgedPrefix([UInt8])
        /// The entries with some of these tags are gone, or stale.
        case purgedTags([[UInt8]])
    }

    package let kind: Kind
    /// The commit unit of the change. For an entry of a full pass: the unit of the position from which the reader
    /// continues.
    package let sequence: UInt64
    package let version: ChangeVersion
}

/// The next changes after a position.
package struct FeedStep: Sendable {
    package enum State: String, Sendable {
        /// A full pass is under way: its entries, and the changes in the meantime.
        case scan
        /// There are more changes.
        case changes
        /// There are no more changes for now.
        case current
    }

    /// Why a full pass begins.
    package enum Reason: String, Sendable {
        /// The reader requested it.
        case asked
        /// The position belongs to another feed: that of another database or larder, or one whose changes were lost.
        case otherFeed = "other-feed"
        /// The changes after the position are forgotten.
        case forgotten
    }

    /// The range of keys of which a step of a full pass returns every entry.
    package struct Range: Hashable, Sendable {
        /// The range begins after this key; nil: with the first one.
        package var after: [UInt8]?
        /// The last key of the range; nil: there are no more.
        package var through: [UInt8]?
    }

    /// The position to continue from.
    package var position: FeedPosition
    package var state: State
    /// Nil unless a full pass begins.
    package var reason: Reason?
    package var range: Range?
    /// The larder's time, in milliseconds since 1970.
    package var time: Int64
    package var changes: [FeedChange] = []
}

/// The limits of a step.
package struct FeedOptions: Sendable {
    /// Only changes of keys with this prefix are returned, and purges that may concern such keys.
    package var prefix: [UInt8] = []
    /// The most changes, and the most entries of a full pass.
    package var count = 100
    /// A step ends with the change or entry at which its keys and values reach this many bytes.
    package var bytes = 1_048_576

    package init() {}
}
