// The wire part of the client: one connected stream socket, requests out, replies in. Knows nothing of databases,
// models or reconnecting.
//
// - Never raises SIGPIPE, whatever the process does with that signal.
// - Replies are read while a long request is still being sent, so two full socket buffers cannot block each other.
// - After any failure the connection is unusable, because its replies would be out of step with the requests.

import RESP

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// Why a connection could not be made or did not bring the replies.
struct WireFailure: Error {
    enum Kind {
        /// Nobody listens there.
        case noDaemon
        /// Nothing moved for as long as was allowed.
        case timeout
        /// The other side ended the connection.
        case closed
        /// The other side ended the connection before it had taken one byte of this request.
        case closedBeforeRequest
        /// What came is not the protocol.
        case protocolViolation(String)
        /// A system call failed otherwise.
        case system(String, CInt)
    }

    let kind: Kind
    /// What the server said before it ended the connection, if it said something that nobody had asked for.
    var lastWords: RESPValue?

    init(_ kind: Kind, lastWords: RESPValue? = nil) {
        self.kind = kind
        self.lastWords = lastWords
    }
}

#if canImport(Glibc)
    private let systemConnect = Glibc.connect
    private let dontWait = CInt(MSG_DONTWAIT)
    private let noSignal = CInt(MSG_NOSIGNAL)
#elseif canImport(Musl)
    private let systemConnect = Musl.connect
    private let dontWait = CInt(MSG_DONTWAIT)
    private let noSignal = CInt(MSG_NOSIGNAL)
#else
    private let systemConnect = Darwin.connect
    private let dontWait = CInt(MSG_DONTWAIT)
    // SO_NOSIGPIPE is set when the socket is made.
    private let noSignal: CInt = 0
#endif

/// One connected Unix stream socket. Single owner: one thread at a time.
final class ClientConnection {
    /// The most bytes that a socket's path may have: the address holds these and a zero.
    static let pathBytesMax = MemoryLayout.size(ofValue: sockaddr_un().sun_path) - 1

    private static let readBytes = 16_384
    /// Answers that together have more bytes than this leave a buffer that is not worth keeping.
    private static let keptBytesMax = 1_048_576

    private let descriptor: CInt
    /// 0 stands for no limit.
    private let timeoutMilliseconds: Int
    private var parser = ReplyParser()
    /// Bytes received since the parser's buffer was last given back.
    private var receivedBytes = 0

    /// Connects to the socket at `path`, which must not be longer than ``pathBytesMax``.
    /// - Parameter timeoutMilliseconds: the longest that anything here waits while nothing moves in either direction;
    ///   0 for no limit.
    init(path: String, timeoutMilliseconds: Int) throws(WireFailure) {
        self.timeoutMilliseconds = timeoutMilliseconds
        descriptor = try Self.makeSocket()
        do throws(WireFailure) {
            // The limit for sending is also what bounds connect() while the daemon's backlog is full.
            try Self.limit(descriptor, SO_SNDTIMEO, timeoutMilliseconds)
            try Self.limit(descriptor, SO_RCVTIMEO, timeoutMilliseconds)
            try connect(path)
        } catch {
            close(descriptor)
            throw error
        }
    }

    deinit { close(descriptor) }

    /// Sends `request` and waits for `count` replies to it. Messages that the server pushes unasked are dropped.
    func exchange(_ request: [UInt8], replies count: Int) throws(WireFailure) -> [RESPValue] {
        guard try nextReply() == nil else {
            throw WireFailure(.protocolViolation("an answer came that belongs to no request"))
        }
        var replies: [RESPValue] = []
        replies.reserveCapacity(min(count, 65_536))
        var sent = 0
        while replies.count < count {
            if sent < request.count {
                do throws(WireFailure) {
                    sent += try sendSome(request, from: sent)
                } catch {
                    throw explain(error, sent: sent)
                }
            }
            if sent < request.count {
                // The socket's buffer is full. Wait for room, or for replies whose reading makes room.
                guard try wait(for: POLLIN | POLLOUT) & POLLOUT == 0 else { continue }
            }
            try receive()
            while replies.count < count, let reply = try nextReply() { replies.append(reply) }
        }
        guard sent == request.count else {
            throw WireFailure(.protocolViolation("an answer came before the whole request was sent"))
        }
        if receivedBytes > Self.keptBytesMax {
            parser.reclaim()
            receivedBytes = 0
        }
        return replies
    }

