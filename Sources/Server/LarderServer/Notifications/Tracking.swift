import LarderEngine
import LarderPlatform
import Synchronization

/// A client that has read keys, and is notified when these keys change.
///
/// There is one object per connection. The object stays when the client changes its tracking settings, so that the keys
/// that were read before are still tracked.
///
/// `@unchecked Sendable`: `lock` guards the settings and the databases; `isTracking` is atomic, and the rest is
/// constant.
final class TrackingClient: @unchecked Sendable {
    enum Mode: Sendable {
        /// All keys that the client reads are tracked.
        case read
        /// Only keys that are read by the command after CLIENT CACHING YES are tracked.
        case optIn
        /// All keys that the client reads are tracked, except by the command after CLIENT CACHING NO.
        case optOut
        /// The client is notified of changes of all keys with one of these prefixes, even if it has not read the keys.
        case broadcast([[UInt8]])
    }

    let subscriber: Subscriber
    /// Returns whether the client's user may receive events of the database with this name.
    let mayNotify: @Sendable (String) -> Bool
    private let isTracking = Atomic<Bool>(true)
    private let lock = Lock()
    private var settings: TrackingSettings
    /// The names of databases that the client has selected. The client cannot have read keys of other databases.
    private var databases: Set<String>

    /// - Parameter database: the name of the database that is selected now.
    init(
        _ subscriber: Subscriber, _ settings: TrackingSettings, database: String,
        mayNotify: @escaping @Sendable (String) -> Bool
    ) {
        databases = [database]
        self.settings = settings
        self.subscriber = subscriber
        self.mayNotify = mayNotify
    }

    private var now: TrackingSettings { lock.withLock { settings } }
    var mode: Mode { now.mode }
    var redirect: Int64 { now.redirect }
    var isNoLoop: Bool { now.isNoLoop }

    var isActive: Bool { isTracking.load(ordering: .relaxed) }
    func end() { isTracking.store(false, ordering: .relaxed) }

    /// Records that the client has selected a database.
    func visit(_ database: String) { lock.withLock { _ = databases.insert(database) } }

    /// Copies the settings from `other`, a new client object of the same connection. Only the caller's thread may use
    /// `other`.
    func take(_ other: TrackingClient) {
        let (settings, databases) = (other.settings, other.databases)
        lock.withLock {
            self.settings = settings
            self.databases.formUnion(databases)
        }
    }

    /// Whether the client is notified when all entries of a database may have changed. In the mode
    /// ``Mode/broadcast(_:)``, also whether the client is notified of single keys of the database.
    func isConcerned(by database: String) -> Bool {
        let settings = now
        if case .broadcast = settings.mode { return settings.onlyDatabase.map { $0 == database } ?? true }
        return mayNotify(database) && lock.withLock { databases.contains(database) }
    }

    var prefixes: [[UInt8]] {
        if case .broadcast(let prefixes) = mode { return prefixes }
        return []
    }

    var isBroadcast: Bool {
        if case .broadcast = mode { true } else { false }
    }
}

struct TrackingSettings: Sendable {
    var mode = TrackingClient.Mode.read
    /// The ID of the connection that receives the invalidations instead of this one; 0 if they are not redirected.
    var redirect: Int64 = 0
    /// Whether the client does not want to be notified of its own changes (NOLOOP).
    var isNoLoop = false
    /// In the mode ``TrackingClient/Mode/broadcast(_:)``, the only database whose changes are reported; nil for all.
    var onlyDatabase: String?
}

/// The table of CLIENT TRACKING: which clients have read which keys. Notifies these clients when the keys change.
///
/// - A key is recorded *before* it is read, and reported after a change is committed. If a client reads the key after
///   the report, it gets the changed value or a newer one.
/// - The table has a size limit. A key that is removed because of the limit is reported as changed.
/// - As in Redis, the same key of different databases has one line in the table. If a whole database changes, the
///   clients that have selected this database are notified.
///
/// `@unchecked Sendable`: each part has its own lock; `lock` guards the clients.
final class Tracking: @unchecked Sendable {
    /// A client that has read a key.
    private struct Reader {
        let client: TrackingClient
        /// The sequence number of the client's latest commit at the time of the read, or of the last notification about
        /// the key if that is later. The client has seen its own changes up to this commit.
        var ownUnit: UInt64

        func isClient(_ other: TrackingClient) -> Bool { client === other }
    }

