import LarderPlatform

/// The options of a ``LarderFollower``: which changes it replicates, and how.
///
/// Thread-safe: a value type.
public struct ReplicationOptions: Sendable {
    /// The database, which has the same name in both larders.
    public var database = "0"
    /// The prefix of the keys of replicated entries. Empty, the default, for all entries.
    public var prefix: [UInt8] = []
    /// The tags of replicated entries: an entry must have at least one of these tags or ``byteTags``. If both are
    /// empty, all entries are replicated.
    public var tags: Set<String> = []
    /// Like ``tags``, for tags that are not text.
    public var byteTags: Set<[UInt8]> = []
    /// The name of the source under which the target stores the position: a later follower with the same name resumes
    /// from there. With nil, the path of the source's directory is used. If larders on several machines have the same
    /// path, give them names.
    public var sourceName: String?
    /// The name of the target under which the source stores its own position, if the source follows the target too.
    /// With nil, the path of the target's directory is used.
    public var targetName: String?
    /// Whether the target may have entries of its own when it begins to follow the source. The entries of both larders
    /// are then merged: the later entry wins, and existing entries stay until the source changes them. If false, such a
    /// target is refused, because it would lose its own entries. Later followers need not set this option.
    public var joins = false
    /// The number of changes applied at a time, 1 to 10,000.
    public var batchCount = 500

    /// Creates options for all entries of a database.
    public init(database: String = "0") { self.database = database }

    /// A text that identifies the prefix and the tags: a part of the key under which the position is stored.
    var filter: String {
        let names = allTags.map(Self.name(ofTag:)).sorted()
        return (prefix.isEmpty ? "" : "|prefix=\(HexText.text(prefix))")
            + (names.isEmpty ? "" : "|tags=" + names.joined(separator: ","))
    }

    var allTags: Set<[UInt8]> { byteTags.union(tags.map { Array($0.utf8) }) }

    /// Returns a unique name, without commas, of a tag.
    private static func name(ofTag tag: [UInt8]) -> String {
        guard let text = String(validating: tag, as: UTF8.self), !text.contains(","), !text.hasPrefix("hex:") else {
            return "hex:" + HexText.text(tag)
        }
        return text
    }
}

/// Decides which of two entries wins if two larders have changed the same key.
///
/// Thread-safe: a value type.
public struct ReplicationRule: Sendable {
    /// Returns whether the incoming change replaces the target's entry; nil if the later change wins.
    let decide: (@Sendable (ReplicationConflict) -> Bool)?

    /// The rule that the later change wins: by the time of the change, then by its sequence number. If both are equal,
    /// a removal wins over an entry, and otherwise the entry with the greater bytes wins. All larders arrive at the
    /// same result, in whatever order they receive the changes.
    public static let later = ReplicationRule(decide: nil)

    /// Returns a rule that calls a closure for each change whose key has another value in the target. If the closure
    /// returns true, the incoming change is applied; otherwise the target's entry stays. If two larders follow each
    /// other, their rules must arrive at the same result, or the larders differ permanently. Costs two round trips to
    /// the target for each change. The closure may be called again for a change, after an interruption or if the entry
    /// has changed in the meantime. An accepted change counts as made when it is applied to the target.
    public static func custom(_ decide: @escaping @Sendable (ReplicationConflict) -> Bool) -> ReplicationRule {
        ReplicationRule(decide: decide)
    }
}

/// Two different entries of two larders under one key.
///
/// Thread-safe: a value type.
public struct ReplicationConflict: Sendable {
    /// The key.
    public let key: [UInt8]
    /// The incoming value; nil for a removal.
    public let incoming: [UInt8]?
    /// When the incoming entry was stored or removed, in milliseconds since 1970.
    public let incomingTime: Int64
    /// The target's value.
    public let present: [UInt8]
    /// When the target's entry was stored, in milliseconds since 1970.
    public let presentTime: Int64
}

/// The progress of a ``LarderFollower``.
///
/// Thread-safe: a value type.
public struct ReplicationProgress: Hashable, Sendable {
    /// The activity of a follower.
    public enum State: String, Sendable {
        /// Doing a full pass over all entries of the source.
        case initial
        /// Applying changes.
        case running
        /// The target has everything that the source has reported.
        case idle
    }

    /// The current activity.
    public internal(set) var state = State.initial
    /// The number of changes to apply as far as known, including completed ones. In a full pass, the number of entries.
    public internal(set) var total = 0
    /// The number of changes that this follower has applied, including those that the target did not need.
    public internal(set) var done = 0
    /// The number of changes that stored an entry.
    public internal(set) var stored = 0
    /// The number of changes that removed an entry, including entries that a full pass did not find in the source.
    public internal(set) var removed = 0
    /// The number of changes that the target did not need, because its entry is later or the same.
    public internal(set) var kept = 0
    /// The number of full passes that this follower has started.
    public internal(set) var passes = 0
    /// The number of changes ever applied to the target from this source, including those of previous followers.
    public internal(set) var everDone = 0

    package init() {}
}
