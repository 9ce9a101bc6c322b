import Synchronization

/// The engine's time: that of the wall clock, except that it never runs backwards, not even across restarts
/// (``TimeKeeper``).
///
/// The engine follows the wall clock while that keeps up with the monotonic clock. After the wall clock was set back,
/// the engine's time continues from its highest value, at the rate of the monotonic clock, until the wall clock has
/// caught up. Until then it is ahead of the wall clock by ``offsetMilliseconds``, by which instants from outside and in
/// replies are translated.
///
/// Thread-safe without a lock, because every event loop reads the time for every batch of commands. The state is two
/// numbers that only increase.
package final class EngineTime: Sendable {
    /// The year 5138. Later times are clamped to it, so that no sum of a time and an interval overflows.
    package static let latestMilliseconds: Int64 = 100_000_000_000_000
    /// The year 5423, the end of the engine's time. It is after ``latestMilliseconds``, so that the engine's time still
    /// advances after a wall clock that showed the latest time was corrected.
    static let endMilliseconds = latestMilliseconds + UpdatePolicy.longestMilliseconds

    private let source: any TimeSource
    /// The highest observed difference of the wall clock and the monotonic clock.
    private let lead = Atomic<Int64>(.min / 2)
    /// The last reading of the wall clock if it kept up with the monotonic clock; -1 if it was behind.
    private let followed = Atomic<Int64>(-1)
    /// The highest time that was returned.
    private let highWater = Atomic<Int64>(0)
    /// The highest time that a restart is known to continue from; the highest possible number if marks are not written.
    private let marked = Atomic<Int64>(.max)
    private let mark = Mutex<(@Sendable () -> Void)?>(nil)

    /// The most milliseconds by which a returned time may exceed the last mark: the time that a kill may lose.
    static let unmarkedMilliseconds: Int64 = 250

    package init(_ source: any TimeSource) {
        self.source = source
        _ = time(wallMilliseconds)
    }

    /// Whether this time uses the same source: the same object, or a value of the same type.
    package func follows(_ other: any TimeSource) -> Bool {
        guard type(of: source) == type(of: other) else { return false }
        return !(type(of: other) is AnyClass) || source as AnyObject === other as AnyObject
    }

    /// The time for one command or call, in milliseconds since 1970.
    package func now() -> Int64 {
        let wall = wallMilliseconds
        // Most calls happen in the same millisecond as an earlier call, which has checked that the wall clock keeps up.
        // If the clock was set back to this very millisecond, the next call detects it.
        if wall == highWater.load(ordering: .relaxed), wall == followed.load(ordering: .relaxed) { return wall }
        return time(wall)
    }

    private var wallMilliseconds: Int64 { min(max(source.wallMilliseconds(), 0), Self.latestMilliseconds) }

    /// The engine's time when the wall clock shows `wall`. The wall clock must be read before the monotonic clock: if
    /// the thread is interrupted between the two, the wall clock only appears less far ahead, which does no harm.
    private func time(_ wall: Int64) -> Int64 {
        let monotonic = min(max(source.monotonicMilliseconds(), 0), Self.latestMilliseconds)
        let lead = Self.raise(lead, to: wall - monotonic)
        // The highest time, advanced at the rate of the monotonic clock. The two clocks tick at different moments, so a
        // difference of one millisecond is not a step back.
        let projected = min(monotonic + lead, Self.endMilliseconds)
        let time = Self.raise(highWater, to: wall >= projected - 1 ? wall : projected)
        // A wall clock that is behind must not appear to keep up in the millisecond in which it shows this time again.
        // The same applies to a wall clock at the latest time, because the engine's time continues after that.
        followed.store(time == wall && wall < Self.latestMilliseconds ? wall : -1, ordering: .relaxed)
        // Also true for the first call after a period without calls.
        if time - marked.load(ordering: .relaxed) > Self.unmarkedMilliseconds { mark.withLock { $0 }?() }
        return time
    }

    // MARK: Over restarts

    /// Sets the function that writes a mark. It is called before a time that is too far from the last mark is returned,
    /// and must call ``noteMark(_:)``.
    func onUnmarked(_ body: @escaping @Sendable () -> Void) {
        mark.withLock { $0 = body }
        marked.store(reached, ordering: .relaxed)
    }

    /// Records that a mark of this time was written, or that writing it failed.
    func noteMark(_ time: Int64) { Self.raise(marked, to: time) }

    /// Continues from a time that was reached in the past, if it is later.
    func resume(from time: Int64) {
        let monotonic = min(max(source.monotonicMilliseconds(), 0), Self.latestMilliseconds)
        let time = min(time, Self.endMilliseconds)
        Self.raise(lead, to: time - monotonic)
        Self.raise(highWater, to: time)
        followed.store(-1, ordering: .relaxed)
    }

    /// The highest time that was returned.
    var reached: Int64 { highWater.load(ordering: .relaxed) }

    /// The time for internal work. It is not recorded as returned.
    func unnoticed() -> Int64 { sample().time }

    /// Reads the engine's time and the wall clock together, with the highest difference of the wall clock and the
    /// monotonic clock.
    func sample() -> (time: Int64, wall: Int64, lead: Int64) {
        let wall = wallMilliseconds
        let monotonic = min(max(source.monotonicMilliseconds(), 0), Self.latestMilliseconds)
        let lead = max(lead.load(ordering: .relaxed), wall - monotonic)
        let projected = min(monotonic + lead, Self.endMilliseconds)
        return (max(reached, wall >= projected - 1 ? wall : projected), wall, lead)
    }

    /// Raises a number to `value`, unless it is already higher.
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

    /// Monotonic milliseconds for timers, unrelated to the wall clock.
    package func monotonic() -> Int64 { source.monotonicMilliseconds() }
}
