@_exported import enum RESP.RESPValue

/// A connection to a running `larderd` whose calls block: for command-line tools and threads of one's own. Asynchronous
/// code uses ``LarderClient``.
///
/// ```swift
/// let client = try BlockingLarderClient(database: "userdb")
/// try client.set(reader, forKey: "reader", policy: .seconds(90))
/// let reader = try client.value(Reader.self, forKey: "reader")      // nil when absent or not fresh any more
/// ```
///
/// Every call blocks until the daemon has answered, so it does not belong on Swift's cooperative pool. It is one
/// connection, made when the client is made. When it was lost, the call that finds out throws, and the next one makes
/// a new connection and selects the database again. A request is sent a second time only when the daemon cannot have
/// seen any of it; a snapshot that was open on the lost connection is gone, and that call always throws.
///
/// Thread-safe: calls from several threads are carried out one after the other.
public final class BlockingLarderClient: Sendable {
    let session: BlockingSession
    let codec: ModelCodec

    /// Connects to the daemon.
    /// - Parameters:
    ///   - socketPath: the daemon's socket; nil for ``LarderClient/defaultSocketPath``.
    ///   - database: the database to use; nil for the server's default, `0`.
    ///   - password: the daemon's (`--password-file`); nil where it has none.
    ///   - timeoutMilliseconds: how long a call may wait while nothing moves in either direction, 1 to
    ///     ``ClientOptions/timeoutMillisecondsMax``; 0 for no limit. A long answer that keeps coming is not cut off.
    ///   - codec: how models become bytes. The default is JSON. Reading follows what the entry says of itself; only what a
    ///     custom codec wrote needs that codec again.
    ///   - trustedUsers: whose daemons are talked to besides those that always are: see
    ///     ``ClientOptions/trustedUsers``.
    /// - Throws: `noDaemon` when nothing answers there, `untrusted` when a stranger's process does, `invalidArgument` for a path that is empty or too long, or a
    ///   time limit out of range, `server` when the daemon does not accept the connection or the database's name,
    ///   `io` when the system refuses (no permission to use the socket).
    public init(
        socketPath: String? = nil, database: String? = nil, password: String? = nil, timeoutMilliseconds: Int = 5_000,
        codec: ModelCodec = .standard, trustedUsers: Set<UInt32> = []
    ) throws(LarderClientError) {
        let path = try SocketPath.checked(socketPath, timeoutMilliseconds)
        self.codec = codec
        session = try BlockingSession(
            socketPath: path, password: password, database: database, timeoutMilliseconds: timeoutMilliseconds,
            trust: PeerTrust(trustedUsers: trustedUsers))
    }

    /// The name of the database in use; `0` is the server's default.
    public var name: String { session.databaseName }

    /// The socket that this client is connected to.
    public var socketPath: String { session.socketPath }

    /// Ends the connection for good; every later call throws `closed`. Waits for a call that another thread is in.
    /// Calling it again does nothing. A client that is no longer referred to closes by itself.
    public func close() { session.close() }

    // MARK: Any command

    /// Sends one command and gives the answer as it came. An error that the server answers with is a value here,
    /// ``RESPValue/error(_:)``, and is not thrown.
    ///
    /// Replies are those of RESP3 where the server speaks it. Messages that the server pushes unasked are dropped.
    /// - Parameter words: the command's name and its arguments.
    @discardableResult
    public func command(_ words: [String]) throws(LarderClientError) -> RESPValue {
        try command(bytes: words.map { Array($0.utf8) })
    }

    /// As ``command(_:)-([String])``.
    @discardableResult
    public func command(_ words: String...) throws(LarderClientError) -> RESPValue {
        try command(words)
    }

    /// As ``command(_:)-([String])``, for keys and values of any bytes.
    @discardableResult
    public func command(bytes words: [[UInt8]]) throws(LarderClientError) -> RESPValue {
        try reply(words)
    }

    /// Sends several commands at once and gives their answers, in the same order. Not atomic: commands of other
    /// clients may come in between, and errors are values that stand at their command's place.
    ///
    /// Costs one round trip for all of them.
    public func pipeline(_ commands: [[[UInt8]]]) throws(LarderClientError) -> [RESPValue] {
        try session.perform(commands, operation: "pipeline")
    }

    /// Asks the daemon whether it is there.
    public func ping() throws(LarderClientError) { try perform(.ping) }

    // MARK: For the other files of this module

    /// The answer to one command; a server's error is a value.
    private func reply(_ words: [[UInt8]]) throws(LarderClientError) -> RESPValue {
        let name = words.first.map { printableKey($0) } ?? "command"
        let replies = try session.perform([words], operation: name)
        guard replies.count == 1 else { throw LarderClientError.unexpectedReply(to: name, "one reply") }
        return replies[0]
    }

    /// What the server is. Costs a round trip the first time.
    func server() throws(LarderClientError) -> ServerKind {
        if let server = session.knownServer { return server }
        var server = ServerKind()
        let refusal = try reply(wordList("POLICY")).errorMessage
        server.isLarder = refusal.map { !Handshake.isUnknownCommand($0) } ?? true
        session.knownServer = server
        return server
    }

    /// Carries out a request that is another one where the server is not a larderd: that is taken for granted until it
    /// refuses.
    func perform<Result>(_ request: (ServerKind) -> Request<Result>) throws(LarderClientError) -> Result {
        if let server = session.knownServer { return try perform(request(server)) }
        do throws(LarderClientError) {
            return try perform(request(ServerKind()))
        } catch {
            guard error.code == .server, try !server().isLarder else { throw error }
            return try perform(request(try server()))
        }
    }

    /// Carries out one request; a server's error is thrown.
    func perform<Result>(_ request: Request<Result>) throws(LarderClientError) -> Result {
        try request.result(of: try reply(request.words))
    }
}
