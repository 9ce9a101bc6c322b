// Generates the manual page larderctl(1) from the definitions of verbs and options.

import LarderServices

extension Help {
    /// The manual page in the format of man(7).
    static var manualPage: String {
        ManualPage.page(
            "larderctl", 1, "the command line for a running larderd",
            [
                "SYNOPSIS": """
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
                """,
                "DESCRIPTION": """
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
                """,
                "VERBS": Verb.all.map(section).joined(),
                "OPTIONS": "Before the verb or after it:\n" + Options.specs.map(\.manualItem).joined(),
                "EXIT STATUS": ManualPage.verbatim(ExitCode.explanation.split(separator: "\n")),
                "ENVIRONMENT": """
                .TP
                .B LARDER_SOCKET
                the daemon's socket
                .TP
                .B XDG_STATE_HOME
                the directory of the shell's history, instead of \\(ti/.local/state
                .TP
                .B REDISCLI_AUTH
                the daemon's password, without --password-file; for import and export with a Redis, the password of the Redis
                """,
                "SEE ALSO": ".BR larder\\-protocol (7),\n.BR larderd (8)",
            ])
    }

    private static func section(_ verb: Verb) -> String {
        let details = verb.details.split(separator: "\n", omittingEmptySubsequences: false)
        return ".SS \(ManualPage.escaped(verb.call))\n" + ManualPage.line(verb.sentence) + ".PP\n"
            + ManualPage.verbatim(details) + verb.options.map(\.manualItem).joined()
    }
}
