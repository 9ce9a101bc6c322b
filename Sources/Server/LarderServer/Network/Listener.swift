import CLarderUV
import LarderPlatform

/// Accepts connections on the first loop, and distributes them over all loops (round robin).
///
/// All calls must be on the thread of the first loop.
final class Listener {
    private var descriptor: Int32
    private let loops: [EventLoop]
    private let server: ServerState
    private var poll: UnsafeMutablePointer<uv_poll_t>
    /// The poll handles of replaced descriptors. Their memory must stay valid until libuv has closed the handles.
    private var previousPolls: [UnsafeMutablePointer<uv_poll_t>] = []
    private var next = 0
    private var isClosed = false
    /// The end of the current ``pause()``, in milliseconds of the engine's monotonic clock; 0 while connections are
    /// accepted.
    private var resumeAt: Int64 = 0

    private let lines: LimitedLines

    private static let pauseMilliseconds: Int64 = 200
    /// The maximum number of connections accepted per turn of the loop, so that many new connections do not delay the
    /// existing ones.
    private static let acceptsPerTurn = 64

    init(_ descriptor: Int32, loops: [EventLoop], server: ServerState, log: Log) {
        self.descriptor = descriptor
        self.loops = loops
        self.server = server
        let clock = server.engine.clock
        lines = LimitedLines(
            log, burst: 1, clock: { clock.monotonic() }, rest: { LineRate.rest($0, "lines like this") })
        poll = .allocate(capacity: 1)
        initializePoll()
        start()
    }

    deinit { for poll in previousPolls + [poll] { poll.deallocate() } }

    private func initializePoll() {
        // Make accept non-blocking: the client may have disconnected before the call.
        _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
        uv_poll_init(loops[0].loop, poll, descriptor)
        // The server releases the listener only after the loop has stopped, so the handle need not retain the listener.
        poll.pointee.data = Unmanaged.passUnretained(self).toOpaque()
    }

    /// Listens on another socket. First accepts the connections that wait at the previous socket.
    func replace(_ descriptor: Int32) {
        guard !isClosed else { return }
        if resumeAt == 0 { acceptWaiting() }
        uv_poll_stop(poll)
        uv_close(asHandle(poll), nil)
        previousPolls.append(poll)
        self.descriptor = descriptor
        poll = .allocate(capacity: 1)
        initializePoll()
        if resumeAt == 0 { start() }
    }

    private func start() {
        uv_poll_start(poll, Int32(UV_READABLE.rawValue)) { handle, _, _ in
            guard let data = handle?.pointee.data else { return }
            Unmanaged<Listener>.fromOpaque(data).takeUnretainedValue().acceptWaiting()
        }
    }

    private func acceptWaiting() {
        for _ in 0..<Self.acceptsPerTurn {
            let client = accept(descriptor, nil, nil)
            if client < 0 {
                if errno == EINTR || errno == ECONNABORTED { continue }
                if errno != EAGAIN && errno != EWOULDBLOCK { pause() }
                return
            }
            _ = fcntl(client, F_SETFD, FD_CLOEXEC)
            server.clientsSeen.add()
            guard server.clients.read() < server.clientsMax else {
                refuse(client)
                continue
            }
            // Count the client now, not on the thread of its loop. Otherwise this thread could accept too many clients.
            server.clients.add(1)
            loops[next].send(.accept(descriptor: client))
            next = (next + 1) % loops.count
        }
    }

    private func refuse(_ client: Int32) {
        server.clientsRefused.add()
        lines.add(
            .warning, "refused a connection: the limit of \(server.clientsMax) is reached (--max-clients)")
        let text = Array("-ERR max number of clients reached\r\n".utf8)
        _ = text.withUnsafeBytes { send(client, $0.baseAddress, $0.count, Int32(MSG_DONTWAIT) | noSignal) }
        systemClose(client)
    }

    /// Pauses accepting for 200 ms. If there are no descriptors or no memory, accept fails immediately, and the loop
    /// would retry endlessly.
    private func pause() {
        lines.add(.warning, "cannot accept connections: \(SystemErrorText.of(errno)); retrying")
        uv_poll_stop(poll)
        resumeAt = server.engine.monotonic() + Self.pauseMilliseconds
    }

    func tick() {
        guard resumeAt != 0, !isClosed, server.engine.monotonic() >= resumeAt else { return }
        resumeAt = 0
        start()
    }

    /// Stops accepting connections.
    func close() {
        guard !isClosed else { return }
        isClosed = true
        uv_poll_stop(poll)
        uv_close(asHandle(poll), nil)
    }
}
