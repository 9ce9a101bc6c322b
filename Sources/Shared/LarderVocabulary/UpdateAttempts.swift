import LarderPlatform

/// The retries of an update that conflicts with others, with an increasing, randomized back-off, so that concurrent
/// updates of the same key spread out.
///
/// A value.
package struct UpdateAttempts {
    /// The minimum number of attempts of an update without a given number, even if its time is over: a closure may be
    /// slow.
    package static let fewest = 64
    /// The limit of the first back-off, in nanoseconds; it doubles with each attempt, up to
    /// `longestRest`.
    private static let firstRest: UInt64 = 50_000
    private static let longestRest: UInt64 = 500_000_000

    private let most: Int?
    private let limit: Int64?
    private let start: Int64
    /// The number of failed attempts.
    package private(set) var count = 0

    /// - Parameters:
    ///   - most: how many attempts there may be; nil for at least ``fewest``, and as many as the time allows.
    ///   - limitMilliseconds: the time for the attempts if `most` is nil; nil for no limit.
    ///   - now: in monotonic milliseconds.
    package init(most: Int?, limitMilliseconds: Int?, now: Int64 = MonotonicClock.milliseconds()) {
        self.most = most
        limit = limitMilliseconds.map { Int64($0) }
        start = now
    }

    /// Records a failed attempt.
    /// - Parameters:
    ///   - now: in monotonic milliseconds.
    ///   - random: in 0..<1.
    /// - Returns: the back-off before the next attempt, in nanoseconds; nil to give up.
    package mutating func rest(
        now: Int64 = MonotonicClock.milliseconds(), random: Double = .random(in: 0..<1)
    ) -> UInt64? {
        count += 1
        if let most {
            if count >= most { return nil }
        } else if let limit, count >= Self.fewest, now - start >= limit {
            return nil
        }
        let bound = min(Self.longestRest, Self.firstRest << UInt64(min(count - 1, 20)))
        return UInt64(Double(bound) * random)
    }

    /// Why the update was given up, and how to avoid that.
    package var conflict: String {
        let attempts = most == 1 ? "the only attempt" : "each of \(count) attempts"
        let time = most == nil ? limit.map { " within \($0) ms" } ?? "" : ""
        return "another writer changed the entry in \(attempts)\(time), and nothing was written: try again later, "
            + "allow more attempts, or let fewer tasks change this key at once; increment adds to a number without attempts"
    }
}
