import LarderCommandCatalog

/// Generates the manual page larderweb(8), with the macros of man(7), from the table of options.
enum ManualPage {
    static var text: String {
        head + WebOption.all.map { ManualText.item($0.usage, $0.help) }.joined() + access
            + ExitCode.all.map { ManualText.item("\($0.code)", [$0.meaning]) }.joined() + rest
    }

    private static let head = """
        .\\" Generated from the table of options by `make docs`.
        .TH LARDERWEB 8 "" "larder" "System Manager's Manual"
        .SH NAME
        larderweb \\- shows a running larderd in a browser, and exports metrics to Prometheus
        .SH SYNOPSIS
        .B larderweb
        .RI [ OPTION ...]
        .SH DESCRIPTION
        Serves pages about the
        .BR larderd (8)
        of this machine:
        .B /
        shows operations and their times, hit ratio, databases with their limits, lifetimes of entries, journal, slow commands and clients,
        and
        .B /entries
        shows keys and entries.
        .B /metrics
        is for Prometheus, in its text format or OpenMetrics 1.0, and
        .B /healthz
        for health checks. It is an ordinary client of the daemon, and keeps running while the daemon is not available.
        .SH OPTIONS

        """

    private static let access = """
        .SH ACCESS
        Any client that can connect can read all keys and values of the daemon. On 127.0.0.1, these are all users of this machine: use
        .B \\-\\-token\\-file
        or
        .B \\-\\-listen unix:/path
        to prevent that. Other machines need a token, and there is no TLS: use a proxy for that. Requests with unknown host names, and
        requests of other sites' pages, are refused.
        .SH SIGNALS
        SIGTERM, SIGINT and SIGHUP stop it; SIGUSR1 and SIGUSR2 are ignored.
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
