// One pipelined connection, replaced after a loss. Many tasks use it at the same time.
//
//      task                             link, with its lock held                     loop thread
//      perform ──▶ submit ──▶ ready:  outgoing + pending ──▶ send (this thread)
//                         └─▶ else:   waiting ───────────────────────────────▶ prepare: connects, hands over
//      resumed ◀── resolve ◀── the first of pending takes the replies in order ◀── act: receives, parses
//
// - The requests of one exchange are sent together; replies arrive in the order of the requests.
// - If a caller stops waiting (cancelled, timed out), its exchange stays in `pending` and drops its replies when they
//   arrive. So the replies of later exchanges still match their requests.
// - Continuations are resumed, and `events` called, without the lock held.

import LarderPlatform
import LarderRESP
import LarderWire

extension SocketLoop {
    /// The one thread that reads from all connections of the process's asynchronous clients. It starts with the first
    /// client, and runs until the process exits.
    static let client = SocketLoop(name: "larder-client")
}

/// Receives the events of a link. Called on the loop's thread, in the order of arrival: a message pushed before a reply
/// is delivered before the caller gets that reply. Must not block.
protocol LinkEvents: AnyObject, Sendable {
    /// A connection is ready; only the handshake was sent on it.
    func linkIsReady(_ link: Link)
    /// The connection was lost.
    func linkWasLost(_ link: Link)
    func link(_ link: Link, pushed message: [RESPValue])
}

/// The settings of a link. A value type.
struct LinkSettings: Sendable {
    var socketPath: String
    /// Decides which daemons are trusted.
    var trust = PeerTrust()
    var password: String?
    var database: String?
    /// The time limit of an exchange, in milliseconds; 0 for no limit.
    var timeoutMilliseconds: Int
    /// How long an exchange waits for a lost connection to be replaced, in milliseconds.
    var patienceMilliseconds: Int
    /// Whether the server must report changes of keys that were read on this connection.
    var tracks = false
    /// Whether the server must push a key when another client's fetch of the key ends, to wake callers here.
    var pushesFetchResults = false
    /// Whether to replace a lost connection even without waiting callers.
    var staysConnected = false
    /// The gate at which a new connection waits; nil for none.
    var gate: ConnectionGate?
}

/// A connection that is replaced after a loss: see the top of this file.
///
/// Thread-safe. `@unchecked Sendable`: `parser` is used only on the loop's thread; every other mutable property is
/// guarded by `lock`.
final class Link: GatedConnection, LoopMember, @unchecked Sendable {
    enum State {
        /// Not connected, and no caller needs a connection.
        case idle
        /// Connected; the replies to the handshake are pending.
        case greeting
        /// Connected, with the handshake done; requests wait for the ``LinkSettings/gate``, at most until the given
        /// time.
        case held(until: Int64)
        case ready
        /// Backing off until the given time, in monotonic milliseconds.
        case resting(until: Int64)
        case closed
    }

    let settings: LinkSettings
    let lock = Lock()

    // MARK: Guarded by `lock`

    private weak var events: (any LinkEvents)?
    var state = State.idle
    var socket: StreamSocket?
    /// The number of the current connection; exchanges may be bound to it.
    var connectionNumber = 0
    var server: ServerKind?
    /// Exchanges waiting for a connection.
    var waiting = Deque<Exchange>()
    /// Sent exchanges with pending replies, in the order of sending.
    var pending = Deque<Exchange>()
    /// Bytes not yet passed to the system.
    var outgoing = Deque<[UInt8]>()
    /// The number of bytes of the first element of `outgoing` that were sent.
    var sentOfFirst = 0
    /// The offset at which the next exchange's bytes start on this connection.
    var end = 0
    /// The number of bytes of this connection that were passed to the system, or are being passed.
    var handedOver = 0
    var isSending = false
    /// Whether the socket's send buffer is full. The loop sends the rest when the socket is writable.
    var isFull = false
    /// The failure that occurred while sending. The loop handles it.
    var sendFailure: WireFailure?
    /// When to check for expired exchanges, in monotonic milliseconds. No exchange expires earlier.
    var nextCheck = Int64.max
    var greetingEnd = Int64.max
    var handshake: Handshake?
    var handshakeReplies: [RESPValue] = []
    var lastReceived: Int64 = 0
    var connectedAt: Int64 = 0
    /// The number of failed attempts and short connections since the last connection that lasted at least a second.
    var failures = 0
    var lastFailure: LarderClientError?
    var isServed = false

    // MARK: On the loop's thread

    var parser = ReplyParser()
    var receivedBytes = 0

