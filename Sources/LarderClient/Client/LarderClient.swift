import LarderPlatform
import LarderRESP

@_exported import enum LarderRESP.RESPValue

/// A client of a running `larderd`, for processes other than the daemon that has the larder open.
///
/// ```swift
/// let client = try await LarderClient.connect()
/// let readers = client.cache("userdb", of: Reader.self)
/// try await readers.set(reader, forKey: "reader", policy: .middle)
/// let reader = try await readers.value(forKey: "reader")          // nil when absent or not fresh any more
/// ```
///
/// - Any number of tasks may use one client concurrently: their requests are pipelined over one connection for each
///   database. No call blocks a thread of Swift's cooperative pool.
/// - A lost connection is replaced, with exponential back-off and jitter. Calls wait for the new connection for up to
///   ``ClientOptions/reconnectPatienceMilliseconds``. A request is sent again if the daemon cannot have received it, or
///   if it only reads. A request that writes throws `closed` if its reply was lost, because it is unknown whether it
///   was executed.
/// - A call that is cancelled or has timed out throws `cancelled` or `timeout` immediately, or after it has encoded its
///   model. The connection stays usable, and a request that was sent may still be executed.
/// - Requests of one task are executed in order, because each waits for its reply. There is no order between tasks.
/// - Other servers that speak RESP can be used too, within the commands that they support.
///
/// Thread-safe. Programs without tasks, and tools, may use ``BlockingLarderClient``.
public final class LarderClient: Sendable {
    let core: ClientCore

    private init(core: ClientCore) { self.core = core }

    /// Connects to the daemon.
    /// - Parameters:
    ///   - socketPath: the daemon's socket; nil for ``defaultSocketPath``.
    ///   - options: see ``ClientOptions``.
    /// - Throws: `noDaemon` if nothing answers at the socket within ``ClientOptions/startPatienceMilliseconds``;
    ///   `untrusted` if the process at the socket belongs to another user (``ClientOptions/trustedUsers``);
    ///   `invalidArgument` for an invalid path or option; `server` if the daemon refuses the connection or the
    ///   database's name, or does not support CLIENT TRACKING for a requested near cache; `io` if the system refuses
    ///   (no permission to use the socket).
    public static func connect(socketPath: String? = nil, options: ClientOptions = ClientOptions())
        async throws(LarderClientError) -> LarderClient
    {
        let path = try ClientOptions.checkedPath(socketPath, options.timeoutMilliseconds)
        try options.check(path)
        let core = ClientCore(socketPath: path, options: options)
        try await core.store(options.database).links[0].connected(patience: options.startPatienceMilliseconds)
        return LarderClient(core: core)
    }

    /// The socket that this client is connected to.
    public var socketPath: String { core.socketPath }

    /// Closes all connections, including those of ``withConnection(_:)`` and transactions: waiting calls and all later
    /// calls throw `closed`, and subscriptions end. Idempotent. A client is closed automatically when the client, its
    /// caches and its subscriptions have no references left.
    public func close() { core.close() }

    /// Runs until ``shutdown()`` or ``close()`` is called or the task is cancelled, and then closes the client. After
    /// ``shutdown()`` it first waits for running calls, including their closures and ``withConnection(_:)``, for at most
    /// ``ClientOptions/timeoutMilliseconds``. Never throws; has the form that ServiceLifecycle's `Service` requires.
    public func run() async throws {
        await core.ending.wait()
        let limit = core.options.timeoutMilliseconds
        await EndSignal.poll(milliseconds: Int64(limit == 0 ? ClientOptions.timeoutMillisecondsMax : limit)) {
            core.isIdle
        }
        close()
    }

    /// Makes ``run()`` end gracefully, now or when it is called. Returns at once.
    public func shutdown() { core.ending.set() }

    /// Returns a cache for models of one type in a database of the larder. Sends nothing: the daemon creates the
    /// database when it stores the first entry, and the first call of the cache reports an invalid name.
    ///
    /// All caches of one database share the connection and the near cache.
    /// - Parameters:
    ///   - name: nil for the client's own database.
    ///   - type: the model's type.
    ///   - codec: encodes the models. The default is JSON.
    ///   - schema: the rules of the models. If they change what is read, the near cache keeps the models of each
    ///     returned cache separately, so keep the cache.
    public func cache<Value: Codable & Sendable>(
        _ name: String? = nil, of type: Value.Type = Value.self, codec: ModelCodec = .standard,
        schema: Schema<Value>? = nil
    ) -> RemoteCache<Value> {
        RemoteCache(
            core: core, store: core.store(name ?? core.options.database),
            codec: codec.following(schema.map { [$0] } ?? []))
    }

