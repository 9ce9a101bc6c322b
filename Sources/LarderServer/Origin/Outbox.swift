import LarderEngine
import Synchronization

/// The writes of a database that are acknowledged here and wait to be brought to its origin: a companion database, which
/// has them durably, and an index of it.
///
/// A write and its entry here are in one commit unit. A key has at most one write that waits, its last.
///
/// Thread-safe.
final class Outbox: Sendable {
    /// `NAME.outbox`. Its entries never end, and are not evicted.
    let database: Database
    let index: OutboxIndex
    let counts = OutboxCounts()

    /// Longer values do not wait: the origin acknowledges them at once. 1 MiB.
    static let valueBytesMax = 1 << 20

    /// Reads what waits. May block.
    init(_ database: Database, most: Int) throws(LarderError) {
        self.database = database
        index = OutboxIndex(most: most)
        if !database.exists { try database.prepare(forWriting: true, policy: DatabasePolicy(.never)) }
        try load()
    }

    static func name(for database: String) throws(CommandError) -> String {
        let name = database + DatabaseName.outboxEnding
        guard DatabaseName.isValid(name), !DatabaseName.isKept(database) else {
            throw CommandError(
                "ERR BEHIND needs a database '\(name)' for what waits, and that is no possible name: use a shorter one")
        }
        return name
    }

    /// Makes the index agree with the companion database, which others may have emptied. May block.
    func load() throws(LarderError) {
        while true {
            var entries: [(key: [UInt8], number: UInt64, acceptedAt: Int64)] = []
            do throws(LarderError) {
                if let cursor = try database.cursor() {
                    defer { cursor.close() }
                    while try cursor.next() {
                        let entry = try cursor.record().withPayload { OutboxEntry(parsing: $0) }
                        // What is none is told of when its turn comes.
                        entries.append((Array(try cursor.key().bytes), entry?.number ?? 0, entry?.acceptedAt ?? 0))
                    }
                }
            } catch {
                // Emptied or reopened meanwhile.
                guard error.code == .purged || error.code == .invalidated else { throw error }
                continue
            }
            for turn in index.add(entries) where try entry(turn.key) == nil { index.remove(turn.key, turn.number) }
            return index.tellWaiters(now: nil)
        }
    }

    /// The write that waits for a key. May block.
    /// - Returns: nil if there is none; an entry that is nil if it cannot be read.
    func entry(_ key: [UInt8]) throws(LarderError) -> OutboxEntry?? {
        guard let record = try database.get(Key(key)) else { return nil }
        return .some(record.withPayload { OutboxEntry(parsing: $0) })
    }

    /// A write that was brought, or is brought no more.
    struct Settled {
        let turn: OutboxIndex.Turn
        /// What the companion database had; nil for what could not be read.
        let number: UInt64?
    }

    /// Removes writes, durably, unless their keys were written again. May block.
    func settle(_ settled: [Settled]) throws(LarderError) {
        guard !settled.isEmpty else { return }
        try database.commit(settled.map { Key($0.turn.key) }, loading: true) { update in
            for (position, each) in settled.enumerated() {
                if let record = update.current(position) {
                    let number = record.withPayload { OutboxEntry(parsing: $0)?.number }
                    guard number == each.number else { continue }
                    update.remove(position)
                }
                index.remove(each.turn.key, each.turn.number)
            }
        }
        index.tellWaiters(now: nil)
    }

    /// Forgets all that waits. May block.
    func discard() throws(LarderError) {
        _ = try database.purge(counting: false)
        index.removeAll()
    }
}

/// What became of writes that were to be brought. For INFO. Atomic.
final class OutboxCounts: Sendable {
    let delivered = Atomic<Int>(0)
    /// Attempts after the first.
    let retried = Atomic<Int>(0)
    /// Attempts that the origin refused.
    let refused = Atomic<Int>(0)
    /// Writes that were dropped because the origin has something newer.
    let superseded = Atomic<Int>(0)
}
