import LarderPlatform

/// A clock for tests that moves only when a test sets it.
///
/// Thread-safe. `@unchecked Sendable`: both values are guarded by `lock`.
public final class ManualTimeSource: TimeSource, @unchecked Sendable {
    private let lock = Lock()
    private var wall: Int64
    private var monotonic: Int64

    /// - Parameter wallMilliseconds: the first wall-clock time; the default is 2023-11-14 22:13:20 UTC.
    public init(wallMilliseconds: Int64 = 1_700_000_000_000) {
        wall = wallMilliseconds
        monotonic = 1_000_000
    }

    public func wallMilliseconds() -> Int64 { lock.withLock { wall } }
    public func monotonicMilliseconds() -> Int64 { lock.withLock { monotonic } }

    /// Lets time pass: both clocks advance.
    public func advance(milliseconds: Int64) {
        lock.withLock {
            wall += milliseconds
            monotonic += max(0, milliseconds)
        }
    }

    /// Sets the wall clock forward or back. The monotonic clock does not change.
    public func stepWall(milliseconds: Int64) {
        lock.withLock { wall += milliseconds }
    }
}
