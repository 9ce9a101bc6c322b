// Generates the manual page larderctl(1) from the definitions of verbs and options.

import LarderCommandCatalog

/// The manual page in the format of man(7).
enum ManualPage {
    static var text: String {
        head + Verb.all.map(section).joined() + ".SH OPTIONS\nBefore the verb or after it:\n"
            + Options.specs.map(item).joined() + ".SH EXIT STATUS\n"
            + ManualText.verbatim(ExitCode.explanation.split(separator: "\n")) + rest
    }

    private static let head = """
        .\\" Generated from the tables of verbs and options by `make docs`.
        .TH LARDERCTL 1 "" "larder" "User Commands"
        .SH NAME
        larderctl \\- the command line for a running larderd
        .SH SYNOPSIS
        .B larderctl
        .RI [ OPTION ...]
        .I VERB
        .RI [ ARGUMENT ...]
        .br
        .B larderctl
        .RI [ OPTION ...]
        .I COMMAND
        .RI [ ARGUMENT ...]
        .br
        .B larderctl
        .RI [ OPTION ...]
        .br
        .B larderctl help
        .RI [ VERB " | " COMMAND ]
        .SH DESCRIPTION
        Controls the
        .BR larderd (8)
        of this machine. Any word that is not a verb is a command of the daemon, see
        .BR larder\\-protocol (7),
        sent unchanged; so is a verb's name in capitals:
        .B larderctl SET greeting hello EX 5
        .PP
        Without arguments, on a terminal, it is a shell for commands: see
        .B shell
        below.
        .SH VERBS

        """

    private static let rest = """
        .SH ENVIRONMENT
        .TP
        .B LARDER_SOCKET
        the daemon's socket
        .TP
        .B XDG_STATE_HOME
        the directory of the shell's history, instead of \\(ti/.local/state
        .TP
        .B REDISCLI_AUTH
        the daemon's password, without --password-file; for import and export with a Redis, the password of the Redis
        .SH SEE ALSO
        .BR larder\\-protocol (7),
        .BR larderd (8)

        """

    private static func section(_ verb: Verb) -> String {
        let details = verb.details.split(separator: "\n", omittingEmptySubsequences: false)
        return ".SS \(ManualText.escaped(verb.call))\n" + ManualText.line(verb.sentence) + ".PP\n"
            + ManualText.verbatim(details) + verb.options.map(item).joined()
    }

    private static func item(_ option: OptionSpec) -> String {
        ManualText.item(option.usage, [option.summary])
    }
}
