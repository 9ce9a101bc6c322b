import LarderClient
import LarderPlatform

extension Verb {
    static let stats = Verb(
        "stats", "[SECTION]", "show the daemon's statistics",
        details: """
            Prints lines of name:value under headings, like the command INFO.
            With --json: an object of sections, each an object; numbers are JSON numbers.
            With --watch: one line per interval, until Ctrl-C: operations per second, hit ratio of reads, connections,
            bytes in and out, bytes in memory, in the journal and on the disk, expired and evicted entries per second;
            with --json one object per line.
            """,
        options: [
            OptionSpec(
                "--watch", "SECONDS", "continue, with a line per interval (default: 1 second)", form: .optional)
        ],
        argumentCount: 0...1
    ) { arguments, context in
        if arguments["--watch"] != nil {
            guard arguments.words.isEmpty else { throw UsageError("--watch does not accept a section") }
            return try watch(context, milliseconds: try interval(arguments, "--watch"))
        }
        let section = arguments.words.first.map { String(decoding: $0, as: UTF8.self) }
        let client = try context.options.connect()
        let text = try client.serverInfo(section: section)
        if text.isEmpty, let section {
            let names = sections(try client.serverInfo(section: "everything"))
            throw UsageError(
                "unknown section '\(printableKey(section.utf8))'" + Suggestion.text(for: section, among: names)
                    + "; there are " + names.joined(separator: ", "))
        }
        context.show(FieldText.sections(Array(text.utf8))) { output in
            var lines = text.utf8.filter { $0 != 0x0D }
            while lines.last == 0x0A { lines.removeLast() }
            output.line(lines)
        }
        return .done
    }

    /// Returns the names of all sections, and `everything`, which means all of them.
    private static func sections(_ text: String) -> [String] {
        text.split { $0 == "\r\n" || $0 == "\n" }.filter { $0.hasPrefix("# ") }.map { $0.dropFirst(2).lowercased() }
            + ["everything"]
    }

    private static func watch(_ context: Context, milliseconds: Int64) throws -> ExitCode {
        let client = try context.options.connect()
        let output = context.output
        var before = InfoText(try client.serverInfo())
        var askedAt = MonotonicClock.milliseconds()
        var count = 0
        while true {
            let rest = max(0, askedAt + milliseconds - MonotonicClock.milliseconds())
            _ = poll(nil, 0, Int32(clamping: rest))
            let now = InfoText(try client.serverInfo())
            let asked = MonotonicClock.milliseconds()
            let rates = InfoRates(from: before, to: now, milliseconds: asked - askedAt)
            (before, askedAt) = (now, asked)
            context.show(WatchTable.json(rates, at: now.integer("server_time_usec") / 1000)) { output in
                if count % WatchTable.linesMax == 0, count == 0 || output.isTerminal { output.line(WatchTable.heading) }
                output.line(WatchTable.line(rates))
            }
            count += 1
            try output.flush()
        }
    }

    static let ping = Verb(
        "ping", "", "check whether the daemon is running",
        details: """
            Prints PONG; with --json: {"answer":"PONG"}. Exits with 3 if no daemon replies.
            """
    ) { _, context in
        try context.options.connect().ping()
        context.show(["answer": "PONG"], text: "PONG")
        return .done
    }
}
