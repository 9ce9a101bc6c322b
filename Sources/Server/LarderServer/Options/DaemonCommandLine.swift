import LarderEngine
import LarderServices

/// The parsed command line of larderd, together with the options of its configuration file.
package struct DaemonCommandLine: Sendable {
    package enum Action: Equatable, Sendable {
        case serve
        case purge(PurgeTarget)
        /// Check the files of the database with this name; if the name is nil, check all databases.
        case check(String?)
        /// Check the configuration, and do nothing else.
        case checkConfiguration
        case help
        case version
    }

    package enum PurgeTarget: Equatable, Sendable {
        case all
        case database(String)
        case expired
    }

    package private(set) var action = Action.serve
    package var logLevel = Log.Level.info
    package var logFormat = LogFormat.automatic
    package var configuration: ServerConfiguration
    /// Whether a check also repairs damage, as far as possible (`--repair`).
    package internal(set) var repairs = false
    /// Whether the option `--dir` was given.
    var hasDirectory = false
    /// The path of the configuration file, and whether it is allowed to be missing; nil if none was given.
    var file: (path: String, isOptional: Bool)?
    /// Whether the configuration file existed and was read.
    package var hasReadFile = false
    /// The words of the command line after the program's name.
    private var words: [String] = []
    /// The text of each option that was given, by the option's name. The command line's text replaces the file's.
    private var texts: [String: String] = [:]
    /// The contents of files that are named by options such as `--password-file`, by the option's name.
    var contents: [String: [UInt8]] = [:]

    /// Creates a command line without options, so that all values are defaults.
    init() {
        configuration = ServerConfiguration(directory: DefaultPaths.daemonLarder, socketPath: DefaultSocket.path)
        configuration.setMemory(ServerConfiguration.defaultMemoryBytes)
        configuration.engine.memoryIncludesProcess = true
    }

    /// Parses the words after the program's name, and the configuration file that they name. Words take precedence over
    /// the file.
    /// - Throws: a failure with all errors: first those of the command line, in the order of its words, then those of
    ///   the file, by line.
    package init(_ words: [String]) throws(UsageError) {
        self.init()
        self.words = words
        var mistakes = Mistakes()
        let given = Self.options(words, &mistakes)
        for (place, option, value) in given where !option.isForFile { take(option, value, place, &mistakes) }
        if action != .help, action != .version { readFile(&mistakes) }
        // The texts of a repeatable option are joined. Forget the file's text, because the command line replaces it.
        for (_, option, _) in given where option.isRepeatable { texts[option.name] = nil }
        for (place, option, value) in given where option.isForFile {
            take(option, joined(option, value), place, &mistakes)
        }
        configuration.filePath = hasReadFile ? file?.path : nil
        // The daemon's memory caches whole entries, so a larger block cache did not improve the results in
        // docs/Benchmarks.md.
        let memoryBytes = configuration.engine.memoryBytes
        configuration.engine.blockCacheBytes = memoryBytes == 0 ? 8 << 20 : min(max(1 << 20, memoryBytes / 16), 8 << 20)
        checkCombinations(&mistakes)
        if let failure = mistakes.failure { throw failure }
    }

    /// Checks combinations of options. Ignores options that have errors.
    private func checkCombinations(_ mistakes: inout Mistakes) {
        // The default directory would be in a directory where all users can create files. So another user may have
        // created the default directory first.
        if !hasDirectory, action != .help, action != .version, !DefaultPaths.isDaemonLarderSafe,
            mistakes.leaves("--dir")
        {
            mistakes.note(
                "neither XDG_CACHE_HOME nor HOME is set, so there is no default directory: use --dir to set the directory "
                    + "of the larder")
        }
        if repairs, action == .serve, mistakes.leaves("--check") { mistakes.note("--repair needs --check") }
        guard action == .checkConfiguration else { return }
        if file == nil, mistakes.leaves("--config") { mistakes.note("--check-config needs --config") }
        if mistakes.leaves("--socket"),
            let problem = SocketFile.problem(with: configuration.socketPath, for: ServerConfiguration.socketProgram)
        {
            mistakes.note(problem)
        }
    }

    /// Parses the same words again, with the current contents of the configuration file.
    package func readAgain() throws(UsageError) -> DaemonCommandLine { try DaemonCommandLine(words) }

    /// The path of the configuration file, even if the file does not exist; nil if none was given.
    package var filePath: String? { file?.path }

    /// Whether the value of an option differs from its value in `other`.
    func differs(_ option: DaemonOption, from other: DaemonCommandLine) -> Bool {
        texts[option.name] != other.texts[option.name] || contents[option.name] != other.contents[option.name]
    }

    /// Returns an option and its value as shown in the log: `memory = 64M`, or `memory (its default)`.
    func shown(_ option: DaemonOption) -> String {
        guard let text = texts[option.name] else { return "\(option.key) (its default)" }
        return option.form == .flag ? option.key : "\(option.key) = \(text)"
    }

    /// Copies the value of an option from another command line, so that ``differs(_:from:)`` returns false.
    mutating func adopt(_ option: DaemonOption, from other: DaemonCommandLine) {
        texts[option.name] = other.texts[option.name]
        contents[option.name] = other.contents[option.name]
    }

    // MARK: Words

    /// Returns the options of a command line in their order, with their values and the positions of their words.
    private static func options(
        _ words: [String], _ mistakes: inout Mistakes
    ) -> [(place: Int, option: DaemonOption, value: OptionValue)] {
        var options: [(place: Int, option: DaemonOption, value: OptionValue)] = []
        var rest = words.map { Array($0.utf8) }[...]
        while let word = rest.first {
            let place = rest.startIndex
            do throws(UsageError) {
                guard let next = try DaemonOption.table.next(&rest) else { break }
                options.append((place, DaemonOption.all[next.index], next.value))
            } catch {
                mistakes.note(error.message, at: place, about: OptionTable<DaemonCommandLine>.parts(word).name)
            }
        }
        return options
    }

    private mutating func take(_ option: DaemonOption, _ value: OptionValue, _ place: Int, _ mistakes: inout Mistakes) {
        do throws(UsageError) {
            try apply(option, value)
        } catch {
            mistakes.note(error.message, at: place, about: option.name)
        }
    }

    /// Returns the value of an option. For a repeatable option, returns all its values so far, separated by commas.
    func joined(_ option: DaemonOption, _ value: OptionValue) -> OptionValue {
        guard option.isRepeatable, let previous = texts[option.name] else { return value }
        return OptionValue(option: value.option, text: previous + "," + value.text)
    }

    mutating func apply(_ option: DaemonOption, _ value: OptionValue) throws(UsageError) {
        try option.row.apply(value, to: &self)
        texts[option.name] = value.text
    }

    mutating func set(_ new: Action) throws(UsageError) {
        if action == .help || action == .version { return }
        guard action == .serve || action == new || new == .help || new == .version else {
            throw UsageError(
                "only one of --purge, --purge=NAME, --purge-expired, --check, --check=NAME and --check-config can be given"
            )
        }
        action = new
    }
}
