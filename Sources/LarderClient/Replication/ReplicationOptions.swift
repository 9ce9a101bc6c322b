/// What a ``LarderFollower`` brings from one larder into another.
///
/// Thread-safe: a value.
public struct ReplicationOptions: Sendable {
    /// The database, which has the same name in both larders.
    public var database = "0"
    /// Only entries whose keys begin with it.
    public var prefix: [UInt8] = []
    /// Only entries with some of these tags, or of ``byteTags``; both empty for all.
    public var tags: Set<String> = []
    /// The same, for tags that are no text.
    public var byteTags: Set<[UInt8]> = []
    /// What the target calls the source, so that a later follower goes on where this one was. Nil for the path of the
    /// source's directory: larders of several machines that have the same one need names.
    public var sourceName: String?
    /// What the source calls the target, if it follows it too; nil for the path of the target's directory.
    public var targetName: String?
    /// Whether the target may have entries of its own when it begins to follow the source: both are joined, the later entry
    /// stays, and what was there stays until the source changes it. Else such a target is refused, because it is to be a
    /// copy. Later followers need not say it again.
    public var joins = false
    /// How many changes are applied at a time, 1 to 10,000.
    public var batchCount = 500

    /// Of everything in the database `0`.
    public init(database: String = "0") { self.database = database }

    /// Of which changes a position speaks.
    var filter: String {
        let names = allTags.map(Self.name(ofTag:)).sorted()
        return (prefix.isEmpty ? "" : "|prefix=\(Self.hex(prefix))")
            + (names.isEmpty ? "" : "|tags=" + names.joined(separator: ","))
    }

    var allTags: Set<[UInt8]> { byteTags.union(tags.map { Array($0.utf8) }) }

    /// A word without a comma, of which no other tag has the same.
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

/// Which of two entries of the same key stays, where two larders have changed it.
///
/// Thread-safe: a value.
public struct ReplicationRule: Sendable {
    /// Decides whether the incoming change replaces what the target has; nil for the later one.
    let decide: (@Sendable (ReplicationConflict) -> Bool)?

    /// The later change stays: by the time of the change, then by its sequence, then by the bytes of the value. All
    /// larders come to the same result, whoever hears of what first.
    public static let later = ReplicationRule(decide: nil)

    /// Asks for each key that the target has with another value: true lets the incoming change in. Where two larders
    /// follow each other, both need rules that come to the same result, or they differ for ever. Costs three round
    /// trips to the target for each change. May be asked again for a change, after an interruption or if the entry has
    /// changed meanwhile. What the rule lets in counts as a change that is made then.
    public static func custom(_ decide: @escaping @Sendable (ReplicationConflict) -> Bool) -> ReplicationRule {
        ReplicationRule(decide: decide)
    }
}

/// Two larders have different entries under a key.
///
/// Thread-safe: a value.
public struct ReplicationConflict: Sendable {
    /// The key.
    public let key: [UInt8]
    /// The value that comes in; nil for a removal.
    public let incoming: [UInt8]?
    /// When that was stored, or removed, in milliseconds since 1970.
    public let incomingTime: Int64
    /// The value that the target has.
    public let present: [UInt8]
    /// When that was stored, in milliseconds since 1970.
    public let presentTime: Int64
}

/// How far a ``LarderFollower`` has come.
///
/// Thread-safe: a value.
public struct ReplicationProgress: Hashable, Sendable {
    /// What a follower does.
    public enum State: String, Sendable {
        /// A full pass over all entries of the source.
        case initial
        /// There are changes to apply.
        case running
        /// The target has everything that the source has told.
        case idle
    }

    /// What it does.
    public internal(set) var state = State.initial
    /// How many changes there are to apply, as far as that is known, with those that are done. In a full pass: entries.
    public internal(set) var total = 0
    /// How many changes this follower has applied, with those that the target did not need.
    public internal(set) var done = 0
    /// How many of them stored an entry.
    public internal(set) var stored = 0
    /// How many removed one, with those that a full pass did not find in the source.
    public internal(set) var removed = 0
    /// How many the target did not need, because what it has is later, or the same.
    public internal(set) var kept = 0
    /// How many full passes this follower has begun.
    public internal(set) var passes = 0
    /// The changes that were ever applied at the target from this source, with those of former followers.
    public internal(set) var everDone = 0

    package init() {}
}
