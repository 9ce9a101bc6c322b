import LarderPlatform
import Synchronization

/// The entries that an observer observes.
package enum ObservedKeys: Sendable {
    case key([UInt8])
    /// All keys with this prefix; all keys if it is empty.
    case prefix([UInt8])
}

/// Passes the changes of some entries to observers: the stream of changes with a filter, and with expiries in place of
/// sweeps. An observer gets one change per call, the changes of a key in the order of their commits. After that, reads
/// return the state after the change, or a newer one.
///
/// - Without observers, this object does not subscribe to the stream, and costs nothing.
/// - If the deadline of an entry is known, its expiry is reported by the next round of maintenance after the deadline.
///   A deadline is known if the entry was stored while it was observed, or if its key was passed to ``add(_:_:in:)`` or
///   ``watch(_:in:)``. At most ``namesMax`` deadlines are known. Other expiries are reported when the sweep removes the
///   entry from LevelDB.
/// - Before an expiry is reported, the entry is read again. If it was stored again, or has another deadline now,
///   nothing is reported.
///
/// Thread-safe. `@unchecked Sendable`: `lock` guards the properties below "Guarded". Observers are called with the lock
/// held, so that they receive the changes of a key in order.
package final class Observation: ChangeSubscriber, @unchecked Sendable {
    /// The maximum number of deadlines that are watched, and of keys that wait to be checked.
    static let namesMax = 65_536
    private static let slice = 256

    /// The reason why an entry is checked.
    private enum Reason {
        /// A watched deadline has passed, or may have changed.
        case due
        /// The sweep has found the entry expired.
        case swept
        /// The entry's deadline is unknown, and its observation began at `since`. An earlier expiry is not reported.
        case asked(since: Int64)
    }

    private let context: EngineContext
    private let hasObservers = Atomic<Bool>(false)
    private let lock = Lock()
    // Guarded by `lock`:
    private var table = ObserverTable()
    private var deadlines = DeadlineWatch<EntryName>()
    private var waiting = Deque<(name: EntryName, reason: Reason)>()
    /// The keys to watch whose databases are known only by name. `since`: when the observation of the key began.
    private var asked: [(database: String, key: [UInt8], since: Int64)] = []
    /// The entries that are being checked, without those that have changed since the check began.
    private var examined: Set<EntryName> = []
    /// The entries whose expiry was reported and whose space has not been freed yet.
    private var notified: Set<EntryName> = []

    init(_ context: EngineContext) { self.context = context }

    // MARK: Observing

    /// Begins to notify an observer of all changes that are made after the call, and possibly of changes in progress.
    /// Does not block.
    /// - Parameter database: nil for all databases. Nil is only allowed with a prefix.
    package func add(_ observer: any ChangeSubscriber, _ keys: ObservedKeys, in database: Database?) {
        lock.withLock {
            table.add(observer, keys, in: database)
            if case .key(let key) = keys, let database, waiting.count < Self.namesMax {
                waiting.append((EntryName(database, key), .asked(since: context.time.unnoticed())))
            }
            hasObservers.store(true, ordering: .relaxed)
            context.changes.subscribe(self)
        }
    }

    /// Watches the deadline of an entry that may have been stored before its observation began.
    ///
    /// A transaction may call this while it holds the locks of shards. So the database is found by the next round of
    /// maintenance: the lock of the table of databases must not be taken now.
    /// - Parameter database: the name of a database, which need not exist.
    package func watch(_ key: [UInt8], in database: String) {
        lock.withLock {
            guard asked.count < Self.namesMax else { return }
            asked.append((database, key, context.time.unnoticed()))
        }
    }

    /// Stops notifying an observer. The observer may still be called until this function returns. Idempotent.
    package func remove(_ observer: any ChangeSubscriber) {
        lock.withLock {
            table.remove(observer)
            guard table.isEmpty else { return }
            context.changes.unsubscribe(self)
            hasObservers.store(false, ordering: .relaxed)
            deadlines.removeAll()
            (waiting, asked, examined, notified) = (Deque(), [], [], [])
        }
    }

    // MARK: Commits

    package func take(_ changes: [EntryChange]) {
        lock.withLock {
            for change in changes {
                guard change.isOfOneEntry else {
                    take(wide: change)
                    continue
                }
                let name = EntryName(change.database, change.key)
                let observers = table.observers(of: name)
                if !observers.isEmpty, let change = take(change, name) { pass(change, to: observers) }
            }
        }
    }

    private func pass(_ change: EntryChange, to observers: [any ChangeSubscriber]) {
        let changes = [change]
        for observer in observers { observer.take(changes) }
    }

    private func expired(_ name: EntryName) -> EntryChange {
        EntryChange(database: name.database, key: name.key, kind: .expired)
    }

    /// Records a change of an observed entry. Called with `lock` held.
    /// - Returns: the change to report immediately; nil if there is none.
    private func take(_ change: EntryChange, _ name: EntryName) -> EntryChange? {
        switch change.kind {
        case .stored:
            examined.remove(name)
            notified.remove(name)
            watch(name, change.deadline)
            return change
        case .removed:
            let wasWatched = deadlines.deadline(name) != nil
            let wasNotified = notified.remove(name) != nil
            examined.remove(name)
            deadlines.set(name, nil)
            if change.previous != .absent { return change }
            return !wasNotified && (wasWatched || change.removesExpired) ? expired(name) : nil
        case .evicted:
            examined.remove(name)
            notified.remove(name)
            deadlines.set(name, nil)
            return change
        case .swept(let header, _):
            // Do not report entries whose tags were purged, because the purge itself was reported.
            if notified.remove(name) == nil, header.tagsEnd == .max { wait(name, .swept) }
            return nil
        case .outdated: return change
        default: return nil
        }
    }

    private func watch(_ name: EntryName, _ deadline: Int64?) {
        if deadlines.deadline(name) == nil, deadlines.count >= Self.namesMax { return }
        deadlines.set(name, deadline)
    }

    private func wait(_ name: EntryName, _ reason: Reason) {
        if waiting.count < Self.namesMax { return waiting.append((name, reason)) }
        waiting.removeAll { if case .swept = $0.reason { $0.name.database === name.database } else { false } }
        notifyAll(EntryChange(database: name.database, kind: .replaced))
    }

    private func notifyAll(_ change: EntryChange) { pass(change, to: table.observers(of: change.database)) }

    // MARK: Changes of a database

    /// Called with `lock` held.
    private func take(wide change: EntryChange) {
        let database = change.database
        switch change.kind {
        case .policyChanged:
            for name in deadlines.keys where name.database === database { waiting.append((name, .due)) }
            return
        case .purged, .emptied, .deleted:
            deadlines.removeAll { $0.database === database }
            waiting.removeAll { $0.name.database === database }
            examined = examined.filter { $0.database !== database }
            notified = notified.filter { $0.database !== database }
        default: break
        }
        notifyAll(change)
    }

    // MARK: Expiry

    /// Reports the entries that have expired by now. May block. Only one thread at a time may call it.
    /// - Parameter find: returns the database with a name; nil if there is none.
    func notifyExpired(_ find: (String) -> Database?) {
        guard hasObservers.load(ordering: .relaxed) else { return }
        let asked = lock.withLock { exchange(&self.asked, with: []) }
        let found = asked.compactMap { (database, key, since) in
            find(database).map { (EntryName($0, key), Reason.asked(since: since)) }
        }
        lock.withLock { for one in found where waiting.count < Self.namesMax { waiting.append(one) } }
        while true {
            let due = takeDue()
            for (name, reason) in due { examine(name, reason) }
            if due.count < Self.slice { return }
        }
    }

    private func takeDue() -> [(name: EntryName, reason: Reason)] {
        let now = context.time.unnoticed()
        return lock.withLock {
            var due: [(name: EntryName, reason: Reason)] = []
            while due.count < Self.slice, let next = waiting.popFirst() { due.append(next) }
            while due.count < Self.slice, let name = deadlines.popDue(now: now) { due.append((name, .due)) }
            examined = Set(due.map(\.name))
            return due
        }
    }

    private func examine(_ name: EntryName, _ reason: Reason) {
        guard let life = (name.database as? Database)?.life(of: name.key) else { return }
        lock.withLock {
            // If the entry has changed during the check, that change was reported, so the result of the check is
            // outdated.
            guard examined.contains(name) else { return }
            switch life {
            case .fresh(let deadline): watch(name, deadline)
            case .purged, .unknown: deadlines.set(name, nil)
            case .absent: if case .asked = reason {} else { notifyExpired(name, reason) }
            case .expired(let deadline):
                if case .asked(let since) = reason, deadline <= since { return }
                notifyExpired(name, reason)
            }
        }
    }

    /// Called with `lock` held.
    private func notifyExpired(_ name: EntryName, _ reason: Reason) {
        deadlines.set(name, nil)
        if case .swept = reason {
            // Report nothing if the expiry was reported before the sweep found the entry.
            if notified.remove(name) != nil { return }
        } else {
            if notified.count >= Self.namesMax { notified = [] }
            if !notified.insert(name).inserted { return }
        }
        pass(expired(name), to: table.observers(of: name))
    }
}

