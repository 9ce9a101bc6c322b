import LarderEngine
import LarderPlatform
import Synchronization

/// A connection that is notified when keys that it has read change.
///
/// A connection keeps this object when it changes its tracking settings, so that keys read before are still tracked.
///
/// `@unchecked Sendable`: ``settings`` and ``databases`` are guarded by `lock`, `isTracking` is atomic, and the rest is
/// constant.
final class TrackingClient: @unchecked Sendable {
    enum Mode: Sendable {
        /// All keys that the client reads.
        case read
        /// The keys read by the command after CLIENT CACHING YES.
        case optIn
        /// All keys except those read by the command after CLIENT CACHING NO.
        case optOut
        /// All keys with one of these prefixes, read or not.
        case broadcast([[UInt8]])
    }

    let subscriber: Subscriber
    /// Whether the client may receive the events of the database with this name.
    let hears: @Sendable (String) -> Bool
    private let isTracking = Atomic<Bool>(true)
    private let lock = Lock()
    private var settings: TrackingSettings
    /// The databases that the client has selected; it cannot have read keys of other databases.
    private var databases: Set<String>

    /// - Parameter database: the currently selected one.
    init(
        _ subscriber: Subscriber, _ settings: TrackingSettings, database: String,
        hears: @escaping @Sendable (String) -> Bool
    ) {
        databases = [database]
        self.settings = settings
        self.subscriber = subscriber
        self.hears = hears
    }

    private var now: TrackingSettings { lock.withLock { settings } }
    var mode: Mode { now.mode }
    var redirect: Int64 { now.redirect }
    var isNoLoop: Bool { now.isNoLoop }

    var isActive: Bool { isTracking.load(ordering: .relaxed) }
    func end() { isTracking.store(false, ordering: .relaxed) }

    /// Called when the client selects a database.
    func visit(_ database: String) { lock.withLock { _ = databases.insert(database) } }

    /// Takes over the settings of another client object of the same connection. No other thread may use that object.
    func take(_ other: TrackingClient) {
        let (settings, databases) = (other.settings, other.databases)
        lock.withLock {
            self.settings = settings
            self.databases.formUnion(databases)
        }
    }

    /// Whether the client is notified when a whole database may have changed; with ``Mode/broadcast(_:)``, also when
    /// keys of the database change.
    func isConcerned(by database: String) -> Bool {
        let settings = now
        if case .broadcast = settings.mode { return settings.onlyDatabase.map { $0 == database } ?? true }
        return hears(database) && lock.withLock { databases.contains(database) }
    }

    var prefixes: [[UInt8]] {
        if case .broadcast(let prefixes) = mode { return prefixes }
        return []
    }

    var isBroadcast: Bool {
        if case .broadcast = mode { true } else { false }
    }
}

/// The settings of CLIENT TRACKING ON.
struct TrackingSettings: Sendable {
    var mode = TrackingClient.Mode.read
    /// The ID of the connection to which invalidations are redirected; 0 for none.
    var redirect: Int64 = 0
    /// Whether the client is not notified of its own changes.
    var isNoLoop = false
    /// The only database whose changes are reported, with ``TrackingClient/Mode/broadcast(_:)``; nil for all.
    var onlyDatabase: String?
}

/// Tracks which client has read which keys, and notifies it when they change: CLIENT TRACKING.
///
/// - A key is recorded *before* it is read, and reported when a later change is committed. So a client that reads again
///   after a report gets the reported change or a newer one.
/// - The table is bounded: a key that is evicted from it is reported as changed.
/// - Keys of all databases share one table, as in Redis. Changes of a whole database are reported to the clients that
///   have selected it.
///
/// `@unchecked Sendable`: the parts are guarded by their locks, the rest by `lock`.
final class Tracking: @unchecked Sendable {
    /// A client that has read a key.
    private struct Reader {
        let client: TrackingClient
        /// The last commit unit of the client before it read the key, or before it was last notified of a change of the
        /// key. The value that it has read includes its own changes up to this unit.
        var ownUnit: UInt64

        func isClient(_ other: TrackingClient) -> Bool { client === other }
    }

    /// A reader whose latest command may have changed the key since the client last read it.
    private struct Writer {
        let client: TrackingClient
        /// The last commit unit of the client before that command, whose own unit is later.
        let previousUnit: UInt64
    }

    private final class Part {
        let lock = Lock()
        var readers: [[UInt8]: [Reader]] = [:]
        var writers: [[UInt8]: [Writer]] = [:]
        /// When the tracked entries expire.
        var deadlines = DeadlineWatch<[UInt8]>()

