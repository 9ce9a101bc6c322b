// Links to a daemon: what the asynchronous client adds to LarderWire's links.

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
        _ = try await perform(Exchange(bytes: [], replyCount: 0, name: Array("connect".utf8)), patience: patience)
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
