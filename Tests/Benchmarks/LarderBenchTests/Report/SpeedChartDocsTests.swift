import LarderPlatform
import LarderTestSupport
import Testing

@testable import larderbench

/// docs/diagrams/speed.svg shows the figures of docs/Benchmarks.md.
@Suite struct SpeedChartDocsTests {
    @Test("the chart shows the figures of docs/Benchmarks.md") func theChartShowsTheFiguresOfThePage() throws {
        let page = String(decoding: try Files.read(PackageRoot.path + "/docs/Benchmarks.md"), as: UTF8.self)
        let chart = try SpeedChart(report: page)
        #expect(chart.groups.count == 4)
        for group in chart.groups { #expect(group.bars.contains { $0.server == "larderd" }) }
        let path = PackageRoot.path + "/docs/diagrams/speed.svg"
        if TestSetting.updateDocs.isSet { try Files.write(path, Array(chart.svg.utf8)) }
        #expect(String(decoding: try Files.read(path), as: UTF8.self) == chart.svg, "run: make docs")
    }

    @Test("a chart of a report without the needed tables is an error") func aReportWithoutTheTablesIsAnError() {
        #expect(throws: BenchError.self) {
            try SpeedChart(report: "GET over the socket, 64 B, 50 clients, pipeline 1\n")
        }
    }
}
