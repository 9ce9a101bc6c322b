import LarderEngine

/// An option of larderd: its parser for the command line and the configuration file, its help, its names in CONFIG, and
/// whether it can change at run time.
package struct DaemonOption: Sendable {
    /// How the value is given.
    enum Form: Sendable {
        /// The option has no value.
        case flag
        /// `--name VALUE` or `--name=VALUE`.
        case value
        /// `--name=VALUE` only; `--name` without a value is another option.
        case attached
    }

    /// Throws ``OptionFailure`` only. Untyped, because closures would have to repeat the type.
    typealias Take = @Sendable (inout DaemonCommandLine, OptionValue) throws -> Void

    /// How a new value is applied at run time.
    struct Live: Sendable {
        /// Why the value cannot be applied now; nil if it can.
        let problem: @Sendable (ServerState, DaemonCommandLine) -> String?
        let set: @Sendable (ServerState, DaemonCommandLine) -> Void
        /// Whether clients can change it too, with CONFIG SET.
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
    /// The name of the value in the help; empty for a flag.
    package let valueName: String
    /// Lines of at most 100 characters.
    package let help: [String]
    /// The option's settings in CONFIG: under its own name, and under the names of equivalent Redis settings.
    let settings: [Setting]
    /// Nil if a new value takes effect only after a restart.
    let live: Live?
    let take: Take
    /// Whether it is repeatable; its texts are then joined with commas.
    private(set) var isRepeatable = false

    /// An option with a value.
    /// - Parameter settings: the settings that show it; see ``Setting/own(_:)``.
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

    /// The same option, but repeatable.
    func repeatable() -> DaemonOption {
        var option = self
        option.isRepeatable = true
        return option
    }

    /// Its name in the configuration file, and in CONFIG.
    package var key: String { String(name.dropFirst(2)) }

    /// CONFIG SET under the option's own name, with the rules of the command line.
    private static func change(_ key: String, _ live: Live?, _ take: @escaping Take) -> Setting.Change {
        guard let live else { return .onlyToItself }
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

    /// The form on the command line: `--memory BYTES`.
    package var usage: String {
        switch form {
        case .flag: name
        case .value: "\(name) \(valueName)"
        case .attached: "\(name)=\(valueName)"
        }
    }

    /// The form in the configuration file: `memory = BYTES`.
    package var fileUsage: String { form == .flag ? "\(key) = yes" : "\(key) = \(valueName)" }

    /// Whether the option is allowed in a configuration file. Options that select another action, such as `--purge` and
    /// `--check`, are not.
    package var isForFile: Bool { Self.serving.contains { $0.name == name } }

    /// Whether a new value in the configuration file takes effect without a restart.
    package var isLive: Bool { live != nil }

    /// Its names in CONFIG, and whether CONFIG SET can change it.
    package var settingNames: [(name: String, isChangeable: Bool)] { settings.map { ($0.name, $0.isChangeable) } }

    /// The options in the form in which `--help` prints them.
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

    /// The help of all options, one group after the other.
    package static var helpText: String {
        [configuring, serving, purging, checking, telling].map { helpLines($0).joined(separator: "\n") }
            .joined(separator: "\n\n")
    }
}
