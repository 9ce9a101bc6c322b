import LarderEngine
import LarderPlatform
import Synchronization

/// Decides which origin replies may be cached.
///
/// A reply may be stored if it was received in the current epoch and its key was not invalidated since the request was
/// sent: see ``InvalidationTracker``. When the epoch ends, all entries of the origin become stale, by a soft purge of
/// their common tag. The purge costs the same for any number of entries. Invalidated keys are *due* until their entries
/// have been made stale.
///
/// Thread-safe. `@unchecked Sendable`: all mutable state is guarded by `lock`.
final class InvalidationEpoch: @unchecked Sendable {
    /// The current epoch.
    struct Epoch: Hashable {
        /// The number of the period of notifications; nil outside such a period.
        fileprivate var notified: UInt64?
        /// The origin's own epoch; nil if the origin reports none.
        fileprivate var own: UInt64?

        var receivesChanges: Bool { notified != nil && own != nil }
    }

    /// The state when a call began, or when a request was sent.
    struct Ticket: Sendable {
        let epoch: Epoch
        /// Increases with each ticket.
        let number: UInt64
        fileprivate let sequence: UInt64
    }

    private let originEpoch: @Sendable () -> UInt64?
    let isNotified: Bool
    private let lock = Lock()
    /// Held by `applyNotifications` while it updates the database, so that only one caller does so at a time.
    private let settling = Lock()
    /// The invalidations by any source, in the numbering of ``OriginMoment``.
    private var reports: InvalidationTracker<[UInt8]>
    /// The invalidations by the program. They still apply when the origin confirms a write afterwards.
    private var demands: InvalidationTracker<[UInt8]>
    /// The epoch for which the database is up to date: entries of earlier epochs are stale. Nil during an update.
    private var settled: Epoch?
    /// The keys whose entries must become stale, with the sequence numbers of their invalidations.
    private var due: [[UInt8]: UInt64] = [:]
    private var tickets: UInt64 = 0
    private static let keysMax = 100_000
    private var writes: [[UInt8]: Int] = [:]

    /// - Parameters:
    ///   - isNotified: whether the origin reports changes.
    ///   - epoch: returns the origin's own epoch.
    init(isNotified: Bool, epoch: @escaping @Sendable () -> UInt64?) {
        self.isNotified = isNotified
        originEpoch = epoch
        reports = InvalidationTracker(isListening: !isNotified, keysMax: Self.keysMax)
        demands = InvalidationTracker(keysMax: Self.keysMax)
        if !isNotified { settled = self.epoch(0) }
    }

    private func epoch(_ own: UInt64?) -> Epoch { Epoch(notified: reports.epoch, own: own) }

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

    func begin() { lock.withLock { reports.listen(report: OriginMoment.next().number) } }

    /// Ends the epoch, because the origin no longer reports changes.
    /// - Returns: whether the origin reported changes until now.
    @discardableResult
    func lose() -> Bool {
        guard isNotified else { return false }
        return lock.withLock {
            defer { reports.lose() }
            return reports.epoch != nil
        }
    }

    /// Handles a notification that any entry may have changed.
    func loseAll() { lock.withLock { loseAllLocked() } }

    private func loseAllLocked() {
        if isNotified, reports.epoch != nil { reports.listen(report: OriginMoment.next().number) }
    }

    /// Notes that keys have changed and their entries must become stale.
    /// - Parameter isNotified: whether the notification is from the origin, not from the program.
    /// - Returns: whether no keys were due before, so that the caller must start `applyNotifications`.
    func changed(_ keys: [[UInt8]], isNotified isOrigins: Bool = false) -> Bool {
        lock.withLock {
            note(keys, isDemanded: !isOrigins)
            guard !isNotified || due.count + keys.count <= Self.keysMax else {
                loseAllLocked()
                return false
            }
            defer { for key in keys { due[key] = reports.sequence } }
            return due.isEmpty
        }
    }

    /// Notes that an unknown set of keys has changed. Replies to earlier requests are not cached.
    func changedMany() {
        lock.withLock {
            let report = OriginMoment.next().number
            reports.changedAll(report: report)
            demands.changedAll(report: report)
        }
    }

    private func note(_ keys: [[UInt8]], isDemanded: Bool = false) {
        let report = OriginMoment.next().number
        reports.changed(keys, report: report)
        if isDemanded { demands.changed(keys, report: report) }
    }

    // MARK: Calls

    /// The number of running calls and requests.
    var callCount: Int { lock.withLock { reports.running } }

    /// Notes that a call, or a request to the origin, begins.
    func beginCall() -> Ticket {
        let own = own
        return lock.withLock { beginCall(own) }
    }

    private func beginCall(_ own: UInt64?) -> Ticket {
        _ = demands.begin()
        return ticket(epoch(own), reports.begin())
    }

    private func ticket(_ epoch: Epoch, _ sequence: UInt64) -> Ticket {
        tickets += 1
        return Ticket(epoch: epoch, number: tickets, sequence: sequence)
    }

    func endCall() {
        lock.withLock {
            reports.end()
            demands.end()
        }
    }

    /// Whether the reply to a request is still current: the epoch is the same, and no change of the key was reported.
    func isValid(_ ticket: Ticket, _ key: [UInt8]) -> Bool {
        let own = own
        return lock.withLock {
            ticket.epoch == epoch(own) && !reports.hasChanged(key, since: ticket.sequence)
        }
    }

    /// Whether the reply may be stored. Calls no code of the origin, so the caller may hold locks of the database.
    func mayStore(_ ticket: Ticket, _ key: [UInt8]) -> Bool {
        lock.withLock {
            ticket.epoch.receivesChanges && ticket.epoch == settled
                && !reports.hasChanged(key, since: ticket.sequence) && writes[key] == nil
        }
    }

