import LarderPlatform
import LarderTestSupport
import Testing

@testable import larderweb

/// Tests of larderweb as a program: its options, its socket, its service manager.
@Suite struct WebProgramTests {
    @Test func helpAndCompletionsNameEveryOption() throws {
        let (end, output, errors) = try WebProcess.run(["--help"])
        #expect(end == .exited(0) && errors.isEmpty)
        for option in WebOptions.table.rows { #expect(output.contains("\n  \(option.fullUsage)"), "\(option.name)") }
        for (shell, prefix) in [("bash", "--"), ("zsh", "--"), ("fish", "-l ")] {
            let completion = try WebProcess.run(["--completion", shell])
            #expect(completion.end == .exited(0))
            for option in WebOptions.table.rows {
                let name = prefix + String(option.name.dropFirst(2))
                #expect(completion.output.contains(name), "\(shell): \(option.name)")
            }
        }
        #expect(output.split(separator: "\n").allSatisfy { $0.count <= 125 })
        let page = String(decoding: try Files.read(PackageRoot.path + "/docs/Operating.md"), as: UTF8.self)
        for option in WebOptions.table.rows {
            #expect(page.contains("`\(option.name)"), "docs/Operating.md does not have \(option.name)")
        }
        #expect(try WebProcess.run(["-V"]).output.hasPrefix("larderweb "))
    }

    @Test(arguments: [
        (["--listen", "8377"], "127.0.0.1:8377"), (["--listen", "example.com:80"], "127.0.0.1:8377"),
        (["--listen", "unix:relative"], "unix:/path"), (["--listen", "127.0.0.1:99999"], "127.0.0.1:8377"),
        (["--listne"], "did you mean --listen?"), (["word"], "only options"), (["--listen"], "needs a value"),
        (["--allow-changes=yes"], "takes no value"), (["--token-file", "/nowhere/token"], "no such file"),
        (["--log-level", "loud"], "debug, info"), (["--max-connections", "0"], "from 1 to 1024"),
        (["--request-timeout", "1"], "from 100 to"), (["--host", "a b"], "a host name"),
        (["--socket-group", "no-such-group"], "no such group"), (["--trust-user", "no-such-user"], "no such user"),
        (["--completion", "csh"], "one of bash, zsh, fish"),
    ])
    func optionErrorsAreReported(_ words: [String], _ hint: String) throws {
        let (end, output, errors) = try WebProcess.run(words)
        #expect(end == .exited(2) && output.isEmpty)
        #expect(errors.hasPrefix("larderweb: ") && errors.contains(hint), "\(errors)")
    }

    /// Commands that a user runs in the browser are logged like those of any client.
    @Test func thePollingOfLarderwebIsNotInTheSlowLog() throws {
        let daemon = try DaemonProcess(["--slowlog-log-slower-than", "0"])
        let client = try daemon.connect()
        _ = try client.call("SET k v")
        let web = try WebProcess(daemon.socketPath)
        for path in ["/metrics", "/api/overview", "/api/clients", "/api/slow", "/api/keys"] {
            #expect(try web.get(path).status == 200, "\(path)")
        }
        let slow = try client.call("SLOWLOG GET -1").uppercased()
        for word in ["INFO", "DATABASES", "SLOWLOG", "LIST", "SNAPSHOT", "PTTL"] {
            #expect(!slow.contains("\r\n\(word)\r\n"), "\(word)")
        }
        #expect(slow.contains("\r\nMETA\r\n") && slow.contains("\r\nSET\r\n"), "\(slow)")
    }

    /// larderweb reports such a file with the same message as larderd.
    @Test func aPasswordFileThatOthersCanAccessIsReported() throws {
        let place = try TemporaryDirectory(inMemory: true)
        let path = place.path + "/secret"
        try Files.write(path, Array("melon-1\n".utf8))
        var cases: [(mode: mode_t, owner: uid_t, text: String?)] = [
            (0o600, geteuid(), nil), (0o640, geteuid(), nil),
            (0o644, geteuid(), "warning all users can read the password file \(path): chmod o-r"),
            (0o666, geteuid(), "warning all users can write to the password file \(path): chmod o-rw"),
            (0o660, geteuid(), "can write to the password file \(path): chmod g-w"),
        ]
        if geteuid() == 0 {
            cases.append(
                (0o600, 65_534, "the password file \(path) belongs to another user (uid 65534), who can change it"))
        }
        for (mode, owner, text) in cases {
            #expect(chown(path, owner, gid_t.max) == 0 && chmod(path, mode) == 0)
            let web = try WebProcess("/nonexistent/socket", ["--password-file", path])
            let errors = web.process.errors
            #expect(errors.contains("password file") == (text != nil), "\(errors)")
            if let text { #expect(errors.contains(text), "\(errors)") }
        }
    }

    /// Starts larderweb with the daemon's password, with a wrong one, and without one.
    @Test func larderwebNeedsThePasswordOfTheDaemon() throws {
        let place = try TemporaryDirectory(inMemory: true)
        let (right, wrong) = (place.path + "/right", place.path + "/wrong")
        try Files.write(right, Array("pass word é\n".utf8))
        try Files.write(wrong, Array("swordfish\n".utf8))
        let daemon = try DaemonProcess(["--password-file", right])
        #expect(
            try WebProcess(daemon.socketPath, ["--password-file", right]).get("/metrics").body.contains("larder_up 1"))
        for options in [["--password-file", wrong], []] {
            let web = try WebProcess(daemon.socketPath, options)
            #expect(try web.get("/metrics").body.contains("larder_up 0"))
            let problem = try web.get("/api/overview").body
            #expect(
                problem.contains("WRONGPASS") || problem.contains("NOAUTH") || problem.contains("password"),
                "\(problem)")
            #expect(!problem.contains("swordfish") && problem.contains("--password-file"), "\(problem)")
            // The same status as without a daemon.
            #expect(try web.get("/api/keys?database=0").status == 503)
            #expect(try web.get("/api/slow").status == 503)
        }
    }

