import Platform

/// Ends connections that take too long to send a request or to take its answer, however often they move a byte.
///
/// Thread-safe. The proof for `@unchecked Sendable`: what changes is read and written with the lock held.
final class ConnectionWatch: @unchecked Sendable {
    private let lock = Lock()
    private let changed = Condition()
    /// By descriptor, in milliseconds of the monotonic clock; nil while the request is worked on.
    private var deadlines: [Int32: Int64?] = [:]
    private var isOver = false
    private let requestMilliseconds: Int64
    private let answerMilliseconds: Int64

    /// - Parameters:
    ///   - requestMilliseconds: from the connection's beginning, or the end of its last answer, to the end of a request.
    ///   - answerMilliseconds: from an answer's beginning to its end.
    init(requestMilliseconds: Int64, answerMilliseconds: Int64) {
        self.requestMilliseconds = requestMilliseconds
        self.answerMilliseconds = answerMilliseconds
    }

    func awaitRequest(_ descriptor: Int32) { set(descriptor, MonotonicClock.milliseconds() + requestMilliseconds) }

    func work(on descriptor: Int32) { set(descriptor, nil) }

    func awaitAnswer(_ descriptor: Int32) { set(descriptor, MonotonicClock.milliseconds() + answerMilliseconds) }

    /// Called before the descriptor is closed.
    func forget(_ descriptor: Int32) { _ = lock.withLock { deadlines.removeValue(forKey: descriptor) } }

    private func set(_ descriptor: Int32, _ deadline: Int64?) {
        lock.withLock { deadlines[descriptor] = .some(deadline) }
    }

    /// Looks once a second, or more often if a request has less time, until ``end()``.
    func run() {
        lock.withLock {
            while !isOver {
                let now = MonotonicClock.milliseconds()
                for case (let descriptor, let deadline?) in deadlines where deadline <= now {
                    // Its thread sees the end, and forgets the descriptor before it closes it.
                    shutdown(descriptor, Int32(SHUT_RDWR))
                    deadlines[descriptor] = .some(nil)
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
