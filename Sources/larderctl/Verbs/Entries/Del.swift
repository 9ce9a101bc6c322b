import LarderClient

extension Verb {
    static let del: Verb = Verb(
        name: "del", synopsis: "KEY…",
        summary: "remove entries, all at once",
        details: """
            Prints the number of removed entries; with --json: {"removed":…}.
            Exits with 1 if there were none.
            """,
        argumentCount: 1...1_000_000
    ) { arguments, context in
        let removed = try context.connect().remove(arguments.words)
        if context.options.json {
            context.output.json(.object([("removed", .integer(Int64(removed)))]))
        } else {
            context.output.line("\(removed)")
        }
        return removed == 0 ? .notFound : .done
    }
}
