import RESP
import Threading

@_exported import enum RESP.RESPValue

/// A client of a running `larderd`, for processes other than the one that holds the larder.
///
/// ```swift
/// let client = try await LarderClient.connect()
/// let readers = client.cache("userdb", of: Reader.self)
/// try await readers.set(reader, forKey: "reader", policy: .middle)
/// let reader = try await readers.value(forKey: "reader")          // nil when absent or not fresh any more
/// ```
///
/// - Any number of tasks use one client at the same time: their requests go over one connection for each database, one
///   behind the other without waiting for replies. No call blocks a thread of Swift's cooperative pool.
/// - A lost connection is made again, with rests in between that grow and vary. Calls wait for that for
///   ``Options/reconnectPatienceMilliseconds``. A request that the daemon cannot have seen, and one that only reads, is
///   sent again; one that writes and whose reply was lost throws `closed`, because nobody knows whether it was carried
///   out.
/// - A call that is cancelled, or out of time, throws `cancelled` or `timeout` at once, once its model is encoded: that is
///   done on the caller's thread before anything is sent, and is not interrupted. The connection stays usable, and
///   what was sent may be carried out all the same.
/// - Requests of one task are carried out in its order, since each waits for its reply. Of several tasks nothing is
///   promised.
/// - Servers that are not larderd but speak RESP serve as well, as far as they know the commands.
///
/// Thread-safe. Programs without tasks, and tools, may use ``BlockingLarderClient``.
public final class LarderClient: Sendable {
    let core: ClientCore

    private init(core: ClientCore) { self.core = core }

    /// How a client connects and waits. A value.
    public struct Options: Sendable {
        /// The database that the client's own calls use; nil, the default, for the server's, `0`.
        public var database: String?
        /// The daemon's password (`--password-file`); nil, the default, where it has none.
        public var password: String?
        /// How long a call may take altogether, in milliseconds, 1 to ``LarderClient/timeoutMillisecondsMax``; 0 for no
        /// limit. The default is 5,000.
        public var timeoutMilliseconds: Int
        /// How long a call waits for a lost connection to be made again before it throws, in milliseconds, 0 to
        /// ``LarderClient/timeoutMillisecondsMax``. The default is 1,000.
        public var reconnectPatienceMilliseconds: Int
        /// How many connections the calls of one database are spread over, 1 to 16. The default is 1, which many tasks
        /// can share; more pay where values are large.
        public var connections: Int
        /// How many connections of their own transactions and ``LarderClient/withConnection(_:)`` may have at
        /// the same time, for each database, 1 to 1,024. The default is 8; who comes then waits,
        /// for as long as a call may take.
        public var ownConnectionsMax: Int
        /// Keeps what was read in this process: see ``NearCacheOptions``. Nil, the default, for no near cache. With a
        /// redis-server in larderd's place it may be wrong after a `SWAPDB`, of which Redis does not tell.
        public var nearCache: NearCacheOptions?
        /// Numbers of users whose daemons are talked to wherever their sockets are. Empty by default.
        ///
        /// Always talked to are those of root, of this process' own user, and of a user to whom root or the own user has
        /// given the socket's place, such as `/run/larder`: a directory, or the socket, that belongs to the daemon's user,
        /// below directories to which only root or the own user can write. To anybody else's, such as one who was first
        /// at a path in `/tmp`, nothing is sent.
        public var trustedUsers: Set<UInt32>

        /// Every option is described at the property of its name.
        public init(
            database: String? = nil, password: String? = nil, timeoutMilliseconds: Int = 5_000,
            reconnectPatienceMilliseconds: Int = 1_000,
            connections: Int = 1, ownConnectionsMax: Int = 8, nearCache: NearCacheOptions? = nil,
            trustedUsers: Set<UInt32> = []
        ) {
            self.database = database
            self.password = password
            self.timeoutMilliseconds = timeoutMilliseconds
            self.reconnectPatienceMilliseconds = reconnectPatienceMilliseconds
            self.connections = connections
            self.ownConnectionsMax = ownConnectionsMax
            self.nearCache = nearCache
            self.trustedUsers = trustedUsers
        }
    }

