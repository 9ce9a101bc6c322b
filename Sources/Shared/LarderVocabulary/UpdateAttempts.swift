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
    /// The update that makes the attempts, if it runs a closure.
    package var update: RunningUpdate?
    /// Whether the closure itself has written the key in the last two attempts, so that others would fail too.
    package private(set) var isRecursion = false

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
        isRecursion = update?.failsAgain() ?? false
        if isRecursion { return nil }
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
        if isRecursion { return RunningUpdate.Recursion().message }
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

    /// The error if the closure of an update of the key makes the update, or writes the key in another way.
    package struct Recursion: Error {
        package let message =
            "the closure of an update of this key writes the key too, so the update conflicts with itself; change the "
            + "model that the closure gets instead"
    }

    private let owner: ObjectIdentifier
    private let key: [UInt8]
    /// The update whose closure makes this update.
    private let outer: RunningUpdate?
    /// Whether the update has ended. A task that its closure has started may still have it as ``current``.
    private let hasEnded = Atomic<Bool>(false)
    /// Whether the closure itself has written the key: bit 0 for the running attempt, bit 1 for the previous one.
    private let writes = Atomic<UInt8>(0)

    /// - Parameter owner: the object to whose keys `key` belongs.
    package init(of key: [UInt8], in owner: AnyObject) throws(Recursion) {
        (self.owner, self.key, outer) = (ObjectIdentifier(owner), key, Self.current)
        if Self.running(key, self.owner) != nil { throw Recursion() }
    }

    /// The update of a key whose closure makes the current call, if any.
    private static func running(_ key: [UInt8], _ owner: ObjectIdentifier) -> RunningUpdate? {
        var next = current
        while let update = next {
            if update.owner == owner, update.key == key, !update.hasEnded.load(ordering: .relaxed) { break }
            next = update.outer
        }
        return next
    }

    /// Records that the current call stores an entry. Matters if the closure of an update of its key makes the call.
    package static func noteWrite(of key: @autoclosure () -> [UInt8], in owner: AnyObject) {
        if current != nil { running(key(), ObjectIdentifier(owner))?.writes.bitwiseOr(1, ordering: .relaxed) }
    }

    /// Ends a failed attempt. Returns whether the closure has written the key in it and in the one before.
    fileprivate func failsAgain() -> Bool {
        let writes = writes.load(ordering: .relaxed)
        self.writes.store(writes << 1, ordering: .relaxed)
        return writes & 3 == 3
    }

    package func end() { hasEnded.store(true, ordering: .relaxed) }
}
