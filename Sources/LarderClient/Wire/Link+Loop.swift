// The part of a link that runs on the loop's thread: connecting, receiving, timing out, reconnecting.

import LarderPlatform
import LarderRESP
import LarderWire

/// Finished exchanges, collected while the lock is held. Their callers are resumed after the lock was released.
struct Resolved {
    private var list: [(UnsafeContinuation<Exchange.Outcome, Never>, Exchange.Outcome)] = []

    /// Records the outcome of an exchange, unless it already has an outcome. Called with `lock` held.
    mutating func add(_ exchange: Exchange, _ outcome: @autoclosure () -> Exchange.Outcome) {
        guard !exchange.isResolved else { return }
        exchange.isResolved = true
        let outcome = outcome()
        guard let continuation = exchange.continuation else {
            exchange.outcome = outcome
            return
        }
        exchange.continuation = nil
        list.append((continuation, outcome))
    }

    /// Resumes the callers. Called without the lock.
    func resume() {
        for (continuation, outcome) in list { continuation.resume(returning: outcome) }
    }
}

extension Link {
    /// The maximum number of bytes to read from one link before the loop serves the other links.
    private static let turnBytes = 1 << 20
    private static let readBytes = 65_536
    /// The parser's buffer is released after it has received more bytes than this.
    private static let keptBytesMax = 1 << 20
    /// The longest back-off between two attempts to connect, in milliseconds.
    static let backOffMillisecondsMax: Int64 = 2_000
    /// The longest back-off while a caller waits for the connection, in milliseconds.
    private static let backOffWhileWaitedFor: Int64 = 100
    /// After a connection that lasted at least this long, in milliseconds, the next attempt begins without a back-off.
    private static let usefulMilliseconds: Int64 = 1_000

    /// Does all work that is due, and returns the events to wait for. Called each time before the loop waits.
    func prepare(now: Int64) -> LoopInterest {
        var resolved = Resolved()
        var wasLost = false
        var isNewlyReady = false
        lock.lock()
        if let failure = sendFailure {
            // A server that refuses a client sends the reason before it closes the connection, so read the received
            // bytes first.
            if case .closed = failure.kind, socket != nil {
                socket?.shutDown()
                sendFailure = nil
                isFull = true
            } else {
                wasLost = lose(failure, now, &resolved) || wasLost
            }
        }
        if case .greeting = state, now >= greetingEnd {
            lose(WireFailure(.timeout), now, &resolved)
        }
        if case .resting(let until) = state, now >= until { state = .idle }
        if case .held(let until) = state, now >= until {
            isNewlyReady = true
            handOverWaiting(&resolved)
            _ = send()
        }
        // Connect before checking for expired waits, so that one attempt is made even for an exchange that must not
        // wait.
        if case .idle = state, settings.staysConnected || !waiting.isEmpty { connect(now, &resolved) }
        if now >= nextCheck, expire(now, &resolved) {
            wasLost = lose(WireFailure(.timeout), now, &resolved) || wasLost
        }
        let interest = interest(now, &resolved, &wasLost)
        lock.unlock()
        if isNewlyReady, !wasLost { reportReady() }
        if wasLost { reportLost() }
        resolved.resume()
        return interest
    }

    private func interest(_ now: Int64, _ resolved: inout Resolved, _ wasLost: inout Bool) -> LoopInterest {
        var interest = LoopInterest(socket: socket, wantsToSend: isFull && !outgoing.isEmpty, due: nextCheck)
        switch state {
        case .idle, .ready: break
        case .greeting: interest.due = min(interest.due, greetingEnd)
        case .held(let until): interest.due = min(interest.due, until)
        case .resting(let until):
            if settings.staysConnected || !waiting.isEmpty { interest.due = min(interest.due, until) }
        case .closed:
            if socket != nil { wasLost = true }
            for exchange in pending.takeAll() + waiting.takeAll() {
                resolved.add(exchange, .failure(closedError(exchange.operation)))
            }
            forgetConnection()
            interest = LoopInterest(isFinished: true)
        }
        return interest
    }

