import LarderEngine

/// What is known of an entry besides its value, at the moment it was read.
public struct EntryInfo: Hashable, Sendable {
    /// When the value was last written, in milliseconds since 1970.
    public let storedAtMilliseconds: Int64
    /// The instant from which the entry is not handed out, in milliseconds since 1970; nil when it does not expire.
    public let deadlineMilliseconds: Int64?
    /// What decides the deadline: the database's policy, or the entry itself.
    public let rule: DeadlineRule
    /// How the value is encoded.
    public let codec: Codec
    /// The length of the value as stored, in bytes.
    public let byteCount: Int
    /// When this was read, in milliseconds since 1970.
    public let readAtMilliseconds: Int64

    /// - Parameter ahead: how far the larder's time is ahead of the clock, which was set back.
    init(_ header: RecordHeader, byteCount: Int, rules: FreshnessRules, now: Int64, ahead: Int64) {
        storedAtMilliseconds = header.storedAt - ahead
        deadlineMilliseconds = rules.deadline(header).map { $0 - ahead }
        rule = header.rule
        codec = header.codec
        self.byteCount = byteCount
        readAtMilliseconds = now - ahead
    }

    /// How long ago the value was written; never negative.
    public var age: Duration { .milliseconds(max(0, readAtMilliseconds - storedAtMilliseconds)) }

    /// How long the entry stays fresh, from when this was read; nil when it does not expire, zero when it has.
    public var timeToLive: Duration? {
        deadlineMilliseconds.map { .milliseconds(max(0, $0 - readAtMilliseconds)) }
    }

    /// Whether the entry had expired when this was read. So it is for entries of enumerations that include expired ones, and
    /// for those that expired after the enumeration had come to them: see ``CacheReading``.
    public var isExpired: Bool { deadlineMilliseconds.map { readAtMilliseconds >= $0 } ?? false }
}
