import LarderClient

/// The parts of the verbs `import` and `export` for `--from-redis` and `--to-redis`.
enum RedisVerb {
    private static func map(_ arguments: VerbArguments, isNumberFirst: Bool) throws -> DatabaseMap {
        try DatabaseMap(try arguments.all("--map").map { try $0.checkedText() }, isNumberFirst: isNumberFirst)
    }

    /// Connects to the Redis at the URL in an option.
    private static func redis(_ name: String, _ arguments: VerbArguments, _ context: Context) throws -> RedisServer {
        try RedisServer(
            try arguments[name]?.checkedText() ?? "",
            timeoutMilliseconds: context.options.timeout(plus: Options.checkpointMilliseconds))
    }

    /// Connects to the daemon. Ignores ``Options/passwordVariable``, because it contains the password of the Redis.
    private static func connect(_ context: Context) throws -> BlockingLarderClient {
        var options = context.options
        options.readsPassword = false
        return try options.connectForTransfer()
    }

    // MARK: import

    static func `import`(_ arguments: VerbArguments, _ context: Context) throws -> ExitCode {
        try arguments.refuse("--skip-invalid", with: "--from-redis")
        guard arguments.words.isEmpty else { throw UsageError("a FILE and --from-redis cannot be combined") }
        guard context.options.databases.isEmpty else {
            throw UsageError(
                "--database and --from-redis cannot be combined: the URL selects the Redis database, --into or --map "
                    + "the larder's")
        }
        let map = try map(arguments, isNumberFirst: true)
        let target = try arguments["--into"]?.checkedText()
        try arguments.refuse("--map", with: "--into")
        let redis = try redis("--from-redis", arguments, context)
        if let number = map.mappedNumbers.first(where: { $0 != redis.database ?? $0 }) {
            throw UsageError("--map \(number)=NAME: the URL selects another database of the Redis")
        }
        let found = try RedisImport.databases(redis).filter { $0.number == redis.database ?? $0.number }
        // The list has only databases with keys. Select the mapped ones, so that an invalid number is an error.
        for number in map.mappedNumbers { try redis.select(number) }
        let databases = try found.map { ($0.number, $0.keys, try target ?? map.name($0.number)) }
        if target == nil { try DatabaseMap.checkTargets(databases.map { ($0.0, $0.2) }) }
        var work = RedisImport(
            redis: redis, client: try connect(context), prefix: arguments["--prefix"]?.bytes ?? [],
            keepsExisting: arguments["--keep-existing"] != nil)
        try work.run(databases)
        show(work.report, context)
        return .done
    }

    private static func show(_ report: RedisImport.Report, _ context: Context) {
        let others = report.otherTypes.sorted { $0.key < $1.key }
        context.show([
            "imported": report.imported, "gone": report.gone, "kept": report.kept,
            "otherTypes": JSONText.object(others.map { ($0.key, .integer(Int64($0.value))) }),
            "tooLong": report.tooLong, "examples": report.examples,
        ]) { output in
            var parts = ["imported \(counted(report.imported, "entry", "entries"))"]
            if report.gone > 0 { parts.append("\(report.gone) disappeared before they could be read") }
            if report.kept > 0 { parts.append("\(report.kept) kept") }
            output.line(parts.joined(separator: ", "))
            var left = others.map { "\($0.value) of type \($0.key)" }
            if report.tooLong > 0 {
                left.append("\(report.tooLong) whose keys are longer than \(StoredEntry.keyBytesMax) bytes")
            }
            guard !left.isEmpty else { return }
            output.line(
                "not imported: \(left.joined(separator: ", ")), such as \(report.examples.joined(separator: ", "))")
        }
    }

    // MARK: export

    static func export(_ arguments: VerbArguments, _ context: Context) throws -> ExitCode {
        guard arguments.words.isEmpty else { throw UsageError("a FILE and --to-redis cannot be combined") }
        let map = try map(arguments, isNumberFirst: false)
        let client = try connect(context)
        let prefix = arguments["--prefix"]?.bytes ?? []
        let plan = try Exporter(client, databases: context.options.databases, prefix: prefix)
        let redis = try redis("--to-redis", arguments, context)
        let names = plan.header.databases
        guard redis.database == nil || names.count == 1 else {
            throw UsageError(
                "the URL selects one database of the Redis, but there are \(names.count) in the larder: use "
                    + "--database, or omit the number")
        }
        guard redis.database == nil || map.mappedNames.isEmpty else {
            throw UsageError("--map and a URL that selects a database of the Redis cannot be combined")
        }
        for name in map.mappedNames where !names.contains(name) {
            throw UsageError(
                "--map: no database '\(printableKey(name.utf8))' is exported" + Suggestion.text(for: name, among: names)
            )
        }
        let databases = try names.map { ($0, try redis.database ?? map.number($0)) }
        try DatabaseMap.checkTargets(databases)
        let reader = EntryReader(client: client, prefix: prefix)
        var work = RedisExport(redis: redis, reader: reader, total: plan.total)
        try work.run(databases)
        let report = work.report
        context.show(
            ["exported": report.exported, "stale": report.stale, "databases": report.databases],
            text: "exported \(counted(report.exported, "entry", "entries")) of " + counted(report.databases, "database")
                + (report.stale > 0 ? "; not exported: \(report.stale) stale" : ""))
        return .done
    }
}