    // MARK: Any command

    /// Sends one command to the client's own database and returns the reply unchanged. An error of the server is
    /// returned as a value, ``RESPValue/error(_:)``, and is not thrown.
    ///
    /// The daemon notifies the near cache of the command's changes, possibly shortly after this call has returned.
    /// - Parameter words: the command's name and its arguments.
    /// - Throws: `invalidArgument` for commands that change the state of the shared connection: see
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

    /// Sends several commands together and returns their replies, in the same order. Not atomic: commands of other
    /// clients may run in between. If a command fails, its reply is the error, as a value. Costs one round trip.
    public func pipeline(_ commands: [[[UInt8]]]) async throws(LarderClientError) -> [RESPValue] {
        try await core.own.commands(commands, rules: .shared)
    }

    /// Executes several commands in one step (MULTI, EXEC), and returns their replies. No command of another client
    /// runs in between. If a command fails when it runs, such as INCR of a text, the other commands still run, and the
    /// reply of the failed command is the error, as a value.
    ///
    /// For models use ``RemoteCache/batch(_:)``, and for transactions that depend on their reads
    /// ``RemoteCache/transaction(watching:attempts:_:)``.
    /// - Throws: `server` if the daemon refuses one of the commands beforehand; none was executed in that case.
    public func transaction(_ commands: [[[UInt8]]]) async throws(LarderClientError) -> [RESPValue] {
        try await core.own.transaction(commands)
    }

    /// Like ``transaction(_:)-([[[UInt8]]])``, for commands that are text.
    public func transaction(_ commands: [[String]]) async throws(LarderClientError) -> [RESPValue] {
        try await core.own.transaction(commands.map { $0.map { Array($0.utf8) } })
    }

    /// Checks that the daemon answers.
    public func ping() async throws(LarderClientError) { try await core.own.perform(.ping) }

    /// Returns the statistics of a database's near cache; nil if there is none.
    /// - Parameter database: nil for the client's own.
    public func nearCacheStatistics(_ database: String? = nil) -> NearCacheStatistics? {
        core.store(database ?? core.options.database).near?.statistics
    }

    // MARK: Exclusive connections

    /// Runs `body` with an exclusive connection to the client's database, and closes the connection afterwards.
    ///
    /// ```swift
    /// let both = try await client.withConnection { connection in
    ///     try await connection.command("SNAPSHOT", "OPEN")
    ///     return [try await connection.command("GET", "a"), try await connection.command("GET", "b")]
    /// }
    /// ```
    /// If ``ClientOptions/ownConnectionsMax`` such connections are in use, the call waits for a free connection, for at
    /// most ``ClientOptions/timeoutMilliseconds``.
    /// - Throws: errors of `body`; `noDaemon`, `timeout` and similar errors if no connection can be made.
    @discardableResult
    public func withConnection<Result>(_ body: (OwnConnection) async throws -> Result) async throws -> Result {
        try await core.own.ownConnections.withOwnConnection(body)
    }
    // MARK: The whole larder

    /// Returns the databases of the larder, ordered by name.
    public func databases() async throws(LarderClientError) -> [DatabaseInfo] { try await core.own.perform(.databases) }

    /// Returns the daemon's `INFO`: lines of `name:value` under headings.
    /// - Parameter section: a single section, such as `memory`; nil for the default ones.
    public func serverInfo(section: String? = nil) async throws(LarderClientError) -> String {
        try await core.own.perform(.serverInfo(section))
    }
}

extension LarderClient {
    /// The default path of the socket, as in larderd. It is the first of these that applies: the environment variable
    /// `LARDER_SOCKET`; for root `/run/larder/larder.sock`; `$XDG_RUNTIME_DIR/larder/larder.sock` if that variable is
    /// set; `/tmp/larder-<uid>/larder.sock`. If that path does not exist and `LARDER_SOCKET` is not set, clients use
    /// `/run/larder/larder.sock`, the socket of the machine's service, if it exists.
    public static var defaultSocketPath: String { DefaultSocket.clientPath }

    /// The longest path that a socket can have on this system, in bytes: 107 on Linux, 103 on macOS.
    public static var socketPathBytesMax: Int { UnixSocket.pathBytesMax }
}