extension Database {
    /// The state of a key's entry.
    fileprivate enum Life {
        case fresh(deadline: Int64?)
        case expired(deadline: Int64)
        /// One of the entry's tags was purged.
        case purged
        case absent
        /// The entry cannot be read.
        case unknown
    }

    fileprivate func life(of key: [UInt8]) -> Life {
        var life = Life.unknown
        let key = key.withUnsafeBytes { Key($0) }
        _ = try? perform([key], .anyHeaders, .mayBlock, now: unnoticedNow(), fillCache: false) { update in
            guard let header = update.storedHeader(0) else {
                if !update.isUnreadable(0) { life = .absent }
                return
            }
            let deadline = update.rules.deadline(header)
            if update.rules.freshness(header, now: update.now) == .fresh {
                life = .fresh(deadline: deadline)
            } else {
                life = header.tagsEnd == .max ? .expired(deadline: deadline ?? 0) : .purged
            }
        }
        return life
    }
}

/// The observers, and the keys or prefixes that they observe. A value; the owner's lock guards it.
struct ObserverTable {
    private struct Wide {
        /// The observed database; nil for all databases.
        let database: (any DatabaseIdentity)?
        let prefix: [UInt8]
        let observer: any ChangeSubscriber
    }

    private var exact: [EntryName: [any ChangeSubscriber]] = [:]
    private var wide: [Wide] = []

