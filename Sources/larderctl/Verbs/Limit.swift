import LarderClient

extension Verb {
    static let limit: Verb = Verb(
        name: "limit", synopsis: "[NAME [BYTES]]",
        summary: "show or change the disk budget of a database",
        details: """
            BYTES is a number of bytes, such as 64M or 2GiB, at least 4M; or none: then only the limit of the larder
            applies (larderd --max-disk). NAME is the database; without it, the one of --database.
            A full budget evicts the least valuable entries: those that are rarely read, in relation to their size.
            Prints the limit, the bytes used by the database, and the number of evicted entries since the daemon's
            start; or OK after a change. With --json: {"limit":…,"bytes":…,"evicted":…}, the limit null for none; after
            a change {"limit":…} as given.
            """,
        argumentCount: 0...2
    ) { arguments, context in
        if arguments.words.count == 1, let word = arguments.words.first, isLimit(String(decoding: word, as: UTF8.self))
        {
            throw UsageError(
                "missing database name: larderctl limit NAME \(printableKey(word)) (if \(printableKey(word)) is the "
                    + "name of a database: larderctl limit --database \(printableKey(word)))")
        }
        let client = try context.connect()
        if let name = arguments.words.first { try client.select(String(decoding: name, as: UTF8.self)) }
        guard arguments.words.count > 1 else {
            let info = try client.limitInfo()
            if context.options.json {
                context.output.json(["limit": info.limit, "bytes": info.bytes, "evicted": info.evicted])
            } else {
                let limit = info.limit.map { "\($0) bytes" } ?? "none"
                context.output.line(
                    "\(limit), \(info.bytes) bytes taken, \(counted(info.evicted, "entry", "entries")) evicted")
            }
            return .done
        }
        let text = String(decoding: arguments.words[1], as: UTF8.self)
        try client.setLimit(text)
        context.show(["limit": text], text: "OK")
        return .done
    }

    /// Whether a word is a limit and not the name of a database: `none`, a size with a unit, or a number above 15.
    private static func isLimit(_ word: String) -> Bool {
        guard word != "none" else { return true }
        guard let first = word.utf8.first, (0x30...0x39).contains(first) else { return false }
        if let number = Int(word) { return number > 15 }
        let unit = word.drop { $0.isNumber || $0 == "." }.lowercased()
        return ["k", "m", "g", "t"].contains { unit == $0 || unit == $0 + "b" || unit == $0 + "ib" }
    }
}
