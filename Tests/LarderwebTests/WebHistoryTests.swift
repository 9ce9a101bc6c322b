import Foundation
import Platform
import TestSupport
import Testing

@testable import larderweb

/// The series behind the charts, whatever the clock and the daemon do.
@Suite struct WebHistoryTests {
    private func sample(_ time: Int64) -> Sample { Sample(DaemonFigures("run_id:a\r\n"), time: time) }

    private func series(_ times: [Int64], unitSeconds: Int64 = 1) -> SampleSeries {
        var series = SampleSeries(countMax: 5, unitSeconds: unitSeconds)
        for time in times { _ = series.add(sample(time)) }
        return series
    }

    @Test func aClockThatIsSetBackStartsTheSeriesAnew() {
        #expect(series([100, 102, 104]).samples.map(\.time) == [100, 102, 104])
        #expect(series([100, 102, 104, 50, 52]).samples.map(\.time) == [50, 52])
        #expect(series([100, 102, 104, 103]).samples.map(\.time) == [100, 102, 103])
        #expect(series([1, 2, 3, 4, 5, 6, 7]).samples.map(\.time) == [3, 4, 5, 6, 7])
        // One for each second, and for each minute.
        #expect(series([100, 100]).samples.count == 1)
        #expect(series([60, 62, 119, 120, 59], unitSeconds: 60).samples.map(\.time) == [59])
        #expect(series([60, 62, 119, 120], unitSeconds: 60).samples.map(\.time) == [60, 120])
    }

    @Test func whatWasKeptIsSortedAndNotAheadOfTheClock() {
        var day = series([1_000, 1_060], unitSeconds: 60)
        day.prepend([990, 400, 86_400, 1_000, 1_030].map(sample), now: 1_060)
        #expect(day.samples.map(\.time) == [400, 990, 1_000, 1_060])
        var empty = series([])
        empty.prepend([7, 9, 5].map(sample), now: 8)
        #expect(empty.samples.map(\.time) == [5, 7])
    }

    @Test func aDaemonThatWasAwayLeavesAGap() {
        var series = series([100, 102])
        series.interrupt()
        #expect(series.add(sample(104))?.isBehindGap == true)
        #expect(series.add(sample(106))?.isBehindGap == nil)
        let points = HistoryPoint.points(of: series.samples, gapSeconds: 30)
        #expect(points.map { $0.commands == nil } == [true, false, true, false])
    }

    /// Also one that only hangs, for less than the distance at which points are taken apart anyway.
    @Test func aDaemonThatHangsLeavesAGap() async throws {
        struct Point: Decodable {
            let time: Int64
            let commands: Double?
        }
        let daemon = try DaemonProcess()
        let web = try WebProcess(daemon.socketPath)
        func points(_ since: String = "0") throws -> [Point] {
            let reply = try web.get("/api/history?range=recent&since=" + since)
            return try JSONDecoder().decode([Point].self, from: Data(reply.body.utf8))
        }
        await eventually { (try? points().count) ?? 0 > 1 }
        daemon.process.send(signal: SIGSTOP)
        _ = try web.process.waitForErrorLine(containing: "the daemon is away")
        daemon.process.send(signal: SIGCONT)
        await eventually { (try? points().dropFirst().contains { $0.commands == nil }) ?? false }
        // A page whose last point lies ahead gets all.
        let all = try points()
        #expect(try points("\(all[0].time + 1_000_000)").count >= all.count)
        #expect(try web.get("/api/history?range=recent&since=x").status == 400)
    }
}
