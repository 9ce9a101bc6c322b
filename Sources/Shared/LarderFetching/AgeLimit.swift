import LarderPlatform

/// The maximum age for a caller that reads more than once: values stored since its first read are always accepted.
package struct AgeLimit: Sendable {
    private let maxAge: Int64?
    private let clock: @Sendable () -> Int64
    /// The time of the first reply.
    private var answeredAt: Int64?

    /// - Parameters:
    ///   - maxAge: in milliseconds; zero accepts only values stored after the first read; nil any age.
    ///   - clock: monotonic milliseconds.
    package init(_ maxAge: Int64?, clock: @escaping @Sendable () -> Int64 = { MonotonicClock.milliseconds() }) {
        self.maxAge = maxAge
        self.clock = clock
    }

    /// Records that a reply has arrived.
    package mutating func answered() { answeredAt = answeredAt ?? clock() }

    /// The maximum age for a read now. It tolerates the differences between the two clocks, ours and the store's: less
    /// than two milliseconds for rounding, and less than a thousandth while a clock is being adjusted.
    package var now: Int64? {
        guard let maxAge, let answeredAt else { return maxAge }
        let waited = clock() - answeredAt
        return max(maxAge, waited - 2 - waited / 1000)
    }
}
