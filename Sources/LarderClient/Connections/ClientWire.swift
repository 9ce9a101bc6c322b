// Links to a daemon: what the client adds to LarderWire. The errors for connections, and the check of a socket's path.

import LarderPlatform
import LarderRESP
import LarderWire

extension SocketLoop {
    /// The one thread that reads from all connections of the process's asynchronous clients. It starts with the first
    /// client, and runs until the process exits.
    static let client = SocketLoop(name: "larder-client")
}

extension LinkSettings {
    init(_ socketPath: String, _ options: ClientOptions, database: String?, gate: ConnectionGate? = nil) {
        self.init(.unix(path: socketPath))
        trust = PeerTrust(trustedUsers: options.trustedUsers)
        setup = HandshakeSetup(password: options.password, database: database)
        setup.asksForKind = true
        timeoutMilliseconds = options.timeoutMilliseconds
        patienceMilliseconds = options.reconnectPatienceMilliseconds
        self.gate = gate
        if let hooks = CallHooks(options.onMeasurement, options.onCall) {
            let database = database ?? DatabaseStore.standardName
            onExchange = { hooks.begin("larder.client", printableKey($0), database) }
        }
    }

    var socketPath: String { if case .unix(let path) = endpoint { path } else { "" } }
}

extension Link {
    convenience init(_ settings: LinkSettings) { self.init(settings, on: .client) }

    /// Sends the exchange's requests, and returns their replies.
    /// - Parameter patience: how long the exchange waits for a connection, in milliseconds; nil for the value in the
    ///   settings.
    /// - Throws: `cancelled` if the task was cancelled, `timeout`, `closed`, `noDaemon`, and the server's error if it
    ///   refuses the connection. Error replies are returned as values.
    func perform(_ exchange: Exchange, patience: Int? = nil) async throws(LarderClientError) -> [RESPValue] {
        guard let end = settings.onExchange?(exchange.name) else { return try await send(exchange, patience) }
        do throws(LarderClientError) {
            let replies = try await send(exchange, patience)
            let refusal = replies.count == 1 ? replies[0].errorMessage : nil
            end(refusal.map { LarderClientError.server($0, operation: printableKey(exchange.name)) })
            return replies
        } catch {
            end(error)
            throw error
        }
    }

    private func send(_ exchange: Exchange, _ patience: Int?) async throws(LarderClientError) -> [RESPValue] {
        let outcome = await withTaskCancellationHandler {
            await withUnsafeContinuation { submit(exchange, patience: patience, .continuation($0)) }
        } onCancel: {
            cancel(exchange)
        }
        return try replies(outcome, exchange)
    }

    /// Waits until there is a connection.
    /// - Returns: its number.
    @discardableResult
    func connected(patience: Int? = nil) async throws(LarderClientError) -> Int {
        let limit = settings.timeoutMilliseconds
        let exchange = Exchange(
            bytes: [], replyCount: 0, name: Array("connect".utf8),
            timeoutMilliseconds: limit == 0 ? 0 : limit + (patience ?? 0))
        _ = try await perform(exchange, patience: patience)
        return currentNumber
    }

    /// Returns the replies to an empty list of requests, without sending anything.
    /// - Throws: `closed` if the link was closed, like any request.
    func nothing(_ operation: String) throws(LarderClientError) -> [RESPValue] {
        if isClosed { throw error(WireFailure(.closedByClient), operation) }
        return []
    }

    /// Waits for the outcome of a submitted exchange. Errors as for ``perform(_:patience:)``.
    func outcome(of exchange: Exchange) async throws(LarderClientError) -> [RESPValue] {
        let outcome = await withTaskCancellationHandler {
            await withUnsafeContinuation { attach(.continuation($0), to: exchange) }
        } onCancel: {
            cancel(exchange)
        }
        return try replies(outcome, exchange)
    }

    private func replies(_ outcome: Exchange.Outcome, _ exchange: Exchange) throws(LarderClientError) -> [RESPValue] {
        do throws(WireFailure) { return try outcome.get() } catch {
            throw self.error(error, printableKey(exchange.name))
        }
    }

    private func error(_ failure: WireFailure, _ operation: String) -> LarderClientError {
        if case .refused(let refusal) = failure.kind {
            return refusal.error(database: settings.setup.database, operation: operation)
        }
        return failure.error(
            socketPath: settings.socketPath, operation: operation, limit: settings.timeoutMilliseconds)
    }
}