        /// Removes a client from the writers of a key.
        /// - Returns: whether the client had changed the key.
        func endWriting(_ key: [UInt8], _ client: TrackingClient) -> Bool {
            guard let index = writers[key]?.firstIndex(where: { $0.client === client }) else { return false }
            writers[key]?.remove(at: index)
            return true
        }
    }

    private let directory: ConnectionDirectory
    private let keysLimit: Atomic<Int>
    private let keyCount = Atomic<Int>(0)
    /// The number of pairs of a key and a client that has read it.
    private let itemCount = Atomic<Int>(0)
    private let clientCount = Atomic<Int>(0)
    private let broadcastCount = Atomic<Int>(0)
    private let parts: [Part]
    private let lock = Lock()
    private var clients: [Int64: TrackingClient] = [:]
    private var clientsChanged: @Sendable () -> Void = {}

    private static let partCount = 16

    init(directory: ConnectionDirectory, keysMax: Int) {
        self.directory = directory
        keysLimit = Atomic(max(0, keysMax))
        parts = (0..<Self.partCount).map { _ in Part() }
    }

    func onClientsChanged(_ body: @escaping @Sendable () -> Void) { lock.withLock { clientsChanged = body } }

    var hasClients: Bool { clientCount.read() > 0 }
    var hasBroadcast: Bool { broadcastCount.read() > 0 }
    /// The most tracked keys; 0 for no limit.
    var keysMax: Int { keysLimit.read() }

    /// Changes the limit of tracked keys. Keys beyond the new limit are reported as changed.
    func changeLimit(to most: Int) {
        keysLimit.store(max(0, most), ordering: .relaxed)
        guard most > 0 else { return }
        for part in parts {
            while keyCount.read() > most {
                let dropped = part.lock.withLock { () -> ([UInt8], [TrackingClient])? in
                    guard let victim = part.readers.keys.first else { return nil }
                    return take(victim, part).map { (victim, $0) }
                }
                guard let (key, readers) = dropped else { break }
                send([key], to: readers)
            }
        }
    }

    /// The number of tracked keys.
    var trackedKeys: Int { keyCount.read() }
    /// The number of pairs of a key and a client that has read it, including clients with closed connections.
    var trackedItems: Int { itemCount.read() }
    /// The number of different prefixes tracked.
    var prefixCount: Int {
        Set(lock.withLock { Array(clients.values) }.filter(\.isBroadcast).flatMap(\.prefixes)).count
    }
    var trackingClients: Int { clientCount.read() }

    // MARK: Clients

    /// Adds a client. If its connection tracks already, the existing client takes over its settings, and keeps its
    /// tracked keys.
    /// - Returns: the client in use.
    func add(_ client: TrackingClient) -> TrackingClient {
        let (counts, changed) = lock.withLock {
            let present = clients[client.subscriber.id]
            if present?.isBroadcast ?? false { broadcastCount.add(-1) }
            if client.isBroadcast { broadcastCount.add(1) }
            present?.take(client)
            clients[client.subscriber.id] = present ?? client
            clientCount.store(clients.count, ordering: .relaxed)
            return (present ?? client, clientsChanged)
        }
        changed()
        return counts
    }

    func remove(_ client: TrackingClient) {
        client.end()
        let changed = lock.withLock {
            if clients.removeValue(forKey: client.subscriber.id)?.isBroadcast ?? false { broadcastCount.add(-1) }
            clientCount.store(clients.count, ordering: .relaxed)
            return clientsChanged
        }
        changed()
        // The keys of a removed client stay in the table until they change; without any clients, they are removed now.
        if !hasClients { forgetKeys { !$0.isActive } }
    }

    /// Removes the tracked keys of some clients. Keys read by other clients in the meantime stay.
    private func forgetKeys(of isGone: (TrackingClient) -> Bool) {
        for part in parts {
            part.lock.withLock {
                let before = (part.readers.count, part.readers.values.reduce(0) { $0 + $1.count })
                let left = part.readers.compactMapValues { readers in
                    let left = readers.filter { !isGone($0.client) }
                    return left.isEmpty ? nil : left
                }
                keyCount.add(left.count - before.0)
                itemCount.add(left.values.reduce(0) { $0 + $1.count } - before.1)
                part.readers = left
                part.writers = part.writers.filter { left[$0.key] != nil }
                if left.isEmpty { part.deadlines.removeAll() }
            }
        }
    }

    // MARK: Reading

    private func part(_ key: [UInt8]) -> Part { parts[(key.hashValue >> 7) & (Self.partCount - 1)] }

