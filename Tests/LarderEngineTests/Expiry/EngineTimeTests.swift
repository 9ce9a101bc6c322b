import LarderPlatform
import LarderTestSupport
import Testing

@testable import LarderEngine

@Suite struct EngineTimeTests {
    /// Regression test: each mark wrapped the function in two more closures, until their calls exceeded the stack.
    @Test func hundredsOfThousandsOfMarksAreWritten() {
        let source = ManualTimeSource()
        let time = EngineTime(source)
        let marks = Guarded(0)
        time.onUnmarked { [unowned time] in
            marks.with { $0 += 1 }
            time.noteMark(time.reached)
        }
        for _ in 0..<300_000 {
            source.advance(milliseconds: EngineTime.unmarkedMilliseconds + 1)
            _ = time.now()
        }
        #expect(marks.value == 300_000)
    }

    private let start: Int64 = 1_700_000_000_000

    @Test func timeFollowsTheWallClock() {
        let source = ManualTimeSource(wallMilliseconds: start)
        let time = EngineTime(source)
        #expect(time.now() == start)
        source.advance(milliseconds: 5)
        #expect(time.now() == start + 5)
        source.stepWall(milliseconds: 86_400_000)
        #expect(time.now() == start + 86_400_005)
        #expect(time.offsetMilliseconds == 0)
    }

    /// A source whose caller is interrupted for 5 ms before the next readings of the monotonic clock.
    private final class InterruptedSource: TimeSource {
        private let clocks: ManualTimeSource
        let interruptions = Locked(0)

        init(_ clocks: ManualTimeSource) { self.clocks = clocks }

        func wallMilliseconds() -> Int64 { clocks.wallMilliseconds() }

        func monotonicMilliseconds() -> Int64 {
            let isInterrupted = interruptions.withLock { left in
                left -= 1
                return left >= 0
            }
            if isInterrupted { clocks.advance(milliseconds: 5) }
            return clocks.monotonicMilliseconds()
        }
    }

    /// Otherwise absolute deadlines would be moved by these milliseconds.
    @Test func anInterruptionBetweenTheReadingsIsNoStepOfTheClock() {
        let clocks = ManualTimeSource(wallMilliseconds: start)
        let source = InterruptedSource(clocks)
        let time = EngineTime(source)
        #expect(time.now() == start)
        source.interruptions.withLock { $0 = 3 }
        #expect(time.offsetMilliseconds == 0)
        clocks.stepWall(milliseconds: -60_000)
        #expect(time.offsetMilliseconds > 59_000)
    }

    @Test func timeContinuesAtTheMonotonicRateWhenTheClockIsSetBack() {
        let source = ManualTimeSource(wallMilliseconds: start)
        let time = EngineTime(source)
        source.stepWall(milliseconds: -3_600_000)
        #expect(time.now() == start)
        #expect(time.offsetMilliseconds == 3_600_000)
        source.advance(milliseconds: 1500)
        #expect(time.now() == start + 1500)
        source.stepWall(milliseconds: -1000)
        source.advance(milliseconds: 1)
        #expect(time.now() == start + 1501)
        #expect(time.offsetMilliseconds == 3_601_000)
    }

    @Test func timeFollowsTheWallClockAgainWhenItHasCaughtUp() {
        let source = ManualTimeSource(wallMilliseconds: start)
        let time = EngineTime(source)
        source.stepWall(milliseconds: -1000)
        #expect(time.now() == start)
        source.stepWall(milliseconds: 1500)
        #expect(time.now() == start + 500)
        #expect(time.offsetMilliseconds == 0)
    }

