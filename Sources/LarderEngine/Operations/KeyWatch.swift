/// A key whose changes a connection wants to know of: whether anything was done to it since the watch began.
///
/// - Every write of the key counts, also one that leaves the same value; so does a purge of an entry, a change of the
///   database's policy, and that the entry was fresh when the watch began and is not any more. That memory lets go of the
///   entry does not count, nor that it no longer follows a policy by which it stays for ever.
/// - What removes an entry that had expired before the watch began counts as a change: a transaction may fail for it, but
///   none succeeds that should not.
///
/// Thread-safe: constant. ``end()`` is to be called once, without any shard's lock held.
package final class KeyWatch: Sendable {
    package let database: Database
    package let key: Key
    private let mark: InFlightReads.Mark
    private let wasFresh: Bool
    private let policyChanges: Int

    /// Called with the lock held of the key's shard.
    fileprivate init(_ database: Database, _ key: Key, wasFresh: Bool) {
        self.database = database
        self.key = key
        self.wasFresh = wasFresh
        let shard = database.shards[key]
        _ = shard.reads.begin(key)
        mark = shard.reads.markOfWatch(key)
        policyChanges = database.applied.policyChanges
    }

    /// Whether nothing happened to the key. Called with the lock held of the key's shard.
    /// - Parameter isFresh: whether there is a fresh entry now.
    func holds(isFresh: Bool) -> Bool {
        let now = database.shards[key].reads.markOfWatch(key)
        guard now.changes == mark.changes, database.applied.policyChanges == policyChanges else { return false }
        // A purge is nothing to a key that has no entry.
        return wasFresh ? isFresh && now == mark : now == mark || !isFresh
    }

    /// Ends the watch.
    package func end() {
        let shard = database.shards[key]
        shard.lock.withLock { shard.reads.end(key) }
    }
}

extension Database {
    /// Begins to watch keys, all at one instant.
    /// - Returns: one watch for each key, each to be ended; nil when the disk would have to be asked and may not.
    package func watch(_ keys: [Key], now: Int64, _ access: Access) throws(LarderError) -> [KeyWatch]? {
        let request = Request(keys: keys, loading: .headers, access: access, now: now)
        var watches: [KeyWatch] = []
        let ticket = try run(request) { (update) throws(LarderError) in
            watches = keys.indices.map { KeyWatch(self, keys[$0], wasFresh: update.current($0) != nil) }
        }
        return ticket == nil ? nil : watches
    }
}
