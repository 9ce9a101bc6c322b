import LarderCommandCatalog
import LarderEngine
import LarderPlatform
import Synchronization

/// Reports changes of entries to clients: keyspace notifications, and invalidations for tracking clients.
///
/// - Only committed changes are reported. The report precedes the reply to the client that made the change.
/// - The expiry of an entry with its own deadline is reported once, at the deadline. The expiry of an entry that
///   follows the database's policy is reported when the entry's space is reclaimed. Entries that had expired before the
///   daemon started are not reported.
/// - If no events are published, and no client uses CLIENT TRACKING, changes are not recorded at all.
///
/// `@unchecked Sendable`: `lock` guards the properties below "Guarded".
package final class Notifier: ChangeSubscriber, @unchecked Sendable {
    private let engine: Engine
    private let pubsub: PubSub
    private let tracking: Tracking
    private let deadlinesMax: Int
    private let startedAt: Int64
    private let hasBackgroundWork = Atomic<Bool>(false)
    private let lock = Lock()
    // Guarded by `lock`:
    private var events: KeyspaceEvents = []
    /// The deadlines of entries that do not follow the policy. Kept only while expiries are published or BCAST is used.
    private var deadlines = DeadlineWatch<EntryName>()
    private var isWatching = false
    /// The number of running scans that collect deadlines. `changedSince` contains the entries that have changed during
    /// these scans: a scan may have read the old deadline, so its result for such an entry is ignored.
    private var scans = 0
    private var changedSince: Set<EntryName> = []
    /// For each database, the number of callers that are purging the database, and will report the purge themselves.
    private var flushing: [ObjectIdentifier: Int] = [:]
    private var tooMany: (@Sendable (Int) -> Void)?
    private var background: @Sendable (@escaping @Sendable () -> Void) -> Void = { $0() }

    private static let slice = 256

    init(engine: Engine, pubsub: PubSub, tracking: Tracking, deadlinesMax: Int) {
        self.engine = engine
        self.pubsub = pubsub
        self.tracking = tracking
        self.deadlinesMax = deadlinesMax
        startedAt = engine.now()
        tracking.onClientsChanged { [weak self] in self?.wishesChanged() }
    }

    /// Sets the function that runs long work on another thread. Until it is set, such work runs on the caller's thread.
    func runInBackground(_ background: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void) {
        lock.withLock { self.background = background }
    }

    // MARK: Subscriptions

    /// The kinds of events that are published, as letters of the setting `notify-keyspace-events`.
    package var eventsText: String { lock.withLock { events }.text }

    /// Changes the kinds of events that are published. Thread-safe.
    /// - Returns: false if the text is invalid; then nothing was changed.
    package func setEvents(_ text: String) -> Bool {
        guard let new = KeyspaceEvents(text) else { return false }
        lock.withLock { events = new }
        wishesChanged()
        return true
    }

    package static func isValid(_ text: String) -> Bool { KeyspaceEvents(text) != nil }

    /// The error message for a text that ``setEvents(_:)`` refuses.
    package static var eventsError: String { KeyspaceEvents.errorText }

    /// Whether a write must look up the existing entry, because an event depends on whether the entry exists.
    var needsPrevious: Bool { previousIsNeeded.load(ordering: .relaxed) }
    private let previousIsNeeded = Atomic<Bool>(false)

    private func wishesChanged() {
        let (begins, background) = lock.withLock {
            if events.isActive || tracking.hasClients {
                engine.changes.subscribe(self)
            } else {
                engine.changes.unsubscribe(self)
            }
            previousIsNeeded.store(events.isActive && events.contains(.new), ordering: .relaxed)
            let watches = events.isActive && events.contains(.expired) || tracking.hasBroadcast
            defer { isWatching = watches }
            if !watches { deadlines.removeAll() }
            let begins = watches && !isWatching
            if begins { scans += 1 }
            return (begins, self.background)
        }
        guard begins else { return }
        let start = engine.now()
        background { [self] in scan(from: start) }
    }

    /// Collects the deadlines of all existing entries.
    /// - Parameter start: the time at which watching began. Entries that expired before that time are ignored.
    private func scan(from start: Int64) {
        for database in engine.databases {
            do throws(LarderError) {
                try database.prepare(forWriting: false)
                guard let cursor = try database.cursor(EnumerationOptions(includeExpired: true)) else { continue }
                defer { cursor.close() }
                while try cursor.next() {
                    // Skip an entry whose header cannot be read: its deadline is unknown.
                    guard let header = try? cursor.header(), case .own(let deadline) = header.rule, deadline > start
                    else { continue }
                    note(EntryName(database, Array(try cursor.key().bytes)), deadline)
                }
            } catch {
                // The database was purged or damaged during the scan. Its old entries no longer exist. The deadlines of
                // new entries are recorded when these entries are written.
            }
        }
        lock.withLock {
            scans -= 1
            if scans == 0 { changedSince = [] }
        }
    }

    private func note(_ name: EntryName, _ deadline: Int64) {
        lock.withLock {
            guard isWatching, !changedSince.contains(name) else { return }
            if deadlines.count < deadlinesMax { deadlines.set(name, deadline) } else { noteFull() }
        }
    }

    /// Reports once that there are more deadlines than can be watched. The caller holds `lock`.
    private func noteFull() {
        guard let tooMany else { return }
        self.tooMany = nil
        tooMany(deadlinesMax)
    }

    /// Sets a function that is called once, when too many deadlines are watched, so that an expiry cannot be reported.
    /// The function gets the maximum number of deadlines. It must return quickly, and must not call this object.
    func onTooManyDeadlines(_ body: @escaping @Sendable (Int) -> Void) { lock.withLock { tooMany = body } }

    // MARK: Events

    package func take(_ changes: [EntryChange]) {
        if let change = changes.first, !change.isOfOneEntry { return take(wide: change) }
        lock.withLock {
            var isAnnounced = false
            for (index, change) in changes.enumerated() {
                // As in Redis, when an entry is moved, the new entry is reported before the removal of the old one.
                let arrival = index + 1 < changes.count ? changes[index + 1] : nil
                let announces = arrival.map { isMove(from: change, to: $0) } ?? false
                if announces, let arrival, events.isActive { publish(.new, "new", arrival) }
                notify(change, isAnnounced: isAnnounced)
                isAnnounced = announces
            }
        }
        tracking.invalidate(changes)
    }

    private func isMove(from departure: EntryChange, to arrival: EntryChange) -> Bool {
        guard departure.origin == arrival.origin, case .removed = departure.kind, case .stored = arrival.kind else {
            return false
        }
        return WriteTag(rawValue: departure.origin.tag)?.moves ?? false
    }

    /// Publishes the events of an entry's change. The caller holds `lock`.
    /// - Parameter isAnnounced: whether the event for a new entry was already published.
    private func notify(_ change: EntryChange, isAnnounced: Bool) {
        switch change.kind {
        case .fetchEnded, .outdated: return
        default: break
        }
        let old = isWatching ? watch(change) : nil
        guard events.isActive else { return }
        let tag = WriteTag(rawValue: change.origin.tag) ?? .other
        let isNew = !isAnnounced && (change.previous == .absent || tag.replaces)
        switch change.kind {
        case .stored(let header):
            if let old, old <= header.storedAt, !isFresh(change.previous) { publish(.expired, "expired", change) }
            if isNew { publish(.new, "new", change) }
            for event in tag.stored(header) { publish(event.kind, event.name, change) }
        case .removed:
            if change.previous == .absent, let old, old <= engine.now() { publish(.expired, "expired", change) }
            guard tag == .set || change.previous != .absent else { return }
            if tag == .set, isNew { publish(.new, "new", change) }
            for event in tag.removed { publish(event.kind, event.name, change) }
        case .evicted: publish(.evicted, "evicted", change)
        case .swept(let header, let deadline):
            // If an own deadline is not watched (`old` is nil), its expiry was already published, or there were too
            // many deadlines. Deadlines by policy (governed) are never watched: ignore those before the daemon's start.
            guard header.rule == .governed ? deadline > startedAt : old != nil else { return }
            if engine.isExpiryHeld {
                // During CLIENT PAUSE, a checkpoint may remove the entry, but the event must wait: watch the deadline.
                deadlines.set(EntryName(change.database, change.key), deadline)
            } else {
                publish(.expired, "expired", change)
            }
        default: break
        }
    }

    private func isFresh(_ previous: EntryChange.Previous) -> Bool {
        if case .fresh = previous { true } else { false }
    }

    /// Records the deadline of a changed entry. The caller holds `lock`.
    /// - Returns: the entry's previous deadline; nil if none was recorded.
    private func watch(_ change: EntryChange) -> Int64? {
        let name = EntryName(change.database, change.key)
        let old = deadlines.deadline(name)
        if case .stored(let header) = change.kind, case .own(let deadline) = header.rule {
            if old != nil || deadlines.count < deadlinesMax { deadlines.set(name, deadline) } else { noteFull() }
        } else {
            deadlines.set(name, nil)
        }
        if scans > 0 { changedSince.insert(name) }
        return old
    }

    /// Notifies tracking clients of a change of a whole database.
    private func take(wide change: EntryChange) {
        let database = change.database
        var isNotifiedLater = false
        switch change.kind {
        case .purged, .emptied, .replaced:
            isNotifiedLater = lock.withLock {
                deadlines.removeAll { $0.database === database }
                return flushing[ObjectIdentifier(database)] != nil
            }
        case .purgedTags, .policyChanged, .allOutdated: break
        default: return
        }
        if !isNotifiedLater { tracking.invalidateAll(in: [database.name]) }
    }

    /// Runs `body`, which purges databases. After that, tracking clients get one invalidation instead of one per
    /// database.
    /// - Parameter isForAll: whether all tracking clients get the invalidation, as in Redis; if not, only clients that
    ///   have used one of the databases get it.
    func notifyOnce<Result, Failure: Error>(
        of databases: [Database], isForAll: Bool = false, _ body: () throws(Failure) -> Result
    ) throws(Failure) -> Result {
        lock.withLock { for database in databases { flushing[ObjectIdentifier(database), default: 0] += 1 } }
        defer {
            lock.withLock {
                for database in databases {
                    let count = flushing[ObjectIdentifier(database)] ?? 1
                    flushing[ObjectIdentifier(database)] = count > 1 ? count - 1 : nil
                }
            }
            tracking.invalidateAll(in: isForAll ? nil : databases.map(\.name))
        }
        return try body()
    }

    // MARK: Time

    /// Publishes the events of entries whose deadlines have passed. Called often, so it must return quickly.
    func tick() {
        guard engine.changes.isOn, !hasBackgroundWork.exchange(true, ordering: .acquiringAndReleasing) else { return }
        let background = lock.withLock { self.background }
        background { [self] in
            expire()
            hasBackgroundWork.store(false, ordering: .releasing)
        }
    }

    /// Publishes an event for each entry whose deadline has passed, and notifies tracking clients.
    func expire() {
        let now = engine.now()
        // During CLIENT PAUSE, nothing expires: wait for the end of the pause.
        var hasMore = !engine.isExpiryHeld
        while hasMore {
            // Release the lock after each slice, so that commits are not delayed for long.
            let expired = lock.withLock { () -> [EntryName] in
                var expired: [EntryName] = []
                while expired.count < Self.slice, let name = deadlines.popDue(now: now) {
                    if scans > 0 { changedSince.insert(name) }
                    publish(.expired, "expired", name.database, name.key)
                    expired.append(name)
                }
                return expired
            }
            for name in expired { tracking.invalidate([name.key], in: name.database.name) }
            hasMore = expired.count == Self.slice
        }
        tracking.expire(now: now)
    }

    // MARK: Publishing

    private func publish(_ kind: KeyspaceEvents, _ event: String, _ change: EntryChange) {
        publish(kind, event, change.database, change.key)
    }

    private func publish(_ kind: KeyspaceEvents, _ event: String, _ database: any DatabaseIdentity, _ key: [UInt8]) {
        guard events.contains(kind) else { return }
        if events.contains(.keyspace) {
            let channel = Array("__keyspace@\(database.name)__:".utf8) + key
            _ = pubsub.publish(Publication(channel: channel, payload: Array(event.utf8)))
        }
        if events.contains(.keyevent) {
            let channel = Array("__keyevent@\(database.name)__:\(event)".utf8)
            _ = pubsub.publish(Publication(channel: channel, payload: key))
        }
    }
}
