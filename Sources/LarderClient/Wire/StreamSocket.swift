// A connected Unix stream socket and its system calls. Knows nothing of requests and replies.

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// Why a connection could not be made or has failed.
struct WireFailure: Error {
    enum Kind {
        /// Nobody listens there.
        case noDaemon
        /// The file at the path is not a socket.
        case notASocket
        /// The listening process is not trusted; why.
        case untrusted(String)
        /// Nothing moved within the time limit.
        case timeout
        /// The other side ended the connection.
        case closed
        /// The other side ended the connection before it had taken one byte of this request.
        case closedBeforeRequest
        /// The bytes are not the protocol.
        case protocolViolation(String)
        /// A system call failed otherwise.
        case system(String, CInt)
    }

    let kind: Kind
    /// The server's text before it closed the connection, if it sent an unrequested one.
    var finalError: String?
    /// The meaning of that text, if more is known than it says.
    var explanation: String?

    init(_ kind: Kind, finalError: String? = nil, explanation: String? = nil) {
        self.kind = kind
        self.finalError = finalError
        self.explanation = explanation
    }

    /// The error that callers see.
    /// - Parameter limit: the time limit, in milliseconds, for the message.
    func error(socketPath: String, operation: String, limit: Int) -> LarderClientError {
        if let finalError {
            return LarderClientError(.server, explanation ?? finalError, operation: operation, serverText: finalError)
        }
        let (code, message): (LarderClientError.Code, String)
        switch kind {
        case .noDaemon:
            code = .noDaemon
            message = "no daemon answers at \(socketPath): start one with: larderd --socket \(socketPath)"
        case .notASocket:
            code = .noDaemon
            message = "\(socketPath) is not a socket: no daemon can answer there"
        case .untrusted(let text): (code, message) = (.untrusted, text)
        case .timeout:
            code = .timeout
            message = "the daemon at \(socketPath) did not answer within \(limit) ms"
        case .closedBeforeRequest:
            code = .closed
            message = "the daemon at \(socketPath) had ended the connection; the request was not sent"
        case .closed:
            code = .closed
            message =
                "the daemon at \(socketPath) ended the connection before it had answered; "
                + "whether the request was carried out is not known"
        case .protocolViolation(let text):
            code = .protocolViolation
            message = "what answers at \(socketPath) does not speak as larderd does: \(text)"
        case .system(let call, let number):
            code = .io
            message = "\(call) failed for \(socketPath): \(SystemErrorText.of(number))"
        }
        return LarderClientError(code, message, operation: operation, socketPath: socketPath)
    }
}

#if canImport(Glibc)
    private let systemConnect = Glibc.connect
    private let systemClose = Glibc.close
    private let dontWait = CInt(MSG_DONTWAIT)
    private let noSignal = CInt(MSG_NOSIGNAL)
#elseif canImport(Musl)
    private let systemConnect = Musl.connect
    private let systemClose = Musl.close
    private let dontWait = CInt(MSG_DONTWAIT)
    private let noSignal = CInt(MSG_NOSIGNAL)
#else
    private let systemConnect = Darwin.connect
    private let systemClose = Darwin.close
    private let dontWait = CInt(MSG_DONTWAIT)
    // SO_NOSIGPIPE is set when the socket is made.
    private let noSignal: CInt = 0
#endif

/// One connected Unix stream socket, closed when its last reference is released. Never raises SIGPIPE.
///
/// Thread-safe like the system's calls: one thread may send while another receives. Nobody uses a closed descriptor,
/// because every user holds the object.
final class StreamSocket: Sendable {
    /// The most bytes of a socket's path: the address holds these and a zero.
    static let pathBytesMax = MemoryLayout.size(ofValue: sockaddr_un().sun_path) - 1

    enum Received {
        case bytes(Int)
        /// Nothing to read now; on a blocking socket, nothing came within its time limit.
        case nothing
        case interrupted
    }

    let descriptor: CInt

