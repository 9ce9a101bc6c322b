import LarderEngine
import Testing

@testable import LarderServer

/// Tests of how often the log reports an origin that does not reply.
@Suite struct OriginFailureTests {
    private let time = ManualTimeSource()

    private func lines() -> LimitedLines {
        LimitedLines(
            .none, each: 60_000, burst: 1, clock: { [time] in time.monotonicMilliseconds() }, rest: { "\($0)" })
    }

    @Test func eachFailureReasonIsLoggedOncePerMinute() {
        let lines = lines()
        #expect(lines.count("a") == 0)
        time.advance(milliseconds: 59_999)
        #expect(lines.count("a") == nil)
        #expect(lines.count("b") == 0, "another reason is logged at once")
        time.advance(milliseconds: 1)
        #expect(lines.count("a") == 1)
        time.advance(milliseconds: 1)
        #expect(lines.count("a") == nil)
        lines.forget()
        #expect(lines.count("a") == 0)
    }

    @Test func logLinesOfManyDifferentReasonsAreLimited() {
        let lines = lines()
        let notified = (0..<1000).count { lines.count("reason \($0)") != nil }
        #expect(notified == 17)
    }
}
