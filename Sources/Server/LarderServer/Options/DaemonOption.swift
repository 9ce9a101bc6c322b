import LarderEngine

/// An option of larderd. It has a parser for its value on the command line and in the configuration file, a help text,
/// and names for CONFIG. Some options can change while the daemon runs.
package struct DaemonOption: Sendable {
    /// How the option's value is written on the command line.
    enum Form: Sendable {
        /// There is no value.
        case flag
        /// The value is written as `--name VALUE` or `--name=VALUE`.
        case value
        /// The value is written as `--name=VALUE` only; `--name` without a value is a different option.
        case attached
    }

    /// Parses and stores a value. Throws only ``OptionFailure``. The type of the error is not declared, because each
    /// closure would have to repeat it.
    typealias Take = @Sendable (inout DaemonCommandLine, OptionValue) throws -> Void

    /// How a new value is applied while the daemon runs.
    struct Live: Sendable {
        /// Returns why the value cannot be applied at present; nil if it can.
        let problem: @Sendable (ServerState, DaemonCommandLine) -> String?
        let set: @Sendable (ServerState, DaemonCommandLine) -> Void
        /// Whether clients can also change the value, with CONFIG SET.
        let isForClients: Bool

        init(
            isForClients: Bool = true,
            problem: @escaping @Sendable (ServerState, DaemonCommandLine) -> String? = { _, _ in nil },
            set: @escaping @Sendable (ServerState, DaemonCommandLine) -> Void
        ) {
            self.problem = problem
            self.set = set
            self.isForClients = isForClients
        }
    }

    package let name: String
    let form: Form
    /// The placeholder for the value in the help, such as `BYTES`; empty for a flag.
    package let valueName: String
    /// The help text, in lines of at most 100 characters.
    package let help: [String]
    /// The option's settings in CONFIG: one under the option's own name, others under the names of similar Redis
    /// settings.
    let settings: [Setting]
    /// How a new value is applied while the daemon runs; nil if it takes effect only after a restart.
    let live: Live?
    let take: Take
    /// Whether the option can be given several times. Its texts are then joined with commas.
    private(set) var isRepeatable = false

    /// Creates an option with a value.
    /// - Parameter settings: the settings of CONFIG that show the option; see ``Setting/own(_:)``.
    init(
        _ name: String, _ valueName: String, _ help: [String], settings: [Setting] = [],
        live: Live? = nil, take: @escaping Take
    ) {
        self.init(name, .value, valueName, help, settings, live, take)
    }

    init(
        flag name: String, _ help: [String], settings: [Setting] = [],
        take: @escaping @Sendable (inout DaemonCommandLine) throws -> Void
    ) {
        self.init(name, .flag, "", help, settings, nil) { line, _ in try take(&line) }
    }

    init(attached name: String, _ valueName: String, _ help: [String], take: @escaping Take) {
        self.init(name, .attached, valueName, help, [], nil, take)
    }

    private init(
        _ name: String, _ form: Form, _ valueName: String, _ help: [String], _ settings: [Setting],
        _ live: Live?, _ take: @escaping Take
    ) {
        self.name = name
        self.form = form
        self.valueName = valueName
        self.help = help
        self.live = live
        self.take = take
        let key = String(name.dropFirst(2))
        self.settings = settings.map { $0.isOwn ? Setting(key, Self.change(key, live, take), $0.get) : $0 }
    }

    /// Returns a copy of this option that can be given several times.
    func repeatable() -> DaemonOption {
        var option = self
        option.isRepeatable = true
        return option
    }

    /// The option's name in the configuration file and in CONFIG: without the dashes.
    package var key: String { String(name.dropFirst(2)) }

    /// Returns the effect of CONFIG SET on the setting with the option's own name. Values are parsed as on the command
    /// line.
    private static func change(_ key: String, _ live: Live?, _ take: @escaping Take) -> Setting.Change {
        guard let live else { return .currentValueOnly }
        guard live.isForClients else { return .protected }
        return .checked { server, text in
            var line = DaemonCommandLine()
            do {
                try take(&line, OptionValue(option: key, text: text))
            } catch {
                return .failure(Setting.Problem(text: "\(error)"))
            }
            if let problem = live.problem(server, line) { return .failure(Setting.Problem(text: problem)) }
            return .success { [line] in live.set($0, line) }
        }
    }

    /// The option as written on the command line: `--memory BYTES`.
    package var usage: String {
        switch form {
        case .flag: name
        case .value: "\(name) \(valueName)"
        case .attached: "\(name)=\(valueName)"
        }
    }

    /// The option as written in the configuration file: `memory = BYTES`.
    package var fileUsage: String { form == .flag ? "\(key) = yes" : "\(key) = \(valueName)" }

    /// Whether the option is allowed in a configuration file. Options for actions other than serving, such as `--purge`
    /// and `--check`, are not allowed there.
    package var isForFile: Bool { Self.serving.contains { $0.name == name } }

    /// Whether a new value in the configuration file takes effect without a restart.
    package var isLive: Bool { live != nil }

    /// The option's names in CONFIG, and whether CONFIG SET can change each of them.
    package var settingNames: [(name: String, isChangeable: Bool)] { settings.map { ($0.name, $0.isChangeable) } }

    /// Returns the lines that `--help` prints for some options.
    package static func helpLines(_ options: [DaemonOption]) -> [String] {
        let column = 19
        return options.flatMap { option in
            let usage = option.usage
            let indent = "  " + String(repeating: " ", count: column)
            guard usage.count < column else { return ["  " + usage] + option.help.map { indent + $0 } }
            let first = "  " + usage + String(repeating: " ", count: column - usage.count) + option.help[0]
            return [first] + option.help.dropFirst().map { indent + $0 }
        }
    }

    /// The help text of all options. An empty line separates the groups of options.
    package static var helpText: String {
        [configuring, serving, purging, checking, telling].map { helpLines($0).joined(separator: "\n") }
            .joined(separator: "\n\n")
    }
}
