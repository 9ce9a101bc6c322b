// Exclusive connections.

import LarderPlatform
import LarderRESP
import LarderWire
import Synchronization

/// Lends exclusive connections, a limited number at a time; further callers wait in order. Also creates the connections
/// of callers whose requests the daemon blocks.
///
/// Thread-safe.
final class ConnectionPool: Sendable {
    private let socketPath: String
    private let options: ClientOptions
    private let database: String?
    private let gate: ConnectionGate
    private let semaphore: AsyncSemaphore
    /// The idle connections, and those in use or being connected.
    private let state = Locked(State())

    private struct State {
        var idle: [Link] = []
        var taken: [ObjectIdentifier: Link] = [:]
        /// Those of ``taken`` on which subscribers wait for changes, which are no calls that end.
        var subscribed: Set<ObjectIdentifier> = []
        var isClosed = false
    }

    init(_ socketPath: String, _ database: String?, _ options: ClientOptions, _ gate: ConnectionGate) {
        (self.socketPath, self.options, self.database, self.gate) = (socketPath, options, database, gate)
        semaphore = AsyncSemaphore(options.ownConnectionsMax)
    }

    private var settings: LinkSettings { LinkSettings(socketPath, options, database: database, gate: gate) }

    /// Runs `body` with an exclusive connection. Afterwards the connection is kept for later callers if it is
    /// ``OwnConnection/isClean``, and closed otherwise.
    func withOwnConnection<Result>(_ body: (OwnConnection) async throws -> Result) async throws -> Result {
        let (link, number) = try await take()
        let connection = OwnConnection(link: link, number: number)
        defer {
            connection.end()
            giveBack(link, isClean: connection.isClean)
        }
        return try await body(connection)
    }

    /// Waits for a permit, and returns a connected link with its connection's number.
    private func take() async throws(LarderClientError) -> (link: Link, number: Int) {
        try await takePermit()
        if let kept = state.withLock({ $0.idle.popLast() }) {
            let number = kept.currentNumber
            if kept.isConnected(number) {
                note(kept)
                return (kept, number)
            }
            kept.close()
        }
        let link = Link(settings)
        note(link)
        do throws(LarderClientError) {
            return (link, try await link.connected())
        } catch {
            giveBack(link, isClean: false)
            throw error
        }
    }

    /// Registers a connection in use. Closes it if the client has been closed in the meantime.
    private func note(_ link: Link) {
        let isClosed = state.withLock { state in
            state.taken[ObjectIdentifier(link)] = link
            return state.isClosed
        }
        if isClosed { link.close() }
    }

    private func giveBack(_ link: Link, isClean: Bool) {
        let isKept = state.withLock { state in
            state.taken[ObjectIdentifier(link)] = nil
            guard isClean, !state.isClosed else { return false }
            state.idle.append(link)
            return true
        }
        if !isKept { link.close() }
        semaphore.giveBack()
    }

    /// Creates a connection on which the daemon may block a request, regardless of the limit. It must be closed with
    /// ``end(_:)``.
    /// - Parameters:
    ///   - milliseconds: how long the daemon may block the request; nil for no limit.
    ///   - isSubscribed: whether requests follow each other without end, so that a graceful end does not wait for them.
    func begin(waiting milliseconds: Int64?, isSubscribed: Bool = false) -> Link {
        var settings = settings
        if let milliseconds, settings.timeoutMilliseconds > 0 {
            settings.timeoutMilliseconds += Int(clamping: milliseconds)
        } else {
            settings.timeoutMilliseconds = 0
        }
        let link = Link(settings)
        if isSubscribed { state.withLock { _ = $0.subscribed.insert(ObjectIdentifier(link)) } }
        note(link)
        return link
    }

    func end(_ link: Link) {
        state.withLock { state in
            state.taken[ObjectIdentifier(link)] = nil
            state.subscribed.remove(ObjectIdentifier(link))
        }
        link.close()
    }

    /// Whether no connection is in use, except by subscribers.
    var isIdle: Bool { state.withLock { state in state.taken.keys.allSatisfy { state.subscribed.contains($0) } } }

    func close() {
        let links = state.withLock { state in
            state.isClosed = true
            defer { state.idle = [] }
            return state.idle + state.taken.values
        }
        for link in links { link.close() }
        semaphore.close()
    }

    private func takePermit() async throws(LarderClientError) {
        let limit = options.timeoutMilliseconds
        let (code, message): (LarderClientError.Code, String)
        switch await semaphore.take(limit: limit) {
        case .given: return
        case .closed: (code, message) = (.closed, "the client was closed")
        case .cancelled:
            (code, message) = (.cancelled, "the task was cancelled while it waited for a connection; nothing was sent")
        case .timeout:
            (code, message) = (
                .timeout,
                "all separate connections (ClientOptions.ownConnectionsMax) were in use for \(limit) ms"
            )
        }
        throw LarderClientError(code, message, operation: "connect", socketPath: socketPath)
    }
}

/// An exclusive connection, for `SNAPSHOT`, `WATCH`, `SELECT` and other commands that change the state of a connection.
/// Valid inside ``LarderClient/withConnection(_:)``; afterwards every call throws `closed`.
///
/// It is never replaced silently: after it is lost, every call throws `closed`.
///
/// Thread-safe: requests of several tasks are pipelined.
public final class OwnConnection: Sendable {
    let link: Link
    let number: Int
    /// Whether another caller can use the connection next: no key is watched, no snapshot is open and no reply is
    /// pending.
    var isClean: Bool {
        get { clean.load(ordering: .acquiring) }
        set { clean.store(newValue, ordering: .releasing) }
    }
    private let clean = Atomic(false)
    /// Whether ``end()`` was called. The connection may then belong to another caller.
    private let isOver = Atomic(false)

    init(link: Link, number: Int) { (self.link, self.number) = (link, number) }

    /// Makes every later call throw `closed`.
    func end() { isOver.store(true, ordering: .releasing) }

    static func overError(_ operation: String) -> LarderClientError {
        LarderClientError(
            .closed, "the connection can be used only in the body of the call that provided it, which has ended",
            operation: operation)
    }

    /// Performs a request. An error of the server is thrown.
    func perform<Result>(_ request: Request<Result>) async throws(LarderClientError) -> Result {
        try request.result(of: try await command(bytes: request.words))
    }

    /// Sends one command and returns the reply unchanged. An error of the server is returned as a value.
    @discardableResult
    public func command(_ words: String...) async throws(LarderClientError) -> RESPValue {
        try await pipeline([words.map { Array($0.utf8) }])[0]
    }

    /// Like ``command(_:)``, for keys and values of any bytes.
    @discardableResult
    public func command(bytes words: [[UInt8]]) async throws(LarderClientError) -> RESPValue {
        try await pipeline([words])[0]
    }

    /// Sends several commands together and returns their replies, in the same order. Nothing runs in between on this
    /// connection. `SELECT` must be the last command, because commands after a refused `SELECT` would run in the
    /// previous database.
    public func pipeline(_ commands: [[[UInt8]]]) async throws(LarderClientError) -> [RESPValue] {
        try CommandRules.own.check(commands)
        let name = commands.first.map { printableKey($0[0]) } ?? "pipeline"
        guard !isOver.load(ordering: .acquiring) else { throw Self.overError(name) }
        guard !commands.isEmpty else { return try link.nothing(name) }
        return try await link.perform(Exchange(commands, connectionNumber: number))
    }
}
