import LarderPlatform

/// Ends connections that take too long to send a request or to take its answer, however often they move a byte; and the one
/// that has been sending its request for the longest time when there are too many.
///
/// Thread-safe. The proof for `@unchecked Sendable`: what changes is read and written with the lock held.
final class ConnectionWatch: @unchecked Sendable {
    /// What a connection does.
    private enum Stage {
        case sendsRequest, waits, takesAnswer
        /// Its thread has not seen the end yet.
        case ended
    }

    private let lock = Lock()
    private let changed = Condition()
    /// By descriptor, with the beginning of the stage in milliseconds of the monotonic clock.
    private var connections: [Int32: (stage: Stage, since: Int64)] = [:]
    private var isOver = false
    private var toldAt = Int64.min / 2
    private let most: Int
    private let requestMilliseconds: Int64
    private let answerMilliseconds: Int64
    private let tellFull: @Sendable () -> Void

    /// How often it is told that there are too many, at most.
    private static let tellMilliseconds: Int64 = 60_000

    /// - Parameters:
    ///   - most: how many connections there may be.
    ///   - requestMilliseconds: from the connection's beginning, or the end of its last answer, to the end of a request.
    ///   - answerMilliseconds: from an answer's beginning to its end.
    ///   - tellFull: called once a minute at most when one more comes.
    init(
        most: Int, requestMilliseconds: Int64, answerMilliseconds: Int64, tellFull: @escaping @Sendable () -> Void = {}
    ) {
        self.most = most
        self.requestMilliseconds = requestMilliseconds
        self.answerMilliseconds = answerMilliseconds
        self.tellFull = tellFull
    }

    /// A new connection. If it is one too many, the one that has been without a complete request for the longest time ends;
    /// if all others have one, this ends.
    func begin(_ descriptor: Int32) {
        let now = MonotonicClock.milliseconds()
        let tells = lock.withLock { () -> Bool in
            connections[descriptor] = (.sendsRequest, now)
            guard connections.values.count(where: { $0.stage != .ended }) > most else { return false }
            let slowest = connections.filter { $0.key != descriptor && $0.value.stage == .sendsRequest }
                .min { $0.value.since < $1.value.since }
            end(slowest?.key ?? descriptor)
            guard now - toldAt >= Self.tellMilliseconds else { return false }
            toldAt = now
            return true
        }
        if tells { tellFull() }
    }

    func awaitRequest(_ descriptor: Int32) { enter(.sendsRequest, descriptor) }

    func work(on descriptor: Int32) { enter(.waits, descriptor) }

    func awaitAnswer(_ descriptor: Int32) { enter(.takesAnswer, descriptor) }

    /// Called before the descriptor is closed.
    func forget(_ descriptor: Int32) { _ = lock.withLock { connections.removeValue(forKey: descriptor) } }

    private func enter(_ stage: Stage, _ descriptor: Int32) {
        let now = MonotonicClock.milliseconds()
        lock.withLock {
            if connections[descriptor]?.stage != .ended { connections[descriptor] = (stage, now) }
        }
    }

    /// Called with the lock held. Its thread sees the end, and forgets the descriptor before it closes it.
    private func end(_ descriptor: Int32) {
        shutdown(descriptor, Int32(SHUT_RDWR))
        connections[descriptor]?.stage = .ended
    }

    /// Looks once a second, or more often if a request has less time, until ``end()``.
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