    init(_ settings: LinkSettings) { self.settings = settings }

    /// Sets the receiver of events. The link has only a weak reference to it.
    func attach(_ events: any LinkEvents) { lock.withLock { self.events = events } }

    func reportReady() { lock.withLock { events }?.linkIsReady(self) }
    func reportLost() { lock.withLock { events }?.linkWasLost(self) }
    func notify(_ message: [RESPValue]) { lock.withLock { events }?.link(self, pushed: message) }

    // MARK: For callers

    /// Sends the exchange's requests, and returns their replies.
    /// - Parameter patience: how long the exchange waits for a connection, in milliseconds; nil for the value in the
    ///   settings.
    /// - Throws: `cancelled` if the task was cancelled, `timeout`, `closed`, `noDaemon`, and the server's error if it
    ///   refuses the connection. Error replies are returned as values.
    func perform(_ exchange: Exchange, patience: Int? = nil) async throws(LarderClientError) -> [RESPValue] {
        let outcome = await withTaskCancellationHandler {
            await withUnsafeContinuation { submit(exchange, patience: patience, $0) }
        } onCancel: {
            cancel(exchange)
        }
        return try outcome.get()
    }

    /// Waits until there is a connection.
    /// - Returns: its number.
    @discardableResult
    func connected(patience: Int? = nil) async throws(LarderClientError) -> Int {
        _ = try await perform(Exchange(bytes: [], replyCount: 0, name: Array("connect".utf8)), patience: patience)
        return lock.withLock { connectionNumber }
    }

    /// Returns the replies to an empty list of requests, without sending anything.
    /// - Throws: `closed` if the link was closed, like any request.
    func nothing(_ operation: String) throws(LarderClientError) -> [RESPValue] {
        if isClosed { throw closedError(operation) }
        return []
    }

    /// Whether ``close()`` was called.
    var isClosed: Bool { lock.withLock { if case .closed = state { true } else { false } } }

    /// The kind of the server; nil before the first connection.
    var knownServer: ServerKind? { lock.withLock { server } }

    /// Returns whether the connection with that number is still open.
    func isConnected(_ number: Int) -> Bool {
        lock.withLock {
            if case .ready = state { connectionNumber == number } else { false }
        }
    }

    /// Closes the link; waiting callers get an error. Idempotent.
    func close() {
        let isServed = lock.withLock {
            state = .closed
            return self.isServed
        }
        if isServed { SocketLoop.client.wake() }
    }

    /// Connects now if there is no connection, without waiting for it.
    func open() {
        serveIfNeeded()
        SocketLoop.client.wake()
    }

    /// Ends the back-off before the next attempt to connect.
    func retryNow() {
        change { if case .resting = $0 { .resting(until: 0) } else { nil } }
    }

    /// Ends the wait for the gate.
    func release() {
        change { if case .held = $0 { .held(until: 0) } else { nil } }
    }

    /// Replaces the state with the result of `next` and wakes the loop. Does nothing if the result is nil.
    private func change(_ next: (State) -> State?) {
        let isChanged = lock.withLock {
            guard let next = next(state) else { return false }
            state = next
            return true
        }
        if isChanged { SocketLoop.client.wake() }
    }

    private func serveIfNeeded() {
        let isNew = lock.withLock {
            defer { isServed = true }
            return !isServed
        }
        if isNew { SocketLoop.client.add(self) }
    }

    /// Sends the exchange's requests after all earlier requests. The outcome is ignored unless it is awaited with
    /// ``outcome(of:)``.
    func post(_ exchange: Exchange) { submit(exchange, patience: nil, nil) }

    /// Waits for the outcome of a posted exchange. Errors as for ``perform(_:patience:)``.
    func outcome(of exchange: Exchange) async throws(LarderClientError) -> [RESPValue] {
        let outcome = await withTaskCancellationHandler {
            await withUnsafeContinuation { (continuation: UnsafeContinuation<Exchange.Outcome, Never>) in
                let outcome: Exchange.Outcome? = lock.withLock {
                    if let outcome = exchange.outcome { return outcome }
                    if exchange.isResolved { return .failure(cancellation(exchange)) }
                    exchange.continuation = continuation
                    return nil
                }
                if let outcome { continuation.resume(returning: outcome) }
            }
        } onCancel: {
            cancel(exchange)
        }
        return try outcome.get()
    }

