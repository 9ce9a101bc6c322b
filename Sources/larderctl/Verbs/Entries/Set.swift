import LarderClient

extension Verb {
    static let set: Verb = Verb(
        name: "set", synopsis: "KEY [VALUE | -] [--file PATH] [--policy POLICY | --ttl SECONDS] [--tag TAG]…",
        summary: "store an entry",
        details: """
            The value is the second argument; or standard input, if that argument is - or missing; or the file. It is
            stored unchanged, including a final line break.
            Without --policy and --ttl, the database's policy applies.
            Prints OK; with --json: {"key":…,"stored":true}.
            """,
        options: [OptionSpec(name: "--file", value: "PATH", summary: "read the value from this file")]
            + OptionSpec.lifetime + [OptionSpec.tag],
        argumentCount: 1...2
    ) { arguments, context in
        let key = arguments.words[0]
        let policy = try arguments.entryPolicy("set")
        let tags = try arguments.tags("set")
        let value = try setValue(arguments)
        try context.connect().setBytes(value, forKey: key, policy: policy, tags: tags)
        if context.options.json {
            context.output.json(.object([("key", .bytes(key)), ("stored", .bool(true))]))
        } else {
            context.output.line("OK")
        }
        return .done
    }

    private static func setValue(_ arguments: VerbArguments) throws -> [UInt8] {
        let word = arguments.words.count == 2 ? arguments.words[1] : nil
        if let file = arguments.options["--file"] {
            guard word == nil else {
                throw UsageError("the value is given twice: as an argument and with --file", verb: "set")
            }
            return try Input.file(try file.text())
        }
        guard let word, word != Array("-".utf8) else { return try Input.standardInput() }
        return word
    }
}
