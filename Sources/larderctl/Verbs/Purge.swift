import LarderClient

extension Verb {
    static let purge = Verb(
        name: "purge", synopsis: "[--expired | --prefix PREFIX]",
        summary: "empty the database at once",
        details: """
            Prints what was removed; with --json: {"entries":…,"bytes":…,"milliseconds":…}.
            """,
        options: [
            OptionSpec(name: "--expired", value: nil, summary: "remove only expired entries that still take space"),
            OptionSpec(name: "--prefix", value: "PREFIX", summary: "remove only entries whose keys begin with PREFIX"),
        ],
        argumentCount: 0...0
    ) { arguments, context in
        let result: PurgeReport
        switch (arguments.options["--expired"], arguments.options["--prefix"]) {
        case (nil, nil): result = try context.connect().removeAll()
        case (_?, nil): result = try context.connect().removeExpired()
        case (nil, let prefix?):
            // An empty prefix matches every key: a slip, such as an unset variable, would empty the database.
            guard let prefix = prefix.value, !prefix.isEmpty else {
                throw UsageError("--prefix is empty; to empty the whole database leave it out", verb: "purge")
            }
            result = try context.connect().remove(prefix: prefix)
        case (_?, _?):
            throw UsageError("--expired and --prefix cannot be combined", verb: "purge")
        }
        // The daemon always counts.
        let entries = result.entries ?? 0
        if context.options.json {
            context.output.json(
                .object([
                    ("entries", .integer(Int64(entries))), ("bytes", .integer(Int64(result.bytes))),
                    ("milliseconds", .integer(result.milliseconds)),
                ]))
        } else {
            context.output.line(
                "removed \(entries) \(entries == 1 ? "entry" : "entries"), \(result.bytes) "
                    + "\(result.bytes == 1 ? "byte" : "bytes"), "
                    + "in \(result.milliseconds) ms")
        }
        return .done
    }
}
