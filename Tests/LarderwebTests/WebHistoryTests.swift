import Foundation
import LarderPlatform
import LarderServices
import LarderTestSupport
import Testing

@testable import larderweb

/// Tests of the series for the charts, including changes of the clock and outages of the daemon.
@Suite struct WebHistoryTests {
    private func sample(_ time: Int64) -> Sample { Sample(DaemonFigures("run_id:a\r\n"), time: time) }

    private func series(_ times: [Int64], unitSeconds: Int64 = 1) -> SampleSeries {
        var series = SampleSeries(countMax: 5, unitSeconds: unitSeconds)
        for time in times { _ = series.add(sample(time)) }
        return series
    }

    @Test("if the clock is set back, later samples are dropped") func settingTheClockBackDropsLaterSamples() {
        #expect(series([100, 102, 104]).samples.map(\.time) == [100, 102, 104])
        #expect(series([100, 102, 104, 50, 52]).samples.map(\.time) == [50, 52])
        #expect(series([100, 102, 104, 103]).samples.map(\.time) == [100, 102, 103])
        #expect(series([1, 2, 3, 4, 5, 6, 7]).samples.map(\.time) == [3, 4, 5, 6, 7])
        // A series keeps one sample per second, or per minute.
        #expect(series([100, 100]).samples.count == 1)
        #expect(series([60, 62, 119, 120, 59], unitSeconds: 60).samples.map(\.time) == [59])
        #expect(series([60, 62, 119, 120], unitSeconds: 60).samples.map(\.time) == [60, 120])
    }

    @Test func restoredSamplesAreSortedAndNotInTheFuture() {
        var day = series([1_000, 1_060], unitSeconds: 60)
        day.prepend([990, 400, 86_400, 1_000, 1_030].map(sample), now: 1_060)
        #expect(day.samples.map(\.time) == [400, 990, 1_000, 1_060])
        var empty = series([])
        empty.prepend([7, 9, 5].map(sample), now: 8)
        #expect(empty.samples.map(\.time) == [5, 7])
    }

    @Test func anUnreachableDaemonLeavesAGapInTheHistory() {
        var series = series([100, 102])
        series.interrupt()
        #expect(series.add(sample(104))?.isBehindGap == true)
        #expect(series.add(sample(106))?.isBehindGap == nil)
        let points = zip([nil] + series.samples, series.samples).map { $1.point(after: $0, 30) }
        #expect(points.map { $0["commands"] == nil } == [true, false, true, false])
    }

    /// Just after its start, the daemon has not counted all entries yet, and reports too few.
    @Test func theNumberOfEntriesIsUnknownUntilAllAreCounted() throws {
        let counts = "db0:keys=7,expires=0,avg_ttl=0\r\n"
        let some = Sample(DaemonFigures("run_id:a\r\nuncounted_databases:1\r\n" + counts), time: 100)
        let all = Sample(DaemonFigures("run_id:a\r\n" + counts), time: 102)
        #expect([some.point(after: nil, 30), all.point(after: some, 30)].map { $0["entries"] as? Double } == [nil, 7])
        // Samples can be read in the current format, and in that of an older larderweb.
        let kept = try JSONDecoder().decode(Sample.self, from: JSONEncoder().encode(some))
        #expect(kept == some)
    }

    // MARK: The larder

    private func history(_ directory: String, _ daemon: DaemonProcess, _ log: LogReader) -> History {
        let link = DaemonLink(
            socketPath: daemon.socketPath, password: nil, trustedUsers: [], isUnlogged: true)
        return History(
            Collector(link, polling: link),
            HistoryStore.Place(directory: directory, daemon: daemon.socketPath),
            Log(least: .info, descriptor: log.writeEnd),
            rhythm: History.Rhythm(sampleMilliseconds: 100, keptSeconds: 1, pauseMilliseconds: 5_000))
    }

    @Test(.enabled(if: SmallDisk.isPossible, "mounting a small file system needs root"))
    func theHistoryIsStoredAgainAfterAFullDisk() async throws {
        let daemon = try DaemonProcess()
        let disk = try SmallDisk(bytes: 32 << 20)
        let log = try LogReader()
        let history = history(disk.path + "/history", daemon, log)
        history.start()
        defer { history.stop() }
        #expect(log.line(containing: "the last day's figures are kept in \(disk.path)/history") != nil)
        // Fill the disk in steps: a step that coincides with a write of the larder may fail completely.
        for left in [1 << 20, 1 << 16, 4096, 0] { disk.fill(leaving: left) }
        #expect(log.line(containing: "error the larder of the last day's figures: ") != nil)
        // Free the disk. Even before that, some writes may succeed, because entries were evicted for them.
        try Files.remove(disk.filler)
        #expect(log.line(containing: "info storing the last day's figures works again") != nil)
        await eventually { history.note == nil }
    }

    @Test func damageOfTheHistoryIsReportedWithItsRemedy() async throws {
        let daemon = try DaemonProcess()
        let place = try TemporaryDirectory(inMemory: true)
        let directory = place.path + "/history"
        let log = try LogReader()
        let first = history(directory, daemon, log)
        first.start()
        #expect(log.line(containing: "figures are kept in") != nil)
        await eventually { first.points(.day, since: 0).count > 2 }
        first.stop()
        let samples = directory + "/samples"
        let epoch = try #require(FileSystem.list(samples).first { FileSystem.isDirectory(samples + "/" + $0) })
        let tables = try FileSystem.list(samples + "/" + epoch).filter { $0.hasSuffix(".ldb") }
        #expect(!tables.isEmpty)
        for table in tables { try Files.flip("\(samples)/\(epoch)/\(table)", at: 20) }
        let second = history(directory, daemon, log)
        second.start()
        defer { second.stop() }
        let line = try #require(log.line(containing: " and salvaged: "))
        #expect(
            line.contains("error the larder of the last day's figures: ") && line.contains("may be removed"), "\(line)")
        #expect(FileSystem.exists(directory + "/DAMAGED"))
        #expect(log.line(containing: "figures are kept in") != nil)
    }

    /// Even a short hang leaves a gap, although the samples before and after it are close enough to be compared.
    @Test func aDaemonThatHangsLeavesAGapInTheHistory() async throws {
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
        _ = try web.process.waitForErrorLine(containing: "the daemon is not available")
        daemon.process.send(signal: SIGCONT)
        await eventually { (try? points().dropFirst().contains { $0.commands == nil }) ?? false }
        // A page whose last point is in the future gets all points.
        let all = try points()
        #expect(try points("\(all[0].time + 1_000_000)").count >= all.count)
        #expect(try web.get("/api/history?range=recent&since=x").status == 400)
    }
}
