import LarderClient
import LarderPlatform

extension Verb {
    static let purge = Verb(
        "purge", "[--expired | --prefix PREFIX | --tag TAG… [--soft]]",
        "empty the database at once, or remove some entries",
        details: """
            Prints the number of removed entries; with --json: {"entries":…,"bytes":…,"milliseconds":…}. With --tag
            nothing is counted, so it takes the same time for any number of entries: prints OK; with --json:
            {"tags":[…],"soft":…}.
            On a terminal it asks before it empties the database, and exits with 1 if the answer is not y.
            """,
        options: [
            OptionSpec("--expired", nil, "remove only expired entries that still take space"),
            OptionSpec("--prefix", "PREFIX", "remove only entries whose keys start with PREFIX"),
            OptionSpec("--tag", "TAG", "remove only entries with this tag; repeatable"),
            OptionSpec("--soft", nil, "with --tag: make the entries stale for their grace, instead of removing them"),
            OptionSpec("--yes", nil, "do not ask on a terminal before emptying the database"),
        ]
    ) { arguments, context in
        if arguments["--tag"] != nil { return try purgeTags(arguments, context) }
        try arguments.refuse(["--soft"], without: "--tag")
        try arguments.refuse("--expired", with: "--prefix")
        let result: PurgeReport
        if arguments["--expired"] != nil {
            result = try context.options.connect().removeExpired()
        } else if let prefix = arguments["--prefix"] {
            // An empty prefix, for example from an unset variable of a script, would match every key.
            guard let prefix = prefix.bytes, !prefix.isEmpty else {
                throw UsageError("--prefix is empty; to purge the whole database, omit it")
            }
            result = try context.options.connect().remove(prefix: prefix)
        } else {
            let client = try context.options.connect()
            if arguments["--yes"] == nil, canAsk {
                let name = context.options.database ?? "0"
                let shown = "database '\(printableKey(name.utf8))'"
                // If this user must not list databases, ask anyway, because the database may exist.
                if let list = try? client.databases(), !list.contains(where: { $0.name == name }) {
                    return leave("\(shown) does not exist: nothing to purge", context)
                }
                guard isAnsweredWithYes("Empty the \(shown)?") else { return leave("nothing was removed", context) }
            }
            result = try client.removeAll()
        }
        // The daemon always counts the entries, so this is not nil.
        let entries = result.entries ?? 0
        context.show(
            ["entries": entries, "bytes": result.bytes, "milliseconds": result.milliseconds],
            text: "removed \(counted(entries, "entry", "entries")), \(counted(result.bytes, "byte")), "
                + "in \(result.milliseconds) ms")
        return .done
    }

    private static func leave(_ message: String, _ context: Context) -> ExitCode {
        Failure(code: "notPurged", message: message, exitCode: .notFound).show(asJSON: context.options.json)
        return .notFound
    }

    private static func purgeTags(_ arguments: VerbArguments, _ context: Context) throws -> ExitCode {
        try arguments.refuse("--tag", with: "--expired", "--prefix")
        let tags = try arguments.byteTags(TagRules.checkedForPurge)
        let soft = arguments["--soft"] != nil
        try context.options.connect().removeAll(taggedBytes: tags, soft: soft)
        context.show(["tags": tags, "soft": soft], text: "OK")
        return .done
    }

    /// Whether standard input and standard error are terminals, so that a user can answer.
    private static var canAsk: Bool { isatty(STDIN_FILENO) == 1 && isatty(STDERR_FILENO) == 1 }

    /// Asks a question and waits for a line. Returns true only for the answers y and yes, ignoring case.
    private static func isAnsweredWithYes(_ text: String) -> Bool {
        Output.standardError(text + " [y/N] ")
        return ["y", "yes"].contains(readLine()?.lowercased())
    }
}
