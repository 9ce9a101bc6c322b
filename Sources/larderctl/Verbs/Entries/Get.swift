import LarderClient

extension Verb {
    static let get: Verb = Verb(
        name: "get", synopsis: "KEY",
        summary: "print an entry's value",
        details: """
            Prints the value's bytes unchanged. On a terminal, a line break follows, and control characters are shown as
            \\x1b, unless --raw is given.
            With --json: {"key":…,"found":true,"value":…}. A value that is not UTF-8 text is {"base64":"…"}.
            Exits with 1 and prints nothing if the key has no fresh entry.
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
