import LarderPlatform

/// Closes connections that take too long to send a request or to read its response, even if they transfer a byte now
/// and then. If there are too many, closes the connection that has been without a complete request for the longest.
///
/// `@unchecked Sendable`: the variables are guarded by `lock`.
final class ConnectionWatch: @unchecked Sendable {
    /// The stage of a connection.
    private enum Stage {
        case sendsRequest, waits, takesAnswer
        /// The connection is shut down, but its thread has not noticed yet.
        case ended
    }

    private let lock = Lock()
    private let changed = Condition()
    /// The connections by descriptor. `since` is the start of the stage in milliseconds of the monotonic clock.
    private var connections: [Int32: (stage: Stage, since: Int64)] = [:]
    private var isOver = false
    private var fullLines = LineRate(milliseconds: 60_000)
    private let most: Int
    private let requestMilliseconds: Int64
    private let answerMilliseconds: Int64
    private let reportFull: @Sendable () -> Void

    /// - Parameters:
    ///   - most: the maximum number of connections.
    ///   - requestMilliseconds: the time limit from the start of the connection, or the end of its last response, to
    ///     the end of a request.
    ///   - answerMilliseconds: the time limit from the start of a response to its end.
    ///   - reportFull: called at most once a minute if there are too many connections.
    init(
        most: Int, requestMilliseconds: Int64, answerMilliseconds: Int64,
        reportFull: @escaping @Sendable () -> Void = {}
    ) {
        self.most = most
        self.requestMilliseconds = requestMilliseconds
        self.answerMilliseconds = answerMilliseconds
        self.reportFull = reportFull
    }

    /// Adds a connection. If there are too many, closes the one that has been without a complete request for the
    /// longest time; if all have sent a complete request, closes the new one.
    func begin(_ descriptor: Int32) {
        let now = MonotonicClock.milliseconds()
        let tells = lock.withLock { () -> Bool in
            connections[descriptor] = (.sendsRequest, now)
            guard connections.values.count(where: { $0.stage != .ended }) > most else { return false }
            let slowest = connections.filter { $0.key != descriptor && $0.value.stage == .sendsRequest }
                .min { $0.value.since < $1.value.since }
            end(slowest?.key ?? descriptor)
            return fullLines.line(at: now) != nil
        }
        if tells { reportFull() }
    }

    func awaitRequest(_ descriptor: Int32) { enter(.sendsRequest, descriptor) }

    func work(on descriptor: Int32) { enter(.waits, descriptor) }

    func awaitAnswer(_ descriptor: Int32) { enter(.takesAnswer, descriptor) }

    /// Removes a connection. Must be called before its descriptor is closed.
    func forget(_ descriptor: Int32) { _ = lock.withLock { connections.removeValue(forKey: descriptor) } }

    private func enter(_ stage: Stage, _ descriptor: Int32) {
        let now = MonotonicClock.milliseconds()
        lock.withLock {
            if connections[descriptor]?.stage != .ended { connections[descriptor] = (stage, now) }
        }
    }

    /// Shuts a connection down. Called with `lock` held. The connection's thread notices the shutdown, and removes the
    /// descriptor before closing it.
    private func end(_ descriptor: Int32) {
        shutdown(descriptor, Int32(SHUT_RDWR))
        connections[descriptor]?.stage = .ended
    }

    /// Closes slow connections until ``end()`` is called. Checks once a second, or more often if the request timeout is
    /// shorter.
    func run() {
        lock.withLock {
            while !isOver {
                let now = MonotonicClock.milliseconds()
                for (descriptor, connection) in connections {
                    switch connection.stage {
                    case .sendsRequest: if now - connection.since >= requestMilliseconds { end(descriptor) }
                    case .takesAnswer: if now - connection.since >= answerMilliseconds { end(descriptor) }
                    case .waits, .ended: break
                    }
                }
                changed.wait(lock, milliseconds: min(1000, requestMilliseconds))
            }
        }
    }

    func end() {
        lock.withLock {
            isOver = true
            changed.broadcast()
        }
    }
}
