import LarderClient

extension Verb {
    static let databases: Verb = Verb(
        name: "databases", synopsis: "",
        summary: "list the databases",
        details: """
            Prints one line per database, with a heading; sizes in bytes, and on a terminal with units. With --json: an
            array of objects, with the interval in milliseconds, null for never.
            """,
        argumentCount: 0...0
    ) { _, context in
        let databases = try context.connect().databases()
        if context.options.json {
            context.output.json(.array(databases.map(databaseJSON)))
            return .done
        }
        let rows =
            [["NAME", "POLICY"] + ["ENTRIES", "STALE", "BYTES", "AT MOST", "STATE"]]
            + databases.map {
                [
                    $0.name, $0.policy, $0.entries.map { "\($0)" } ?? "?", $0.staleEntries.map { "\($0)" } ?? "?",
                    size($0.bytes, context), $0.limit.map { size($0, context) } ?? "-", $0.state,
                ]
            }
        for line in Table.lines(rows, rightAligned: [2, 3, 4, 5]) { context.output.line(line) }
        return .done
    }

    /// Formats a size: with a unit if the output is a terminal, otherwise in bytes.
    private static func size(_ bytes: Int64, _ context: Context) -> String {
        context.output.isTerminal ? ByteText.short(Int(clamping: bytes)) : "\(bytes)"
    }

    private static func databaseJSON(_ database: DatabaseInfo) -> JSONText {
        .object([
            ("name", .text(database.name)),
            ("policy", .text(database.policy)),
            ("interval", .optional(database.intervalMilliseconds)),
            ("grace", .integer(database.graceMilliseconds)),
            ("jitter", .integer(Int64(database.jitterPercent))),
            ("entries", .optional(database.entries)),
            ("stale", .optional(database.staleEntries)),
            ("bytes", .integer(database.bytes)),
            ("limit", .optional(database.limit)),
            ("state", .text(database.state)),
        ])
    }
}
