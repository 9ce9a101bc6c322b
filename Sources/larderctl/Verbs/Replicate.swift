import LarderClient
import LarderPlatform

extension Verb {
    static let replicate = Verb(
        "replicate", "FROM TO [--continuous] [--join] [--prefix PREFIX] [--tag TAG]… [--name NAME]",
        "replicate the changes of one larder to another one, once or continuously",
        details: """
            FROM and TO are the sockets of two daemons: paths, or unix:PATH. Replicates all databases of FROM, or those
            given with --database, which is repeatable. Replication is one-way: to keep two larders identical, call it
            in both directions. The first call, and one after a long time, reads all entries; other calls continue where
            the last one stopped: the progress is stored in TO, in the database _replication. If both have changed an
            entry, the later change wins. TO becomes a copy, without the entries that FROM has removed; so a database of
            TO that has entries before the first call is refused, unless --join merges both. Outboxes (NAME.outbox) are
            not replicated, and a database of TO that has an origin is refused.
            Without --continuous it exits when TO is up to date, and prints a summary; if a database fails, the others
            are still replicated, and the exit code is that of the first failure. With --continuous it runs until Ctrl-C
            or SIGTERM, and retries while a daemon is not available. With --json it prints for each database, and with
            --continuous after each change:
            {"time":…,"database":…,"state":…,"total":…,"done":…,"stored":…,"removed":…,"kept":…,"passes":…,"ever":…};
            state is initial (a full pass), running, idle, stopped or error, with "error". The password of
            --password-file is that of FROM, and of TO unless --to-password-file is given. See docs/Origins.md.
            """,
        options: [
            OptionSpec("--continuous", nil, "continue with new changes, until Ctrl-C or SIGTERM"),
            OptionSpec("--join", nil, "at the first call: merge with the entries of TO; the later entry wins"),
            OptionSpec("--prefix", "PREFIX", "only entries whose keys start with PREFIX"),
            OptionSpec("--tag", "TAG", "only entries with this tag; repeatable"),
            OptionSpec("--name", "NAME", "the name of FROM in TO's records (default: the path of its directory)"),
            OptionSpec("--to-password-file", "PATH", "a file with the password of TO in its first line"),
        ],
        argumentCount: 2...2
    ) { arguments, context in
        var (from, to) = (context.options, context.options)
        from.socketPath = try path(arguments.words[0])
        to.socketPath = try path(arguments.words[1])
        if let option = arguments["--to-password-file"] { to.password = try Options.password(option) }
        for name in ["--prefix", "--name"] where arguments.all(name).count > 1 {
            throw UsageError("\(name) must be given only once")
        }
        var choice = ReplicationOptions()
        choice.prefix = arguments["--prefix"]?.bytes ?? []
        choice.joins = arguments["--join"] != nil
        choice.byteTags = Set(
            try arguments.byteTags { tags throws(TagRules.Impossible) in
                for tag in tags { try TagRules.check(tag) }
                return tags
            })
        choice.sourceName = try arguments["--name"]?.checkedText()
        let replication = Replication(from: from, to: to, choice: choice)
        if arguments["--continuous"] != nil { try replication.resume() }
        return try replication.runOnce(context)
    }

    /// Returns the path of a socket, given as a path or as a `unix:` URL.
    private static func path(_ word: [UInt8]) throws(UsageError) -> String {
        guard let text = String(validating: word, as: UTF8.self) else {
            throw UsageError("the path of a socket must be UTF-8 text")
        }
        let path = UnixSocket.path(inURL: text)
        guard path != nil || !text.contains("://") else {
            throw UsageError(
                "'\(printableKey(word))' is not the socket of a larder on this machine: use a path, or unix:PATH")
        }
        guard path != "", text != "" else { throw UsageError("the path of a socket is empty") }
        return path.map(String.init) ?? text
    }
}
