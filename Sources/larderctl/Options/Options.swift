// The options of the program, and the parser for them.

import LarderClient
import LarderPlatform
import LarderVocabulary

/// The definition of an option: `--name` or `--name VALUE`.
struct OptionSpec: Sendable {
    let name: String
    /// Another name, such as `-0`; nil for none.
    var short: String?
    /// The name of the value in the help; nil for an option without a value.
    let value: String?
    let summary: String
    /// Whether the value may be omitted. If so, a value can only be given as `--name=VALUE`.
    var isValueOptional = false
    /// Stores the value in ``Options``; nil for an option of a single verb, which reads it from ``VerbArguments``.
    var take: (@Sendable (inout Options, ParsedOption) throws -> Void)?

    init(
        _ name: String, _ value: String?, _ summary: String, short: String? = nil, isValueOptional: Bool = false,
        take: (@Sendable (inout Options, ParsedOption) throws -> Void)? = nil
    ) {
        (self.name, self.short, self.value, self.summary) = (name, short, value, summary)
        (self.isValueOptional, self.take) = (isValueOptional, take)
    }

    /// Whether the word after the option is its value.
    var takesNextWord: Bool { value != nil && !isValueOptional }

    /// The option with its other name and its value, as shown in the help.
    var usage: String {
        let names = (short.map { $0 + ", " } ?? "") + name
        return names + (value.map { isValueOptional ? "[=\($0)]" : " \($0)" } ?? "")
    }
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
        guard readsPassword, let value = getenv(Self.passwordVariable) else { return nil }
        let text = String(cString: value)
        return text.isEmpty ? nil : text
    }

    /// All options that every verb accepts.
    static let specs: [OptionSpec] = [
        OptionSpec(
            "--socket", "PATH", "the daemon's socket (default: $LARDER_SOCKET, else your daemon's, else the machine's)"
        ) { $0.socketPath = try $1.text() },
        OptionSpec("--database", "NAME", "the database to use (default: 0)") {
            let name = try $1.text()
            $0.database = name
            $0.databases.append(name)
        },
        OptionSpec(
            "--password-file", "PATH",
            "a file with the daemon's password in its first line, as for larderd (default: $REDISCLI_AUTH)"
        ) { $0.password = try password(try $1.text()) },
        OptionSpec(
            "--trust-user", "NAME",
            "also trust a daemon of this user (name or number), in addition to root, you and system users"
        ) { $0.trustedUsers.insert(try user(try $1.text())) },
        OptionSpec("--json", nil, "print JSON, one line per reply; also errors, on standard error") { options, _ in
            options.json = true
        },
        OptionSpec(
            "--raw", nil, "print keys and values unchanged on a terminal (default: with control characters escaped)"
        ) { options, _ in options.isRaw = true },
        OptionSpec("--timeout", "MS", "how long to wait for the daemon (default: 5000; 0: no limit)") {
            $0.timeoutMilliseconds = try milliseconds($1)
            $0.hasTimeout = true
        },
        help,
        version,
    ]

    static let version = OptionSpec("--version", nil, "print the version; also -V") { options, _ in
        options.showsVersion = true
    }

    static let help = OptionSpec("--help", nil, "print this help") { options, _ in options.showsHelp = true }

    /// Parses the options before the verb. The returned `rest` starts with the verb.
    /// - Throws: ``UsageError``; ``InputOutputError`` for a file that cannot be read.
    static func parse(_ words: [[UInt8]]) throws -> (options: Options, rest: [[UInt8]]) {
        var options = Options()
        var index = 0
        while index < words.count {
            guard let option = try ParsedOption(words, at: index, specs: specs, verb: nil) else { break }
            index += option.wordCount
            if option.spec == nil { break }
            try options.apply(option)
        }
        return (options, Array(words.dropFirst(index)))
    }

    /// Stores the value of an option in ``specs``. Throws the same errors as ``parse(_:)``.
    mutating func apply(_ option: ParsedOption) throws { try option.spec?.take?(&self, option) }

    private static func milliseconds(_ option: ParsedOption) throws -> Int {
        let text = (try? option.text()) ?? ""
        guard let number = TimeSpan.parse(text, unit: .milliseconds),
            (0...Int64(ClientOptions.timeoutMillisecondsMax)).contains(number)
        else {
            throw UsageError(
                "--timeout must be \(TimeSpan.rule(.milliseconds)), from 1 to \(ClientOptions.timeoutMillisecondsMax), or 0 for no "
                    + "limit, not '\(printableKey(text.utf8))'")
        }
        return Int(number)
    }

    /// Returns the user ID for a name or a number.
    private static func user(_ name: String) throws -> UInt32 {
        guard let number = UInt32(name) ?? User.number(of: name) else {
            throw UsageError("--trust-user \(name): there is no such user")
        }
        return number
    }

    /// Reads a password from the first line of a file.
    static func password(_ path: String) throws -> String {
        let line = try Input.file(path).prefix { $0 != 0x0A && $0 != 0x0D }
        guard !line.isEmpty, let text = String(validating: line, as: UTF8.self) else {
            throw UsageError("--password-file \(path): the first line must be the password, but is empty or not UTF-8")
        }
        return text
    }
}

