import LarderTestSupport
import Testing

@testable import LarderEngine
@testable import LarderServer

/// Tests of how soon the space of expired entries is reclaimed.
@Suite struct ExpiryLagTests {
    private func lag(_ server: SocketlessServer) -> [Int64] {
        let info = server.connect()("INFO stats").split(separator: "\r\n")
        return ["entries", "avg_ms", "p99_ms", "max_ms"].compactMap { name in
            info.first { $0.hasPrefix("expiry_lag_\(name):") }.flatMap { Int64($0.drop { $0 != ":" }.dropFirst()) }
        }
    }

    @Test("the expiry lag is the time from the deadline to the removal", arguments: [false, true])
    func theTimeFromTheDeadlineToTheRemovalCounts(_ isInFiles: Bool) throws {
        let server = try SocketlessServer()
        let call = server.connect()
        #expect(lag(server) == [0, 0, 0, 0])
        for index in 0..<10 { #expect(call("SET k\(index) v EX 60") == Wire.ok) }
        #expect(call("SET stays v") == Wire.ok)
        if isInFiles { #expect(call("SAVE") == Wire.ok) }
        server.time.advance(milliseconds: 60_000 + 90_000)
        while server.engine.maintain() {}
        if !isInFiles { #expect(call("SAVE") == Wire.ok) }
        let found = lag(server)
        #expect(found[0] == 10)
        #expect(found[1...].allSatisfy { (90_000..<92_000).contains($0) }, "\(found)")
    }

    /// Entries that a tag purge removes before their deadlines do not count as late.
    @Test("entries removed before their deadline do not count as late")
    func entriesRemovedBeforeTheirDeadlineAreNotLate() throws {
        let server = try SocketlessServer()
        let call = server.connect()
        #expect(call("SET b v TAGS 1 t") == Wire.ok)
        #expect(call("SAVE") == Wire.ok)
        server.time.advance(milliseconds: 30_000)
        _ = call("PURGE TAG t")
        #expect(call("DBSIZE") == Wire.int(0))
        server.time.advance(milliseconds: 700_000_000)
        while server.engine.maintain() {}
        #expect(server.engine.statistics.expiredSwept.read() == 1)
        #expect(lag(server) == [0, 0, 0, 0])
    }

    @Test("percentiles of the expiry lag are upper bounds") func percentilesAreUpperBounds() {
        let lag = ExpiryLag()
        for index in 1...100 { lag.note(end: 1000, now: 1000 + Int64(index)) }
        lag.note(end: nil, now: 5000)
        lag.note(end: 1000, now: 900)
        #expect(lag.sums.entries == 101 && lag.sums.mostMilliseconds == 100)
        #expect((50...100).contains(lag.sums.milliseconds(ofShare: 0.5)))
        #expect(lag.sums.milliseconds(ofShare: 1) == 100)
        lag.note(end: .min + 1, now: .max)
        #expect(lag.sums.mostMilliseconds > 0)
    }
}
