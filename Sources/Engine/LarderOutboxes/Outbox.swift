import LarderEngine
import Synchronization

/// The outbox of a database: writes that Larder has acknowledged and still has to deliver, for example to the
/// database's origin. A companion database stores them durably, and ``index`` lists them in memory.
///
/// A write and its outbox entry are committed together. A key has at most one pending write, its last one.
///
/// Thread-safe.
package final class Outbox: Sendable {
    /// The companion database `NAME.outbox`. Its entries never expire, and are not evicted.
    package let database: Database
    package let index: OutboxIndex
    package let counts = OutboxCounts()
    /// Whether the writes of this outbox have tokens (see ``OutboxEntry/token``). A write that does not match this was
    /// queued by another program, and is not delivered.
    private let hasTokens: Bool

    /// The maximum size of a queued value in bytes: 1 MiB. A longer value is not queued: its write waits until the
    /// origin has acknowledged it.
    package static let valueBytesMax = 1 << 20

    /// Opens the outbox, creates the companion database if it does not exist, and loads the pending writes. May block.
    /// - Parameters:
    ///   - database: the companion database.
    ///   - most: the maximum number of keys with pending writes.
    ///   - held: counts the bytes of all pending writes.
    package init(_ database: Database, most: Int, held: HeldBytes, hasTokens: Bool = false) throws(LarderError) {
        self.database = database
        self.hasTokens = hasTokens
        index = OutboxIndex(most: most, held: held)
        if !database.exists { try database.prepare(forWriting: true, policy: DatabasePolicy(.never)) }
        try load()
    }

    /// Returns the name of the companion database; nil if that name would be invalid.
    package static func name(for database: String) -> String? {
        let name = database + DatabaseName.outboxEnding
        return DatabaseName.isValid(name) && !DatabaseName.isKept(database) ? name : nil
    }

    /// Rebuilds the index from the companion database. May block.
    package func load() throws(LarderError) {
        while true {
            var entries: [(key: [UInt8], number: UInt64, acceptedAt: Int64, bytes: Int)] = []
            do throws(LarderError) {
                if let cursor = try database.cursor() {
                    defer { cursor.close() }
                    while try cursor.next() {
                        let (entry, bytes) = try cursor.record().withPayload { (OutboxEntry(parsing: $0), $0.count) }
                        let key = Array(try cursor.key().bytes)
                        // Entries that are not valid writes are added too, and reported when they are due for delivery.
                        entries.append((key, entry?.number ?? 0, entry?.acceptedAt ?? 0, key.count + bytes))
                    }
                }
            } catch {
                // If the database was emptied or reopened in the meantime, read it again.
                guard error.code == .purged || error.code == .invalidated else { throw error }
                continue
            }
            for turn in index.add(entries) where try entry(turn.key) == nil { index.remove(turn.key, turn.number) }
            return index.notifyWaiters(now: nil)
        }
    }

    /// Reads the pending write of a key. May block.
    /// - Returns: nil if there is no pending write; `.some(nil)` if the entry is malformed or from another program.
    package func entry(_ key: [UInt8]) throws(LarderError) -> OutboxEntry?? {
        guard let record = try database.get(Key(key)) else { return nil }
        let entry = record.withPayload { OutboxEntry(parsing: $0) }
        return .some(entry.flatMap { ($0.token != nil) == hasTokens ? $0 : nil })
    }

    /// A write that was delivered or dropped.
    package struct Settled {
        let turn: OutboxIndex.Turn
        /// The write's number in the companion database; nil if its entry is missing or malformed.
        let number: UInt64?

        package init(turn: OutboxIndex.Turn, number: UInt64?) { (self.turn, self.number) = (turn, number) }
    }

    /// A write to deliver, with its turn (its place in the order of delivery).
    package struct Parcel: Sendable {
        package let turn: OutboxIndex.Turn
        package let entry: OutboxEntry
    }

    /// Reads the writes to deliver for some turns. All returned writes are durable in the companion database. May
    /// block.
    /// - Parameters:
    ///   - bytesMax: after values of this total length in bytes, the remaining turns are put back for a later batch.
    ///   - unreadable: called for each turn whose entry is malformed or from another program.
    package func collect(
        _ turns: [OutboxIndex.Turn], bytesMax: Int, unreadable: (OutboxIndex.Turn) -> Void
    ) throws(LarderError) -> [Parcel] {
        var parcels: [Parcel] = []
        var settled: [Settled] = []
        var bytes = 0
        for (position, turn) in turns.enumerated() {
            guard bytes < bytesMax else {
                index.putBack(Array(turns[position...]))
                break
            }
            guard let found = try entry(turn.key) else {
                // The write was purged, or its commit failed after it had been added to the index.
                settled.append(Settled(turn: turn, number: nil))
                continue
            }
            guard let entry = found else {
                unreadable(turn)
                continue
            }
            // A later write of the key has replaced this one, and has its own turn.
            guard entry.number <= turn.number else { continue }
            bytes += entry.value?.count ?? 0
            parcels.append(Parcel(turn: turn, entry: entry))
        }
        try settle(settled)
        return parcels
    }

    /// Removes writes from the companion database and the index after they were delivered or dropped. Does not remove
    /// later writes of the same keys. May block.
    package func settle(_ settled: [Settled]) throws(LarderError) {
        guard !settled.isEmpty else { return }
        let removed = try database.commit(settled.map { Key($0.turn.key) }, loading: .records) { update in
            settled.indices.filter { position in
                guard let record = update.current(position) else { return true }
                let number = record.withPayload { OutboxEntry(parsing: $0)?.number }
                guard number == settled[position].number else { return false }
                update.remove(position)
                return true
            }
        }
        // Remove them from the index only after the commit, because until then they are still in the companion
        // database.
        for position in removed { index.remove(settled[position].turn.key, settled[position].turn.number) }
        index.notifyWaiters(now: nil)
    }

    /// Drops all pending writes without delivering them. May block.
    package func discard() throws(LarderError) {
        _ = try database.purge(.all(counting: false))
        index.removeAll()
    }
}

/// The counters of deliveries, for the command INFO. Thread-safe.
package final class OutboxCounts: Sendable {
    package let delivered = Atomic<Int>(0)
    /// The number of repeated delivery attempts, not counting the first attempt for each write.
    package let retried = Atomic<Int>(0)
    /// The number of delivery attempts that the origin rejected, and of entries that cannot be delivered.
    package let refused = Atomic<Int>(0)
    /// The number of writes that were dropped because the origin has a newer value.
    package let superseded = Atomic<Int>(0)
}
