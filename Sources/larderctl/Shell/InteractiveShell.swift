import LarderClient
import LarderCommandCatalog
import LarderPlatform
import LarderRESP

/// The shell on a terminal. Each line is a command.
final class InteractiveShell {
    private static let localWords = ["help", "exit", "quit"]
    /// The duration of a command is shown if it is at least this long, in milliseconds.
    private static let slowMilliseconds: Int64 = 500

    private var context: Context
    private let signals: ShellSignals
    /// The connection; nil until the daemon has accepted the password.
    private var session: ShellSession?
    /// Whether the daemon requires a password.
    private var wantsPassword = false
    private let typed: TypedReply
    private var history = ShellHistory()
    private var complainsOfHistory = true

    init(_ context: Context) throws {
        self.context = context
        var client: BlockingLarderClient?
        // If there is no daemon, throw. If the daemon requires a password, the user can enter it in the shell.
        do {
            client = try context.options.connect()
        } catch let error as LarderClientError where Self.asksForPassword(error) {
            wantsPassword = true
        }
        signals = try ShellSignals(client)
        typed = TypedReply(output: context.output) { [signals] in signals.isInterrupted }
        session = client.map { ShellSession($0) }
        // The first call only starts the collection of push messages.
        _ = client?.takePushes()
    }

    private static func asksForPassword(_ error: LarderClientError) -> Bool {
        guard error.code == .server, let text = error.serverText else { return false }
        return text.hasPrefix("NOAUTH") || text.hasPrefix("WRONGPASS")
    }

    func run() throws -> ExitCode {
        let editor = try LineEditor(signals) { [self] in
            var options = context.options
            options.socketPath = session?.client.socketPath
            options.database = session?.database
            return ShellCompletion(options: options, localWords: Self.localWords)
                .complete($0, width: Terminal.size.width)
        }
        for line in history.lines() { editor.remember(line) }
        let place = session?.client.socketPath ?? context.options.socketPath ?? LarderClient.defaultSocketPath
        context.output.line("larderctl \(Version.text), \(place). Type help for help, Tab to complete, Ctrl-D to quit.")
        if wantsPassword { context.output.line("The daemon needs a password: use AUTH PASSWORD.") }
        if isLarderEmpty { for line in Self.firstSteps { context.output.line(line) } }
        try context.output.flush()
        while true {
            switch editor.read(prompt: prompt) {
            case .interrupted: continue
            case .end:
                // The terminal may be closed, so write the line break directly, which ignores errors.
                Output.writeToTerminal("\n")
                return .done
            case .ended(let signal): SignalSet.endProgram(by: signal)
            case .line(let line):
                let words = InlineWords.words(of: line.utf8)
                if words?.isEmpty ?? false { continue }
                remember(line, words, editor)
                let continues = try take(words)
                try context.output.flush()
                if !continues { return .done }
            }
        }
    }

    /// Whether the larder is known to have no entries. Users without rights for DATABASES get no first steps.
    private var isLarderEmpty: Bool {
        guard let databases = try? session?.client.databases() else { return false }
        return databases.allSatisfy { $0.entries == 0 && $0.staleEntries == 0 }
    }

    /// What a new user can type in an empty larder.
    private static let firstSteps = [
        "This larder is empty. Three commands to begin with:",
        "  SET greeting hello EX 60    stores a value for a minute",
        "  GET greeting                returns it, or (nil) after the minute",
        "  TTL greeting                returns the seconds that are left",
    ]

    private var prompt: String {
        guard let session else { return "larder> " }
        return "larder:\(session.database)\(session.isInTransaction ? "(multi)" : "")> "
    }

    private func remember(_ line: String, _ words: [[UInt8]]?, _ editor: LineEditor) {
        if let words, CommandMetadata.hasSecret(words) { return }
        editor.remember(line)
        guard ShellHistory.keeps(line, words: words) else { return }
        do {
            try history.append(line)
        } catch {
            guard complainsOfHistory else { return }
            complainsOfHistory = false
            Output.standardError("larderctl: the history is not saved: \(Failure(error).message)\n")
        }
    }

    /// Handles a line.
    /// - Returns: false if the shell must quit.
    private func take(_ words: [[UInt8]]?) throws -> Bool {
        guard let words, let first = words.first else {
            complain("usage", "quotes do not match, or a space is missing after one")
            return true
        }
        switch String(decoding: first, as: UTF8.self).lowercased() {
        case "exit", "quit": return false
        case "help":
            help(Array(words.dropFirst()))
            return true
        default: break
        }
        // A line that starts with `#` is a comment.
        if first.first == UInt8(ascii: "#") { return true }
        if let reason = ShellSession.refusal(words) {
            complain("usage", "this command cannot be used here: \(reason)")
        } else if wantsPassword, CommandMetadata.row(of: words)?.name == "auth" {
            authenticate(words)
        } else if let session {
            try run(words, session)
        } else {
            complain("server", "NOAUTH the daemon needs a password: use AUTH PASSWORD")
        }
        return ShellSession.effect(words) != .closes
    }

