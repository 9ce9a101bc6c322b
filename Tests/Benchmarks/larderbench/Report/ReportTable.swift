/// A table of a report, parsed from its text, for the charts.
struct ReportTable {
    let columns: [String]
    let rows: [(name: String, cells: [String])]

    /// - Throws: if the report has no such table with rows.
    init(_ report: String, titled title: String) throws(BenchError) {
        let lines = report.split(separator: "\n", omittingEmptySubsequences: false)
        let start = lines.firstIndex { $0 == title }
        let table = start.map { lines[($0 + 1)...].prefix { !$0.isEmpty && $0 != "```" }.map(Self.cells) } ?? []
        guard let columns = table.first, table.count > 1 else { throw BenchError("the report has no table '\(title)'") }
        self.columns = columns
        rows = table.dropFirst().map { ($0[0], Array($0.dropFirst())) }
    }

    /// Splits a line at two or more spaces.
    private static func cells(_ line: Substring) -> [String] {
        line.split(separator: "  ").map { String($0.drop { $0 == " " }) }.filter { !$0.isEmpty }
    }
}
