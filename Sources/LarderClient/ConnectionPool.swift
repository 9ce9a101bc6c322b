// Connections that one caller has for itself for a while.

import RESP
import Threading

/// Hands out connections, at most so many at a time; who comes then waits in line.
///
/// Thread-safe. The proof for `@unchecked Sendable`: mutable properties are touched only with `lock` held.
final class ConnectionPool: @unchecked Sendable {
    /// One who waits for a place. Touched only with the pool's lock held, which is the proof for `@unchecked Sendable`.
    private final class Waiter: @unchecked Sendable {
        var continuation: UnsafeContinuation<Bool, Never>?
        var isCancelled = false
        var isTimeout = false
        var timer: Task<Void, Never>?
    }

    private let settings: LinkSettings
    private let lock = Lock()
    private var free: Int
    private var idle: [Link] = []
    private var waiters = FIFO<Waiter>()
    private var isClosed = false

    init(_ settings: LinkSettings, max: Int) {
        self.settings = settings
        free = max
    }

    /// Waits for a place, and gives a connected link with its connection's number.
    func take() async throws(LarderClientError) -> (link: Link, number: Int) {
        try await takePlace()
        let kept = lock.withLock { idle.popLast() }
        if let kept {
            let number = kept.lock.withLock { kept.connectionNumber }
            if kept.isConnected(number) { return (kept, number) }
            kept.close()
        }
        let link = Link(settings)
        do throws(LarderClientError) {
            return (link, try await link.connected())
        } catch {
            giveBack(link, isClean: false)
            throw error
        }
    }

    /// - Parameter isClean: whether it is as a new one: nothing watched, no snapshot, no reply to come.
    func giveBack(_ link: Link, isClean: Bool) {
        let isKept = lock.withLock {
            guard isClean, !isClosed else { return false }
            idle.append(link)
            return true
        }
        if !isKept { link.close() }
        givePlaceBack()
    }

    func close() {
        let (links, waiting) = lock.withLock {
            isClosed = true
            defer { idle = [] }
            return (idle, waiters.elements)
        }
        for link in links { link.close() }
        for waiter in waiting { resume(waiter, false) }
    }

    // MARK: Places

    private func takePlace() async throws(LarderClientError) {
        let waiter = Waiter()
        let isGiven = await withTaskCancellationHandler {
            await withUnsafeContinuation { continuation in
                let answer: Bool? = lock.withLock {
                    if waiter.isCancelled || isClosed { return false }
                    if free > 0 {
                        free -= 1
                        return true
                    }
                    waiter.continuation = continuation
                    waiters.append(waiter)
                    waiter.timer = timer(for: waiter)
                    return nil
                }
                if let answer { continuation.resume(returning: answer) }
            }
        } onCancel: {
            resume(waiter, false)
        }
        let (wasClosed, isTimeout) = lock.withLock { () -> (Bool, Bool) in
            waiter.timer?.cancel()
            return (isClosed, waiter.isTimeout)
        }
        guard !isGiven else { return }
        if wasClosed {
            throw LarderClientError(
                .closed, "the client was closed", operation: "connect", socketPath: settings.socketPath)
        }
        if isTimeout {
            throw LarderClientError(
                .timeout,
                "all connections of their own (Options.ownConnectionsMax) were in use for \(settings.timeoutMilliseconds) ms",
                operation: "connect",
                socketPath: settings.socketPath)
        }
        throw LarderClientError(
            .cancelled, "the task was cancelled while it waited for a connection", operation: "connect")
    }

    /// Ends the waiting when the time of a call is over: those who have the places may all wait for a second one.
    private func timer(for waiter: Waiter) -> Task<Void, Never>? {
        guard settings.timeoutMilliseconds > 0 else { return nil }
        return Task { [weak self, limit = UInt64(settings.timeoutMilliseconds)] in
            guard (try? await Task.sleep(nanoseconds: limit * 1_000_000)) != nil else { return }
            self?.resume(waiter, false, isTimeout: true)
        }
    }

    private func givePlaceBack() {
        let next: UnsafeContinuation<Bool, Never>? = lock.withLock {
            while let waiter = waiters.popFirst() {
                guard let continuation = waiter.continuation else { continue }
                waiter.continuation = nil
                return continuation
            }
            free += 1
            return nil
        }
        next?.resume(returning: true)
    }

    private func resume(_ waiter: Waiter, _ answer: Bool, isTimeout: Bool = false) {
        let continuation = lock.withLock {
            if !waiter.isCancelled { waiter.isTimeout = isTimeout }
            waiter.isCancelled = true
            waiters.removeAll { $0 === waiter }
            defer { waiter.continuation = nil }
            return waiter.continuation
        }
        continuation?.resume(returning: answer)
    }
}

/// A connection that one caller has for itself: for `SNAPSHOT`, `WATCH`, `SELECT` and other commands that change what a
/// connection is. Valid inside ``LarderClient/withConnection(_:)``; afterwards every call throws `closed`.
///
/// It is never made again behind the caller's back: when it is lost, every later call throws `closed`.
///
/// Thread-safe: requests of several tasks go out one behind the other.
public final class OwnConnection: Sendable {
    let link: Link
    let number: Int

    init(link: Link, number: Int) {
        self.link = link
        self.number = number
    }

    /// Sends one command and gives the answer as it came; an error of the server is a value.
    @discardableResult
    public func command(_ words: String...) async throws(LarderClientError) -> RESPValue {
        try await pipeline([words.map { Array($0.utf8) }])[0]
    }

    /// As ``command(_:)``, for keys and values of any bytes.
    @discardableResult
    public func command(bytes words: [[UInt8]]) async throws(LarderClientError) -> RESPValue {
        try await pipeline([words])[0]
    }

    /// Sends several commands at once and gives their answers, in the same order. Nothing comes in between on this
    /// connection.
    public func pipeline(_ commands: [[[UInt8]]]) async throws(LarderClientError) -> [RESPValue] {
        guard !commands.isEmpty else { return [] }
        try CommandRules.own.check(commands)
        var bytes: [UInt8] = []
        for command in commands { RequestEncoder.encode(command, into: &bytes) }
        return try await link.perform(
            Exchange(bytes: bytes, replyCount: commands.count, name: commands[0][0], connectionNumber: number))
    }
}

extension LarderClient {
    /// Runs `body` with a connection of its own to the client's database, which is closed afterwards.
    ///
    /// ```swift
    /// let both = try await client.withConnection { connection in
    ///     try await connection.command("SNAPSHOT", "OPEN")
    ///     return [try await connection.command("GET", "a"), try await connection.command("GET", "b")]
    /// }
    /// ```
    /// Waits while ``Options/ownConnectionsMax`` of them are in use, for as long as a call may take.
    /// - Throws: what `body` throws, and `noDaemon`, `timeout` and the like when there is no connection to be had.
    public func withConnection<Result>(
        _ body: (OwnConnection) async throws -> Result
    ) async throws -> Result {
        let pool = core.own.ownConnections
        let (link, number) = try await pool.take()
        defer { pool.giveBack(link, isClean: false) }
        return try await body(OwnConnection(link: link, number: number))
    }
}
