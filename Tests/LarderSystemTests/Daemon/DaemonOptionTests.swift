import LarderServer
import LarderTestSupport
import LarderVocabulary
import Testing

@Suite struct DaemonOptionTests {
    /// What people see first: changed on purpose only.
    private static let help = """
        larderd \(Version.text): serves a larder, a cache that this machine's processes share, over a Unix-domain socket.

        usage: larderd [options]
               larderd --purge[=NAME] | --purge-expired [--dir PATH]
               larderd --check[=NAME] [--repair] [--dir PATH]

          --config FILE      read options from this file too: lines of `name = value`, with the names of this list
                             without the dashes; the command line wins. With a minus before its path, as in
                             --config=-/etc/larder/larderd.conf, it may be missing. SIGHUP reads it again
          --check-config     say what is wrong with the configuration file and the command line, then exit: 0 if nothing is

          --dir PATH         the larder's directory; made with mode 0700 if it is missing
                             (default: /var/cache/larder for root, else $XDG_CACHE_HOME/larder, else ~/.cache/larder)
          --socket PATH      the socket to listen on
                             (default: $LARDER_SOCKET, else /run/larder/larder.sock for root,
                             else $XDG_RUNTIME_DIR/larder/larder.sock, else /tmp/larder-UID/larder.sock)
          --socket-mode MODE who may use the socket, as for chmod (default: 600, and 660 with --socket-group)
          --socket-group GROUP
                             the group of the socket and of its directory, if that is made: a name or a number
          --policy POLICY    how long entries of new databases stay fresh: highest (10 s), high (1 min),
                             middle (1 h), low (24 h), lowest (7 days), never, or a TIME: seconds, or 90s, 15m
                             (default: lowest); databases that exist keep theirs
          --durability LEVEL what an acknowledged write survives: os (the death of the daemon), everysecond
                             (also an fsync at least once a second), always (an fsync first)
                             (default: everysecond)
          --memory BYTES     memory for hot entries, such as 256M; 0 for none,
                             not counting entries that are not in LevelDB yet: up to half of this, or 32M
                             (default: a 16th of the machine's, at least 16M, at most 512M)
          --max-disk BYTES   limit for all files of the larder, at least 16M; a full budget, or a full file system,
                             evicts the least valuable entries. For moments, files may take one checkpoint and one
                             compaction more: a 32nd of the limit, and 26 to 52 MiB
                             (docs/Limits.md);
                             0 or none for no limit
                             (default: a tenth of the file system, at most 8G)
          --max-change-log BYTES
                             memory for the latest changes of databases with followers (CHANGES); a follower that was away
                             for longer reads all entries; at least 4K (default: 32M)
          --checkpoint BYTES size of the journal that starts a checkpoint, which writes entries to the databases;
                             a smaller one takes less disk and memory but more time; at least 1K (default: 64M)
          --threads N        event loops, 1 to 64 (default: 1)
          --max-clients N    connections at a time (default: 10000); fewer if the limit of open descriptors
                             (ulimit -n) leaves too few for the larder's files; the log then says so
          --max-databases N  databases in the larder (default: 64)
          --notify-keyspace-events FLAGS
                             keyspace events to publish, as in Redis: K, E or both, and A or some of
                             g $ x e n (default: none)
          --max-tracked-keys N
                             keys of all clients with CLIENT TRACKING together (default: 1000000)
          --max-watched-deadlines N
                             entries with their own deadline whose `expired` event comes in time
                             (default: 1000000)
          --max-subscriber-output BYTES
                             messages that a subscriber may leave unread (default: 32M),
                             and for a minute a quarter of that
          --max-reply BYTES  the values of one MGET together (default: 512M)
          --max-transaction BYTES
                             the commands between MULTI and EXEC, for each connection (default: 64M)
          --script-time-limit TIME
                             how long a script may run before it is terminated without effect: milliseconds, or
                             5s (default: 5000)
          --max-script-memory BYTES
                             the memory of one script's interpreter (default: 64M)
          --max-scripts BYTES
                             the texts of all scripts that are kept for EVALSHA (default: 16M)
          --max-watched-keys N
                             keys that one connection may WATCH (default: 10000)
          --max-leases N     keys that one connection may refresh at a time, of 100000 for all (default: 10000)
          --max-subscriptions BYTES
                             names of the channels that one connection may subscribe to (default: 16M)
          --reply-timeout TIME
                             how long a client may leave replies unread before it is disconnected: seconds, or 5m
                             (default: 60)
          --password-file PATH
                             the first line of the file is the password for AUTH (default: none)
          --disable-commands NAMES
                             commands that are disabled for all users, separated by commas: FLUSHALL,CONFIG|SET;
                             they answer NOPERM, in scripts too (default: none)
          --enable-debug     allow the command DEBUG
          --origin-limit TIME
                             the most that a command waits for the origin of its database: milliseconds, or 2s
                             (default: 2000)
          --origin-heartbeat TIME
                             how often each server of an origin is asked whether it is there: milliseconds, or 1s;
                             nothing is read that is older than this and --origin-heartbeat-limit together after a
                             change was acknowledged elsewhere (default: 250)
          --origin-heartbeat-limit TIME
                             how long its answer may take; then what the server has said is no longer believed:
                             milliseconds, or 1s (default: 500)
          --origin-patience TIME
                             after which time FETCH, and with STALE also GET and the like, get what is stale while
                             the origin is still asked: milliseconds, or 1s; 0: when it has failed (default: 0)
          --max-origin-keys N
                             how many entries of each database with an origin are known to be what it has;
                             others are asked for again (default: 1000000)
          --allow-uid USER=LEVEL[@DATABASE]
                             what a user may do, by name or number: LEVEL is read, write (and read) or administer (all),
                             in one database or in all; separate several by commas or spaces, or repeat it.
                             With any such rule, others may do nothing; root and the daemon's own user everything
                             (default: no rules: everybody who can open the socket may do everything)
          --allow-gid GROUP=LEVEL[@DATABASE]
                             the same for the members of a group, its own or a supplementary one
          --rights KIND:NAME=LEVEL[@DATABASE]
                             the same for both: user:alice=write@shop group:staff=read
          --timeout TIME     close connections that send nothing for so long: seconds, or 5m; 0 for never (default: 0)
          --slowlog-log-slower-than TIME
                             commands for SLOWLOG: microseconds, or 10ms; -1 for none (default: 10000)
          --slowlog-max-len N
                             commands that SLOWLOG keeps (default: 128)
          --latency-monitor-threshold TIME
                             events for LATENCY: milliseconds, or 1s; 0 for none (default: 0)
          --log-level LEVEL  debug, info, warning or error; one line per event on standard error
                             (default: info)
          --log-format FORMAT
                             text: `time level message`; systemd: with systemd's priorities, such as <6>, and without the
                             time; json: an object in each line; auto: systemd if standard error goes to its journal,
                             else text (default: auto)

          --purge            remove all entries of all databases, then exit; policies stay
          --purge=NAME       remove all entries of one database, then exit
          --purge-expired    remove the expired entries of all databases, then exit
                             A purge goes through the socket of the daemon that holds the larder, else straight to
                             the files. It prints what it removed.

          --check            check all files of a larder that no daemon has open, print one line per problem, and
                             exit; changes nothing. With --log-format json: one JSON object. For a running daemon:
                             larderctl check
          --check=NAME       the same for one database, or the LEDGER, and what belongs to all
          --repair           with --check: then salvage damaged databases and the journal as a start does, complete
                             indexes, and look again; the damaged files are kept below DAMAGED

          --help             print this
          --version          print the version; also -V

        BYTES: a number, optionally with K, M, G or T, powers of 1024: 64M, 64mb and 64MiB are the same.
        TIME: a number, optionally with us, ms, s, m, h or d: 250ms, 90s and 5m.

        SIGTERM, SIGINT and SIGHUP end the daemon: it finishes the requests it has read, commits and syncs.
        With --config, SIGHUP reads the file again instead; the log says what takes effect at the next start only.
        While the daemon ends, further SIGTERM and SIGHUP change nothing; a second SIGINT ends it at once, which costs no
        more than kill -9. Without --config, SIGHUP does nothing if it was ignored when the daemon was started, as by nohup.
        SIGUSR1 and SIGUSR2 are ignored.

        exit codes:
          0  success
          1  error of the larder, the socket's directory or the disk
          2  wrong usage, or something wrong in the configuration file
          3  the larder or the socket belongs to another process
          4  there is no such database
          8  --check: something is wrong
          9  --check --repair: something was wrong, and is right now
          10  --check: not everything could be looked at

        """

