import LarderEngine
import LarderPlatform

/// Decides which origin replies may be cached.
///
/// An *epoch* is an uninterrupted period of change notifications. A reply may be stored if it was received in the
/// current epoch and its key was not invalidated since the request was sent. When the epoch ends, all entries of the
/// origin are soft-purged by tag, whatever their number. Invalidated keys are *due* until their entries are stale.
///
/// Thread-safe. `@unchecked Sendable`: all mutable state is guarded by `lock`.
final class InvalidationEpoch: @unchecked Sendable {
    /// The current epoch.
    struct Epoch: Hashable {
        /// Nil while the origin should report changes but does not.
        fileprivate var notified: UInt64?
        fileprivate var own: UInt64?

        var isBelieved: Bool { notified != nil && own != nil }
    }

    /// The state when a call began, or when a request was sent.
    struct Ticket: Sendable {
        let epoch: Epoch
        /// Increases with each ticket.
        let number: UInt64
        fileprivate let sequence: UInt64
    }

    /// The last invalidations of a key.
    private struct Change {
        /// The last invalidation by any source.
        var last: UInt64 = 0
        /// By the program. A later confirmation of the origin does not cancel such an invalidation.
        var demanded: UInt64 = 0
    }

    private let originEpoch: @Sendable () -> UInt64?
    let isNotified: Bool
    private let lock = Lock()
    /// Held while the database is updated, by one caller at a time.
    private let settling = Lock()
    private var notified: UInt64?
    private var epochs: UInt64 = 0
    /// The epoch that the database agrees with; nil during an update.
    private var settled: Epoch?
    /// The keys whose entries must become stale, with the sequences of their invalidations.
    private var due: [[UInt8]: UInt64] = [:]
    // Invalidations are recorded only during running calls, for these calls.
    private var calls = 0
    private var tickets: UInt64 = 0
    /// A number of ``OriginMoment``.
    private var sequence: UInt64 = 0
    private var changes: [[UInt8]: Change] = [:]
    /// Keys of calls that began before this sequence count as changed.
    private var floor: UInt64 = 0
    private static let changesMax = 100_000
    private var writes: [[UInt8]: Int] = [:]

    /// - Parameters:
    ///   - isNotified: whether the origin reports changes.
    ///   - epoch: returns the origin's own epoch.
    init(isNotified: Bool, epoch: @escaping @Sendable () -> UInt64?) {
        self.isNotified = isNotified
        originEpoch = epoch
        if !isNotified {
            notified = 0
            settled = Epoch(notified: 0, own: 0)
        }
    }

    private func epoch(_ own: UInt64?) -> Epoch { Epoch(notified: notified, own: own) }

    private var own: UInt64? { isNotified ? originEpoch() : 0 }

    var epoch: Epoch {
        let own = own
        return lock.withLock { epoch(own) }
    }

    /// Whether the database reflects all invalidations of the keys, so that its fresh entries may be served.
    func isSettled(_ keys: some Sequence<some CacheKey>) -> Bool {
        let own = own
        return lock.withLock {
            settled == epoch(own) && (due.isEmpty || keys.allSatisfy { due[$0.keyBytes] == nil })
        }
    }

    // MARK: Notifications of the origin

    func begin() {
        lock.withLock {
            epochs += 1
            notified = epochs
        }
    }

    /// - Returns: whether changes were reported until now.
    @discardableResult
    func lose() -> Bool {
        guard isNotified else { return false }
        return lock.withLock {
            defer { notified = nil }
            return notified != nil
        }
    }

    /// Handles a notification that any entry may have changed.
    func loseAll() { lock.withLock { loseAllLocked() } }

    private func loseAllLocked() {
        guard isNotified, notified != nil else { return }
        epochs += 1
        notified = epochs
    }

    /// Notes that keys have changed and their entries must become stale.
    /// - Parameter isNotified: whether the notification is from the origin, not from the program.
    /// - Returns: whether no keys were due before, so that the caller must start `settle`.
    func changed(_ keys: [[UInt8]], isNotified isOrigins: Bool = false) -> Bool {
        lock.withLock {
            note(keys, isDemanded: !isOrigins)
            guard !isNotified || due.count + keys.count <= Self.changesMax else {
                loseAllLocked()
                return false
            }
            defer { for key in keys { due[key] = sequence } }
            return due.isEmpty
        }
    }

    /// Notes that unlisted keys have changed: replies to earlier requests are not cached.
    func changedMany() {
        lock.withLock {
            sequence = OriginMoment.next().number
            floor = sequence
            changes = [:]
        }
    }

