// The help for the daemon's commands, from the command table.

import LarderCommandCatalog

/// Texts about the daemon's commands.
enum CommandHelp {
    /// Returns the name of a command as users type it: `CLIENT TRACKING`.
    static func spoken(_ name: String) -> String { name.uppercased().replacing("|", with: " ") }

    /// Returns the syntax of a command: `GET key`.
    static func call(_ command: CommandMetadata) -> String {
        spoken(command.name) + (command.syntax.isEmpty ? "" : " " + command.syntax)
    }

    /// Examples for commands that summaries do not explain well enough.
    private static let examples = [
        "edit": #"""
        Example: EDIT user:7 SET name '"Ann"' INCR visits 1 PUSH tags '"new"' '"old"' RETURN visits
        A path is a name, a.b, list.0, or $ for the whole value. JSON is one word: 5, true, '"text"', '["a","b"]'.

        """#
    ]

    /// Returns the help for a command.
    /// - Parameters:
    ///   - caller: the text before the command in the usage line.
    ///   - helpCall: the command that shows this help, to which users can add a subcommand.
    static func text(of command: CommandMetadata, caller: String, helpCall: String) -> String {
        let arguments =
            command.arity < 0
            ? "at least \(-(command.arity + 1))" : command.arity == 1 ? "none" : "\(command.arity - 1)"
        let rows = [
            ["  arguments", arguments], ["  answer", command.reply], ["  group", command.group.rawValue],
            ["  since", command.since], ["  complexity", command.complexity],
        ]
        var lines =
            ["usage: \(caller)\(call(command))", "", command.summary, ""] + (examples[command.name].map { [$0] } ?? [])
        lines += Table.lines(rows.filter { !$0[1].isEmpty })
        if !command.subcommands.isEmpty {
            lines += ["", "Subcommands (\(helpCall) \(command.name.uppercased()) SUBCOMMAND):"]
            lines += wrapped(command.subcommands.map { spoken(String($0.name.dropFirst(command.name.count + 1))) })
        }
        return lines.joined(separator: "\n")
    }

    /// Lines with the names of all commands, by group, in the order of the command table.
    static var overview: [String] {
        var seen: Set<String> = []
        let groups = CommandMetadata.all.map(\.group.rawValue).filter { seen.insert($0).inserted }
        return groups.flatMap { group in
            let commands = CommandMetadata.all.filter { $0.group.rawValue == group }
            return ["", "Commands, \(group):"] + wrapped(commands.map { $0.name.uppercased() })
        }
    }

    /// Breaks words into lines of at most 80 characters.
    private static func wrapped(_ words: [String]) -> [String] {
        words.reduce(into: [" "]) { lines, word in
            if lines[lines.count - 1].count + 1 + word.count > 80 { lines.append(" ") }
            lines[lines.count - 1] += " " + word
        }
    }
}
