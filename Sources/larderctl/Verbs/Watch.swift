import LarderClient

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
        options: [OptionSpec(name: "--prefix", value: "PREFIX", summary: "only entries whose keys start with PREFIX")],
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
