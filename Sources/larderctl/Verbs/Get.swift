import LarderClient

extension Verb {
    static let get = Verb(
        name: "get", synopsis: "KEY",
        summary: "write an entry's value",
        details: """
            Writes the value's bytes as they are. A terminal gets a line end behind them, and control characters as
            \\x1b and the like, unless --raw is given.
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
            context.output.value(value)
        }
        return value == nil ? .notFound : .done
    }
}
