import LarderPlatform
import LarderTestSupport
import Testing

/// Tests of `larderctl import --from-redis` and `export --to-redis`, with a redis-server.
@Suite struct LarderctlRedisTests {
    private let daemon: DaemonProcess
    private let redis: RedisProcess
    private let larderctl: Larderctl
    private var url: String { "unix:" + redis.socketPath }

    init() throws {
        daemon = try DaemonProcess()
        redis = try RedisProcess(["--databases", "32"])
        larderctl = Larderctl(socketPath: daemon.socketPath)
    }

    /// A reply that is a number.
    private static func number(_ reply: String) -> Int? { Int(reply.filter { $0 == "-" || $0.isNumber }) }

    /// A database number that the Redis does not support must not look like an empty database.
    @Test func importingAMissingRedisDatabaseIsAnError() throws {
        for number in [32, 99] {
            for form in [
                ["--from-redis", url + "?db=\(number)"],
                ["--json", "--from-redis", url + "?db=\(number)", "--into", "zz"],
                ["--from-redis", url, "--map", "\(number)=zz"],
            ] {
                let result = try larderctl.run(["import"] + form)
                #expect(result.exitCode == 4 && result.errors.contains("DB index is out of range"), "\(result)")
                #expect(result.text.isEmpty)
            }
        }
        // An existing database without keys is not an error.
        #expect(try larderctl("import", "--from-redis", url + "?db=31", "--into", "zz").text == "imported 0 entries\n")
    }

    @Test func importedStringsKeepTheirRemainingTimeToLive() throws {
        let server = try redis.connect()
        for line in [
            "SET plain 1", "SET short v PX 9000000", "SET long v PX 900000000", "RPUSH list a b", "HSET hash a b",
            "SADD set a",
            "RPUSH list2 a", "SELECT 3", "SET three v", "SELECT 20", "SET twenty v",
        ] {
            _ = try server.call(line)
        }
        _ = try server.call("SELECT 0")
        var random = SeededGenerator(seed: 3)
        let (key, value) = (random.bytes(count: 300), Incompressible.bytes(count: 1 << 20, &random))
        try server.send(encodeRequest([Array("SET".utf8), key, value]))
        #expect(try server.receive() == Array("+OK\r\n".utf8))

        let unmapped = try larderctl("import", "--from-redis", url)
        #expect(unmapped.exitCode == 2 && unmapped.errors.contains("to a name with --map 20=NAME"), "\(unmapped)")
        #expect(try larderctl("DBSIZE").text == "0\n", "no entry was copied")
        let result = try larderctl("import", "--from-redis", url, "--map", "20=more")
        #expect(
            result.text.hasPrefix(
                "imported 6 entries\nnot imported: 1 of type hash, 2 of type list, 1 of type set, such as "),
            "\(result)")
        #expect(result.exitCode == 0 && result.errors.isEmpty)
        let client = try daemon.connect()
        #expect(try client.call("GET plain") == "$1\r\n1\r\n")
        let policy = try client.call("TTL plain")
        #expect(policy.hasPrefix(":604"), "it follows the database's policy: \(policy)")
        for (name, most) in [("short", 9_000_000), ("long", 900_000_000)] {
            let left = try #require(Self.number(try client.call("PTTL \(name)")))
            #expect(left <= most && left > most - 1_000_000, "\(name): \(left)")
        }
        try client.send(encodeRequest([Array("GET".utf8), key]))
        #expect(try client.receive() == Array("$\(value.count)\r\n".utf8) + value + [0x0D, 0x0A])
        #expect(try larderctl("--database", "3", "get", "three").text == "v")
        #expect(try larderctl("--database", "more", "get", "twenty").text == "v")

