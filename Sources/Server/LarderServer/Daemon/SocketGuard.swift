import LarderPlatform

/// Checks once per second whether the daemon's socket file still exists. Without it, clients would start another
/// daemon, or fail. Confined to the first loop.
final class SocketGuard {
    private let socket: ListeningSocket
    private let listener: Listener
    private let log: Log
    private var nextLook: Int64
    private var isOver = false

    private static let pauseMilliseconds: Int64 = 1000

    init(_ socket: ListeningSocket, _ listener: Listener, _ log: Log) {
        self.socket = socket
        self.listener = listener
        self.log = log
        nextLook = MonotonicClock.milliseconds() + Self.pauseMilliseconds
    }

    func tick() {
        let now = MonotonicClock.milliseconds()
        guard !isOver, now >= nextLook else { return }
        nextLook = now + Self.pauseMilliseconds
        socket.look(log) { listener.replace($0) }
    }

    func end() { isOver = true }
}
