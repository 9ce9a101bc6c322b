import LarderClient
import LarderPlatform
import LarderRESP

extension Verb {
    static let subscribe = Verb(
        "subscribe", "CHANNEL… [--pattern]", "show the messages of channels as they arrive",
        details: """
            One line per message: the channel, a tab, the message. Ends with Ctrl-C, or when the daemon stops (exit code
            3); it does not reconnect, because messages would be missing. With --json: objects of channel, pattern (if
            one has matched) and message.
            """,
        options: [
            OptionSpec(
                "--pattern", nil, "each CHANNEL is a pattern: * matches any characters, ? one, [a-c] one of these")
        ],
        argumentCount: 1...Int.max
    ) { arguments, context in
        let output = context.output
        let client = try context.options.connect()
        output.endWithReader()
        try client.messages(of: arguments.words, arePatterns: arguments["--pattern"] != nil) { message in
            context.show(
                .present(["channel": message.channel, "pattern": message.pattern, "message": message.payload])
            ) { $0.oneLine(message.payload, after: message.channel) }
            try output.flush()
        }
    }

    static let monitor = Verb(
        "monitor", "", "show every command that the daemon runs, live",
        details: """
            One line per command: the time in seconds since 1970, the database and the client, and the words of the
            command, including values but not passwords. Ends with Ctrl-C, or when the daemon stops (exit code 3). It
            slows down every command of the daemon, so end it when you have seen enough. With --json: objects of time,
            database, client and words.
            """
    ) { _, context in
        let output = context.output
        let client = try context.options.connect()
        output.endWithReader()
        try client.monitor { line in
            context.show(MonitorLine(line)?.json ?? ["line": line]) { $0.oneLine(line) }
            try output.flush()
        }
    }

    static let watch = Verb(
        "watch", "[KEY] [--prefix PREFIX]", "show changes of the database's entries as they happen",
        details: """
            One line per change: the time, what happened, and the key. stored: it was stored, or its lifetime was changed; removed;
            expired; evicted, because of a disk budget; purged: the whole database, or all entries with a tag; fellbehind: everything may
            have changed. Without KEY and --prefix it shows all entries. Ends with Ctrl-C, or when the daemon stops (exit code 3); it
            does not reconnect, because changes would be missing. With --json: objects of time (milliseconds since 1970),
            database, change, and key or tag.
            """,
        options: [OptionSpec("--prefix", "PREFIX", "only entries whose keys start with PREFIX")],
        argumentCount: 0...1, isUnlikeCommand: true
    ) { arguments, context in
        let prefix = arguments["--prefix"]?.bytes
        let key = arguments.words.first
        guard key == nil || prefix == nil else { throw UsageError("KEY and --prefix cannot be combined") }
        let client = try context.options.connect()
        context.output.endWithReader()
        try client.changes(key.map { .key($0) } ?? .prefix(prefix ?? [])) { change in
            write(change, client.name, context)
            try context.output.flush()
        }
    }

    private static func write(_ change: ReportedChange, _ database: String, _ context: Context) {
        let now = Exporter.now()
        let kind = String(decoding: change.kind, as: UTF8.self)
        let all = kind == "fellbehind" ? "everything may have changed" : "all entries"
        let what = change.key ?? change.tag.map { Array("all entries with the tag ".utf8) + $0 } ?? Array(all.utf8)
        context.show(
            .present(["time": now, "database": database, "change": kind, "key": change.key, "tag": change.tag])
        ) { $0.oneLine(Array("\(TimeText.instant(now))  \(kind.padded(11)) ".utf8) + what) }
    }
}

/// A parsed line of MONITOR: `1700000000.123456 [0 /run/larder.sock:0] "GET" "key"`.
struct MonitorLine {
    let time: String
    let database: String
    let client: String
    let words: [[UInt8]]

    /// Parses a line.
    /// - Returns: nil if it has another form.
    init?(_ text: String) {
        let bytes = Array(text.utf8)
        guard let space = bytes.firstIndex(of: 0x20), bytes.dropFirst(space + 1).first == UInt8(ascii: "["),
            let end = bytes.firstIndex(of: UInt8(ascii: "]")), let words = InlineWords.words(of: bytes[(end + 1)...])
        else { return nil }
        time = String(decoding: bytes[..<space], as: UTF8.self)
        let inner = String(decoding: bytes[(space + 2)..<end], as: UTF8.self)
        let parts = inner.split(separator: " ", maxSplits: 1)
        database = parts.first.map(String.init) ?? ""
        client = parts.count > 1 ? String(parts[1]) : ""
        self.words = words
    }

    var json: JSONText {
        ["time": Double(time)?.json ?? time.json, "database": database, "client": client, "words": words]
    }
}
