// A connected Unix stream socket and its system calls. Independent of requests and replies.

import LarderPlatform

/// A connection that could not be made or has failed.
package struct WireFailure: Error {
    package enum Kind {
        /// No process listens at the path.
        case noDaemon
        /// The file at the path is not a socket.
        case notASocket
        /// The listening process is not trusted, for the given reason.
        case untrusted(String)
        /// There was no progress within the time limit.
        case timeout
        /// The other side ended the connection.
        case closed
        /// This program has closed the connection.
        case closedByClient
        /// This program has dropped the connection, or TLS has failed, for the given reason.
        case dropped(String)
        /// The host has no address, for the given reason.
        case unresolved(String)
        /// The server has refused the handshake, or cannot be used.
        case refused(Handshake.Refusal)
        /// The caller was cancelled.
        case cancelled(mayHaveReachedServer: Bool)
        /// The other side ended the connection before it had received a byte of this request.
        case closedBeforeRequest
        /// The bytes violate the protocol.
        case protocolViolation(String)
        /// A system call failed in another way: its name and its error number.
        case system(String, CInt)
    }

    package let kind: Kind
    /// The text that the server sent without a request before it closed the connection, if any.
    package var finalError: String?

    package init(_ kind: Kind, finalError: String? = nil) { (self.kind, self.finalError) = (kind, finalError) }

    /// Whether the server has refused the connection.
    var isRefusal: Bool { if case .refused = kind { true } else { finalError != nil } }
}

/// A connected Unix stream socket, closed when its last reference is released. Never raises SIGPIPE.
///
/// Thread-safe like the system's calls: one thread may send while another receives. A closed descriptor is never used,
/// because each thread that uses the descriptor keeps a reference to this object.
package final class StreamSocket: Sendable {
    package enum Received {
        case bytes(Int)
        /// Nothing to read now; on a blocking socket, nothing arrived within its time limit.
        case nothing
        case interrupted
    }

    package let descriptor: CInt

    /// Connects, and waits until the daemon has accepted the connection.
    /// - Parameter timeoutMilliseconds: the limit of that wait, and of every later wait in ``receive(into:)``; 0 for no
    ///   limit.
    /// - Throws: `untrusted` for a peer that `trust` rejects.
    package init(blocking path: String, timeoutMilliseconds: Int, trust: PeerTrust) throws(WireFailure) {
        descriptor = try Self.makeSocket()
        // The limit for sending also applies to connect() while the daemon's backlog is full.
        guard UnixSocket.limit(descriptor, milliseconds: timeoutMilliseconds) else {
            throw WireFailure(.system("setsockopt", errno))
        }
        let limit = Int64(timeoutMilliseconds)
        try connect(path, trust, until: limit == 0 ? .max : MonotonicClock.milliseconds() + limit)
    }

    /// Connects without waiting.
    /// - Parameter trust: nil to trust any peer, and to throw all failures of connect(2) as `system`.
    /// - Throws: `timeout` while the daemon's backlog is full; `untrusted` for a peer that `trust` rejects.
    package init(nonblocking path: String, trust: PeerTrust?) throws(WireFailure) {
        descriptor = try Self.makeSocket()
        let flags = fcntl(descriptor, F_GETFL)
        guard flags >= 0, fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) == 0 else {
            throw WireFailure(.system("fcntl", errno))
        }
        try connect(path, trust, until: .max)
    }

    private func connect(_ path: String, _ trust: PeerTrust?, until end: Int64) throws(WireFailure) {
        while true {
            switch UnixSocket.connect(descriptor, to: path) {
            case 0, EISCONN:
                try trust?.check(descriptor, path)
                return
            case EINTR: if MonotonicClock.milliseconds() >= end { throw WireFailure(.timeout) }
            // The backlog is full: at once, or on a blocking socket after its time limit.
            case EAGAIN: throw WireFailure(end == .max ? .system("connect", EAGAIN) : .timeout)
            case let code: throw trust == nil ? WireFailure(.system("connect", code)) : Self.connectFailure(code, path)
            }
        }
    }

    /// Takes over a connected blocking socket of any family.
    package init(adopting descriptor: CInt) { self.descriptor = descriptor }

    deinit { systemClose(descriptor) }

    /// Shuts down the connection in both directions, without closing the descriptor that another thread may be using.
    package func shutDown() { _ = shutdown(descriptor, CInt(SHUT_RDWR)) }

    /// Sends as much of `bytes` from `start` as the socket accepts, without waiting. Returns the number of bytes sent.
    package func sendSome(_ bytes: [UInt8], from start: Int) throws(WireFailure) -> Int {
        while true {
            let (count, code) = bytes.withUnsafeBytes { bytes in
                let rest = UnsafeRawBufferPointer(rebasing: bytes[start...])
                let count = send(descriptor, rest.baseAddress, rest.count, noSignal | CInt(MSG_DONTWAIT))
                return (count, errno)
            }
            if count >= 0 { return count }
            switch code {
            case EINTR: continue
            case EAGAIN, ENOBUFS: return 0
            case EPIPE, ECONNRESET: throw WireFailure(.closed)
            default: throw WireFailure(.system("send", code))
            }
        }
    }

    /// Receives available bytes, up to the given space.
    package func receive(into space: UnsafeMutableRawBufferPointer) throws(WireFailure) -> Received {
        let count = recv(descriptor, space.baseAddress, space.count, 0)
        if count > 0 { return .bytes(count) }
        if count == 0 { throw WireFailure(.closed) }
        switch errno {
        case EINTR: return .interrupted
        case EAGAIN: return .nothing
        case ECONNRESET, EPIPE: throw WireFailure(.closed)
        case let code: throw WireFailure(.system("recv", code))
        }
    }

    // MARK: System calls

    private static func makeSocket() throws(WireFailure) -> CInt {
        let descriptor = UnixSocket.make()
        guard descriptor >= 0 else { throw WireFailure(.system("socket", errno)) }
        return descriptor
    }

    private static func connectFailure(_ code: CInt, _ path: String) -> WireFailure {
        switch code {
        case ECONNREFUSED where !isSocket(path): WireFailure(.notASocket)
        case ENOENT, ECONNREFUSED, ENOTDIR: WireFailure(.noDaemon)
        default: WireFailure(.system("connect", code))
        }
    }

    private static func isSocket(_ path: String) -> Bool {
        var status = stat()
        return stat(path, &status) != 0 || status.st_mode & S_IFMT == S_IFSOCK
    }
}
