package struct TransactionPart {
    package let database: Database
    /// Distinct keys. The first ``loadedCount`` are read; the others are written without being read.
    package let keys: [Key]
    package let loadedCount: Int
    package let watches: [KeyWatch]

    package init(database: Database, keys: [Key], loadedCount: Int, watches: [KeyWatch]) {
        precondition(loadedCount >= 0 && loadedCount <= keys.count, "a transaction cannot read more keys than it has")
        self.database = database
        self.keys = keys
        self.loadedCount = loadedCount
        self.watches = watches
    }
}

/// The entries of a transaction at one instant, in all its databases.
///
/// Valid only inside the closure of ``Engine/transact(_:now:bytesMax:_:_:)``.
package struct TransactionUpdate {
    package let parts: [TransactionPart]
    private(set) var updates: [Update]
    /// The number of commands so far; a command counts once for each of its databases.
    private var steps = 0

    init(_ parts: [TransactionPart], _ updates: [Update]) { (self.parts, self.updates) = (parts, updates) }

    /// Whether all watched keys are unchanged. The watched keys must be among the keys that are read.
    package var watchesHold: Bool {
        for (part, update) in zip(parts, updates) where !part.watches.isEmpty {
            var positions: [Key: Int] = [:]
            for (position, key) in part.keys.enumerated() { positions[key] = position }
            for watch in part.watches {
                let isFresh = positions[watch.key].map { update.isFresh($0) } ?? false
                if !watch.holds(isFresh: isFresh) { return false }
            }
        }
        return true
    }

    /// Whether every loaded entry is in the same state (fresh, stale or gone) at `time` as at the transaction's time.
    /// Call it before the commands run.
    package func isAsFresh(at time: Int64) -> Bool { updates.allSatisfy { $0.isAsFresh(at: time) } }

    /// Reads the entry of one more key, in a transaction that is run tentatively without locks. May block.
    /// - Parameter bytesMax: the maximum length in bytes of a record that is read from the disk.
    /// - Returns: the key's position in its part.
    package mutating func load(part: Int, _ key: Key, bytesMax: Int) throws(LarderError) -> Int {
        let update = Update.take()
        defer { update.giveBack() }
        update.add([key], areDistinct: true)
        update.prepare(parts[part].database, now: updates[part].now, .records, bytesMax: bytesMax)
        let found = try Executor.run(update.alone, .mayBlock) { (_, _) throws(LarderError) -> Record?? in
            .some(update.stored(0))
        }
        return updates[part].add(key, found ?? nil)
    }

    /// Counts the hits and misses of commands that have run without locks.
    package func countReads() { for update in updates { update.countReads() } }

    package func rules(part: Int) -> FreshnessRules { updates[part].rules }

    /// The fresh entry of a key, after the transaction's changes so far. Counts a hit or a miss.
    package func current(part: Int, position: Int) -> Record? { updates[part].readRecord(position) }

    /// Runs one command on some of a part's keys. If `body` throws, only that command's changes are undone.
    package mutating func update(
        part: Int, positions: [Int], _ body: (inout Update) throws(LarderError) -> Void
    ) throws(LarderError) {
        begin(part)
        try updates[part].narrowed(to: positions, body)
    }

    private mutating func begin(_ part: Int) {
        steps += 1
        updates[part].step = steps
    }

    /// Like ``update(part:positions:_:)``, for a command on keys of two different parts.
    package mutating func update(
        part: Int, positions: [Int], and other: Int, _ otherPositions: [Int],
        _ body: (inout Update, inout Update) throws(LarderError) -> Void
    ) throws(LarderError) {
        precondition(part != other, "two parts are needed")
        // When an entry is moved, listeners are notified of its removal before it appears in the other database.
        begin(part)
        begin(other)
        let other = updates[other]
        try updates[part].narrowed(to: positions) { (update) throws(LarderError) in
            try other.narrowed(to: otherPositions) { (narrowed) throws(LarderError) in
                try body(&update, &narrowed)
            }
        }
    }

    /// The databases that the transaction would write to, but whose files are not open or must be reopened first. If
    /// there are any, nothing can be applied.
    package var withoutFiles: [Database] {
        zip(parts, updates).filter { part, update in
            let state = part.database.applied
            return update.hasChanges && !state.isReady(forWriting: true)
        }.map(\.0.database)
    }
}

package enum TransactionEnd {
    /// The changes of the body are applied, as one commit unit.
    case applied(CommitTicket)
    /// The body returned false, so nothing was changed.
    case dropped
    /// The disk was needed but not allowed; the body was not called.
    case cold
}

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
    /// The approximate size of the watch in memory, with the key's place in a table.
    package var byteCount: Int { key.stored.count + 224 }
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

    package func end() { database.shards.withLocked(key.hash) { $0.reads.end(key) } }
}