    private static let oneAction =
        "only one of --purge, --purge=NAME, --purge-expired, --check, --check=NAME and --check-config can be given"

    @Test func helpAndVersion() throws {
        for arguments in [["--help"], ["-h"], ["--policy", "low", "--help"], ["--purge", "--help"]] {
            let (end, output, errors) = try DaemonProcess.run(arguments)
            #expect(end == .exited(0))
            #expect(output == Self.help)
            #expect(errors == "")
        }
        for arguments in [["--version"], ["-V"]] {
            let (end, output, errors) = try DaemonProcess.run(arguments)
            #expect(end == .exited(0))
            #expect(output == "larderd \(Version.text)\n")
            #expect(errors == "")
        }
    }

    private static let policies =
        "highest, high, middle, low, lowest, never, or a number of seconds, also with a fraction, or one with us, ms, s, sec, "
        + "m, min, h or d behind it, such as 250ms, 90s, 15m or 1h"

    @Test(arguments: [
        (["--bad"], "unknown option --bad"),
        (["--bad=1"], "unknown option --bad"),
        (["-x"], "unknown option -x"),
        (["--memroy=1"], "unknown option --memroy; did you mean --memory?"),
        (["serve"], "unexpected word 'serve': larderd takes only options"),
        ([""], "unexpected word '': larderd takes only options"),
        (["--dir"], "--dir needs a value"),
        (["--dir", ""], "--dir needs a path"),
        (["--socket="], "--socket needs a path"),
        (["--policy", "often"], "--policy often: it is \(Self.policies)"),
        (["--policy=0"], "--policy 0: it is \(Self.policies)"),
        (
            ["--max-disk", "8M"],
            "--max-disk 8M: it is a number of bytes, or one with K, M, G or T behind it, such as 64M, 64mb or 64MiB, "
                + "at least 16M; or 0 or none for no limit"
        ),
        (
            ["--reply-timeout", "5x"],
            "--reply-timeout 5x: it is a number of seconds, or one with us, ms, s, sec, m, min, h or d behind it, such as "
                + "250ms, 90s, 15m or 1h, from 1 to 86400"
        ),
        (["--durability", "maybe"], "--durability maybe: it is one of os, everysecond, always"),
        (["--threads", "0"], "--threads 0: it is a number from 1 to 64"),
        (["--threads", "65"], "--threads 65: it is a number from 1 to 64"),
        (["--threads", "99999999999999999999"], "--threads 99999999999999999999: it is a number from 1 to 64"),
        (["--max-clients", "x"], "--max-clients x: it is a number from 1 to 1000000"),
        (
            ["--checkpoint", "often"],
            "--checkpoint often: it is a number of bytes, or one with K, M, G or T behind it, such as 64M, 64mb or 64MiB, "
                + "from 1024 to 1T"
        ),
        (
            ["--checkpoint", "1023"],
            "--checkpoint 1023: it is a number of bytes, or one with K, M, G or T behind it, such as 64M, 64mb or 64MiB, "
                + "from 1024 to 1T"
        ),
        (
            ["--checkpoint", "0"],
            "--checkpoint 0: it is a number of bytes, or one with K, M, G or T behind it, such as 64M, 64mb or 64MiB, "
                + "from 1024 to 1T"
        ),
        (
            ["--memory", "lots"],
            "--memory lots: it is a number of bytes, or one with K, M, G or T behind it, such as 64M, 64mb or 64MiB, up to 1T"
        ),
        (
            ["--memory=8192G"],
            "--memory 8192G: it is a number of bytes, or one with K, M, G or T behind it, such as 64M, 64mb or 64MiB, up to 1T"
        ),
        (
            ["--max-reply", "1.5G"],
            "--max-reply 1.5G: it is a number of bytes, or one with K, M, G or T behind it, such as 64M, 64mb or 64MiB, up to 1T"
        ),
        (["--max-databases", "0"], "--max-databases 0: it is a number from 1 to 10000"),
        (
            ["--disable-commands", "flushal"],
            "--disable-commands: there is no command 'flushal'; did you mean flushall?"
        ),
        (["--log-level", "loud"], "--log-level loud: it is one of debug, info, warning, error"),
        (
            ["--disable-commands", "flushal,get,nothing"],
            "--disable-commands: there is no command 'flushal'; did you mean flushall?; there is no command 'nothing'"
        ),
        (
            ["--rights", "user:root=rite,root=read,user:root=read"],
            "--rights: user:root=rite: LEVEL is read, write or administer, not 'rite'; did you mean write?; "
                + "root=read: it begins with user: or group:"
        ),
        (["--help=yes"], "--help takes no value"),
        (["--purge-expired=a"], "--purge-expired takes no value"),
        (["--purge", "--purge-expired"], oneAction),
        (["--purge=a", "--purge=b"], oneAction),
        (
            ["--purge=A/B"],
            "--purge=A/B: not a database name: a name has 1 to 64 characters of a-z, 0-9, '.', '_' and '-', begins "
                + "with a letter, a digit or '_', and a number is one of 0 to 15"
        ),
    ])
    func wrongUsage(_ arguments: [String], _ message: String) throws {
        let (end, output, errors) = try DaemonProcess.run(arguments)
        #expect(end == .exited(2))
        #expect(output == "")
        #expect(errors == "larderd: \(message)\nTry: larderd --help\n")
    }

