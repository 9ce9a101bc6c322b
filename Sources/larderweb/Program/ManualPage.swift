import LarderCommandCatalog

/// Makes the manual page larderweb(8), in the macros of man(7), from the table of options.
enum ManualPage {
    static var text: String {
        head + WebOption.all.map { ManualText.item($0.usage, $0.help) }.joined() + access
            + ExitCode.all.map { ManualText.item("\($0.code)", [$0.meaning]) }.joined() + rest
    }

    private static let head = """
        .\\" Made from the table of options by `make docs`.
        .TH LARDERWEB 8 "" "larder" "System Manager's Manual"
        .SH NAME
        larderweb \\- shows a running larderd in a browser, and tells it to Prometheus
        .SH SYNOPSIS
        .B larderweb
        .RI [ OPTION ...]
        .SH DESCRIPTION
        Serves pages that show how a
        .BR larderd (8)
        of this machine is, and what it holds: at
        .B /
        operations and their times, hit ratio, databases with their limits, how soon entries end, journal, slow commands and clients;
        at
        .B /entries
        keys and entries;
        .B /metrics
        is for Prometheus, in its text format or OpenMetrics 1.0, and
        .B /healthz
        for what watches services. It is a client of the daemon as any other, and works on while the daemon is away.
        .SH OPTIONS

        """

    private static let access = """
        .SH WHO MAY LOOK
        Whoever reaches the address sees all keys and values of the daemon. On 127.0.0.1 these are all users of this machine:
        .B \\-\\-token\\-file
        or
        .B \\-\\-listen unix:/path
        is narrower. Other machines are served with a token only, without TLS: a proxy adds that. Requests for names that it does not know
        are refused, and what other sites' pages ask for.
        .SH SIGNALS
        SIGTERM, SIGINT and SIGHUP end it; SIGUSR1 and SIGUSR2 are ignored.
        .SH EXIT STATUS

        """

    private static let rest = """
        .SH ENVIRONMENT
        .TP
        .B LARDER_SOCKET
        the daemon's socket
        .SH FILES
        .TP
        .I /etc/larder/larderweb.env
        the options of the system's service, as LARDERWEB_OPTIONS=...
        .TP
        .I /var/cache/larderweb
        the service's figures of the last day
        .SH EXAMPLES
        .nf
        larderweb
        larderweb \\-\\-listen unix:/run/user/1000/larderweb
        larderweb \\-\\-listen 0.0.0.0:8377 \\-\\-token\\-file /etc/larder/token \\-\\-host cache.example.org
        .fi
        .SH SEE ALSO
        .BR larderctl (1),
        .BR larderd (8)

        """
}
