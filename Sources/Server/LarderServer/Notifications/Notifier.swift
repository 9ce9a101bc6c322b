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
    private let deadlineBytesMax: Int
    private let startedAt: Int64
    private let loop = BackgroundLoop()
    /// Held during a round of the loop.
    private let roundLock = Lock()
    private let lock = Lock()
    // Guarded by `lock`:
    private var events: KeyspaceEvents = []
    /// The entries that expire next, of those that do not follow the policy. Nil unless expiries are published or BCAST
    /// is used.
    private var watch: ExpiryWatch?
    /// For each database, the number of callers that are purging the database, and will report the purge themselves.
    private var flushing: [ObjectIdentifier: Int] = [:]

    private static let slice = 256
    /// The longest pause between two rounds, in milliseconds: while entries expire, while only tracking clients need
    /// rounds, and while nobody does.
    private static let (pauseMax, pauseOfTracking, pauseOfNobody): (Int64, Int64, Int64) = (50, 100, 3_600_000)
    /// How long a round that scans entries takes, and how long the pause after it is, in milliseconds.
    private static let scanMilliseconds: Int64 = 20

    init(engine: Engine, pubsub: PubSub, tracking: Tracking, deadlineBytesMax: Int) {
        self.engine = engine
        self.pubsub = pubsub
        self.tracking = tracking
        self.deadlineBytesMax = deadlineBytesMax
        startedAt = engine.now()
        tracking.onClientsChanged { [weak self] in self?.wishesChanged() }
    }

    /// Starts the thread that reports expiries in time.
    func start() { loop.start("larder-expire") { [self] in round(for: Self.scanMilliseconds) } }

    func stop() { loop.stop() }

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
        lock.withLock {
            if events.isActive || tracking.hasClients {
                engine.changes.subscribe(self)
            } else {
                engine.changes.unsubscribe(self)
            }
            previousIsNeeded.store(events.isActive && events.contains(.new), ordering: .relaxed)
            if !(events.isActive && events.contains(.expired) || tracking.hasBroadcast) {
                watch = nil
                engine.keepExpired(from: .max)
            } else if watch == nil {
                let now = engine.now()
                watch = ExpiryWatch(now: now, bytesMax: deadlineBytesMax)
                engine.keepExpired(from: now + 1)
            }
        }
        loop.wake()
    }

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
        let isLater = if case .swept(let header, _) = change.kind { watch?.isLater(header) ?? false } else { false }
        let old = watch?.record(change)
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
            // An entry with an own deadline is kept until its expiry was published, so this one had to go for another
            // reason: one of its tags was purged. Ignore deadlines by policy (governed) before the daemon's start.
            guard header.rule == .governed ? deadline > startedAt : old != nil || isLater else { return }
            publish(.expired, "expired", change)
        default: break
        }
    }

    private func isFresh(_ previous: EntryChange.Previous) -> Bool {
        if case .fresh = previous { true } else { false }
    }

    /// Notifies tracking clients of a change of a whole database.
    private func take(wide change: EntryChange) {
        let database = change.database
        var isNotifiedLater = false
        switch change.kind {
        case .purged, .emptied, .replaced:
            isNotifiedLater = lock.withLock {
                watch?.removeAll(of: database)
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

    /// Publishes an event for each entry whose deadline has passed, and notifies tracking clients.
    func expire() { _ = round(for: .max) }

    /// Publishes the events of entries whose deadlines have passed, and scans entries for later deadlines.
    /// - Parameter milliseconds: how long scans that are not urgent may take.
    /// - Returns: the pause before the next round, in milliseconds.
    private func round(for milliseconds: Int64) -> Int64 {
        roundLock.withLock {
            guard engine.changes.isOn else { return Self.pauseOfNobody }
            let end = engine.monotonic().addingReportingOverflow(milliseconds)
            // During CLIENT PAUSE, nothing expires: wait for the end of the pause.
            while !engine.isExpiryHeld {
                publishDue()
                var hasMore = false
                for kind in DeadlineScan.Kind.allCases where scanSlice(kind) { hasMore = true }
                let isUrgent = lock.withLock { watch?.isUrgent ?? false }
                guard hasMore, isUrgent || end.overflow || engine.monotonic() < end.partialValue else { break }
            }
            let now = engine.now()
            tracking.expire(now: now)
            return lock.withLock {
                guard let watch else { return Self.pauseOfTracking }
                guard !engine.isExpiryHeld else { return Self.pauseMax }
                let pause = max(1, min(Self.pauseMax, (watch.nearest ?? .max) - now))
                return watch.isScanning ? min(pause, Self.scanMilliseconds) : pause
            }
        }
    }

    private func publishDue() {
        let now = engine.now()
        var hasMore = true
        while hasMore {
            // Release the lock after each slice, so that commits are not delayed for long.
            let expired = lock.withLock { () -> [EntryName] in
                var expired: [EntryName] = []
                while expired.count < Self.slice, let name = watch?.popDue(now: now) { expired.append(name) }
                publishExpired(expired)
                if expired.count < Self.slice, let watch { engine.keepExpired(from: watch.reportedUntil(now: now)) }
                return expired
            }
            for name in expired { tracking.invalidate([name.key], in: name.database.name) }
            hasMore = expired.count == Self.slice
        }
    }

    /// Reads one slice of a scan, if one is due.
    /// - Returns: false if no scan is due.
    private func scanSlice(_ kind: DeadlineScan.Kind) -> Bool {
        let now = engine.now()
        let begun = lock.withLock { watch.flatMap { watch in watch.beginSlice(kind, now: now).map { (watch, $0) } } }
        guard case (let watch, var pass)? = begun else { return false }
        let slice = pass.next(engine)
        let expired = lock.withLock { () -> [EntryName] in
            // Ignore a scan of before events were turned off.
            guard watch === self.watch else { return [] }
            let expired = watch.endSlice(pass, slice)
            publishExpired(expired)
            return expired
        }
        for name in expired { tracking.invalidate([name.key], in: name.database.name) }
        return true
    }

    /// The caller holds `lock`.
    private func publishExpired(_ names: [EntryName]) {
        for name in names { publish(.expired, "expired", name.database, name.key) }
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
