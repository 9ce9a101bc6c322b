import LarderPlatform
import Synchronization

/// Counts the attempts of an update that conflicts with other writers, and computes the back-off before each retry. The
/// back-off increases and is random, so that concurrent updates of a key do not collide again.
///
/// A value; not synchronized.
package struct UpdateAttempts {
    /// The minimum number of attempts if the caller gave no number. The time limit applies only after these attempts,
    /// because a slow closure may use up the time limit in few attempts.
    package static let fewest = 64
    /// The upper limit of the first back-off, in nanoseconds. It doubles with each attempt, up to ``longestRest``.
    private static let firstRest: Int64 = 50_000
    private static let longestRest: Int64 = 500_000_000

    private let most: Int?
    private let limit: Int64?
    private let start: Int64
    /// The number of failed attempts.
    package private(set) var count = 0

    /// - Parameters:
    ///   - most: the maximum number of attempts; nil for at least ``fewest``, and as many as the time allows.
    ///   - limitMilliseconds: the time limit for the attempts if `most` is nil; nil for none.
    ///   - now: in monotonic milliseconds.
    package init(most: Int?, limitMilliseconds: Int?, now: Int64 = MonotonicClock.milliseconds()) {
        self.most = most
        limit = limitMilliseconds.map { Int64($0) }
        start = now
    }

    /// Records a failed attempt.
    /// - Parameters:
    ///   - now: in monotonic milliseconds.
    ///   - random: a random number in 0..<1.
    /// - Returns: the back-off before the next attempt, in nanoseconds; nil if there must be no other attempt.
    package mutating func rest(
        now: Int64 = MonotonicClock.milliseconds(), random: Double = .random(in: 0..<1)
    ) -> UInt64? {
        count += 1
        if let most {
            if count >= most { return nil }
        } else if let limit, count >= Self.fewest, now - start >= limit {
            return nil
        }
        return UInt64(
            RetryBackoff.rest(
                after: count - 1, from: Self.firstRest, to: Self.longestRest, jitter: 1, random: 1 - random))
    }

    /// The error message for an update that has failed in all attempts, with advice.
    package var conflict: String {
        let attempts = most == 1 ? "the only attempt" : "each of \(count) attempts"
        return "another writer, or the update's own closure, changed the entry in \(attempts), and nothing was "
            + "written: try again later, allow more attempts, or let fewer tasks change this key at once; to add to a "
            + "number, use increment, which needs only one attempt"
    }
}

/// An update whose closure may run. Detects updates of a key by the closure of an update of the same key.
///
/// Thread-safe.
package final class RunningUpdate: Sendable {
    /// The update whose closure makes the current call, if any.
    @TaskLocal package static var current: RunningUpdate?

    /// The error if the closure of an update of the key makes the update.
    package struct Recursion: Error {
        package let message =
            "the closure of an update of this key updates the key again, so it would conflict with itself; change the "
            + "model that the closure gets instead"
    }

    private let owner: ObjectIdentifier
    private let key: [UInt8]
    /// The update whose closure makes this update.
    private let outer: RunningUpdate?
    /// Whether the update has ended. A task that its closure has started may still have it as ``current``.
    private let hasEnded = Atomic<Bool>(false)

    /// - Parameter owner: the object to whose keys `key` belongs.
    package init(of key: [UInt8], in owner: AnyObject) throws(Recursion) {
        (self.owner, self.key, outer) = (ObjectIdentifier(owner), key, Self.current)
        var next = outer
        while let update = next {
            if update.owner == self.owner, update.key == key, !update.hasEnded.load(ordering: .relaxed) {
                throw Recursion()
            }
            next = update.outer
        }
    }

    package func end() { hasEnded.store(true, ordering: .relaxed) }
}
