// The part of a link that runs on the loop's thread: receiving, timing out, reconnecting.

import LarderPlatform
import LarderRESP

/// What has ended while the lock was held. It is reported after the lock was released.
struct Ended {
    /// The failure of the connection; nil if it was not lost.
    var failure: WireFailure?
    /// Whether the lost connection was ready.
    var wasReady = false
    private var outcomes: [(Exchange.Waiter, Exchange.Outcome)] = []

    /// Records the outcome of an exchange, unless it already has an outcome. Called with `lock` held.
    mutating func add(_ exchange: Exchange, _ outcome: @autoclosure () -> Exchange.Outcome) {
        guard !exchange.isResolved else { return }
        exchange.isResolved = true
        let outcome = outcome()
        guard let waiter = exchange.waiter else {
            exchange.outcome = outcome
            return
        }
        exchange.waiter = nil
        outcomes.append((waiter, outcome))
    }

    /// Resumes the waiters. Called without the lock.
    mutating func resume() {
        guard !outcomes.isEmpty else { return }
        let outcomes = outcomes
        self.outcomes = []
        for (waiter, outcome) in outcomes { waiter.resume(outcome) }
    }
}

extension Link {
    /// The maximum number of bytes to read from one link before the loop serves the other links.
    private static let turnBytes = 1 << 20
    private static let readBytes = 65_536
    /// When more bytes than this have been received since the last release, the parser's buffer is released.
    private static let keptBytesMax = 1 << 20
    /// The longest back-off between two attempts to connect, in milliseconds.
    package static let backOffMillisecondsMax: Int64 = 2_000
    /// The longest back-off while a caller waits for the connection, in milliseconds.
    private static let backOffWhileWaitedFor: Int64 = 100
    /// After a connection that lasted at least this long, in milliseconds, the next attempt begins without a back-off.
    private static let usefulMilliseconds: Int64 = 1_000

    /// Does all work that is due, and returns the events to wait for. Called each time before the loop waits.
    func prepare(now: Int64) -> LoopInterest {
        var ended = Ended()
        var isNewlyReady = false
        lock.lock()
        if needsMarker { enqueueMarker() }
        if settings.submitsOnLoop, !outgoing.isEmpty { _ = send() }
        if let failure = sendFailure {
            // A server that refuses a client sends the reason before it closes the connection, so read the received
            // bytes first.
            if case .closed = failure.kind, socket != nil {
                socket?.shutDown()
                sendFailure = nil
                isFull = true
            } else {
                lose(failure, now, &ended)
            }
        }
        if case .greeting = state, now >= greetingEnd { lose(WireFailure(.timeout), now, &ended) }
        if case .resting(let until) = state, now >= until { state = .idle }
        if case .held(let until) = state, now >= until {
            isNewlyReady = true
            handOverWaiting(&ended)
            _ = send()
        }
        // Connect before checking for expired waits, so that one attempt is made even for an exchange that must not
        // wait.
        if case .idle = state, settings.staysConnected || !waiting.isEmpty { connect(now, &ended) }
        if now >= nextCheck, expire(now, &ended) { lose(WireFailure(.timeout), now, &ended) }
        let interest = interest(now, &ended)
        lock.unlock()
        if isNewlyReady, ended.failure == nil { reportReady() }
        finish(&ended)
        return interest
    }

    /// Reports a lost connection, and resumes the callers. Called without the lock.
    func finish(_ ended: inout Ended) {
        if let failure = ended.failure { report(failure, wasReady: ended.wasReady) }
        ended.resume()
    }

    private func interest(_ now: Int64, _ ended: inout Ended) -> LoopInterest {
        let hasOutput = !isConnected || isFull && (!outgoing.isEmpty || layer != nil)
        var interest = LoopInterest(socket: socket, wantsToSend: hasOutput, due: nextCheck)
        switch state {
        case .idle, .ready: break
        case .greeting: interest.due = min(interest.due, greetingEnd)
        case .held(let until): interest.due = min(interest.due, until)
        case .resting(let until):
            if settings.staysConnected || !waiting.isEmpty { interest.due = min(interest.due, until) }
        case .closed:
            let failure = WireFailure(.closedByClient)
            if socket != nil { (ended.failure, ended.wasReady) = (failure, true) }
            for exchange in unproven.takeAll() + pending.takeAll() + waiting.takeAll() {
                ended.add(exchange, .failure(failure))
            }
            forgetConnection()
            interest = LoopInterest(isFinished: true)
        }
        return interest
    }

