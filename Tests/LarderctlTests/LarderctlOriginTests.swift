import LarderPlatform
import LarderTestSupport
import Testing

/// Tests of `larderctl origin` with a redis-server as the origin.
@Suite struct LarderctlOriginTests {
    private let daemon: DaemonProcess
    private let larderctl: Larderctl

    init() throws {
        daemon = try DaemonProcess()
        larderctl = Larderctl(socketPath: daemon.socketPath)
    }

    @Test func errorsNameTheLarderAndTheDatabase() throws {
        let behind = try DaemonProcess()
        let set = try larderctl("origin", "0", "unix://\(behind.socketPath)?db=3")
        #expect(set.text == "OK\n" && set.errors == "", "\(set)")
        let path = try larderctl("origin", "0", "path").text.split(separator: "\n")
        #expect(path.count == 2 && path[0].hasSuffix("/0") && path[1].hasSuffix("/3"), "\(path)")
        #expect(try larderctl("--json", "origin", "1", "PATH").text.hasPrefix("["))
        let client = try behind.connect()
        #expect(try client.call("SELECT shop") == "+OK\r\n")
        #expect(try client.call("SET a one") == "+OK\r\n")
        #expect(try larderctl("origin", "0", "unix://\(behind.socketPath)?db=shop").errors == "")
        #expect(try larderctl("origin", "0", "path").text.hasSuffix("/shop\n"))
        #expect(try larderctl("get", "a").text.hasPrefix("one"))
        let twice = try larderctl("replicate", "--prefix", "a", "--prefix", "b", "/from", "/to")
        #expect(twice.exitCode == 2 && twice.errors.contains("--prefix must be given only once"), "\(twice)")
    }

    @Test("origin, export and replicate accept unix:/path and unix:///path")
    func unixURLsMayHaveTwoForms() throws {
        let behind = try DaemonProcess()
        _ = try behind.connect().call("SET a one")
        let path = behind.socketPath
        for url in ["unix:\(path)?db=0", "unix://\(path)", "UNIX:\(path)"] {
            let set = try larderctl("origin", "0", url)
            #expect(set.text == "OK\n" && set.errors == "", "\(set)")
            #expect(try larderctl("origin", "0").text.contains("unix://\(path)"))
            #expect(try larderctl("get", "a").text.hasPrefix("one"))
            #expect(try larderctl("export", "--to-redis", url).exitCode == 0)
            #expect(try larderctl("origin", "0", "none").exitCode == 0)
        }
        let target = try DaemonProcess()
        for url in ["unix:\(path)", "unix://\(path)"] {
            let replicated = try Larderctl(socketPath: nil)("replicate", url, "unix:\(target.socketPath)")
            #expect(replicated.exitCode == 0, "\(replicated)")
            let nameless = try larderctl("origin", url)
            #expect(nameless.exitCode == 2 && nameless.errors.contains("larderctl origin NAME \(url)"), "\(nameless)")
        }
    }

    @Test func originPathAcceptsNoOtherArguments() throws {
        let more = try larderctl("origin", "0", "path", "x")
        #expect(more.exitCode == 2 && more.errors.contains("path takes no arguments"), "\(more)")
        for option in [["--user", "alice"], ["--tls"], ["--ca", "/tmp/ca.pem"]] {
            let result = try larderctl.run(["origin", "0", "path"] + option)
            #expect(result.exitCode == 2 && result.errors.contains("\(option[0]) needs the URL"), "\(result)")
        }
        // Without a URL, --password-file is the file with the daemon's password, which larderctl reads.
        for words in [["origin", "0"], ["origin", "0", "path"]] {
            let result = try larderctl.run(words + ["--password-file", "/nowhere/password"])
            #expect(result.exitCode != 0 && result.errors.contains("/nowhere/password"), "\(result)")
        }
        #expect(try larderctl("origin", "0").text == "none\n")
    }

    @Test(arguments: [("Shop", "1 to 64 characters"), ("0.outbox", "is reserved"), ("_replication", "is reserved")])
    func invalidDatabasesInTheURLAreRefused(_ name: String, _ reason: String) throws {
        let result = try larderctl("origin", "0", "unix:///run/l.sock?db=\(name)")
        #expect(result.exitCode != 0 && result.errors.contains(reason), "\(result)")
        #expect(try larderctl("origin", "0").text == "none\n")
    }

    /// An entry that is served without verification must not be reported as fresh.
    @Test func metaReportsEntriesServedWithoutVerification() throws {
        let behind = try DaemonProcess()
        _ = try behind.connect().call("SET a one")
        _ = try daemon.connect().call("POLICY low GRACE 600")
        _ = try larderctl("origin", "0", "unix://\(behind.socketPath)", "STALE")
        #expect(try larderctl("get", "a").text.hasPrefix("one"))
        #expect(try larderctl("meta", "a").text.hasSuffix("state      fresh\n"))
        _ = try behind.stop()
        while try larderctl("meta", "a").text.hasSuffix("state      fresh\n") { nap() }
        #expect(try larderctl("meta", "a").text.hasSuffix("state      unverified\n"))
        #expect(try larderctl("--json", "meta", "a").text.hasSuffix(#""state":"unverified"}"# + "\n"))
    }