    /// One run says all that is wrong, each where it stands, and nothing that only follows from it.
    @Test func allMistakesAreToldTogether() throws {
        let words = [
            "--threads", "99", "--memroy", "5M", "serve", "--bad=1", "--help=no", "--check=A/B", "--repair", "--policy",
            "often",
            "--dir=", "--config",
        ]
        // Without HOME there is no default directory: --dir says one, wrongly.
        let (end, output, errors) = try DaemonProcess.run(words)
        #expect(end == .exited(2) && output == "")
        let beginnings = [
            "larderd: --threads 99: it is a number", "larderd: unknown option --memroy; did you mean --memory?",
            "larderd: unexpected word 'serve'", "larderd: unknown option --bad", "larderd: --help takes no value",
            "larderd: --check=A/B: not a database name", "larderd: --policy often: it is",
            "larderd: --dir needs a path",
            "larderd: --config needs a value", "Try: larderd --help",
        ]
        let lines = errors.split(separator: "\n")
        #expect(lines.count == beginnings.count, "\(errors)")
        for (line, beginning) in zip(lines, beginnings) { #expect(line.hasPrefix(beginning), "\(line)") }
    }

    @Test func commandsCanBeSwitchedOff() throws {
        let daemon = try DaemonProcess(["--disable-commands", "FLUSHALL,config|set,GET", "--threads", "2"])
        let client = try daemon.connect()
        #expect(try client.call("SET k v") == "+OK\r\n")
        for (line, name) in [("GET k", "get"), ("CONFIG SET timeout 1", "config|set"), ("FLUSHALL", "flushall")] {
            #expect(
                try client.call(line) == "-NOPERM the '\(name)' command is switched off (--disable-commands)\r\n")
        }
        #expect(try client.call("EXISTS k") == ":1\r\n")
        #expect(try daemon.stop() == .exited(0))
    }