    /// Handles a socket that is readable or writable.
    func act(on socket: StreamSocket, mayRead: Bool) {
        guard isConnected else { return finishConnecting(socket) }
        var ended = Ended()
        var received: [(reply: RESPValue, skippedBytes: Int)] = []
        var isNewlyReady = false
        var isHeld = false
        var failure = mayRead ? receive(socket) : nil
        let now = MonotonicClock.milliseconds()
        do throws(ProtocolError) {
            while let reply = try parser.next() { received.append((reply, parser.skippedBytes)) }
        } catch {
            failure = WireFailure(.protocolViolation(error.message))
        }
        lock.lock()
        if self.socket === socket {
            if mayRead { lastReceived = now }
            for (reply, skippedBytes) in received {
                if case .push(let message) = reply {
                    // Deliver everything in the order of arrival.
                    lock.unlock()
                    ended.resume()
                    notify(message)
                    lock.lock()
                } else if let violation = take(reply, skippedBytes, &isNewlyReady, &ended) {
                    failure = violation
                    break
                }
            }
            if let failure {
                isNewlyReady = false
                lose(failure, now, &ended)
            } else {
                // The link may have been closed while a message was delivered.
                if case .closed = state { isNewlyReady = false }
                if isNewlyReady, settings.gate?.isClosed == true {
                    isNewlyReady = false
                    isHeld = true
                    state = .held(until: now + ConnectionGate.patienceMilliseconds)
                } else if isNewlyReady {
                    handOverWaiting(&ended)
                }
                isFull = false
                _ = send()
            }
        }
        lock.unlock()
        if isNewlyReady { reportReady() }
        if isHeld { settings.gate?.hold(self) }
        finish(&ended)
        if parsedBytes > Self.keptBytesMax {
            parser.reclaim()
            parsedBytes = 0
        }
    }

    /// Reads received bytes into the parser. Returns the failure, if reading failed.
    private func receive(_ socket: StreamSocket) -> WireFailure? {
        let encrypted = layer.map { _ in
            UnsafeMutableRawBufferPointer.allocate(byteCount: Self.readBytes, alignment: 16)
        }
        defer { encrypted?.deallocate() }
        var total = 0
        do throws(WireFailure) {
            while total < Self.turnBytes {
                let space = encrypted ?? parser.writableSpace(atLeast: Self.readBytes)
                switch try socket.receive(into: space) {
                case .bytes(let count):
                    if let layer {
                        try decrypt(UnsafeRawBufferPointer(rebasing: space[..<count]), layer, socket)
                    } else {
                        didReceive(count)
                    }
                    total += count
                    // The socket has no more bytes now. The next turn reads the bytes that arrive later.
                    if count < space.count { return nil }
                case .interrupted: continue
                case .nothing: return nil
                }
            }
            return nil
        } catch {
            return error
        }
    }

    private func didReceive(_ count: Int) {
        parser.didWrite(count)
        parsedBytes &+= count
        receivedBytes &+= count
    }

    /// Passes encrypted bytes to the layer, and decrypted bytes to the parser.
    private func decrypt(_ bytes: UnsafeRawBufferPointer, _ layer: any SocketLayer, _ socket: StreamSocket)
        throws(WireFailure)
    {
        layer.receive(bytes)
        if !layer.isEstablished, let reason = layer.shakeHands() {
            // The output may contain an alert that reports the reason to the peer.
            _ = try? socket.sendSome(layer.takeOutput(), from: 0)
            throw WireFailure(.dropped(reason))
        }
        while layer.isEstablished {
            switch layer.read(parser.writableSpace(atLeast: Self.readBytes)) {
            case .bytes(let count): didReceive(count)
            case .nothingNow: return
            case .ended(let reason): throw reason.map { WireFailure(.dropped($0)) } ?? WireFailure(.closed)
            }
        }
    }
}

// Called with `lock` held.
extension Link {
    /// Handles a reply. Returns the failure that it caused, or nil.
    private func take(
        _ reply: RESPValue, _ skippedBytes: Int, _ isNewlyReady: inout Bool, _ ended: inout Ended
    ) -> WireFailure? {
        if case .greeting = state, !isNewlyReady {
            do throws(Handshake.Refusal) {
                isNewlyReady = try handshake?.take(reply) ?? false
                if isNewlyReady { server = handshake?.server }
                return nil
            } catch {
                return WireFailure(.refused(error))
            }
        }
        guard let exchange = pending.first else {
            if let text = reply.errorMessage { return WireFailure(.closed, finalError: text) }
            return WireFailure(.protocolViolation("the server sent an answer without a request"))
        }
        if let accepts = exchange.accepts, reply.errorMessage == nil, !accepts(exchange.replies.count, reply) {
            return WireFailure(.protocolViolation("the server sent an answer that does not belong to the request"))
        }
        failures = 0
        guard exchange.take(reply, skippedBytes: skippedBytes) else { return nil }
        _ = pending.popFirst()
        if exchange.isMarker { return takeMarker(isAnswered: reply.errorMessage == nil, &ended) }
        if pendingMarkers > 0 { unproven.append(exchange) } else { ended.add(exchange, .success(exchange.replies)) }
        return nil
    }

