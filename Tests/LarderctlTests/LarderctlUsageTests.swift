import LarderPlatform
import LarderTestSupport
import Testing

/// Tests of the output for a wrong command line, for a missing daemon, and for the help.
@Suite struct LarderctlUsageTests {
    private static let seconds =
        "a number of seconds, also with a fraction, or one followed by us, ms, s, sec, m, min, h or d, such as 250ms, "
        + "90s, 15m or 1h"

    @Test(arguments: [
        (["gte", "k"], "'gte' is neither a verb nor a command; did you mean get?\n(see: larderctl help)"),
        (["STLREN", "k"], "'STLREN' is neither a verb nor a command; did you mean STRLEN?\n(see: larderctl help)"),
        (["-s", "/s"], "unknown option -s (of redis-cli): --socket PATH\n(see: larderctl help)"),
        (
            ["limit", "64M"],
            "missing database name: larderctl limit NAME 64M (if 64M is the name of a database: larderctl limit "
                + "--database 64M)\n(see: larderctl help limit)"
        ),
        (
            ["limit", "1.5g"],
            "missing database name: larderctl limit NAME 1.5g (if 1.5g is the name of a database: larderctl limit "
                + "--database 1.5g)\n(see: larderctl help limit)"
        ),
        (
            ["limit", "none"],
            "missing database name: larderctl limit NAME none (if none is the name of a database: larderctl "
                + "limit --database none)\n(see: larderctl help limit)"
        ),
        (
            ["get x"],
            "'get x' is neither a verb nor a command; did you mean get and its arguments, as separate words?\n"
                + "(see: larderctl help)"
        ),
        (["NOSUCH"], "'NOSUCH' is neither a verb nor a command\n(see: larderctl help)"),
        (
            ["stats", "--watch=0.05"],
            "--watch 0.05: must be \(Self.seconds), from 0.1 to 3600\n(see: larderctl help stats)"
        ),
        (
            ["top", "--interval", "2h"],
            "--interval 2h: must be \(Self.seconds), from 0.1 to 3600\n(see: larderctl help top)"
        ),
        (
            ["verify", "/nonexistent"],
            "/nonexistent is neither a backup nor a directory of backups\n(see: larderctl help verify)"
        ),
        (
            ["restore", "/nonexistent", "/nonexistent/r"],
            "/nonexistent is neither a backup nor a directory of backups\n(see: larderctl help restore)"
        ),
        (["zzzzzz"], "'zzzzzz' is neither a verb nor a command\n(see: larderctl help)"),
        (["get"], "too few arguments: larderctl get KEY\n(see: larderctl help get)"),
        (["get", "a", "b"], "too many arguments: larderctl get KEY\n(see: larderctl help get)"),
        (["--jsn", "ping"], "unknown option --jsn; did you mean --json?\n(see: larderctl help)"),
        (
            ["set", "k", "--v"],
            "unknown option --v (if it is a key or a value, put -- before it)\n(see: larderctl help set)"
        ),
        (["--socket"], "--socket needs a value: --socket PATH\n(see: larderctl help)"),
        (["--socket=", "ping"], "--socket needs a value that is text and not empty\n(see: larderctl help)"),
        (["--json=yes", "ping"], "--json takes no value\n(see: larderctl help)"),
        (
            ["--timeout", "soon", "ping"],
            "--timeout soon: must be 0 for no limit, or a number of milliseconds, or one followed by us, ms, s, sec, m, min, "
                + "h or d, such as 250ms, 90s, 15m or 1h, from 0 to 86400000\n(see: larderctl help)"
        ),
        (
            ["set", "k", "v", "--policy", "often"],
            "'often' is not a policy: use highest, high, middle, low, lowest, never, "
                + "or \(Self.seconds); at least 1ms\n(see: larderctl help set)"
        ),
        (
            ["policy", "often"],
            "'often' is not a policy: use highest, high, middle, low, lowest, never, "
                + "or \(Self.seconds); at least 1ms\n(see: larderctl help policy)"
        ),
        (
            ["set", "k", "v", "--ttl", "low"],
            "--ttl low: must be \(Self.seconds), from 0.001 to 9000000000\n(see: larderctl help set)"
        ),
        (
            ["set", "k", "v", "--ttl", ""],
            "--ttl '': must be \(Self.seconds), from 0.001 to 9000000000\n(see: larderctl help set)"
        ),
        (
            ["completion", "bash", "zsh"],
            "too many arguments: larderctl completion SHELL\n(see: larderctl help completion)"
        ),
        (
            ["set", "k", "v", "--ttl", "5", "--policy", "low"],
            "--policy and --ttl cannot be combined\n(see: larderctl help set)"
        ),
        (
            ["set", "k", "v", "--file", "f"],
            "the value is given twice: as an argument and with --file\n(see: larderctl help set)"
        ),
        (
            ["purge", "--prefix", ""],
            "--prefix is empty; to purge the whole database, omit it\n(see: larderctl help purge)"
        ),
        (
            ["purge", "--prefix", "a", "--expired"],
            "--expired and --prefix cannot be combined\n(see: larderctl help purge)"
        ),
        (
            ["PSUBSCRIBE", "news"],
            "PSUBSCRIBE cannot be sent from here: larderctl would exit before its later output; use larderctl shell\n"
                + "(see: larderctl help)"
        ),
        (
            ["SELECT", "5"],
            "SELECT cannot be sent from here: each call of larderctl uses a new connection; use "
                + "--database NAME\n(see: larderctl help)"
        ),
        (
            ["client", "reply", "off"],
            "CLIENT cannot be sent from here: each call of larderctl uses a new connection\n"
                + "(see: larderctl help)"
        ),
        (
            ["--password-file", "/dev/null", "ping"],
            "--password-file /dev/null: the first line must be the password, but is empty or not UTF-8\n"
                + "(see: larderctl help)"
        ),
        (
            ["help", "frobnicate"],
            "no help on 'frobnicate': it is neither a verb nor a command\n(see: larderctl help)"
        ),
        (
            ["help", "PUBSUB", "frobnicate"],
            "no help on 'PUBSUB frobnicate'; PUBSUB has PUBSUB CHANNELS, PUBSUB NUMSUB, PUBSUB NUMPAT, "
                + "PUBSUB SHARDCHANNELS, PUBSUB SHARDNUMSUB, PUBSUB HELP\n(see: larderctl help)"
        ),
    ])
    func wrongCommandLinesExitWithTwoAndSuggestACorrection(words: [String], message: String) throws {
        let larderctl = Larderctl(socketPath: "/nonexistent/socket")
        let result = try larderctl.run(words)
        #expect(result.errors == "larderctl: \(message)\n")
        #expect(result.exitCode == 2)
        #expect(result.output.isEmpty)
    }