    /// Connects with the password that the user has typed. Later connections of this shell use it too.
    private func authenticate(_ words: [[UInt8]]) {
        guard words.count == 2 || words.count == 3 && words[1] == Array("default".utf8),
            let password = String(validating: words[words.count - 1], as: UTF8.self), !password.isEmpty
        else { return complain("usage", "usage: AUTH PASSWORD") }
        var options = context.options
        options.password = password
        options.database = session?.database ?? options.database
        // While connecting, Ctrl-C terminates the program.
        signals.use(nil)
        defer { signals.use(session?.client) }
        do {
            let client = try options.connect()
            _ = client.takePushes()
            context = Context(options: options, output: context.output)
            (session, wantsPassword) = (ShellSession(client), false)
            context.show(.text("OK"), text: "OK")
        } catch {
            let failure = Failure(error)
            complain(failure.code, failure.message)
        }
    }

    private func run(_ words: [[UInt8]], _ session: ShellSession) throws {
        let begin = MonotonicClock.milliseconds()
        let wasInTransaction = session.isInTransaction
        let streams = ShellSession.effect(words) == .streams
        do {
            if streams { try stream(words, session) } else { try exchange(words, session) }
        } catch let error as LarderClientError {
            return show(error, signals.isInterrupted, streams, wasInTransaction, session)
        } catch is TypedReply.Stopped {
            context.output.line("…")
        }
        let milliseconds = MonotonicClock.milliseconds() - begin
        if !streams, milliseconds >= Self.slowMilliseconds, !context.options.json {
            context.output.line("(\(TimeText.seconds(milliseconds).dropLast())s)")
        }
    }

    private func exchange(_ words: [[UInt8]], _ session: ShellSession) throws {
        let replies = try session.run([words])
        for message in session.client.takePushes() {
            try context.show(JSONText(message)) { _ in try typed.writeMessage(message) }
        }
        for reply in replies { try show(reply, words) }
    }

    private func stream(_ words: [[UInt8]], _ session: ShellSession) throws {
        let output = context.output
        if !context.options.json { output.line("(runs until Ctrl-C)") }
        try output.flush()
        try session.stream(words) { reply in
            try show(reply, words)
            try output.flush()
        }
    }

    private func show(_ reply: RESPValue, _ words: [[UInt8]]) throws {
        try context.show(FieldText.json(reply, to: words)) { output in
            if context.options.isRaw { return PlainReply.write(reply, to: output) }
            try typed.write(reply, of: CommandMetadata.row(of: words))
        }
    }

    /// Prints why there is no reply, and whether a transaction was lost with the connection.
    private func show(
        _ error: LarderClientError, _ isInterrupted: Bool, _ streams: Bool, _ wasInTransaction: Bool,
        _ session: ShellSession
    ) {
        // End the line on which the terminal has shown ^C.
        if isInterrupted { Output.writeToTerminal("\n") }
        if isInterrupted, streams { return }
        // Discard what the user has typed while messages were shown, because it was not meant as a command.
        if streams, error.code != .invalidArgument, error.code != .server { tcflush(STDIN_FILENO, TCIFLUSH) }
        if Self.asksForPassword(error) { wantsPassword = true }
        if error.code == .invalidArgument || error.code == .server {
            return complain(error.code.description, Failure(error).message)
        }
        if !streams { session.forgetTransaction() }
        var text =
            isInterrupted
            ? "interrupted: the connection was closed; the command may or may not have been executed"
            : error.message
        if wasInTransaction, !streams { text += "; the transaction is lost" }
        if !streams { text += "; the next line reconnects, to database \(session.database)" }
        complain(error.code.description, text, isAnswered: false)
    }

    /// Prints an error of the shell itself.
    private func complain(_ code: String, _ message: String, isAnswered: Bool = true) {
        guard context.options.json else {
            return context.output.line("\(isAnswered ? "(error)" : "(no reply)") \(message)")
        }
        Failure(code: code, message: message, exitCode: isAnswered ? .usage : .noDaemon).show(asJSON: true)
    }

    private func help(_ words: [[UInt8]]) {
        let output = context.output
        guard let first = words.first else {
            output.line(
                """
                Each line is a command of the daemon. Quote arguments with spaces: "…" supports \\n, \\t, \\xHH, \\\\
                and \\".
                help COMMAND [SUBCOMMAND]  explains a command
                exit, quit, Ctrl-D         quit
                Tab                        completes commands, databases, keys and options, or shows the syntax
                Ctrl-C                     clears the line, or stops waiting, SUBSCRIBE and MONITOR
                Ctrl-R                     searches the history
                """)
            for line in CommandHelp.overview { output.line(line) }
            return
        }
        let row = CommandMetadata.row(of: words)
        guard let row, words.count == 1 || row.name.contains("|") else {
            return output.line(
                "no help on '\(words.map(printableKey).joined(separator: " "))'"
                    + Suggestion.text(
                        for: String(decoding: first, as: UTF8.self),
                        among: CommandMetadata.all.map { $0.name.uppercased() })
            )
        }
        output.line(CommandHelp.text(of: row, caller: "", helpCall: "help"))
    }
}
