import LarderPlatform
import LarderTestSupport
import Testing

@testable import larderctl

/// Tests of the shell, with commands from standard input and on a terminal.
@Suite struct LarderctlShellTests {
    private func daemon() throws -> (DaemonProcess, Larderctl) {
        let daemon = try DaemonProcess()
        return (daemon, Larderctl(socketPath: daemon.socketPath))
    }

    // MARK: Standard input

    private func run(_ larderctl: Larderctl, _ options: [String] = [], _ lines: String) throws -> Larderctl.Result {
        try larderctl.run(options + ["shell"], input: Array(lines.utf8))
    }

    @Test func shellLinesRunOnOneConnection() throws {
        let (daemon, larderctl) = try daemon()
        let result = try run(
            larderctl, [],
            "SET 'a b' \"x\\ty\"\nget \"a b\"\n\n# a note\nGET none\nSELECT shop\nMULTI\nINCR n\nEXEC\nDBSIZE\nMGET n none"
        )
        #expect(
            result.text == "OK\nx\ty\n\nOK\nOK\nQUEUED\n1\n1\n1\n(nil)\n" && result.exitCode == 0, "\(result)")
        let json = try run(larderctl, ["--json"], "GET \"a b\"\nGET none\nCLIENT INFO\nMGET a\nexit\nGET a\n").text
        let lines = json.split(separator: "\n")
        #expect(lines.count == 4 && lines[0] == #""x\ty""# && lines[1] == "null", "\(lines)")
        #expect(lines[2].hasPrefix(#"{"id":"#) && lines[3] == "[null]", "\(lines)")
        #expect(try run(larderctl, [], "").exitCode == 0)
        withExtendedLifetime(daemon) {}
    }

    @Test func anErrorEndsAShellScriptUnlessKeepGoingIsSet() throws {
        let (daemon, larderctl) = try daemon()
        let input = "SET k v\nINCR k\nSET k w\nGET \"k\nSUBSCRIBE a\nCLIENT REPLY OFF\nGET k\n"
        let ended = try run(larderctl, [], input)
        #expect(ended.text == "OK\n" && ended.exitCode == 1, "\(ended)")
        #expect(ended.errors == "larderctl: line 2: ERR value is not an integer or out of range\n")
        #expect(try larderctl("get", "k").text == "v")
        let wentOn = try larderctl.run(["shell", "--keep-going"], input: Array(input.utf8))
        #expect(wentOn.text == "OK\nOK\nw\n" && wentOn.exitCode == 1, "\(wentOn)")
        let starts = wentOn.errors.split(separator: "\n").map { String($0.prefix(18)) }
        #expect(starts == [2, 4, 5, 6].map { (line: Int) -> String in "larderctl: line \(line):" })
        let json = try run(larderctl, ["--json"], "GET a b\n")
        #expect(
            json.errors
                == #"{"error":{"code":"server","message":"ERR wrong number of arguments for 'get' command","exit":1,"line":1}}"#
                + "\n")
        daemon.kill()
        #expect(try run(larderctl, [], "PING\n").exitCode == 3)
    }

    /// Each line is run at once, so that its sender can wait for the result before it sends the next line.
    @Test("each line is run before the next one arrives") func shellLinesRunBeforeTheNextOneArrives() throws {
        let (daemon, larderctl) = try daemon()
        let script = """
            (echo SET flag 1; until "$0" get flag >/dev/null; do :; done; echo GET flag) | "$0" shell --keep-going
            """
        let child = try ChildProcess(
            "sh", ["-c", script, try DaemonProcess.program("larderctl")],
            environment: larderctl.environment + ["PATH=/usr/bin:/bin"])
        #expect(try child.waitForExit() == .exited(0))
        #expect(child.output == "OK\n1\n")
        withExtendedLifetime(daemon) {}
    }

    @Test func theShellExplainsAMissingPassword() throws {
        let directory = try TemporaryDirectory(inMemory: true)
        let path = try directory.makeFile("password", Array("secret\n".utf8))
        let daemon = try DaemonProcess(["--password-file", path])
        let larderctl = Larderctl(socketPath: daemon.socketPath)
        let refused = try run(larderctl, [], "PING\n")
        #expect(refused.exitCode == 4 && refused.errors.contains("--password-file PATH"), "\(refused)")
        #expect(refused.errors.contains("NOAUTH") && refused.errors.contains("REDISCLI_AUTH"), "\(refused)")
        #expect(try run(larderctl, ["--password-file", path], "PING\n").text == "PONG\n")
        // REDISCLI_AUTH contains the password. As with redis-cli, an explicit option takes precedence over it.
        let knowing = Larderctl(socketPath: daemon.socketPath, variables: ["REDISCLI_AUTH=secret"])
        #expect(try knowing("ping").exitCode == 0)
        let wrong = Larderctl(socketPath: daemon.socketPath, variables: ["REDISCLI_AUTH=other"])
        let denied = try wrong("get", "k")
        #expect(denied.exitCode == 4 && denied.errors.contains("WRONGPASS"), "\(denied)")
        #expect(try wrong("--password-file", path, "ping").exitCode == 0)
        // A daemon without a password accepts any password.
        let open = try DaemonProcess()
        #expect(try Larderctl(socketPath: open.socketPath, variables: ["REDISCLI_AUTH=other"])("ping").exitCode == 0)
    }

    /// Programs find the reply to a line by its number, even if the line was refused.
    @Test func eachShellLineGetsOneLineOfJSON() throws {
        let (daemon, larderctl) = try daemon()
        let lines = "GET a\nGET \"x\nNOSUCH\nSUBSCRIBE c\nCLIENT REPLY OFF\nPING\n"
        let result = try larderctl.run(["--json", "shell", "--keep-going"], input: Array(lines.utf8))
        let answers = result.text.split(separator: "\n")
        #expect(answers.count == 6 && result.exitCode == 1, "\(result)")
        #expect(answers.first == "null" && answers.last == "\"PONG\"")
        #expect(answers.dropFirst().dropLast().allSatisfy { $0.hasPrefix("{\"error\":\"") }, "\(answers)")
        #expect(result.errors.split(separator: "\n").count == 4)
        withExtendedLifetime(daemon) {}
    }

    @Test func repliesOfManyShellLinesAreInOrder() throws {
        let (daemon, larderctl) = try daemon()
        let count = 20_000
        let lines = (1...count).map { "INCR n\nSETRANGE big 0 \($0)\n" }.joined()
        let result = try larderctl.run(["shell", "--keep-going"], input: Array(lines.utf8))
        #expect(result.exitCode == 0)
        #expect(result.text == (1...count).map { "\($0)\n\("\($0)".count)\n" }.joined())
        withExtendedLifetime(daemon) {}
    }

    // MARK: Parts

    @Test func lineEditingRecognizesQuotedWords() {
        func line(_ text: String) -> [String] {
            let line = TypedLine(text)
            let all = line.words + (line.current.map { [$0] } ?? [])
            return all.map { String(decoding: $0, as: UTF8.self) } + ["\(line.currentLength)"]
        }
        #expect(line("") == ["", "0"])
        #expect(line("GE") == ["GE", "2"])
        #expect(line("GET ") == ["GET", "", "0"])
        #expect(line(#"SET "a b" 'c d"#) == ["SET", "a b", "c d", "4"])
        #expect(line(#"SET "a\" b"#) == ["SET", "a\" b", "6"])
        #expect(line("GET ä本") == ["GET", "ä本", "2"])
        #expect(TypedLine(#"GET "a\"#).current == nil)
        #expect(TypedLine.typed("a:1", isWhole: true) == "a:1 ")
        #expect(TypedLine.typed("a b", isWhole: false) == "\"a b")
        #expect(TypedLine.typed("a\"b\\ c", isWhole: true) == #""a\"b\\ c" "#)
        #expect(ShellCompletion.keywords("key [EX s | PX ms] [NX]").sorted() == ["EX", "NX", "PX"])
        #expect(TypedReply.quoted(Array("a\u{1B}[m\"\\".utf8) + [0xFF]) == #""a\x1b[m\"\\\xff""#)
    }

    @Test func linesWithPasswordsAreNotInTheHistory() {
        func keeps(_ line: String) -> Bool {
            ShellHistory.keeps(line, words: line.split(separator: " ").map { Array($0.utf8) })
        }
        #expect(keeps("GET a") && keeps("FROB x") && keeps("CONFIG SET maxclients 5") && keeps("HELLO 3"))
        #expect(!keeps("auth x") && !keeps("HELLO 3 AUTH a b") && !keeps("config set requirepass x") && !keeps(""))
        #expect(!ShellHistory.keeps("AUTH \"x", words: nil))
    }

    // MARK: A terminal

    #if os(Linux)
        private func session(_ larderctl: Larderctl, _ words: [String] = [], home: String, term: String = "xterm")
            throws
            -> TerminalSession
        {
            let environment = larderctl.environment + ["TERM=\(term)", "PATH=/usr/bin:/bin", "HOME=\(home)", "LANG=C"]
            return try TerminalSession(
                [try DaemonProcess.program("larderctl")] + words, width: 100, height: 30, environment: environment)
        }

        @Test("without arguments, a terminal gets the shell") func aTerminalGetsAShell() throws {
            let (daemon, larderctl) = try daemon()
            let home = try TemporaryDirectory(inMemory: true)
            let shell = try session(larderctl, home: home.path)
            try shell.wait(for: "larder:0> ")
            // Wait until the prompt is shown and keys are read.
            while !shell.isRaw { nap() }
            try shell.type("SET ä \"\\x1b[31m本\"\r", "\r\nOK\r\n", "larder:0> ")
            try shell.type("get ä\r", "\r\n\"\\x1b[31m本\"\r\n")
            try shell.type("MGET ä none\r", "\r\n1) \"", "\r\n2) (nil)\r\n", "larder:0> ")
            try shell.type("SELECT shop\r", "larder:shop> ")
            try shell.type("MULTI\r", "larder:shop(multi)> ")
            try shell.type("INCR n\r", "QUEUED\r\n")
            try shell.type("SELECT 3\r", "QUEUED\r\n", "larder:shop(multi)> ")
            try shell.type("EXEC\r", "1) (integer) 1\r\n2) OK\r\n", "larder:3> ")
            try shell.type("FROB\r", "(error) ERR unknown command 'FROB'")
            while !shell.isRaw { nap() }
            try shell.type("half a line", "half a line")
            try shell.type("\u{3}", "^C", "larder:3> ")
            try shell.type("help get\r", "usage: GET key\r\n")
            try shell.type("CLIENT TRACKING ON\r", "OK\r\n")
            try shell.type("GET a\r", "(nil)\r\n")
            try shell.type("SET a 1\r", "OK\r\n")
            try shell.type("PING\r", "-> 1) \"invalidate\"\r\n", "PONG\r\n")
            try shell.type("SUBSCRIBE news\r", "3) (integer) 1\r\n")
            #expect(try larderctl("PUBLISH", "news", "hello").text == "1\n")
            try shell.wait(for: "3) \"hello\"\r\n")
            try shell.type("\u{3}", "larder:3> ")
            try shell.type("AUTH secret\r", "(error) ERR ")
            while !shell.isRaw { nap() }
            try shell.type("\u{4}")
            #expect(try shell.waitForEnd() == .exited(0))
            #expect(!shell.isRaw)
            let history = home.path + "/.local/state/larder/history"
            let lines = String(decoding: try Files.read(history), as: UTF8.self).split(separator: "\n")
            #expect(lines.first == "SET ä \"\\x1b[31m本\"" && lines.last == "SUBSCRIBE news", "\(lines)")
            var status = stat()
            #expect(stat(history, &status) == 0 && status.st_mode & 0o777 == 0o600)
            // The next shell has the history.
            let next = try session(larderctl, ["shell"], home: home.path)
            try next.wait(for: "larder:0> ")
            try next.type(Array("\u{1B}[A\r".utf8))
            try next.wait(for: "3) (integer) 1\r\n")
            next.send(SIGTERM)
            #expect(try next.waitForEnd() == .killed(signal: SIGTERM))
            withExtendedLifetime(daemon) {}
        }

        @Test func aPasswordCanBeEnteredInTheShell() throws {
            let directory = try TemporaryDirectory(inMemory: true)
            let path = try directory.makeFile("password", Array("secret\n".utf8))
            let daemon = try DaemonProcess(["--password-file", path])
            let larderctl = Larderctl(socketPath: daemon.socketPath)
            let shell = try session(larderctl, ["--database", "shop"], home: directory.path)
            try shell.wait(for: "use AUTH PASSWORD.\r\n")
            try shell.wait(for: "larder> ")
            try shell.type("GET k\r", "(error) NOAUTH ", "larder> ")
            try shell.type("AUTH\r", "(error) usage: AUTH PASSWORD", "larder> ")
            try shell.type("AUTH other\r", "(error) WRONGPASS ", "larder> ")
            try shell.type("AUTH secret\r", "\r\nOK\r\n", "larder:shop> ")
            try shell.type("SET k v\r", "OK\r\n", "larder:shop> ")
            // Completion with Tab uses the password, too.
            try shell.type("GET \t\r", "\"v\"\r\n", "larder:shop> ")
            try shell.type("quit\r")
            #expect(try shell.waitForEnd() == .exited(0))
            let history = try Files.read(directory.path + "/.local/state/larder/history")
            #expect(String(decoding: history, as: UTF8.self) == "GET k\nAUTH\nSET k v\nGET k \nquit\n")
        }

        @Test func inputDuringASubscriptionIsNotExecuted() throws {
            let (daemon, larderctl) = try daemon()
            let home = try TemporaryDirectory(inMemory: true)
            let shell = try session(larderctl, home: home.path)
            try shell.wait(for: "larder:0> ")
            try shell.type("SUBSCRIBE news\r", "(runs until Ctrl-C)\r\n", "3) (integer) 1\r\n")
            // The terminal echoes the input, and the shell discards it when the subscription ends.
            try shell.type("set typed 1\r", "set typed 1\r\n")
            #expect(try larderctl("CLIENT", "KILL", "TYPE", "pubsub").text == "1\n")
            try shell.wait(for: " closed the connection: no more messages will arrive\r\n")
            try shell.wait(for: "larder:0> ")
            try shell.type("# a note\r", "larder:0> ")
            try shell.type("EXISTS typed\r", "(integer) 0\r\n")
            while !shell.isRaw { nap() }
            try shell.type("\u{4}")
            #expect(try shell.waitForEnd() == .exited(0))
            withExtendedLifetime(daemon) {}
        }

        @Test func theShellWorksWithoutItsHistoryFile() throws {
            let (daemon, larderctl) = try daemon()
            for kind in ["pipe", "link", "none", "half"] {
                let home = try TemporaryDirectory(inMemory: true)
                let place = home.path + "/.local/state/larder"
                try FileSystem.makeDirectories(place)
                switch kind {
                case "pipe": #expect(mkfifo(place + "/history", 0o600) == 0)
                case "link": #expect(symlink(home.path + "/other", place + "/history") == 0)
                case "none": #expect(symlink("/dev/null", place + "/history") == 0)
                default: try Files.write(place + "/history", Array("GET a".utf8))
                }
                let shell = try session(larderctl, home: home.path)
                try shell.wait(for: "larder:0> ")
                try shell.type(Array("PING\r".utf8))
                switch kind {
                case "pipe": try shell.wait(for: "the history is not saved: \(place)/history is not a file\r\n")
                case "link": try shell.wait(for: "the history is not saved: \(place)/history is a link, ")
                default: break
                }
                let answer = try shell.wait(for: "PONG\r\n")
                #expect(kind == "link" || !answer.contains("not saved"), "\(answer)")
                try shell.type(Array("quit\r".utf8))
                #expect(try shell.waitForEnd() == .exited(0))
                #expect(!FileSystem.exists(home.path + "/other"))
                if kind == "half" {
                    let lines = String(decoding: try Files.read(place + "/history"), as: UTF8.self)
                    #expect(lines == "GET a\nPING\nquit\n")
                }
            }
            withExtendedLifetime(daemon) {}
        }

        @Test func anEmptyLarderShowsThreeCommands() throws {
            let (daemon, larderctl) = try daemon()
            let home = try TemporaryDirectory(inMemory: true)
            let shell = try session(larderctl, home: home.path)
            try shell.wait(for: "This larder is empty. Three commands to begin with:\r\n")
            try shell.wait(for: "larder:0> ")
            try shell.type("SET greeting hello EX 60\r", "\r\nOK\r\n", "larder:0> ")
            try shell.type("GET greeting\r", "\r\n\"hello\"\r\n", "larder:0> ")
            try shell.type("TTL greeting\r", "(integer) ", "larder:0> ")
            try shell.type("quit\r")
            #expect(try shell.waitForEnd() == .exited(0))
            let next = try session(larderctl, home: home.path)
            #expect(try !next.wait(for: "larder:0> ").contains("This larder is empty"))
            try next.type("quit\r")
            #expect(try next.waitForEnd() == .exited(0))
            withExtendedLifetime(daemon) {}
        }

        @Test func tabCompletesCommandsDatabasesAndKeys() throws {
            let (daemon, larderctl) = try daemon()
            #expect(try larderctl("set", "key one", "1").exitCode == 0)
            #expect(try larderctl("--database", "shop", "set", "b:1", "1").exitCode == 0)
            #expect(try larderctl("--database", "shop", "set", "b:2", "2").exitCode == 0)
            let home = try TemporaryDirectory(inMemory: true)
            let shell = try session(larderctl, home: home.path)
            try shell.wait(for: "larder:0> ")
            try shell.type("get k\t\r", "\r\n\"1\"\r\n", "larder:0> ")
            try shell.type("client in\t\r", "\r\nid=", "larder:0> ")
            try shell.type("SELECT sh\t\r", "larder:shop> ")
            try shell.type("GET b\t\t", "b:1", "b:2")
            try shell.type("2\r", "\r\n\"2\"\r\n", "larder:shop> ")
            try shell.type("SET k v \t", "SET key value [NX | XX")
            try shell.type("POL\thigh\r", "\r\nOK\r\n", "larder:shop> ")
            try shell.type("PTTL k\r", "(integer) ")
            #expect(try larderctl("--database", "shop", "ttl", "k").text != "-1\n")
            try shell.type("CONFIG GET slowlog-m\t\r", "slowlog-max-len\"", "larder:shop> ")
            // Names that cannot be offered are mentioned, whether or not there are other names.
            try shell.type("SET \"b:\\xff\" 1\r", "OK\r\n", "larder:shop> ")
            try shell.type("GET b\t\t", "b:1", "(not offered: 1 key with control characters or not UTF-8", "GET b")
            try shell.type("\u{3}", "larder:shop> ")
            try shell.type("SET \"odd\\x1b\" 1\r", "OK\r\n", "larder:shop> ")
            try shell.type("GET od\t", "GET key\r\n", "(not offered: 1 key with ", "GET od")
            try shell.type("\u{3}", "larder:shop> ")
            // With so many names, the shell does not read all of them, so their common prefix is unknown.
            let lines = (100..<300).map { "SET many:\($0) 1\n" }.joined()
            #expect(try larderctl.run(["--database", "shop", "shell"], input: Array(lines.utf8)).exitCode == 0)
            try shell.type("GET m\t", "many:", "…\r\n", "GET m")
            try shell.type("\u{3}", "larder:shop> ")
            try shell.type("quit\r")
            #expect(try shell.waitForEnd() == .exited(0))
            withExtendedLifetime(daemon) {}
        }

        /// The terminal discards typed keys at Ctrl-C, also those that the shell is about to read. In about one of a
        /// thousand rounds it discards them at that moment.
        @Test func ctrlCIsNoticedWhileKeysAreDiscarded() throws {
            let (daemon, larderctl) = try daemon()
            let home = try TemporaryDirectory(inMemory: true)
            let shell = try session(larderctl, home: home.path)
            try shell.wait(for: "larder:0> ")
            for round in 0..<1500 {
                for _ in 0..<(1 + round % 30) { try shell.type("x") }
                try shell.type("\u{3}", "^C\r\n", "larder:0> ")
            }
            try shell.type("quit\r")
            #expect(try shell.waitForEnd() == .exited(0))
            withExtendedLifetime(daemon) {}
        }

        @Test func theShellReconnectsAfterADaemonRestart() throws {
            let directory = try TemporaryDirectory(inMemory: true)
            let socket = directory.path + "/s"
            let options = ["--dir", directory.path + "/d", "--socket", socket]
            let larderctl = Larderctl(socketPath: socket)
            func start() throws -> ChildProcess {
                let child = try ChildProcess(try DaemonProcess.program("larderd"), options, environment: [])
                while try larderctl("ping").exitCode != 0 { nap() }
                return child
            }
            let first = try start()
            let shell = try session(larderctl, home: directory.path, term: "dumb")
            try shell.wait(for: "larder:0> ")
            try shell.type("SELECT shop\r", "larder:shop> ")
            try shell.type("SET k v\r", "OK\r\n")
            try shell.type("MULTI\r", "larder:shop(multi)> ")
            first.killNow()
            _ = try first.waitForExit()
            try shell.type(
                "GET k\r", "(no reply) the daemon at ", "; the transaction is lost; ", "to database shop",
                "larder:shop> ")
            try shell.type("GET k\r", "(no reply) no daemon answers at ", "larder:shop> ")
            let second = try start()
            try shell.type("GET k\r", "\"v\"\r\n", "larder:shop> ")
            // The daemon does not reply, and Ctrl-C stops the wait.
            second.send(signal: SIGSTOP)
            while !shell.isRaw { nap() }
            try shell.type("GET k\r")
            while shell.isRaw { nap() }
            try shell.type("\u{3}", "(no reply) interrupted: ", "larder:shop> ")
            second.send(signal: SIGCONT)
            try shell.type("GET k\r", "\"v\"\r\n", "larder:shop> ")
            // Suspend the shell with Ctrl-Z, and resume it.
            while !shell.isRaw { nap() }
            try shell.type("GET")
            try shell.wait(for: "GET")
            try shell.type("\u{1A}")
            while !shell.isStopped { nap() }
            #expect(!shell.isRaw)
            shell.send(SIGCONT)
            try shell.type(" k\r", "\"v\"\r\n")
            second.killNow()
            while !shell.isRaw { nap() }
            try shell.type("\u{4}")
            #expect(try shell.waitForEnd() == .exited(0))
        }
    #endif
}
