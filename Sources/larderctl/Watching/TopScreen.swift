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
    var info: InfoText
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
        let keys = Self.reverse + Self.help.cut(width).padded(width)
        guard height > 1 else { return [head[0].cut(width)] }
        var lines = head.prefix(height - 1).map { $0.cut(width) }
        let rows = table == .commands ? commandRows : databaseRows
        let room = height - 1 - lines.count
        if room > 1 {
            let texts = larderctl.Table.lines(rows, rightAligned: Set(1..<rows[0].count), width: width)
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
        func bytes(_ name: String) -> String { NumberText.bytes(figures.integer(name)) }
        func rate(_ name: String) -> String { rates.map { NumberText.count($0.perSecond(name)) } ?? "-" }
        let limit = figures.integer("disk_limit")
        let share = rates?.hitShare
        let uptime = NumberText.duration(figures.integer("uptime_in_seconds"))
        let version = TerminalText.escaped(figures.text("larder_version") ?? "?")
        var lines = [
            "larder \(version) at \(TerminalText.escaped(socketPath))  up \(uptime)",
            "operations \(rate("total_commands_processed"))/s  hits \(NumberText.percent(share)) "
                + "(\(NumberText.percent(figures.hitShare)) since the start)  clients \(figures.integer("connected_clients"))",
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
        rates.map { NumberText.bytes(NumberText.whole($0.perSecond(name))) } ?? "-"
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
        return DatabaseInfo.rows(of: sorted, size: NumberText.bytes).map { $0.map(TerminalText.escaped) }
    }

    // MARK: JSON

    var json: JSONText {
        let figures = rates?.now ?? info
        return [
            "operationsPerSecond": rates?.perSecond("total_commands_processed") ?? 0, "hitShare": rates?.hitShare,
            "clients": figures.integer("connected_clients"), "memoryBytes": figures.integer("memory_tier_bytes"),
            "diskBytes": figures.integer("disk_bytes"), "journalBytes": figures.integer("journal_bytes"),
            "commands": commands,
            "databases": databases,
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

/// Formats the lines of `stats --watch`: one line with columns for each interval, and a heading that is repeated.
enum WatchTable {
    /// The number of lines after which the heading is repeated.
    static let linesMax = 20

    private typealias Column = (name: String, width: Int, text: String, key: String, json: JSONText)

    private static func columns(_ rates: InfoRates) -> [Column] {
        /// Returns a column with the rate of a counter, per second.
        func rate(_ name: String, _ key: String, _ field: String) -> Column {
            let rate = rates.perSecond(field)
            return (name, max(5, name.count), NumberText.count(rate), key, .double(rate))
        }
        func bytesRate(_ name: String, _ key: String, _ field: String) -> Column {
            let rate = rates.perSecond(field)
            return (name, 8, NumberText.bytes(NumberText.whole(rate)), key, .double(rate))
        }
        /// Returns a column with a current size.
        func bytes(_ name: String, _ key: String, _ field: String) -> Column {
            (name, 8, NumberText.bytes(rates.now.integer(field)), key, .integer(rates.now.integer(field)))
        }
        let clients = rates.now.integer("connected_clients")
        return [
            rate("OPS/S", "operationsPerSecond", "total_commands_processed"),
            ("HITS", 7, NumberText.percent(rates.hitShare), "hitShare", rates.hitShare?.json ?? .null),
            ("CONNS", 5, "\(clients)", "clients", .integer(clients)),
            bytesRate("IN/S", "bytesInPerSecond", "total_net_input_bytes"),
            bytesRate("OUT/S", "bytesOutPerSecond", "total_net_output_bytes"),
            bytes("MEMORY", "memoryBytes", "memory_tier_bytes"), bytes("JOURNAL", "journalBytes", "journal_bytes"),
            bytes("DISK", "diskBytes", "disk_bytes"), rate("EXPIRED", "expiredPerSecond", "expired_keys"),
            rate("EVICTED", "evictedPerSecond", "evicted_keys"),
        ]
    }

    /// The line with the names of the columns.
    static var heading: String {
        let none = InfoText("")
        return line(columns(InfoRates(from: none, to: none, milliseconds: 1)).map { ($0.name, $0.width) })
    }

    static func line(_ rates: InfoRates) -> String { line(columns(rates).map { ($0.text, $0.width) }) }

    static func json(_ rates: InfoRates, at milliseconds: Int64) -> JSONText {
        .object([("time", .integer(milliseconds))] + columns(rates).map { ($0.key, $0.json) })
    }

    private static func line(_ cells: [(text: String, width: Int)]) -> String {
        cells.map { $0.text.padded($0.width, isRight: true) }.joined(separator: " ")
    }
}
