import LarderPlatform

/// The maximum age for a caller that reads a key repeatedly. Values stored after the caller's first read are accepted.
package struct AgeLimit: Sendable {
    private let maxAge: Int64?
    private let clock: @Sendable () -> Int64
    /// When the first reply arrived; nil before.
    private var answeredAt: Int64?

    /// - Parameters:
    ///   - maxAge: the maximum age in milliseconds; nil accepts any age, zero only values stored after the first read.
    ///   - clock: returns the monotonic time in milliseconds.
    package init(_ maxAge: Int64?, clock: @escaping @Sendable () -> Int64 = { MonotonicClock.milliseconds() }) {
        self.maxAge = maxAge
        self.clock = clock
    }

    /// Records that a reply has arrived. Only the first call has an effect.
    package mutating func answered() { answeredAt = answeredAt ?? clock() }

    /// The maximum age for a read now: at least the time since the first reply. The store uses another clock, so that
    /// time is reduced: by 2 milliseconds for rounding, and by a thousandth for clock adjustments.
    package var now: Int64? {
        guard let maxAge, let answeredAt else { return maxAge }
        let waited = clock() - answeredAt
        return max(maxAge, waited - 2 - waited / 1000)
    }
}
