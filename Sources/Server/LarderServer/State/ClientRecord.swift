import LarderCommandCatalog
import LarderEngine
import LarderPlatform
import LarderRESP
import Synchronization

/// The properties of a connection that other threads may read, for CLIENT LIST, CLIENT KILL and INFO.
///
/// Thread-safe.
final class ClientRecord: Sendable {
    let id: Int64
    let address: String
    let descriptor: Int32
    /// The time at which the connection was opened, in milliseconds of the engine's clock.
    let connectedAt: Int64
    /// The credentials of the client's process; nil if the system does not report them.
    let credentials: PeerCredentials?
    /// Closes the connection, and logs the given reason. Any thread may call it.
    private let closer: @Sendable (String) -> Void

    // The session's owner sets the following values while commands run.
    let lastActivity: Atomic<Int64>
    /// The last command, as its number in the table of commands; -1 before the first command.
    let lastCommand = Atomic<Int>(-1)
    /// The number of commands queued since MULTI; -1 if no MULTI is open.
    let queuedCommands = Atomic<Int>(-1)
    let queuedBytes = Atomic<Int>(0)
    let watchedKeys = Atomic<Int>(0)
    let watchedBytes = Atomic<Int>(0)
    let channels = Atomic<Int>(0)
    let patterns = Atomic<Int>(0)
    let shardChannels = Atomic<Int>(0)
    /// The ID of the connection that receives this connection's invalidations: 0 for this connection itself, -1 if the
    /// client does not use CLIENT TRACKING.
    let redirect = Atomic<Int>(-1)
    let isBroadcast = Atomic<Bool>(false)
    let protocolVersion = Atomic<Int>(2)
    let inputBytes = Atomic<Int>(0)
    let outputBytes = Atomic<Int>(0)
    let liveQueries = Atomic<Int>(0)
    let liveBytes = Atomic<Int>(0)
    let isMonitor = Atomic<Bool>(false)
    /// Whether the client has run CHANGES.
    let isFollower = Atomic<Bool>(false)
    let isNoEvict = Atomic<Bool>(false)
    let isNoTouch = Atomic<Bool>(false)
    /// Whether the connection's commands are omitted from SLOWLOG, LATENCY and MONITOR.
    let isUnlogged = Atomic<Bool>(false)
    /// Whether another thread has asked to close the connection. The session checks this before each command.
    let isKilled = Atomic<Bool>(false)
    /// Whether the connection is closed. Set before the socket's descriptor is closed.
    let isClosed = Atomic<Bool>(false)

    private let names = Locked(Names())

    struct Names: Sendable {
        var name = ""
        var library = ""
        var libraryVersion = ""
        var database = DatabaseName.standard
        /// The name of the user; `default` if there are no access rules.
        var user = "default"
    }

    init(
        id: Int64, address: String, descriptor: Int32, now: Int64, credentials: PeerCredentials? = nil,
        closer: @escaping @Sendable (String) -> Void
    ) {
        self.credentials = credentials
        self.id = id
        self.address = address
        self.descriptor = descriptor
        self.closer = closer
        connectedAt = now
        lastActivity = Atomic(now)
    }

    /// Whether the client has disconnected, so that nobody can read a reply. A client that has closed only its sending
    /// side does not count as disconnected, because it can still read.
    ///
    /// Any thread may call this. If the descriptor is closed at the same time, and reused for another connection, the
    /// result is still correct, because `isClosed` is set before the descriptor is closed.
    var isGone: Bool {
        let isHungUp = UnixSocket.hasHungUp(descriptor)
        return isClosed.load(ordering: .acquiring) || isHungUp
    }

    var known: Names { names.withLock { $0 } }

    func change(_ body: (inout Names) -> Void) { names.withLock { body(&$0) } }

    func close(_ reason: String) {
        isKilled.store(true, ordering: .relaxed)
        closer(reason)
    }

    /// The types of clients for CLIENT LIST TYPE and CLIENT KILL TYPE.
    enum Kind: String {
        case normal, master, replica, pubsub

