import LarderPlatform

/// A connection through a ``FaultProxy``: the client's socket, the server's socket, and the bytes in between.
///
/// Single owner: only the proxy uses it, while its lock is locked.
final class ProxyLink {
    typealias Direction = FaultProxy.Direction

    let server: Int
    /// Whether the connection never has faults.
    let isExempt: Bool
    private let isSecond: Bool
    /// The sources of the bytes, by direction.
    private let sources: [CInt]
    private var ways = [Way(), Way()]
    private(set) var isClosed = false

    /// The state of one direction.
    private struct Way {
        struct Piece {
            var bytes: [UInt8]
            var due: Int64
        }
        var pieces: [Piece] = []
        var sent = 0
        var waiting = 0
        /// Whether the sender has closed its side. The receiver is notified after the last piece.
        var hasEnded = false
        /// Whether the receiver was notified of the end of the stream.
        var isShut = false
        /// Whether bytes were lost, so that all later bytes are lost too.
        var isDead = false
        /// Whether the receiver's socket is full.
        var isBlocked = false
    }

    /// Bytes beyond this limit in one direction are left in the sender's socket.
    private static let waitingMax = 4 << 20

    init(client: CInt, other: CInt, server: Int, isExempt: Bool, isSecond: Bool) {
        self.server = server
        self.isExempt = isExempt
        self.isSecond = isSecond
        sources = [client, other]
        for descriptor in sources {
            Self.prepare(descriptor)
            var on: CInt = 1
            setsockopt(descriptor, CInt(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<CInt>.size))
        }
    }

    func hasFault(_ fault: FaultProxy.Fault) -> Bool {
        !isExempt && (isSecond || !fault.isForEverySecondConnection)
    }

    // MARK: Receiving

    /// Returns a poll entry for each direction's source, which is polled for reading its bytes and for writing the
    /// bytes of the other direction.
    func entries() -> [pollfd] {
        Direction.allCases.map { direction in
            let way = ways[direction.rawValue]
            var events: Int32 = 0
            if !way.hasEnded, way.waiting < Self.waitingMax { events |= Int32(POLLIN) }
            if ways[1 - direction.rawValue].isBlocked { events |= Int32(POLLOUT) }
            // If there is nothing to wait for, leave out the descriptor: a hang-up would wake the thread repeatedly.
            return Self.entry(events == 0 ? -1 : sources[direction.rawValue], events)
        }
    }

    /// Reads available bytes from a side, once.
    func receive(_ direction: Direction, isLost: Bool, at due: Int64) {
        let index = direction.rawValue
        ways[1 - index].isBlocked = false
        guard !ways[index].hasEnded, ways[index].waiting < Self.waitingMax else { return }
        var bytes = [UInt8](repeating: 0, count: 65_536)
        let count = systemRead(sources[index], &bytes, bytes.count)
        if count < 0, errno == EAGAIN || errno == EINTR { return }
        if isLost { ways[index].isDead = true }
        if count < 0, !ways[index].isDead { return close(byReset: true) }
        if count <= 0 {
            ways[index].hasEnded = true
            return
        }
        guard !ways[index].isDead else { return }
        let last = ways[index].pieces.last?.due ?? 0
        ways[index].pieces.append(.init(bytes: Array(bytes[..<count]), due: max(due, last)))
        ways[index].waiting += count
    }

    // MARK: Forwarding

    /// Forwards the pieces that are due.
    func deliver(_ fault: FaultProxy.Fault, _ now: Int64) {
        for direction in Direction.allCases where !isClosed { deliver(direction, fault, now) }
        if !isClosed, ways.allSatisfy(\.isShut) { close(byReset: false) }
    }

    private func deliver(_ direction: Direction, _ fault: FaultProxy.Fault, _ now: Int64) {
        let index = direction.rawValue
        let target = sources[1 - index]
        guard !isHeld(direction, fault) else { return }
        while let piece = ways[index].pieces.first, piece.due <= now, !ways[index].isBlocked, !ways[index].isShut {
            let start = ways[index].sent
            let count = piece.bytes.withUnsafeBytes {
                systemSend(target, $0.baseAddress.map { $0 + start }, piece.bytes.count - start, noSignal)
            }
            if count < 0, errno == EINTR { continue }
            if count < 0, errno == EAGAIN {
                ways[index].isBlocked = true
                return
            }
            guard count > 0 else { return close(byReset: true) }
            ways[index].sent += count
            ways[index].waiting -= count
            if ways[index].sent == piece.bytes.count {
                ways[index].pieces.removeFirst()
                ways[index].sent = 0
            }
        }
        // A direction that loses bytes loses the end of the stream too.
        if ways[index].hasEnded, ways[index].pieces.isEmpty, !ways[index].isShut, !isLost(direction, fault) {
            endSending(direction)
        }
    }

    /// Returns the time at which the next piece is due; nil if there is none.
    func due(_ fault: FaultProxy.Fault) -> Int64? {
        Direction.allCases.compactMap { direction in
            let way = ways[direction.rawValue]
            return way.isBlocked || way.isShut || isHeld(direction, fault) ? nil : way.pieces.first?.due
        }.min()
    }

    private func isHeld(_ direction: Direction, _ fault: FaultProxy.Fault) -> Bool {
        hasFault(fault) && fault.holds.contains(direction)
    }

    private func isLost(_ direction: Direction, _ fault: FaultProxy.Fault) -> Bool {
        ways[direction.rawValue].isDead || hasFault(fault) && fault.loses.contains(direction)
    }

    // MARK: Closing

    /// Half-closes a direction: the receiver sees the end of the stream.
    func endSending(_ direction: Direction) {
        ways[direction.rawValue].isShut = true
        ways[direction.rawValue].pieces = []
        ways[direction.rawValue].waiting = 0
        shutdown(sources[1 - direction.rawValue], CInt(SHUT_WR))
    }

    func close(byReset: Bool) {
        guard !isClosed else { return }
        isClosed = true
        for descriptor in sources {
            if byReset { Self.reset(descriptor) } else { systemClose(descriptor) }
        }
    }

    // MARK: Sockets

    /// Sets close-on-exec and non-blocking mode.
    static func prepare(_ descriptor: CInt) {
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
    }

    /// Closes with a reset, discarding pending bytes.
    static func reset(_ descriptor: CInt) {
        var option = linger(l_onoff: 1, l_linger: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
        systemClose(descriptor)
    }

    static func entry(_ descriptor: CInt, _ events: Int32) -> pollfd {
        pollfd(fd: descriptor, events: Int16(truncatingIfNeeded: events), revents: 0)
    }
}
