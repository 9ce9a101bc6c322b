import LarderPlatform
import LarderTestSupport
import Testing

@testable import LarderServer

/// Tests of limits on log lines that clients or a full disk could otherwise repeat without end.
@Suite struct LineRateTests {
    @Test func logLinesAreRateLimited() {
        var rate = LineRate(milliseconds: 60_000)
        #expect([0, 1, 59_999].map { rate.line(at: $0) } == [0, nil, nil])
        #expect([60_000, 119_999, 125_000, 184_999, 185_000].map { rate.line(at: $0) } == [2, nil, 1, nil, 1])
        #expect(LineRate.rest(2, "times") == "; 2 more times since the last line" && LineRate.rest(0, "times").isEmpty)
    }

    @Test("a burst of lines is allowed only after a pause") func burstsOfLogLinesAreAllowedOnlyAfterAPause() {
        var rate = LineRate(milliseconds: 1000, burst: 3)
        func lines(_ times: [Int64]) -> [Int?] { times.map { rate.line(at: $0) } }
        #expect(lines([0, 0, 0, 0, 999]) == [0, 0, 0, nil, nil])
        #expect(lines([1000, 1000, 2500, 2999, 3000]) == [2, nil, 1, nil, 1])
        #expect(lines([10_000, 10_000, 10_000, 10_000]) == [0, 0, 0, nil])
    }

    /// A subscriber that does not read and keeps reconnecting cannot fill the disk with log lines.
    @Test func logLinesAboutReconnectingSubscribersAreLimited() throws {
        var limits = Limits()
        limits.subscriberBytesMax = 1000
        let server = try InProcessServer(limits: limits)
        let publisher = try server.connect()
        let message = String(repeating: "m", count: 2000)
        let rounds = 200
        let begun = MonotonicClock.milliseconds()
        for _ in 0..<rounds {
            let deaf = try server.connect()
            _ = try deaf.call("SUBSCRIBE news")
            #expect(try publisher.call("PUBLISH news \(message)") == ":1\r\n")
            // Reads until the server closes the connection. The last message may be incomplete.
            _ = try deaf.receiveToEnd()
        }
        let seconds = Int((MonotonicClock.milliseconds() - begun) / 1000)
        server.stop()
        var lines = 0
        while server.logLines.line(containing: "bytes of messages were unread") != nil { lines += 1 }
        #expect(lines >= 100 && lines <= 101 + seconds, "\(lines) lines in \(seconds) s")
    }
}
