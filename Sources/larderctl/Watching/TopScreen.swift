import LarderClient

/// The contents of the screen of `larderctl top` at one time.
struct TopScreen {
    /// The orders of the commands, by the key on the keyboard that selects them.
    enum Order: Character, CaseIterable {
        case calls = "c"
        case load = "l"
        case average = "a"
        case slowest = "p"
        case name = "n"

        var key: Character { rawValue }
    }

    enum Table { case commands, databases }

    var socketPath: String
    /// The changes in the last interval; nil before the daemon's second reply.
    var rates: InfoRates?
    var info: InfoFigures
    var databases: [DatabaseInfo] = []
    var order = Order.calls
    var table = Table.commands
    /// Why there are no current figures; nil if there are current figures.
    var problem: String?

    static let bold = "\u{1B}[1m"
    static let reverse = "\u{1B}[7m"

    /// Returns the lines for a screen of this size. Lines that do not fit are omitted or cut.
    func lines(width: Int, height: Int) -> [String] {
        let head = head(width)
        let keys = Self.reverse + Self.fit(Self.help, width, fills: true)
        guard height > 1 else { return [Self.fit(head[0], width)] }
        var lines = head.prefix(height - 1).map { Self.fit($0, width) }
        let rows = table == .commands ? commandRows : databaseRows
        let room = height - 1 - lines.count
        if room > 1 {
            let texts = Self.tableLines(rows, width)
            lines += texts.prefix(room).enumerated().map { index, line in (index == 0 ? Self.bold : "") + line }
        }
        while lines.count < height - 1 { lines.append("") }
        return lines + [keys]
    }

    private static let help = "q quit  d databases  c calls  l load  a average  p slowest  n name"

    // MARK: The head

    private func head(_ width: Int) -> [String] {
        if let problem { return ["larder at \(TerminalText.escaped(socketPath))", problem, ""] }
        let figures = rates?.now ?? info
        func bytes(_ name: String) -> String { ByteText.short(figures.number(name)) }
        func rate(_ name: String) -> String { rates.map { NumberText.count($0.perSecond(name)) } ?? "-" }
        let limit = figures.number("disk_limit")
        let share = rates?.hitShare
        let uptime = NumberText.duration(figures.number("uptime_in_seconds"))
        let version = TerminalText.escaped(figures.text("larder_version") ?? "?")
        var lines = [
            "larder \(version) at \(TerminalText.escaped(socketPath))  up \(uptime)",
            "operations \(rate("total_commands_processed"))/s  hits \(NumberText.percent(share)) "
                + "(\(NumberText.percent(figures.hitShare)) since the start)  clients \(figures.number("connected_clients"))",
            "memory \(bytes("memory_tier_bytes")) of \(bytes("maxmemory"))  disk \(bytes("disk_bytes"))"
                + (limit > 0 ? " of \(bytes("disk_limit"))" : "") + "  journal \(bytes("journal_bytes"))",
            "in \(byteRate("total_net_input_bytes"))/s  out \(byteRate("total_net_output_bytes"))/s  "
                + "expired \(rate("expired_keys"))/s  evicted \(rate("evicted_keys"))/s  "
                + "commits \(rate("commit_units"))/s",
        ]
        if width >= 60 { lines.append("") }
        return lines
    }

    private func byteRate(_ name: String) -> String {
        rates.map { ByteText.short(NumberText.whole($0.perSecond(name))) } ?? "-"
    }

    // MARK: The tables

    /// The commands that have been called, in the selected order.
    var commands: [InfoRates.Command] {
        let value: (InfoRates.Command) -> Double =
            switch order {
            case .calls: { $0.callsPerSecond }
            case .load: { $0.load }
            case .average: { $0.averageMicroseconds }
            case .slowest: { $0.total.p999 ?? 0 }
            case .name: { _ in 0 }
            }
        return (rates?.commands ?? []).filter { $0.total.calls > 0 }
            .sorted { (value($1), $0.name) < (value($0), $1.name) }
    }

    private var commandRows: [[String]] {
        [["COMMAND", "CALLS/S", "LOAD", "AVERAGE", "P50", "P99", "P99.9", "FAILED"]]
            + commands.map {
                [
                    TerminalText.escaped($0.name), NumberText.count($0.callsPerSecond), NumberText.percent($0.load),
                    $0.callsPerSecond > 0 ? NumberText.microseconds($0.averageMicroseconds) : "-",
                    NumberText.microseconds($0.total.p50), NumberText.microseconds($0.total.p99),
                    NumberText.microseconds($0.total.p999), "\($0.total.failed)",
                ]
            }
    }

    private var databaseRows: [[String]] {
        let sorted = order == .name ? databases.sorted { $0.name < $1.name } : databases.sorted { $0.bytes > $1.bytes }
        return [["DATABASE", "ENTRIES", "STALE", "SIZE", "AT MOST", "POLICY", "STATE"]]
            + sorted.map {
                [
                    TerminalText.escaped($0.name), $0.entries.map { "\($0)" } ?? "?",
                    $0.staleEntries.map { "\($0)" } ?? "?",
                    ByteText.short($0.bytes), $0.limit.map { ByteText.short($0) } ?? "-",
                    TerminalText.escaped($0.policy), TerminalText.escaped($0.state),
                ]
            }
    }

    /// Formats a table with as many columns as fit. If necessary, the first column is cut to a third of the width.
    private static func tableLines(_ rows: [[String]], _ width: Int) -> [String] {
        let count = rows.first?.count ?? 0
        let widths = (0..<count).map { column in rows.map { $0[column].count }.max() ?? 0 }
        var shown = 1
        var used = min(widths[0], max(8, width / 3))
        let first = used
        while shown < count, used + 2 + widths[shown] <= width {
            used += 2 + widths[shown]
            shown += 1
        }
        return rows.map { row in
            var line = fit(row[0], first, fills: true)
            for column in 1..<max(1, shown) {
                line += "  " + row[column].padded(widths[column], isRight: true)
            }
            return fit(line, width)
        }
    }

    // MARK: Text

    /// Cuts a text to at most `width` columns. If `fills` is true, pads it to exactly `width` columns.
    static func fit(_ text: String, _ width: Int, fills: Bool = false) -> String {
        let short = text.count <= width ? text : String(text.prefix(max(0, width - 1))) + (width > 0 ? "…" : "")
        return fills ? short.padded(width) : short
    }

    // MARK: JSON

    var json: JSONText {
        let figures = rates?.now ?? info
        return [
            "operationsPerSecond": rates?.perSecond("total_commands_processed") ?? 0, "hitShare": rates?.hitShare,
            "clients": figures.number("connected_clients"), "memoryBytes": figures.number("memory_tier_bytes"),
            "diskBytes": figures.number("disk_bytes"), "journalBytes": figures.number("journal_bytes"),
            "commands": commands,
            "databases": databases.map {
                ["name": $0.name, "entries": $0.entries, "bytes": $0.bytes, "state": $0.state] as JSONText
            },
        ]
    }
}

extension InfoRates.Command: JSONValue {
    var json: JSONText {
        [
            "name": name, "callsPerSecond": callsPerSecond, "load": load, "averageMicroseconds": averageMicroseconds,
            "p50": total.p50, "p99": total.p99, "p99.9": total.p999, "failed": total.failed,
        ]
    }
}
