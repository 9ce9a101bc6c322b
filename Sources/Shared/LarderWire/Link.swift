// One pipelined connection, replaced after a loss. Many tasks use it at the same time.
//
//      task                             link, with its lock held                     loop thread
//      caller  ──▶ submit ──▶ ready:  outgoing + pending ──▶ send (this thread)
//                         └─▶ else:   waiting ───────────────────────────────▶ prepare: connects, hands over
//      resumed ◀── resolve ◀── the first of pending takes the replies in order ◀── act: receives, parses
//
// - The requests of one exchange are sent together; replies arrive in the order of the requests.
// - If a caller stops waiting (cancelled, timed out), its exchange stays in `pending` and drops its replies when they
//   arrive. So the replies of later exchanges still match their requests.
// - Waiters are resumed, and `events` called, without the lock held.
// - With ``LinkSettings/marksBatches``, the requests of one turn of the loop are followed by a *marker*, ECHO of a
//   number. Their exchanges end when its reply arrives: then no reply was lost or added, and each belongs to its
//   request.

import LarderPlatform
import LarderRESP
import Synchronization

/// Receives the events of a link. Called on the loop's thread, in the order of arrival: a message pushed before a reply
/// is delivered before the caller gets that reply. Must not block.
package protocol LinkEvents: AnyObject {
    /// A connection is ready; only the handshake was sent on it.
    func linkIsReady(_ link: Link)
    /// A connection that was ready was lost.
    func linkWasLost(_ link: Link)
    /// A connection was lost, ready or not, or could not be made.
    func link(_ link: Link, failed failure: WireFailure)
    func link(_ link: Link, pushed message: [RESPValue])
}

extension LinkEvents {
    package func linkWasLost(_ link: Link) {}
    package func link(_ link: Link, failed failure: WireFailure) {}
}

/// The address of a server.
package enum LinkEndpoint {
    case unix(path: String)
    /// A host name or an IP address without brackets, and a port.
    case tcp(host: String, port: UInt16)
}

/// The settings of a link. A value type.
package struct LinkSettings {
    package var endpoint: LinkEndpoint
    /// Decides which processes are trusted at a Unix-domain socket; nil to trust any.
    package var trust: PeerTrust?
    /// Creates the TLS layer of a connection, or nil if that fails. Links without TLS have no such closure. Needs
    /// ``submitsOnLoop``.
    package var layer: (() -> (any SocketLayer)?)?
    package var setup = HandshakeSetup()
    /// The time limit of an exchange, in milliseconds; 0 for no limit.
    package var timeoutMilliseconds = 0
    /// The time limit for connecting, including the handshake; nil for that of an exchange.
    package var connectMilliseconds: Int?
    /// How long an exchange waits for a lost connection to be replaced, in milliseconds.
    package var patienceMilliseconds = 0
    /// Whether to replace a lost connection even without waiting callers.
    package var staysConnected = false
    /// The gate at which a new connection waits; nil for none.
    package var gate: ConnectionGate?
    package var limits = RESPLimits()
    /// Called at the beginning of an exchange, with its name, if the program observes calls. Returns a closure for its
    /// end. The owner of the link calls it.
    package var onExchange: (@Sendable ([UInt8]) -> @Sendable ((any Error)?) -> Void)?
    /// Whether to try again every 2 milliseconds while the server's backlog of new connections is full, instead of
    /// losing the connection.
    package var waitsForBacklog = true
    /// Whether strings longer than the limit are dropped, instead of ending the connection.
    package var skipsLongStrings = false
    /// Whether all exchanges are submitted on the loop's thread. Their bytes are then sent together, before the loop
    /// waits.
    package var submitsOnLoop = false
    /// Whether markers prove that replies belong to their requests, even if the connection goes through a faulty proxy
    /// (see the top of the file). Needs ``submitsOnLoop``. A server that refuses ECHO gets no markers.
    package var marksBatches = false
    /// Returns the back-off before the next attempt to connect, in milliseconds, from the number of previous failures.
    package var backOff: (_ failures: Int, WireFailure) -> Int64 = { failures, _ in
        Link.rest(afterFailures: failures)
    }

    package init(_ endpoint: LinkEndpoint) { self.endpoint = endpoint }
}

