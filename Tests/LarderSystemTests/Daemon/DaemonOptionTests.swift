import LarderServer
import LarderTestSupport
import LarderVocabulary
import Testing

@Suite struct DaemonOptionTests {
    /// The help text. Users see it first, so change it only on purpose.
    private static let help = """
        larderd \(Version.text): serves a larder, a cache that this machine's processes share, over a Unix-domain socket.

        usage: larderd [options]
               larderd --purge[=NAME] | --purge-expired [--dir PATH]
               larderd --check[=NAME] [--repair] [--dir PATH]

          --config FILE      also read options from this file: lines `name = value`, with the names in this list
                             without the dashes; the command line takes precedence. With a minus before the path, as in
                             --config=-/etc/larder/larderd.conf, the file may be missing. SIGHUP reloads it
          --check-config     check the configuration file and the command line, print all errors and exit; 0 if there are none

          --dir PATH         the larder's directory; created with mode 0700 if it is missing
                             (default: /var/cache/larder for root, else $XDG_CACHE_HOME/larder, else ~/.cache/larder)
          --socket PATH      the socket to listen on
                             (default: $LARDER_SOCKET, else /run/larder/larder.sock for root,
                             else $XDG_RUNTIME_DIR/larder/larder.sock, else /tmp/larder-UID/larder.sock)
          --socket-mode MODE the mode of the socket, as for chmod (default: 600, and 660 with --socket-group)
          --socket-group GROUP
                             the group of the socket, and of its directory if that is created: a name or a number
          --policy POLICY    how long entries of new databases stay fresh: highest (10 s), high (1 min),
                             middle (1 h), low (24 h), lowest (7 days), never, or a TIME: seconds, or 90s, 15m
                             (default: lowest); existing databases keep their policy
          --durability LEVEL what an acknowledged write survives: os (a crash of the daemon), everysecond
                             (fsync at least once a second), always (fsync before the reply)
                             (default: everysecond)
          --memory BYTES     memory of larderd, such as 256M: at least half of it for hot entries; 0 for none of them.
                             A checkpoint begins when entries that are not in LevelDB take half of it, or 32M
                             (default: a 16th of the machine's or container's, from 16M to 512M)
          --max-disk BYTES   limit for all files of the larder, at least 16M; a full budget, or a full file system,
                             evicts the least valuable entries. Files can exceed it briefly by one checkpoint and one
                             compaction: 1/32 of the limit, and 26 to 52 MiB (docs/Limits.md);
                             0 or none for no limit (default: a tenth of the file system, from 16M to 8G)
          --max-change-log BYTES
                             memory for the latest changes of databases with followers (CHANGES); a follower that falls
                             behind by more starts with a full pass; at least 4K (default: 32M)
          --checkpoint BYTES size of the journal that starts a checkpoint, which writes entries to the databases;
                             a smaller one saves disk and memory; below 1M (tests), writers wait; from 1K (default: 64M)
          --threads N        event loops, 1 to 64 (default: 1)
          --max-clients N    maximum open connections (default: 10000); fewer if the limit of open descriptors
                             (ulimit -n) leaves too few for the larder's files, which is logged
          --max-databases N  databases in the larder (default: 64)
          --notify-keyspace-events FLAGS
                             keyspace events to publish, as in Redis: K, E or both, and A or some of
                             g $ x e n (default: none)
          --max-tracked-keys N
                             maximum keys tracked for all clients with CLIENT TRACKING (default: 1000000)
          --max-subscriber-output BYTES
                             disconnects a subscriber with more bytes of unread messages (default: 32M),
                             or with more than a quarter of that for one minute
          --max-output BYTES unread output of all clients together; 0 for no limit. Above it, those with the most
                             are disconnected (default: an eighth of the machine's memory, at least 1G)
          --max-reply BYTES  total size of the values of one MGET (default: 512M)
          --max-transaction BYTES
                             size of the commands between MULTI and EXEC, per connection (default: 64M)
          --script-time-limit TIME
                             how long a script may run before it is stopped without effect: milliseconds, or
                             5s (default: 5000)
          --query-scan N     entries that a QUERY may examine without an index (default: 100000)
          --query-time-limit TIME
                             how long a QUERY may run before it fails: milliseconds, or 5s (default: 10000)
          --max-script-memory BYTES
                             the memory of one script's interpreter (default: 64M)
          --max-scripts BYTES
                             total size of the scripts cached for EVALSHA (default: 16M)
          --max-watched-keys N
                             maximum keys that one connection may WATCH (default: 10000)
          --max-leases N     maximum leases of one connection; 100000 for all connections (default: 10000)
          --max-subscriptions BYTES
                             size of the channel names that one connection subscribes to (default: 16M)
          --reply-timeout TIME
                             how long a client may leave replies unread before it is disconnected: seconds, or 5m
                             (default: 60)
          --password-file PATH
                             the first line of the file is the password for AUTH (default: none)
          --disable-commands NAMES
                             commands disabled for all users, separated by commas: FLUSHALL,CONFIG|SET;
                             they return NOPERM, also in scripts (default: none)
          --enable-debug     allow the command DEBUG
          --origin-limit TIME
                             how long a command waits for the origin of its database: milliseconds, or 2s
                             (default: 2000)
          --origin-heartbeat TIME
                             interval of heartbeats to each server of an origin: milliseconds, or 1s. Together with
                             --origin-heartbeat-limit, it bounds how long a value may be read after a newer one was
                             acknowledged elsewhere (default: 250)
          --origin-heartbeat-limit TIME
                             how long a heartbeat's reply may take; then the server's invalidations are considered lost:
                             milliseconds, or 1s (default: 500)
          --origin-patience TIME
                             how long FETCH, and with STALE also reads such as GET, wait for a slow origin before they
                             return a stale value: milliseconds, or 1s; 0: until the origin has failed (default: 0)
          --max-origin-keys N
                             maximum tracked entries per database with an origin;
                             others are requested at each read (default: 1000000)
          --allow-uid USER=LEVEL[@DATABASE]
                             rights of a user, by name or number: LEVEL is read, write (and read) or administer (all),
                             in one database or in all. Separate rules by commas or spaces, or repeat the option.
                             With any rule, other users have no rights; root and the daemon's user have all rights
                             (default: no rules: any user who can connect has all rights)
          --allow-gid GROUP=LEVEL[@DATABASE]
                             rights of a group: users with it as primary or supplementary group
          --rights KIND:NAME=LEVEL[@DATABASE]
                             rights of users and groups: user:alice=write@shop group:staff=read
          --timeout TIME     close connections that send nothing for this long: seconds, or 5m; 0 for never (default: 0)
          --slowlog-log-slower-than TIME
                             record slower commands: microseconds, or 10ms; -1 for none (default: 10000)
          --slowlog-max-len N
                             commands that SLOWLOG keeps (default: 128)
          --latency-monitor-threshold TIME
                             record longer events: milliseconds, or 1s; 0 for none (default: 0)
          --log-level LEVEL  debug, info, warning or error; one line per event on standard error
                             (default: info)
          --log-format FORMAT
                             text: `time level message`; systemd: with systemd's priorities, such as <6>, and without the
                             time; json: an object in each line; auto: systemd if standard error goes to its journal,
                             else text (default: auto)

          --purge            remove all entries of all databases, then exit; policies are kept
          --purge=NAME       remove all entries of one database, then exit
          --purge-expired    remove the expired entries of all databases, then exit;
                             a purge is sent to the daemon that has the larder open, or else works directly on
                             the files. It prints the number of removed entries.

          --check            check all files of a larder that no daemon has open, print one line per problem, and
                             exit without changes. With --log-format json: one JSON object. For a running daemon:
                             larderctl check
          --check=NAME       check one database, or LEDGER, and the files that all databases share
          --repair           with --check: also salvage damaged databases and the journal, as at a start, complete
                             indexes, and check again; the damaged files are kept below DAMAGED

          -h, --help         print this help
          -V, --version      print the version

        BYTES: a number, optionally with K, M, G or T, powers of 1024: 64M, 64mb and 64MiB are the same.
        TIME: a number, optionally with us, ms, s, m, h or d: 250ms, 90s and 5m.

        SIGTERM, SIGINT and SIGHUP stop the daemon: it completes the received requests, commits and syncs.
        With --config, SIGHUP reloads the file instead; options that need a restart are logged.
        During shutdown, further SIGTERM and SIGHUP are ignored; a second SIGINT exits immediately, which is as safe as
        kill -9. Without --config, SIGHUP is ignored if it was ignored when the daemon was started, as with nohup.
        SIGUSR1 and SIGUSR2 are ignored.

        exit codes:
          0  success
          1  error of the larder, the socket's directory or the disk
          2  wrong usage, an error in the configuration file, or a check of a directory that is not a larder
          3  the larder or the socket is in use by another process
          4  the database does not exist
          8  --check: problems found
          9  --check --repair: problems found and repaired
          10  --check: not everything could be checked

        """

