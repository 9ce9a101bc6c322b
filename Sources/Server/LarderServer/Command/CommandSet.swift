import LarderCommandCatalog
import LarderEngine
import LarderServices

/// A set of commands, given by their names. `config` adds the command with all its subcommands; `config|set` adds only
/// this subcommand.
package struct CommandSet: Equatable, Sendable {
    private var numbers: Set<Int> = []
    /// The names, in the order in which they were given.
    private(set) var names: [String] = []

    package init() {}

    /// - Parameter text: names of commands, separated by commas or spaces. Case is ignored.
    /// - Throws: one failure that describes all errors in the text.
    init(_ text: String) throws(UsageError) {
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
        guard problems.isEmpty else { throw UsageError(problems.joined(separator: "; ")) }
        needsChecks = CommandMetadata.all.contains { row in
            contains(row) && (row.keys.first > 0 || row.flags.contains(.runsScript) || row == .ping)
        }
    }

    var isEmpty: Bool { numbers.isEmpty }

    func contains(_ row: CommandMetadata) -> Bool { numbers.contains(row.number) }

    /// Whether the set contains a command that ``Prechecks`` may let run without checks. If so, prechecks are not used,
    /// so that the command is refused.
    private(set) var needsChecks = false
}

extension CommandError {
    /// Returns the error for a disabled command. It begins with Redis' code for missing permissions.
    static func switchedOff(_ row: CommandMetadata) -> CommandError { CommandError("NOPERM \(switchedOffText(row))") }

    static func switchedOffText(_ row: CommandMetadata) -> String {
        "the '\(row.name)' command is disabled (--disable-commands)"
    }
}
