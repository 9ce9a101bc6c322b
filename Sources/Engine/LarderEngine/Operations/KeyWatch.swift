/// A watch of a key, as by the Redis command `WATCH`. Detects whether the key has changed since the watch began.
///
/// - Every write counts as a change, even if the value stays the same. So does a purge of the entry, a change of the
///   database's policy, and the expiry of an entry that was fresh when the watch began. Evictions from memory do not
///   count. Nor does making an entry permanent if it has no deadline anyway.
/// - Removing an entry that had expired before the watch began counts as a change. A transaction may therefore fail
///   unnecessarily, but it never succeeds after the key has changed.
///
/// Thread-safe: immutable. Call ``end()`` once, without any shard's lock held.
package final class KeyWatch: Sendable {
    package let database: Database
    package let key: Key
    private let mark: InFlightReads.Mark
    private let wasFresh: Bool
    private let policyChanges: Int

    /// Begins to watch keys, all at one instant.
    /// - Returns: one watch per key, each of which the caller must end; nil if the disk is needed and `access` forbids
    ///   its use.
    package static func begin(
        _ keys: [Key], in database: Database, now: Int64, _ access: Access
    ) throws(LarderError) -> [KeyWatch]? {
        var watches: [KeyWatch] = []
        let ticket = try database.perform(keys, .anyHeaders, access, now: now) { update in
            watches = keys.indices.map { KeyWatch(database, keys[$0], wasFresh: update.isFresh($0)) }
        }
        return ticket == nil ? nil : watches
    }

    /// Begins the watch. Called with the lock of the key's shard held.
    private init(_ database: Database, _ key: Key, wasFresh: Bool) {
        self.database = database
        self.key = key
        self.wasFresh = wasFresh
        let shard = database.shards[key]
        _ = shard.reads.begin(key)
        mark = shard.reads.markOfWatch(key)
        policyChanges = database.applied.policyChanges
    }

    /// Whether the key is unchanged. Called with the lock of the key's shard held.
    /// - Parameter isFresh: whether the key has a fresh entry now.
    func holds(isFresh: Bool) -> Bool {
        let now = database.shards[key].reads.markOfWatch(key)
        guard now.changes == mark.changes, database.applied.policyChanges == policyChanges else { return false }
        // If the key had no fresh entry and has none now, a purge in the meantime does not count.
        return wasFresh ? isFresh && now == mark : now == mark || !isFresh
    }

    /// Ends the watch.
    package func end() { database.shards.withLocked(key.hash) { $0.reads.end(key) } }
}
