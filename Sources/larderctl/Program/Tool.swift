// Runs a command line, and determines the exit code.

import LarderClient
import LarderCommandCatalog
import LarderPlatform

/// The program larderctl, the command line for a running larderd. `larderctl help` lists its verbs.
@main enum Tool {
    static func main() {
        guard StandardDescriptors.fill() else { exit(ExitCode.inputOutput.rawValue) }
        if let complaint = Program.commandLineComplaint {
            Output.standardError("larderctl: \(complaint)\n")
            exit(ExitCode.usage.rawValue)
        }
        exit(run(words).rawValue)
    }

    /// The words of the command line after the program's name, as bytes: `CommandLine.arguments` would change keys and
    /// values that are not UTF-8.
    private static var words: [[UInt8]] {
        (0..<Int(CommandLine.argc)).dropFirst().compactMap { index in
            CommandLine.unsafeArgv[index].map { text in
                Array(UnsafeRawBufferPointer(start: text, count: strlen(text)))
            }
        }
    }

    /// Runs one command line. Writes errors to standard error.
    private static func run(_ words: [[UInt8]]) -> ExitCode {
        // If the command line cannot be parsed, the word `--json` in it decides whether errors are written as JSON.
        var asJSON = words.prefix { $0 != Array("--".utf8) }.contains(Array("--json".utf8))
        do {
            let output = Output()
            let code = try perform(words, output, &asJSON)
            try output.flush()
            return code
        } catch {
            let failure = Failure(error)
            failure.show(asJSON: asJSON)
            return failure.exitCode
        }
    }

    private static func perform(_ words: [[UInt8]], _ output: Output, _ asJSON: inout Bool) throws -> ExitCode {
        let (options, rest) = try Options.parse(words)
        if options.showsVersion {
            output.line("larderctl \(Version.text)")
            return .done
        }
        guard let first = rest.first else {
            if options.showsHelp {
                output.line(Help.overview)
                return .done
            }
            guard isatty(STDIN_FILENO) == 1, isatty(STDOUT_FILENO) == 1 else {
                throw UsageError("missing verb; for commands on standard input: larderctl shell\n" + Help.usage)
            }
            return try startShell(options, output)
        }
        let name = String(decoding: first, as: UTF8.self)
        let arguments = Array(rest.dropFirst())
        if options.showsHelp { return try Help.show([first], output) }
        if name == "help" { return try Help.show(arguments, output) }
        if let verb = Verb.named(name) { return try perform(verb, arguments, options, output, &asJSON) }
        if let option = optionsOfRedisCLI[name] { throw UsageError("unknown option \(name) (of redis-cli): \(option)") }
        guard let command = CommandMetadata.named(name) else {
            throw UsageError("'\(printableKey(first))' is neither a verb nor a command" + Verb.suggestion(for: name))
        }
        // Few keys have this name, and INCR or GETDEL would change its entry.
        if arguments.last == Array("--help".utf8), arguments.count <= (command.subcommands.isEmpty ? 1 : 2) {
            return try Help.show([first] + arguments.dropLast(), output)
        }
        // The words after the command are its arguments, so only a `--json` before the command counts.
        asJSON = options.json
        return try send(command, [first] + arguments, Context(options: options, output: output))
    }

    /// What to use instead of the options of redis-cli, for error messages.
    private static let optionsOfRedisCLI = [
        "-s": "--socket PATH", "-n": "--database NAME", "-a": "--password-file PATH, or the variable REDISCLI_AUTH",
        "-h": "the daemon has no port: --socket PATH", "-p": "the daemon has no port: --socket PATH",
        "-x": "larderctl set KEY - takes the value from standard input",
    ]

    /// Starts the shell. If no daemon is running, the error mentions `larderctl help`, because users who do not know
    /// the program call it without a verb.
    private static func startShell(_ options: Options, _ output: Output) throws -> ExitCode {
        do {
            return try Verb.shell.run(VerbArguments(), Context(options: options, output: output))
        } catch let error as LarderClientError where error.code == .noDaemon {
            throw LarderClientError(
                .noDaemon, "\(error.message)\n(for help: larderctl help)", operation: error.operation,
                socketPath: error.socketPath)
        }
    }

    private static func perform(
        _ verb: Verb, _ words: [[UInt8]], _ options: Options, _ output: Output, _ asJSON: inout Bool
    ) throws -> ExitCode {
        do {
            let (arguments, options) = try verb.parse(words, options)
            asJSON = options.json
            if options.showsHelp { return try Help.show([Array(verb.name.utf8)], output) }
            return try verb.run(arguments, Context(options: options, output: output))
        } catch let error as UsageError {
            var failure = Failure(error)
            failure.help = verb.name
            throw failure
        }
    }

    /// Sends a command to the daemon unchanged, and writes the reply.
    private static func send(_ command: CommandMetadata, _ words: [[UInt8]], _ context: Context) throws -> ExitCode {
        if let reason = refusal(command, words) {
            throw UsageError("\(command.name.uppercased()) cannot be sent from here: \(reason)")
        }
        let replies = try ShellSession(try context.options.connect()).run([words])
        guard let reply = try replies.first?.checked(command.name) else { return .done }
        context.show(FieldText.json(reply, to: words)) { PlainReply.write(reply, to: $0) }
        return reply.isNull ? .notFound : .done
    }

    /// Returns why a command makes no sense in a program that sends one command and exits; nil for other commands.
    private static func refusal(_ command: CommandMetadata, _ words: [[UInt8]]) -> String? {
        let ends = "each call of larderctl uses a new connection"
        let isLive = ShellSession.isLive(words)
        switch isLive ? ConnectionEffect.streams : (CommandMetadata.row(of: words) ?? command).effect {
        case .none, .names, .introduces, .closes, .endsDaemon: return nil
        case .silences: return ends
        case .beginsTransaction, .endsTransaction, .changesState, .resets: return "\(ends); use larderctl shell"
        case .selectsDatabase: return "\(ends); use --database NAME"
        case .streams:
            return Verb.named(command.name).map { "use larderctl \($0.name)" }
                ?? "larderctl would exit before its later output; use larderctl shell"
        }
    }
}