        #expect(try larderctl("SET", "plain", "here").exitCode == 0)
        let kept = try larderctl("import", "--json", "--from-redis", url + "?db=0", "--prefix", "p", "--keep-existing")
        let report = #"{"imported":0,"gone":0,"kept":1,"otherTypes":{},"tooLong":0,"examples":[]}"#
        #expect(kept.text == report + "\n", "\(kept)")
        #expect(try larderctl("import", "--from-redis", url + "?db=0", "--prefix", "p", "--into", "x").exitCode == 0)
        #expect(try larderctl("--database", "x", "keys").text == "plain\n")
        // A database number that the Redis does not support is an error.
        let beyond = try larderctl("import", "--from-redis", url + "?db=9999")
        #expect(beyond.exitCode == 4 && beyond.errors.contains("DB index is out of range"), "\(beyond)")
    }

    /// Each value is imported with its own time to live. Both are read together, even if keys change often in the
    /// meantime.
    @Test func valuesAreImportedWithTheirOwnTimeToLive() throws {
        let isOver = Guarded(false)
        let path = redis.socketPath
        let writer = WorkThread(name: "test-writer") {
            guard let server = try? SocketClient(path) else { return }
            var round = 0
            while !isOver.value {
                round += 1
                for key in 0..<50 {
                    let isShort = (key + round) % 2 == 0
                    _ = try? server.call("SET k\(key) \(isShort ? "short" : "long") PX \(isShort ? 60_000 : 6_000_000)")
                }
            }
        }
        defer {
            isOver.value = true
            writer.join()
        }
        let client = try daemon.connect()
        for round in 0..<8 {
            #expect(try larderctl("import", "--from-redis", url).exitCode == 0)
            for key in 0..<50 {
                let value = try client.call("GET k\(key)")
                let left = Self.number(try client.call("PTTL k\(key)")) ?? 0
                if value.contains("short") { #expect(left <= 60_000, "\(round): \(value) \(left)") }
                if value.contains("long") { #expect(left > 60_000, "\(round): \(value) \(left)") }
            }
        }
    }

    @Test func importFromRedisWorksOverTCP() throws {
        let port = LoopbackPort.free()
        let redis = try RedisProcess(port: port)
        _ = try redis.connect().call("SET k v")
        #expect(try larderctl("import", "--from-redis", "redis://127.0.0.1:\(port)").text == "imported 1 entry\n")
        #expect(try larderctl("SET", "l", "w").exitCode == 0)
        let sent = try larderctl("export", "--to-redis", "redis://localhost:\(port)/0")
        #expect(sent.text == "exported 2 entries of 1 database\n", "\(sent)")
        #expect(try redis.connect().call("GET l") == "$1\r\nw\r\n")
    }

    @Test func transfersWorkWithServersWithoutRESP3() throws {
        // Without HELLO, Redis 7 replies like Redis 5. Valkey 9 replies to unknown commands with NOAUTH.
        let old = try RedisProcess(
            ["--rename-command", "HELLO", "", "--requirepass", "secret"], program: "redis-server")
        let larderctl = Larderctl(socketPath: daemon.socketPath, variables: ["REDISCLI_AUTH=secret"])
        let url = "unix:\(old.socketPath)"
        #expect(try larderctl("SET", "k", "v").exitCode == 0)
        #expect(try larderctl("export", "--to-redis", url).text == "exported 1 entry of 1 database\n")
        let result = try larderctl("import", "--from-redis", url + "?db=0", "--into", "copy")
        #expect(result.text == "imported 1 entry\n", "\(result)")
        #expect(try larderctl("--database", "copy", "get", "k").text == "v")
        let wrong = Larderctl(socketPath: daemon.socketPath, variables: ["REDISCLI_AUTH=other"])
        let refused = try wrong("import", "--from-redis", url)
        #expect(refused.exitCode == 4 && !refused.errors.contains("other"), "\(refused)")
    }

    @Test func transfersWorkOverTLS() throws {
        let directory = try TemporaryDirectory(inMemory: true)
        let (key, certificate) = (directory.path + "/key.pem", directory.path + "/certificate.pem")
        let made = try ChildProcess.run(
            "openssl",
            "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=redis -addext "
                .split(separator: " ").map(String.init)
                + ["subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate])
        try #require(made.end == .exited(0), "\(made.errors)")
        let port = LoopbackPort.free()
        let redis = try RedisProcess([
            "--tls-port", "\(port)", "--tls-cert-file", certificate, "--tls-key-file", key, "--tls-ca-cert-file",
            certificate, "--tls-auth-clients", "no",
        ])
        _ = try redis.connect().call("SET k v")
        let url = "rediss://127.0.0.1:\(port)?ca=\(certificate)"
        #expect(try larderctl("import", "--from-redis", url).text == "imported 1 entry\n")
        let sent = try larderctl("export", "--to-redis", "rediss://127.0.0.1:\(port)/3?ca=\(certificate)")
        #expect(sent.text == "exported 1 entry of 1 database\n", "\(sent)")
        let untrusted = try larderctl("import", "--from-redis", "rediss://127.0.0.1:\(port)")
        #expect(untrusted.exitCode == 3 && untrusted.errors.contains("certificate"), "\(untrusted)")
    }

    @Test func exportToRedisContainsTheFreshEntries() throws {
        for words in [
            ["SET", "plain", "v", "POLICY", "never"], ["SET", "short", "a b", "PX", "9000000"], ["SET", "policy", "v"],
            ["SET", "stale", "v", "PX", "1", "GRACE", "1000"],
        ] {
            #expect(try larderctl.run(words).exitCode == 0)
        }
        #expect(try larderctl("--database", "books", "SET", "b", "v").exitCode == 0)
        while try larderctl("get", "stale").exitCode == 0 { nap() }
        let unmapped = try larderctl("export", "--to-redis", url)
        #expect(
            unmapped.exitCode == 2 && unmapped.errors.contains("map 'books' to one with --map books=NUMBER"),
            "\(unmapped)")
        let impossible = try larderctl("export", "--to-redis", url, "--map", "books=99")
        #expect(impossible.exitCode == 4 && impossible.errors.contains("DB index is out of range"), "\(impossible)")
        let server = try redis.connect()
        #expect(try server.call("DBSIZE") == ":0\r\n", "no entry was copied")
        let result = try larderctl("export", "--to-redis", url, "--map", "books=7")
        #expect(result.text == "exported 4 entries of 2 databases; not exported: 1 stale\n", "\(result)")
        #expect(try server.call("PTTL plain") == ":-1\r\n")
        let left = try #require(Self.number(try server.call("PTTL short")))
        #expect(left <= 9_000_000 && left > 1_000_000)
        #expect(try server.call("GET short") == "$3\r\na b\r\n")
        #expect(try server.call("TTL policy").hasPrefix(":604"))
        _ = try server.call("SELECT 7")
        #expect(try server.call("GET b") == "$1\r\nv\r\n")
        let one = try larderctl("export", "--json", "--database", "books", "--to-redis", url + "?db=9")
        #expect(one.text == #"{"exported":1,"stale":0,"databases":1}"# + "\n", "\(one)")
    }

    /// Entries of two databases with the same key would replace each other.
    @Test func databasesAreNeverMergedByTheirNumbers() throws {
        let server = try redis.connect()
        for line in ["SET k 0", "SELECT 3", "SET k 3"] { _ = try server.call(line) }
        let merged = try larderctl("import", "--from-redis", url, "--map", "3=0")
        #expect(merged.exitCode == 2 && merged.errors.contains("'0' and '3' would both become '0'"), "\(merged)")
        #expect(try larderctl("DBSIZE").text == "0\n", "no entry was copied")
        #expect(try larderctl("import", "--from-redis", url, "--map", "3=books", "--map", "0=7").exitCode == 0)
        #expect(try larderctl("--database", "7", "get", "k").text == "0")

        _ = try server.call("FLUSHALL")
        let back = try larderctl("export", "--to-redis", url, "--map", "books=7")
        #expect(back.exitCode == 2 && back.errors.contains("'7' and 'books' would both become '7'"), "\(back)")
        #expect(try server.call("SELECT 7") == "+OK\r\n")
        #expect(try server.call("DBSIZE") == ":0\r\n", "no entry was copied")
        // All entries in one database is what --into asks for.
        for line in ["SET a 7", "SELECT 8", "SET b 8"] { _ = try server.call(line) }
        #expect(try larderctl("import", "--from-redis", url, "--into", "all").text == "imported 2 entries\n")
    }

    @Test func mapsThatDoNotApplyAreErrors() throws {
        _ = try redis.connect().call("SET k v")
        for name in ["0", "books"] { #expect(try larderctl("--database", name, "SET", "k", "v").exitCode == 0) }
        for (words, message) in [
            (["export", "--to-redis", url, "--map", "book=3"], "no database 'book' is exported; did you mean books?"),
            (["export", "--database", "0", "--to-redis", url, "--map", "books=3"], "no database 'books' is exported"),
            (["export", "--database", "books", "--to-redis", url + "?db=2", "--map", "books=3"], "cannot be combined"),
            (["import", "--from-redis", url + "?db=0", "--map", "5=x"], "selects another database"),
            (["import", "--from-redis", url, "--into", "a", "--map", "0=b"], "--into"),
        ] {
            let result = try larderctl.run(words)
            #expect(result.exitCode == 2 && result.errors.contains(message), "\(words): \(result)")
        }
    }

    @Test func aKilledImportFromRedisIsCompletedByTheNextCall() throws {
        let server = try redis.connect()
        for number in 0..<20_000 { try server.send(["SET", "key:\(number)", "v"]) }
        _ = try server.receive(20_000)
        let client = try daemon.connect()
        let child = try ChildProcess(
            try DaemonProcess.program("larderctl"), ["--socket", daemon.socketPath, "import", "--from-redis", url])
        while try client.call("DBSIZE") == ":0\r\n" { nap() }
        child.killNow()
        #expect(try larderctl("import", "--from-redis", url).exitCode == 0)
        #expect(try larderctl("DBSIZE").text == "20000\n")
    }

    @Test func thePasswordOfRedisIsNeverPrinted() throws {
        _ = try redis.connect().call("SET k v")
        _ = try redis.connect().call("CONFIG SET requirepass hunter2")
        let without = try larderctl("import", "--from-redis", url)
        #expect(without.exitCode == 4 && without.errors.contains("NOAUTH") && without.errors.contains("REDISCLI_AUTH"))
        let wrong = Larderctl(socketPath: daemon.socketPath, variables: ["REDISCLI_AUTH=hunter3"])
        let refused = try wrong("import", "--from-redis", url)
        #expect(refused.exitCode == 4 && refused.errors.contains("WRONGPASS") && !refused.errors.contains("hunter"))
        // As for redis-cli, an empty password is none.
        let empty = try Larderctl(socketPath: daemon.socketPath, variables: ["REDISCLI_AUTH="])(
            "import", "--from-redis", url)
        #expect(empty.exitCode == 4 && empty.errors.contains("NOAUTH"), "\(empty)")
        let right = Larderctl(socketPath: daemon.socketPath, variables: ["REDISCLI_AUTH=hunter2"])
        #expect(try right("import", "--from-redis", url).text == "imported 1 entry\n")
        for wrong in [
            "redis://:hunter2@", "redis://:hunter2@host:x", "redis://:hunter2@host/zero", "http://:hunter2@host",
            "unix:hunter2", "redis://:hunter2%@host", "redis://:hunter2%+5@host", "redis+cluster://:hunter2@host",
            "unix:/hunter?db=shop",
        ] {
            let result = try larderctl("import", "--from-redis", wrong)
            #expect(result.exitCode == 2 && !result.errors.contains("hunter2"), "\(result)")
        }
        for unreachable in ["rediss://:hunter2@127.0.0.1:1", "redis://:hunter2%ff@127.0.0.1:1"] {
            let result = try larderctl("import", "--from-redis", unreachable)
            #expect(result.exitCode == 3 && !result.errors.contains("hunter2"), "\(result)")
        }
    }

    @Test func unusableRedisServersAreExplained() throws {
        let none = try larderctl("import", "--from-redis", "unix:/nonexistent/redis")
        #expect(none.exitCode == 3 && none.errors.contains("Redis at /nonexistent/redis: No such file"))
        let refused = try larderctl("export", "--to-redis", "redis://127.0.0.1:1")
        #expect(
            refused.exitCode == 3 && refused.errors.contains("Redis at 127.0.0.1:1: "), "\(refused)")
        let mail = try FakeServer { _ in .last(Array("220 mail ready\r\n".utf8)) }
        let web = try FakeServer { _ in .last(Array("HTTP/1.1 400 Bad Request\r\n\r\n".utf8)) }
        let other = try FakeServer { _ in .text("+OK\r\n") }
        for server in [mail, web, other] {
            let result = try larderctl("import", "--from-redis", "unix:\(server.path)")
            #expect(result.exitCode == 3 && result.errors.contains("a Redis server"), "\(result)")
            server.stop()
        }
        for words in [
            ["import", "--from-redis", url, "--database", "x"], ["import", "--from-redis", url, "file"],
            ["import", "--map", "1=x"], ["export", "--map", "x=1"], ["import", "--from-redis", url, "--map", "x=1"],
            ["import", "--from-redis", url, "--map", "1=a", "--map", "1=b"], ["export", "--to-redis", "redis://h/x"],
        ] {
            let result = try larderctl.run(words)
            #expect(result.exitCode == 2, "\(words): \(result)")
        }
    }
}