    @Test func fetchReportsThatAnOriginReplacesItsCommand() throws {
        let redis = try RedisProcess()
        #expect(try larderctl.run(["origin", "0", "unix://\(redis.socketPath)"]).exitCode == 0)
        let absent = try larderctl.run(["fetch", "k", "--", "echo", "hello"])
        #expect(absent.exitCode == 1 && absent.text == "")
        #expect(
            absent.errors.contains("this database's origin, which has no value")
                && absent.errors.contains("did not run"))
        _ = try redis.connect().call("SET k v")
        try eventually(["get", "k"], "v")
        #expect(try larderctl.run(["fetch", "k", "--", "echo", "hello"]).text.hasPrefix("v"))
    }

    /// A Redis that requires TLS, a user and a password.
    private struct CautiousRedis {
        let directory: TemporaryDirectory
        let redis: RedisProcess
        let port: Int

        init() throws {
            directory = try TemporaryDirectory(inMemory: true)
            let request =
                "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout key.pem -out cert.pem -days 2 "
                + "-subj /CN=server -addext subjectAltName=IP:127.0.0.1"
            let made = try ChildProcess.run(
                "openssl", request.split(separator: " ").map(String.init), directory: directory.path)
            guard made.end == .exited(0) else { throw ChildProcess.Failure(description: made.errors) }
            port = LoopbackPort.freeWithClusterBus()
            redis = try RedisProcess([
                "--tls-port", "\(port)", "--tls-cert-file", directory.path + "/cert.pem", "--tls-key-file",
                directory.path + "/key.pem", "--tls-ca-cert-file", directory.path + "/cert.pem", "--tls-auth-clients",
                "no", "--user", "alice", "on", ">sesame", "~*", "&*", "+@all", "--user", "default", "on", ">other",
                "~*",
                "&*", "+@all",
            ])
            _ = try directory.makeFile("password", Array("sesame\n".utf8))
        }
    }

    private func eventually(_ words: [String], _ expected: String) throws {
        for _ in 0..<1000 where try larderctl.run(words).text == expected { return }
        Issue.record("\(words) never printed \(expected): \(try larderctl.run(words))")
    }

    @Test func originOptionsSetUserPasswordAndTLS() throws {
        let server = try CautiousRedis()
        let (path, url) = (server.directory.path, "redis://127.0.0.1:\(server.port)")
        let set = try larderctl(
            "origin", "0", url, "BEHIND", "--user", "alice", "--password-file", path + "/password", "--tls", "--ca",
            path + "/cert.pem", "STALE", "DISCARD")
        #expect(set.exitCode == 0 && set.text == "OK\n", "\(set)")
        #expect(try larderctl("set", "a", "one").exitCode == 0)
        try eventually(["get", "a"], "one")
        let shown = try larderctl("origin", "0").text
        for line in ["writing: behind", "stale: yes", "hears: tracking", "bound: 750", "replicas: 0"] {
            #expect(shown.contains(line + "\n"), "\(line) in \(shown)")
        }
        #expect(!shown.contains("sesame"))
        let kept = try daemon.journalText()
        #expect(
            kept.contains(
                "0 rediss://127.0.0.1:\(server.port)?ca=\(path)/cert.pem BEHIND STALE USER alice PASSWORDFILE \(path)/password\n"
            ),
            "\(kept)")
        // Without the certificate, larderd sends nothing to that server.
        let untrusting = try larderctl(
            "origin", "1", url, "--tls", "--user", "alice", "--password-file", path + "/password")
        #expect(untrusting.text == "OK\n")
        let refused = try larderctl("--database", "1", "get", "a")
        #expect(refused.exitCode != 0 && refused.errors.contains("ORIGIN"), "\(refused)")
    }

    @Test func invalidOptionCombinationsAreExplained() throws {
        for (words, reason) in [
            (["0", "unix:///r", "--tls"], "--tls is only for redis://"),
            (["0", "redis://h", "--ca", "/c"], "--ca needs --tls"), (["0", "--tls"], "--tls needs the URL"),
            (["0", "none", "--user", "u"], "--user needs the URL"), (["--ca", "/c"], "--ca needs the URL"),
        ] {
            let result = try larderctl.run(["origin"] + words)
            #expect(result.exitCode == 2 && result.errors.contains(reason), "\(words): \(result)")
        }
        for (words, reason) in [
            (["redis://h"], "larderctl origin NAME redis://h"),
            (["0", "redis://h", "PASSWORDFILE"], "needs an argument"),
            (["0", "rediss://h?ca=file"], "use ?ca=/path"),
            (["0", "redis://h", "--password-file", "/dev/null"], "is not a regular file"),
            (["0", "redis://h", "--password-file", "/nowhere/file"], "is missing"),
        ] {
            let result = try larderctl.run(["origin"] + words)
            #expect(result.exitCode != 0 && result.errors.contains(reason), "\(words): \(result)")
        }
        let refused = try larderctl("origin", "0", "redis://h", "REPLICAS", "50")
        #expect(refused.exitCode != 0 && refused.errors.contains("use it with redis+cluster://"), "\(refused)")
        #expect(try larderctl("origin", "0").text == "none\n")
    }

    @Test func anUnreachableOriginIsReported() throws {
        let set = try larderctl("origin", "0", "unix:///nowhere", "BEHIND")
        #expect(set.exitCode == 0 && set.text == "OK\n")
        #expect(
            set.errors.contains("the origin is set, but not available yet: ")
                && set.errors.contains("/nowhere: No such file"))
        #expect(try larderctl("set", "a", "1").exitCode == 0)
        let doctor = try larderctl("doctor")
        #expect(
            doctor.exitCode == 8 && doctor.text.contains("origin-away: the origin of '0' is down for "), "\(doctor)")
        #expect(doctor.text.contains("1 key in its outbox"), "\(doctor)")
    }

    /// The packaged unit has `RestrictAddressFamilies=AF_UNIX`, which this test imitates.
    @Test func aConfinedDaemonExplainsWhyTCPOriginsFail() throws {
        let daemon = try DaemonProcess(wrapper: UnixSocketsOnly.wrapper)
        let larderctl = Larderctl(socketPath: daemon.socketPath)
        for host in ["127.0.0.1", "localhost"] {
            let set = try larderctl("origin", "0", "redis://\(host):6379")
            #expect(set.errors.contains("only Unix-domain sockets, see docs/Operating.md"), "\(set)")
        }
        let doctor = try larderctl("doctor")
        #expect(doctor.text.contains("only Unix-domain sockets"), "\(doctor)")
        #expect(doctor.text.contains("larderd.service.d/origins.conf"), "\(doctor)")
    }

    @Test func aChangedPasswordFileOfAnOriginIsReadAgain() throws {
        let directory = try TemporaryDirectory(inMemory: true)
        let path = try directory.makeFile("password", Array("one\n".utf8))
        let port = LoopbackPort.freeWithClusterBus()
        let redis = try RedisProcess(["--requirepass", "two"], port: port)
        #expect(
            try larderctl("origin", "0", "redis://127.0.0.1:\(redis.port)", "--password-file", path).text == "OK\n")
        try eventually(["origin", "0"]) { $0.contains("user or password is wrong") }
        #expect(try larderctl("set", "a", "1").errors.contains("WRONGPASS"))
        _ = try daemon.process.waitForErrorLine(containing: "its origin is not available: the origin cannot be used")
        try Files.write(path, Array("two\n".utf8))
        try eventually(["origin", "0"]) { $0.contains("state: up\n") }
        #expect(try larderctl("set", "a", "1").exitCode == 0)
        _ = try daemon.process.waitForErrorLine(containing: "its origin is available again")
    }

    private func eventually(_ words: [String], _ isReached: (String) -> Bool) throws {
        let deadline = MonotonicClock.milliseconds() + 60_000
        while MonotonicClock.milliseconds() < deadline { if isReached(try larderctl.run(words).text) { return } }
        Issue.record("\(words) never printed the expected text: \(try larderctl.run(words))")
    }

    @Test func theOriginIsShownWithTheDaemonsPassword() throws {
        let directory = try TemporaryDirectory(inMemory: true)
        let path = try directory.makeFile("own", Array("open\n".utf8))
        let locked = try DaemonProcess(["--password-file", path])
        let tool = Larderctl(socketPath: locked.socketPath)
        #expect(try tool("origin", "0", "--password-file", path).text == "none\n")
        let set = try tool("--password-file", path, "origin", "0", "unix:///nowhere", "--password-file", path)
        #expect(set.text == "OK\n", "\(set)")
        #expect(try tool("--password-file", path, "origin", "0", "none").text == "OK\n")
    }

    @Test func relativePathsAreResolvedByLarderctl() throws {
        let set = try larderctl("origin", "0", "unix:///nowhere", "--password-file", "Package.swift")
        // The setting is stored although the origin is not available.
        #expect(set.text == "OK\n", "\(set)")
        let kept = try daemon.journalText()
        #expect(kept.contains(" PASSWORDFILE /") && kept.contains("/Package.swift\n"), "\(kept)")
    }
}

extension DaemonProcess {
    /// Returns the content of the larder's journal as text.
    fileprivate func journalText() throws -> String {
        let journal = larder + "/JOURNAL"
        return try FileSystem.list(journal).map { String(decoding: try Files.read(journal + "/" + $0), as: UTF8.self) }
            .joined()
    }
}
