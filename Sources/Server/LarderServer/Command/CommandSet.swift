import LarderCommandCatalog
import LarderEngine

/// Some of the commands, by name; a command with all its subcommands, or one subcommand: `config`, `config|set`.
package struct CommandSet: Equatable, Sendable {
    private var numbers: Set<Int> = []
    /// In the order in which they were given.
    private(set) var names: [String] = []

    package init() {}

    package struct Failure: Error {
        let description: String
    }

    /// - Parameter text: names in any case, with commas or blanks between them.
    /// - Throws: all that is wrong with them.
    init(_ text: String) throws(Failure) {
        var problems: [String] = []
        for word in text.split(whereSeparator: { $0 == "," || $0 == " " }) {
            let name = word.lowercased()
            guard let row = CommandMetadata.withSubcommands.first(where: { $0.name == name }) else {
                let near = Suggestion.text(for: name, among: CommandMetadata.withSubcommands.map(\.name))
                problems.append("there is no command '\(printableKey(name.utf8))'\(near)")
                continue
            }
            numbers.formUnion(([row] + row.subcommands).map(\.number))
            if !names.contains(name) { names.append(name) }
        }
        guard problems.isEmpty else { throw Failure(description: problems.joined(separator: "; ")) }
        mayHaveFastPath = CommandMetadata.all.contains { row in
            contains(row) && (row.keys.first > 0 || row.flags.contains(.runsScript) || row == .ping)
        }
    }

    var isEmpty: Bool { numbers.isEmpty }

    func contains(_ row: CommandMetadata) -> Bool { numbers.contains(row.number) }

    /// Whether one of them may run without its row being looked at: on the fast path, or in a script there.
    private(set) var mayHaveFastPath = false
}

extension CommandError {
    /// The code that Redis has for what a user may not do; here nobody may.
    static func switchedOff(_ row: CommandMetadata) -> CommandError {
        CommandError("NOPERM \(switchedOffText(row))")
    }

    static func switchedOffText(_ row: CommandMetadata) -> String {
        "the '\(row.name)' command is switched off (--disable-commands)"
    }
}
