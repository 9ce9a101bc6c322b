import LarderClient

/// The parts of the verbs `import` and `export` for `--from-redis` and `--to-redis`.
enum RedisVerb {
    static let importOptions = [
        OptionSpec("--from-redis", "URL", "import the strings of a Redis: \(RedisURL.rule)"),
        OptionSpec(
            "--map", "NUMBER=NAME",
            "with --from-redis: import Redis database NUMBER into a database (default: the same number); "
                + "repeatable"),
    ]

    static let exportOptions = [
        OptionSpec("--to-redis", "URL", "into a Redis: \(RedisURL.rule)"),
        OptionSpec(
            "--map", "NAME=NUMBER",
            "with --to-redis: the Redis database NUMBER for a database (default: its name, if a number); "
                + "repeatable"),
    ]

    static let importDetails = """
        --from-redis: all databases of the Redis, or that of the URL; its password is in the variable REDISCLI_AUTH, or
        in the URL, where other users of the machine may see it. Entries replace existing ones, unless --keep-existing;
        those without a time to live follow the database's policy. Keys of other types than strings are counted and
        listed. After an interruption it starts again, with the same result. With --json:
        {"imported":…,"gone":…,"kept":…,"otherTypes":{…},"tooLong":…,"examples":[…]}.
        """

    static let exportDetails = """
        --to-redis: fresh entries with their remaining lifetime; its password is in the variable REDISCLI_AUTH, or in
        the URL, where other users of the machine may see it. Entries replace existing ones, without tags, graces and
        codecs. After an interruption it starts again, with the same result. With --json:
        {"exported":…,"stale":…,"databases":…}.
        """

    private static func map(_ arguments: VerbArguments, isNumberFirst: Bool) throws -> DatabaseMap {
        try DatabaseMap(try arguments.all("--map").map { try $0.text() }, isNumberFirst: isNumberFirst)
    }

    private static func refuse(_ arguments: VerbArguments, _ others: [String], with name: String)
        throws(UsageError)
    {
        for other in others where arguments.options[other] != nil {
            throw UsageError("\(other) and \(name) cannot be combined")
        }
        guard arguments.words.isEmpty else { throw UsageError("a FILE and \(name) cannot be combined") }
    }

    private static func redis(_ option: ParsedOption?, _ context: Context) throws -> (
        url: RedisURL, server: RedisServer
    ) {
        let url = try RedisURL(try option?.text() ?? "")
        let limit = context.options.timeoutMilliseconds
        return (url, try RedisServer(url, timeoutMilliseconds: limit == 0 ? 0 : limit + 55_000))
    }

    /// Connects to the daemon. Ignores ``Options/passwordVariable``, because it contains the password of the Redis.
    private static func connect(_ context: Context) throws -> BlockingLarderClient {
        var options = context.options
        options.readsPassword = false
        return try Context(options: options, output: context.output).connectForTransfer()
    }

    // MARK: import

    static func `import`(_ arguments: VerbArguments, _ context: Context) throws -> ExitCode {
        try refuse(arguments, ["--skip-invalid"], with: "--from-redis")
        guard context.options.databases.isEmpty else {
            throw UsageError(
                "--database and --from-redis cannot be combined: the URL selects the Redis database, --into or --map "
                    + "the larder's")
        }
        let map = try map(arguments, isNumberFirst: true)
        let target = try arguments.options["--into"]?.text()
        let (url, redis) = try redis(arguments.options["--from-redis"], context)
        var databases: [(number: Int, keys: Int, name: String)] = []
        let found = try RedisImport.databases(redis)
        // The list has only databases with keys. Select those given by the user, so that an invalid number is an error.
        for number in [url.database].compactMap({ $0 }) + map.mappedNumbers { try redis.select(number) }
        for database in found where url.database.map({ $0 == database.number }) ?? true {
            databases.append((database.number, database.keys, try target ?? map.name(database.number)))
        }
        var work = RedisImport(
            redis, try connect(context), prefix: arguments.options["--prefix"]?.value ?? [],
            keepsExisting: arguments.options["--keep-existing"] != nil)
        try work.run(databases)
        show(work.report, context)
        return .done
    }

    private static func show(_ report: RedisImport.Report, _ context: Context) {
        let others = report.otherTypes.sorted { $0.key < $1.key }
        if context.options.json {
            context.output.json([
                "imported": report.imported, "gone": report.gone, "kept": report.kept,
                "otherTypes": JSONText.object(others.map { ($0.key, .integer(Int64($0.value))) }),
                "tooLong": report.tooLong, "examples": report.examples,
            ])
            return
        }
        var parts = ["imported \(counted(report.imported, "entry", "entries"))"]
        if report.gone > 0 { parts.append("\(report.gone) disappeared before they could be read") }
        if report.kept > 0 { parts.append("\(report.kept) kept") }
        context.output.line(parts.joined(separator: ", "))
        var left = others.map { "\($0.value) of type \($0.key)" }
        if report.tooLong > 0 {
            left.append("\(report.tooLong) whose keys are longer than \(CarriedEntry.keyBytesMax) bytes")
        }
        guard !left.isEmpty else { return }
        context.output.line(
            "not imported: \(left.joined(separator: ", ")), such as \(report.examples.joined(separator: ", "))")
    }

    // MARK: export

    static func export(_ arguments: VerbArguments, _ context: Context) throws -> ExitCode {
        try refuse(arguments, [], with: "--to-redis")
        let map = try map(arguments, isNumberFirst: false)
        let client = try connect(context)
        let prefix = arguments.options["--prefix"]?.value ?? []
        let plan = try Exporter(client, databases: context.options.databases, prefix: prefix)
        let (url, redis) = try redis(arguments.options["--to-redis"], context)
        let names = plan.header.databases
        var databases: [(name: String, number: Int)] = []
        if let number = url.database {
            guard names.count == 1 else {
                throw UsageError(
                    "the URL selects one database of the Redis, but there are \(names.count) in the larder: use "
                        + "--database, or omit the number")
            }
            databases = [(names[0], number)]
        } else {
            for name in names { databases.append((name, try map.number(name))) }
        }
        var work = RedisExport(redis, client, prefix: prefix, total: plan.total)
        try work.run(databases)
        let report = work.report
        context.show(
            ["exported": report.exported, "stale": report.stale, "databases": report.databases],
            text: "exported \(counted(report.exported, "entry", "entries")) of " + counted(report.databases, "database")
                + (report.stale > 0 ? "; not exported: \(report.stale) stale" : ""))
        return .done
    }
}
