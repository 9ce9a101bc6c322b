import LarderPlatform

/// Checks once per second whether the file of the daemon's socket still exists. Without the file, clients cannot
/// connect, and another daemon could be started. Only the thread of the first event loop uses this object.
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
