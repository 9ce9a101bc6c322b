import LarderEngine

/// The parsed command line of larderd, including its configuration file.
package struct DaemonCommandLine: Sendable {
    package enum Action: Equatable, Sendable {
        case serve
        case purge(PurgeTarget)
        /// Checks the files of all databases, or of one.
        case check(String?)
        /// Only checks the configuration.
        case checkConfiguration
        case help
        case version
    }

    package enum PurgeTarget: Equatable, Sendable {
        case all
        case database(String)
        case expired
    }

    package typealias Failure = OptionFailure

    package private(set) var action = Action.serve
    package var logLevel = Log.Level.info
    package var logFormat = LogFormat.automatic
    package var configuration: ServerConfiguration
    /// Whether a check repairs what it can.
    package internal(set) var repairs = false
    /// Whether the larder's directory was given.
    var hasDirectory = false
    /// The path of the configuration file, and whether it may be missing.
    var file: (path: String, isOptional: Bool)?
    /// Whether the file existed.
    package var hasReadFile = false
    /// The words after the program's name.
    private var words: [String] = []
    /// The effective text of each given option, by its name.
    private var texts: [String: String] = [:]
    /// The contents of the files named by options, by the options' names.
    var contents: [String: [UInt8]] = [:]

    /// The defaults.
    init() {
        configuration = ServerConfiguration(directory: DefaultPaths.daemonLarder, socketPath: DefaultSocket.path)
        configuration.engine.memoryBytes = ServerConfiguration.defaultMemoryBytes
        // Memory holds whole entries: a larger block cache did not improve the measurements (docs/Benchmarks.md).
        configuration.engine.blockCacheBytes = 8 << 20
    }

    /// Parses the words after the program's name, and reads the configuration file that they name. The command line
    /// takes precedence.
    /// - Throws: all errors: first those of the command line in its order, then those of the file by line.
    package init(_ words: [String]) throws(Failure) {
        self.init()
        self.words = words
        var mistakes = Mistakes()
        let given = Self.options(words, &mistakes)
        for (place, option, text) in given where !option.isForFile { take(option, text, place, &mistakes) }
        if action != .help, action != .version { readFile(&mistakes) }
        // An option of the command line replaces the option of the file.
        for (_, option, _) in given where option.isRepeatable { texts[option.name] = nil }
        for (place, option, text) in given where option.isForFile {
            take(option, joined(option, text), place, &mistakes)
        }
        configuration.filePath = hasReadFile ? file?.path : nil
        lookAtAll(&mistakes)
        if let failure = mistakes.failure { throw failure }
    }

    /// Checks combinations of options. Ignores options with errors.
    private func lookAtAll(_ mistakes: inout Mistakes) {
        // Another user may have created the default directory first, if all users can create files in its parent
        // directory.
        if !hasDirectory, action != .help, action != .version, !DefaultPaths.isDaemonLarderSafe,
            mistakes.leaves("--dir")
        {
            mistakes.note(
                "neither XDG_CACHE_HOME nor HOME is set, so there is no default directory: use --dir to set the directory "
                    + "of the larder")
        }
        if repairs, action == .serve, mistakes.leaves("--check") { mistakes.note("--repair needs --check") }
        guard action == .checkConfiguration else { return }
        if file == nil, mistakes.leaves("--config") {
            mistakes.note("--check-config needs --config")
        }
        if mistakes.leaves("--socket"),
            let problem = SocketFile.problem(with: configuration.socketPath, for: ServerConfiguration.socketProgram)
        {
            mistakes.note(problem)
        }
    }

    /// The same command line with the current configuration file.
    package func readAgain() throws(Failure) -> DaemonCommandLine { try DaemonCommandLine(words) }

    /// The path of the configuration file, whether it exists or not; nil if none was given.
    package var filePath: String? { file?.path }

    /// Whether an option has another value than in `other`.
    func differs(_ option: DaemonOption, from other: DaemonCommandLine) -> Bool {
        texts[option.name] != other.texts[option.name] || contents[option.name] != other.contents[option.name]
    }

    /// An option and its value in the form for the log: `memory = 64M`, `memory (its default)`.
    func shown(_ option: DaemonOption) -> String {
        guard let text = texts[option.name] else { return "\(option.key) (its default)" }
        return option.form == .flag ? option.key : "\(option.key) = \(text)"
    }

    /// Takes over the value of an option from another command line, so that ``differs(_:from:)`` returns false.
    mutating func adopt(_ option: DaemonOption, from other: DaemonCommandLine) {
        texts[option.name] = other.texts[option.name]
        contents[option.name] = other.contents[option.name]
    }

    // MARK: Words

    /// The options of a command line with their texts and positions, in order.
    private static func options(
        _ words: [String], _ mistakes: inout Mistakes
    ) -> [(place: Int, option: DaemonOption, text: String)] {
        var options: [(place: Int, option: DaemonOption, text: String)] = []
        var rest = words[...]
        while let word = rest.popFirst() {
            let place = rest.startIndex
            let parts = word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
            let name = parts[0] == "-h" ? "--help" : parts[0] == "-V" ? "--version" : parts[0]
            let attached = parts.count == 2 ? parts[1] : nil
            let named = DaemonOption.all.filter { $0.name == name }
            guard let option = named.first(where: { ($0.form == .attached) == (attached != nil) }) ?? named.first else {
                mistakes.note(unknown(name), at: place)
                // Skip the next word, which may be the value of the unknown option.
                if name.hasPrefix("-"), attached == nil, rest.first?.hasPrefix("-") == false { rest.removeFirst() }
                continue
            }
            if option.form == .flag {
                if attached == nil {
                    options.append((place, option, ""))
                } else {
                    mistakes.note("\(name) takes no value", at: place, about: name)
                }
            } else if let text = attached ?? rest.popFirst() {
                options.append((place, option, text))
            } else {
                mistakes.note("\(name) needs a value", at: place, about: name)
            }
        }
        return options
    }

    private static func unknown(_ name: String) -> String {
        guard name.hasPrefix("-") else {
            return "unexpected word '\(printableKey(name.utf8))': larderd takes only options"
        }
        return "unknown option \(printableKey(name.utf8))"
            + Suggestion.text(for: name, among: DaemonOption.all.map(\.name))
    }

    private mutating func take(_ option: DaemonOption, _ text: String, _ place: Int, _ mistakes: inout Mistakes) {
        do throws(Failure) {
            try apply(option, OptionValue(option: option.name, text: text))
        } catch {
            mistakes.note(error.description, at: place, about: option.name)
        }
    }

    /// The text of a repeatable option joined with the previous ones.
    func joined(_ option: DaemonOption, _ text: String) -> String {
        guard option.isRepeatable, let previous = texts[option.name] else { return text }
        return previous + "," + text
    }

    mutating func apply(_ option: DaemonOption, _ value: OptionValue) throws(Failure) {
        do {
            try option.take(&self, value)
        } catch {
            throw error as? Failure ?? Failure("\(value.option): \(error)")
        }
        texts[option.name] = value.text
    }

    mutating func set(_ new: Action) throws(Failure) {
        if action == .help || action == .version { return }
        guard action == .serve || action == new || new == .help || new == .version else {
            throw Failure(
                "only one of --purge, --purge=NAME, --purge-expired, --check, --check=NAME and --check-config can be given"
            )
        }
        action = new
    }
}