    /// Connects to the daemon.
    /// - Parameter socketPath: the daemon's socket; nil for ``defaultSocketPath``.
    /// - Throws: `noDaemon` when nothing answers there, `untrusted` when a stranger's process does
    ///   (``Options/trustedUsers``), `invalidArgument` for a path or an option that is not possible,
    ///   `server` when the daemon does not accept the connection or the database's name, or does not know CLIENT TRACKING
    ///   and a near cache was asked for, `io` when the system refuses (no permission to use the socket).
    public static func connect(socketPath: String? = nil, options: Options = Options())
        async throws(LarderClientError) -> LarderClient
    {
        let path = try checkedPath(socketPath, options.timeoutMilliseconds)
        try options.check(path)
        let core = ClientCore(socketPath: path, options: options)
        try await core.store(options.database).links[0].connected(patience: 0)
        return LarderClient(core: core)
    }

    /// The socket that this client is connected to.
    public var socketPath: String { core.socketPath }

    /// Ends all connections for good, those of ``withConnection(_:)`` and transactions too: calls that wait and every later one throw `closed`, subscriptions end. Idempotent.
    /// A client that nothing refers to any more, neither a cache of it nor a subscription, closes by itself.
    public func close() { core.close() }

    /// A database of the larder, for models of one type. Nothing is sent: the database comes into being with its first
    /// entry, and a name that is not possible is an error of the first call.
    ///
    /// All caches of one name share the connection and the near cache.
    /// - Parameters:
    ///   - name: nil for the client's own database.
    ///   - codec: how models become bytes. The default is JSON.
    public func cache<Value: Codable & Sendable>(
        _ name: String? = nil, of type: Value.Type = Value.self, codec: ModelCodec = .standard
    ) -> RemoteCache<Value> {
        RemoteCache(core: core, store: core.store(name ?? core.options.database), codec: codec)
    }

    // MARK: Any command

    /// Sends one command to the client's own database and gives the answer as it came. An error that the server answers
    /// with is a value here, ``RESPValue/error(_:)``, and is not thrown.
    ///
    /// What a command changes, the near cache learns from the daemon soon afterwards, not before this call returns.
    /// - Parameter words: the command's name and its arguments.
    /// - Throws: `invalidArgument` for commands that change the state of the connection, which others share: see
    ///   ``withConnection(_:)``.
    @discardableResult
    public func command(_ words: [String]) async throws(LarderClientError) -> RESPValue {
        try await command(bytes: words.map { Array($0.utf8) })
    }

    /// As ``command(_:)-([String])``.
    @discardableResult
    public func command(_ words: String...) async throws(LarderClientError) -> RESPValue {
        try await command(bytes: words.map { Array($0.utf8) })
    }

    /// As ``command(_:)-([String])``, for keys and values of any bytes.
    @discardableResult
    public func command(bytes words: [[UInt8]]) async throws(LarderClientError) -> RESPValue {
        try await core.own.commands([words], rules: .shared)[0]
    }

    /// Sends several commands at once and gives their answers, in the same order. Not atomic: commands of other clients
    /// may come in between, and errors are values that stand at their command's place. Costs one round trip.
    public func pipeline(_ commands: [[[UInt8]]]) async throws(LarderClientError) -> [RESPValue] {
        try await core.own.commands(commands, rules: .shared)
    }

    /// Carries out several commands in one step (MULTI, EXEC), and gives their answers. No command of another client
    /// comes in between. A command that fails when it is carried out, such as INCR of a text, does not stop the others:
    /// its error is a value that stands in its place.
    ///
    /// For models, and for transactions that depend on what they read, there are ``RemoteCache/batch(_:)`` and
    /// ``RemoteCache/transaction(watching:attempts:_:)``.
    /// - Throws: `server` when the daemon refuses one of the commands beforehand; then none was carried out.
    public func transaction(_ commands: [[[UInt8]]]) async throws(LarderClientError) -> [RESPValue] {
        try await core.own.transaction(commands)
    }

