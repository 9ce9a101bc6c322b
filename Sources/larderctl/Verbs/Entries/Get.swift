import LarderClient

extension Verb {
    static let get = Verb(
        name: "get", synopsis: "KEY",
        summary: "print an entry's value",
        details: """
            Prints the value's bytes unchanged. On a terminal a line end follows, and control characters appear as
            \\x1b and the like, unless --raw is given.
            With --json: {"key":…,"found":true,"value":…}. A value that is not UTF-8 text is {"base64":"…"}.
            Exits with 1 and prints nothing if there is no fresh entry of that name.
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
