import LarderClient
import LarderPlatform

extension Verb {
    static let `import` = Verb(
        "import",
        "[FILE] [--prefix PREFIX] [--into NAME] [--keep-existing] [--skip-invalid] [--from-redis URL "
            + "[--map NUMBER=NAME]…]",
        "import the entries of an export, or of a Redis, while the larder is in use",
        details: """
            FILE is an export of larderctl export; without it, or with -, reads standard input. Imports all its
            databases, or those given with --database, which is repeatable. Entries keep the time when they were stored.
            Expired entries are counted and skipped, and so are entries that are newer in the larder, or, with
            --keep-existing, that exist. A new database gets its policy from the export; existing databases keep theirs.
            Missing indexes are created.
            An invalid line stops the import (exit code 5); the entries before it are stored. --skip-invalid skips such
            lines and counts them. The progress is stored in FILE.position until the import is complete, so an
            interrupted import continues when it is called again. With --json:
            {"imported":…,"expired":…,"kept":…,"leftOut":…,"invalid":…,"resumed":…,"notes":[…]}.
            --from-redis: all databases of the Redis, or that of the URL; its password is in the variable REDISCLI_AUTH,
            or in the URL, where other users of the machine may see it. Entries replace existing ones, unless
            --keep-existing; those without a time to live follow the database's policy. Keys of other types than strings
            are counted and listed. After an interruption it starts again, with the same result. With --json:
            {"imported":…,"gone":…,"kept":…,"otherTypes":{…},"tooLong":…,"examples":[…]}.
            """,
        options: [
            OptionSpec("--prefix", "PREFIX", "only entries whose keys start with PREFIX"),
            OptionSpec("--into", "NAME", "the database for all entries, instead of their own"),
            OptionSpec("--keep-existing", nil, "keep existing entries, even if they are older"),
            OptionSpec("--skip-invalid", nil, "skip invalid lines, and count them"),
            OptionSpec("--from-redis", "URL", "import the strings of a Redis: \(RedisServer.urlRule)"),
            OptionSpec(
                "--map", "NUMBER=NAME",
                "with --from-redis: import Redis database NUMBER into a database (default: the same number); repeatable"
            ),
        ],
        argumentCount: 0...1
    ) { arguments, context in
        if arguments["--from-redis"] != nil { return try RedisVerb.import(arguments, context) }
        try arguments.refuse(["--map"], without: "--from-redis")
        var choice = Importer.Choice()
        choice.databases = Set(context.options.databases)
        choice.prefix = arguments["--prefix"]?.bytes ?? []
        choice.target = try arguments["--into"]?.checkedText()
        choice.keepsExisting = arguments["--keep-existing"] != nil
        choice.skipsInvalid = arguments["--skip-invalid"] != nil
        let path = try arguments.file()
        var descriptor = STDIN_FILENO
        if let path { descriptor = try Descriptor.open(path, O_RDONLY) }
        var importer = try Importer(
            try context.options.connectForTransfer(), descriptor, name: path ?? "standard input", choice)
        do {
            try importer.run(keepsPosition: path != nil)
        } catch {
            printNotes(importer.notes)
            throw error
        }
        show(importer, context)
        return .done
    }

    private static func printNotes(_ notes: [String]) {
        for note in notes { Output.standardError("larderctl: \(note)\n") }
    }

    private static func show(_ importer: Importer, _ context: Context) {
        let report = importer.report
        context.show([
            "imported": report.imported, "expired": report.expired, "kept": report.kept, "leftOut": report.leftOut,
            "invalid": report.invalid, "resumed": importer.isResumed, "notes": importer.notes,
        ]) { output in
            printNotes(importer.notes)
            var parts = ["imported \(counted(report.imported, "entry", "entries"))"]
            if report.expired > 0 { parts.append("\(report.expired) had expired") }
            if report.kept > 0 { parts.append("\(report.kept) kept") }
            if report.leftOut > 0 { parts.append("\(report.leftOut) excluded") }
            if report.invalid > 0 { parts.append(counted(report.invalid, "invalid line")) }
            output.line(parts.joined(separator: ", ") + (importer.isResumed ? "; including the previous call" : ""))
        }
    }
}