    /// Handles a socket that is readable or writable.
    func act(on socket: StreamSocket, mayRead: Bool) {
        var resolved = Resolved()
        var failure: WireFailure?
        var notified: [[RESPValue]] = []
        var isNewlyReady = false
        var isHeld = false
        var wasLost = false
        if mayRead { failure = receive(socket) }
        let now = MonotonicClock.milliseconds()
        var replies: [RESPValue] = []
        var protocolFailure: WireFailure?
        do throws(ProtocolError) {
            while let reply = try parser.next() {
                if case .push(let message) = reply { notified.append(message) } else { replies.append(reply) }
            }
        } catch {
            protocolFailure = WireFailure(.protocolViolation(error.message))
        }
        // Deliver pushed messages before any caller can get a later reply.
        for message in notified { notify(message) }
        lock.lock()
        if self.socket === socket {
            if mayRead { lastReceived = now }
            for reply in replies {
                if let violation = take(reply, &isNewlyReady, &resolved) {
                    protocolFailure = violation
                    break
                }
            }
            if let fatal = protocolFailure ?? failure {
                isNewlyReady = false
                wasLost = lose(fatal, now, &resolved)
            } else {
                if isNewlyReady, settings.gate?.isClosed == true {
                    isNewlyReady = false
                    isHeld = true
                    state = .held(until: now + ConnectionGate.patienceMilliseconds)
                } else if isNewlyReady {
                    handOverWaiting(&resolved)
                }
                isFull = false
                if send() { SocketLoop.client.wake() }
            }
        }
        lock.unlock()
        if isNewlyReady { reportReady() }
        if isHeld { settings.gate?.hold(self) }
        if wasLost { reportLost() }
        resolved.resume()
        if receivedBytes > Self.keptBytesMax {
            parser.reclaim()
            receivedBytes = 0
        }
    }

    /// Reads received bytes into the parser. Returns the failure, if reading failed.
    private func receive(_ socket: StreamSocket) -> WireFailure? {
        var total = 0
        while total < Self.turnBytes {
            let space = parser.writableSpace(atLeast: Self.readBytes)
            do throws(WireFailure) {
                switch try socket.receive(into: space) {
                case .bytes(let count):
                    parser.didWrite(count)
                    receivedBytes &+= count
                    total += count
                    // The socket has no more bytes now. The next turn reads the bytes that arrive later.
                    if count < space.count { return nil }
                case .interrupted: continue
                case .nothing: return nil
                }
            } catch {
                return error
            }
        }
        return nil
    }
}

// Called with `lock` held.
extension Link {
    /// Handles a reply. Returns the failure that it caused, or nil.
    private func take(_ reply: RESPValue, _ isNewlyReady: inout Bool, _ resolved: inout Resolved) -> WireFailure? {
        if case .greeting = state, !isNewlyReady {
            handshakeReplies.append(reply)
            guard let handshake, handshakeReplies.count == handshake.replyCount else {
                // If the server only does not support HELLO, continue. After any other error it sends nothing more.
                guard handshakeReplies.count == 1, let text = reply.errorMessage,
                    !Handshake.isUnknownCommand(text), !text.hasPrefix("NOPROTO")
                else { return nil }
                return WireFailure(.closed, finalError: text)
            }
            do throws(LarderClientError) {
                server = try handshake.check(handshakeReplies)
                handshakeReplies = []
                isNewlyReady = true
                return nil
            } catch {
                return WireFailure(.closed, finalError: error.serverText, explanation: error.message)
            }
        }
        guard let exchange = pending.first else {
            if let text = reply.errorMessage { return WireFailure(.closed, finalError: text) }
            return WireFailure(.protocolViolation("the server sent an answer without a request"))
        }
        failures = 0
        if exchange.take(reply) {
            _ = pending.popFirst()
            resolved.add(exchange, .success(exchange.replies))
        }
        return nil
    }

    /// Marks the connection as ready, and queues the waiting exchanges for sending.
    private func handOverWaiting(_ resolved: inout Resolved) {
        state = .ready
        lastFailure = nil
        while let exchange = waiting.popFirst() {
            if exchange.isResolved { continue }
            if exchange.bytes.isEmpty {
                resolved.add(exchange, .success([]))
            } else {
                enqueue(exchange)
            }
        }
    }

    private func connect(_ now: Int64, _ resolved: inout Resolved) {
        do throws(WireFailure) {
            let fresh = try StreamSocket(nonblocking: settings.socketPath, trust: settings.trust)
            let handshake = Handshake(
                password: settings.password, database: settings.database, asksForKind: true, tracking: settings.tracks,
                pushesFetchResults: settings.pushesFetchResults)
            socket = fresh
            parser = ReplyParser()
            connectionNumber += 1
            self.handshake = handshake
            handshakeReplies = []
            state = .greeting
            connectedAt = now
            lastReceived = now
            greetingEnd =
                settings.timeoutMilliseconds == 0 ? .max : now + Int64(settings.timeoutMilliseconds)
            end = handshake.bytes.count
            outgoing.append(handshake.bytes)
            _ = send()
        } catch {
            // The daemon's backlog of new connections is full: try again in 2 milliseconds.
            if case .system("connect", EAGAIN) = error.kind {
                state = .resting(until: now + 2)
            } else {
                lose(error, now, &resolved)
            }
        }
    }

    /// Releases everything that belongs to the connection.
    private func forgetConnection() {
        socket = nil
        pending.takeAll()
        outgoing.takeAll()
        sentOfFirst = 0
        end = 0
        handedOver = 0
        isSending = false
        isFull = false
        sendFailure = nil
        handshake = nil
        handshakeReplies = []
    }

