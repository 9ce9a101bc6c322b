import LarderPlatform

/// Limits the log lines about failures of an origin: each reason is logged at once, then once a minute while it lasts.
///
/// `@unchecked Sendable`: `rates` is guarded by `lock`.
final class OriginFailureLines: @unchecked Sendable {
    private let lock = Lock()
    private var rates: [String: LineRate] = [:]

    private static let eachMilliseconds: Int64 = 60_000
    /// The most reasons with their own rate; further ones share one rate.
    private static let reasonsMax = 16

    /// - Parameter monotonic: now, in milliseconds of the monotonic clock.
    /// - Returns: the number of suppressed lines with this reason; nil to suppress this line.
    func line(_ reason: String, at monotonic: Int64) -> Int? {
        lock.withLock {
            let kind = rates[reason] != nil || rates.count < Self.reasonsMax ? reason : ""
            return rates[kind, default: LineRate(milliseconds: Self.eachMilliseconds)].line(at: monotonic)
        }
    }

    /// Called when the origin is available again, so that the next failure is logged at once.
    func forget() { lock.withLock { rates = [:] } }
}
