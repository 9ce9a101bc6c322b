import LarderClient

extension Verb {
    static let get = Verb(
        name: "get", synopsis: "KEY",
        summary: "write an entry's value",
        details: """
            Writes the value's bytes as they are, and a line end behind them only if a terminal shows them.
            With --json: {"key":…,"found":true,"value":…}. A value that is not UTF-8 text is {"base64":"…"}.
            Ends with 1 and writes nothing if there is no fresh entry of that name.
            """,
        argumentCount: 1...1
    ) { arguments, context in
        let key = arguments.words[0]
        let value = try context.connect().bytes(forKey: key)
        if context.options.json {
            context.output.json(
                .object([
                    ("key", .bytes(key)), ("found", .bool(value != nil)), ("value", value.map { .bytes($0) } ?? .null),
                ]))
        } else if let value {
            context.output.bytes(value)
            if Output.isTerminal { context.output.line("") }
        }
        return value == nil ? .notFound : .done
    }
}