    /// Connects, and waits until the daemon has accepted the connection.
    /// - Parameter timeoutMilliseconds: the limit of that wait, and of every later one inside ``receive(into:)``; 0 for
    ///   no limit.
    /// - Throws: `untrusted` for a peer to which `trust` objects.
    init(blocking path: String, timeoutMilliseconds: Int, trust: PeerTrust) throws(WireFailure) {
        descriptor = try Self.makeSocket()
        // The limit for sending also limits connect() while the daemon's backlog is full.
        try Self.limit(descriptor, SO_SNDTIMEO, timeoutMilliseconds)
        try Self.limit(descriptor, SO_RCVTIMEO, timeoutMilliseconds)
        let start = Self.monotonicMilliseconds()
        while true {
            switch Self.connect(descriptor, path) {
            case 0, EISCONN:
                try trust.check(descriptor, path)
                return
            case EINTR:
                guard timeoutMilliseconds == 0 || Self.monotonicMilliseconds() - start < Int64(timeoutMilliseconds)
                else { throw WireFailure(.timeout) }
            case EAGAIN: throw WireFailure(.timeout)
            case let code: throw Self.connectFailure(code, path)
            }
        }
    }

    /// Connects without ever waiting.
    /// - Throws: `system` with EAGAIN while the daemon's backlog is full; `untrusted` for a peer to which `trust`
    ///   objects.
    init(nonblocking path: String, trust: PeerTrust) throws(WireFailure) {
        descriptor = try Self.makeSocket()
        let flags = fcntl(descriptor, F_GETFL)
        guard flags >= 0, fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) == 0 else {
            throw WireFailure(.system("fcntl", errno))
        }
        while true {
            switch Self.connect(descriptor, path) {
            case 0, EISCONN:
                try trust.check(descriptor, path)
                return
            case EINTR: continue
            case let code: throw Self.connectFailure(code, path)
            }
        }
    }

    deinit { _ = systemClose(descriptor) }

    /// Ends the connection in both directions, without closing the descriptor that another thread may be using.
    func shutDown() { _ = shutdown(descriptor, CInt(SHUT_RDWR)) }

    /// Sends what the socket takes of `bytes` from `start` on, without waiting. Returns how many bytes were sent.
    func sendSome(_ bytes: [UInt8], from start: Int) throws(WireFailure) -> Int {
        while true {
            let (count, code) = bytes.withUnsafeBytes { bytes in
                let rest = UnsafeRawBufferPointer(rebasing: bytes[start...])
                let count = send(descriptor, rest.baseAddress, rest.count, noSignal | dontWait)
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

    /// Receives arrived bytes, as far as there is space.
    func receive(into space: UnsafeMutableRawBufferPointer) throws(WireFailure) -> Received {
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

    static func monotonicMilliseconds() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
    }

    // MARK: System calls

    private static func makeSocket() throws(WireFailure) -> CInt {
        #if os(Linux)
            let kind = CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue)
            let descriptor = socket(AF_UNIX, kind, 0)
            guard descriptor >= 0 else { throw WireFailure(.system("socket", errno)) }
        #else
            let descriptor = socket(AF_UNIX, SOCK_STREAM, 0)
            guard descriptor >= 0 else { throw WireFailure(.system("socket", errno)) }
            _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
            var on: CInt = 1
            setsockopt(descriptor, SOL_SOCKET, SO_NOSIGPIPE, &on, socklen_t(MemoryLayout<CInt>.size))
        #endif
        return descriptor
    }

    private static func limit(_ descriptor: CInt, _ option: CInt, _ milliseconds: Int) throws(WireFailure) {
        var time = timeval()
        time.tv_sec = .init(clamping: milliseconds / 1000)
        time.tv_usec = .init(clamping: milliseconds % 1000 * 1000)
        guard setsockopt(descriptor, SOL_SOCKET, option, &time, socklen_t(MemoryLayout<timeval>.size)) == 0 else {
            throw WireFailure(.system("setsockopt", errno))
        }
    }

    /// Calls connect() once. Returns 0, or the error's number.
    private static func connect(_ descriptor: CInt, _ path: String) -> CInt {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8.prefix(Self.pathBytesMax)) }
        let status = withUnsafeBytes(of: &address) { bytes in
            systemConnect(
                descriptor, bytes.baseAddress?.assumingMemoryBound(to: sockaddr.self), socklen_t(bytes.count))
        }
        return status == 0 ? 0 : errno
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
