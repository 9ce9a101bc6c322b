/// The results as text for people.
struct Report {
    let facts: [(String, String)]
    let results: Results
    let targets: [Target]

    /// The complete report, with minimum and maximum of each figure, and the project's targets.
    var text: String { text(showsSpread: true) + renderTargets() + failures }

    /// The report for the docs page, with medians only.
    var summary: String { text(showsSpread: false) + failures }

    private func text(showsSpread: Bool) -> String {
        var text = "Larder benchmark\n\n"
        let width = facts.map { $0.0.count }.max() ?? 0
        for (name, value) in facts { text += "  " + name.padded(to: width) + "  " + value + "\n" }
        text +=
            "\nMedians\(showsSpread ? " (minimum to maximum)" : "") over the rounds. CPU is the CPU time of all threads of the\n"
        text +=
            "server, or of this process, user and system, including deferred work; \"at rest\" is the same without it.\n"
        for table in results.tables { text += "\n" + render(table, showsSpread) }
        return text
    }

    private var failures: String {
        results.failures.isEmpty ? "" : "\nNOT MEASURED\n" + results.failures.map { "  \($0)\n" }.joined()
    }

    private func render(_ table: Results.Table, _ showsSpread: Bool) -> String {
        var lines = [[""] + table.metrics.map(\.title)]
        for row in table.rows {
            lines.append([row.subject] + table.metrics.map { cell(row.samples[$0], $0, showsSpread) })
        }
        return table.title + "\n" + Self.columns(lines)
    }

    private func cell(_ samples: Samples?, _ metric: Metric, _ showsSpread: Bool) -> String {
        guard let samples, let median = samples.median, let least = samples.minimum, let most = samples.maximum else {
            return "-"
        }
        guard showsSpread, samples.values.count > 1 else { return metric.text(median) }
        return "\(metric.text(median)) (\(metric.text(least)) to \(metric.text(most)))"
    }

    private func renderTargets() -> String {
        var lines = [["", "measured", "target", ""]]
        for target in targets {
            guard let value = target.value(results) else { continue }
            let verdict = target.isMet(value).map { $0 ? "met" : "not met" } ?? "-"
            lines.append([target.what, Decimal.text(value, digits: 2), target.limitText, verdict])
        }
        return lines.count > 1 ? "\nTargets: ratios of medians, larder / the other\n" + Self.columns(lines) : ""
    }

    /// Formats columns of equal width; the first is left-aligned, the others are right-aligned.
    private static func columns(_ lines: [[String]]) -> String {
        let count = lines.first?.count ?? 0
        let widths = (0..<count).map { column in lines.map { $0[column].count }.max() ?? 0 }
        return lines.map { line in
            let cells = line.indices.map { $0 == 0 ? line[0].padded(to: widths[0]) : line[$0].aligned(to: widths[$0]) }
            return "  " + cells.joined(separator: "  ") + "\n"
        }.joined()
    }
}

extension String {
    fileprivate func padded(to width: Int) -> String { self + String(repeating: " ", count: max(0, width - count)) }
    fileprivate func aligned(to width: Int) -> String { String(repeating: " ", count: max(0, width - count)) + self }
}
