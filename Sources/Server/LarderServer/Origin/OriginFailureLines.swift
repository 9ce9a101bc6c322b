import LarderPlatform

/// Which failures of an origin are logged: each reason at once, then once a minute while it goes on.
///
/// Thread-safe. The proof for `@unchecked Sendable`: ``rates`` is read and written with the lock held.
final class OriginFailureLines: @unchecked Sendable {
    private let lock = Lock()
    private var rates: [String: LineRate] = [:]

    private static let eachMilliseconds: Int64 = 60_000
    /// More reasons than that are taken for one.
    private static let reasonsMax = 16

    /// - Parameter monotonic: now, in milliseconds of the monotonic clock.
    /// - Returns: how many lines of this reason were left out; nil if this one is to be.
    func line(_ reason: String, at monotonic: Int64) -> Int? {
        lock.withLock {
            let kind = rates[reason] != nil || rates.count < Self.reasonsMax ? reason : ""
            return rates[kind, default: LineRate(milliseconds: Self.eachMilliseconds)].line(at: monotonic)
        }
    }

    /// The origin answers: the next failure is news.
    func forget() { lock.withLock { rates = [:] } }
}
