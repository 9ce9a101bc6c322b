/// Texts that `--help` and the manual page show in addition to the options.
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
        "SIGTERM, SIGINT and SIGHUP stop the daemon: it completes the received requests, commits and syncs.",
        "With --config, SIGHUP reloads the file instead; options that need a restart are logged.",
        "During shutdown, further SIGTERM and SIGHUP are ignored; a second SIGINT exits immediately, which is as safe as",
        "kill -9. Without --config, SIGHUP is ignored if it was ignored when the daemon was started, as with nohup.",
        "SIGUSR1 and SIGUSR2 are ignored.",
    ]

    package static let exitCodes: [(code: Int, meaning: String)] = [
        (0, "success"),
        (1, "error of the larder, the socket's directory or the disk"),
        (2, "wrong usage, an error in the configuration file, or a check of a directory that is not a larder"),
        (3, "the larder or the socket is in use by another process"),
        (4, "the database does not exist"),
        (8, "--check: problems found"),
        (9, "--check --repair: problems found and repaired"),
        (10, "--check: not everything could be checked"),
    ]
}