/// A connection that is replaced after a loss: see the top of this file.
///
/// Thread-safe. `@unchecked Sendable`: the last properties are used only on the loop's thread; every other mutable
/// property is guarded by `lock`.
package final class Link: @unchecked Sendable {
    enum State {
        /// Not connected, and no caller needs a connection.
        case idle
        /// Connecting, or waiting for the replies to the handshake.
        case greeting
        /// Connected, with the handshake done; requests wait for the ``LinkSettings/gate``, at most until the given
        /// time.
        case held(until: Int64)
        case ready
        /// Backing off until the given time, in monotonic milliseconds.
        case resting(until: Int64)
        case closed
    }

    package let settings: LinkSettings
    let loop: SocketLoop
    let lock = Lock()

    // MARK: Guarded by `lock`

    private weak var events: (any LinkEvents)?
    var state = State.idle
    var socket: StreamSocket?
    var isConnected = false
    /// The TLS layer of the connection; nil for none.
    var layer: (any SocketLayer)?
    /// The bytes from the layer that are being sent. The system has accepted the first `encryptedSent` of them.
    var encrypted: [UInt8] = []
    var encryptedSent = 0
    /// The number of the current connection; exchanges may be bound to it.
    var connectionNumber = 0
    var server: ServerKind?
    var waiting = Deque<Exchange>()
    /// Sent exchanges with pending replies, in the order of sending.
    var pending = Deque<Exchange>()
    /// Exchanges whose replies have arrived, but not the reply to the following marker.
    var unproven = Deque<Exchange>()
    /// Whether exchanges were queued for sending after the last marker.
    var needsMarker = false
    /// The number of markers without a reply.
    var pendingMarkers = 0
    /// Whether the server has answered the markers of the connection; false if it refuses ECHO. Nil before a reply.
    var answersMarkers: Bool?
    var marker = UInt64.random(in: .min ... .max)
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
    var lastReceived: Int64 = 0
    var connectedAt: Int64 = 0
    /// The number of failed attempts and short connections since the last connection that lasted at least a second.
    var failures = 0
    var lastFailure: WireFailure?
    var isServed = false

    // MARK: On the loop's thread

    var parser = ReplyParser()
    /// The number of bytes received since the parser's buffer was last released.
    var parsedBytes = 0
    package internal(set) var receivedBytes = 0
    /// The addresses of the host to which no connection was tried yet.
    var addresses: [SocketAddress] = []
    var isLookingUp = false

    package init(_ settings: LinkSettings, on loop: SocketLoop) { (self.settings, self.loop) = (settings, loop) }

    /// Sets the receiver of events. The link has only a weak reference to it.
    package func attach(_ events: any LinkEvents) { lock.withLock { self.events = events } }

    func reportReady() { lock.withLock { events }?.linkIsReady(self) }
    func report(_ failure: WireFailure, wasReady: Bool) {
        let events = lock.withLock { self.events }
        if wasReady { events?.linkWasLost(self) }
        events?.link(self, failed: failure)
    }
    func notify(_ message: [RESPValue]) { lock.withLock { events }?.link(self, pushed: message) }

    // MARK: For callers

    /// Whether ``close()`` was called.
    package var isClosed: Bool { lock.withLock { if case .closed = state { true } else { false } } }

    /// Whether no exchange waits for a connection or a reply.
    package var isIdle: Bool { lock.withLock { waiting.isEmpty && pending.isEmpty } }

    /// The kind of the server; nil before the first connection.
    package var knownServer: ServerKind? { lock.withLock { server } }

    /// Returns whether the connection with that number is still open.
    package func isConnected(_ number: Int) -> Bool { lock.withLock { isCurrent(number) } }

    package var currentNumber: Int { lock.withLock { connectionNumber } }

    /// Why the last attempt to connect has failed, during the back-off; nil at other times.
    package var failure: WireFailure? { lock.withLock { if case .resting = state { lastFailure } else { nil } } }

    /// The number of bytes that the system has not accepted yet.
    package var unsentBytes: Int { lock.withLock { end - handedOver + encrypted.count - encryptedSent } }

    /// Ends the connection. Call it on the loop's thread; the events follow before the loop waits.
    package func drop(_ reason: String) {
        lock.withLock { if socket != nil { sendFailure = WireFailure(.dropped(reason)) } }
    }

    /// Closes the link; waiting callers get an error. Idempotent.
    package func close() {
        let isServed = lock.withLock {
            state = .closed
            return self.isServed
        }
        if isServed { loop.wake() }
    }

    /// Connects now if there is no connection, without waiting for it.
    package func open() {
        serveIfNeeded()
        loop.wake()
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
        if isChanged { loop.wake() }
    }

    private func serveIfNeeded() {
        let isNew = lock.withLock {
            defer { isServed = true }
            return !isServed
        }
        if isNew { loop.add(self) }
    }

    /// Sends the exchange's requests after all earlier requests. The outcome is kept in the exchange unless there is a
    /// waiter.
    /// - Parameter patience: how long the exchange waits for a connection, in milliseconds; nil for the value in the
    ///   settings.
    package func submit(_ exchange: Exchange, patience: Int? = nil, _ waiter: Exchange.Waiter? = nil) {
        let now = MonotonicClock.milliseconds()
        lock.lock()
        exchange.waiter = waiter
        let limit = exchange.timeoutMilliseconds ?? settings.timeoutMilliseconds
        if limit > 0 { exchange.deadline = now + Int64(limit) }
        exchange.patienceEnd = now + Int64(patience ?? settings.patienceMilliseconds)
        var outcome: Exchange.Outcome?
        var wakes = false
        if exchange.isResolved {
            // The caller was cancelled before the exchange was submitted.
            outcome = .failure(cancellation(exchange))
        } else if case .closed = state {
            outcome = .failure(WireFailure(.closedByClient))
        } else if let number = exchange.connectionNumber, !isCurrent(number) {
            outcome = .failure(WireFailure(.closedBeforeRequest))
        } else if case .ready = state {
            if exchange.replyCount == 0, exchange.bytes.isEmpty {
                outcome = .success([])
            } else {
                enqueue(exchange)
                wakes = lower(exchange.deadline)
                if !settings.submitsOnLoop { wakes = send() || wakes }
            }
        } else {
            waiting.append(exchange)
            _ = lower(min(exchange.deadline, exchange.patienceEnd))
            wakes = true
        }
        if outcome != nil {
            exchange.isResolved = true
            exchange.waiter = nil
            exchange.outcome = outcome
        }
        let isNew = !isServed && outcome == nil
        if isNew { isServed = true }
        lock.unlock()
        if isNew {
            loop.add(self)
        } else if settings.submitsOnLoop {
            loop.repeatTurn()
        } else if wakes {
            loop.wake()
        }
        if let outcome { waiter?.resume(outcome) }
    }

    /// Ends the wait for an exchange's outcome.
    package func cancel(_ exchange: Exchange) {
        let (waiter, failure) = lock.withLock {
            // An exchange that was resolved before has no waiter. If the exchange is not submitted yet, `submit` finds
            // it resolved.
            exchange.isResolved = true
            defer { exchange.waiter = nil }
            return (exchange.waiter, cancellation(exchange))
        }
        waiter?.resume(.failure(failure))
    }

    /// Lets the waiter receive the outcome of a submitted exchange.
    package func attach(_ waiter: Exchange.Waiter, to exchange: Exchange) {
        let outcome: Exchange.Outcome? = lock.withLock {
            if let outcome = exchange.outcome { return outcome }
            if exchange.isResolved { return .failure(cancellation(exchange)) }
            exchange.waiter = waiter
            return nil
        }
        if let outcome { waiter.resume(outcome) }
    }

    // MARK: Called with `lock` held

    private func cancellation(_ exchange: Exchange) -> WireFailure {
        WireFailure(.cancelled(mayHaveReachedServer: exchange.mayHaveReachedServer))
    }

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
        needsMarker = settings.marksBatches && answersMarkers != false && !exchange.isMarker
        exchange.start = end
        end += exchange.bytes.count
        pending.append(exchange)
        outgoing.appendBytes(exchange.bytes)
    }

    /// Queues a marker for sending. On a new connection it comes first, so that its reply shows whether ECHO is
    /// refused.
    func enqueueMarker() {
        marker &+= 1
        let text = Array(String(marker).utf8)
        let exchange = Exchange([[Array("ECHO".utf8), text]], connectionNumber: connectionNumber)
        exchange.isMarker = true
        exchange.accepts = { $1 == .bulk(text) }
        pendingMarkers += 1
        enqueue(exchange)
    }

    /// Passes outgoing bytes to the system, as many as it accepts. If another thread is doing so, that thread sends
    /// these bytes too. Releases the lock while it sends.
    /// - Returns: whether the loop must send the rest.
    func send() -> Bool {
        guard !isSending, !isFull, sendFailure == nil, isConnected, let socket else { return false }
        if let layer { return send(through: layer, socket) }
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

    /// Like ``send()``, with encryption. Called only on the loop's thread, with the lock held throughout.
    private func send(through layer: any SocketLayer, _ socket: StreamSocket) -> Bool {
        do throws(WireFailure) {
            while true {
                if encryptedSent == encrypted.count {
                    if layer.isEstablished, let chunk = outgoing.popFirst() {
                        handedOver += chunk.count
                        guard layer.write(chunk) else { throw WireFailure(.dropped("TLS: nothing more can be sent")) }
                    }
                    encrypted = layer.takeOutput()
                    encryptedSent = 0
                    if encrypted.isEmpty { return false }
                }
                let sent = try socket.sendSome(encrypted, from: encryptedSent)
                encryptedSent += sent
                isFull = sent == 0
                if isFull { return true }
            }
        } catch {
            sendFailure = error
            return true
        }
    }
}

