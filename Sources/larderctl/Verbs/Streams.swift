import LarderClient
import LarderPlatform
import LarderRESP

extension Verb {
    static let subscribe: Verb = Verb(
        name: "subscribe", synopsis: "CHANNEL… [--pattern]",
        summary: "show the messages of channels as they arrive",
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
        let client = try context.connect()
        try client.messages(of: arguments.words, arePatterns: arguments.options["--pattern"] != nil) { message in
            if context.options.json {
                output.json(
                    .present(["channel": message.channel, "pattern": message.pattern, "message": message.payload]))
            } else {
                output.oneLine(message.channel, message.payload)
            }
            try output.flush()
        }
    }
}

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

extension Verb {
    static let watch: Verb = Verb(
        name: "watch", synopsis: "[KEY] [--prefix PREFIX]",
        summary: "show changes of the database's entries as they happen",
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
        let prefix = arguments.options["--prefix"]?.value
        let entries: BlockingLarderClient.WatchedEntries
        if let key = arguments.words.first {
            guard prefix == nil else { throw UsageError("KEY and --prefix cannot be combined") }
            entries = .key(key)
        } else {
            entries = .prefix(prefix ?? [])
        }
        let client = try context.connect()
        try client.changes(entries) { change in
            write(change, client.name, context)
            try context.output.flush()
        }
    }

    private static func write(_ change: BlockingLarderClient.Change, _ database: String, _ context: Context) {
        let now = Exporter.now()
        guard !context.options.json else {
            return context.output.json(
                .present([
                    "time": now, "database": database, "change": change.kind, "key": change.key, "tag": change.tag,
                ]))
        }
        let kind = String(decoding: change.kind, as: UTF8.self)
        let space = String(repeating: " ", count: max(1, 12 - kind.count))
        let what: [UInt8] =
            if let key = change.key {
                key
            } else if let tag = change.tag {
                Array("all entries with the tag ".utf8) + tag
            } else {
                Array((kind == "fellbehind" ? "everything may have changed" : "all entries").utf8)
            }
        context.output.oneLine(Array("\(TimeText.instant(now))  \(kind)\(space)".utf8) + what)
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
            let end = bytes.firstIndex(of: UInt8(ascii: "]"))
        else { return nil }
        time = String(decoding: bytes[..<space], as: UTF8.self)
        let inner = String(decoding: bytes[(space + 2)..<end], as: UTF8.self)
        let parts = inner.split(separator: " ", maxSplits: 1)
        database = parts.first.map(String.init) ?? ""
        client = parts.count > 1 ? String(parts[1]) : ""
        guard let words = InlineWords.words(of: bytes[(end + 1)...]) else { return nil }
        self.words = words
    }

    var json: JSONText {
        ["time": Double(time)?.json ?? time.json, "database": database, "client": client, "words": words]
    }
}
