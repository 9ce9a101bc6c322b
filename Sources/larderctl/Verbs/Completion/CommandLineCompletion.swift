import LarderCommandCatalog

/// Finds the completions of the last word of a command line, for the completion of bash, zsh and fish.
struct CommandLineCompletion {
    /// The possible completions of a word.
    enum Candidates {
        case words([(word: String, note: String)])
        /// Names of files, which the shell completes itself.
        case files
    }

    private let words: [String]
    private let current: String
    private let daemon: CommandCompletion

    /// - Parameter words: the words after the program's name. The last one, which may be empty, is to be completed.
    init(_ words: [[UInt8]]) {
        let texts = words.map { String(decoding: $0, as: UTF8.self) }
        current = texts.last ?? ""
        self.words = texts.dropLast()
        daemon = CommandCompletion((try? Options.parse(Array(words.dropLast())).options) ?? Options())
    }

    /// The completions that start with the typed text.
    var candidates: Candidates {
        guard case .words(let words) = allCandidates else { return .files }
        return .words(words.filter { $0.word.hasPrefix(current) })
    }

    private var allCandidates: Candidates {
        guard let place = Self.plainWords(words, Options.specs).first else {
            return optionValue(of: Options.specs) ?? first
        }
        let name = words[place]
        let behind = Array(words[(place + 1)...])
        if let verb = Verb.named(name) { return arguments(of: verb, behind) }
        if name == "help" { return behind.isEmpty ? .words(Self.verbs + Self.commands(like: current)) : .words([]) }
        guard let command = CommandMetadata.named(name) else { return .words([]) }
        return .words(daemon.arguments(of: command, behind, current: current).words)
    }

    // MARK: The first word

    /// Returns the indices of the words that are neither options nor their values.
    private static func plainWords(_ words: [String], _ specs: [OptionSpec]) -> [Int] {
        words.indices.filter { index in
            let isValue = index > 0 && specs.contains { $0.name == words[index - 1] && $0.takesNextWord }
            return !isValue && (!words[index].hasPrefix("-") || words[index] == "-")
        }
    }

    private var first: Candidates {
        current.hasPrefix("-")
            ? .words(Self.options(Options.specs)) : .words(Self.verbs + Self.commands(like: current))
    }

    private static var verbs: [(word: String, note: String)] {
        Verb.all.map { ($0.name, $0.summary) } + [("help", "explain a verb or a command")]
    }

    /// Returns the daemon's commands if the typed text has a capital letter: otherwise they would hide the verbs.
    private static func commands(like word: String) -> [(word: String, note: String)] {
        guard word.contains(where: \.isUppercase) else { return [] }
        return CommandMetadata.all.map { ($0.name.uppercased(), $0.summary) }
    }

    // MARK: Options

    private static func options(_ specs: [OptionSpec]) -> [(word: String, note: String)] {
        specs.map { ($0.name, $0.help.joined(separator: " ")) }
    }

    /// Returns the completions for the value of an option; nil if the previous word is not an option with a value.
    private func optionValue(of specs: [OptionSpec]) -> Candidates? {
        guard let last = words.last, let spec = specs.first(where: { $0.name == last }), spec.takesNextWord,
            let value = spec.value
        else { return nil }
        return last == "--database" ? .words(daemon.databases) : candidates(for: value)
    }

    /// - Parameter value: the name of the value in the help of the option or the argument.
    private func candidates(for value: String) -> Candidates {
        switch value {
        case "PATH", "FILE", "DIRECTORY", "BACKUP": .files
        case Self.policyValue:
            .words([
                ("highest", "10 s"), ("high", "1 min"), ("middle", "1 h"), ("low", "24 h"), ("lowest", "7 days"),
                ("never", ""),
            ])
        case "KEY", "PREFIX": .words(daemon.keys(beginningWith: current).words)
        case "SHELL": .words(CompletionScript.all.map { ($0.key, "") })
        default: .words([])
        }
    }

    private static let policyValue = "POLICY"

    // MARK: Arguments

    private func arguments(of verb: Verb, _ behind: [String]) -> Candidates {
        // After `--`, the words are the command line of another program.
        if behind.contains("--"), verb.synopsis.contains(" -- ") { return .files }
        let specs = verb.options + Options.specs
        if !behind.isEmpty, let values = optionValue(of: specs) { return values }
        if current.hasPrefix("-") { return .words(Self.options(specs)) }
        let given = Self.plainWords(behind, specs).count
        // The names of the arguments, as in the help.
        let names = verb.synopsis.prefix { $0 != "-" }.split { " []|".contains($0) }
        guard given < names.count || names.last?.hasSuffix("…") ?? false else { return .words([]) }
        let name = names[min(given, names.count - 1)].prefix { $0 != "…" }
        let isDatabase = name == "NAME" && [Verb.limit.name, Verb.origin.name].contains(verb.name)
        return isDatabase ? .words(daemon.databases) : candidates(for: String(name))
    }
}
