/// A bar chart of the servers' CPU time per operation, drawn from the report of a run: docs/diagrams/speed.svg.
struct SpeedChart {
    struct Bar: Equatable {
        let server: String
        /// The CPU time in microseconds, as shown in the report.
        let figure: String
        var microseconds: Double { Double(figure) ?? 0 }
    }

    struct Group: Equatable {
        let title: String
        let bars: [Bar]
    }

    let groups: [Group]
    let machine: String

    /// The titles of the groups, each with the table of the report that it shows.
    private static let tables = [
        ("GET", "GET over the socket, 64 B, 50 clients, pipeline 1"),
        ("GET, pipeline of 16", "GET over the socket, 64 B, 50 clients, pipeline 16"),
        ("SET with journal", "SET over the socket, 64 B, 50 clients, pipeline 1, going on"),
        ("SET with journal, pipeline of 16", "SET over the socket, 64 B, 50 clients, pipeline 16, going on"),
    ]
    private static let servers = [
        ("larderd everysecond", "larderd"), ("redis no persistence", "redis-server"),
        ("redis AOF everysec", "redis-server"), ("valkey no persistence", "valkey-server"),
        ("valkey AOF everysec", "valkey-server"),
    ]

    /// Reads the figures of a report.
    /// - Throws: if a table or its rows are missing.
    init(report: String) throws(BenchError) {
        var groups: [Group] = []
        for (title, heading) in Self.tables {
            let bars = try ReportTable(report, titled: heading).rows.compactMap(Self.bar)
            guard bars.count > 1 else { throw BenchError("the table '\(heading)' has nothing to compare") }
            groups.append(Group(title: title, bars: bars))
        }
        // The rows of tables before the run also begin with names of servers.
        let lines = report.split(separator: "\n").drop { $0 != "Larder benchmark" }
        func field(_ name: String) -> Substring {
            let line = lines.first { $0.hasPrefix("  \(name) ") } ?? ""
            return line.dropFirst(2 + name.count).drop { $0 == " " }
        }
        let others = ["redis-server", "valkey-server"].map { name in
            field(name).firstMatch(of: /v=([\d.]+)/).map { ", \(name) \($0.1)" } ?? ""
        }.joined()
        self.groups = groups
        machine = "\(field("processor")), \(field("larderd"))\(others), 50 clients, 64-byte values, Unix socket"
    }

    /// The bar of one of ``servers``, with the first figure of its row; nil for other rows.
    private static func bar(_ name: String, _ cells: [String]) -> Bar? {
        guard let server = servers.first(where: { $0.0 == name })?.1, let figure = cells.first,
            Double(figure) != nil
        else { return nil }
        return Bar(server: server, figure: figure)
    }

    var svg: String {
        let (left, barHeight, width) = (250, 20, 800)
        let longest = groups.flatMap(\.bars).map(\.microseconds).max() ?? 1
        let scale = Double(width - left - 90) / longest
        var image = SVG(width: width)
        image.text(12, 24, "CPU time of the server per operation, in µs (lower is better)", isBold: true)
        var y = 42
        for group in groups {
            image.text(12, y + 15, group.title)
            for bar in group.bars {
                let length = Int((bar.microseconds * scale).rounded())
                image.bar(left, y, length, barHeight - 3, bar.server == "larderd" ? "#2e7d32" : "#9e9e9e")
                image.text(left + length + 6, y + 14, "\(bar.figure) \(bar.server)")
                y += barHeight
            }
            y += 12
        }
        image.text(12, y + 10, machine)
        return image.document(height: y + 24)
    }
}
