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
        let words = arguments.words.map { String(decoding: $0, as: UTF8.self) }
        if words.count == 1, isLimit(words[0]) {
            let word = printableKey(arguments.words[0])
            throw UsageError(
                "missing database name: larderctl limit NAME \(word) (if \(word) is the name of a database: larderctl "
                    + "limit --database \(word))")
        }
        let client = try context.options.connect()
        if let name = words.first { try client.select(name) }
        if words.count > 1 {
            try client.setLimit(words[1])
            context.show(["limit": words[1]], text: "OK")
            return .done
        }
        let info = try client.limitInfo()
        context.show(
            ["limit": info.limit, "bytes": info.bytes, "evicted": info.evicted],
            text: "\(info.limit.map { "\($0) bytes" } ?? "none"), \(info.bytes) bytes taken, "
                + "\(counted(info.evicted, "entry", "entries")) evicted")
        return .done
    }

    /// Whether a word is a limit and not the name of a database: `none`, a size with a unit, or a number above 15.
    private static func isLimit(_ word: String) -> Bool {
        if let number = Int(word) { return number > 15 }
        return word == "none" || word.lowercased().wholeMatch(of: #/[0-9][0-9.]*[kmgt](i?b)?/#) != nil
    }
}