    /// Records that a client is about to read a key.
    /// - Parameter ownUnit: the last commit unit of the client: the value that it reads includes its own changes up to
    ///   this unit. 0 if the client cannot be notified before its reply.
    /// - Returns: whether the client must be notified before it gets the new value, because it has changed the key
    ///   since it last read it. It is not notified again when that change is committed.
    @discardableResult
    func willRead(_ key: [UInt8], _ client: TrackingClient, ownUnit: UInt64 = 0) -> Bool {
        let part = part(key)
        let (isChanged, dropped) = part.lock.withLock { () -> (Bool, ([UInt8], [TrackingClient])?) in
            if var readers = part.readers[key] {
                let wasWritten = !part.writers.isEmpty && part.endWriting(key, client)
                if let index = readers.firstIndex(where: { $0.isClient(client) }) {
                    // Changes by a script are not recorded: its client is notified at the commit.
                    guard client.isNoLoop || wasWritten && ownUnit > 0 else { return (false, nil) }
                    readers[index].ownUnit = max(ownUnit, readers[index].ownUnit)
                    part.readers[key] = readers
                    return (!client.isNoLoop, nil)
                }
                let left = readers.filter(\.client.isActive) + [Reader(client: client, ownUnit: ownUnit)]
                part.readers[key] = left
                itemCount.add(left.count - readers.count)
                return (false, nil)
            }
            part.readers[key] = [Reader(client: client, ownUnit: ownUnit)]
            itemCount.add(1)
            let count = keyCount.wrappingAdd(1, ordering: .relaxed).newValue
            guard keysMax > 0, count > keysMax, let victim = part.readers.keys.first else { return (false, nil) }
            return (false, take(victim, part).map { (victim, $0) })
        }
        if let (key, readers) = dropped { send([key], to: readers) }
        return isChanged
    }

    /// Records that a client is about to change a key. When the change is committed, the client's earlier read of the
    /// key is dropped, unless it has read the key again in the same transaction or pipeline.
    /// - Parameter previousUnit: the last commit unit of the client so far.
    func willWrite(_ key: [UInt8], _ client: TrackingClient, after previousUnit: UInt64) {
        let part = part(key)
        part.lock.withLock {
            guard let readers = part.readers[key], readers.contains(where: { $0.isClient(client) }),
                part.writers[key]?.contains(where: { $0.client === client }) != true
            else { return }
            part.writers[key, default: []].append(Writer(client: client, previousUnit: previousUnit))
        }
    }

    /// Records the deadline of an entry that a client has read.
    func didRead(_ key: [UInt8], deadline: Int64) {
        let part = part(key)
        part.lock.withLock {
            guard part.readers[key] != nil else { return }
            part.deadlines.set(key, min(deadline, part.deadlines.deadline(key) ?? .max))
        }
    }

    /// Removes a key from the table. Called with the part's lock held.
    /// - Parameters:
    ///   - database: readers without access to this database have read the key in another one, and are kept.
    ///   - writer: the client that changed the key with the commit unit `unit`; it is kept if it has read the key
    ///     since.
    private func take(
        _ key: [UInt8], _ part: Part, in database: String? = nil, by writer: Int64 = 0, unit: UInt64 = 0
    ) -> [TrackingClient]? {
        if let readers = part.readers[key] {
            let left = readers.filter { reader in
                let client = reader.client
                if database.map({ !client.hears($0) }) ?? false { return true }
                guard client.subscriber.id == writer, client.isActive else { return false }
                // Keep a client that has read its own change. It may be listed as a writer again, for a later command
                // that did not change the key.
                if unit != 0, unit <= reader.ownUnit { return true }
                return client.isNoLoop
                    && part.writers[key]?.contains { $0.client === client && $0.previousUnit < unit } != true
            }
            if !left.isEmpty {
                // The changes of the other writers, if any, are committed later.
                part.writers[key]?.removeAll { $0.previousUnit < unit }
                part.readers[key] = left
                itemCount.add(left.count - readers.count)
                return readers.lazy.map(\.client).filter { client in !left.contains { $0.isClient(client) } }
            }
        }
        guard let readers = part.readers.removeValue(forKey: key) else { return nil }
        part.writers[key] = nil
        part.deadlines.set(key, nil)
        keyCount.add(-1)
        itemCount.add(-readers.count)
        return readers.map(\.client)
    }

    // MARK: Reporting

    /// Reports changed keys.
    func invalidate(_ changes: [EntryChange]) {
        guard hasClients else { return }
        for change in changes {
            invalidate(change.key, by: change.origin.client, unit: change.sequence, in: change.database.name)
        }
        if hasBroadcast { broadcast(changes.map { ($0.key, $0.origin.client, $0.database.name) }) }
    }

