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
        let lines = report.split(separator: "\n", omittingEmptySubsequences: false)
        var groups: [Group] = []
        for (title, heading) in Self.tables {
            guard let start = lines.firstIndex(where: { $0 == heading }) else {
                throw BenchError("the report has no table '\(heading)'")
            }
            let bars = lines[(start + 1)...].prefix { !$0.isEmpty }.compactMap(Self.bar)
            guard bars.count > 1 else { throw BenchError("the table '\(heading)' has nothing to compare") }
            groups.append(Group(title: title, bars: bars))
        }
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

    /// Parses the row of one of ``servers``: its name, and the first figure after it; nil for other rows.
    private static func bar(_ line: Substring) -> Bar? {
        for (name, server) in servers where line.hasPrefix("  \(name) ") {
            let figure = line.dropFirst(2 + name.count).drop { $0 == " " }.prefix { $0 != " " }
            return Double(figure).map { _ in Bar(server: server, figure: String(figure)) }
        }
        return nil
    }

    var svg: String {
        let (left, barHeight, width) = (250, 20, 800)
        let longest = groups.flatMap(\.bars).map(\.microseconds).max() ?? 1
        let scale = Double(width - left - 90) / longest
        var shapes: [String] = []
        func text(_ x: Int, _ y: Int, _ words: String, _ style: String = "") {
            let safe = words.replacing("&", with: "&amp;").replacing("<", with: "&lt;")
            shapes.append("<text x=\"\(x)\" y=\"\(y)\" font-size=\"13\"\(style)>\(safe)</text>")
        }
        text(12, 24, "CPU time of the server per operation, in µs (lower is better)", " font-weight=\"bold\"")
        var y = 42
        for group in groups {
            text(12, y + 15, group.title)
            for bar in group.bars {
                let length = Int((bar.microseconds * scale).rounded())
                let color = bar.server == "larderd" ? "#2e7d32" : "#9e9e9e"
                shapes.append(
                    "<rect x=\"\(left)\" y=\"\(y)\" width=\"\(length)\" height=\"\(barHeight - 3)\" fill=\"\(color)\"/>"
                )
                text(left + length + 6, y + 14, "\(bar.figure) \(bar.server)")
                y += barHeight
            }
            y += 12
        }
        text(12, y + 10, machine, " fill=\"#555555\"")
        return """
            <svg xmlns="http://www.w3.org/2000/svg" width="\(width)" height="\(y + 24)" font-family="Helvetica, sans-serif">
            <rect width="100%" height="100%" fill="white"/>
            \(shapes.joined(separator: "\n"))
            </svg>

            """
    }
}
