import LarderPlatform
import LarderRESP

@_exported import enum LarderRESP.RESPValue

/// A client of a running `larderd`, for processes other than the one that holds the larder.
///
/// ```swift
/// let client = try await LarderClient.connect()
/// let readers = client.cache("userdb", of: Reader.self)
/// try await readers.set(reader, forKey: "reader", policy: .middle)
/// let reader = try await readers.value(forKey: "reader")          // nil when absent or not fresh any more
/// ```
///
/// - Any number of tasks may use one client at the same time: their requests go over one connection for each database,
///   one behind the other without waiting for replies. No call blocks a thread of Swift's cooperative pool.
/// - A lost connection is replaced, with growing random rests between attempts. Calls wait for that for
///   ``ClientOptions/reconnectPatienceMilliseconds``. A request is sent again if the daemon cannot have seen it, or if
///   it only reads. A request that writes throws `closed` if its reply was lost, because nobody knows whether it was
///   carried out.
/// - A call that is cancelled, or out of time, throws `cancelled` or `timeout` at once. But encoding its model, on the
///   caller's thread before anything is sent, is not interrupted. The connection stays usable, and what was sent may be
///   carried out nevertheless.
/// - Requests of one task are carried out in its order, because each waits for its reply. Between tasks there is no
///   order.
/// - Other servers that speak RESP can be used too, as far as they know the commands.
///
/// Thread-safe. Programs without tasks, and tools, may use ``BlockingLarderClient``.
public final class LarderClient: Sendable {
    let core: ClientCore

    private init(core: ClientCore) { self.core = core }

    /// Connects to the daemon.
    /// - Parameters:
    ///   - socketPath: the daemon's socket; nil for ``defaultSocketPath``.
    ///   - options: see ``ClientOptions``.
    /// - Throws: `noDaemon` when nothing answers there, `untrusted` when the process belongs to somebody else
    ///   (``ClientOptions/trustedUsers``), `invalidArgument` for an impossible path or option, `server` when the daemon
    ///   refuses the connection or the database's name, or does not know CLIENT TRACKING and a near cache was asked
    ///   for, `io` when the system refuses (no permission to use the socket).
    public static func connect(socketPath: String? = nil, options: ClientOptions = ClientOptions())
        async throws(LarderClientError) -> LarderClient
    {
        let path = try SocketPath.checked(socketPath, options.timeoutMilliseconds)
        try options.check(path)
        let core = ClientCore(socketPath: path, options: options)
        try await core.store(options.database).links[0].connected(patience: 0)
        return LarderClient(core: core)
    }

    /// The socket that this client is connected to.
    public var socketPath: String { core.socketPath }

    /// Closes all connections, including those of ``withConnection(_:)`` and transactions: waiting calls and all later
    /// ones throw `closed`, subscriptions end. Idempotent. A client without references, and without caches and
    /// subscriptions, closes by itself.
    public func close() { core.close() }

    /// A database of the larder, for models of one type. Sends nothing: the database is created by its first entry, and
    /// an impossible name is an error of the first call.
    ///
    /// All caches with one name share the connection and the near cache.
    /// - Parameters:
    ///   - name: nil for the client's own database.
    ///   - type: the model's type.
    ///   - codec: encodes the models. The default is JSON.
    public func cache<Value: Codable & Sendable>(
        _ name: String? = nil, of type: Value.Type = Value.self, codec: ModelCodec = .standard
    ) -> RemoteCache<Value> {
        RemoteCache(core: core, store: core.store(name ?? core.options.database), codec: codec)
    }

    // MARK: Any command

    /// Sends one command to the client's own database and returns the reply unchanged. A server's error is a value
    /// here, ``RESPValue/error(_:)``, and is not thrown.
    ///
    /// The daemon reports what a command changes to the near cache soon afterwards, not before this call returns.
    /// - Parameter words: the command's name and its arguments.
    /// - Throws: `invalidArgument` for commands that change the state of the connection, which others share: see
    ///   ``withConnection(_:)``.
    @discardableResult
    public func command(_ words: [String]) async throws(LarderClientError) -> RESPValue {
        try await command(bytes: words.map { Array($0.utf8) })
    }

    /// Like ``command(_:)-([String])``.
    @discardableResult
    public func command(_ words: String...) async throws(LarderClientError) -> RESPValue {
        try await command(bytes: words.map { Array($0.utf8) })
    }

    /// Like ``command(_:)-([String])``, for keys and values of any bytes.
    @discardableResult
    public func command(bytes words: [[UInt8]]) async throws(LarderClientError) -> RESPValue {
        try await core.own.commands([words], rules: .shared)[0]
    }

    /// Sends several commands at once and returns their replies, in the same order. Not atomic: commands of other
    /// clients may come in between. An error is a value in its command's place. Costs one round trip.
    public func pipeline(_ commands: [[[UInt8]]]) async throws(LarderClientError) -> [RESPValue] {
        try await core.own.commands(commands, rules: .shared)
    }

    /// Carries out several commands in one step (MULTI, EXEC), and returns their replies. No command of another client
    /// comes in between. A command that fails when it runs, such as INCR of a text, does not stop the others: its error
    /// is a value in its place.
    ///
    /// For models use ``RemoteCache/batch(_:)``, and for transactions that depend on what they read
    /// ``RemoteCache/transaction(watching:attempts:_:)``.
    /// - Throws: `server` when the daemon refuses one of the commands beforehand; then none was carried out.
    public func transaction(_ commands: [[[UInt8]]]) async throws(LarderClientError) -> [RESPValue] {
        try await core.own.transaction(commands)
    }

    /// Like ``transaction(_:)-([[[UInt8]]])``, for commands that are text.
    public func transaction(_ commands: [[String]]) async throws(LarderClientError) -> [RESPValue] {
        try await core.own.transaction(commands.map { $0.map { Array($0.utf8) } })
    }

    /// Checks that the daemon answers.
    public func ping() async throws(LarderClientError) { try await core.own.perform(.ping) }

    /// The statistics of a database's near cache; nil when there is none.
    /// - Parameter database: nil for the client's own.
    public func nearCacheStatistics(_ database: String? = nil) -> NearCacheStatistics? {
        core.store(database ?? core.options.database).near?.statistics
    }

    // MARK: The whole larder

    /// The databases of the larder, by name.
    public func databases() async throws(LarderClientError) -> [DatabaseInfo] { try await core.own.perform(.databases) }

    /// The daemon's `INFO`: lines of `name:value` under headings.
    /// - Parameter section: a single section, such as `memory`; nil for the usual ones.
    public func serverInfo(section: String? = nil) async throws(LarderClientError) -> String {
        try await core.own.perform(.serverInfo(section))
    }
}

extension LarderClient {
    /// The default path of the socket: the environment variable `LARDER_SOCKET` if it is set; else, for root,
    /// `/run/larder/larder.sock`; else `$XDG_RUNTIME_DIR/larder/larder.sock` if that variable is set; else
    /// `/tmp/larder-<uid>/larder.sock`. larderd has the same default. If nothing is there, and the variable is not set,
    /// `/run/larder/larder.sock` where that exists: the socket of the machine's service.
    public static var defaultSocketPath: String { DefaultSocket.clientPath }

    /// The longest path that a socket can have on this system, in bytes: 107 on Linux, 103 on macOS.
    public static var socketPathBytesMax: Int { UnixSocket.pathBytesMax }
}
