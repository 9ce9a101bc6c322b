// The layer between the calls of a client and its connection. A lost connection is replaced, and the same database is
// selected on the new one.

import LarderCommandCatalog
import LarderPlatform
import LarderRESP
import LarderWire

/// A connection that reconnects by itself. Performs one request or pipeline at a time.
///
/// Thread-safe. `@unchecked Sendable`: every mutable property is private and guarded by `lock`; the rest is constant.
final class BlockingSession: @unchecked Sendable {
    let socketPath: String
    let timeoutMilliseconds: Int
    private let password: String?
    private let trust: PeerTrust

    /// Interrupts waits on any connection of this session.
    let interruption: Interruption

    private let lock = Lock()
    private var connection: BlockingConnection?
    /// The database to select on every new connection; nil for the server's default.
    private var database: String?
    /// For each command that is queued in a transaction: the database, if the command is SELECT; otherwise nil.
    private var queued: [String?] = []
    /// Whether the connection has state that a new connection would lack, such as an open snapshot.
    private var carriesState = false
    private var isOver = false
    /// The kind of the server; nil until it is needed.
    private var kind: ServerKind?
    private var keepsPushes = false

    init(
        socketPath: String, password: String? = nil, database: String?, timeoutMilliseconds: Int,
        trust: PeerTrust = PeerTrust(), interruption: Interruption = Interruption()
    ) throws(LarderClientError) {
        self.trust = trust
        self.interruption = interruption
        self.socketPath = socketPath
        self.password = password
        self.database = database
        self.timeoutMilliseconds = timeoutMilliseconds
        connection = try connect()
    }

    /// Sends `requests` at once and returns their replies, in order. Connects if there is no connection.
    ///
    /// A request is sent again only if two conditions hold: the daemon had not received a byte of it when the
    /// connection was lost, and that connection had no state besides the selected database.
    func perform(_ requests: [[[UInt8]]], operation: String) throws(LarderClientError) -> [RESPValue] {
        guard !requests.isEmpty else { return try nothing(operation, []) }
        let bytes = try Self.encoded(requests)
        return try lock.withLock { () throws(LarderClientError) in
            try exchange(bytes, requests, operation: operation)
        }
    }

    /// Returns the result of a call that has nothing to request.
    /// - Throws: `closed` if the client was closed.
    func nothing<Result>(_ operation: String, _ result: Result) throws(LarderClientError) -> Result {
        try lock.withLock { () throws(LarderClientError) in try checkIsOpen(operation) }
        return result
    }

    /// Creates a separate connection to the same database.
    func another() throws(LarderClientError) -> BlockingSession {
        try BlockingSession(
            socketPath: socketPath, password: password, database: lock.withLock { database },
            timeoutMilliseconds: timeoutMilliseconds, trust: trust, interruption: interruption)
    }

    /// Returns the messages pushed between replies since the last call. Messages pushed before the first call are
    /// dropped.
    func takePushes() -> [RESPValue] {
        lock.withLock {
            keepsPushes = true
            connection?.keepsPushes = true
            defer { connection?.pushes = [] }
            return connection?.pushes ?? []
        }
    }

    /// The kind of the server; nil until it is needed.
    var knownServer: ServerKind? {
        get { lock.withLock { kind } }
        set { lock.withLock { kind = newValue } }
    }

    /// The selected database. It is selected again after a reconnect.
    var databaseName: String { lock.withLock { database ?? "0" } }

    /// Selects a database now and after each reconnect.
    func select(_ name: String) throws(LarderClientError) {
        let replies = try perform([[Array("SELECT".utf8), Array(name.utf8)]], operation: "SELECT")
        if let text = replies.first?.errorMessage { throw Handshake.notSelected(name, text) }
    }

    /// Closes the connection. Waits for another thread's running call.
    func close() {
        lock.withLock {
            connection = nil
            isOver = true
        }
    }

    /// Whether ``close()`` was called. Waits for another thread's running call.
    var isClosed: Bool { lock.withLock { isOver } }

    /// Sends requests on a connection of its own. Passes their replies, and then all lines or messages that follow, to
    /// `visit`.
    /// - Throws: errors of `visit`, or the reason why the connection ended.
    func stream(_ requests: [[[UInt8]]], operation: String, _ visit: (RESPValue) throws -> Void) throws -> Never {
        let bytes = try Self.encoded(requests)
        let connection = try lock.withLock { () throws(LarderClientError) in try connect() }
        var hasBegun = false
        do {
            interruption.begin(connection.descriptor)
            defer { interruption.end() }
            try connection.stream(bytes) { reply in
                hasBegun = true
                try visit(reply)
            }
        } catch let failure as WireFailure {
            if hasBegun, case .closed = failure.kind, failure.finalError == nil {
                throw LarderClientError(
                    .closed, "the daemon at \(socketPath) closed the connection: no more messages will arrive",
                    operation: operation,
                    socketPath: socketPath)
            }
            throw describe(failure, operation: operation)
        }
    }

