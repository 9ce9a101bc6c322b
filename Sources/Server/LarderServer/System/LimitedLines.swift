import LarderPlatform

/// Limits log lines that clients can cause, to protect the disk: a burst of 100 lines, then one line per second.
///
/// `@unchecked Sendable`: the variables are guarded by `lock`.
final class LimitedLines: @unchecked Sendable {
    private let log: Log
    private let clock: @Sendable () -> Int64
    private let rest: @Sendable (Int) -> String
    private let lock = Lock()
    private var rate = LineRate(milliseconds: LimitedLines.eachMilliseconds, burst: LimitedLines.burst)

    static let burst: Int64 = 100
    static let eachMilliseconds: Int64 = 1000

    /// - Parameters:
    ///   - clock: returns the time of the monotonic clock, in milliseconds.
    ///   - rest: returns the text to append to the first line after `n` suppressed lines. Its argument is `n`.
    init(_ log: Log, clock: @escaping @Sendable () -> Int64, rest: @escaping @Sendable (Int) -> String) {
        self.log = log
        self.clock = clock
        self.rest = rest
    }

    /// The lowest level of lines that are logged.
    var level: Log.Level { log.level }

    func add(_ level: Log.Level, _ line: String) {
        let now = clock()
        guard level >= log.level, let skipped = lock.withLock({ rate.line(at: now) }) else { return }
        log.write(level, line + (skipped > 0 ? rest(skipped) : ""))
    }
}

/// Limits the log lines about failures of an origin: a new reason is logged immediately, then once a minute.
///
/// `@unchecked Sendable`: `rates` is guarded by `lock`.
final class OriginFailureLines: @unchecked Sendable {
    private let lock = Lock()
    private var rates: [String: LineRate] = [:]

    private static let eachMilliseconds: Int64 = 60_000
    /// The maximum number of reasons with a rate limit of their own. All further reasons share one limit.
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

    /// Resets the limits, so that the next failure is logged immediately. Called when the origin is available again.
    func forget() { lock.withLock { rates = [:] } }
}
