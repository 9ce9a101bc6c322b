import LarderPlatform
import Testing

import class LarderTestSupport.DaemonProcess
import class LarderTestSupport.TemporaryDirectory

@testable import larderbench

/// Tests of the suites that measure memory and disk, with few entries.
@Suite struct SpaceSuiteTests {
    private let directory: TemporaryDirectory
    private let tree: TemporaryTree
    private let options: BenchOptions
    private let results = Results()

    init() throws {
        directory = try TemporaryDirectory()
        tree = try TemporaryTree(in: directory.path)
        var options = try BenchOptions([
            "--larderd", DaemonProcess.program(), "--simulate", "3", "--scale", "1000,3000", "--seconds", "0.05",
        ])
        options.program = try DaemonProcess.program("larderbench")
        // Valkey and memcached may be missing, so measure neither.
        options.valkeyServer = "/bin/false"
        options.memcached = "/bin/false"
        self.options = options
    }

    private func value(_ table: String, _ contender: String, _ metric: Metric) throws -> Double {
        try #require(results.median(table, contender, metric), "\(results.failures)")
    }

    private func expectFailuresOfOthersOnly() {
        for failure in results.failures {
            #expect(failure.hasPrefix("valkey") || failure.hasPrefix("memcached"), "\(failure)")
        }
    }

    @Test("the suite memory reports the bytes of each entry, and the share of the limit") func memory() throws {
        try MemorySuite(options, tree, count: 20_000).runRound(0, into: results)
        for deadlines in [false, true] {
            for bytes in MemorySuite.valueSizes {
                let row = MemorySuite.row(.redisOff, deadlines: deadlines)
                let entry = try value(MemorySuite.entryTable, row, MemorySuite.column(bytes))
                #expect((20...400).contains(entry), "\(row): \(entry)")
                _ = try value(
                    MemorySuite.entryTable, MemorySuite.row(MemorySuite.all, deadlines: deadlines),
                    MemorySuite.column(bytes))
            }
        }
        for deadlines in [false, true] {
            let row = MemorySuite.row(LibraryMemory.subject, deadlines: deadlines)
            let entry = try value(MemorySuite.entryTable, row, MemorySuite.column(200))
            #expect((10...1000).contains(entry), "\(row): \(entry)")
        }
        let row = MemorySuite.afterFilling(MemorySuite.larder)
        let share = try value(MemorySuite.table, row, .ownShare)
        #expect(try abs(share * 64 - value(MemorySuite.table, row, .own)) < 0.01)
        #expect(try value(MemorySuite.table, row, .own) < value(MemorySuite.table, row, .resident))
        expectFailuresOfOthersOnly()
    }

    @Test("the suite churn reports the memory of each second hour") func churn() throws {
        try ChurnSuite(options, tree, keys: 2000).runRound(0, into: results)
        for contender in [ChurnSuite.larder, .redisOff] {
            for hour in stride(from: 0, through: 24, by: 2) {
                _ = try value(ChurnSuite.table, contender.name, ChurnSuite.column(hour: hour))
            }
            let live = try value(ChurnSuite.table, contender.name, .live)
            // 2000 keys have values of 16 to 2000 bytes, and some have expired.
            #expect(live > 0.1 && live < 4)
        }
        expectFailuresOfOthersOnly()
    }

    @Test("the suite disk-bytes counts written bytes, and half of the data dies within ten minutes")
    func diskBytes() throws {
        try DiskBytesSuite(options, tree, sets: 12_000).runRound(0, into: results)
        let name = Contender.larderEverySecond.name
        #expect(try value(DiskBytesSuite.table, name, .diskWrites) > 0.5)
        #expect(try (30...70).contains(value(DiskBytesSuite.table, name, .shortLived)))
        let accepted = try value(DiskBytesSuite.table, name, .accepted)
        #expect(abs(accepted - 12_000.0 * 255 / 1_048_576) < 0.1)
        expectFailuresOfOthersOnly()
    }

    @Test("the suite scale has a column for each number of entries, from which a chart is drawn") func scale() throws {
        try ScaleSuite(options, tree).runRound(0, into: results)
        for figure in ScaleSuite.Figure.allCases {
            _ = try value(figure.table, ScaleSuite.larder.name, .entries(3000))
        }
        #expect(Metric.entries(100_000).title == "10^5" && Metric.entries(3000).title == "3000")
        let chart = try LineChart.scale(Report(facts: [], results: results, targets: []).summary)
        #expect(chart.panels.count == 3)
        for panel in chart.panels {
            #expect(panel.columns == ["10^3", "3000"] && panel.lines.count == 2)
        }
        #expect(chart.svg.contains(">10³</text>"))
        expectFailuresOfOthersOnly()
    }
}
