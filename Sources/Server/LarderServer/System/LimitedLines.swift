import LarderPlatform

/// Limits log lines that clients and origins can cause, to protect the disk. Each kind of line has its own limit: a
/// burst of lines, then one line per interval. Thread-safe.
final class LimitedLines: Sendable {
    private let log: Log
    private let clock: @Sendable () -> Int64
    private let rest: @Sendable (Int) -> String
    private let rate: LineRate
    private let rates = Locked<[String: LineRate]>([:])

    /// The maximum number of kinds with a limit of their own. All further kinds share one limit.
    private static let kindsMax = 16

    /// - Parameters:
    ///   - interval: the interval in milliseconds.
    ///   - clock: returns the time of the monotonic clock, in milliseconds.
    ///   - rest: returns the text to append to the first line after `n` suppressed lines. Its argument is `n`.
    init(
        _ log: Log, each interval: Int64 = 1000, burst: Int64 = 100, clock: @escaping @Sendable () -> Int64,
        rest: @escaping @Sendable (Int) -> String
    ) {
        self.log = log
        self.clock = clock
        self.rest = rest
        rate = LineRate(milliseconds: interval, burst: burst)
    }

    /// The lowest level of lines that are logged.
    var level: Log.Level { log.level }

    func add(_ level: Log.Level, _ line: String, kind: String = "") {
        guard level >= log.level, let skipped = count(kind) else { return }
        log.write(level, line + (skipped > 0 ? rest(skipped) : ""))
    }

    /// Counts a line against the limit of its kind.
    /// - Returns: nil if the line must not be logged; otherwise the number of lines suppressed before it.
    @discardableResult
    func count(_ kind: String) -> Int? {
        let now = clock()
        return rates.withLock {
            $0[$0[kind] != nil || $0.count < Self.kindsMax ? kind : "", default: rate].line(at: now)
        }
    }

    /// Resets the limits, so that the next line of each kind is logged.
    func forget() { rates.withLock { $0 = [:] } }
}