        init?(_ word: String) {
            // Redis accepts both `slave` and `replica`.
            self.init(rawValue: word.lowercased() == "slave" ? "replica" : word.lowercased())
        }
    }

    var kind: Kind { subscriptionCount > 0 ? .pubsub : .normal }

    private var subscriptionCount: Int { channels.read() + patterns.read() + shardChannels.read() }

    /// Whether the client receives messages that are not replies to its commands.
    var listens: Bool {
        subscriptionCount > 0 || liveQueries.read() > 0 || isMonitor.load(ordering: .relaxed) || redirect.read() >= 0
    }

    private var flags: String {
        var flags = ""
        if isMonitor.load(ordering: .relaxed) { flags += "O" }
        if subscriptionCount > 0 { flags += "P" }
        if queuedCommands.read() >= 0 { flags += "x" }
        if redirect.read() >= 0 { flags += isBroadcast.load(ordering: .relaxed) ? "tB" : "t" }
        // All connections use a Unix-domain socket.
        flags += "U"
        if isNoEvict.load(ordering: .relaxed) { flags += "e" }
        if isNoTouch.load(ordering: .relaxed) { flags += "T" }
        if isUnlogged.load(ordering: .relaxed) { flags += "L" }
        return flags
    }

    /// The approximate memory of requests, replies, the queue of MULTI, watches and live queries, in bytes.
    var byteCount: Int {
        [inputBytes.read(), outputBytes.read(), queuedBytes.read(), watchedBytes.read(), liveBytes.read()].reduce(0, +)
    }

    /// Returns the connection's line for CLIENT LIST, in the format of Redis, without a line break.
    func line(now: Int64) -> String {
        let names = known
        let number = lastCommand.read()
        let command = CommandMetadata.numbered(number)?.name ?? "NULL"
        let (input, output) = (inputBytes.read(), outputBytes.read())
        let fields: [(String, String)] = [
            ("id", "\(id)"), ("addr", address), ("laddr", address), ("fd", "\(descriptor)"), ("name", names.name),
            ("age", "\(max(0, now - connectedAt) / 1000)"),
            ("idle", "\(max(0, now - lastActivity.load(ordering: .relaxed)) / 1000)"), ("flags", flags),
            ("db", names.database), ("sub", "\(channels.read())"), ("psub", "\(patterns.read())"),
            ("ssub", "\(shardChannels.read())"), ("multi", "\(queuedCommands.read())"), ("qbuf", "\(input)"),
            ("qbuf-free", "0"), ("argv-mem", "0"), ("multi-mem", "\(queuedBytes.read())"), ("rbs", "\(output)"),
            ("rbp", "0"), ("obl", "0"), ("oll", "0"), ("omem", "\(output)"), ("tot-mem", "\(byteCount)"),
            ("events", "r"), ("cmd", command), ("user", names.user), ("redir", "\(redirect.read())"),
            ("resp", "\(protocolVersion.read())"), ("lib-name", names.library), ("lib-ver", names.libraryVersion),
            ("watch", "\(watchedKeys.read())"), ("live", "\(liveQueries.read())"),
        ]
        return fields.map { "\($0.0)=\($0.1)" }.joined(separator: " ")
    }
}

/// The connections of a server, by their IDs, with the queues of messages for them. Thread-safe.
final class ClientRegistry: Sendable {
    private let clients = Locked<[Int64: (record: ClientRecord, queue: PushQueue)]>([:])

    func add(_ record: ClientRecord, _ queue: PushQueue) { clients.withLock { $0[record.id] = (record, queue) } }
    func remove(_ id: Int64) { clients.withLock { _ = $0.removeValue(forKey: id) } }

    /// All records, in the order in which the connections were opened.
    var all: [ClientRecord] { clients.withLock { $0.values.map(\.record) }.sorted { $0.id < $1.id } }

    func find(_ id: Int64) -> ClientRecord? { clients.withLock { $0[id]?.record } }
    func queue(_ id: Int64) -> PushQueue? { clients.withLock { $0[id]?.queue } }
}
