import LarderPlatform

/// The greatest age that a caller takes who asks more than once: what was stored since its first question is good
/// enough, whatever age it wants.
package struct AgeLimit: Sendable {
    private let maxAge: Int64?
    private let clock: @Sendable () -> Int64
    /// When the first answer was here.
    private var answeredAt: Int64?

    /// - Parameters:
    ///   - maxAge: in milliseconds; zero for a value that is stored after the first question; nil for any age.
    ///   - clock: monotonic milliseconds.
    package init(_ maxAge: Int64?, clock: @escaping @Sendable () -> Int64 = { MonotonicClock.milliseconds() }) {
        self.maxAge = maxAge
        self.clock = clock
    }

    /// Notes that an answer is here.
    package mutating func answered() { answeredAt = answeredAt ?? clock() }

    /// The age to ask for now. Two clocks of whole milliseconds, ours and that of who answers, are together wrong by less
    /// than two, and by less than a thousandth where one is being adjusted.
    package var now: Int64? {
        guard let maxAge, let answeredAt else { return maxAge }
        let waited = clock() - answeredAt
        return max(maxAge, waited - 2 - waited / 1000)
    }
}
