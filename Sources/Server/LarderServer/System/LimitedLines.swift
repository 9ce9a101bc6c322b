import LarderPlatform

/// Limits the log lines that clients cause: to a hundred, then one per second, so that they cannot fill the disk.
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
    ///   - clock: milliseconds of the monotonic clock.
    ///   - rest: the suffix of a line that reports the number of lines suppressed before it.
    init(_ log: Log, clock: @escaping @Sendable () -> Int64, rest: @escaping @Sendable (Int) -> String) {
        self.log = log
        self.clock = clock
        self.rest = rest
    }

    /// The lowest level that is logged.
    var level: Log.Level { log.level }

    func add(_ level: Log.Level, _ line: String) {
        let now = clock()
        guard level >= log.level, let skipped = lock.withLock({ rate.line(at: now) }) else { return }
        log.write(level, line + (skipped > 0 ? rest(skipped) : ""))
    }
}
