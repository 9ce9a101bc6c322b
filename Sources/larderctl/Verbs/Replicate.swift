import LarderClient

extension Verb {
    static let replicate = Verb(
        name: "replicate",
        synopsis: "FROM TO [--continuous] [--join] [--prefix PREFIX] [--tag TAG]… [--name NAME]",
        summary: "bring what changes in one larder into another one, once or for as long as it runs",
        details: """
            FROM and TO are the sockets of two daemons: paths, or unix:PATH. All databases of FROM, or those that --database
            names, which may be given several times. One way: to bring two larders to the same entries, call it both ways. The
            first call, and one after a long time, begins with all entries; every other one goes on where the last one was,
            however that ended: how far it has come stands in TO, in the database _replication. Where both have changed an entry,
            the later change stays. TO becomes a copy, and loses what FROM has lost; so a database of TO that has entries before the
            first call is refused, unless --join brings both together.
            What waits for an origin (NAME.outbox) stays where it is, and a database of TO with an origin follows nobody.
            Without --continuous it ends when TO has everything, and prints what it did; where a database is refused or fails,
            the others come over, and the exit code is that of the first failure. With --continuous it goes on until
            Ctrl-C or SIGTERM, and tries again when a daemon is away. With --json, for each database at the end, and with
            --continuous as often as something changes:
            {"time":…,"database":…,"state":…,"total":…,"done":…,"stored":…,"removed":…,"kept":…,"passes":…,"ever":…}; state is
            initial (a full pass), running, idle, stopped or error, with "error". The password of --password-file is that of FROM,
            and of TO unless --to-password-file is given. See docs/Replication.md.
            """,
        options: [
            OptionSpec(
                name: "--continuous", value: nil, summary: "go on with what changes, until Ctrl-C or SIGTERM"),
            OptionSpec(
                name: "--join", value: nil,
                summary: "at the first call: TO keeps what it has of its own, and the later entry stays"),
            OptionSpec(name: "--prefix", value: "PREFIX", summary: "only entries whose keys begin with PREFIX"),
            OptionSpec(
                name: "--tag", value: "TAG", summary: "only entries with this tag; may be given several times"),
            OptionSpec(
                name: "--name", value: "NAME",
                summary: "what TO calls FROM in its notes (default: the path of its directory)"),
            OptionSpec(
                name: "--to-password-file", value: "PATH",
                summary: "a file with the password of TO in its first line"),
        ],
        argumentCount: 2...2
    ) { arguments, context in
        var ends = Replication.Ends(from: context.options, to: context.options)
        ends.from.socketPath = try path(arguments.words[0])
        ends.to.socketPath = try path(arguments.words[1])
        if let option = arguments.options["--to-password-file"] {
            ends.to.password = try Options.password(try option.text())
        }
        for name in ["--prefix", "--name"] where arguments.given.count(where: { $0.name == name }) > 1 {
            throw UsageError("\(name) is given once", verb: "replicate")
        }
        var choice = ReplicationOptions()
        choice.prefix = arguments.options["--prefix"]?.value ?? []
        choice.joins = arguments.options["--join"] != nil
        for option in arguments.given where option.name == "--tag" { choice.byteTags.insert(try tag(option)) }
        choice.sourceName = try arguments.options["--name"]?.text()
        let replication = Replication(ends, choice, context)
        if arguments.options["--continuous"] != nil { try replication.goOn() }
        return try replication.runOnce()
    }

    /// A tag that entries can have.
    private static func tag(_ option: ParsedOption) throws(UsageError) -> [UInt8] {
        let tag = option.value ?? []
        do throws(TagRules.Impossible) {
            try TagRules.check(tag)
        } catch {
            throw UsageError("--tag: \(error.message)", verb: "replicate")
        }
        return tag
    }

    /// The path of a socket.
    private static func path(_ word: [UInt8]) throws(UsageError) -> String {
        guard var text = String(validating: word, as: UTF8.self) else {
            throw UsageError("the path of a socket must be UTF-8 text", verb: "replicate")
        }
        if text.hasPrefix("unix:") {
            text.removeFirst(5)
            if text.hasPrefix("//") { text.removeFirst(2) }
        } else if text.contains("://") {
            throw UsageError(
                "'\(printableKey(word))' is not the socket of a larder on this machine: a path, or unix:PATH",
                verb: "replicate")
        }
        guard !text.isEmpty else { throw UsageError("the path of a socket is empty", verb: "replicate") }
        return text
    }
}
