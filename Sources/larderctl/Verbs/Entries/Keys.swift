import LarderClient

extension Verb {
    static let keys: Verb = Verb(
        name: "keys", synopsis: "[PATTERN]",
        summary: "list the keys of the database's entries",
        details: """
            In a pattern, * matches any characters, ? one, [a-c] one of these; quote it for the shell.
            Prints one key per line (with -0: each terminated by a zero byte, for xargs -0), in no particular order.
            Entries stored or removed during the listing may or may not be included. With --json: an array of keys.
            With --long: a table in the order of keys, including stale entries, with the size of the value, the
            remaining lifetime, the policy (own: its own lifetime) and the state; sizes are in bytes, except on a
            terminal. It also reads the values. With --json, one object per line:
            {"key":…,"size":…,"ttl":…,"deadline":…,"stored-at":…,"rule":…,"state":…,"codec":…,"tags":[…]}, in
            milliseconds, null for never.
            Exits with 0, even if there are none.
            """,
        options: [
            OptionSpec("--null", nil, "terminate each key with a zero byte, without escaping", short: "-0"),
            OptionSpec("--long", nil, "with size, remaining lifetime, policy and state", short: "-l"),
        ],
        argumentCount: 0...1
    ) { arguments, context in
        let (output, json) = (context.output, context.options.json)
        let endsWithZero = arguments["--null"] != nil
        if endsWithZero, json { throw UsageError("--null and --json cannot be combined") }
        try arguments.refuse("--null", with: "--long")
        let client = try context.options.connect()
        if arguments["--long"] != nil {
            try LongListing(client: client, context: context).write(matching: arguments.words.first)
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
