import Threading

/// An entry that is applied but not yet in LevelDB.
struct PendingEntry {
    /// The commit unit that will write it.
    let sequence: UInt64
    /// nil: the entry was removed.
    let record: Record?
}

/// A part of a database's keys, with the lock that orders everything done to them.
///
/// `overlay` and `version` are read and written with `lock` held, which is the proof for `@unchecked Sendable`.
final class Shard: @unchecked Sendable {
    let lock = Lock()
    /// What is applied but not yet committed.
    var overlay: [Key: PendingEntry] = [:]
    /// Goes up with every change to the shard, so that who read LevelDB without the lock can tell that nothing changed.
    var version: UInt64 = 0

    /// How many shards a database has. A power of two.
    static let count = 16
}
