import Testing

@testable import LarderServer

/// Tests of how often the log reports an origin that does not reply.
@Suite struct OriginFailureTests {
    @Test func eachFailureReasonIsLoggedOncePerMinute() {
        let lines = OriginFailureLines()
        #expect(lines.line("a", at: 0) == 0)
        #expect(lines.line("a", at: 59_999) == nil)
        #expect(lines.line("b", at: 59_999) == 0, "another reason is logged at once")
        #expect(lines.line("a", at: 60_000) == 1)
        #expect(lines.line("a", at: 60_001) == nil)
        lines.forget()
        #expect(lines.line("a", at: 60_002) == 0)
    }

    @Test func logLinesOfManyDifferentReasonsAreLimited() {
        let lines = OriginFailureLines()
        let notified = (0..<1000).count { lines.line("reason \($0)", at: 5) != nil }
        #expect(notified == 17)
    }
}