    private func submit(
        _ exchange: Exchange, patience: Int?, _ continuation: UnsafeContinuation<Exchange.Outcome, Never>?
    ) {
        let now = MonotonicClock.milliseconds()
        lock.lock()
        exchange.continuation = continuation
        if settings.timeoutMilliseconds > 0 { exchange.deadline = now + Int64(settings.timeoutMilliseconds) }
        exchange.patienceEnd = now + Int64(patience ?? settings.patienceMilliseconds)
        var outcome: Exchange.Outcome?
        var wakes = false
        if exchange.isResolved {
            // The caller was cancelled before the exchange was submitted.
            outcome = .failure(cancellation(exchange))
        } else if case .closed = state {
            outcome = .failure(closedError(exchange.operation))
        } else if let number = exchange.connectionNumber, !isCurrent(number) {
            outcome = .failure(error(.init(.closedBeforeRequest), exchange))
        } else if case .ready = state {
            if exchange.replyCount == 0, exchange.bytes.isEmpty {
                outcome = .success([])
            } else {
                enqueue(exchange)
                wakes = lower(exchange.deadline)
                wakes = send() || wakes
            }
        } else {
            waiting.append(exchange)
            _ = lower(min(exchange.deadline, exchange.patienceEnd))
            wakes = true
        }
        if outcome != nil {
            exchange.isResolved = true
            exchange.continuation = nil
            exchange.outcome = outcome
        }
        let isNew = !isServed && outcome == nil
        if isNew { isServed = true }
        lock.unlock()
        if isNew {
            SocketLoop.client.add(self)
        } else if wakes {
            SocketLoop.client.wake()
        }
        if let outcome { continuation?.resume(returning: outcome) }
    }

    private func cancel(_ exchange: Exchange) {
        let (continuation, error) = lock.withLock {
            // An exchange that was resolved before has no continuation. If the exchange is not submitted yet, `submit`
            // finds it resolved.
            exchange.isResolved = true
            defer { exchange.continuation = nil }
            return (exchange.continuation, cancellation(exchange))
        }
        continuation?.resume(returning: .failure(error))
    }

    // MARK: Called with `lock` held

    private func isCurrent(_ number: Int) -> Bool {
        if case .ready = state { connectionNumber == number } else { false }
    }

    /// Moves the next check to `deadline` if `deadline` is earlier.
    /// - Returns: whether the loop must be woken, because it would otherwise wait too long.
    func lower(_ deadline: Int64) -> Bool {
        guard deadline < nextCheck else { return false }
        nextCheck = deadline
        return true
    }

    func enqueue(_ exchange: Exchange) {
        exchange.mayHaveReachedServer = true
        exchange.start = end
        end += exchange.bytes.count
        pending.append(exchange)
        outgoing.appendBytes(exchange.bytes)
    }

    /// Passes outgoing bytes to the system, as many as it accepts. If another thread is doing so, that thread sends
    /// these bytes too. Releases the lock while it sends.
    /// - Returns: whether the loop must send the rest.
    func send() -> Bool {
        guard !isSending, !isFull, sendFailure == nil, let socket else { return false }
        isSending = true
        let number = connectionNumber
        // Stop after 64 chunks, so that one caller does not keep sending the requests of all others.
        for _ in 0..<64 {
            guard let chunk = outgoing.popFirst() else {
                isSending = false
                return false
            }
            let start = sentOfFirst
            handedOver += chunk.count - start
            lock.unlock()
            var sent = 0
            var failure: WireFailure?
            do throws(WireFailure) {
                sent = try socket.sendSome(chunk, from: start)
            } catch {
                failure = error
            }
            lock.lock()
            // The connection was replaced in the meantime, and the new connection must not be touched.
            guard number == connectionNumber, self.socket === socket else { return false }
            handedOver -= chunk.count - start - sent
            if let failure {
                sendFailure = failure
                isSending = false
                return true
            }
            if start + sent < chunk.count {
                outgoing.pushFront(chunk)
                sentOfFirst = start + sent
                isFull = true
                isSending = false
                return true
            }
            sentOfFirst = 0
        }
        isSending = false
        isFull = true
        return true
    }

    // MARK: Errors

    func error(_ failure: WireFailure, _ exchange: Exchange) -> LarderClientError {
        failure.error(
            socketPath: settings.socketPath, operation: exchange.operation, limit: settings.timeoutMilliseconds)
    }

    func closedError(_ operation: String) -> LarderClientError {
        LarderClientError(.closed, "the client was closed", operation: operation, socketPath: settings.socketPath)
    }

    private func cancellation(_ exchange: Exchange) -> LarderClientError {
        LarderClientError(
            .cancelled,
            exchange.mayHaveReachedServer
                ? "the task was cancelled; it is unknown whether the request was executed"
                : "the task was cancelled before the request was sent; it was not executed",
            operation: exchange.operation)
    }
}
