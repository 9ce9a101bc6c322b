@_exported import enum RESP.RESPValue

/// A connection to a running `larderd`, for processes other than the one that holds the larder.
///
/// ```swift
/// let client = try LarderClient(database: "userdb")
/// try client.set(reader, forKey: "reader", policy: .every(90))
/// let reader = try client.value(Reader.self, forKey: "reader")      // nil when absent or not fresh any more
/// ```
///
/// Every call blocks until the daemon has answered, so it does not belong on Swift's cooperative pool. It is one
/// connection, made when the client is made. When it was lost, the call that finds out throws, and the next one makes
/// a new connection and selects the database again. A request is sent a second time only when the daemon cannot have
/// seen any of it; a snapshot that was open on the lost connection is gone, and that call always throws.
///
/// Thread-safe: calls from several threads are carried out one after the other.
public final class LarderClient: Sendable {
    let session: ClientSession

    /// Where the socket is expected when no path is given: the environment variable `LARDER_SOCKET` if it is set;
    /// else, for root, `/run/larder/larder.sock`; else `$XDG_RUNTIME_DIR/larder/larder.sock` if that variable is set;
    /// else `/tmp/larder-<uid>/larder.sock`. larderd listens at the same place by default.
    public static var defaultSocketPath: String { DefaultSocket.path }

    /// The longest path that a socket can have on this system, in bytes: 107 on Linux, 103 on macOS.
    public static var socketPathBytesMax: Int { ClientConnection.pathBytesMax }

    /// The longest time limit: a day.
    public static let timeoutMillisecondsMax = 86_400_000

    /// Connects to the daemon.
    /// - Parameters:
    ///   - socketPath: the daemon's socket; nil for ``defaultSocketPath``.
    ///   - database: the database to use; nil for the server's default, `0`.
    ///   - timeoutMilliseconds: how long a call may wait while nothing moves in either direction, 1 to
    ///     ``timeoutMillisecondsMax``; 0 for no limit. A long answer that keeps coming is not cut off.
    /// - Throws: `noDaemon` when nothing answers there, `invalidArgument` for a path that is empty or too long, or a
    ///   time limit out of range, `server` when the daemon does not accept the connection or the database's name,
    ///   `io` when the system refuses (no permission to use the socket).
    public init(socketPath: String? = nil, database: String? = nil, timeoutMilliseconds: Int = 5_000)
        throws(LarderClientError)
    {
        let path = socketPath ?? Self.defaultSocketPath
        func refuse(_ message: String) -> LarderClientError {
            LarderClientError(.invalidArgument, message, operation: "connect", socketPath: path)
        }
        guard !path.isEmpty, !path.utf8.contains(0) else { throw refuse("a socket's path cannot be empty") }
        guard path.utf8.count <= Self.socketPathBytesMax else {
            throw refuse(
                "the socket's path has \(path.utf8.count) bytes, and at most \(Self.socketPathBytesMax) are possible: "
                    + path)
        }
        guard (0...Self.timeoutMillisecondsMax).contains(timeoutMilliseconds) else {
            throw refuse(
                "a time limit of \(timeoutMilliseconds) ms is not possible: it is 0 for none, or 1 to "
                    + "\(Self.timeoutMillisecondsMax)")
        }
        session = try ClientSession(socketPath: path, database: database, timeoutMilliseconds: timeoutMilliseconds)
    }

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
    public func ping() throws(LarderClientError) {
        let reply = try answer(["PING"])
        guard reply == .simpleString("PONG") else {
            throw LarderClientError.unexpectedReply(to: "PING", "PONG")
        }
    }

    // MARK: For the other files of this module

    /// The answer to one command; a server's error is a value.
    func reply(_ words: [[UInt8]]) throws(LarderClientError) -> RESPValue {
        let name = words.first.map { printableKey($0) } ?? "command"
        let replies = try session.perform([words], operation: name)
        guard replies.count == 1 else { throw LarderClientError.unexpectedReply(to: name, "one reply") }
        return replies[0]
    }

    /// The answer to one command; a server's error is thrown.
    func answer(_ words: [[UInt8]], key: [UInt8]? = nil) throws(LarderClientError) -> RESPValue {
        let reply = try reply(words)
        if let text = reply.errorMessage {
            let name = words.first.map { printableKey($0) } ?? "command"
            throw LarderClientError.server(text, operation: name, key: key.map { printableKey($0) })
        }
        return reply
    }

    func answer(_ words: [String]) throws(LarderClientError) -> RESPValue {
        try answer(words.map { Array($0.utf8) })
    }

    /// The answer to a command whose answer is an integer.
    func integer(_ words: [[UInt8]], key: [UInt8]? = nil) throws(LarderClientError) -> Int64 {
        let reply = try answer(words, key: key)
        guard case .integer(let number) = reply else {
            throw LarderClientError.unexpectedReply(
                to: words.first.map { printableKey($0) } ?? "command", "a number", key: key.map { printableKey($0) })
        }
        return number
    }
}
