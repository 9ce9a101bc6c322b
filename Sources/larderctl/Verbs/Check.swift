import LarderClient
import LarderPlatform

extension Verb {
    static let check: Verb = Verb(
        name: "check", synopsis: "[DIRECTORY]",
        summary: "check all files of a larder and report problems",
        details: """
            Without DIRECTORY, checks through the daemon at the socket, or, if there is none, checks the default
            directory. With DIRECTORY, checks through the daemon that has that larder open, or checks the files directly
            if there is none; that needs the program larderd next to larderctl or in PATH (larderd --check). Prints one
            line per problem: place, problem, and remedy. Changes nothing without --repair. With --repair, damaged
            databases and the journal are salvaged as at startup, indexes are completed, and everything is checked
            again; damaged files are kept in DAMAGED. --database NAME checks one database and the common files. Exits
            with 0 if there are no problems, 8 if there are, 9 if they were repaired, 10 if not everything could be
            checked, 2 if the directory is not a larder. With --json:
            {"problems":[{"kind","place","what","remedy"}],"left":[…],"notes":[…],"failures":[…],"databases":…,"entries":…,
            "operations":…}; "left" has the problems that remain after --repair.
            """,
        options: [
            OptionSpec(name: "--repair", value: nil, summary: "repair what can be repaired, and check again")
        ],
        argumentCount: 0...1
    ) { arguments, context in
        let repairs = arguments.options["--repair"] != nil
        guard let word = arguments.words.first else {
            do {
                return try ask(
                    try context.connect(waitingMilliseconds: Int64(ClientOptions.timeoutMillisecondsMax)), repairs,
                    context)
            } catch let error as LarderClientError where error.code == .noDaemon {
                // With an explicit socket, only the daemon at that socket is meant.
                if context.options.socketPath != nil { throw error }
                Output.standardError("larderctl: \(error.message); checking the files\n")
                return try lookAtFiles(nil, repairs, context)
            }
        }
        guard let text = String(validating: word, as: UTF8.self), !text.isEmpty,
            let directory = FileSystem.canonical(text), FileSystem.isDirectory(directory)
        else {
            throw UsageError("directory not found: \(printableKey(word))")
        }
        switch try LarderHolder.find(directory) {
        case .nobody: return try lookAtFiles(directory, repairs, context)
        case .process(let pid, nil):
            throw CheckFailure(
                message: "process \(pid) has the larder open, but is not a daemon: stop it, and check again")
        case .process(let pid, let socket?):
            var options = context.options
            options.socketPath = socket
            let client = try Context(options: options, output: context.output).connect(
                waitingMilliseconds: Int64(ClientOptions.timeoutMillisecondsMax))
            guard InfoFigures(try client.serverInfo(section: "larder")).text("directory") == directory else {
                throw CheckFailure(
                    message: "process \(pid) has the larder \(directory) open, but another daemon listens at \(socket)")
            }
            return try ask(client, repairs, context)
        }
    }

    private static func lookAtFiles(_ directory: String?, _ repairs: Bool, _ context: Context) throws -> ExitCode {
        guard let program = DaemonProgram.find() else {
            throw CheckFailure(
                message:
                    "larderd is neither next to larderctl nor in PATH; it is needed to check a larder "
                    + "without a daemon")
        }
        var words = [context.options.database.map { "--check=\($0)" } ?? "--check"]
        if repairs { words.append("--repair") }
        if let directory { words += ["--dir", directory] }
        if context.options.json { words += ["--log-format", "json"] }
        throw DaemonProgram.become(program, words)
    }

    // MARK: The running daemon

    private static func ask(_ client: BlockingLarderClient, _ repairs: Bool, _ context: Context) throws -> ExitCode {
        var words = ["CHECK"]
        if let database = context.options.database { words += ["DATABASE", database] }
        if repairs { words.append("REPAIR") }
        let reply = try LongCall.run(client, words, field: "check", context)
        if let text = reply.errorMessage, text.hasPrefix("UNCHECKED ") {
            throw CheckFailure(message: text)
        }
        if let text = reply.errorMessage { throw LarderClientError.server(text, operation: "check") }
        guard let pairs = reply.pairs else { throw InputOutputError(message: "the daemon's reply is malformed") }
        func field(_ name: String) -> RESPValue? { pairs.first { $0.key.string == name }?.value }
        let problems = field("problems")?.elements ?? []
        let left = field("left")?.elements ?? []
        for failure in field("failures")?.elements ?? [] {
            Output.standardError("larderctl: \(failure.string ?? "?")\n")
        }
        if context.options.json {
            context.output.json(JSONText(reply))
        } else {
            show(problems, left, field("notes")?.elements ?? [], repairs, context.output)
            if problems.isEmpty {
                let count = { (name: String) in field(name)?.int ?? 0 }
                context.output.line(
                    "no problems: \(counted(count("databases"), "database")), "
                        + "\(counted(count("entries"), "entry", "entries")) in the files, "
                        + "\(counted(count("operations"), "operation")) in the journal")
            }
        }
        if problems.isEmpty { return .done }
        if repairs, left.isEmpty { return .repaired }
        return left.allSatisfy { part($0, "kind") == "unseen" } ? .unseen : .damaged
    }

    private static func show(
        _ problems: [RESPValue], _ left: [RESPValue], _ notes: [RESPValue], _ repairs: Bool, _ output: Output
    ) {
        for problem in problems { output.oneLine(line(problem)) }
        for note in notes { output.oneLine(Array("note: \(note.string ?? "?")".utf8)) }
        guard repairs, !problems.isEmpty else { return }
        output.line(left.isEmpty ? "repaired: no problems left" : "after the repair:")
        for problem in left { output.oneLine(Array("  ".utf8) + line(problem)) }
    }

    private static func line(_ problem: RESPValue) -> [UInt8] {
        Array("\(part(problem, "place")): \(part(problem, "what")); \(part(problem, "remedy"))".utf8)
    }

    private static func part(_ problem: RESPValue, _ name: String) -> String {
        problem.pairs?.first { $0.key.string == name }?.value.string ?? "?"
    }
}
