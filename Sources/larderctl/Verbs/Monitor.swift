import LarderClient
import LarderPlatform

extension Verb {
    static let monitor = Verb(
        name: "monitor", synopsis: "",
        summary: "show every command that the daemon runs, as it runs it",
        details: """
            One line for each: the time in seconds since 1970, the database and the client, and the words of the command, values
            included and passwords not. Ends with Ctrl-C, or when the daemon ends (exit code 3). It costs the daemon time for every
            command, so end it when you have seen enough. With --json: objects of time, database, client and words.
            """,
        argumentCount: 0...0
    ) { _, context in
        let output = context.output
        let client = try context.connect()
        try client.monitor { line in
            if context.options.json {
                output.json(MonitorLine(line)?.json ?? .object([("line", .text(line))]))
            } else {
                output.oneLine(Array(line.utf8))
            }
            try output.flush()
        }
    }
}
