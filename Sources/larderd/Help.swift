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

        BYTES: a number, or one with K, M, G or T behind it: 64M, 64mb and 64MiB are the same.

        SIGTERM, SIGINT and SIGHUP end the daemon: what was read is finished, everything is committed and synced.
        SIGHUP does nothing where it was ignored when the daemon was started, as by nohup.

        exit codes: 0 done; 1 the larder, the socket's directory or the disk refused; 2 wrong usage; 3 the larder or
        the socket belongs to another process; 4 there is no such database

        """
    }
}
