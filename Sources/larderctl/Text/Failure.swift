import LarderClient
import LarderCommandCatalog

/// The failure of the program: a message, a code and the exit code.
struct Failure: Error {
    /// The kind of the error, for programs.
    let code: String
    let message: String
    let exitCode: ExitCode
    /// The number of the line of standard input that has failed; nil if it was not a line.
    var line: Int?
    /// The verb whose help the message suggests; an empty text for the program's help; nil for none.
    var help: String?

    init(_ error: any Error) {
        switch error {
        case let error as UsageError:
            (code, message, exitCode, help) = ("usage", error.message, .usage, "")
        case let error as InputOutputError:
            (code, message, exitCode) = ("inputOutput", error.message, .inputOutput)
        case let error as Failure: self = error
        case let error as LarderClientError:
            (code, message, exitCode) = (error.code.description, Self.text(of: error), Self.exitCode(for: error))
        default:
            (code, message, exitCode) = ("server", "\(error)", .serverError)
        }
    }

    init(code: String, message: String, exitCode: ExitCode, line: Int? = nil) {
        (self.code, self.message, self.exitCode, self.line) = (code, message, exitCode, line)
    }

    /// Returns the failure if the files of a larder cannot be checked.
    static func unseen(_ message: String) -> Failure { Failure(code: "unseen", message: message, exitCode: .unseen) }

    /// The command that shows the suggested help.
    private var helpCall: String? { help.map { $0.isEmpty ? "larderctl help" : "larderctl help \($0)" } }

    /// Prints the failure to standard error, as text or as a line of JSON. With the exit code `done` it is a warning.
    func show(asJSON: Bool) {
        guard asJSON else {
            let help = helpCall.map { "\n(see: \($0))" } ?? ""
            return Output.standardError("larderctl: \(line.map { "line \($0): " } ?? "")\(message)\(help)\n")
        }
        let members = JSONText.present([
            "code": code, "message": message, "exit": Int(exitCode.rawValue), "line": line, "help": helpCall,
        ])
        var bytes: [UInt8] = []
        JSONText.object([(exitCode == .done ? "warning" : "error", members)]).write(to: &bytes)
        // Control characters are already escaped in JSON.
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
            return "NOAUTH password required: use --password-file PATH, or set the variable "
                + "\(Options.passwordVariable); in the shell: AUTH PASSWORD"
        }
        if text.hasPrefix("WRONGPASS") {
            return text + " (from --password-file, or the variable \(Options.passwordVariable))"
        }
        guard text.hasPrefix("NOPERM User ") else { return text }
        return text + " (rights are set by larderd's options --allow-uid, --allow-gid and --rights; "
            + "larderctl acl whoami shows your user)"
    }

    private static func isUnknownDatabase(_ error: LarderClientError) -> Bool {
        error.operation == CommandMetadata.select.name.uppercased() && error.serverText?.hasPrefix("ERR ") == true
    }

    private static func text(of error: LarderClientError) -> String {
        switch error.code {
        // The message lists the valid names of databases.
        case .server where isUnknownDatabase(error): error.message
        case .server: withRemedy(error.serverText ?? error.message)
        case .noDaemon, .untrusted, .timeout, .io, .invalidArgument, .closed: error.message
        case .locked, .lockLost: [error.key, error.message].compactMap { $0 }.joined(separator: ": ")
        default: error.description
        }
    }
}
