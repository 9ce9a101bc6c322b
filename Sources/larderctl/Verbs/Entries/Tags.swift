import LarderClient

extension Verb {
    static let tags: Verb = Verb(
        name: "tags", synopsis: "KEY",
        summary: "print an entry's tags",
        details: """
            Prints one tag per line, in the order given. With --json: {"key":…,"found":…,"tags":[…]}.
            Exits with 1 if the key has no fresh entry.
            """,
        argumentCount: 1...1
    ) { arguments, context in
        let key = arguments.words[0]
        let tags = try context.connect().tagBytes(forKey: key)
        if context.options.json {
            context.output.json(
                .object([
                    ("key", .bytes(key)), ("found", .bool(tags != nil)),
                    ("tags", .array((tags ?? []).map { .bytes($0) })),
                ]))
        } else {
            for tag in tags ?? [] { context.output.oneLine(tag) }
        }
        return tags == nil ? .notFound : .done
    }
}
