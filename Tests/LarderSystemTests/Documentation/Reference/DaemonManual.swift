import LarderServer
import LarderServices

/// Generates the manual page larderd(8) from the table of options.
enum DaemonManual {
    static var text: String {
        ManualPage.page(
            "larderd", 8, DaemonHelp.summary,
            [
                "SYNOPSIS": DaemonHelp.synopsis.map { ".B \(ManualPage.escaped($0))\n" }.joined(separator: ".br\n"),
                "DESCRIPTION": """
                Larder is a cache whose entries survive restarts. The daemon serves it to all processes of the machine,
                over a Unix\\-domain socket, with the protocol of Redis.
                """,
                "OPTIONS": DaemonOption.all.map(\.manualItem).joined()
                    + DaemonHelp.values.map { ".PP\n" + ManualPage.line($0) }.joined(),
                "CONFIGURATION FILE": """
                The file of \\-\\-config can set each option except \\-\\-config, \\-\\-check\\-config and those after which
                larderd exits, such as \\-\\-purge. Each line sets one option, without the dashes:
                .PP
                .nf
                # half of the default
                memory = 32M
                enable\\-debug = no
                .fi
                .PP
                A # at the beginning of a line, or after a space, begins a comment. Values can be in double quotes. The
                command line takes precedence over the file. An unknown option, or one that the file sets twice, is an error
                that names the file and the line.
                """,
                "SIGNALS": DaemonHelp.signals.map(ManualPage.line).joined(),
                "EXIT STATUS": DaemonHelp.exitCodes.map { ManualPage.item("\($0.code)", [$0.meaning]) }.joined(),
                "FILES": """
                .TP
                .I /etc/larder/larderd.conf
                the configuration of the system's service
                .TP
                .I /run/larder/larder.sock
                its socket
                .TP
                .I /var/cache/larder
                its larder
                """,
                "SEE ALSO": ".BR larderctl (1),\n.BR larder\\-protocol (7),\n.BR systemd.socket (5)",
            ])
    }
}
