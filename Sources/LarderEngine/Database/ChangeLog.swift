import Platform

/// Where a change stands among all changes of a database: the commit unit, and how many of its changes came before.
package struct ChangePlace: Hashable, Comparable, Sendable {
    package var sequence: UInt64
    package var step: Int

    package init(_ sequence: UInt64, _ step: Int = 0) {
        self.sequence = sequence
        self.step = step
    }

    package static func < (left: ChangePlace, right: ChangePlace) -> Bool {
        (left.sequence, left.step) < (right.sequence, right.step)
    }
}

/// A change that a ``ChangeLog`` remembers.
package struct LoggedChange: Sendable {
    package enum Kind: Sendable {
        /// A key has another entry than before, or none.
        case key([UInt8])
        /// The database was emptied.
        case purge
        /// The entries with some of these tags are gone, or stale.
        case purgeTags([[UInt8]])
    }

    package let place: ChangePlace
    package let kind: Kind
    package let version: ChangeVersion
}

/// The latest changes of databases that somebody follows, in memory: which keys, in which order; not their values. Of
/// several changes of a key it remembers the last one.
///
/// Begins with the first follower of a database; until then a write costs nothing. Its memory is bounded: of the database
/// with the most changes the oldest ones are forgotten, and who has not read them begins with a full pass. Nothing waits
/// for a follower.
///
/// Thread-safe. The proof for `@unchecked Sendable`: the state below "guarded" is read and written with the lock held,
/// and no other lock is taken meanwhile.
package final class ChangeLog: ChangeObserver, @unchecked Sendable {
    /// What is left of a feed for somebody who has read up to a place.
    package enum Found: Sendable {
        /// The next changes; empty at the end. The place behind them, and whether there are more.
        case changes([LoggedChange], upTo: ChangePlace, hasMore: Bool)
        /// The place is of another feed: of another database, another larder, or from before a restart.
        case otherFeed
        /// The changes behind the place are forgotten.
        case forgotten
    }

    private let feed: ChangeFeed
    private let now: @Sendable () -> Int64
    /// For keys and their places.
    let bytesMax: Int
    private let lock = Lock()
    // Guarded:
    private var logs: [ObjectIdentifier: DatabaseChanges] = [:]
    private var bytes = 0
    private var waiters: [ObjectIdentifier: [FeedWaiter]] = [:]

    init(feed: ChangeFeed, bytesMax: Int, now: @escaping @Sendable () -> Int64) {
        self.feed = feed
        self.bytesMax = bytesMax
        self.now = now
    }

    /// Called with the lock held.
    private func log(of database: any DatabaseIdentity) -> DatabaseChanges? {
        guard let log = logs[ObjectIdentifier(database)], log.isOf(database) else { return nil }
        return log
    }

    // MARK: Reading

    /// Begins to remember a database's changes, if it does not yet.
    /// - Parameter sequence: everything up to it is committed.
    /// - Returns: the feed, and its end at this moment.
    func begin(_ database: any DatabaseIdentity, behind sequence: UInt64) -> (feed: UInt64, end: ChangePlace) {
        if let present = end(of: database) { return present }
        // Before it counts as followed: what is noted in vain meanwhile, whoever reads the entries now finds.
        feed.turn(on: true, for: self)
        return lock.withLock {
            if let found = log(of: database) { return (found.feed, found.last) }
            let id = ObjectIdentifier(database)
            if let stale = logs[id] { bytes -= stale.bytes }
            let log = DatabaseChanges(database, at: ChangePlace(sequence))
            logs[id] = log
            return (log.feed, log.last)
        }
    }

    /// The feed of a database, and its end at this moment; nil if nobody has followed it.
    package func end(of database: any DatabaseIdentity) -> (feed: UInt64, end: ChangePlace)? {
        lock.withLock { log(of: database).map { ($0.feed, $0.last) } }
    }

    /// The changes behind a place.
    /// - Parameters:
    ///   - feed: nil for the present one, whatever it is.
    ///   - prefix: others are passed over.
    ///   - count: how many at most.
    package func changes(
        of database: any DatabaseIdentity, feed: UInt64?, behind place: ChangePlace, prefix: [UInt8], count: Int
    ) -> Found {
        lock.withLock {
            guard let log = log(of: database), feed == nil || feed == log.feed, place <= log.last else {
                return .otherFeed
            }
            guard place >= log.forgotten else { return .forgotten }
            return log.changes(behind: place, prefix: prefix, count: count)
        }
    }

    /// The last change of a key that is remembered.
    func change(of key: [UInt8], in database: any DatabaseIdentity) -> LoggedChange? {
        lock.withLock { log(of: database)?.change(of: key) }
    }

    /// The version of what was last done to a key, as far as it is remembered: a change of the key, or a purge of
    /// everything. Nil if nothing is known.
    func version(of key: [UInt8], in database: any DatabaseIdentity) -> ChangeVersion? {
        lock.withLock {
            guard let log = log(of: database) else { return nil }
            let own = log.change(of: key)?.version
            return log.purgeVersion.map { max($0, own ?? $0) } ?? own
        }
    }

    /// Everything of a database that was changed up to a version was purged in another larder, and here.
    func noteForeignPurge(_ version: ChangeVersion, in database: any DatabaseIdentity) {
        lock.withLock { log(of: database)?.noteForeignPurge(version) }
    }

    /// Whether changes of a database are remembered, because somebody follows it.
    package func isFollowed(_ database: any DatabaseIdentity) -> Bool {
        lock.withLock { log(of: database) != nil }
    }

    /// For INFO: how many changes are remembered, and the bytes that they take.
    package var figures: (databases: Int, changes: Int, bytes: Int) {
        lock.withLock { (logs.count, logs.values.reduce(0) { $0 + $1.count }, bytes) }
    }

    // MARK: Waiting

    /// Has `waiter` woken once when there is a change behind a place that concerns it.
    /// - Returns: false if there is one already, or the feed is another one: then it is not woken.
    package func wait(_ waiter: FeedWaiter, in database: any DatabaseIdentity, feed: UInt64, behind place: ChangePlace)
        -> Bool
    {
        lock.withLock {
            let id = ObjectIdentifier(database)
            guard let log = logs[id], log.feed == feed, place >= log.forgotten, place <= log.last,
                case .changes(let found, _, false) = log.changes(behind: place, prefix: waiter.prefix, count: 1),
                found.isEmpty
            else { return false }
            waiters[id, default: []].append(waiter)
            return true
        }
    }

    /// Stops to wait. Idempotent.
    package func stopWaiting(_ waiter: FeedWaiter, in database: any DatabaseIdentity) {
        lock.withLock {
            let id = ObjectIdentifier(database)
            waiters[id]?.removeAll { $0 === waiter }
            if waiters[id]?.isEmpty ?? false { waiters[id] = nil }
        }
    }

    /// Takes those who wait for a change. Called with the lock held.
    /// - Parameter keys: nil if the change concerns all.
    private func takeWaiters(_ id: ObjectIdentifier, _ keys: [[UInt8]]?) -> [FeedWaiter] {
        guard let all = waiters[id] else { return [] }
        var woken: [FeedWaiter] = []
        let rest = all.filter { waiter in
            let isMeant = keys.map { keys in keys.contains { $0.starts(with: waiter.prefix) } } ?? true
            if isMeant { woken.append(waiter) }
            return !isMeant
        }
        waiters[id] = rest.isEmpty ? nil : rest
        return woken
    }

    // MARK: What commits

    package func changed(_ changes: [EntryChange]) {
        let woken = lock.withLock { () -> [FeedWaiter] in
            var concerned: [ObjectIdentifier: [[UInt8]]] = [:]
            for change in changes {
                let id = ObjectIdentifier(change.database)
                guard let log = logs[id] else { continue }
                switch change.kind {
                case .stored, .removed: break
                // The same entry expires with its followers.
                case .swept, .evicted: continue
                }
                bytes += log.add(key: change.key, sequence: change.sequence, version(change))
                if waiters[id] != nil { concerned[id, default: []].append(change.key) }
            }
            forgetOldest()
            return concerned.flatMap { takeWaiters($0.key, $0.value) }
        }
        for waiter in woken { waiter.wake() }
    }

    private func version(_ change: EntryChange) -> ChangeVersion {
        var version = change.origin.version
        if version.time == 0 {
            if case .stored(let header) = change.kind { version.time = header.storedAt } else { version.time = now() }
        }
        if version.sequence == 0 { version.sequence = change.sequence }
        return version
    }

    /// Called with the lock held.
    private func forgetOldest() {
        while bytes > bytesMax, let largest = logs.values.max(by: { $0.bytes < $1.bytes }), largest.count > 0 {
            bytes -= largest.forget(atLeast: bytes - bytesMax + bytesMax / 16)
        }
    }

    package func purged(_ database: any DatabaseIdentity) {
        let time = now()
        change(database) { $0.purge(ChangeVersion(time: time, sequence: $0.last.sequence + 1)) }
    }

    package func emptied(_ database: any DatabaseIdentity) {
        // What a purge has emptied goes on with the same feed.
        change(database) { if !$0.takePurge() { $0.beginAnew() } }
    }

    package func replaced(_ database: any DatabaseIdentity) { change(database) { $0.beginAnew() } }

    package func deleted(_ database: any DatabaseIdentity) {
        let woken = lock.withLock { () -> [FeedWaiter] in
            let id = ObjectIdentifier(database)
            if let log = logs.removeValue(forKey: id) { bytes -= log.bytes }
            return takeWaiters(id, nil)
        }
        for waiter in woken { waiter.wake() }
    }

    package func purged(tags: [[UInt8]], in database: any DatabaseIdentity) {
        let time = now()
        change(database) { $0.purge(tags: tags, ChangeVersion(time: time, sequence: $0.last.sequence + 1)) }
    }

    package func fetchAgain(_ key: [UInt8], in database: any DatabaseIdentity) {}
    package func policyChanged(_ database: any DatabaseIdentity) {}
    package func purgesChanged(_ database: any DatabaseIdentity) {}

    private func change(_ database: any DatabaseIdentity, _ body: (DatabaseChanges) -> Void) {
        let woken = lock.withLock { () -> [FeedWaiter] in
            let id = ObjectIdentifier(database)
            guard let log = logs[id] else { return [] }
            let before = log.bytes
            body(log)
            bytes += log.bytes - before
            return takeWaiters(id, nil)
        }
        for waiter in woken { waiter.wake() }
    }
}

/// Somebody who waits for changes of a database.
package final class FeedWaiter: Sendable {
    let prefix: [UInt8]
    let wake: @Sendable () -> Void

    /// - Parameter wake: called once, by any thread, possibly with locks held: it must be short, and must not call the
    ///   engine.
    package init(prefix: [UInt8], wake: @escaping @Sendable () -> Void) {
        self.prefix = prefix
        self.wake = wake
    }
}
