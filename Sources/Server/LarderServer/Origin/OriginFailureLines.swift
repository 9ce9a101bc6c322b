import LarderPlatform

/// Limits the log lines about failures of an origin: a new reason is logged immediately, then once a minute.
///
/// `@unchecked Sendable`: `rates` is guarded by `lock`.
final class OriginFailureLines: @unchecked Sendable {
    private let lock = Lock()
    private var rates: [String: LineRate] = [:]

    private static let eachMilliseconds: Int64 = 60_000
    /// The most reasons with a rate limit of their own. All further reasons share one limit.
    private static let reasonsMax = 16

    /// Returns whether to log a failure with this reason.
    /// - Parameter monotonic: the current time, in milliseconds of the monotonic clock.
    /// - Returns: nil to suppress the line; otherwise the number of lines suppressed before it.
    func line(_ reason: String, at monotonic: Int64) -> Int? {
        lock.withLock {
            let kind = rates[reason] != nil || rates.count < Self.reasonsMax ? reason : ""
            return rates[kind, default: LineRate(milliseconds: Self.eachMilliseconds)].line(at: monotonic)
        }
    }

    /// Resets the limits, so that the next failure is logged at once. Called when the origin is available again.
    func forget() { lock.withLock { rates = [:] } }
}
