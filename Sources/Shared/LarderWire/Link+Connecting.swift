// The part of a link that connects. Runs on the loop's thread.

import LarderPlatform
import LarderRESP

/// TLS, between a socket and the protocol. Transforms bytes, and does no I/O.
package protocol SocketLayer: AnyObject {
    /// Whether the handshake is done.
    var isEstablished: Bool { get }
    /// Continues the handshake until more bytes from the peer are needed.
    /// - Returns: the reason if the handshake has failed, else nil.
    func shakeHands() -> String?
    /// Adds encrypted bytes that were received from the peer.
    func receive(_ bytes: UnsafeRawBufferPointer)
    /// Decrypts received bytes into `room`.
    func read(_ room: UnsafeMutableRawBufferPointer) -> SocketLayerRead
    /// Encrypts bytes and adds them to the output. Call it only after the handshake.
    /// - Returns: false if the encryption fails.
    func write(_ bytes: [UInt8]) -> Bool
    /// Removes and returns the encrypted bytes to send to the peer.
    func takeOutput() -> [UInt8]
}

/// The result of ``SocketLayer/read(_:)``.
package enum SocketLayerRead {
    case bytes(Int)
    case nothingNow
    /// The peer has closed the connection, or there was an error, described by the text.
    case ended(String?)
}

extension Link {
    /// Starts to connect. Called with `lock` held.
    func connect(_ now: Int64, _ ended: inout Ended) {
        let handshake = Handshake(settings.setup)
        self.handshake = handshake
        parser = ReplyParser(limits: settings.limits, skipsLongStrings: settings.skipsLongStrings)
        connectionNumber += 1
        state = .greeting
        connectedAt = now
        lastReceived = now
        let limit = settings.connectMilliseconds ?? settings.timeoutMilliseconds
        greetingEnd = limit == 0 ? .max : now + Int64(limit)
        end = handshake.bytes.count
        outgoing.append(handshake.bytes)
        do throws(WireFailure) {
            if let makeLayer = settings.layer {
                // Without a layer, fail instead of making an unencrypted connection.
                guard let layer = makeLayer() else { throw WireFailure(.dropped("TLS failed")) }
                self.layer = layer
            }
            try openSocket()
        } catch {
            // The backlog of new connections is full.
            if settings.waitsForBacklog, case .system(_, EAGAIN) = error.kind {
                forgetConnection()
                state = .resting(until: now + 2)
            } else {
                lose(error, now, &ended)
            }
        }
    }

    private func openSocket() throws(WireFailure) {
        switch settings.endpoint {
        case .unix(let path):
            socket = try StreamSocket(nonblocking: path, trust: settings.trust)
            connected()
        case .tcp(let host, let port):
            if let numeric = TCPSocket.numericAddresses(host: host, port: port) {
                addresses = numeric
                return try connectToNext()
            }
            // The lookup for a previous attempt may still be running.
            guard !isLookingUp else { return }
            isLookingUp = true
            loop.resolve(host: host, port: port) { [self] result in
                advance { () throws(WireFailure) in
                    isLookingUp = false
                    guard case .greeting = state, socket == nil else { return }
                    switch result {
                    case .success(let found): addresses = found
                    case .failure(let failure): throw WireFailure(.unresolved(failure.description))
                    }
                    try connectToNext()
                }
            }
        }
    }

    /// Runs a step with the lock held. If it throws, the connection is lost.
    private func advance(_ step: () throws(WireFailure) -> Void) {
        var ended = Ended()
        lock.lock()
        do throws(WireFailure) { try step() } catch { lose(error, MonotonicClock.milliseconds(), &ended) }
        lock.unlock()
        finish(&ended)
    }

    /// Starts to connect to the next address of the host.
    private func connectToNext(
        _ failure: WireFailure = WireFailure(.unresolved("the host has no address"))
    ) throws(WireFailure) {
        var failure = failure
        while !addresses.isEmpty {
            var number: Int32 = 0
            if let descriptor = TCPSocket.start(addresses.removeFirst(), &number) {
                socket = StreamSocket(adopting: descriptor)
                return
            }
            failure = WireFailure(.system("connect", number))
        }
        throw failure
    }

    /// Handles the end of an attempt to connect.
    func finishConnecting(_ socket: StreamSocket) {
        advance { () throws(WireFailure) in
            guard self.socket === socket else { return }
            let number = TCPSocket.failure(of: socket.descriptor)
            if number == 0 { connected() } else { try connectToNext(WireFailure(.system("connect", number))) }
        }
    }

    private func connected() {
        isConnected = true
        if let reason = layer?.shakeHands() { sendFailure = WireFailure(.dropped(reason)) }
        _ = send()
    }
}