    private func note(_ keys: [[UInt8]], isDemanded: Bool = false) {
        sequence = OriginMoment.next().number
        guard calls > 0 else { return }
        if changes.count + keys.count > Self.changesMax {
            floor = sequence
            changes = [:]
            return
        }
        for key in keys {
            changes[key, default: Change()].last = sequence
            if isDemanded { changes[key]?.demanded = sequence }
        }
    }

    // MARK: Calls

    /// The number of running calls and requests, for tests.
    var callCount: Int { lock.withLock { calls } }

    /// Begins a call, or a request to the origin.
    func beginCall() -> Ticket {
        let own = own
        return lock.withLock {
            calls += 1
            return ticket(own)
        }
    }

    private func ticket(_ own: UInt64?) -> Ticket {
        tickets += 1
        return Ticket(epoch: epoch(own), number: tickets, sequence: sequence)
    }

    func endCall() {
        lock.withLock {
            calls -= 1
            if calls == 0 { changes = [:] }
        }
    }

    /// Whether a reply is still current, as far as the origin has reported changes.
    func isValid(_ ticket: Ticket, _ key: [UInt8]) -> Bool {
        let own = own
        return lock.withLock {
            ticket.epoch == epoch(own) && ticket.sequence >= floor && changes[key]?.last ?? 0 <= ticket.sequence
        }
    }

    /// Whether the reply may also be stored. Calls nothing else, so locks of the database may be held.
    func mayStore(_ ticket: Ticket, _ key: [UInt8]) -> Bool {
        lock.withLock {
            ticket.epoch.isBelieved && ticket.epoch == settled && ticket.sequence >= floor
                && changes[key]?.last ?? 0 <= ticket.sequence && writes[key] == nil
        }
    }

    /// Begins a write.
    func beginWrite(_ keys: [[UInt8]]) -> Ticket {
        let own = own
        return lock.withLock {
            calls += 1
            for key in keys { writes[key, default: 0] += 1 }
            note(keys)
            return ticket(own)
        }
    }

    /// Ends a write after the origin has answered or failed. Later reads are newer than the write.
    /// - Parameter confirmedAt: the moment at which the origin confirmed the value, if it did. Earlier notifications
    ///   are ignored.
    /// - Returns: a ticket for storing the written value; nil if another caller wrote one of the keys in the meantime,
    ///   or a change of them was reported.
    func endWrite(_ keys: [[UInt8]], _ began: Ticket, _ confirmedAt: OriginMoment? = nil) -> Ticket? {
        lock.withLock {
            var isAlone = began.sequence >= floor
            for key in keys {
                let change = changes[key] ?? Change()
                if change.last > max(began.sequence, confirmedAt?.number ?? 0) || change.demanded > began.sequence {
                    isAlone = false
                }
                guard let count = writes[key] else { continue }
                writes[key] = count == 1 ? nil : count - 1
                if count > 1 { isAlone = false }
            }
            note(keys)
            tickets += 1
            return isAlone ? Ticket(epoch: began.epoch, number: tickets, sequence: sequence) : nil
        }
    }

    // MARK: The database

    /// Updates the database to reflect all notifications of the origin. May block.
    func settle(_ database: Database) throws(LarderError) {
        try settling.withLock { () throws(LarderError) in
            let own = own
            let (now, before, noted) = lock.withLock { () -> (Epoch, Epoch?, [[UInt8]: UInt64]) in
                let now = epoch(own)
                let before = settled
                if before != now { settled = nil }
                return (now, before, due)
            }
            if before != now {
                // Nothing was stored in an epoch without notifications, so only other epochs need a purge.
                if before.map(\.isBelieved) ?? true {
                    // Do this first, so that a reply of the previous epoch is stored before the purge or not at all.
                    // The purge makes only existing entries stale, so a reply that is stored after it would stay fresh.
                    database.endLeases(prefix: [])
                    try database.purge(tags: [Array(Self.tag.utf8)], soft: true)
                }
                lock.withLock { settled = now }
            }
            guard !noted.isEmpty else { return }
            try Self.makeStale(Array(noted.keys), database)
            lock.withLock {
                for (key, sequence) in noted where due[key] == sequence { due[key] = nil }
            }
        }
    }

    /// Drops running fetches of the keys, and makes their entries stale. May block.
    static func makeStale(_ keys: [[UInt8]], _ database: Database) throws(LarderError) {
        let keys = keys.map { Key($0) }
        // Do this first: values that are stored afterwards were also requested afterwards.
        database.endLeases(keys)
        guard database.exists else { return }
        for start in stride(from: 0, to: keys.count, by: 256) {
            let some = Array(keys[start..<min(start + 256, keys.count)])
            try database.commit(some, loading: true) { update in
                for index in some.indices { update.renew(index, .own(update.now)) }
            }
        }
    }

    /// The tag of all entries from an origin that reports changes.
    static let tag = "larder:origin"
}