    @Test("the socket is accessible only to its user, and used by one process")
    func theSocketOfLarderwebIsPrivate() throws {
        let web = try WebProcess("/nowhere/socket")
        var status = stat()
        #expect(stat(web.socketPath, &status) == 0 && status.st_mode & 0o777 == 0o600)
        let second = try WebProcess.run(["--listen", "unix:" + web.socketPath])
        #expect(second.end == .exited(3) && second.errors.contains("larderweb --listen unix:PATH"), "\(second.errors)")
        #expect(try web.stop() == .exited(0))
        #expect(!FileSystem.exists(web.socketPath))
    }

    /// The group that may use the socket can also enter its directories.
    @Test func createdDirectoriesAreAccessibleToTheGroup() throws {
        let place = try TemporaryDirectory(inMemory: true)
        let group = geteuid() == 0 ? 65_534 : getegid()
        let web = try WebProcess(
            "/nowhere/socket", ["--socket-group", "\(group)"], listen: "unix:\(place.path)/one/two/three/s")
        for directory in ["/one", "/one/two", "/one/two/three"] {
            var status = stat()
            #expect(stat(place.path + directory, &status) == 0)
            #expect(status.st_mode & 0o777 == 0o750 && status.st_gid == group, "\(directory)")
        }
        #expect(try web.stop() == .exited(0))
        let refused = try WebProcess.run(["--socket-group", "\(group)", "--listen", "127.0.0.1:0"])
        #expect(refused.end == .exited(2) && refused.errors.contains("--listen unix:/path"), "\(refused)")
    }

    /// Without a home directory, the only place would be /tmp, where other users may have created a link.
    @Test("without a home directory, the history of the last day stays in memory")
    func withoutHOMETheHistoryStaysInMemory() throws {
        let place = try TemporaryDirectory(inMemory: true)
        let words = ["--socket", "/nowhere/socket", "--listen", "unix:\(place.path)/s"]
        let child = try ChildProcess(try DaemonProcess.program("larderweb"), words, environment: ["HOME="])
        _ = try child.waitForErrorLine(containing: "neither HOME nor XDG_CACHE_HOME is set (use --history")
        _ = try child.waitForErrorLine(containing: " serves ")
        child.killNow()
        #expect(!child.errors.contains("/tmp/larder-"))
    }

    @Test(.enabled(if: geteuid() == 0)) func aTokenFileOfAnotherUserIsRefused() throws {
        let place = try TemporaryDirectory(inMemory: true)
        let path = place.path + "/token"
        try Files.write(path, Array("0123456789abcdef\n".utf8))
        #expect(chmod(path, 0o600) == 0 && chown(path, 65_534, 0) == 0)
        let refused = try WebProcess.run(["--token-file", path])
        #expect(
            refused.end == .exited(2) && refused.errors.contains("belongs to another user (uid 65534)"), "\(refused)")
    }

    @Test func anAddressInUseIsReported() throws {
        let web = try WebProcess("/nowhere/socket", listen: "127.0.0.1:0")
        let port = try #require(web.address.dropLast().split(separator: ":").last)
        let (end, _, errors) = try WebProcess.run(["--listen", "127.0.0.1:\(port)"])
        #expect(end == .exited(1) && errors.contains("127.0.0.1:\(port)"), "\(errors)")
        #expect(web.process.errors.contains("all users of this machine"))
    }

    @Test func theServiceManagerIsNotified() throws {
        let place = try TemporaryDirectory(inMemory: true)
        let manager = try ServiceStandIn(in: place)
        let web = try WebProcess(
            "/nowhere/socket",
            wrapper: ServiceStandIn.environment(["NOTIFY_SOCKET=\(manager.notifyName)", "WATCHDOG_USEC=1000000"]))
        #expect(try manager.notified("READY=1").contains("STATUS=serving unix:"))
        _ = try manager.notified("WATCHDOG=1")
        #expect(try web.stop() == .exited(0))
        #expect(try manager.notified("STOPPING=1").contains("SIGTERM"))
    }

    /// These signals terminate a process by default.
    @Test(arguments: [SIGUSR1, SIGUSR2]) func sigusr1AndSIGUSR2DoNotStopLarderweb(_ signal: Int32) throws {
        let web = try WebProcess("/nowhere/socket")
        web.process.send(signal: signal)
        for _ in 0..<3 { #expect(try web.get("/healthz").status != 0) }
        #expect(try web.stop() == .exited(0))
    }

    /// larderweb stops although browsers keep their connections open.
    @Test func larderwebStopsWhileBrowsersKeepConnectionsOpen() throws {
        let web = try WebProcess("/nowhere/socket")
        let (idle, half) = (try SocketClient(web.socketPath), try SocketClient(web.socketPath))
        try idle.send(Array("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8))
        try half.send(Array("GET /hea".utf8))
        var entry = pollfd(fd: idle.descriptor, events: Int16(POLLIN), revents: 0)
        #expect(poll(&entry, 1, 60_000) == 1)
        #expect(try web.get("/healthz").status == 200)
        #expect(try web.stop() == .exited(0))
        #expect(WebProcess.reply(try idle.receiveToEnd()).status == 200)
    }
}