    private static func encoded(_ requests: [[[UInt8]]]) throws(LarderClientError) -> [UInt8] {
        for request in requests { try CommandRules.checkLengths(request) }
        return RequestEncoder.encoded(requests)
    }

    // MARK: Called with `lock` held

    private func checkIsOpen(_ operation: String) throws(LarderClientError) {
        guard isOver else { return }
        throw LarderClientError(.closed, "the client was closed", operation: operation, socketPath: socketPath)
    }

    private func exchange(_ bytes: [UInt8], _ requests: [[[UInt8]]], operation: String) throws(LarderClientError)
        -> [RESPValue]
    {
        try checkIsOpen(operation)
        while true {
            let previous = connection
            let connection = if let previous { previous } else { try connect() }
            do throws(WireFailure) {
                let replies = try waiting(connection, bytes, requests.count)
                self.connection = connection
                remember(requests, replies)
                return replies
            } catch {
                let mayRetry = previous != nil && !carriesState
                self.connection = nil
                queued = []
                carriesState = false
                guard case .closedBeforeRequest = error.kind, error.finalError == nil, mayRetry else {
                    throw describe(error, operation: operation)
                }
            }
        }
    }

    /// Connects, requests RESP3 and selects the database.
    private func connect() throws(LarderClientError) -> BlockingConnection {
        let handshake = Handshake(HandshakeSetup(password: password, database: database))
        let connection: BlockingConnection
        let replies: [RESPValue]
        do throws(WireFailure) {
            connection = try BlockingConnection(
                path: socketPath, timeoutMilliseconds: timeoutMilliseconds, trust: trust)
            replies = try waiting(connection, handshake.bytes, handshake.replyCount)
        } catch {
            throw describe(error, operation: "connect")
        }
        try handshake.check(replies)
        connection.keepsPushes = keepsPushes
        return connection
    }

    private func waiting(_ connection: BlockingConnection, _ bytes: [UInt8], _ count: Int) throws(WireFailure)
        -> [RESPValue]
    {
        interruption.begin(connection.descriptor)
        defer { interruption.end() }
        return try connection.exchange(bytes, replies: count)
    }

    /// Updates the known state of the connection from the replies.
    private func remember(_ requests: [[[UInt8]]], _ replies: [RESPValue]) {
        for (request, reply) in zip(requests, replies) {
            guard let row = CommandMetadata.row(of: request) else {
                if reply == .simpleString("QUEUED") { queued.append(nil) }
                continue
            }
            if case .endsTransaction = row.effect { endTransaction(reply) }
            if case .error = reply { continue }
            let selected =
                row.effect == .selectsDatabase && request.count > 1
                ? String(validating: request[1], as: UTF8.self) : nil
            // The command is only queued: it takes effect with EXEC.
            if reply == .simpleString("QUEUED") {
                queued.append(selected)
                continue
            }
            switch row.effect {
            case .none, .endsTransaction, .closes, .endsDaemon: break
            case .selectsDatabase: database = selected
            case .resets:
                queued = []
                database = nil
                carriesState = false
            // A transaction that begins and ends in one exchange leaves no state.
            case .beginsTransaction: carriesState = carriesState || !Self.endsTransaction(requests)
            case .names, .introduces, .changesState, .silences, .streams: carriesState = true
            }
        }
    }

    /// Handles the reply to EXEC: an array with one reply for each queued command, or a sign that none was executed.
    private func endTransaction(_ reply: RESPValue) {
        // EXEC with the wrong number of words does not end the transaction.
        if reply.errorMessage?.hasPrefix("ERR wrong number") ?? false { return }
        for case (let name?, let reply) in zip(queued, reply.elements ?? []) where reply.errorMessage == nil {
            database = name
        }
        queued = []
    }

    private static func endsTransaction(_ requests: [[[UInt8]]]) -> Bool {
        guard let last = requests.last, let row = CommandMetadata.row(of: last) else { return false }
        return row.effect == .endsTransaction
    }

    private func describe(_ failure: WireFailure, operation: String) -> LarderClientError {
        failure.error(socketPath: socketPath, operation: operation, limit: timeoutMilliseconds)
    }
}

/// Interrupts a thread that waits on a connection, from another thread.
///
/// Thread-safe. `@unchecked Sendable`: the mutable properties are guarded by `lock`.
final class Interruption: @unchecked Sendable {
    private let lock = Lock()
    private var descriptor: CInt?
    private var isWanted = false

    /// Registers a wait on a connection, which must stay open until ``end()``.
    func begin(_ descriptor: CInt) {
        lock.withLock {
            self.descriptor = descriptor
            if isWanted { shutdown(descriptor, CInt(SHUT_RDWR)) }
        }
    }

    func end() { lock.withLock { descriptor = nil } }

    /// Shuts down the connection of the current wait, and of every wait that begins before ``forget()``.
    func interrupt() {
        lock.withLock {
            isWanted = true
            if let descriptor { shutdown(descriptor, CInt(SHUT_RDWR)) }
        }
    }

    func forget() { lock.withLock { isWanted = false } }
}
