import LarderClient

extension Verb {
    static let get = Verb(
        "get", "KEY", "print an entry's value",
        details: """
            Prints the value's bytes unchanged. On a terminal, a line break follows, and control characters are shown as
            \\x1b, unless --raw is given.
            With --json: {"key":…,"found":true,"value":…}. A value that is not UTF-8 text is {"base64":"…"}.
            Exits with 1 and prints nothing if the key has no fresh entry.
            """,
        argumentCount: 1...1
    ) { arguments, context in
        let key = arguments.words[0]
        let value = try context.options.connect().bytes(forKey: key)
        context.show(["key": key, "found": value != nil, "value": value]) { output in value.map { output.value($0) } }
        return value == nil ? .notFound : .done
    }

    static let set = Verb(
        "set", "KEY [VALUE | -] [--file PATH] [--policy POLICY | --ttl SECONDS] [--tag TAG]…", "store an entry",
        details: """
            The value is the second argument; or standard input, if that argument is - or missing; or the file. It is
            stored unchanged, including a final line break.
            Without --policy and --ttl, the database's policy applies.
            Prints OK; with --json: {"key":…,"stored":true}.
            """,
        options: [OptionSpec("--file", "PATH", "read the value from this file")]
            + OptionSpec.lifetime + [OptionSpec.tag],
        argumentCount: 1...2
    ) { arguments, context in
        let key = arguments.words[0]
        let policy = try arguments.entryPolicy()
        let tags = try arguments.tags()
        let value = try setValue(arguments)
        try context.options.connect().setBytes(value, forKey: key, policy: policy, tags: tags)
        context.show(["key": key, "stored": true], text: "OK")
        return .done
    }

    private static func setValue(_ arguments: VerbArguments) throws -> [UInt8] {
        let word = arguments.words.count == 2 ? arguments.words[1] : nil
        if let file = arguments["--file"] {
            guard word == nil else { throw UsageError("the value is given twice: as an argument and with --file") }
            return try Input.file(try file.checkedText())
        }
        guard let word, word != Array("-".utf8) else { return try Input.standardInput() }
        return word
    }

    static let del = Verb(
        "del", "KEY…", "remove entries, all at once",
        details: """
            Prints the number of removed entries; with --json: {"removed":…}.
            Exits with 1 if there were none.
            """,
        argumentCount: 1...1_000_000
    ) { arguments, context in
        let removed = try context.options.connect().remove(arguments.words)
        context.show(["removed": removed], text: "\(removed)")
        return removed == 0 ? .notFound : .done
    }
}
