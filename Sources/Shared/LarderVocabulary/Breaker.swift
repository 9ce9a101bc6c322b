/// A circuit breaker: after a number of consecutive failures it refuses calls for a while, then lets one call try.
///
/// A value without a clock: instants are nanoseconds of any monotonic clock.
package struct Breaker: Sendable {
    private let most: Int
    private let restNanoseconds: Int64
    /// The number of consecutive failures.
    package private(set) var failures = 0
    private var restsUntil: Int64 = 0
    private var isProbing = false
    private var reason = ""

    /// - Parameters:
    ///   - failures: the number of consecutive failures that open the circuit; at least one.
    ///   - restMilliseconds: how long the circuit stays open.
    package init(failures: Int, restMilliseconds: Int64) {
        most = max(1, failures)
        restNanoseconds = restMilliseconds * 1_000_000
    }

    /// Whether the circuit is open: calls are refused, except one that probes.
    package var isOpen: Bool { failures >= most }

    /// Why a call would be refused now; nil if it would be allowed.
    package func reasonToRefuse(_ now: Int64) -> String? {
        isOpen && (now < restsUntil || isProbing) ? reason : nil
    }

    /// The time until a call may be made, in nanoseconds; 0 if one may be made, or is being tried, now.
    package func restLeft(_ now: Int64) -> Int64 { isOpen ? max(0, restsUntil - now) : 0 }

    /// Returns why a call is refused; nil if it is allowed.
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
        if isOpen { restsUntil = now + restNanoseconds }
    }

    /// Notes that the probing call ended without a result about the server.
    package mutating func noteAbandoned() { isProbing = false }
}
