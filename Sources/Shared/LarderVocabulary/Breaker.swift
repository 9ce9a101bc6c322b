/// Lets what is asked rest that has failed some times in a row, then lets one call try it.
///
/// A value, and has no clock: instants are nanoseconds of any clock that does not go back.
package struct Breaker: Sendable {
    private let most: Int
    private let restNanoseconds: Int64
    /// How many calls have failed in a row.
    package private(set) var failures = 0
    private var restsUntil: Int64 = 0
    private var isProbing = false
    private var reason = ""

    /// - Parameters:
    ///   - failures: how many in a row begin a rest; one at least.
    ///   - restMilliseconds: how long it lasts.
    package init(failures: Int, restMilliseconds: Int64) {
        most = max(1, failures)
        restNanoseconds = restMilliseconds * 1_000_000
    }

    /// Whether it has failed so often that calls are let in one at a time at most.
    package var isOpen: Bool { failures >= most }

    /// Why a call would not be let in now; nil if it would.
    package func reasonToRefuse(_ now: Int64) -> String? {
        isOpen && (now < restsUntil || isProbing) ? reason : nil
    }

    /// How long no call is let in, in nanoseconds; 0 if one may be, or tries it now.
    package func restLeft(_ now: Int64) -> Int64 { isOpen ? max(0, restsUntil - now) : 0 }

    /// Why a call is not let in; nil lets it in.
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

    /// The call that tried it says nothing of the server.
    package mutating func noteAbandoned() { isProbing = false }
}
