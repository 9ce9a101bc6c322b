import LarderClient

extension Verb {
    static let keys = Verb(
        name: "keys", synopsis: "[PATTERN]",
        summary: "list the keys of the database's entries",
        details: """
            In a pattern * matches any characters, ? one, [a-c] one of these; quote it for the shell.
            Prints one key per line (with -0: each ended by a zero byte, for xargs -0), in no particular order: entries that
            are stored or removed meanwhile may or may not be among them. With --json: an array of keys.
            With --long: a table in the order of keys, stale entries too, with the size of the value, how long it stays fresh,
            the policy (own: a lifetime of its own) and the state; sizes are in bytes unless a terminal shows them. It reads
            the values, too. With --json an object a line: {"key":…,"size":…,"ttl":…,"deadline":…,"stored-at":…,"rule":…,
            "state":…,"codec":…,"tags":[…]}, in milliseconds, null for never.
            Exits with 0, even if there is none.
            """,
        options: [
            OptionSpec(
                name: "--null", short: "-0", value: nil,
                summary: "end each key with a zero byte, and change nothing in it"),
            OptionSpec(
                name: "--long", short: "-l", value: nil, summary: "with size, remaining lifetime, policy and state"),
        ],
        argumentCount: 0...1
    ) { arguments, context in
        let (output, json) = (context.output, context.options.json)
        let endsWithZero = arguments.options["--null"] != nil
        if endsWithZero, json { throw UsageError("--null and --json exclude each other", verb: "keys") }
        let client = try context.connect()
        if arguments.options["--long"] != nil {
            if endsWithZero { throw UsageError("--null and --long exclude each other", verb: "keys") }
            try LongListing(client, matching: arguments.words.first, context).write()
            return .done
        }
        var separator = "["
        try client.forEachKey(matching: arguments.words.first) { key in
            if json {
                output.bytes(separator.utf8)
                separator = ","
                output.jsonPart(.bytes(key))
            } else if endsWithZero {
                output.bytes(key + [0])
            } else {
                output.oneLine(key)
            }
            try output.flushIfLarge()
            return true
        }
        if json { output.line(separator == "[" ? "[]" : "]") }
        return .done
    }
}
