import LarderPlatform
import Synchronization

/// The engine's time: the time of the wall clock, except that it never runs backwards, not even across restarts (see
/// ``TimeKeeper``).
///
/// Normally the engine's time is that of the wall clock. After the wall clock was set back, the engine's time continues
/// from its highest value at the rate of the monotonic clock. This lasts until the wall clock has caught up. Until
/// then, the engine's time is ahead by ``offsetMilliseconds``. Callers add this offset to times in requests, and
/// subtract it from times in replies.
///
/// Thread-safe without a lock, because every event loop reads the time for every batch of commands. The state is two
/// numbers that only increase.
package final class EngineTime: Sendable {
    /// The latest time of the wall clock, in the year 5138. Later times are clamped to it, so that no sum of a time and
    /// an interval overflows.
    package static let latestMilliseconds: Int64 = 100_000_000_000_000
    /// The latest time of the engine, in the year 5423. It is later than ``latestMilliseconds``: if the wall clock
    /// wrongly showed ``latestMilliseconds`` for a while, the engine's time can still advance afterwards.
    static let endMilliseconds = latestMilliseconds + UpdatePolicy.longestMilliseconds

    private let source: any TimeSource
    /// The highest observed difference between the wall clock and the monotonic clock, in milliseconds.
    private let lead = Atomic<Int64>(.min / 2)
    /// The last time read from the wall clock, or -1 if it was behind the engine's time.
    private let followed = Atomic<Int64>(-1)
    /// The highest time that the engine has returned.
    private let highWater = Atomic<Int64>(0)
    /// The time in the last mark. A mark is a time on the disk, from which the engine's time continues after a restart.
    /// `.max` if no marks are written.
    private let marked = Atomic<Int64>(.max)
    private let mark = Locked(Mark())

    /// The maximum number of milliseconds by which a returned time may exceed the last mark. If the process is killed,
    /// the engine's time may run back by this much.
    static let unmarkedMilliseconds: Int64 = 250

    /// The function that writes a mark; nil if no marks are written.
    private struct Mark {
        var write: (@Sendable () -> Void)?
    }

    package init(_ source: any TimeSource) {
        self.source = source
        _ = time(wallMilliseconds)
    }

    /// Whether this time reads the clocks of `other`: the same object, or a value of the same type.
    package func follows(_ other: any TimeSource) -> Bool {
        guard type(of: source) == type(of: other) else { return false }
        return !(type(of: other) is AnyClass) || source as AnyObject === other as AnyObject
    }

    /// The time for one command or call, in milliseconds since 1970.
    package func now() -> Int64 {
        let wall = wallMilliseconds
        // Most calls happen in the same millisecond as an earlier call, which has compared the two clocks. If the wall
        // clock was set back to exactly this millisecond, a call in a later millisecond detects it.
        if wall == highWater.load(ordering: .relaxed), wall == followed.load(ordering: .relaxed) { return wall }
        return time(wall)
    }

    private var wallMilliseconds: Int64 { min(max(source.wallMilliseconds(), 0), Self.latestMilliseconds) }

    /// Returns the engine's time when the wall clock shows `wall`, and records it as returned. The caller has just read
    /// the wall clock, and this function reads the monotonic clock. If the thread is interrupted in between, the wall
    /// clock seems to be behind; that is harmless, because only the highest difference of the clocks is kept.
    private func time(_ wall: Int64) -> Int64 {
        let monotonic = min(max(source.monotonicMilliseconds(), 0), Self.latestMilliseconds)
        let lead = Self.raise(lead, to: wall - monotonic)
        // The engine's time if it advances at the rate of the monotonic clock. The two clocks tick at different
        // moments, so a wall clock that is one millisecond behind was not set back.
        let projected = min(monotonic + lead, Self.endMilliseconds)
        let time = Self.raise(highWater, to: wall >= projected - 1 ? wall : projected)
        // Store -1 if the wall clock is behind. Otherwise the fast path of `now()` would stop the engine's time for a
        // millisecond when the wall clock shows this time. Also store -1 if the wall clock is at its latest time,
        // because the engine's time continues after that.
        followed.store(time == wall && wall < Self.latestMilliseconds ? wall : -1, ordering: .relaxed)
        // Without calls, no marks are written. So the first call after a pause writes a mark.
        if time - marked.load(ordering: .relaxed) > Self.unmarkedMilliseconds { mark.withLock { $0 }.write?() }
        return time
    }

    // MARK: Across restarts

    /// Sets the function that writes a mark and then calls ``noteMark(_:)``. The function is called before a time is
    /// returned that exceeds the last mark by more than ``unmarkedMilliseconds``.
    func onUnmarked(_ body: @escaping @Sendable () -> Void) {
        mark.withLock { $0.write = body }
        marked.store(reached, ordering: .relaxed)
    }

    /// Records that a mark of this time was written, or that writing it failed.
    func noteMark(_ time: Int64) { Self.raise(marked, to: time) }

    /// Continues from a time that an earlier process has reached, if that time is later than the engine's.
    func resume(from time: Int64) {
        let monotonic = min(max(source.monotonicMilliseconds(), 0), Self.latestMilliseconds)
        let time = min(time, Self.endMilliseconds)
        Self.raise(lead, to: time - monotonic)
        Self.raise(highWater, to: time)
        followed.store(-1, ordering: .relaxed)
    }

    /// The highest time that the engine has returned.
    var reached: Int64 { highWater.load(ordering: .relaxed) }

    /// The current time, for internal work. Unlike ``now()``, it does not record the time as returned, and so never
    /// writes a mark.
    package func unnoticed() -> Int64 { sample().time }

    /// Returns the engine's time, the wall clock's time, and `lead`, the highest difference between the wall clock and
    /// the monotonic clock. Does not record the time as returned.
    func sample() -> (time: Int64, wall: Int64, lead: Int64) {
        var wall = wallMilliseconds
        var monotonic: Int64 = 0
        // If the thread is interrupted between the readings, the wall clock seems to be behind. Then read again.
        for _ in 0..<8 {
            monotonic = min(max(source.monotonicMilliseconds(), 0), Self.latestMilliseconds)
            let after = wallMilliseconds
            if after - wall <= 1 { break }
            wall = after
        }
        let lead = max(lead.load(ordering: .relaxed), wall - monotonic)
        let projected = min(monotonic + lead, Self.endMilliseconds)
        return (max(reached, wall >= projected - 1 ? wall : projected), wall, lead)
    }

    /// Raises a number to `value` if the number is lower.
    /// - Returns: the new value.
    @discardableResult
    private static func raise(_ number: borrowing Atomic<Int64>, to value: Int64) -> Int64 {
        let old = number.load(ordering: .relaxed)
        if old >= value { return old }
        return number.max(value, ordering: .relaxed).newValue
    }

    /// The milliseconds by which the engine's time is ahead of the wall clock: 0 unless the wall clock was set back.
    package var offsetMilliseconds: Int64 {
        let (time, wall, _) = sample()
        return time - wall > 1 ? time - wall : 0
    }

    /// The monotonic clock in milliseconds, for timers. It is not affected by changes of the wall clock.
    package func monotonic() -> Int64 { source.monotonicMilliseconds() }
}
