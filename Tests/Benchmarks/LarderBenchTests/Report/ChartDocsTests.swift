import LarderPlatform
import LarderTestSupport
import Testing

@testable import larderbench

/// The charts in docs/diagrams show the figures of docs/Benchmarks.md.
@Suite struct ChartDocsTests {
    private func check(_ svg: String, _ name: String) throws {
        let path = PackageRoot.path + "/docs/diagrams/" + name
        if TestSetting.updateDocs.isSet { try Files.write(path, Array(svg.utf8)) }
        #expect(String(decoding: try Files.read(path), as: UTF8.self) == svg, "run: make docs")
    }

    @Test("the charts show the figures of docs/Benchmarks.md") func theChartsShowTheFiguresOfThePage() throws {
        let page = String(decoding: try Files.read(PackageRoot.path + "/docs/Benchmarks.md"), as: UTF8.self)
        let speed = try SpeedChart(report: page)
        #expect(speed.groups.count == 4 && speed.machine.contains(", larderd 0.1.0, redis-server "))
        for group in speed.groups { #expect(group.bars.contains { $0.server == "larderd" }) }
        try check(speed.svg, "speed.svg")
        for (chart, name) in [(try LineChart.churn(page), "churn.svg"), (try .scale(page), "scale.svg")] {
            for panel in chart.panels { #expect(panel.lines.contains { $0.server.hasPrefix("larderd") }) }
            try check(chart.svg, name)
        }
    }

    @Test("a chart of a report without the needed tables is an error") func aReportWithoutTheTablesIsAnError() {
        let report = "GET over the socket, 64 B, 50 clients, pipeline 1\n"
        #expect(throws: BenchError.self) { try SpeedChart(report: report) }
        #expect(throws: BenchError.self) { try LineChart.churn(report) }
    }

    @Test("a line skips values that were not measured") func aLineSkipsMissingValues() throws {
        let report = """
            \(ChurnSuite.table)
                                    live MiB  0 h   2 h   4 h
              larderd everysecond         10  1.50  1.25  1.00
              memcached                    -  2.00     -  2.50

            """
        let panel = try #require(LineChart.churn(report).panels.first)
        #expect(panel.columns == ["0 h", "2 h", "4 h"])
        #expect(panel.lines.map(\.server) == ["larderd everysecond", "memcached"])
        #expect(panel.lines.map(\.values) == [[1.5, 1.25, 1], [2, nil, 2.5]])
        let svg = try LineChart.churn(report).svg
        #expect(svg.contains(">memcached</text>") && svg.split(separator: "<polyline").count == 10)
    }
}
