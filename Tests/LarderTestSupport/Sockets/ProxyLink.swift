import LarderPlatform

/// One connection through a ``FaultProxy``: a client's socket, the server's, and what is on its way between them.
///
/// Single owner: the proxy, with its lock held.
final class ProxyLink {
    typealias Direction = FaultProxy.Direction

    let server: Int
    /// Has no faults, ever.
    let isExempt: Bool
    private let isSecond: Bool
    /// By direction: where its bytes come from.
    private let sources: [CInt]
    private var ways = [Way(), Way()]
    private(set) var isClosed = false

    /// What goes in one direction.
    private struct Way {
        struct Piece {
            var bytes: [UInt8]
            var due: Int64
        }
        var pieces: [Piece] = []
        var sent = 0
        var waiting = 0
        /// The sender has ended; the receiver hears of it behind the last piece.
        var hasEnded = false
        /// The receiver has heard of it.
        var isShut = false
        /// Something was lost: the rest is lost as well.
        var isDead = false
        /// The receiver's socket is full.
        var isBlocked = false
    }

    /// More than this in one direction is left in the sender's socket.
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

    // MARK: What comes

    /// For each direction an entry for its source: what can be read there, and whether what goes there, which is the
    /// other direction, can go on.
    func entries() -> [pollfd] {
        Direction.allCases.map { direction in
            let way = ways[direction.rawValue]
            var events: Int32 = 0
            if !way.hasEnded, way.waiting < Self.waitingMax { events |= Int32(POLLIN) }
            if ways[1 - direction.rawValue].isBlocked { events |= Int32(POLLOUT) }
            // Without anything to wait for a hang-up would wake the thread again and again.
            return Self.entry(events == 0 ? -1 : sources[direction.rawValue], events)
        }
    }

    /// Reads what a side sent, once.
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

    // MARK: What goes

    /// Hands on what is due.
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
        // Where bytes are lost, the end of the stream is lost as well.
        if ways[index].hasEnded, ways[index].pieces.isEmpty, !ways[index].isShut, !isLost(direction, fault) {
            endSending(direction)
        }
    }

    /// When something is to be handed on; nil while nothing waits for its time.
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

    // MARK: Its end

    /// The receiver of a direction hears that nothing more comes.
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

    /// Closed on exec, and never waited for.
    static func prepare(_ descriptor: CInt) {
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
    }

    /// Closes with a reset, whatever is on its way.
    static func reset(_ descriptor: CInt) {
        var option = linger(l_onoff: 1, l_linger: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
        systemClose(descriptor)
    }

    static func entry(_ descriptor: CInt, _ events: Int32) -> pollfd {
        pollfd(fd: descriptor, events: Int16(truncatingIfNeeded: events), revents: 0)
    }
}
