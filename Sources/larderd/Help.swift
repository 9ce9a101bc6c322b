import LarderEngine
import LarderServer

/// The text of `larderd --help`.
enum Help {
    static var text: String {
        """
        larderd \(Version.text): serves a larder, a cache that this machine's processes share, over a Unix-domain socket.

        usage: larderd [options]
               larderd --purge[=NAME] | --purge-expired [--dir PATH]

        \(DaemonOption.helpText)

        BYTES: a number, optionally with K, M, G or T: 64M, 64mb and 64MiB are the same.

        SIGTERM, SIGINT and SIGHUP end the daemon: it finishes the requests it has read, commits and syncs.
        While it does that, further SIGTERM and SIGHUP change nothing; a second SIGINT ends it at once, which costs no
        more than kill -9. SIGHUP does nothing if it was ignored when the daemon was started, as by nohup.

        exit codes: 0 success; 1 error of the larder, the socket's directory or the disk; 2 wrong usage; 3 the larder or
        the socket belongs to another process; 4 there is no such database

        """
    }
}