extension WireFailure {
    /// Returns the error for callers.
    /// - Parameter limit: the time limit, in milliseconds, for the message.
    func error(socketPath: String, operation: String, limit: Int) -> LarderClientError {
        if let finalError { return .server(finalError, operation: operation) }
        let (code, message): (LarderClientError.Code, String)
        switch kind {
        case .noDaemon:
            code = .noDaemon
            message = SocketAdvice.noDaemon(socketPath)
        case .notASocket:
            code = .noDaemon
            message = SocketAdvice.notASocket(socketPath)
        case .untrusted(let text): (code, message) = (.untrusted, text)
        case .timeout:
            code = .timeout
            message = "the daemon at \(socketPath) did not answer within \(limit) ms"
        case .closedByClient: (code, message) = (.closed, "the client was closed")
        case .cancelled(let mayHaveReachedServer):
            return LarderClientError(
                .cancelled,
                mayHaveReachedServer
                    ? "the task was cancelled; it is unknown whether the request was executed"
                    : "the task was cancelled before the request was sent; it was not executed",
                operation: operation)
        case .refused(let refusal): return refusal.error(database: nil, operation: operation)
        // Links to a daemon have no host names and no TLS.
        case .unresolved(let text), .dropped(let text): (code, message) = (.io, text)
        case .closedBeforeRequest:
            code = .closed
            message = "the daemon at \(socketPath) had closed the connection; the request was not sent"
        case .closed:
            code = .closed
            message =
                "the daemon at \(socketPath) closed the connection before it answered; "
                + "it is unknown whether the request was executed"
        case .protocolViolation(let text):
            code = .protocolViolation
            message = "the server at \(socketPath) does not use larderd's protocol: \(text)"
        case .system("connect", EACCES), .system("connect", EPERM):
            code = .io
            message = SocketAdvice.noPermission(socketPath)
        case .system(let call, let number):
            code = .io
            message = "\(call) failed for \(socketPath): \(SystemErrorText.of(number))"
        }
        return LarderClientError(code, message, operation: operation, socketPath: socketPath)
    }
}

extension HandshakeSetup {
    init(password: String?, database: String?) {
        self.init()
        self.password = { password.map { Array($0.utf8) } }
        self.database = database
    }
}

extension Handshake {
    /// Checks the replies, ``replyCount`` of them.
    /// - Throws: the error with which the server refuses the client. A server without `HELLO` is used with RESP2.
    func check(_ replies: [RESPValue]) throws(LarderClientError) {
        var handshake = self
        for reply in replies {
            do throws(Refusal) { _ = try handshake.take(reply) } catch { throw error.error(database: setup.database) }
        }
    }

    /// Returns the error for a database that the server refuses to select.
    static func notSelected(_ database: String, _ refusal: String, operation: String = "SELECT") -> LarderClientError {
        var message = "the database '\(printableKey(database.utf8))' cannot be selected: \(refusal)"
        // Redis's text does not mention the valid range.
        if refusal.contains("DB index") || refusal.contains("not an integer") {
            message +=
                "; valid names are the numbers 0 to 15 and, in larderd, names of 1 to 64 characters of a-z, 0-9, '.', '_' "
                + "and '-'"
        }
        return LarderClientError(.server, message, operation: operation, serverText: refusal)
    }
}

extension Handshake.Refusal {
    func error(database: String?, operation: String? = nil) -> LarderClientError {
        if step == .database, let database {
            return Handshake.notSelected(database, text, operation: operation ?? step.rawValue)
        }
        return .server(text, operation: operation ?? (step == .tracking ? step.rawValue : "connect"))
    }
}

extension ClientOptions {
    /// Returns the given path of a socket, or the default path for nil, if the path and the time limit are valid.
    static func checkedPath(_ socketPath: String?, _ timeoutMilliseconds: Int) throws(LarderClientError) -> String {
        let path = socketPath ?? DefaultSocket.clientPath
        func refuse(_ message: String) -> LarderClientError {
            LarderClientError(.invalidArgument, message, operation: "connect", socketPath: path)
        }
        guard !path.isEmpty else { throw refuse("a socket's path cannot be empty") }
        guard !path.utf8.contains(0) else { throw refuse("a socket's path cannot contain a zero byte") }
        guard path.utf8.count <= UnixSocket.pathBytesMax else {
            throw refuse(
                "the socket's path has \(path.utf8.count) bytes, and at most \(UnixSocket.pathBytesMax) are allowed: "
                    + "\(path); start the daemon with a shorter one, larderd --socket PATH, and use that here")
        }
        guard (0...ClientOptions.timeoutMillisecondsMax).contains(timeoutMilliseconds) else {
            throw refuse(
                "the time limit is \(timeoutMilliseconds) ms, and must be 0 for none, or 1 to "
                    + "\(ClientOptions.timeoutMillisecondsMax)")
        }
        return path
    }
}
