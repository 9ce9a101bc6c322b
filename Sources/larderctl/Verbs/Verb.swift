// The definition of verbs. All are listed in `Verb.all`.

import LarderCommandCatalog
import LarderServices
import LarderVocabulary

/// A verb of the command line, such as `get` in `larderctl get KEY`.
struct Verb: Sendable {
    let name: String
    /// The arguments, as shown in the help.
    let synopsis: String
    /// The description of the verb in one line.
    let summary: String
    /// The rest of the verb's help, including the output format and the exit codes.
    let details: String
    let options: [OptionSpec]
    let argumentCount: ClosedRange<Int>
    /// Whether the daemon has a command of the same name that does something else.
    let isUnlikeCommand: Bool
    let run: @Sendable (VerbArguments, Context) throws -> ExitCode

    init(
        _ name: String, _ synopsis: String, _ summary: String, details: String, options: [OptionSpec] = [],
        argumentCount: ClosedRange<Int> = 0...0, isUnlikeCommand: Bool = false,
        run: @escaping @Sendable (VerbArguments, Context) throws -> ExitCode
    ) {
        (self.name, self.synopsis, self.summary, self.details) = (name, synopsis, summary, details)
        (self.options, self.argumentCount, self.isUnlikeCommand) = (options, argumentCount, isUnlikeCommand)
        self.run = run
    }

    static let all: [Verb] = [
        .get, .set, .fetch, .lock, .del, .ttl, .meta, .tags, .keys, .query, .index, .policy, .limit, .origin,
        .databases, .stats, .top, .latency, .monitor, .shell, .subscribe, .watch, .doctor, .check, .purge,
        .backup, .verify, .restore, .export, .import, .replicate, .ping, .completion,
    ]

    /// The verb with its arguments, as shown in the help.
    var call: String { synopsis.isEmpty ? name : "\(name) \(synopsis)" }
    var sentence: String { summary.prefix(1).uppercased() + summary.dropFirst() + "." }

    static func named(_ name: String) -> Verb? { all.first { $0.name == name } }

    /// Returns a suggestion for an unknown word, to append to an error message; empty if there is none.
    static func suggestion(for word: String) -> String {
        let verbs = all.map(\.name) + ["help"]
        let start = String(word.prefix { $0 != " " })
        if start != word, verbs.contains(start) || CommandMetadata.named(start) != nil {
            return "; did you mean \(start) and its arguments, as separate words?"
        }
        if let verb = Suggestion.nearest(to: word, among: verbs) { return "; did you mean \(verb)?" }
        let commands = CommandMetadata.all.map { $0.name.uppercased() }
        return Suggestion.text(for: word, among: commands)
    }

    /// Parses the words after the verb. Options may be anywhere before `--`.
    func parse(_ words: [[UInt8]], _ options: Options) throws -> (VerbArguments, Options) {
        var options = options
        var arguments = VerbArguments()
        let table = OptionTable("larderctl", self.options + Options.specs)
        var rest = words[...]
        while let word = rest.first {
            // After a verb, `-V` may be a key or a value.
            if !arguments.endsOptions, word != Array("-V".utf8),
                let option = try table.takeOption(&rest, hint: " (if it is a key or a value, put -- before it)")
            {
                arguments.options.append(option.value)
                try option.row.take(&options, option.value)
                continue
            }
            rest.removeFirst()
            if !arguments.endsOptions, word == Options.end {
                arguments.endsOptions = true
            } else {
                arguments.words.append(word)
            }
        }
        guard options.showsHelp || argumentCount.contains(arguments.words.count) else {
            let problem = arguments.words.count < argumentCount.lowerBound ? "too few" : "too many"
            throw UsageError("\(problem) arguments: larderctl \(call)")
        }
        return (arguments, options)
    }
}

/// The parsed arguments and options of a verb.
struct VerbArguments {
    var words: [[UInt8]] = []
    /// The options in order, including repeated ones.
    var options: [OptionValue] = []
    /// Whether the words contain `--`.
    var endsOptions = false

    /// Returns the last use of an option; nil if it is not given.
    subscript(name: String) -> OptionValue? { options.last { $0.option == name } }

    /// Returns all uses of an option, in order.
    func all(_ name: String) -> [OptionValue] { options.filter { $0.option == name } }

    /// Throws if one of the options `names` is given. Called if the option `other`, which they need, is not given.
    func refuse(_ names: [String], without other: String) throws(UsageError) {
        for name in names where self[name] != nil { throw UsageError("\(name) needs \(other)") }
    }

    /// Throws if one of the options `others` is given together with the option `name`.
    func refuse(_ name: String, with others: String...) throws(UsageError) {
        for other in others where self[name] != nil && self[other] != nil {
            throw UsageError("\(name) and \(other) cannot be combined")
        }
    }

    /// Returns the path in the first argument; nil if there is none, or if it is `-`.
    func file() throws(UsageError) -> String? {
        guard let word = words.first, word != Array("-".utf8) else { return nil }
        return try Self.path(word)
    }

    static func path(_ word: [UInt8]) throws(UsageError) -> String {
        guard let path = String(validating: word, as: UTF8.self), !path.isEmpty else {
            throw UsageError("a path must be UTF-8 text, and not empty")
        }
        return path
    }
}
