// The wire part of the blocking client: a connected stream socket that sends requests and receives replies. It has no
// databases and no models, and does not reconnect.
//
// - Never raises SIGPIPE, whatever the process does with that signal.
// - Replies are read while a long request is still being sent, so two full socket buffers cannot block each other.
// - After any failure the connection is unusable, because later replies could not be matched with their requests.

import LarderPlatform
import LarderRESP
import LarderWire

/// A connected stream socket. Not thread-safe: belongs to one thread at a time.
package final class BlockingConnection {
    private static let readBytes = 16_384
    /// When more bytes than this have been received since the last release, the parser's buffer is released.
    private static let keptBytesMax = 1_048_576

    private let socket: StreamSocket
    /// The longest wait without progress, in milliseconds; 0 for no limit.
    private let timeoutMilliseconds: Int
    private var parser = ReplyParser()
    /// Bytes received since the parser's buffer was last released.
    private var receivedBytes = 0

    /// Whether messages pushed between replies are kept, in ``pushes``.
    var keepsPushes = false
    var pushes: [RESPValue] = []

    /// The socket's file descriptor, for ``Interruption``.
    var descriptor: CInt { socket.descriptor }

    /// Connects to the socket at `path`, which must not be longer than `UnixSocket.pathBytesMax`.
    /// - Parameter timeoutMilliseconds: the longest wait without progress in either direction; 0 for no limit.
    init(path: String, timeoutMilliseconds: Int, trust: PeerTrust = PeerTrust()) throws(WireFailure) {
        self.timeoutMilliseconds = timeoutMilliseconds
        socket = try StreamSocket(blocking: path, timeoutMilliseconds: timeoutMilliseconds, trust: trust)
    }

    /// Sends `request` and waits for `count` replies to it. Pushed messages are dropped, or kept: see ``keepsPushes``.
    package func exchange(_ request: [UInt8], replies count: Int) throws(WireFailure) -> [RESPValue] {
        guard try nextReply() == nil else {
            throw WireFailure(.protocolViolation("the server sent an answer without a request"))
        }
        var replies: [RESPValue] = []
        replies.reserveCapacity(min(count, 65_536))
        var sent = 0
        while replies.count < count {
            if sent < request.count {
                do throws(WireFailure) {
                    sent += try socket.sendSome(request, from: sent)
                } catch {
                    throw explain(error, sent: sent)
                }
            }
            if sent < request.count {
                // The socket's buffer is full. Wait for space, or for replies: reading them makes space.
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

    /// Sends requests. Passes their replies, and then all lines or messages that follow, to `visit`.
    /// - Parameter visit: called with each reply, line or message.
    func stream<Failure: Error>(_ request: [UInt8], _ visit: (RESPValue) throws(Failure) -> Void) throws -> Never {
        var sent = 0
        while sent < request.count { sent += try socket.sendSome(request, from: sent) }
        while true {
            while let reply = try nextReply(withPushes: true) { try visit(reply) }
            var entry = pollfd(fd: socket.descriptor, events: Int16(truncatingIfNeeded: POLLIN), revents: 0)
            guard poll(&entry, 1, -1) > 0 else { continue }
            try receive()
        }
    }

    // MARK: Bytes

    /// Adds the server's reason to a failed send. A server that refuses a client sends the reason before it closes.
    private func explain(_ failure: WireFailure, sent: Int) -> WireFailure {
        guard case .closed = failure.kind else { return failure }
        try? receive()
        let finalError = (try? nextReply())?.errorMessage
        return WireFailure(sent == 0 ? .closedBeforeRequest : .closed, finalError: finalError)
    }

    /// Waits for bytes and passes them to the parser.
    private func receive() throws(WireFailure) {
        let start = MonotonicClock.milliseconds()
        while true {
            let space = parser.writableSpace(atLeast: Self.readBytes)
            switch try socket.receive(into: space) {
            case .bytes(let count):
                receivedBytes &+= count
                return parser.didWrite(count)
            // A signal must not restart the time limit: a periodic signal would prevent the timeout.
            case .interrupted: _ = try wait(for: POLLIN, since: start)
            case .nothing: throw WireFailure(.timeout)
            }
        }
    }

    /// Returns the next reply in the received bytes, or nil.
    private func nextReply(withPushes: Bool = false) throws(WireFailure) -> RESPValue? {
        do throws(ProtocolError) {
            while let reply = try parser.next() {
                guard !withPushes, case .push = reply else { return reply }
                if keepsPushes { pushes.append(reply) }
            }
            return nil
        } catch {
            throw WireFailure(.protocolViolation(error.message))
        }
    }

    /// Waits until one of `events` occurs, and returns those that did. The end or an error of the connection counts as
    /// readable, because reading then returns the reason.
    private func wait(for events: CInt, since start: Int64? = nil) throws(WireFailure) -> CInt {
        let start = start ?? MonotonicClock.milliseconds()
        while true {
            var limit: CInt = -1
            if timeoutMilliseconds > 0 {
                let left = Int64(timeoutMilliseconds) - (MonotonicClock.milliseconds() - start)
                guard left > 0 else { throw WireFailure(.timeout) }
                limit = CInt(clamping: left)
            }
            var entry = pollfd(fd: socket.descriptor, events: Int16(truncatingIfNeeded: events), revents: 0)
            let count = poll(&entry, 1, limit)
            if count > 0 { return CInt(entry.revents) }
            if count == 0 { throw WireFailure(.timeout) }
            if errno != EINTR { throw WireFailure(.system("poll", errno)) }
        }
    }
}
