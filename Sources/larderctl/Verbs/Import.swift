import LarderClient
import LarderPlatform

extension Verb {
    static let `import` = Verb(
        name: "import",
        synopsis: "[FILE] [--prefix PREFIX] [--into NAME] [--keep-existing] [--skip-invalid] [--from-redis URL "
            + "[--map NUMBER=NAME]…]",
        summary: "store the entries of an export, or of a Redis, while the larder is in use",
        details: """
            FILE is what larderctl export wrote; without it, or with -, standard input. All its databases, or those that
            --database names, which may be given several times. Entries keep the time when they were stored. What has expired
            meanwhile is counted and left out; so is what the larder has newer, or, with --keep-existing, has at all. A database
            that is new gets the policy that it had; others keep theirs.
            A line that is none ends the import (5): what comes before it is stored. --skip-invalid passes over such lines and
            counts them. How far it has come stands in FILE.position until all is done, so an import that is interrupted goes on
            when it is called again. With --json:
            {"imported":…,"expired":…,"kept":…,"leftOut":…,"invalid":…,"resumed":…,"notes":[…]}.
            \(RedisVerb.importDetails)
            """,
        options: [
            OptionSpec(name: "--prefix", value: "PREFIX", summary: "only entries whose keys begin with PREFIX"),
            OptionSpec(name: "--into", value: "NAME", summary: "the database for all entries, instead of their own"),
            OptionSpec(
                name: "--keep-existing", value: nil, summary: "an entry that is there stays, even if it is older"),
            OptionSpec(name: "--skip-invalid", value: nil, summary: "pass over lines that are none, and count them"),
        ] + RedisVerb.importOptions,
        argumentCount: 0...1
    ) { arguments, context in
        if arguments.options["--from-redis"] != nil { return try RedisVerb.import(arguments, context) }
        try arguments.refuse(["--map"], without: "--from-redis", "import")
        var choice = Importer.Choice()
        choice.databases = Set(context.options.databases)
        choice.prefix = arguments.options["--prefix"]?.value ?? []
        choice.target = try arguments.options["--into"]?.text()
        choice.keepsExisting = arguments.options["--keep-existing"] != nil
        choice.skipsInvalid = arguments.options["--skip-invalid"] != nil
        let path = try arguments.file("import")
        var descriptor = STDIN_FILENO
        if let path {
            descriptor = FileSystem.openFile(path, O_RDONLY | O_CLOEXEC)
            guard descriptor >= 0 else {
                throw InputOutputError(message: "\(path) could not be opened: \(SystemErrorText.of(errno))")
            }
        }
        var importer = try Importer(
            try context.connectForTransfer(), descriptor, name: path ?? "standard input", choice)
        do {
            try importer.run(keepsPosition: path != nil)
        } catch {
            tellNotes(importer.notes)
            throw error
        }
        tell(importer, context)
        return .done
    }

    private static func tellNotes(_ notes: [String]) {
        for note in notes { Output.standardError("larderctl: \(note)\n") }
    }

    private static func tell(_ importer: Importer, _ context: Context) {
        let report = importer.report
        if context.options.json {
            context.output.json(
                .object([
                    ("imported", .integer(Int64(report.imported))), ("expired", .integer(Int64(report.expired))),
                    ("kept", .integer(Int64(report.kept))), ("leftOut", .integer(Int64(report.leftOut))),
                    ("invalid", .integer(Int64(report.invalid))), ("resumed", .bool(importer.isResumed)),
                    ("notes", .array(importer.notes.map { .text($0) })),
                ]))
            return
        }
        tellNotes(importer.notes)
        var parts = ["imported \(TransferText.entries(report.imported))"]
        if report.expired > 0 { parts.append("\(report.expired) had expired") }
        if report.kept > 0 { parts.append("\(report.kept) stay as they are") }
        if report.leftOut > 0 { parts.append("\(report.leftOut) left out") }
        if report.invalid > 0 { parts.append("\(report.invalid) invalid lines") }
        context.output.line(
            parts.joined(separator: ", ") + (importer.isResumed ? "; together with the former call" : ""))
    }
}
