import Testing

@testable import larderbench

@Suite struct ReportTests {
    private func results() -> Results {
        let results = Results()
        for value in [3.0, 1, 2] { results.add("Table", "ours", [.processor: value, .rate: 2_000_000]) }
        for value in [4.0, 5, 3] { results.add("Table", "theirs", [.processor: value]) }
        return results
    }

    @Test("the report has the median and the range of each figure") func medianAndRange() {
        let text = Report(facts: [("disk", "ext4")], results: results(), targets: []).text
        #expect(text.contains("2.00 (1.00 to 3.00)"))
        #expect(text.contains("2000 (2000 to 2000)"))
        #expect(text.contains("  disk  ext4\n"))
        #expect(text.contains("theirs"))
    }

    @Test(
        "a target is reported as met or not met",
        arguments: [(Target.Limit.most(0.5), "met"), (.most(0.49), "not met"), (.least(0.5), "met"), (.none, "-")])
    func verdicts(limit: Target.Limit, verdict: String) throws {
        let target = Target("ours / theirs", "Table", "ours", "theirs", .processor, limit)
        #expect(target.value(results()) == 0.5)
        let text = Report(facts: [], results: results(), targets: [target]).text
        let line = try #require(text.split(separator: "\n").first { $0.contains("ours / theirs") })
        #expect(line.hasSuffix("  " + verdict))
    }

    @Test("a target may have one figure, or figures that were not measured")
    func aTargetMayLackFigures() {
        #expect(Target("alone", "Table", "ours", .processor, .most(2)).value(results()) == 2)
        #expect(Target("none", "Table", "nobody", "theirs", .processor, .none).value(results()) == nil)
        #expect(Target("none", "Table", "theirs", "ours", .p99, .none).value(results()) == nil)
    }

    @Test func allTargetsHaveDifferentNames() throws {
        for words in [[], ["--quick"]] {
            let targets = Target.all(try BenchOptions(words)).map(\.what)
            #expect(Set(targets).count == targets.count)
        }
    }

    @Test("a failed measurement is reported once, and the report continues")
    func aFailedMeasurementDoesNotEndTheReport() throws {
        let results = results()
        for _ in 0..<2 {
            try results.attempt("memcached") { () throws(BenchError) in throw BenchError("not found") }
        }
        #expect(results.failures == ["memcached: not found"])
        #expect(Report(facts: [], results: results, targets: []).text.contains("NOT MEASURED\n  memcached: not found"))
    }

    @Test func theJSONReportContainsEverySample() throws {
        let text = try JSONReport(Report(facts: [("a", "b")], results: results(), targets: [])).text()
        #expect(text.contains("\"cpuMicrosecondsPerOperation\""))
        #expect(text.contains("\"format\" : 3"))
    }

    @Test("the report replaces the text between the markers of a page") func pageIsReplacedBetweenItsMarks() throws {
        let page = "# Title\n\n<!-- run: begin -->\nold\n<!-- run: end -->\n\nend\n"
        let new = try ReportPage.replacing(in: page, with: "new\n")
        #expect(new == "# Title\n\n<!-- run: begin -->\n```\nnew\n```\n<!-- run: end -->\n\nend\n")
        #expect(try ReportPage.replacing(in: new, with: "new\n") == new)
        #expect(throws: BenchError.self) { try ReportPage.replacing(in: "no marks", with: "x") }
    }
}
