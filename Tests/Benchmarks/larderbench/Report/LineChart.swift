/// Line charts of a report's tables whose columns are times or numbers of entries: docs/diagrams/churn.svg and
/// scale.svg.
struct LineChart {
    struct Panel: Equatable {
        let title: String
        let columns: [String]
        let lines: [Line]
    }

    struct Line: Equatable {
        let server: String
        /// A value for each column; nil if it was not measured.
        let values: [Double?]
    }

    let title: String
    let panels: [Panel]

    /// The memory of servers during a day of churn.
    static func churn(_ report: String) throws(BenchError) -> LineChart {
        LineChart(
            title: "Resident bytes / live bytes of keys and values, during a day of churn (lower is better)",
            panels: [
                try panel("hour of the day", ReportTable(report, titled: ChurnSuite.table)) { $0.hasSuffix(" h") }
            ])
    }

    /// Time and memory of servers by the number of entries.
    static func scale(_ report: String) throws(BenchError) -> LineChart {
        typealias Figure = ScaleSuite.Figure
        var panels: [Panel] = []
        let figures = [
            ("CPU µs per SET", Figure.set), ("CPU µs per GET", .get), ("resident MiB, without mapped files", .own),
        ]
        for (title, figure) in figures {
            panels.append(try panel(title, ReportTable(report, titled: figure.table)) { _ in true })
        }
        return LineChart(title: "By the number of entries of 64 B (lower is better)", panels: panels)
    }

    private static func panel(_ title: String, _ table: ReportTable, _ isShown: (String) -> Bool) -> Panel {
        let shown = table.columns.indices.filter { isShown(table.columns[$0]) }
        return Panel(
            title: title, columns: shown.map { table.columns[$0] },
            lines: table.rows.map { row in Line(server: row.name, values: shown.map { Double(row.cells[$0]) }) })
    }

    // MARK: Drawing

    private static let styles = [
        ("larderd", "#2e7d32", ""), ("redis", "#c62828", "7 3"), ("valkey", "#1565c0", "2 3"),
        ("memcached", "#6d4c41", "9 3 2 3"),
    ]

    private static func style(_ server: String) -> (color: String, dashes: String) {
        let style = styles.first { server.hasPrefix($0.0) }
        return (style?.1 ?? "#616161", style?.2 ?? "")
    }

    var svg: String {
        let (width, left, gap, top, height) = (800, 44, 56, 82, 200)
        var image = SVG(width: width)
        image.text(12, 24, title, isBold: true)
        var x = 12
        for line in panels.first?.lines ?? [] {
            let style = Self.style(line.server)
            image.line([(x, 45), (x + 28, 45)], style.color, dashes: style.dashes)
            let program = line.server.split(separator: " ").first.map(String.init) ?? ""
            image.text(x + 34, 50, program)
            x += 34 + program.count * 8 + 16
        }
        let panelWidth = (width - left - 24 - gap * (panels.count - 1)) / max(panels.count, 1)
        for (index, panel) in panels.enumerated() {
            Self.draw(panel, left + index * (panelWidth + gap), top, panelWidth, height, into: &image)
        }
        return image.document(height: top + height + 36)
    }

    private static func draw(
        _ panel: Panel, _ left: Int, _ top: Int, _ width: Int, _ height: Int, into image: inout SVG
    ) {
        image.text(left, top - 10, panel.title)
        let step = tick(panel.lines.flatMap { $0.values.compactMap(\.self) }.max() ?? 1)
        let highest = 4 * step
        func y(_ value: Double) -> Int { top + height - Int((value / highest * Double(height)).rounded()) }
        func x(_ column: Int) -> Int { left + column * width / max(panel.columns.count - 1, 1) }
        for number in 0...4 {
            let value = Double(number) * step
            image.line([(left, y(value)), (left + width, y(value))], "#dddddd", width: 1)
            let label = Decimal.text(value, digits: step < 1 ? 2 : step < 5 ? 1 : 0)
            image.text(left - 6, y(value) + 4, label, anchor: "end")
        }
        for (column, name) in panel.columns.enumerated() {
            image.text(x(column), top + height + 18, superscript(name), anchor: "middle")
        }
        for line in panel.lines {
            let points = line.values.enumerated().compactMap { column, value in value.map { (x(column), y($0)) } }
            let style = style(line.server)
            image.line(points, style.color, dashes: style.dashes)
        }
    }

    /// The distance of five ticks, from zero, up to a value: 1, 2, 2.5 or 5 times a power of ten.
    private static func tick(_ highest: Double) -> Double {
        var power = 1e-6
        while true {
            for factor in [1, 2, 2.5, 5] where 4 * factor * power >= highest { return factor * power }
            power *= 10
        }
    }

    /// Writes 10^5 as 10⁵.
    private static func superscript(_ name: String) -> String {
        let digits = Array("⁰¹²³⁴⁵⁶⁷⁸⁹")
        let parts = name.split(separator: "^")
        guard parts.count == 2 else { return name }
        return parts[0] + String(parts[1].compactMap { $0.wholeNumberValue.map { digits[$0] } })
    }
}