    /// A client that has read the key, and has then run a command that may have changed the key.
    private struct Writer {
        let client: TrackingClient
        /// The sequence number of the client's latest commit before the command. The command's own number is higher.
        let previousUnit: UInt64
    }

    private final class Part {
        let lock = Lock()
        var readers: [[UInt8]: [Reader]] = [:]
        var writers: [[UInt8]: [Writer]] = [:]
        /// The times at which tracked entries expire.
        var deadlines = DeadlineWatch<[UInt8]>()

        /// Removes a client from the writers of a key. The caller holds the part's lock.
        /// - Returns: whether the client was one of the writers.
        func endWriting(_ key: [UInt8], _ client: TrackingClient) -> Bool {
            guard let index = writers[key]?.firstIndex(where: { $0.client === client }) else { return false }
            writers[key]?.remove(at: index)
            return true
        }
    }

    /// Returns the queue of messages for the connection with an ID; nil if it was closed.
    private let queue: @Sendable (Int64) -> PushQueue?
    private let keysLimit: Atomic<Int>
    private let keyCount = Atomic<Int>(0)
    /// The number of pairs of a tracked key and a client that has read it.
    private let itemCount = Atomic<Int>(0)
    private let clientCount = Atomic<Int>(0)
    private let broadcastCount = Atomic<Int>(0)
    private let parts: [Part]
    private let lock = Lock()
    private var clients: [Int64: TrackingClient] = [:]
    private var clientsChanged: @Sendable () -> Void = {}

    private static let partCount = 16

    init(keysMax: Int, queue: @escaping @Sendable (Int64) -> PushQueue?) {
        self.queue = queue
        keysLimit = Atomic(max(0, keysMax))
        parts = (0..<Self.partCount).map { _ in Part() }
    }

    func onClientsChanged(_ body: @escaping @Sendable () -> Void) { lock.withLock { clientsChanged = body } }

    var hasClients: Bool { clientCount.read() > 0 }
    var hasBroadcast: Bool { broadcastCount.read() > 0 }
    /// The limit for the number of tracked keys; 0 for no limit.
    var keysMax: Int { keysLimit.read() }

    /// Changes the limit for the number of tracked keys. Removes excess keys, and reports them as changed.
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

    var trackedKeys: Int { keyCount.read() }
    /// The number of pairs of a tracked key and a client that has read it. Clients that have disconnected are included.
    var trackedItems: Int { itemCount.read() }
    /// The number of different prefixes for which clients have asked.
    var prefixCount: Int {
        Set(lock.withLock { Array(clients.values) }.filter(\.isBroadcast).flatMap(\.prefixes)).count
    }
    var trackingClients: Int { clientCount.read() }

    // MARK: Clients

