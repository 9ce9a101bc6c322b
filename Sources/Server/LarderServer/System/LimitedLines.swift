import LarderPlatform

/// Lines of the daemon's log that clients cause: a hundred, and one a second when these are used up, so that nobody fills
/// the disk with them.
///
/// Thread-safe. The proof for `@unchecked Sendable`: what changes is read and written with the lock held.
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
    ///   - rest: what a line says at its end of so many that were left out before it.
    init(_ log: Log, clock: @escaping @Sendable () -> Int64, rest: @escaping @Sendable (Int) -> String) {
        self.log = log
        self.clock = clock
        self.rest = rest
    }

    /// The least important lines that are written.
    var level: Log.Level { log.level }

    func add(_ level: Log.Level, _ line: String) {
        let now = clock()
        guard level >= log.level, let skipped = lock.withLock({ rate.line(at: now) }) else { return }
        log.write(level, line + (skipped > 0 ? rest(skipped) : ""))
    }
}
