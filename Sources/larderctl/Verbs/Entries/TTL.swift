import LarderClient

extension Verb {
    static let ttl: Verb = Verb(
        name: "ttl", synopsis: "KEY",
        summary: "show how long an entry stays fresh",
        details: """
            Prints the remaining seconds, with three decimals, or never.
            With --json: {"key":…,"found":true,"ttl":…}, in milliseconds, null for never.
            Exits with 1 and prints nothing if the key has no fresh entry.
            """,
        argumentCount: 1...1
    ) { arguments, context in
        let key = arguments.words[0]
        let left = try context.connect().timeToLive(forKey: key)
        var milliseconds: Int64?
        if case .milliseconds(let number)? = left { milliseconds = number }
        if context.options.json {
            context.output.json(
                .object([("key", .bytes(key)), ("found", .bool(left != nil)), ("ttl", .optional(milliseconds))]))
        } else if left != nil {
            context.output.line(milliseconds.map { TimeText.seconds($0) } ?? "never")
        }
        return left == nil ? .notFound : .done
    }
}