    private static let oneAction =
        "only one of --purge, --purge=NAME, --purge-expired, --check, --check=NAME and --check-config can be given"

    @Test func helpAndVersionArePrinted() throws {
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
        "highest, high, middle, low, lowest, never, or a number of seconds, also with a fraction, or one followed by us, ms, s, sec, "
        + "m, min, h or d, such as 250ms, 90s, 15m or 1h; at least 1ms"

    @Test(
        "each wrong option is explained",
        arguments: [
            (["--bad"], "unknown option --bad"),
            (["--bad=1"], "unknown option --bad"),
            (
                ["--max-watched-deadlines", "5"],
                "--max-watched-deadlines was removed: there is no limit any more, so delete it"
            ),
            (["-x"], "unknown option -x"),
            (["--memroy=1"], "unknown option --memroy; did you mean --memory?"),
            (["serve"], "unexpected word 'serve': larderd takes only options"),
            ([""], "unexpected word '': larderd takes only options"),
            (["--dir"], "--dir needs a value: --dir PATH"),
            (["--dir", ""], "--dir needs a path"),
            (["--socket="], "--socket needs a path"),
            (["--policy", "often"], "--policy often: must be \(Self.policies)"),
            (["--policy=0"], "--policy 0: must be \(Self.policies)"),
            (
                ["--max-disk", "8M"],
                "--max-disk 8M: must be a number of bytes, or one followed by K, M, G or T, such as 64M, 64Mi or 64MiB, "
                    + "at least 16M; or 0 or none for no limit"
            ),
            (
                ["--reply-timeout", "5x"],
                "--reply-timeout 5x: must be a number of seconds, or one followed by us, ms, s, sec, m, min, h or d, such as "
                    + "250ms, 90s, 15m or 1h, from 1 to 86400"
            ),
            (["--durability", "maybe"], "--durability maybe: must be one of os, everysecond, always"),
            (["--threads", "0"], "--threads 0: must be a number from 1 to 64"),
            (["--threads", "65"], "--threads 65: must be a number from 1 to 64"),
            (["--threads", "99999999999999999999"], "--threads 99999999999999999999: must be a number from 1 to 64"),
            (["--max-clients", "x"], "--max-clients x: must be a number from 1 to 1000000"),
            (
                ["--checkpoint", "often"],
                "--checkpoint often: must be a number of bytes, or one followed by K, M, G or T, such as 64M, 64Mi or 64MiB, "
                    + "from 1024 to 1T"
            ),
            (
                ["--checkpoint", "1023"],
                "--checkpoint 1023: must be a number of bytes, or one followed by K, M, G or T, such as 64M, 64Mi or 64MiB, "
                    + "from 1024 to 1T"
            ),
            (
                ["--checkpoint", "0"],
                "--checkpoint 0: must be a number of bytes, or one followed by K, M, G or T, such as 64M, 64Mi or 64MiB, "
                    + "from 1024 to 1T"
            ),
            (
                ["--memory", "lots"],
                "--memory lots: must be a number of bytes, or one followed by K, M, G or T, such as 64M, 64Mi or 64MiB, up to 1T"
            ),
            (
                ["--memory=8192G"],
                "--memory 8192G: must be a number of bytes, or one followed by K, M, G or T, such as 64M, 64Mi or 64MiB, up to 1T"
            ),
            (
                ["--max-reply", "1.5G"],
                "--max-reply 1.5G: must be a number of bytes, or one followed by K, M, G or T, such as 64M, 64Mi or 64MiB, up to 1T"
            ),
            (["--max-databases", "0"], "--max-databases 0: must be a number from 1 to 10000"),
            (
                ["--disable-commands", "flushal"],
                "--disable-commands: there is no command 'flushal'; did you mean flushall?"
            ),
            (["--log-level", "loud"], "--log-level loud: must be one of debug, info, warning, error"),
            (
                ["--disable-commands", "flushal,get,nothing"],
                "--disable-commands: there is no command 'flushal'; did you mean flushall?; there is no command 'nothing'"
            ),
            (
                ["--rights", "user:root=rite,root=read,user:root=read"],
                "--rights: user:root=rite: LEVEL is read, write or administer, not 'rite'; did you mean write?; "
                    + "root=read: it must start with user: or group:"
            ),
            (["--help=yes"], "--help takes no value"),
            (["--purge-expired=a"], "--purge-expired takes no value"),
            (["--purge", "--purge-expired"], oneAction),
            (["--purge=a", "--purge=b"], oneAction),
            (
                ["--purge=A/B"],
                "--purge=A/B: not a database name: a name has 1 to 64 characters of a-z, 0-9, '.', '_' and '-', begins "
                    + "with a letter, a digit or '_', and is 0 to 15 if it is a number"
            ),
        ])
    func wrongUsage(_ arguments: [String], _ message: String) throws {
        let (end, output, errors) = try DaemonProcess.run(arguments)
        #expect(end == .exited(2))
        #expect(output == "")
        #expect(errors == "larderd: \(message)\nTry: larderd --help\n")
    }

    /// One run reports all errors, each with its position, but none that merely results from another error.
    @Test func allOptionErrorsAreReportedTogether() throws {
        let words = [
            "--threads", "99", "--memroy", "5M", "serve", "--bad=1", "--help=no", "--check=A/B", "--repair", "--policy",
            "often",
            "--dir=", "--config",
        ]
        // Without HOME there is no default directory. This is not reported, because --dir is given, although with an
        // error.
        let (end, output, errors) = try DaemonProcess.run(words)
        #expect(end == .exited(2) && output == "")
        let beginnings = [
            "larderd: --threads 99: must be a number", "larderd: unknown option --memroy; did you mean --memory?",
            "larderd: unexpected word 'serve'", "larderd: unknown option --bad", "larderd: --help takes no value",
            "larderd: --check=A/B: not a database name", "larderd: --policy often: must be",
            "larderd: --dir needs a path",
            "larderd: --config needs a value", "Try: larderd --help",
        ]
        let lines = errors.split(separator: "\n")
        #expect(lines.count == beginnings.count, "\(errors)")
        for (line, beginning) in zip(lines, beginnings) { #expect(line.hasPrefix(beginning), "\(line)") }
    }

    @Test func commandsCanBeDisabled() throws {
        let daemon = try DaemonProcess(["--disable-commands", "FLUSHALL,config|set,GET", "--threads", "2"])
        let client = try daemon.connect()
        #expect(try client.call("SET k v") == "+OK\r\n")
        for (line, name) in [("GET k", "get"), ("CONFIG SET timeout 1", "config|set"), ("FLUSHALL", "flushall")] {
            #expect(
                try client.call(line) == "-NOPERM the '\(name)' command is disabled (--disable-commands)\r\n")
        }
        #expect(try client.call("EXISTS k") == ":1\r\n")
        #expect(try daemon.stop() == .exited(0))
    }

    @Test("options are shown by INFO and take effect") func optionsTakeEffect() throws {
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

    /// The log has one line per event, with time, level and message. One of the first lines is the policy of new
    /// databases.
    @Test("the log has one line per event, with time, level and message") func theLog() throws {
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
                    + "everysecond, 1 event loop",
                "new databases get the policy 'lowest' (--policy): entries are not kept longer unless they or their "
                    + "database have another policy",
                "the larder may take all of the disk (--max-disk none)",
                "created database '0', policy lowest", "stopping: SIGTERM", "writing the last checkpoint",
                "stopped",
            ])
        #expect(daemon.process.output == "")
    }

    /// The process that starts a daemon may have blocked the signals that stop the daemon.
    @Test("signals that the parent has blocked stop the daemon too") func signalsThatWereBlockedStopToo() throws {
        let daemon = try DaemonProcess(wrapper: ["env", "--block-signal=TERM"])
        #expect(try daemon.stop() == .exited(0))
    }

    @Test("SIGTERM and SIGINT stop the daemon without data loss", arguments: [15, 2] as [Int32]) func signalsStop(
        _ signal: Int32
    ) throws {
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