    @Test func optionsTakeEffect() throws {
        let daemon = try DaemonProcess([
            "--policy=90", "--durability", "always", "--threads", "3", "--max-clients", "7", "--log-level", "debug",
        ])
        let client = try daemon.connect()
        let info = try client.call("INFO")
        for field in ["default_policy:every:90", "durability:always", "maxclients:7", "io_threads_active:1"] {
            #expect(info.contains("\(field)\r\n"), "\(field)")
        }
        #expect(try client.call("SET k v") == "+OK\r\n")
        #expect(["90", "89"].map { ":\($0)\r\n" }.contains(try client.call("TTL k")))
        #expect(try daemon.stop() == .exited(0))
    }

    /// One line per event, with time, level and message; the policy of new databases among the first.
    @Test func theLog() throws {
        let daemon = try DaemonProcess()
        let client = try daemon.connect()
        #expect(try client.call("SET k v") == "+OK\r\n")
        client.close()
        #expect(try daemon.stop() == .exited(0))
        let lines = daemon.process.errors.split(separator: "\n")
        for line in lines {
            let words = line.split(separator: " ", maxSplits: 2)
            #expect(words.count == 3 && words[0].count == 24 && words[0].hasSuffix("Z"), "\(line)")
            #expect(["debug", "info", "warning", "error"].contains(words[1]), "\(line)")
        }
        let messages = lines.map { $0.split(separator: " ", maxSplits: 2).last.map(String.init) ?? "" }
        #expect(
            messages == [
                "larderd \(Version.text) ready: socket \(daemon.socketPath), larder \(daemon.larder), durability "
                    + "everysecond, 1 event loop(s)",
                "new databases get the policy 'lowest' (--policy): entries are not kept longer unless they or their "
                    + "database have another policy",
                "the larder may take all of the disk (--max-disk none)",
                "created database '0', policy lowest", "stopping: SIGTERM", "stopped",
            ])
        #expect(daemon.process.output == "")
    }

    /// Who starts a daemon may have blocked the signals that stop it.
    @Test func signalsThatWereBlockedStopToo() throws {
        let daemon = try DaemonProcess(wrapper: ["env", "--block-signal=TERM"])
        #expect(try daemon.stop() == .exited(0))
    }

    @Test(arguments: [15, 2] as [Int32]) func signalsStop(_ signal: Int32) throws {
        let place = try TemporaryDirectory(inMemory: true)
        let daemon = try DaemonProcess(in: place)
        let client = try daemon.connect()
        try client.send((0..<1000).flatMap { encodeRequest("SET k\($0) v") })
        _ = try client.receive(1000)
        daemon.process.send(signal: signal)
        #expect(try daemon.process.waitForExit() == .exited(0))
        #expect(try client.receiveToEnd().isEmpty)
        let again = try DaemonProcess(in: place)
        #expect(try again.connect().call("DBSIZE") == ":1000\r\n")
    }
}
