/// What the help says besides the options; the manual page says it too.
package enum DaemonHelp {
    package static let summary =
        "serves a larder, a cache that this machine's processes share, over a Unix-domain socket"

    package static let synopsis = [
        "larderd [options]", "larderd --purge[=NAME] | --purge-expired [--dir PATH]",
        "larderd --check[=NAME] [--repair] [--dir PATH]",
    ]

    package static let values = [
        "BYTES: a number, optionally with K, M, G or T, powers of 1024: 64M, 64mb and 64MiB are the same.",
        "TIME: a number, optionally with us, ms, s, m, h or d: 250ms, 90s and 5m.",
    ]

    package static let signals = [
        "SIGTERM, SIGINT and SIGHUP end the daemon: it finishes the requests it has read, commits and syncs.",
        "With --config, SIGHUP reads the file again instead; the log says what takes effect at the next start only.",
        "While the daemon ends, further SIGTERM and SIGHUP change nothing; a second SIGINT ends it at once, which costs no",
        "more than kill -9. Without --config, SIGHUP does nothing if it was ignored when the daemon was started, as by nohup.",
        "SIGUSR1 and SIGUSR2 are ignored.",
    ]

    package static let exitCodes: [(code: Int, meaning: String)] = [
        (0, "success"),
        (1, "error of the larder, the socket's directory or the disk"),
        (2, "wrong usage, or something wrong in the configuration file"),
        (3, "the larder or the socket belongs to another process"),
        (4, "there is no such database"),
        (8, "--check: something is wrong"),
        (9, "--check --repair: something was wrong, and is right now"),
        (10, "--check: not everything could be looked at"),
    ]
}
