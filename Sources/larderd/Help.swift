import LarderEngine
import LarderServer

/// What `larderd --help` prints.
enum Help {
    static var text: String {
        """
        larderd \(Version.text): serves a larder, a cache that this machine's processes share, over a Unix-domain socket.

        usage: larderd [options]
               larderd --purge[=NAME] | --purge-expired [--dir PATH]

          --dir PATH         the larder's directory; made with mode 0700 if it is missing
                             (default: /var/cache/larder for root, else ~/.cache/larder)
          --socket PATH      the socket to listen on, made with mode 0600
                             (default: $LARDER_SOCKET, else /run/larder/larder.sock for root,
                             else $XDG_RUNTIME_DIR/larder/larder.sock, else /tmp/larder-UID/larder.sock)
          --policy POLICY    how long entries of new databases stay fresh: highest (10 s), high (1 min),
                             middle (1 h), low (24 h), lowest (7 days), never, or a number of seconds
                             (default: lowest); databases that exist keep theirs
          --durability LEVEL what a write has survived before it is acknowledged: os (the death of the daemon),
                             everysecond (and an fsync at least once a second), always (an fsync first)
                             (default: everysecond)
          --memory BYTES     memory for hot entries beside the disk, such as 256M; 0 for none
                             besides those that are not in LevelDB yet: up to half of this, or 32M
                             (default: a 16th of the machine's, at least 16M, at most 512M)
          --checkpoint BYTES bytes of the journal from which entries are written to the databases, and the journal is cut;
                             less takes less disk and memory, and costs more time (default: 64M)
          --threads N        event loops, 1 to 64 (default: 1)
          --max-clients N    connections at a time (default: 10000); fewer where the limit of open descriptors
                             (ulimit -n) leaves too few for the larder's files, as the log then says
          --max-databases N  databases in the larder (default: 64)
          --notify-keyspace-events FLAGS
                             events of entries that are published, as in Redis: K, E or both, and A or some of
                             g $ x e n (default: none)
          --max-tracked-keys N
                             keys that clients which track what they read may have read (default: 1000000)
          --max-watched-deadlines N
                             entries with a deadline of their own of which the expiry is told in time
                             (default: 1000000)
          --max-subscriber-output BYTES
                             messages that a subscriber may leave unread (default: 32M),
                             and for a minute a quarter of that
          --max-reply BYTES  the values of one MGET together (default: 512M)
          --max-transaction BYTES
                             the commands between MULTI and EXEC, for each connection (default: 64M)
          --max-watched-keys N
                             keys that one connection may WATCH (default: 10000)
          --max-subscriptions BYTES
                             names of the channels that one connection may listen to (default: 16M)
          --reply-timeout SECONDS
                             how long a client may leave replies unread before it is disconnected (default: 60)
          --password-file PATH
                             the first line of the file is what clients have to give with AUTH (default: none)
          --enable-debug     have the command DEBUG
          --log-level LEVEL  debug, info, warning or error; one line per event on standard error
                             (default: info)

          --purge            remove all entries of all databases, then exit; policies stay
          --purge=NAME       remove all entries of one database, then exit
          --purge-expired    remove the expired entries of all databases, then exit
                             A purge goes through the socket of the daemon that holds the larder, else straight to
                             the files. It prints what it removed.

          --help             print this
          --version          print the version

        BYTES: a number, or one with K, M, G or T behind it: 64M, 64mb and 64MiB are the same.

        SIGTERM, SIGINT and SIGHUP end the daemon: what was read is finished, everything is committed and synced.
        SIGHUP does nothing where it was ignored when the daemon was started, as by nohup.

        exit codes: 0 done; 1 the larder, the socket's directory or the disk refused; 2 wrong usage; 3 the larder or
        the socket belongs to another process; 4 there is no such database

        """
    }
}