    var isEmpty: Bool { exact.isEmpty && wide.isEmpty }

    /// - Parameter database: nil for all databases. Nil is only allowed with a prefix.
    mutating func add(_ observer: any ChangeSubscriber, _ keys: ObservedKeys, in database: Database?) {
        switch (keys, database) {
        case (.key(let key), let database?): exact[EntryName(database, key), default: []].append(observer)
        case (.key(let key), nil): wide.append(Wide(database: nil, prefix: key, observer: observer))
        case (.prefix(let prefix), _): wide.append(Wide(database: database, prefix: prefix, observer: observer))
        }
    }

    mutating func remove(_ observer: any ChangeSubscriber) {
        wide.removeAll { $0.observer === observer }
        for (name, observers) in exact where observers.contains(where: { $0 === observer }) {
            let rest = observers.filter { $0 !== observer }
            exact[name] = rest.isEmpty ? nil : rest
        }
    }

    func observers(of name: EntryName) -> [any ChangeSubscriber] {
        var found = exact[name] ?? []
        for one in wide where one.database == nil || one.database === name.database {
            if name.key.starts(with: one.prefix) { found.append(one.observer) }
        }
        return found
    }

    func observers(of database: any DatabaseIdentity) -> [any ChangeSubscriber] {
        wide.filter { $0.database == nil || $0.database === database }.map(\.observer)
            + exact.filter { $0.key.database === database }.flatMap(\.value)
    }
}
