import LarderEngine
import LarderServices

/// An option of larderd: its row in the table, and its names in CONFIG. Some options can change while the daemon runs.
@dynamicMemberLookup
package struct DaemonOption: Sendable {
    package typealias Row = OptionRow<DaemonCommandLine>

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

    package let row: Row
    /// The option's settings in CONFIG: one under the option's own name, others under the names of similar Redis
    /// settings.
    let settings: [Setting]
    /// How a new value is applied while the daemon runs; nil if it takes effect only after a restart.
    let live: Live?
    /// Whether the option can be given several times. Its texts are then joined with commas.
    let isRepeatable: Bool

    /// - Parameter settings: the settings of CONFIG that show the option; see ``Setting/own(_:)``.
    init(_ row: Row, settings: [Setting] = [], live: Live? = nil, isRepeatable: Bool = false) {
        (self.row, self.live, self.isRepeatable) = (row, live, isRepeatable)
        self.settings = settings.map { $0.isOwn ? Setting(row.key, Self.change(row, live), $0.get) : $0 }
    }

    init(
        _ name: String, _ value: String, _ help: [String], form: Row.Form = .value, settings: [Setting] = [],
        live: Live? = nil, isRepeatable: Bool = false, take: @escaping Row.Take
    ) {
        let row = Row(name, value, help, form: form, take: take)
        self.init(row, settings: settings, live: live, isRepeatable: isRepeatable)
    }

    init(
        flag name: String, _ help: [String], settings: [Setting] = [],
        take: @escaping @Sendable (inout DaemonCommandLine) throws -> Void
    ) {
        self.init(Row(name, nil, help) { line, _ in try take(&line) }, settings: settings)
    }

    package subscript<Value>(dynamicMember path: KeyPath<Row, Value>) -> Value { row[keyPath: path] }

    /// Returns the effect of CONFIG SET on the setting with the option's own name. Values are parsed as on the command
    /// line.
    private static func change(_ row: Row, _ live: Live?) -> Setting.Change {
        guard let live else { return .currentValueOnly }
        guard live.isForClients else { return .protected }
        return .checked { server, text in
            var line = DaemonCommandLine()
            do throws(UsageError) {
                try row.apply(OptionValue(option: row.key, text: text), to: &line)
            } catch {
                return .failure(error)
            }
            if let problem = live.problem(server, line) { return .failure(UsageError(problem)) }
            return .success { [line] in live.set($0, line) }
        }
    }

    /// Whether the option is allowed in a configuration file. Options for actions other than serving, such as `--purge`
    /// and `--check`, are not allowed there.
    package var isForFile: Bool { Self.serving.contains { $0.name == row.name } }

    /// Whether a new value in the configuration file takes effect without a restart.
    package var isLive: Bool { live != nil }

    /// The option's names in CONFIG, and whether CONFIG SET can change each of them.
    package var settingNames: [(name: String, isChangeable: Bool)] { settings.map { ($0.name, $0.isChangeable) } }
}

/// Texts that `--help` and the manual page show in addition to the options.
package enum DaemonHelp {
    package static let summary =
        "serves a larder, a cache that this machine's processes share, over a Unix-domain socket"

    package static let synopsis = [
        "larderd [options]", "larderd --purge[=NAME] | --purge-expired [--dir PATH]",
        "larderd --check[=NAME] [--repair] [--dir PATH]",
    ]

    package static let values = [
        "BYTES: a number, optionally with K, M, G or T, powers of 1024: 64M, 64mb and 64MiB are the same.",
        "TIME: a number, optionally with us, ms, s, m, h or d: 250ms, 90s and 5m.",
    ]

    package static let signals = [
        "SIGTERM, SIGINT and SIGHUP stop the daemon: it completes the received requests, commits and syncs.",
        "With --config, SIGHUP reloads the file instead; options that need a restart are logged.",
        "During shutdown, further SIGTERM and SIGHUP are ignored; a second SIGINT exits immediately, which is as safe as",
        "kill -9. Without --config, SIGHUP is ignored if it was ignored when the daemon was started, as with nohup.",
        "SIGUSR1 and SIGUSR2 are ignored.",
    ]

    package static let exitCodes: [(code: Int, meaning: String)] = [
        (0, "success"),
        (1, "error of the larder, the socket's directory or the disk"),
        (2, "wrong usage, an error in the configuration file, or a check of a directory that is not a larder"),
        (3, "the larder or the socket is in use by another process"),
        (4, "the database does not exist"),
        (8, "--check: problems found"),
        (9, "--check --repair: problems found and repaired"),
        (10, "--check: not everything could be checked"),
    ]
}