    func beginWrite(_ keys: [[UInt8]]) -> Ticket {
        let own = own
        return lock.withLock {
            for key in keys { writes[key, default: 0] += 1 }
            note(keys)
            return beginCall(own)
        }
    }

    /// Notes that a write has ended, because the origin has answered or failed. Replies to reads that were sent earlier
    /// are no longer valid.
    /// - Parameter confirmedAt: the moment at which the origin confirmed the value, if it did. Notifications from
    ///   before that moment are ignored.
    /// - Returns: a ticket for storing the written value; nil if, in the meantime, another caller wrote one of the
    ///   keys, or one of the keys was reported as changed.
    func endWrite(_ keys: [[UInt8]], _ began: Ticket, _ confirmedAt: OriginMoment? = nil) -> Ticket? {
        lock.withLock {
            let confirmed = max(began.sequence, confirmedAt?.number ?? 0)
            var isAlone = true
            for key in keys {
                if reports.hasChanged(key, since: confirmed) || demands.hasChanged(key, since: began.sequence) {
                    isAlone = false
                }
                guard let count = writes[key] else { continue }
                writes[key] = count == 1 ? nil : count - 1
                if count > 1 { isAlone = false }
            }
            note(keys)
            return isAlone ? ticket(began.epoch, reports.sequence) : nil
        }
    }

    // MARK: The database

    /// Updates the database to reflect all notifications of the origin. May block.
    func applyNotifications(to database: Database) throws(LarderError) {
        try settling.withLock { () throws(LarderError) in
            let own = own
            let (now, before, noted) = lock.withLock { () -> (Epoch, Epoch?, [[UInt8]: UInt64]) in
                let now = epoch(own)
                let before = settled
                if before != now { settled = nil }
                return (now, before, due)
            }
            if before != now {
                // In an epoch without notifications nothing was stored, so there is nothing to purge.
                if before.map(\.receivesChanges) ?? true {
                    // End the leases of running fetches first, so that a reply of the previous epoch is stored before
                    // the purge or not at all. The purge makes only existing entries stale, so a reply that is stored
                    // after it would stay fresh.
                    database.leases.end(prefix: [])
                    try database.purge(.tags([Array(Self.tag.utf8)], soft: true))
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
        // End the leases first, so that no value that was requested before this call is stored later.
        database.leases.end(keys)
        guard database.exists else { return }
        for start in stride(from: 0, to: keys.count, by: 256) {
            let some = Array(keys[start..<min(start + 256, keys.count)])
            try database.commit(some, loading: .records) { update in
                for index in some.indices { update.renew(index, .own(update.now)) }
            }
        }
    }

    /// The tag of all entries from an origin that reports changes.
    static let tag = "larder:origin"
}

/// A position in the order of all notifications from the origins of this process.
public struct OriginMoment: Hashable, Sendable {
    let number: UInt64

    private static let last = Atomic<UInt64>(0)

    /// Returns the moment after all notifications so far. Call it when the confirmation of a write arrives, in the code
    /// that also receives the notifications, so that their order is kept.
    public static func now() -> OriginMoment { OriginMoment(number: last.load(ordering: .acquiring)) }

    /// Returns a new moment, after all earlier ones.
    static func next() -> OriginMoment {
        OriginMoment(number: last.wrappingAdd(1, ordering: .acquiringAndReleasing).newValue)
    }
}

/// Reports the changes of an origin to one cache.
///
/// All methods return at once, and may be called from any thread. A change takes effect when the call returns: no read
/// that begins later serves the previous value as fresh.
///
/// Thread-safe. `@unchecked Sendable`: `hasEnded` is guarded by the lock of `waiting`; the rest is constant.
public final class OriginChanges: @unchecked Sendable {
    /// Weak, to avoid a retain cycle: the object retains the origin, to read its epoch, and an origin may retain its
    /// `OriginChanges`.
    private weak var trust: InvalidationEpoch?
    private let database: Database
    private let waiting = WaitingTasks<Void>()
    private var hasEnded = false

    init(_ trust: InvalidationEpoch, _ database: Database) { (self.trust, self.database) = (trust, database) }

    /// Starts an epoch: from now on the origin reports every change. Entries from before must be read from the origin
    /// again before they count as fresh.
    public func begin() { trust?.begin() }

    /// Reports that entries have changed, or may have.
    public func changed(_ keys: some Sequence<some CacheKey>) {
        let keys = keys.map(\.keyBytes).filter { $0.count <= Key.bytesMax }
        guard !keys.isEmpty, let trust, trust.changed(keys, isNotified: true) else { return }
        // Make the entries stale in the background. A read of these keys also does so, but there may be no read.
        Task { [trust, database] in
            try? await BlockingWork.run { () throws(LarderError) in try trust.applyNotifications(to: database) }
        }
    }

    /// Reports that any entry may have changed. The cost does not depend on the number of entries.
    public func changedAll() { trust?.loseAll() }

    /// Ends the epoch: changes are no longer reported, and no entry counts as current until ``begin()``. Returning or
    /// throwing from ``CacheOrigin/tellChanges(to:)`` does the same.
    public func lost() { trust?.lose() }

    /// - Returns: whether the origin reported changes until now.
    func lose() -> Bool { trust?.lose() ?? false }

    /// Returns when the cache is closed or the task is cancelled. For origins that receive changes by callbacks.
    public func untilClosed() async { await waiting.value(cancelled: ()) { hasEnded ? () : nil } }

    func end() {
        let all = waiting.lock.withLock {
            hasEnded = true
            return waiting.promises.takeAll()
        }
        for promise in all { promise.set(()) }
    }
}
