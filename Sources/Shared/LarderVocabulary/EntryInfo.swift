/// The metadata of an entry at the time when it was read.
///
/// Thread-safe: a value.
public struct EntryInfo: Hashable, Sendable {
    /// When the value was last written, in milliseconds since 1970.
    public let storedAtMilliseconds: Int64
    /// When the entry expires, in milliseconds since 1970; nil if it does not.
    public let deadlineMilliseconds: Int64?
    /// Whether the database's policy or the entry itself determines the deadline.
    public let rule: DeadlineRule
    /// The grace in milliseconds: how long after its deadline the entry is kept for calls that fetch. It is the entry's
    /// own grace or the database's.
    public let graceMilliseconds: Int64
    /// The database's policy, which entries without a rule of their own follow.
    public let databasePolicy: UpdatePolicy
    /// How the value is encoded.
    public let codec: Codec
    /// The length of the value as stored, in bytes.
    public let byteCount: Int
    /// When this metadata was read, in milliseconds since 1970.
    public let readAtMilliseconds: Int64
    /// Whether the daemon treats the entry as stale before its deadline, because it could not ask the database's origin
    /// whether the entry has changed. Always false in caches that a program opens itself.
    public let isUnverified: Bool

    package init(
        storedAtMilliseconds: Int64, deadlineMilliseconds: Int64?, rule: DeadlineRule, graceMilliseconds: Int64,
        databasePolicy: UpdatePolicy, codec: Codec, byteCount: Int, readAtMilliseconds: Int64,
        isUnverified: Bool = false
    ) {
        self.storedAtMilliseconds = storedAtMilliseconds
        self.deadlineMilliseconds = deadlineMilliseconds
        self.rule = rule
        self.graceMilliseconds = graceMilliseconds
        self.databasePolicy = databasePolicy
        self.codec = codec
        self.byteCount = byteCount
        self.readAtMilliseconds = readAtMilliseconds
        self.isUnverified = isUnverified
    }

    /// The time since the value was written; never negative.
    public var age: Duration { .milliseconds(ageMilliseconds) }

    /// The time from reading this metadata to the entry's deadline; nil if it does not expire, zero if it has expired.
    public var timeToLive: Duration? {
        timeToLiveMilliseconds.map { .milliseconds($0) }
    }

    /// The grace: how long after its deadline the entry is kept for calls that fetch.
    public var grace: Duration { .milliseconds(graceMilliseconds) }

    package var ageMilliseconds: Int64 { max(0, readAtMilliseconds - storedAtMilliseconds) }
    package var timeToLiveMilliseconds: Int64? { deadlineMilliseconds.map { max(0, $0 - readAtMilliseconds) } }

    /// Whether the entry had expired when this metadata was read. Such an entry is visible in three cases: it is within
    /// its grace, an enumeration includes expired entries, or the entry has expired during an enumeration.
    public var isExpired: Bool { deadlineMilliseconds.map { readAtMilliseconds >= $0 } ?? false }
}

/// The remaining lifetime of an entry.
public enum TimeToLive: Hashable, Sendable {
    /// The entry does not expire.
    case never
    /// The remaining time in milliseconds.
    case milliseconds(Int64)

    /// The remaining time as a duration; nil for ``never``.
    public var duration: Duration? {
        switch self {
        case .never: nil
        case .milliseconds(let milliseconds): .milliseconds(milliseconds)
        }
    }
}

/// The rule that determines how long an entry stays fresh.
public enum DeadlineRule: Hashable, Sendable {
    /// The entry follows the database's current policy: it expires at `storedAt` plus the policy's interval.
    case governed
    /// The entry has its own deadline, in milliseconds since 1970.
    case own(Int64)
    /// The entry itself is marked as never expiring.
    case ownNever

    /// The name of the rule in replies of the daemon, and in exports.
    package var name: String {
        switch self {
        case .governed: "governed"
        case .own: "own"
        case .ownNever: "never"
        }
    }

    /// Returns the rule for an entry that is stored at `now` (milliseconds since 1970) with its own policy.
    package static func policy(_ policy: UpdatePolicy, now: Int64) -> DeadlineRule {
        guard let interval = policy.intervalMilliseconds else { return .ownNever }
        return .own(now + interval)
    }
}
