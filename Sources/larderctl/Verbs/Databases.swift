import LarderClient

extension Verb {
    static let databases: Verb = Verb(
        name: "databases", synopsis: "",
        summary: "list the databases",
        details: """
            Prints one line per database, with a heading; sizes in bytes, and on a terminal with units. If a database
            was salvaged since the daemon was started, the column DAMAGE shows the result. With --json: an array of
            objects, with the interval in milliseconds, null for never, and with "damage" null if there was none.
            """,
        argumentCount: 0...0
    ) { _, context in
        let databases = try context.connect().databases()
        if context.options.json {
            context.output.json(.array(databases.map(databaseJSON)))
            return .done
        }
        let hasDamage = databases.contains { $0.damage != nil }
        var heading = ["NAME", "POLICY"] + ["ENTRIES", "STALE", "BYTES", "AT MOST", "STATE"]
        if hasDamage { heading.append("DAMAGE") }
        let rows = databases.map { database -> [String] in
            let cells = [
                database.name, database.policy, database.entries.map { "\($0)" } ?? "?",
                database.staleEntries.map { "\($0)" } ?? "?", size(database.bytes, context),
                database.limit.map { size($0, context) } ?? "-", database.state,
            ]
            return hasDamage ? cells + [database.damage ?? "-"] : cells
        }
        for line in Table.lines([heading] + rows, rightAligned: [2, 3, 4, 5]) { context.output.line(line) }
        return .done
    }

    /// Formats a size: with a unit if the output is a terminal, otherwise in bytes.
    private static func size(_ bytes: Int64, _ context: Context) -> String {
        context.output.isTerminal ? ByteText.short(Int(clamping: bytes)) : "\(bytes)"
    }

    private static func databaseJSON(_ database: DatabaseInfo) -> JSONText {
        [
            "name": database.name, "policy": database.policy, "interval": database.intervalMilliseconds,
            "grace": database.graceMilliseconds, "jitter": database.jitterPercent, "entries": database.entries,
            "stale": database.staleEntries, "bytes": database.bytes, "limit": database.limit, "state": database.state,
            "damage": database.damage,
        ]
    }
}
