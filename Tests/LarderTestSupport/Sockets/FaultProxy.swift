import LarderPlatform

/// A TCP proxy in front of servers at 127.0.0.1, with a port for each, that simulates network faults.
///
/// `cluster.announce(ports: proxy.ports)` makes clients of a cluster connect through the proxy. Connections from
/// ``RedisCluster/sourceAddress``, which nodes use for replication, are not affected: faults are between clients and
/// nodes.
///
/// Thread-safe. `@unchecked Sendable`: all mutable state is guarded by `lock`. A change takes effect when the method
/// returns, for all bytes that have not been forwarded.
package final class FaultProxy: @unchecked Sendable {
    /// The faults of the connections to one server.
    package struct Fault: Sendable, Equatable {
        /// The delay in each direction, in milliseconds.
        package var delay = 0
        /// The maximum additional delay in milliseconds, random for each piece. Bytes of one connection keep their
        /// order, but may overtake bytes of another connection.
        package var jitter = 0
        /// Directions in which nothing is forwarded. The bytes are kept, and forwarded when the fault ends.
        package var holds: Set<Direction> = []
        /// Directions in which bytes are lost. A connection that has lost bytes forwards nothing more in that
        /// direction, because it must not continue after a gap.
        package var loses: Set<Direction> = []
        /// Whether new connections are closed at once.
        package var refuses = false
        /// Whether only every second connection has the fault, so that replies on one connection overtake replies on
        /// another.
        package var isForEverySecondConnection = false

        package init() {}

        package static let none = Fault()

        package static func delay(_ milliseconds: Int, jitter: Int = 0) -> Fault {
            var fault = Fault()
            fault.delay = milliseconds
            fault.jitter = jitter
            return fault
        }
        package static func freeze(_ directions: Set<Direction> = [.toClient, .toServer]) -> Fault {
            var fault = Fault()
            fault.holds = directions
            return fault
        }
        package static func blackHole(_ directions: Set<Direction> = [.toClient, .toServer]) -> Fault {
            var fault = Fault()
            fault.loses = directions
            return fault
        }
        package static let refusal: Fault = {
            var fault = Fault()
            fault.refuses = true
            return fault
        }()
        package static func reorder(byUpTo milliseconds: Int) -> Fault {
            var fault = Fault.delay(milliseconds)
            fault.isForEverySecondConnection = true
            return fault
        }
    }

    package enum Direction: Int, Sendable, CaseIterable { case toServer, toClient }

    /// The ports to which clients connect, for each server.
    package let ports: [Int]
    private let servers: [Int]
    private let listeners: [CInt]
    private let wakePipe: (read: CInt, write: CInt)
    private let lock = Lock()
    private var faults: [Fault]
    private var links: [ProxyLink] = []
    private var accepted: [Int]
    private var random: SeededGenerator
    private var isStopped = false
    private var thread: WorkThread?

    /// - Parameters:
    ///   - servers: the ports of the servers.
    ///   - seed: the seed for the random jitter.
    package init(to servers: [Int], seed: UInt64 = 0) throws {
        self.servers = servers
        let listening = servers.compactMap { _ in LoopbackPort.listen() }
        var ends: [CInt] = [0, 0]
        guard listening.count == servers.count, pipe(&ends) == 0 else { throw SocketClient.failure("listen", "") }
        for descriptor in ends + listening.map(\.descriptor) { ProxyLink.prepare(descriptor) }
        ports = listening.map(\.port)
        listeners = listening.map(\.descriptor)
        wakePipe = (ends[0], ends[1])
        faults = servers.map { _ in .none }
        accepted = servers.map { _ in 0 }
        random = SeededGenerator(seed: seed)
        thread = WorkThread(name: "fault-proxy") { [self] in run() }
    }

    /// Closes everything, and ends the thread. Call it at the end of every test.
    package func stop() {
        let running = lock.withLock { () -> WorkThread? in
            isStopped = true
            defer { thread = nil }
            return thread
        }
        guard let running else { return }
        wake()
        running.join()
        for link in links { link.close(byReset: false) }
        for descriptor in listeners + [wakePipe.read, wakePipe.write] { close(descriptor) }
    }

    // MARK: Faults

    /// Sets the fault of one server, or of all.
    package func set(_ fault: Fault, on server: Int? = nil) {
        lock.withLock { for index in server.map({ [$0] }) ?? Array(servers.indices) { faults[index] = fault } }
        wake()
    }

    package func fault(on server: Int) -> Fault { lock.withLock { faults[server] } }

    /// Ends all connections to a server, on both sides.
    /// - Parameter byReset: whether to reset them, as after a restart of the machine, instead of closing them.
    package func cut(_ server: Int, byReset: Bool = true) {
        lock.withLock {
            for link in affected(server) { link.close(byReset: byReset) }
            links.removeAll(where: \.isClosed)
        }
        wake()
    }

    /// Half-closes each connection to a server in one direction; the other direction continues.
    package func halfClose(_ server: Int, _ direction: Direction) {
        lock.withLock { for link in affected(server) { link.endSending(direction) } }
        wake()
    }

    private func affected(_ server: Int) -> [ProxyLink] { links.filter { $0.server == server && !$0.isExempt } }

    // MARK: Connections

    /// The number of open client connections to a server.
    package func connectionCount(_ server: Int) -> Int { lock.withLock { affected(server).count } }

    // MARK: The thread

    private func wake() {
        var byte: UInt8 = 1
        _ = write(wakePipe.write, &byte, 1)
    }

    private func run() {
        while true {
            var entries: [pollfd] = []
            var polled: [ProxyLink] = []
            var timeout: CInt = -1
            let continues = lock.withLock { () -> Bool in
                guard !isStopped else { return false }
                let now = MonotonicClock.nanoseconds()
                for link in links { link.deliver(faults[link.server], now) }
                links.removeAll(where: \.isClosed)
                polled = links
                entries = [ProxyLink.entry(wakePipe.read, POLLIN)] + listeners.map { ProxyLink.entry($0, POLLIN) }
                for link in links { entries += link.entries() }
                if let due = links.compactMap({ $0.due(faults[$0.server]) }).min() {
                    timeout = CInt(clamping: max(0, (due - now + 999_999) / 1_000_000))
                }
                return true
            }
            guard continues else { return }
            poll(&entries, nfds_t(entries.count), timeout)
            lock.withLock { handle(entries, polled) }
        }
    }

    /// Handles the results of poll(2). Skips links that were closed in the meantime, because their descriptors may have
    /// been reused.
    private func handle(_ entries: [pollfd], _ polled: [ProxyLink]) {
        var bytes = [UInt8](repeating: 0, count: 4096)
        if entries[0].revents != 0 { while read(wakePipe.read, &bytes, bytes.count) == bytes.count {} }
        let first = 1 + listeners.count
        for (index, link) in polled.enumerated() where !link.isClosed {
            for direction in Direction.allCases where entries[first + 2 * index + direction.rawValue].revents != 0 {
                let fault = link.hasFault(faults[link.server]) ? faults[link.server] : .none
                let extra = fault.delay + (fault.jitter > 0 ? random.below(fault.jitter + 1) : 0)
                link.receive(
                    direction, isLost: fault.loses.contains(direction),
                    at: MonotonicClock.nanoseconds() + Int64(extra) * 1_000_000)
            }
        }
        for server in servers.indices where entries[1 + server].revents != 0 { acceptConnection(server) }
    }

    private func acceptConnection(_ server: Int) {
        var address = sockaddr_in()
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let client = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                accept(listeners[server], $0, &length)
            }
        }
        guard client >= 0 else { return }
        // The address 127.0.0.2, see ``RedisCluster/sourceAddress``.
        let isExempt = UInt32(bigEndian: address.sin_addr.s_addr) == 0x7F00_0002
        let other =
            faults[server].refuses && !isExempt
            ? nil : try? TCPSocket.connected(port: servers[server], milliseconds: 100)
        guard let other else {
            ProxyLink.reset(client)
            return
        }
        accepted[server] += 1
        links.append(
            ProxyLink(
                client: client, other: other, server: server, isExempt: isExempt,
                isSecond: accepted[server] % 2 == 0))
    }
}
