import LarderClient
import LarderPlatform

extension Verb {
    static let check = Verb(
        "check", "[DIRECTORY]", "check all files of a larder and report problems",
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
        options: [OptionSpec("--repair", nil, "repair what can be repaired, and check again")],
        argumentCount: 0...1
    ) { arguments, context in
        let repairs = arguments["--repair"] != nil
        guard let word = arguments.words.first else {
            do {
                return try ask(try context.options.connect(), repairs, context)
            } catch let error as LarderClientError where error.code == .noDaemon {
                // With an explicit socket, only the daemon at that socket is meant.
                if context.options.socketPath != nil { throw error }
                Output.standardError("larderctl: \(error.message); checking the files\n")
                return try lookAtFiles(nil, repairs, context)
            }
        }
        guard let text = String(validating: word, as: UTF8.self), !text.isEmpty,
            let directory = FileSystem.canonical(text), FileSystem.isDirectory(directory)
        else { throw UsageError("directory not found: \(printableKey(word))") }
        guard let (pid, socket) = try holder(of: directory) else { return try lookAtFiles(directory, repairs, context) }
        guard let socket else {
            throw Failure.unseen("process \(pid) has the larder open, but is not a daemon: stop it, and check again")
        }
        var options = context.options
        options.socketPath = socket
        let client = try options.connect()
        guard InfoText(try client.serverInfo(section: "larder")).text("directory") == directory else {
            throw Failure.unseen(
                "process \(pid) has the larder \(directory) open, but another daemon listens at \(socket)")
        }
        return try ask(client, repairs, context)
    }

    private static func lookAtFiles(_ directory: String?, _ repairs: Bool, _ context: Context) throws -> ExitCode {
        guard let program = daemonProgram else {
            throw Failure.unseen(
                "larderd is neither next to larderctl nor in PATH; it is needed to check a larder without a daemon")
        }
        var words = [context.options.database.map { "--check=\($0)" } ?? "--check"]
        if repairs { words.append("--repair") }
        if let directory { words += ["--dir", directory] }
        if context.options.json { words += ["--log-format", "json"] }
        throw become(program, words)
    }

    // MARK: The running daemon

    private static func ask(_ client: BlockingLarderClient, _ repairs: Bool, _ context: Context) throws -> ExitCode {
        var words = ["CHECK"]
        if let database = context.options.database { words += ["DATABASE", database] }
        if repairs { words.append("REPAIR") }
        let reply = try LongCall.run(client, words, field: "check", context)
        if let text = reply.errorMessage, text.hasPrefix("UNCHECKED ") { throw Failure.unseen(text) }
        guard try reply.checked("check").pairs != nil else {
            throw InputOutputError(message: "the daemon's reply is malformed")
        }
        let problems = reply.field("problems")?.elements ?? []
        let left = reply.field("left")?.elements ?? []
        for failure in reply.field("failures")?.elements ?? [] {
            Output.standardError("larderctl: \(failure.string ?? "?")\n")
        }
        context.show(JSONText(reply)) { output in
            show(problems, left, reply.field("notes")?.elements ?? [], repairs, output)
            if problems.isEmpty {
                let count = { (name: String) in reply.field(name)?.int ?? 0 }
                output.line(
                    "no problems: \(counted(count("databases"), "database")), "
                        + "\(counted(count("entries"), "entry", "entries")) in the files, "
                        + "\(counted(count("operations"), "operation")) in the journal")
            }
        }
        if problems.isEmpty { return .done }
        if repairs, left.isEmpty { return .repaired }
        return left.allSatisfy { $0.field("kind")?.string == "unseen" } ? .unseen : .damaged
    }

    private static func show(
        _ problems: [RESPValue], _ left: [RESPValue], _ notes: [RESPValue], _ repairs: Bool, _ output: Output
    ) {
        for problem in problems { output.oneLine(line(problem)) }
        for note in notes { output.oneLine("note: \(note.string ?? "?")") }
        guard repairs, !problems.isEmpty else { return }
        output.line(left.isEmpty ? "repaired: no problems left" : "after the repair:")
        for problem in left { output.oneLine("  " + line(problem)) }
    }

    private static func line(_ problem: RESPValue) -> String {
        func part(_ name: String) -> String { problem.field(name)?.string ?? "?" }
        return "\(part("place")): \(part("what")); \(part("remedy"))"
    }

    // MARK: Other processes

    /// Returns the process that has a larder open, as recorded in the larder's file LOCK, and the socket of the daemon;
    /// no socket if the process is not a daemon. Changes nothing.
    /// - Throws: ``Failure`` if the file cannot be read.
    private static func holder(of directory: String) throws -> (pid: String, socket: String?)? {
        let path = directory + "/LOCK"
        let file = FileSystem.openFile(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard file >= 0 else {
            if errno == ENOENT { return nil }
            throw Failure.unseen("\(path) could not be opened: \(SystemErrorText.of(errno))")
        }
        defer { close(file) }
        if flock(file, LOCK_SH | LOCK_NB) == 0 {
            flock(file, LOCK_UN)
            return nil
        }
        let bytes = (try? FileSystem.read(descriptor: file, path: path, bytesMax: 4096)) ?? []
        var (pid, socket): (String, String?) = ("unknown", nil)
        for line in String(decoding: bytes, as: UTF8.self).split(separator: "\n") {
            if line.hasPrefix("pid ") { pid = String(line.dropFirst(4)) }
            if line.hasPrefix("socket ") { socket = String(line.dropFirst(7)) }
        }
        return (pid, socket)
    }

    /// The path of larderd, next to this program or else in `PATH`; nil if it is not found.
    private static var daemonProgram: String? {
        var places = [FileSystem.parent(Program.path)]
        if let path = getenv("PATH") {
            // Ignore empty and relative elements, which would refer to the current directory.
            places += String(cString: path).split(separator: ":").map(String.init).filter { $0.hasPrefix("/") }
        }
        return places.map { $0 + "/larderd" }.first { access($0, X_OK) == 0 && !FileSystem.isDirectory($0) }
    }

    /// Replaces this process with `program` by execv(3).
    /// - Returns: the error. If execv succeeds, this function does not return.
    private static func become(_ program: String, _ words: [String]) -> InputOutputError {
        var arguments: [UnsafeMutablePointer<CChar>?] = ([program] + words).map { strdup($0) } + [nil]
        execv(program, &arguments)
        let number = errno
        for argument in arguments { free(argument) }
        return InputOutputError("\(program) could not be run", number: number)
    }
}
