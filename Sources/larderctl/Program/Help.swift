// The text of `larderctl help`. For the daemon's commands, it uses the command table that the daemon uses too.

import LarderClient
import LarderCommandCatalog

enum Help {
    static let usage = """
        usage: larderctl [OPTION…] VERB [ARGUMENT…]
               larderctl [OPTION…] COMMAND [ARGUMENT…]
               larderctl [OPTION…]
               larderctl help [VERB | COMMAND [SUBCOMMAND]]
        """

    static var overview: String {
        var lines = [usage, "", "The command line for a running larderd. Verbs:"]
        lines += Table.lines(Verb.all.map { ["  " + $0.name, $0.summary] })
        lines += ["", "Options, before the verb or after it:"]
        lines += OptionSpec.helpLines(Options.specs, column: nil)
        lines += ["", "Exit codes:"]
        lines += ExitCode.explanation.split(separator: "\n").map { "  " + $0 }
        lines += ["", "Any other word is a command of the daemon, sent unchanged; so is a verb's name in capitals:"]
        lines += ["  larderctl SET greeting hello EX 5"]
        lines += ["Without arguments, on a terminal, larderctl is a shell for commands: larderctl help shell"]
        lines += CommandHelp.overview
        return lines.joined(separator: "\n")
    }

    /// Writes the help of one verb or command, or the overview. An argument may have several words.
    static func show(_ arguments: [[UInt8]], _ output: Output) throws(UsageError) -> ExitCode {
        let words = arguments.flatMap { $0.split(separator: UInt8(ascii: " ")).map(Array.init) }
        guard let first = words.first else {
            output.line(overview)
            return .done
        }
        let name = String(decoding: first, as: UTF8.self)
        if name == "--man" {
            output.bytes(manualPage.utf8)
        } else if words.count > 1, let command = CommandMetadata.named(name), !command.subcommands.isEmpty {
            output.line(text(of: try subcommand(words, of: command)))
        } else if let verb = Verb.named(name) {
            output.line(text(of: verb))
        } else if let command = CommandMetadata.named(name) {
            output.line(text(of: command))
        } else if name == "help" {
            output.line(usage)
        } else {
            throw UsageError(
                "no help on '\(printableKey(first))': it is neither a verb nor a command"
                    + Verb.suggestion(for: name))
        }
        return .done
    }

    /// Returns the subcommand that two words name, such as CONFIG GET.
    private static func subcommand(_ words: [[UInt8]], of command: CommandMetadata) throws(UsageError)
        -> CommandMetadata
    {
        let name = words.prefix(2).map { String(decoding: $0, as: UTF8.self).lowercased() }.joined(separator: "|")
        guard words.count == 2, let found = command.subcommands.first(where: { $0.name == name }) else {
            throw UsageError(
                "no help on '\(words.map(printableKey).joined(separator: " "))'; \(command.name.uppercased()) has "
                    + command.subcommands.map { CommandHelp.spoken($0.name) }.joined(separator: ", "))
        }
        return found
    }

    private static func text(of command: CommandMetadata) -> String {
        let text = CommandHelp.text(of: command, caller: "larderctl [OPTION…] ", helpCall: "larderctl help")
        guard let verb = Verb.named(command.name) else { return text }
        return text + "\n\nThe verb with this name: larderctl help \(verb.name) (\(verb.summary))"
    }

    private static func text(of verb: Verb) -> String {
        var lines = ["usage: larderctl [OPTION…] \(verb.call)", "", verb.sentence, "", verb.details]
        if !verb.options.isEmpty { lines += [""] + OptionSpec.helpLines(verb.options, column: nil) }
        if let command = CommandMetadata.named(verb.name) {
            let does = verb.isUnlikeCommand ? "does something else" : "can do more"
            lines += ["", "The daemon's command with this name \(does): larderctl help \(command.name.uppercased())"]
        }
        return lines.joined(separator: "\n")
    }
}
