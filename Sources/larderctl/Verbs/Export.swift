import LarderClient
import LarderPlatform

extension Verb {
    static let export = Verb(
        "export", "[FILE] [--prefix PREFIX] [--to-redis URL [--map NAME=NUMBER]…]",
        "export entries as lines of JSON, or to a Redis, while the larder is in use",
        details: """
            Exports all databases, or those given with --database, which is repeatable. Without FILE, or with -, writes
            to standard output. The first line has the indexes, and each entry a line with its times, policy, grace,
            codec and tags, including stale ones. The output is FILE.part until it is complete. An interrupted export
            continues after the last complete line if it is called again with the same FILE, database and prefix. Prints
            the contents of FILE; with --json: {"path":…,"databases":…,"entries":…,"resumed":…,"bytes":…}. Each entry is
            exported as it is when it is read; for a consistent copy, see larderctl help backup.
            --to-redis: fresh entries with their remaining lifetime; its password is in the variable REDISCLI_AUTH, or
            in the URL, where other users of the machine may see it. Entries replace existing ones, without tags,
            graces and codecs. After an interruption it starts again, with the same result. With --json:
            {"exported":…,"stale":…,"databases":…}.
            """,
        options: [
            OptionSpec("--prefix", "PREFIX", "only entries whose keys start with PREFIX"),
            OptionSpec("--to-redis", "URL", "into a Redis: \(RedisServer.urlRule)"),
            OptionSpec(
                "--map", "NAME=NUMBER",
                "with --to-redis: the Redis database NUMBER for a database (default: its name, if a number); repeatable"
            ),
        ],
        argumentCount: 0...1
    ) { arguments, context in
        if arguments["--to-redis"] != nil { return try RedisVerb.export(arguments, context) }
        try arguments.refuse(["--map"], without: "--to-redis")
        var exporter = try Exporter(
            try context.options.connectForTransfer(), databases: context.options.databases,
            prefix: arguments["--prefix"]?.bytes ?? [])
        guard let path = try arguments.file() else {
            try exporter.run(to: context.output)
            return .done
        }
        if FileSystem.existsButIsNotRegularFile(path) {
            throw UsageError("\(path) is not a file; for a pipe or a device: larderctl export > \(path)")
        }
        try exporter.run(to: try ExportFile(path))
        exporter.progress.end()
        let report = exporter.report
        context.show(
            [
                "path": path, "databases": report.databases, "entries": report.entries, "resumed": report.resumed,
                "bytes": report.byteCount,
            ],
            text: "\(path): \(counted(report.entries, "entry", "entries")) of " + counted(report.databases, "database")
                + ", " + NumberText.bytes(report.byteCount)
                + (report.resumed == 0 ? "" : ", of which a previous call had written \(report.resumed)"))
        return .done
    }
}
