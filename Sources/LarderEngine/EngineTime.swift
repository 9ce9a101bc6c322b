import Threading

/// The engine's time: the wall clock that never runs back.
///
/// While the wall clock keeps up with the monotonic clock, it is followed. When it was set back, time goes on from the
/// highest time reached, at the rate of the monotonic clock, until somebody sets the wall clock that far forward.
///
/// Thread-safe. The proof for `@unchecked Sendable`: the state is read and written with the lock held.
package final class EngineTime: @unchecked Sendable {
    /// The year 5138; later times are clamped to it, so that no sum of a time and an interval overflows.
    package static let latestMilliseconds: Int64 = 100_000_000_000_000

    private let source: any TimeSource
    private let lock = Lock()
    private var highWater: Int64 = 0
    private var monotonicAtHighWater: Int64 = 0
    private var offset: Int64 = 0

    package init(_ source: any TimeSource) {
        self.source = source
        _ = now()
    }

    /// The time for one command or call, in milliseconds since 1970.
    package func now() -> Int64 {
        lock.withLock {
            let wall = min(max(source.wallMilliseconds(), 0), Self.latestMilliseconds)
            let monotonic = min(max(source.monotonicMilliseconds(), 0), Self.latestMilliseconds)
            // Where the high-water mark has got to at the monotonic rate, however long ago it was last looked at. The two
            // clocks tick at different moments: one millisecond is no step back.
            let projected = highWater + max(0, monotonic - monotonicAtHighWater)
            if highWater == 0 || wall >= projected - 1 {
                highWater = max(highWater, wall)
                offset = 0
            } else {
                highWater = min(projected, Self.latestMilliseconds)
                offset = highWater - wall
            }
            monotonicAtHighWater = monotonic
            return highWater
        }
    }

    /// How far the engine's time is ahead of the wall clock, in milliseconds: 0 unless the wall clock was set back.
    package var offsetMilliseconds: Int64 {
        _ = now()
        return lock.withLock { offset }
    }

    /// For timers: never runs back, unrelated to the wall clock.
    package func monotonic() -> Int64 { source.monotonicMilliseconds() }
}
