// The options of the program, and the parser for them.

import LarderClient
import LarderPlatform
import LarderServices
import LarderVocabulary

typealias OptionSpec = OptionRow<Options>

extension OptionSpec {
    init(
        _ name: String, _ value: String?, _ summary: String, short: String? = nil, form: Form? = nil,
        take: @escaping Take = { _, _ in }
    ) { self.init(name, value, [summary], short: short, form: form, take: take) }
}

/// The options that every verb accepts, before or after the verb's name.
struct Options {
    var socketPath: String?
    var database: String?
    /// The databases of all `--database` options, for verbs that accept several.
    var databases: [String] = []
    /// The daemon's password from `--password-file`; nil if the option was not given.
    var password: String?
    /// Whether ``passwordVariable`` contains the daemon's password. False for imports from a Redis and exports to one:
    /// the variable then contains the password of the Redis.
    var readsPassword = true
    /// The users whose daemons are trusted, in addition to those that ``ClientOptions/trustedUsers`` describes.
    var trustedUsers: Set<UInt32> = []
    var json = false
    /// Whether keys and values are written to a terminal unchanged, without escaping control characters.
    var isRaw = false
    var timeoutMilliseconds = 5_000
    /// Whether `--timeout` was given.
    var hasTimeout = false
    var showsHelp = false
    var showsVersion = false

    /// The environment variable for a password, the same as for redis-cli.
    static let passwordVariable = "REDISCLI_AUTH"

    /// The daemon's password from the options, or else from the environment; nil if there is none.
    var daemonPassword: String? {
        if let password { return password }
        return readsPassword ? Self.passwordInEnvironment : nil
    }

    /// The password in ``passwordVariable``; nil if the variable is not set or empty, as for redis-cli.
    static var passwordInEnvironment: String? {
        getenv(passwordVariable).map { String(cString: $0) }.flatMap { $0.isEmpty ? nil : $0 }
    }

    /// All options that every verb accepts.
    static let specs =
        common
        + OptionSpec.telling(
            help: { options, _ in options.showsHelp = true }, version: { options, _ in options.showsVersion = true })

    private static let common: [OptionSpec] = [
        OptionSpec(
            "--socket", "PATH", "the daemon's socket (default: $LARDER_SOCKET, else your daemon's, else the machine's)"
        ) { $0.socketPath = try $1.checkedText() },
        OptionSpec("--database", "NAME", "the database to use (default: 0)") {
            let name = try $1.checkedText()
            $0.database = name
            $0.databases.append(name)
        },
        OptionSpec(
            "--password-file", "PATH",
            "a file with the daemon's password in its first line, as for larderd (default: $REDISCLI_AUTH)"
        ) { $0.password = try password($1) },
        OptionSpec(
            "--trust-user", "NAME",
            "also trust a daemon of this user (name or number), in addition to root, you and system users"
        ) { $0.trustedUsers.insert(try $1.user()) },
        OptionSpec("--json", nil, "print JSON, one line per reply; also errors, on standard error") { options, _ in
            options.json = true
        },
        OptionSpec(
            "--raw", nil, "print keys and values unchanged on a terminal (default: with control characters escaped)"
        ) { options, _ in options.isRaw = true },
        OptionSpec("--timeout", "MS", "how long to wait for the daemon (default: 5000; 0: no limit)") {
            let range = 0...Int64(ClientOptions.timeoutMillisecondsMax)
            $0.timeoutMilliseconds = Int(try $1.time(.milliseconds, range, besides: "0 for no limit, or "))
            $0.hasTimeout = true
        },
    ]

    /// The word that ends the options.
    static let end = Array("--".utf8)

    /// Parses the options before the verb. The returned `rest` starts with the verb.
    /// - Throws: ``UsageError``; ``InputOutputError`` for a file that cannot be read.
    static func parse(_ words: [[UInt8]]) throws -> (options: Options, rest: [[UInt8]]) {
        var options = Options()
        var rest = words[...]
        let table = OptionTable("larderctl", specs)
        while let option = try table.takeOption(&rest) { try option.row.take(&options, option.value) }
        return (options, Array(rest.first == end ? rest.dropFirst() : rest))
    }

    /// Reads a password from the first line of the file that an option names.
    static func password(_ option: OptionValue) throws -> String {
        let path = try option.checkedText()
        let line = try Input.file(path).prefix { $0 != 0x0A && $0 != 0x0D }
        guard !line.isEmpty, let text = String(validating: line, as: UTF8.self) else {
            throw UsageError(
                "\(option.option) \(path): the first line must be the password, but is empty or not UTF-8")
        }
        return text
    }
}

/// What a verb needs to run: the options and the output.
struct Context {
    let options: Options
    let output: Output

    init(options: Options, output: Output) {
        self.options = options
        self.output = output
        output.isRaw = options.isRaw
    }

    /// Writes a result: as JSON with `--json`, otherwise as a line of text.
    func show(_ json: @autoclosure () -> JSONText, text: @autoclosure () -> String) {
        show(json()) { $0.line(text()) }
    }

    /// Writes a result: as JSON with `--json`, otherwise as `writeText` does.
    func show(_ json: @autoclosure () -> JSONText, _ writeText: (Output) throws -> Void) rethrows {
        if options.json { output.json(json()) } else { try writeText(output) }
    }
}

extension Options {
    /// Connects to the daemon given by the options.
    /// - Parameter waitingMilliseconds: how much longer than the timeout to wait for replies.
    func connect(waitingMilliseconds: Int64 = 0) throws -> BlockingLarderClient {
        try BlockingLarderClient(
            socketPath: socketPath, database: database, password: daemonPassword,
            timeoutMilliseconds: timeout(plus: waitingMilliseconds), trustedUsers: trustedUsers)
    }

    /// Returns the timeout and some milliseconds. 0 means no limit.
    func timeout(plus milliseconds: Int64) -> Int {
        let limit = timeoutMilliseconds
        return limit == 0 ? 0 : min(limit + Int(milliseconds), ClientOptions.timeoutMillisecondsMax)
    }

    /// How long commands may have to wait for a checkpoint of the daemon (the move of its journal into the databases),
    /// in milliseconds.
    static let checkpointMilliseconds: Int64 = 55_000

    /// Connects for commands that may have to wait for a checkpoint of the daemon.
    func connectForTransfer() throws -> BlockingLarderClient {
        try connect(waitingMilliseconds: Self.checkpointMilliseconds)
    }
}
