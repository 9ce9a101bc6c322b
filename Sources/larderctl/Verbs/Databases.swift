import LarderClient

extension Verb {
    static let databases: Verb = Verb(
        name: "databases", synopsis: "",
        summary: "list the databases",
        details: """
            Prints one line per database, with a heading; sizes in bytes, and on a terminal with units. If a database
            was salvaged since the daemon was started, the column DAMAGE shows the result. With --json: an array of
            objects, with the interval in milliseconds, null for never, and with "damage" null if there was none.
            """
    ) { _, context in
        let databases = try context.options.connect().databases()
        context.show(.array(databases.map(databaseJSON))) { output in
            let hasDamage = databases.contains { $0.damage != nil }
            let heading = ["NAME", "POLICY"] + ["ENTRIES", "STALE", "BYTES", "AT MOST", "STATE"]
            let rows = databases.map { database in
                [
                    database.name, database.policy, database.entries.map { "\($0)" } ?? "?",
                    database.staleEntries.map { "\($0)" } ?? "?", output.size(database.bytes),
                    database.limit.map { output.size($0) } ?? "-", database.state,
                ] + (hasDamage ? [database.damage ?? "-"] : [])
            }
            output.table([heading + (hasDamage ? ["DAMAGE"] : [])] + rows, rightAligned: [2, 3, 4, 5])
        }
        return .done
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