    /// Adds a client. If the connection already has a client object, the existing object takes over the settings, and
    /// keeps its tracked keys.
    /// - Returns: the object that is used from now on.
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
        // The keys that a removed client has read stay in the table until they change. But if there are no clients
        // left, remove the keys.
        if !hasClients { forgetKeys { !$0.isActive } }
    }

    /// Removes the tracked keys of some clients. A key that other clients have also read stays.
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
    /// - Parameter ownUnit: the sequence number of the client's latest commit; the read sees the client's own changes
    ///   up to this commit. 0 if the client cannot be notified before the reply.
    /// - Returns: whether the client must be notified before it gets the reply, because it has changed the key since
    ///   its last read. The client is not notified again when that change is committed.
    @discardableResult
    func willRead(_ key: [UInt8], _ client: TrackingClient, ownUnit: UInt64 = 0) -> Bool {
        let part = part(key)
        let (isChanged, dropped) = part.lock.withLock { () -> (Bool, ([UInt8], [TrackingClient])?) in
            if var readers = part.readers[key] {
                let wasWritten = !part.writers.isEmpty && part.endWriting(key, client)
                if let index = readers.firstIndex(where: { $0.isClient(client) }) {
                    // `wasWritten` is false for a script's changes: the client is notified when these are committed.
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

    /// Records that a client is about to change a key. When the change is committed, tracking ends for the client's
    /// reads before the change, but not for its reads after it (in the same transaction or pipeline).
    /// - Parameter previousUnit: the sequence number of the client's latest commit so far.
    func willWrite(_ key: [UInt8], _ client: TrackingClient, after previousUnit: UInt64) {
        let part = part(key)
        part.lock.withLock {
            guard let readers = part.readers[key], readers.contains(where: { $0.isClient(client) }),
                part.writers[key]?.contains(where: { $0.client === client }) != true
            else { return }
            part.writers[key, default: []].append(Writer(client: client, previousUnit: previousUnit))
        }
    }

    /// Records when an entry that a client has read expires. The client is notified at that time.
    func didRead(_ key: [UInt8], deadline: Int64) {
        let part = part(key)
        part.lock.withLock {
            guard part.readers[key] != nil else { return }
            part.deadlines.set(key, min(deadline, part.deadlines.deadline(key) ?? .max))
        }
    }

    /// Removes the readers of a key, except for readers that need no notification. The caller holds the part's lock.
    /// - Parameters:
    ///   - database: the changed database. A client that must not read this database has read the key in another
    ///     database, and is kept.
    ///   - writer: the ID of the client that has changed the key in the commit with the sequence number `unit`. The
    ///     client is kept if it has read the key after its change.
    /// - Returns: the removed readers; nil if no client has read the key.
    private func take(
        _ key: [UInt8], _ part: Part, in database: String? = nil, by writer: Int64 = 0, unit: UInt64 = 0
    ) -> [TrackingClient]? {
        if let readers = part.readers[key] {
            let left = readers.filter { reader in
                let client = reader.client
                if database.map({ !client.mayNotify($0) }) ?? false { return true }
                guard client.subscriber.id == writer, client.isActive else { return false }
                // Keep the client, because it has read its own change. If the list of writers contains the client, the
                // reason is another command after that read.
                if unit != 0, unit <= reader.ownUnit { return true }
                return client.isNoLoop
                    && part.writers[key]?.contains { $0.client === client && $0.previousUnit < unit } != true
            }
            if !left.isEmpty {
                // Changes of the remaining writers, if there are any, will be committed later.
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

    /// Notifies the clients that have read the changed keys.
    func invalidate(_ changes: [EntryChange]) {
        guard hasClients else { return }
        for change in changes {
            invalidate(change.key, by: change.origin.client, unit: change.sequence, in: change.database.name)
        }
        if hasBroadcast { broadcast(changes.map { ($0.key, $0.origin.client, $0.database.name) }) }
    }

    /// Notifies the clients that have read these keys. Called for entries that have expired or have changed at the
    /// origin.
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

    /// Notifies the clients that have read entries whose deadlines have passed.
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

    /// Invalidates all keys of some databases for the clients that have used these databases. Other clients are not
    /// notified. If one database of a larder is the origin of another database, the two would otherwise notify each
    /// other endlessly.
    /// - Parameter databases: the names of the databases; nil for all.
    func invalidateAll(in databases: [String]?) {
        guard hasClients else { return }
        let all = lock.withLock { Array(clients.values) }
        let notified =
            databases.map { names in all.filter { client in names.contains { client.isConcerned(by: $0) } } } ?? all
        // If only some clients were notified, do not forget the keys that they have read. The worst effect is one
        // unnecessary notification later.
        if notified.count == all.count {
            let gone = Set(notified.map { ObjectIdentifier($0) })
            forgetKeys { gone.contains(ObjectIdentifier($0)) || !$0.isActive }
        }
        for client in notified { send(nil, to: client) }
    }

    /// Sends invalidations for some keys to one client.
    func notify(_ keys: [[UInt8]], _ client: TrackingClient, in database: String) {
        guard client.isBroadcast else { return send(keys, to: client) }
        guard client.isConcerned(by: database) else { return }
        let meant = keys.filter { key in client.prefixes.contains { key.starts(with: $0) } }
        if !meant.isEmpty { send(meant, to: client) }
    }

    private func broadcast(_ keys: [(key: [UInt8], by: Int64, database: String)]) {
        for client in lock.withLock({ clients.values.filter(\.isBroadcast) }) {
            for prefix in client.prefixes {
                // As in Redis, send each key once, sorted by bytes.
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

    /// - Parameter keys: the keys to invalidate; nil for all keys.
    private func send(_ keys: [[UInt8]]?, to client: TrackingClient) {
        guard client.redirect != 0 else {
            return deliver(.invalidation(keys, isRedirected: false), to: client.subscriber)
        }
        if let queue = queue(client.redirect) {
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
