import LarderCommandCatalog
import LarderServer

/// Generates the manual page larderd(8), with the macros of man(7), from the table of options.
enum ManualPage {
    static var text: String {
        let groups = DaemonOption.all.map { ManualText.item($0.usage, $0.help) }
        return head + groups.joined() + values + rest
    }

    private static var head: String {
        """
        .\\" Made from the table of options by `make docs`.
        .TH LARDERD 8 "" "larder" "System Manager's Manual"
        .SH NAME
        larderd \\- \(ManualText.escaped(DaemonHelp.summary))
        .SH SYNOPSIS

        """ + DaemonHelp.synopsis.map { ".B \(ManualText.escaped($0))\n" }.joined(separator: ".br\n") + """
            .SH DESCRIPTION
            Larder is a cache whose entries survive restarts. The daemon serves it to all processes of the machine,
            over a Unix\\-domain socket, with the protocol of Redis.
            .SH OPTIONS

            """
    }

    private static var values: String { DaemonHelp.values.map { ".PP\n" + ManualText.line($0) }.joined() }

    private static var rest: String {
        """
        .SH CONFIGURATION FILE
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
        .SH SIGNALS

        """ + DaemonHelp.signals.map(ManualText.line).joined() + ".SH EXIT STATUS\n"
            + DaemonHelp.exitCodes.map { ManualText.item("\($0.code)", [$0.meaning]) }.joined() + """
                .SH FILES
                .TP
                .I /etc/larder/larderd.conf
                the configuration of the system's service
                .TP
                .I /run/larder/larder.sock
                its socket
                .TP
                .I /var/cache/larder
                its larder
                .SH SEE ALSO
                .BR larderctl (1),
                .BR larder\\-protocol (7),
                .BR systemd.socket (5)

                """
    }
}
