import LarderClient

extension Verb {
    static let keys = Verb(
        name: "keys", synopsis: "[PATTERN]",
        summary: "list the keys of the database's entries",
        details: """
            In a pattern * matches any characters, ? one, [a-c] one of these; quote it for the shell.
            Prints one key per line, in no particular order: entries that are stored or removed meanwhile may or may
            not be among them. With --json: an array of keys.
            Exits with 0, even if there is none.
            """,
        argumentCount: 0...1
    ) { arguments, context in
        let (output, json) = (context.output, context.options.json)
        let client = try context.connect()
        var separator = "["
        try client.forEachKey(matching: arguments.words.first) { key in
            if json {
                output.bytes(separator.utf8)
                separator = ","
                output.jsonPart(.bytes(key))
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