    /// Reports keys whose entries expired, or changed at the origin.
    func invalidate(_ keys: [[UInt8]], in database: String) {
        guard hasClients, !keys.isEmpty else { return }
        for key in keys { invalidate(key, by: 0, in: database) }
        if hasBroadcast { broadcast(keys.map { ($0, 0, database) }) }
    }

    private func invalidate(_ key: [UInt8], by client: Int64, unit: UInt64 = 0, in database: String) {
        let part = part(key)
        let taken = part.lock.withLock { take(key, part, in: database, by: client, unit: unit) }
        guard let readers = taken else { return }
        send([key], to: readers.filter { !($0.isNoLoop && $0.subscriber.id == client) })
    }

    /// Reports the entries whose deadlines have passed.
    func expire(now: Int64) {
        guard keyCount.read() > 0 else { return }
        for part in parts {
            while true {
                let due = part.lock.withLock { () -> ([UInt8], [TrackingClient])? in
                    guard let key = part.deadlines.popDue(now: now) else { return nil }
                    return (key, take(key, part) ?? [])
                }
                guard let (key, readers) = due else { break }
                send([key], to: readers)
            }
        }
    }

    /// Invalidates all keys of some databases, for the clients that track them. Skipping other clients prevents an
    /// endless loop between two databases of one larder, one of which is the origin of the other.
    /// - Parameter databases: nil for all.
    func invalidateAll(in databases: [String]?) {
        guard hasClients else { return }
        let all = lock.withLock { Array(clients.values) }
        let notified =
            databases.map { names in all.filter { client in names.contains { client.isConcerned(by: $0) } } } ?? all
        // If only some clients are notified, their keys stay in the table, and are reported at most once more than
        // necessary.
        if notified.count == all.count {
            let gone = Set(notified.map { ObjectIdentifier($0) })
            forgetKeys { gone.contains(ObjectIdentifier($0)) || !$0.isActive }
        }
        for client in notified { send(nil, to: client) }
    }

    /// Reports keys to one client.
    func notify(_ keys: [[UInt8]], _ client: TrackingClient, in database: String) {
        guard client.isBroadcast else { return send(keys, to: client) }
        guard client.isConcerned(by: database) else { return }
        let meant = keys.filter { key in client.prefixes.contains { key.starts(with: $0) } }
        if !meant.isEmpty { send(meant, to: client) }
    }

    private func broadcast(_ keys: [(key: [UInt8], by: Int64, database: String)]) {
        for client in lock.withLock({ clients.values.filter(\.isBroadcast) }) {
            for prefix in client.prefixes {
                // As in Redis, each key is reported once, in byte order.
                let own = client.isNoLoop ? client.subscriber.id : -1
                let matching = Set(
                    keys.filter {
                        $0.by != own && $0.key.starts(with: prefix) && client.isConcerned(by: $0.database)
                    }.map(\.key))
                if !matching.isEmpty {
                    send(matching.sorted { $0.lexicographicallyPrecedes($1) }, to: client)
                }
            }
        }
    }

    private func send(_ keys: [[UInt8]], to readers: [TrackingClient]) {
        for client in readers where client.isActive && !client.isBroadcast { send(keys, to: client) }
    }

    /// - Parameter keys: nil for all.
    private func send(_ keys: [[UInt8]]?, to client: TrackingClient) {
        guard client.redirect != 0 else {
            return deliver(.invalidation(keys, isRedirected: false), to: client.subscriber)
        }
        if let queue = directory.queue(client.redirect) {
            let target = Subscriber(id: client.redirect, queue: queue)
            deliver(.invalidation(keys, isRedirected: true), to: target)
        } else {
            deliver(.redirectBroken(client.redirect), to: client.subscriber)
        }
    }

    private func deliver(_ message: PushMessage, to subscriber: Subscriber) {
        subscriber.queue.add(PushQueue.Delivery(message: message, connections: [subscriber.id]))
    }
}

/// All connections, and the queue for the messages of each.
///
/// `@unchecked Sendable`: the table is guarded by `lock`.
final class ConnectionDirectory: @unchecked Sendable {
    private let lock = Lock()
    private var queues: [Int64: PushQueue] = [:]

    func add(_ id: Int64, _ queue: PushQueue) { lock.withLock { queues[id] = queue } }
    func remove(_ id: Int64) { lock.withLock { queues[id] = nil } }
    func queue(_ id: Int64) -> PushQueue? { lock.withLock { queues[id] } }
}
