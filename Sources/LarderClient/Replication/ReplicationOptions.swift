/// The changes that a ``LarderFollower`` replicates, and how.
///
/// Thread-safe: a value.
public struct ReplicationOptions: Sendable {
    /// The database, which has the same name in both larders.
    public var database = "0"
    /// Only entries whose keys begin with this prefix.
    public var prefix: [UInt8] = []
    /// Only entries with at least one of these tags or ``byteTags``; both empty for all.
    public var tags: Set<String> = []
    /// Like ``tags``, for tags that are not text.
    public var byteTags: Set<[UInt8]> = []
    /// The name of the source in the target: a later follower with the same name resumes from this one's position. Nil
    /// for the path of the source's directory; larders of several machines with the same path need names.
    public var sourceName: String?
    /// The name of the target in the source, if the source follows the target too; nil for the path of the target's
    /// directory.
    public var targetName: String?
    /// Whether the target may have entries of its own when it begins to follow the source. Both are then merged: the
    /// later entry wins, and existing entries stay until the source changes them. Otherwise such a target is refused,
    /// because the target should be a copy of the source. Later followers need not set this again.
    public var joins = false
    /// The number of changes applied at a time, 1 to 10,000.
    public var batchCount = 500

    /// Creates options for all entries of a database.
    public init(database: String = "0") { self.database = database }

    /// Identifies the changes that a position refers to.
    var filter: String {
        let names = allTags.map(Self.name(ofTag:)).sorted()
        return (prefix.isEmpty ? "" : "|prefix=\(Self.hex(prefix))")
            + (names.isEmpty ? "" : "|tags=" + names.joined(separator: ","))
    }

    var allTags: Set<[UInt8]> { byteTags.union(tags.map { Array($0.utf8) }) }

    /// A unique name of a tag without commas.
    private static func name(ofTag tag: [UInt8]) -> String {
        guard let text = String(validating: tag, as: UTF8.self), !text.contains(","), !text.hasPrefix("hex:") else {
            return "hex:" + hex(tag)
        }
        return text
    }

    private static func hex(_ bytes: [UInt8]) -> String {
        bytes.map { byte in (byte < 16 ? "0" : "") + String(byte, radix: 16) }.joined()
    }
}

/// Decides which of two entries of the same key wins if two larders have changed it.
///
/// Thread-safe: a value.
public struct ReplicationRule: Sendable {
    /// Returns whether the incoming change replaces the target's entry; nil if the later change wins.
    let decide: (@Sendable (ReplicationConflict) -> Bool)?

    /// The later change wins: by the time of the change, then by its sequence, then by the bytes of the value. All
    /// larders arrive at the same result, in whatever order they receive the changes.
    public static let later = ReplicationRule(decide: nil)

    /// Calls a closure for each key that the target has with another value; true accepts the incoming change. If two
    /// larders follow each other, their rules must arrive at the same result, or the larders differ permanently. Costs
    /// three round trips to the target for each change. The closure may be called again for a change, after an
    /// interruption or if the entry has changed in the meantime. An accepted change counts as made at the time of its
    /// acceptance.
    public static func custom(_ decide: @escaping @Sendable (ReplicationConflict) -> Bool) -> ReplicationRule {
        ReplicationRule(decide: decide)
    }
}

/// Two different entries of two larders under one key.
///
/// Thread-safe: a value.
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
/// Thread-safe: a value.
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
