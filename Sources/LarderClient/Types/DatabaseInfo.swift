/// One database of the daemon's larder. An element of the reply to `DATABASES`.
///
/// Thread-safe: a value.
public struct DatabaseInfo: Hashable, Sendable {
    /// What it is selected by.
    public let name: String
    /// The policy in the daemon's form: `lowest`, `every:90`.
    public let policy: String
    /// How long its entries stay fresh, in milliseconds; nil if they do not expire.
    public let intervalMilliseconds: Int64?
    /// For how long its entries are kept behind their deadline for calls that fetch, in milliseconds.
    public let graceMilliseconds: Int64
    /// By how many percent lives are shortened at most, at random, when entries are stored.
    public let jitterPercent: Int
    /// How many fresh entries it has; nil when they cannot be counted, because the database cannot be opened.
    public let entries: Int64?
    /// How many entries it keeps for their grace; nil when they cannot be counted.
    public let staleEntries: Int64?
    /// How soon the fresh entries end; nil when they cannot be counted.
    package let ends: Ends?
    /// Its size on disk, roughly.
    public let bytes: Int64
    /// The most bytes that it may take on the disk; nil if only the larder has a limit.
    public let limit: Int64?
    /// `open`, `closed`, `failed` or `damaged`.
    public let state: String

    /// How many fresh entries end within a minute, an hour, a day, each including the one before; and how many never do.
    package struct Ends: Hashable, Sendable {
        package let minute: Int64
        package let hour: Int64
        package let day: Int64
        package let never: Int64
    }
}

/// A database's limit of the disk. The reply to `LIMIT`.
package struct LimitInfo: Hashable, Sendable {
    /// In bytes; nil if only the larder has a limit.
    package let limit: Int64?
    /// What its files take on the disk.
    package let bytes: Int64
    /// How many entries were evicted since the daemon was started.
    package let evicted: Int64
}

/// A database's policy. The reply to `POLICY`.
package struct PolicyInfo: Hashable, Sendable {
    /// The policy in the daemon's form: `lowest`, `every:90`.
    package let policy: String
    /// How long entries stay fresh, in milliseconds; nil if they do not expire.
    package let intervalMilliseconds: Int64?
    package let graceMilliseconds: Int64
    package let jitterPercent: Int
}
