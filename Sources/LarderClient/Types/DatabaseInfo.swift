/// One database of the daemon's larder. An element of the answer to `DATABASES`.
///
/// Thread-safe: a value.
public struct DatabaseInfo: Hashable, Sendable {
    /// What it is selected by.
    public let name: String
    /// The policy, as the daemon writes it: `lowest`, `every:90`.
    public let policy: String
    /// How long its entries stay fresh, in milliseconds; nil when they do not expire.
    public let intervalMilliseconds: Int64?
    /// How many entries it has, those included that expired and were not yet swept; nil when they cannot be counted,
    /// because the database cannot be opened.
    public let entries: Int64?
    /// Its size on disk, roughly.
    public let bytes: Int64
    /// `open`, `closed`, `failed` or `damaged`.
    public let state: String
}

/// A database's policy. The answer to `POLICY`.
package struct PolicyInfo: Hashable, Sendable {
    /// The policy, as the daemon writes it: `lowest`, `every:90`.
    package let policy: String
    /// How long entries stay fresh, in milliseconds; nil when they do not expire.
    package let intervalMilliseconds: Int64?
}
