import LarderClient

/// Formats the lines of `stats --watch`: one line with columns for each interval, and a heading that is repeated.
struct WatchTable {
    /// The number of lines after which the heading is repeated.
    static let linesMax = 20

    private struct Column: Sendable {
        let name: String
        let key: String
        let width: Int
        let text: @Sendable (InfoRates) -> String
        let json: @Sendable (InfoRates) -> JSONText

        /// Returns a column with the rate of a counter, per second.
        static func rate(_ name: String, _ key: String, _ field: String, isBytes: Bool = false) -> Column {
            Column(
                name: name, key: key, width: isBytes ? 8 : max(5, name.count),
                text: {
                    isBytes
                        ? ByteText.short(NumberText.whole($0.perSecond(field))) : NumberText.count($0.perSecond(field))
                },
                json: { .double($0.perSecond(field)) })
        }

        /// Returns a column with a current size.
        static func bytes(_ name: String, _ key: String, _ field: String) -> Column {
            Column(
                name: name, key: key, width: 8, text: { ByteText.short($0.now.number(field)) },
                json: { .integer($0.now.number(field)) })
        }
    }

    private static let columns: [Column] = [
        .rate("OPS/S", "operationsPerSecond", "total_commands_processed"),
        Column(
            name: "HITS", key: "hitShare", width: 7, text: { NumberText.percent($0.hitShare) },
            json: { $0.hitShare.map { .double($0) } ?? .null }),
        Column(
            name: "CONNS", key: "clients", width: 5, text: { "\($0.now.number("connected_clients"))" },
            json: { .integer($0.now.number("connected_clients")) }),
        .rate("IN/S", "bytesInPerSecond", "total_net_input_bytes", isBytes: true),
        .rate("OUT/S", "bytesOutPerSecond", "total_net_output_bytes", isBytes: true),
        .bytes("MEMORY", "memoryBytes", "memory_tier_bytes"), .bytes("JOURNAL", "journalBytes", "journal_bytes"),
        .bytes("DISK", "diskBytes", "disk_bytes"), .rate("EXPIRED", "expiredPerSecond", "expired_keys"),
        .rate("EVICTED", "evictedPerSecond", "evicted_keys"),
    ]

    /// The line with the names of the columns.
    static var heading: String { line(columns.map(\.name)) }

    static func line(_ rates: InfoRates) -> String { line(columns.map { $0.text(rates) }) }

    static func json(_ rates: InfoRates, at milliseconds: Int64) -> JSONText {
        .object([("time", .integer(milliseconds))] + columns.map { ($0.key, $0.json(rates)) })
    }

    private static func line(_ cells: [String]) -> String {
        zip(columns, cells).map { $1.padded($0.width, isRight: true) }.joined(separator: " ")
    }
}
