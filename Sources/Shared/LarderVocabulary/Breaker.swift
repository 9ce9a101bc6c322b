/// A circuit breaker: after a number of consecutive failures it rejects calls for a while. Then it allows one probe.
///
/// Callers pass the current time of a monotonic clock, in nanoseconds. A value; not synchronized.
package struct Breaker: Sendable {
    private let most: Int
    private let restNanoseconds: Int64
    /// The number of consecutive failures.
    package private(set) var failures = 0
    private var nextAttemptAt: Int64 = 0
    private var isProbing = false
    private var reason = ""

    /// - Parameters:
    ///   - failures: the number of consecutive failures that open the circuit; at least one.
    ///   - restMilliseconds: how long the circuit stays open, that is, calls are rejected.
    package init(failures: Int, restMilliseconds: Int64) {
        most = max(1, failures)
        restNanoseconds = restMilliseconds * 1_000_000
    }

    /// Whether the circuit is open: calls are rejected, except for one probe after the pause.
    package var isOpen: Bool { failures >= most }

    /// Returns why a call would be rejected now; nil if it would be allowed. Makes no call.
    package func reasonToRefuse(_ now: Int64) -> String? { isOpen && (now < nextAttemptAt || isProbing) ? reason : nil }

    /// Returns the remaining pause in nanoseconds; 0 if the pause is over or the circuit is closed.
    package func restLeft(_ now: Int64) -> Int64 { isOpen ? max(0, nextAttemptAt - now) : 0 }

    /// Returns why a call is rejected; nil if it is allowed. If the circuit is open, an allowed call is the probe, and
    /// must be followed by one of the `note` methods.
    package mutating func refusal(_ now: Int64) -> String? {
        if let reason = reasonToRefuse(now) { return reason }
        if isOpen { isProbing = true }
        return nil
    }

    package mutating func noteSuccess() {
        failures = 0
        isProbing = false
    }

    package mutating func noteFailure(_ reason: String, _ now: Int64) {
        failures += 1
        isProbing = false
        self.reason = reason
        if isOpen { nextAttemptAt = now + restNanoseconds }
    }

    /// Records that the probe ended without showing whether the server works, for example because it was cancelled.
    package mutating func noteAbandoned() { isProbing = false }
}
