import LarderServices

extension WebProgram {
    static let summary = "shows a running larderd in a browser, and exports metrics to Prometheus"

    /// The manual page larderweb(8).
    static var manualPage: String {
        ManualPage.page(
            "larderweb", 8, summary,
            [
                "SYNOPSIS": ".B larderweb\n.RI [ OPTION ...]",
                "DESCRIPTION": """
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
                """,
                "OPTIONS": WebOptions.table.rows.map(\.manualItem).joined(),
                "ACCESS": """
                Any client that can connect can read all keys and values of the daemon. On 127.0.0.1, these are all users of this machine: use
                .B \\-\\-token\\-file
                or
                .B \\-\\-listen unix:/path
                to prevent that. Other machines need a token, and there is no TLS: use a proxy for that. Requests with unknown host names, and
                requests of other sites' pages, are refused.
                """,
                "SIGNALS": signals,
                "EXIT STATUS": ExitCode.all.map { ManualPage.item("\($0.code)", [$0.meaning]) }.joined(),
                "ENVIRONMENT": ManualPage.item("LARDER_SOCKET", ["the daemon's socket"]),
                "FILES": """
                .TP
                .I /etc/larder/larderweb.env
                the options of the system's service, as LARDERWEB_OPTIONS=...
                .TP
                .I /var/cache/larderweb
                the service's figures of the last day
                """,
                "EXAMPLES": """
                .nf
                larderweb
                larderweb \\-\\-listen unix:/run/user/1000/larderweb
                larderweb \\-\\-listen 0.0.0.0:8377 \\-\\-token\\-file /etc/larder/token \\-\\-host cache.example.org
                .fi
                """,
                "SEE ALSO": ".BR larderctl (1),\n.BR larderd (8)",
            ])
    }
}