    // MARK: Bytes

    /// Sends what the socket takes without waiting. Returns how many bytes that were.
    private func sendSome(_ bytes: [UInt8], from start: Int) throws(WireFailure) -> Int {
        while true {
            let count = bytes.withUnsafeBytes { bytes in
                send(
                    descriptor, bytes.baseAddress.map { $0 + start }, bytes.count - start,
                    noSignal | dontWait)
            }
            if count >= 0 { return count }
            switch errno {
            case EINTR: continue
            case EAGAIN, ENOBUFS: return 0
            case EPIPE, ECONNRESET: throw WireFailure(.closed)
            case let code: throw WireFailure(.system("send", code))
            }
        }
    }

    /// What a failed send means: a server that turns a client away says why, then ends the connection.
    private func explain(_ failure: WireFailure, sent: Int) -> WireFailure {
        guard case .closed = failure.kind else { return failure }
        try? receive()
        let lastWords = try? nextReply()
        return WireFailure(sent == 0 ? .closedBeforeRequest : .closed, lastWords: lastWords)
    }

    /// Waits for bytes and gives them to the parser.
    private func receive() throws(WireFailure) {
        let start = Self.monotonicMilliseconds()
        while true {
            let space = parser.writableSpace(atLeast: Self.readBytes)
            let count = recv(descriptor, space.baseAddress, space.count, 0)
            if count > 0 {
                receivedBytes &+= count
                return parser.didWrite(count)
            }
            if count == 0 { throw WireFailure(.closed) }
            switch errno {
            // A signal must not begin the time limit anew: with a periodic one it would never be reached.
            case EINTR: _ = try wait(for: POLLIN, since: start)
            case EAGAIN: throw WireFailure(.timeout)
            case ECONNRESET, EPIPE: throw WireFailure(.closed)
            case let code: throw WireFailure(.system("recv", code))
            }
        }
    }

    /// The next reply among the bytes that have arrived, or nil.
    private func nextReply() throws(WireFailure) -> RESPValue? {
        do throws(ProtocolError) {
            while let reply = try parser.next() {
                if case .push = reply { continue }
                return reply
            }
            return nil
        } catch {
            throw WireFailure(.protocolViolation(error.message))
        }
    }

    /// Waits until one of `events` is there. Returns those that are; an end or an error of the connection counts as
    /// something to read, since reading tells what it is.
    private func wait(for events: CInt, since start: Int64? = nil) throws(WireFailure) -> CInt {
        let start = start ?? Self.monotonicMilliseconds()
        while true {
            var limit: CInt = -1
            if timeoutMilliseconds > 0 {
                let left = Int64(timeoutMilliseconds) - (Self.monotonicMilliseconds() - start)
                guard left > 0 else { throw WireFailure(.timeout) }
                limit = CInt(clamping: left)
            }
            var entry = pollfd(fd: descriptor, events: Int16(truncatingIfNeeded: events), revents: 0)
            let count = poll(&entry, 1, limit)
            if count > 0 { return CInt(entry.revents) }
            if count == 0 { throw WireFailure(.timeout) }
            if errno != EINTR { throw WireFailure(.system("poll", errno)) }
        }
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

    private func connect(_ path: String) throws(WireFailure) {
        let start = Self.monotonicMilliseconds()
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8.prefix(Self.pathBytesMax)) }
        while true {
            let status = withUnsafeBytes(of: &address) { bytes in
                systemConnect(
                    descriptor, bytes.baseAddress?.assumingMemoryBound(to: sockaddr.self), socklen_t(bytes.count))
            }
            if status == 0 { return }
            switch errno {
            case EINTR:
                guard timeoutMilliseconds == 0 || Self.monotonicMilliseconds() - start < Int64(timeoutMilliseconds)
                else { throw WireFailure(.timeout) }
            case EISCONN: return
            case ENOENT, ECONNREFUSED, ENOTDIR: throw WireFailure(.noDaemon)
            case EAGAIN: throw WireFailure(.timeout)
            case let code: throw WireFailure(.system("connect", code))
            }
        }
    }

    private static func monotonicMilliseconds() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
    }
}
