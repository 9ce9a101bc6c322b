import LarderPlatform

/// The clocks from which the engine's time is derived. A test can pass its own clocks to control time.
public protocol TimeSource: Sendable {
    /// Milliseconds since 1970 by the wall clock, which may be set back or forward.
    func wallMilliseconds() -> Int64
    /// Milliseconds since some fixed instant. Never runs backwards.
    func monotonicMilliseconds() -> Int64
}

/// The clocks of the operating system.
public struct SystemTimeSource: TimeSource {
    /// Creates the source.
    public init() {}

    public func wallMilliseconds() -> Int64 { Self.read(CLOCK_REALTIME) }
    public func monotonicMilliseconds() -> Int64 { Self.read(Self.monotonic) }

    #if os(Linux)
        /// This clock continues while the machine is suspended. Otherwise a suspension would look like a step of the
        /// wall clock.
        private static let monotonic = CLOCK_BOOTTIME
    #else
        private static let monotonic = CLOCK_MONOTONIC
    #endif

    private static func read(_ clock: clockid_t) -> Int64 {
        var time = timespec()
        clock_gettime(clock, &time)
        // If the clock is set to an extreme year, clamp the time instead of trapping.
        let (milliseconds, overflow) = Int64(time.tv_sec).multipliedReportingOverflow(by: 1000)
        guard !overflow else { return time.tv_sec < 0 ? 0 : EngineTime.latestMilliseconds }
        return milliseconds + Int64(time.tv_nsec) / 1_000_000
    }
}

/// A clock for tests that moves only when a test sets it.
///
/// Thread-safe.
public final class ManualTimeSource: TimeSource {
    private let clocks: Locked<(wall: Int64, monotonic: Int64)>

    /// - Parameter wallMilliseconds: the first wall-clock time; the default is 2023-11-14 22:13:20 UTC.
    public init(wallMilliseconds: Int64 = 1_700_000_000_000) { clocks = Locked((wallMilliseconds, 1_000_000)) }

    public func wallMilliseconds() -> Int64 { clocks.withLock { $0.wall } }
    public func monotonicMilliseconds() -> Int64 { clocks.withLock { $0.monotonic } }

    /// Lets time pass: both clocks advance.
    public func advance(milliseconds: Int64) {
        clocks.withLock { clocks in
            clocks.wall += milliseconds
            clocks.monotonic += max(0, milliseconds)
        }
    }

    /// Sets the wall clock forward or back. The monotonic clock does not change.
    public func stepWall(milliseconds: Int64) {
        clocks.withLock { $0.wall += milliseconds }
    }
}

/// Adapts any clock of Swift's protocol `Clock` to a larder, for example the clock of a test.
///
/// Both times of the larder follow the clock: the monotonic time is the time since this object was created, and the
/// wall-clock time is the same added to a date. Use one object for all caches of a larder.
///
/// Thread-safe.
public final class ClockTimeSource<AnyClock: Clock>: TimeSource where AnyClock.Duration == Duration {
    private let clock: AnyClock
    private let start: AnyClock.Instant
    private let startMilliseconds: Int64

    /// - Parameters:
    ///   - clock: the clock. If it runs backwards, the larder's time stands still.
    ///   - wallMilliseconds: the wall-clock time when the object is created, in milliseconds since 1970; the default is
    ///     the system's current time.
    public init(_ clock: AnyClock, wallMilliseconds: Int64 = SystemTimeSource().wallMilliseconds()) {
        self.clock = clock
        start = clock.now
        startMilliseconds = wallMilliseconds
    }

    public func wallMilliseconds() -> Int64 { startMilliseconds + monotonicMilliseconds() }

    public func monotonicMilliseconds() -> Int64 {
        let (seconds, attoseconds) = start.duration(to: clock.now).components
        return seconds * 1000 + attoseconds / 1_000_000_000_000_000
    }
}
