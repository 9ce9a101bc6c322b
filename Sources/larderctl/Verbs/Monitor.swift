import LarderClient
import LarderPlatform

extension Verb {
    static let monitor: Verb = Verb(
        name: "monitor", synopsis: "",
        summary: "show every command that the daemon runs, live",
        details: """
            One line per command: the time in seconds since 1970, the database and the client, and the words of the
            command, including values but not passwords. Ends with Ctrl-C, or when the daemon stops (exit code 3). It
            slows down every command of the daemon, so end it when you have seen enough. With --json: objects of time,
            database, client and words.
            """,
        argumentCount: 0...0
    ) { _, context in
        let output = context.output
        let client = try context.connect()
        try client.monitor { line in
            if context.options.json {
                output.json(MonitorLine(line)?.json ?? ["line": line])
            } else {
                output.oneLine(Array(line.utf8))
            }
            try output.flush()
        }
    }
}