    /// Handles a lost connection or a failed attempt. Exchanges that the server cannot have received or that may be
    /// repeated wait for the next connection; all others fail.
    /// - Returns: whether the connection had been ready.
    @discardableResult
    private func lose(_ failure: WireFailure, _ now: Int64, _ resolved: inout Resolved) -> Bool {
        if case .closed = state { return false }
        let wasReady = if case .ready = state { true } else { false }
        let isRefused = if case .greeting = state { failure.finalError != nil } else { false }
        let handedOver = handedOver
        let lost = pending.takeAll()
        forgetConnection()
        var repeated: [Exchange] = []
        for exchange in lost where !exchange.isResolved {
            let isUnseen = exchange.start >= handedOver
            if exchange.connectionNumber == nil, isUnseen || (exchange.isRead && !exchange.wasRepeated) {
                exchange.replies = []
                exchange.wasRepeated = exchange.wasRepeated || !isUnseen
                exchange.mayHaveReachedServer = exchange.wasRepeated
                exchange.patienceEnd = max(exchange.patienceEnd, now + Int64(settings.patienceMilliseconds))
                repeated.append(exchange)
            } else {
                let kind = isUnseen ? WireFailure(.closedBeforeRequest) : failure
                resolved.add(exchange, .failure(error(kind, exchange)))
            }
        }
        for exchange in repeated.reversed() { waiting.pushFront(exchange) }
        if now - connectedAt >= Self.usefulMilliseconds, wasReady { failures = 0 }
        lastFailure = failure.error(
            socketPath: settings.socketPath, operation: "connect", limit: settings.timeoutMilliseconds)
        var rest = Self.rest(afterFailures: failures)
        // Callers wait for about a second, so retry often: an attempt must be made shortly before they give up.
        if waiting.contains(where: { !$0.isResolved }) { rest = min(rest, Self.backOffWhileWaitedFor) }
        failures += 1
        state = .resting(until: now + rest)
        // Exchanges that cannot wait for the next attempt fail now. If the server has refused the connection with a
        // reason, all exchanges fail now.
        if isRefused { for exchange in waiting { exchange.patienceEnd = now } }
        for exchange in waiting { nextCheck = min(nextCheck, min(exchange.deadline, exchange.patienceEnd)) }
        if now >= nextCheck { _ = expire(now, &resolved) }
        return wasReady
    }

    /// Returns the back-off before the next attempt, in milliseconds: none after the first failure, then 10 ms,
    /// doubling up to ``backOffMillisecondsMax``.
    /// - Parameters:
    ///   - failures: the number of previous failures.
    ///   - random: a random number from 0 to below 1.
    static func rest(afterFailures failures: Int, random: Double = .random(in: 0..<1)) -> Int64 {
        failures == 0 ? 0 : RetryBackoff.rest(after: failures - 1, from: 10, to: backOffMillisecondsMax, random: random)
    }

    /// Ends expired exchanges, and finds the next deadline.
    /// - Returns: whether to drop the connection because the server no longer sends anything.
    private func expire(_ now: Int64, _ resolved: inout Resolved) -> Bool {
        let limit = Int64(settings.timeoutMilliseconds)
        var next = Int64.max
        var isSilent = false
        let isConnecting =
            switch state {
            case .greeting, .held: true
            case .idle, .ready, .resting, .closed: false
            }
        for exchange in pending {
            if now >= exchange.deadline {
                resolved.add(exchange, .failure(error(WireFailure(.timeout), exchange)))
                // Consider the server dead if it sends nothing for two more time limits after this deadline.
                let end = max(exchange.deadline, lastReceived) + 2 * limit
                if now >= end { isSilent = true } else { next = min(next, end) }
            } else {
                next = min(next, exchange.deadline)
            }
        }
        for exchange in waiting where !exchange.isResolved {
            let end = min(exchange.deadline, exchange.patienceEnd)
            if now >= end {
                // Report the reason for the missing connection even at the deadline: it is more useful than a timeout.
                let reason = isConnecting ? nil : lastFailure
                // No attempt has failed yet, or a new connection is being made: wait until the deadline.
                if reason == nil, now < exchange.deadline {
                    next = min(next, exchange.deadline)
                    continue
                }
                resolved.add(exchange, .failure(waitingError(exchange, reason)))
            } else {
                next = min(next, end)
            }
        }
        waiting.removeAll(where: \.isResolved)
        nextCheck = next
        return isSilent
    }

    private func waitingError(_ exchange: Exchange, _ reason: LarderClientError?) -> LarderClientError {
        guard let reason else { return error(WireFailure(.timeout), exchange) }
        return LarderClientError(
            reason.code, reason.message, operation: exchange.operation, socketPath: reason.socketPath,
            serverText: reason.serverText)
    }
}
