import LarderClient

extension Verb {
    static let databases = Verb(
        "databases", "", "list the databases",
        details: """
            Prints one line per database, with a heading; sizes in bytes, and on a terminal with units. If a database
            was salvaged since the daemon was started, the column DAMAGE shows the result. With --json: an array of
            objects, with the interval in milliseconds, null for never, and with "damage" null if there was none.
            """
    ) { _, context in
        let databases = try context.options.connect().databases()
        context.show(databases.json) { output in
            let hasDamage = databases.contains { $0.damage != nil }
            let damages = hasDamage ? [["DAMAGE"]] + databases.map { [$0.damage ?? "-"] } : []
            let rows = DatabaseInfo.rows(of: databases) { output.size($0) }
            output.table(hasDamage ? zip(rows, damages).map(+) : rows, rightAligned: DatabaseInfo.numberColumns)
        }
        return .done
    }

    static let limit = Verb(
        "limit", "[NAME [BYTES]]", "show or change the disk budget of a database",
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

    static let policy = Verb(
        "policy", "[POLICY [--grace SECONDS] [--jitter PERCENT]]",
        "show or change the database's policy: how long entries stay fresh",
        details: """
            A policy is highest (10 seconds), high (1 minute), middle (1 hour), low (24 hours), lowest (7 days), never,
            or a number of seconds, optionally with a fraction, or a time such as 250ms, 90s, 15m or 1h.
            A change also applies to existing entries; expired ones stay expired. Without --grace and --jitter, these
            settings are kept.
            Prints the policy, its interval, and the grace and the jitter if there are any; or OK after a change.
            With --json: {"policy":…,"interval":…,"grace":…,"jitter":…}, in milliseconds and percent, the interval null
            for never; after a change only the given values.
            """,
        options: [
            OptionSpec("--grace", "SECONDS", "how long clients that fetch may get a stale value"),
            OptionSpec("--jitter", "PERCENT", "maximum random reduction of lifetimes"),
        ],
        argumentCount: 0...1
    ) { arguments, context in
        let grace = try arguments.grace()
        let jitter = try arguments.jitter()
        guard let word = arguments.words.first else {
            guard grace == nil, jitter == nil else {
                throw UsageError("--grace and --jitter need a policy: larderctl policy low --grace 60")
            }
            let info = try context.options.connect().policyInfo()
            context.show([
                "policy": info.policy, "interval": info.intervalMilliseconds, "grace": info.graceMilliseconds,
                "jitter": info.jitterPercent,
            ]) { output in
                let interval = info.intervalMilliseconds.map { ", " + TimeText.span($0) } ?? ""
                let grace = info.graceMilliseconds > 0 ? ", grace " + TimeText.span(info.graceMilliseconds) : ""
                let jitter = info.jitterPercent > 0 ? ", jitter \(info.jitterPercent) %" : ""
                output.line(info.policy + interval + grace + jitter)
            }
            return .done
        }
        let policy = try VerbArguments.policy(String(decoding: word, as: UTF8.self))
        try context.options.connect().setPolicy(policy, grace: grace.map { .milliseconds($0) }, jitter: jitter)
        context.show(
            .present([
                "policy": policy.description, "interval": policy.intervalMilliseconds?.json ?? .null, "grace": grace,
                "jitter": jitter,
            ]), text: "OK")
        return .done
    }
}

extension DatabaseInfo: JSONValue {
    var json: JSONText {
        [
            "name": name, "policy": policy, "interval": intervalMilliseconds, "grace": graceMilliseconds,
            "jitter": jitterPercent, "entries": entries, "stale": staleEntries, "bytes": bytes, "limit": limit,
            "state": state, "damage": damage,
        ]
    }

    /// Returns a table of databases with a heading.
    /// - Parameter size: formats a number of bytes.
    static func rows(of databases: [DatabaseInfo], size: (Int64) -> String) -> [[String]] {
        [["NAME", "POLICY"] + ["ENTRIES", "STALE", "BYTES", "AT MOST", "STATE"]]
            + databases.map {
                [
                    $0.name, $0.policy, $0.entries.map { "\($0)" } ?? "?", $0.staleEntries.map { "\($0)" } ?? "?",
                    size($0.bytes), $0.limit.map(size) ?? "-", $0.state,
                ]
            }
    }

    static let numberColumns: Set<Int> = [2, 3, 4, 5]
}
