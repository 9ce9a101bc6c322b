/// One database of the daemon's larder. An element of the reply to `DATABASES`.
///
/// Thread-safe: a value type.
public struct DatabaseInfo: Hashable, Sendable {
    /// The name by which the database is selected.
    public let name: String
    /// The policy in the daemon's form: `lowest`, `every:90`.
    public let policy: String
    /// How long its entries stay fresh, in milliseconds; nil if they do not expire.
    public let intervalMilliseconds: Int64?
    /// How long its entries are kept after their deadline for calls that fetch, in milliseconds.
    public let graceMilliseconds: Int64
    /// The maximum random reduction of lifetimes when entries are stored, in percent.
    public let jitterPercent: Int
    /// The number of fresh entries; nil if they cannot be counted because the database cannot be opened, or is loading.
    public let entries: Int64?
    /// The number of expired entries that are kept for their grace; nil if they cannot be counted.
    public let staleEntries: Int64?
    /// The numbers of fresh entries by the time when they expire; nil if they cannot be counted.
    package let ends: Ends?
    /// Its approximate size on disk in bytes.
    public let bytes: Int64
    /// Its disk limit in bytes; nil if it has no limit of its own.
    public let limit: Int64?
    /// `open`, `closed`, `failed` or `damaged`; `loading` while its part of the journal is replayed.
    public let state: String
    /// The result of its last salvage (repair of damaged files) since the daemon was started; nil if there was none.
    package let damage: String?

    /// The numbers of fresh entries that expire within a minute, an hour and a day, and of entries that never expire.
    /// The number for an hour includes the number for a minute, and the number for a day includes both.
    package struct Ends: Hashable, Sendable {
        package let minute: Int64
        package let hour: Int64
        package let day: Int64
        package let never: Int64
    }
}

/// A database's disk limit. The reply to `LIMIT`.
package struct LimitInfo: Hashable, Sendable {
    /// The limit in bytes; nil if the database has no limit of its own.
    package let limit: Int64?
    /// The size of the database's files on disk, in bytes.
    package let bytes: Int64
    /// The number of entries evicted since the daemon was started.
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
