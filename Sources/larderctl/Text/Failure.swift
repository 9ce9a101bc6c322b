import LarderClient

/// Why the program ends without having done what it was asked to: what it says, and its exit code.
struct Failure {
    /// The kind of the error, for programs.
    let code: String
    let message: String
    let exitCode: ExitCode
    /// The line of standard input that it is about.
    var line: Int?
    /// The verb whose help to read; an empty text stands for the help of the program.
    var help: String?

    init(_ error: any Error) {
        switch error {
        case let error as UsageError:
            (code, message, exitCode, help) = ("usage", error.message, .usage, error.verb ?? "")
        case let error as InputOutputError:
            (code, message, exitCode) = ("inputOutput", error.message, .inputOutput)
        case let error as DamagedBackup:
            (code, message, exitCode) = ("damaged", error.message, .damaged)
        case let error as CannotLook:
            (code, message, exitCode) = ("unseen", error.message, .unseen)
        case let error as LineFailure:
            (code, message, exitCode, line) = (error.code, error.message, error.exitCode, error.line)
        case let error as LarderClientError:
            (code, message, exitCode) = (error.code.description, Self.text(of: error), Self.exitCode(for: error))
        default:
            (code, message, exitCode) = ("server", "\(error)", .serverError)
        }
    }

    init(code: String, message: String, exitCode: ExitCode) {
        (self.code, self.message, self.exitCode) = (code, message, exitCode)
    }

    /// The words behind `larderctl` that show the help about it.
    private var helpCall: String? { help.map { $0.isEmpty ? "larderctl help" : "larderctl help \($0)" } }

    /// Says it on standard error: in words, or as a line of JSON.
    func tell(asJSON: Bool) {
        guard asJSON else {
            let help = helpCall.map { "\n(see: \($0))" } ?? ""
            return Output.standardError("larderctl: \(line.map { "line \($0): " } ?? "")\(message)\(help)\n")
        }
        var members: [(name: String, value: JSONText)] = [
            ("code", .text(code)), ("message", .text(message)), ("exit", .integer(Int64(exitCode.rawValue))),
        ]
        if let line { members.append(("line", .integer(Int64(line)))) }
        if let helpCall { members.append(("help", .text(helpCall))) }
        var bytes: [UInt8] = []
        JSONText.object([("error", .object(members))]).write(to: &bytes)
        // Its control characters are escaped.
        Output.writeToStandardError(bytes + [0x0A])
    }

    private static func exitCode(for error: LarderClientError) -> ExitCode {
        switch error.code {
        case .server: .serverError
        case .invalidArgument, .recursion: .usage
        case .locked: .noValue
        case .lockLost: .lockLost
        default: .noDaemon
        }
    }

    private static func withRemedy(_ text: String) -> String {
        if text.hasPrefix("NOAUTH") {
            return "NOAUTH the daemon asks for a password: --password-file PATH names its file, or the variable "
                + "\(Options.passwordVariable) has it; in the shell AUTH PASSWORD says it"
        }
        if text.hasPrefix("WRONGPASS") {
            return text + " (it is that of --password-file, or of the variable \(Options.passwordVariable))"
        }
        guard text.hasPrefix("NOPERM User ") else { return text }
        return text + " (larderd's options --allow-uid, --allow-gid and --rights say who may do what; "
            + "larderctl acl whoami says who you are)"
    }

    private static func text(of error: LarderClientError) -> String {
        switch error.code {
        case .server: withRemedy(error.serverText ?? error.message)
        case .noDaemon, .untrusted, .timeout, .io, .invalidArgument, .closed: error.message
        case .locked, .lockLost: [error.key, error.message].compactMap { $0 }.joined(separator: ": ")
        default: error.description
        }
    }
}