/// One option on the command line: `--name`, `--name VALUE` or `--name=VALUE`.
struct ParsedOption {
    let name: String
    /// The definition of the option; nil for `--`, which ends the options.
    let spec: OptionSpec?
    let value: [UInt8]?
    /// The number of words that the option takes: 1, or 2 with a separate value.
    let wordCount: Int

    /// Parses the option at `index`. Returns nil if the word there is not an option: `-` and `-5` are ordinary words.
    /// `--`, which ends the options, is returned as an option with this name.
    init?(_ words: [[UInt8]], at index: Int, specs: [OptionSpec], verb: String?) throws(UsageError) {
        let word = words[index]
        let short: OptionSpec? =
            switch String(decoding: word, as: UTF8.self) {
            case "-h": Options.help
            // After a verb, `-V` may be a key or a value.
            case "-V" where verb == nil: Options.version
            case let text: specs.first { $0.short == text }
            }
        if let short {
            (name, spec, value, wordCount) = (short.name, short, nil, 1)
            return
        }
        guard word.starts(with: "--".utf8) else { return nil }
        if word.count == 2 {
            (name, spec, value, wordCount) = ("--", nil, nil, 1)
            return
        }
        let equals = word.firstIndex(of: UInt8(ascii: "="))
        let name = String(decoding: word[..<(equals ?? word.endIndex)], as: UTF8.self)
        guard let spec = specs.first(where: { $0.name == name }) else {
            let near = Suggestion.text(for: name, among: specs.map(\.name))
            let escape = verb == nil ? "" : " (if it is a key or a value, put -- before it)"
            throw UsageError("unknown option \(printableKey(name.utf8))\(near)\(escape)")
        }
        (self.name, self.spec) = (name, spec)
        if spec.value == nil, equals != nil { throw UsageError("\(name) takes no value") }
        if spec.takesNextWord, equals == nil {
            guard index + 1 < words.count else {
                throw UsageError("\(name) needs a value: \(name) \(spec.value ?? "VALUE")")
            }
            (value, wordCount) = (words[index + 1], 2)
        } else {
            (value, wordCount) = (equals.map { Array(word[($0 + 1)...]) }, 1)
        }
    }

    /// Returns the value as text. Throws if it is missing, empty or not UTF-8.
    func text() throws(UsageError) -> String {
        guard let value, !value.isEmpty, let text = String(validating: value, as: UTF8.self) else {
            throw UsageError("\(name) needs a value that is text and not empty")
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
        // A timeout of 0 means no limit.
        let limit = timeoutMilliseconds
        let patience = limit == 0 ? 0 : min(limit + Int(waitingMilliseconds), ClientOptions.timeoutMillisecondsMax)
        return try BlockingLarderClient(
            socketPath: socketPath, database: database, password: daemonPassword, timeoutMilliseconds: patience,
            trustedUsers: trustedUsers)
    }
}
