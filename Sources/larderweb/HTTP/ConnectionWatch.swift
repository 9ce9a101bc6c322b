import LarderPlatform

/// Closes connections that take too long to send a request or to read its response, even if they transfer a byte now
/// and then. If there are too many, closes the connection that has been without a complete request for the longest.
final class ConnectionWatch: Sendable {
    private enum Stage {
        case sendsRequest, waits, takesAnswer
    }

    private struct State {
        /// The connections by descriptor, except those that are shut down. `until` is the end of the stage's time limit
        /// in milliseconds of the monotonic clock.
        var connections: [Int32: (stage: Stage, until: Int64)] = [:]
        var fullLines = LineRate(milliseconds: 60_000)

        /// Shuts a connection down. Its thread notices that, and closes the descriptor.
        mutating func end(_ descriptor: Int32) {
            shutdown(descriptor, Int32(SHUT_RDWR))
            connections[descriptor] = nil
        }
    }

    private let state = Locked(State())
    private let limits: HTTPLimits
    private let reportFull: @Sendable () -> Void

    /// - Parameters:
    ///   - limits: limits the number of connections, the time from the start of a connection, or the end of its last
    ///     response, to the end of a request, and the time from the start of a response to its end.
    ///   - reportFull: called at most once a minute if there are too many connections.
    init(_ limits: HTTPLimits, reportFull: @escaping @Sendable () -> Void) {
        (self.limits, self.reportFull) = (limits, reportFull)
    }

    /// Adds a connection. If there are too many, closes the one that has been without a complete request for the
    /// longest time; if all have sent a complete request, closes the new one.
    func begin(_ descriptor: Int32) {
        let now = MonotonicClock.milliseconds()
        let tells = state.withLock { state in
            state.connections[descriptor] = (.sendsRequest, now + limits.requestMilliseconds)
            guard state.connections.count > Int(limits.connections) else { return false }
            let slowest = state.connections.filter { $0.key != descriptor && $0.value.stage == .sendsRequest }
                .min { $0.value.until < $1.value.until }
            state.end(slowest?.key ?? descriptor)
            return state.fullLines.line(at: now) != nil
        }
        if tells { reportFull() }
    }

    func awaitRequest(_ descriptor: Int32) { enter(.sendsRequest, limits.requestMilliseconds, descriptor) }

    func work(on descriptor: Int32) { enter(.waits, .max / 2, descriptor) }

    func awaitAnswer(_ descriptor: Int32) { enter(.takesAnswer, limits.answerMilliseconds, descriptor) }

    /// Removes a connection. Must be called before its descriptor is closed.
    func forget(_ descriptor: Int32) { state.withLock { $0.connections[descriptor] = nil } }

    private func enter(_ stage: Stage, _ milliseconds: Int64, _ descriptor: Int32) {
        let until = MonotonicClock.milliseconds() + milliseconds
        state.withLock { if $0.connections[descriptor] != nil { $0.connections[descriptor] = (stage, until) } }
    }

    /// Closes the connections whose time limit has passed.
    func closeSlow() {
        let now = MonotonicClock.milliseconds()
        state.withLock { state in
            for (descriptor, connection) in state.connections where connection.until <= now { state.end(descriptor) }
        }
    }
}