    /// The monotonic clock is read at most once per millisecond; the wall clock is read each time.
    @Test func theMonotonicClockIsReadOncePerMillisecond() {
        let source = CountingTimeSource(wallMilliseconds: start)
        let time = EngineTime(source)
        let before = source.asked
        for _ in 0..<100 { #expect(time.now() == start) }
        #expect(source.asked == before)
        source.clock.advance(milliseconds: 1)
        #expect(time.now() == start + 1)
        #expect(source.asked == before + 1)
        // While the wall clock is behind its previous maximum, the time still advances at the monotonic rate.
        source.clock.stepWall(milliseconds: -10)
        source.clock.advance(milliseconds: 3)
        for _ in 0..<3 { #expect(time.now() == start + 4) }
        source.clock.advance(milliseconds: 7)
        #expect(time.now() == start + 11)
    }

    /// The clock is set back by a second. A second later it shows the same time as before the step, but the engine's
    /// time must have advanced by that second.
    @Test func aClockThatWasSetBackIsDetected() {
        let source = ManualTimeSource(wallMilliseconds: start)
        let time = EngineTime(source)
        source.stepWall(milliseconds: -1000)
        #expect(time.now() == start)
        source.advance(milliseconds: 1000)
        #expect(time.unnoticed() == start + 1000)
        #expect(time.now() == start + 1000)
    }

    @Test func clockValuesOutOfRangeAreClamped() {
        let source = ManualTimeSource(wallMilliseconds: -7)
        let time = EngineTime(source)
        #expect(time.now() == 0)
        source.stepWall(milliseconds: EngineTime.latestMilliseconds + 100)
        #expect(time.now() == EngineTime.latestMilliseconds)
        // Clamped time still advances.
        source.advance(milliseconds: 1000)
        #expect(time.now() == EngineTime.latestMilliseconds + 1000)
        time.resume(from: .max)
        source.advance(milliseconds: 1000)
        #expect(time.now() == EngineTime.endMilliseconds)
    }

    @Test func timeNeverGoesBackWithRandomClocks() {
        var random = SeededGenerator(seed: testSeed())
        let source = ManualTimeSource(wallMilliseconds: start)
        let time = EngineTime(source)
        var last = time.now()
        var passed: Int64 = 0
        let first = last
        for _ in 0..<20_000 {
            if random.oneIn(3) {
                source.stepWall(milliseconds: Int64.random(in: -100_000_000...100_000_000, using: &random))
            } else {
                let span = Int64.random(in: 0...5000, using: &random)
                source.advance(milliseconds: span)
                passed += span
            }
            let now = time.now()
            #expect(now >= last)
            #expect(now - first >= passed)
            #expect(time.offsetMilliseconds == max(0, now - source.wallMilliseconds()))
            last = now
        }
    }

    @Test func timeNeverGoesBackBetweenThreads() {
        let source = ManualTimeSource(wallMilliseconds: start)
        let time = EngineTime(source)
        let isFine = Guarded(true)
        onThreads(4) { index in
            var last: Int64 = 0
            for step in 0..<5000 {
                if index == 0 { source.stepWall(milliseconds: step % 2 == 0 ? -50 : 45) }
                if index == 1 { source.advance(milliseconds: 1) }
                let now = time.now()
                if now < last { isFine.value = false }
                last = now
            }
        }
        #expect(isFine.value)
    }

    @Test func theSystemsClocksGoForward() {
        let source = SystemTimeSource()
        #expect(source.wallMilliseconds() > 1_600_000_000_000)
        let first = source.monotonicMilliseconds()
        #expect(source.monotonicMilliseconds() >= first)
    }
}

/// A time source that counts how often the monotonic clock is read.
private final class CountingTimeSource: TimeSource {
    let clock: ManualTimeSource
    private let count = Guarded(0)

    init(wallMilliseconds: Int64) { clock = ManualTimeSource(wallMilliseconds: wallMilliseconds) }

    var asked: Int { count.value }

    func wallMilliseconds() -> Int64 { clock.wallMilliseconds() }
    func monotonicMilliseconds() -> Int64 {
        count.with { $0 += 1 }
        return clock.monotonicMilliseconds()
    }
}