/// Delays calls of a client after a connection loss until its subscriptions are restored. So the client receives all
/// messages that are published after a successful call.
///
/// While the gate is closed, new connections wait before they send requests. They wait only for a limited time, so that
/// a daemon that refuses subscriptions does not block calls.
///
/// Thread-safe: no other lock is taken while `waits` is locked.
package final class ConnectionGate: Sendable {
    /// The longest wait of a connection, in milliseconds.
    static let patienceMilliseconds: Int64 = 1_000

    package init() {}

    private struct Waits {
        var held: [Link] = []
        /// The connection of the subscriptions, which must not wait for itself.
        weak var subscriptions: Link?
    }

    private let closed = Atomic<Bool>(false)
    private let waits = Locked(Waits())

    /// Whether connections must wait.
    var isClosed: Bool { closed.load(ordering: .acquiring) }

    /// Closes the gate because the subscriptions' connection was lost.
    package func close(for link: Link) {
        waits.withLock { $0.subscriptions = link }
        closed.store(true, ordering: .releasing)
    }

    /// Opens the gate because the subscriptions are restored or no longer needed.
    package func open() {
        closed.store(false, ordering: .releasing)
        let links = waits.withLock { exchange(&$0.held, with: []) }
        for link in links { link.release() }
    }

    /// Registers a waiting connection. Also ends the back-off of the subscriptions' connection, because the daemon is
    /// running again.
    func hold(_ link: Link) {
        let subscriptions = waits.withLock {
            $0.held.append(link)
            return $0.subscriptions
        }
        // If the gate was opened in the meantime, release the link now, because nothing else would.
        guard isClosed else { return open() }
        subscriptions?.retryNow()
    }
}