    /// As ``transaction(_:)-([[[UInt8]]])``, for commands that are text.
    public func transaction(_ commands: [[String]]) async throws(LarderClientError) -> [RESPValue] {
        try await core.own.transaction(commands.map { $0.map { Array($0.utf8) } })
    }

    /// Asks the daemon whether it is there.
    public func ping() async throws(LarderClientError) { try await core.own.perform(.ping) }

    /// What the near cache of a database did so far; nil when there is none.
    /// - Parameter database: nil for the client's own.
    public func nearCacheStatistics(_ database: String? = nil) -> NearCacheStatistics? {
        core.store(database ?? core.options.database).near?.statistics
    }

    // MARK: The whole larder

    /// The databases of the larder, by name.
    public func databases() async throws(LarderClientError) -> [DatabaseInfo] { try await core.own.perform(.databases) }

    /// What the daemon says of itself: lines of `name:value` under headings, as `INFO` gives them.
    /// - Parameter section: one section of it only, such as `memory`; nil for the usual ones.
    public func serverInfo(section: String? = nil) async throws(LarderClientError) -> String {
        try await core.own.perform(.serverInfo(section))
    }
}

extension LarderClient {
    /// Where the socket is expected when no path is given: the environment variable `LARDER_SOCKET` if it is set;
    /// else, for root, `/run/larder/larder.sock`; else `$XDG_RUNTIME_DIR/larder/larder.sock` if that variable is set;
    /// else `/tmp/larder-<uid>/larder.sock`. larderd listens at the same place by default.
    public static var defaultSocketPath: String { DefaultSocket.path }

    /// The longest path that a socket can have on this system, in bytes: 107 on Linux, 103 on macOS.
    public static var socketPathBytesMax: Int { StreamSocket.pathBytesMax }

    /// The longest time limit: a day.
    public static let timeoutMillisecondsMax = 86_400_000

    /// The path to use, if it and the time limit are possible.
    static func checkedPath(_ socketPath: String?, _ timeoutMilliseconds: Int) throws(LarderClientError) -> String {
        let path = socketPath ?? defaultSocketPath
        func refuse(_ message: String) -> LarderClientError {
            LarderClientError(.invalidArgument, message, operation: "connect", socketPath: path)
        }
        guard !path.isEmpty else { throw refuse("a socket's path cannot be empty") }
        guard !path.utf8.contains(0) else { throw refuse("a socket's path cannot have a zero byte in it") }
        guard path.utf8.count <= socketPathBytesMax else {
            throw refuse(
                "the socket's path has \(path.utf8.count) bytes, and at most \(socketPathBytesMax) are possible: "
                    + path)
        }
        guard (0...timeoutMillisecondsMax).contains(timeoutMilliseconds) else {
            throw refuse(
                "a time limit of \(timeoutMilliseconds) ms is not possible: it is 0 for none, or 1 to "
                    + "\(timeoutMillisecondsMax)")
        }
        return path
    }
}

extension LarderClient.Options {
    func check(_ path: String) throws(LarderClientError) {
        func check(_ isPossible: Bool, _ message: String) throws(LarderClientError) {
            guard !isPossible else { return }
            throw LarderClientError(.invalidArgument, message, operation: "connect", socketPath: path)
        }
        try check(
            (0...LarderClient.timeoutMillisecondsMax).contains(reconnectPatienceMilliseconds),
            "reconnectPatienceMilliseconds is 0 to \(LarderClient.timeoutMillisecondsMax)")
        try check((1...16).contains(connections), "connections is 1 to 16")
        try check((1...1024).contains(ownConnectionsMax), "ownConnectionsMax is 1 to 1024")
        if let nearCache {
            try check((1...16_777_216).contains(nearCache.entriesMax), "entriesMax is 1 to 16777216")
            try check(nearCache.bytesMax >= 1, "bytesMax is \(nearCache.bytesMax), and must be at least 1")
            let age = nearCache.ageMillisecondsMax ?? .max
            try check(age >= 1, "ageMillisecondsMax is \(age), and must be at least 1; nil for no limit")
        }
    }
}
