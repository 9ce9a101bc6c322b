/// Facts about an entry besides its value, at the moment when it was read.
///
/// Thread-safe: a value.
public struct EntryInfo: Hashable, Sendable {
    /// When the value was last written, in milliseconds since 1970.
    public let storedAtMilliseconds: Int64
    /// The instant from which the entry is not returned, in milliseconds since 1970; nil if it does not expire.
    public let deadlineMilliseconds: Int64?
    /// What decides the deadline: the database's policy, or the entry itself.
    public let rule: DeadlineRule
    /// For how long the entry is kept behind its deadline for calls that fetch, in milliseconds: its own grace, or the
    /// database's.
    public let graceMilliseconds: Int64
    /// The database's policy, which entries without a rule of their own follow.
    public let databasePolicy: UpdatePolicy
    /// How the value is encoded.
    public let codec: Codec
    /// The length of the value as stored, in bytes.
    public let byteCount: Int
    /// When this was read, in milliseconds since 1970.
    public let readAtMilliseconds: Int64
    /// Whether the entry is told as stale although its deadline is ahead: the daemon could not ask the database's origin
    /// whether it is still so. The library's own caches never say this.
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

    /// How long ago the value was written; never negative.
    public var age: Duration { .milliseconds(ageMilliseconds) }

    /// How long the entry stays fresh, from the moment when this was read; nil if it does not expire, zero if it has
    /// expired.
    public var timeToLive: Duration? {
        timeToLiveMilliseconds.map { .milliseconds($0) }
    }

    /// For how long the entry is kept behind its deadline for calls that fetch.
    public var grace: Duration { .milliseconds(graceMilliseconds) }

    package var ageMilliseconds: Int64 { max(0, readAtMilliseconds - storedAtMilliseconds) }
    package var timeToLiveMilliseconds: Int64? { deadlineMilliseconds.map { max(0, $0 - readAtMilliseconds) } }

    /// Whether the entry had expired when this was read: it is stale, and kept for its grace, or it comes from an
    /// enumeration that includes expired entries, or it expired after an enumeration had reached it.
    public var isExpired: Bool { deadlineMilliseconds.map { readAtMilliseconds >= $0 } ?? false }
}

/// The rest of an entry's lifetime.
public enum TimeToLive: Hashable, Sendable {
    /// It does not expire.
    case never
    /// So many milliseconds.
    case milliseconds(Int64)

    /// The same as a duration; nil for ``never``.
    public var duration: Duration? {
        switch self {
        case .never: nil
        case .milliseconds(let milliseconds): .milliseconds(milliseconds)
        }
    }
}
