/// Lets a server rest that has failed some times in a row, then lets one call try it. Confined to the loop.
struct Breaker {
    private let most: Int
    private let restNanoseconds: Int64
    private var failures = 0
    private var restsUntil: Int64 = 0
    private var isProbing = false
    private var reason = ""

    init(_ limits: OriginLimits) {
        most = max(1, limits.failuresBeforeRest)
        restNanoseconds = Int64(limits.rest) * 1_000_000
    }

    /// Why a call is not let in; nil lets it in.
    mutating func refusal(_ now: Int64) -> String? {
        guard failures >= most else { return nil }
        guard now >= restsUntil, !isProbing else { return reason }
        isProbing = true
        return nil
    }

    mutating func noteSuccess() {
        failures = 0
        isProbing = false
    }

    mutating func noteFailure(_ reason: String, _ now: Int64) {
        failures += 1
        isProbing = false
        self.reason = reason
        if failures >= most { restsUntil = now + restNanoseconds }
    }

    /// The call that tried it says nothing of the server.
    mutating func noteAbandoned() { isProbing = false }
}