    @Test func withoutAVerbTheUsageIsShown() throws {
        let result = try Larderctl(socketPath: nil)()
        #expect(result.exitCode == 2)
        #expect(
            result.errors.hasPrefix(
                "larderctl: missing verb; for commands on standard input: larderctl shell\n"
                    + "usage: larderctl [OPTION…] VERB"))
    }

    @Test func thePasswordIsReadFromAFile() throws {
        let directory = try TemporaryDirectory(inMemory: true)
        let right = try directory.makeFile("right", Array("open sesame\r\nmore\n".utf8))
        let wrong = try directory.makeFile("wrong", Array("sesame".utf8))
        let daemon = try DaemonProcess(["--password-file", right])
        let larderctl = Larderctl(socketPath: daemon.socketPath)
        #expect(try larderctl("ping", "--password-file", right).text == "PONG\n")
        #expect(try larderctl("--password-file", right, "SET", "k", "v").text == "OK\n")
        for words in [["ping"], ["--password-file", wrong, "ping"]] {
            let result = try larderctl.run(words)
            #expect(result.exitCode == 4)
            #expect(result.errors.contains("NOAUTH") || result.errors.contains("WRONGPASS"))
        }
        let missing = try larderctl("--password-file", directory.path + "/none", "ping")
        #expect(missing.exitCode == 5 && missing.errors.contains("could not be opened"))
    }

    @Test func withoutADaemonTheExitCodeIsThree() throws {
        let larderctl = Larderctl(socketPath: nil)
        let result = try larderctl("--socket", "/nonexistent/socket", "get", "k")
        #expect(result.exitCode == 3)
        #expect(
            result.errors
                == "larderctl: no daemon answers at /nonexistent/socket: "
                + "start one with: larderd --socket /nonexistent/socket\n")
        #expect(try larderctl("ping", "--socket", "/nonexistent/socket").exitCode == 3)
        #expect(try larderctl("--socket", "/nonexistent/socket", "GET", "k").exitCode == 3)
    }

    @Test func anInvalidSocketPathExitsWithTwo() throws {
        let result = try Larderctl(socketPath: nil)("ping", "--socket", "/" + String(repeating: "x", count: 200))
        #expect(result.exitCode == 2)
        #expect(result.errors.hasPrefix("larderctl: the socket's path has 201 bytes, and at most 1"))
    }

    @Test func aSilentDaemonExitsWithThree() throws {
        let server = try FakeServer { $0.name == "HELLO" ? .standard : .nothing }
        defer { server.stop() }
        let result = try Larderctl(socketPath: server.path)("--timeout", "20", "ping")
        #expect(result.exitCode == 3)
        #expect(result.errors == "larderctl: the daemon at \(server.path) did not answer within 20 ms\n")
    }

    /// These calls may take any time, but only while the daemon answers other commands within the time limit.
    @Test("long calls end when the daemon hangs", .timeLimit(.minutes(5)), arguments: [["check"], ["backup", "/b"]])
    func longCallsEndWhenTheDaemonHangs(_ words: [String]) throws {
        let daemon = try DaemonProcess()
        #expect(kill(daemon.process.pid, SIGSTOP) == 0)
        let stopped = try Larderctl(socketPath: daemon.socketPath).run(["--timeout", "200"] + words)
        #expect(kill(daemon.process.pid, SIGCONT) == 0)
        #expect(stopped.exitCode == 3 && stopped.errors.contains("did not answer within 200 ms"), "\(stopped)")

        let pings = Guarded(0)
        let server = try FakeServer { request in
            guard request.name == "PING" else { return request.name == "HELLO" ? .standard : .nothing }
            return pings.with {
                $0 += 1
                return $0 <= 2 ? .text("+PONG\r\n") : .nothing
            }
        }
        defer { server.stop() }
        let hanging = try Larderctl(socketPath: server.path).run(["--timeout", "200"] + words)
        #expect(hanging.exitCode == 3 && hanging.errors.contains("did not answer within 200 ms"), "\(hanging)")
        #expect(pings.value == 3, "the call outlives the time limit while the daemon answers")
    }

    @Test func aServerOfAnotherProtocolExitsWithThree() throws {
        let server = try FakeServer { _ in .last(Array("220 mail ready\r\n".utf8)) }
        defer { server.stop() }
        let result = try Larderctl(socketPath: server.path)("ping")
        #expect(result.exitCode == 3)
        #expect(result.errors.contains("does not use larderd's protocol"))
    }

    @Test func anErrorOfTheDaemonExitsWithFour() throws {
        let server = try FakeServer { $0.name == "GET" ? .text("-LOADING not yet\r\n") : .standard }
        defer { server.stop() }
        let result = try Larderctl(socketPath: server.path)("get", "k")
        #expect(result.exitCode == 4)
        #expect(result.errors == "larderctl: LOADING not yet\n")
    }

    @Test func shutdownSucceedsWithoutAReply() throws {
        let server = try FakeServer { $0.name == "SHUTDOWN" ? .last([]) : .standard }
        defer { server.stop() }
        let result = try Larderctl(socketPath: server.path)("SHUTDOWN")
        #expect(result.exitCode == 0)
        #expect(result.text == "OK\n")
    }

    @Test func anUnreadableFileExitsWithFive() throws {
        let result = try Larderctl(socketPath: nil)("set", "k", "--file", "/nonexistent/file")
        #expect(result.exitCode == 5)
        #expect(result.errors == "larderctl: /nonexistent/file could not be opened: No such file or directory\n")
        #expect(try Larderctl(socketPath: nil)("set", "k", "--file", "/").exitCode == 5)
    }

    #if os(Linux)
        @Test func aFullDiskExitsWithFive() throws {
            let server = try FakeLarder.server()
            defer { server.stop() }
            let ping = [Array("ping".utf8)]
            #expect(try Larderctl(socketPath: server.path).run(ping, outputPath: "/dev/full").exitCode == 5)
        }
    #endif

    @Test func wordsAfterTwoHyphensAreNotOptions() throws {
        let server = try FakeLarder.server()
        defer { server.stop() }
        let larderctl = Larderctl(socketPath: server.path)
        #expect(try larderctl("set", "--", "--json", "-h").exitCode == 0)
        #expect(try larderctl("get", "--", "--json").text == "-h")
        #expect(try larderctl("set", "-5", "-6").exitCode == 0)
        #expect(server.requests.last == ["SET", "-5", "-6"])
    }

    @Test func subcommandsHaveHelp() throws {
        let larderctl = Larderctl(socketPath: nil)
        let help = try larderctl("help", "client", "tracking")
        #expect(help.exitCode == 0 && help.text.hasPrefix("usage: larderctl [OPTION…] CLIENT TRACKING "))
        let client = try larderctl("help", "CLIENT").text
        #expect(try larderctl("help", "CLIENT TRACKING").text == help.text)
        #expect(try larderctl("help", "query live").text == larderctl("help", "query").text)
        #expect(client.contains("\nSubcommands (larderctl help CLIENT SUBCOMMAND):\n  ID GETNAME "))
        #expect(client.split(separator: "\n").allSatisfy { $0.count <= 120 })
    }

    @Test func helpOfEditHasAnExample() throws {
        let help = try Larderctl(socketPath: nil)("edit", "--help")
        #expect(help.exitCode == 0 && help.text.contains("\nExample: EDIT user:7 SET name '\"Ann\"' INCR visits 1 "))
        // This does not count the key `--help`.
        #expect(try Larderctl(socketPath: nil)("incr", "--help").text.hasPrefix("usage: larderctl [OPTION…] INCR key"))
        let subcommand = try Larderctl(socketPath: nil)("script", "load", "--help")
        #expect(subcommand.text.hasPrefix("usage: larderctl [OPTION…] SCRIPT LOAD "))
    }

    /// If a verb and a command have the same name, the help of each mentions the other, and whether both do the same.
    @Test(arguments: [("watch", "does something else"), ("restore", "does something else"), ("get", "can do more")])
    func helpOfAVerbMentionsTheCommandOfTheSameName(_ verb: String, _ relation: String) throws {
        let larderctl = Larderctl(socketPath: "/nonexistent/socket")
        let (lower, upper) = (try larderctl("help", verb).text, try larderctl("help", verb.uppercased()).text)
        #expect(lower.hasPrefix("usage: larderctl [OPTION…] \(verb) "))
        #expect(
            lower.hasSuffix("\nThe daemon's command with this name \(relation): larderctl help \(verb.uppercased())\n"))
        #expect(upper.hasPrefix("usage: larderctl [OPTION…] \(verb.uppercased()) "))
        #expect(upper.contains("\nThe verb with this name: larderctl help \(verb) ("))
    }

    @Test("version and help are printed") func versionAndHelp() throws {
        let larderctl = Larderctl(socketPath: nil)
        #expect(try larderctl("--version").text.hasPrefix("larderctl "))
        #expect(try larderctl("-V").text == larderctl("--version").text)
        let overview = try larderctl("help")
        #expect(overview.exitCode == 0)
        #expect(try larderctl("--help").text == overview.text)
        #expect(try larderctl("-h").text == overview.text)
        let verbs = [
            "get", "set", "del", "ttl", "meta", "keys", "policy", "limit", "databases", "stats", "purge", "ping",
        ]
        for verb in verbs {
            #expect(overview.text.contains("\n  \(verb) "))
            let help = try larderctl("help", verb)
            #expect(help.exitCode == 0)
            #expect(help.text.hasPrefix("usage: larderctl [OPTION…] \(verb)"))
            #expect(try larderctl(verb, "--help").text == help.text)
            #expect(try larderctl("--help", verb).text == help.text)
        }
        #expect(overview.text.split(separator: "\n").allSatisfy { $0.count <= 120 })
    }
}