    /// Ends the exchanges before a marker. Returns the failure if the replies are shifted, or nil.
    private func takeMarker(isAnswered: Bool, _ ended: inout Ended) -> WireFailure? {
        guard answersMarkers ?? isAnswered == isAnswered else {
            return WireFailure(.protocolViolation("the server sent an answer that does not belong to the request"))
        }
        answersMarkers = isAnswered
        pendingMarkers -= 1
        for exchange in unproven.takeAll() { ended.add(exchange, .success(exchange.replies)) }
        return nil
    }

    /// Marks the connection as ready, and queues the waiting exchanges for sending.
    private func handOverWaiting(_ ended: inout Ended) {
        state = .ready
        lastFailure = nil
        if settings.marksBatches { enqueueMarker() }
        while let exchange = waiting.popFirst() {
            if exchange.isResolved { continue }
            if exchange.bytes.isEmpty {
                ended.add(exchange, .success([]))
            } else {
                enqueue(exchange)
            }
        }
    }

    /// Releases everything that belongs to the connection.
    func forgetConnection() {
        socket = nil
        isConnected = false
        layer = nil
        encrypted = []
        encryptedSent = 0
        addresses = []
        unproven.takeAll()
        pending.takeAll()
        needsMarker = false
        pendingMarkers = 0
        answersMarkers = nil
        outgoing.takeAll()
        sentOfFirst = 0
        end = 0
        handedOver = 0
        isSending = false
        isFull = false
        sendFailure = nil
        handshake = nil
    }

    /// Handles a lost connection or a failed attempt. Exchanges that the server cannot have received or that may be
    /// repeated wait for the next connection; all others fail.
    func lose(_ failure: WireFailure, _ now: Int64, _ ended: inout Ended) {
        if case .closed = state { return }
        let wasReady = if case .ready = state { true } else { false }
        let isRefused = if case .greeting = state { failure.isRefusal } else { false }
        let handedOver = handedOver
        let lost = unproven.takeAll() + pending.takeAll()
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
                ended.add(exchange, .failure(isUnseen ? WireFailure(.closedBeforeRequest) : failure))
            }
        }
        for exchange in repeated.reversed() { waiting.pushFront(exchange) }
        if now - connectedAt >= Self.usefulMilliseconds, wasReady { failures = 0 }
        lastFailure = failure
        ended.failure = failure
        ended.wasReady = ended.wasReady || wasReady
        var rest = settings.backOff(failures, failure)
        // Callers wait for about a second, so retry often: an attempt must be made shortly before they give up.
        if waiting.contains(where: { !$0.isResolved }) { rest = min(rest, Self.backOffWhileWaitedFor) }
        failures += 1
        state = .resting(until: now + rest)
        // Exchanges that cannot wait for the next attempt fail now. If the server has refused the connection with a
        // reason, all exchanges fail now.
        if isRefused { for exchange in waiting { exchange.patienceEnd = now } }
        for exchange in waiting { nextCheck = min(nextCheck, min(exchange.deadline, exchange.patienceEnd)) }
        if now >= nextCheck { _ = expire(now, &ended) }
    }

    /// Returns the back-off before the next attempt, in milliseconds: none after the first failure, then 10 ms,
    /// doubling up to ``backOffMillisecondsMax``.
    /// - Parameters:
    ///   - failures: the number of previous failures.
    ///   - random: a random number from 0 to below 1.
    package static func rest(afterFailures failures: Int, random: Double = .random(in: 0..<1)) -> Int64 {
        failures == 0 ? 0 : RetryBackoff.rest(after: failures - 1, from: 10, to: backOffMillisecondsMax, random: random)
    }

    /// Ends expired exchanges, and finds the next deadline.
    /// - Returns: whether to drop the connection because the server no longer sends anything.
    private func expire(_ now: Int64, _ ended: inout Ended) -> Bool {
        let limit = Int64(settings.timeoutMilliseconds)
        var next = Int64.max
        var isSilent = false
        let isConnecting =
            switch state {
            case .greeting, .held: true
            case .idle, .ready, .resting, .closed: false
            }
        for exchange in [unproven, pending].joined() {
            if now >= exchange.deadline {
                ended.add(exchange, .failure(WireFailure(.timeout)))
                // Consider the server dead if it sends nothing for two more time limits after this deadline.
                guard limit > 0 else { continue }
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
                ended.add(exchange, .failure(reason ?? WireFailure(.timeout)))
            } else {
                next = min(next, end)
            }
        }
        waiting.removeAll(where: \.isResolved)
        nextCheck = next
        return isSilent
    }
}
