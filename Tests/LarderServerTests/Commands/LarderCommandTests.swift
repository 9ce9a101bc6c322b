import LarderEngine
import Testing

@testable import LarderServer

@Suite struct LarderCommandTests {
    @Test("META returns the metadata of an entry") func meta() throws {
        let server = try SocketlessServer(policy: .high)
        let call = server.connect()
        let start = Int(server.engine.now())
        func map(age: Int, deadline: Int, ttl: Int, rule: String, header: String = "*20\r\n") -> String {
            header + Wire.bulk("stored-at") + Wire.int(start) + Wire.bulk("age") + Wire.int(age)
                + Wire.bulk("deadline") + Wire.int(deadline) + Wire.bulk("ttl") + Wire.int(ttl) + Wire.bulk("rule")
                + Wire.bulk(rule) + Wire.bulk("policy") + Wire.bulk("high") + Wire.bulk("grace") + Wire.int(0)
                + Wire.bulk("size") + Wire.int(5)
                + Wire.bulk("codec") + Wire.bulk("raw") + Wire.bulk("state") + Wire.bulk("fresh")
        }
        #expect(call("META k") == Wire.null)
        #expect(call("SET k value") == Wire.ok)
        server.time.advance(milliseconds: 10)
        #expect(call("META k") == map(age: 10, deadline: start + 60_000, ttl: 59_990, rule: "governed"))
        #expect(call("PEXPIRE k 100") == Wire.int(1))
        #expect(call("META k") == map(age: 10, deadline: start + 110, ttl: 100, rule: "own"))
        #expect(call("PERSIST k") == Wire.int(1))
        #expect(call("META k") == map(age: 10, deadline: -1, ttl: -1, rule: "never"))
        _ = call("HELLO 3")
        #expect(call("META k") == map(age: 10, deadline: -1, ttl: -1, rule: "never", header: "%10\r\n"))
        #expect(call("META nothing") == Wire.null3)
    }

    @Test("POLICY returns and changes the policy of a database") func policy() throws {
        let server = try SocketlessServer()
        let call = server.connect()
        func map(_ policy: String, _ interval: Int) -> String {
            Wire.array(
                Wire.bulk("policy"), Wire.bulk(policy), Wire.bulk("interval"), Wire.int(interval), Wire.bulk("grace"),
                Wire.int(0), Wire.bulk("jitter"), Wire.int(0))
        }
        #expect(call("POLICY") == map("lowest", 604_800_000))
        for (word, policy, interval) in [
            ("highest", "highest", 10_000), ("HIGH", "high", 60_000), ("middle", "middle", 3_600_000),
            ("low", "low", 86_400_000), ("lowest", "lowest", 604_800_000), ("never", "never", -1),
            ("90", "every:90", 90_000), ("0.5", "every:0.500", 500), ("every:7", "every:7", 7000),
            ("10", "highest", 10_000),
        ] {
            #expect(call("POLICY \(word)") == Wire.ok)
            #expect(call("POLICY") == map(policy, interval), "\(word)")
        }
        #expect(server.engine.databases.map(\.name) == ["0"], "setting the policy creates the database")
        let bad = Wire.error(
            "ERR invalid policy: must be one of highest, high, middle, low, lowest, never, or a number of seconds "
                + "from 0.001 to 9000000000")
        for word in ["nonsense", "0", "-1", "1e3", "inf", "nan", "0x10", "99999999999", "."] {
            #expect(call("POLICY \(word)") == bad, "\(word)")
        }
        #expect(call(["POLICY", ""]) == bad)
        #expect(call("POLICY a b") == bad)
        let again = server.connect()
        #expect(again("SELECT books") == Wire.ok)
        #expect(again("POLICY") == map("lowest", 604_800_000), "each database has its own policy")
    }

    @Test func limitDoesNotCreateADatabase() throws {
        let server = try SocketlessServer()
        let call = server.connect()
        #expect(call("SELECT boks") == Wire.ok)
        for limit in ["20M", "none"] {
            #expect(
                call("LIMIT \(limit)")
                    == Wire.error("ERR there is no database 'boks': store an entry first, or set its policy"))
        }
        #expect(call("LIMIT").hasPrefix("*6\r\n"))
        #expect(server.engine.databases.isEmpty)
        #expect(call("POLICY low") == Wire.ok)
        #expect(call("LIMIT 20M") == Wire.ok)
        #expect(call("LIMIT").contains(":\(20 << 20)\r\n"))
    }

    @Test("POLICY sets the grace and the jitter of a database, and keeps those that are not given")
    func policySetsGraceAndJitterOfADatabase() throws {
        let server = try SocketlessServer()
        let call = server.connect()
        func map(_ policy: String, _ interval: Int, _ grace: Int, _ jitter: Int) -> String {
            Wire.array(
                Wire.bulk("policy"), Wire.bulk(policy), Wire.bulk("interval"), Wire.int(interval), Wire.bulk("grace"),
                Wire.int(grace), Wire.bulk("jitter"), Wire.int(jitter))
        }
        #expect(call("POLICY high GRACE 3600") == Wire.ok)
        #expect(call("POLICY") == map("high", 60_000, 3_600_000, 0))
        #expect(call("POLICY high jitter 10 grace 0.5") == Wire.ok)
        #expect(call("POLICY") == map("high", 60_000, 500, 10))
        #expect(call("POLICY low") == Wire.ok, "settings that are not given are kept")
        #expect(call("POLICY") == map("low", 86_400_000, 500, 10))
        #expect(call("POLICY low GRACE 0 JITTER 0") == Wire.ok)
        for words in ["GRACE", "GRACE 1 GRACE 2", "GRACE 1 low", "JITTER 1 JITTER 2"] {
            #expect(call("POLICY low \(words)") == Wire.error("ERR syntax error"), "\(words)")
        }
        for grace in ["-1", "x", "1e3", "every:5", "low", "never", "99999999999"] {
            let error = Wire.error(
                "ERR invalid grace '\(grace)': must be a number of seconds from 0 to 9000000000")
            #expect(call("POLICY low GRACE \(grace)") == error)
            #expect(call("SET k v GRACE \(grace)") == error)
        }
        for jitter in ["-1", "101", "x", "0.5"] {
            let error = Wire.error("ERR invalid jitter '\(jitter)': must be a percentage from 0 to 100")
            #expect(call("POLICY low JITTER \(jitter)") == error)
            #expect(call("SET k v JITTER \(jitter)") == error)
        }
        #expect(call("GET k") == Wire.null)
    }

    @Test func jitterOfAnEntryShortensItsLifetime() throws {
        let server = try SocketlessServer(policy: .high)
        let call = server.connect()
        func lives(_ words: String) throws -> Set<Int> {
            Set(
                try (0..<200).map { _ in
                    #expect(call("SET k v \(words)") == Wire.ok)
                    return try #require(Int(call("PTTL k").dropFirst().dropLast()))
                })
        }
        for words in ["JITTER 50", "EX 60 JITTER 50", "POLICY 60 JITTER 50", "PX 60000 JITTER 50"] {
            let lives = try lives(words)
            #expect(lives.count > 100, "\(words)")
            #expect(lives.allSatisfy { (30_000...60_000).contains($0) }, "\(words)")
        }
        #expect(try lives("EX 60 JITTER 0") == [60_000])
        #expect(try lives("POLICY never JITTER 50") == [-1])
    }

    @Test("DATABASES lists databases with their policies and sizes") func databases() throws {
        let server = try SocketlessServer()
        let call = server.connect()
        #expect(call("DATABASES") == "*0\r\n")
        #expect(call("MSET a 1 b 2") == Wire.ok)
        #expect(call("SELECT books") == Wire.ok)
        #expect(call("SET c 3") == Wire.ok)
        #expect(call("POLICY never") == Wire.ok)
        let lines = call("DATABASES").split(separator: "\r\n", omittingEmptySubsequences: false)
        #expect(lines[0] == "*2")
        let texts = lines.joined(separator: " ")
        #expect(
            texts.contains(
                "$4 name $1 0 $6 policy $6 lowest $8 interval :604800000 $5 grace :0 $6 jitter :0 $7 entries :2 $5 stale :0 $11 ends-minute :0 "
                    + "$9 ends-hour :0 $8 ends-day :0 $10 ends-never :0 $5 bytes :"
            ))
        #expect(
            texts.contains(
                "$4 name $5 books $6 policy $5 never $8 interval :-1 $5 grace :0 $6 jitter :0 $7 entries :1 $5 stale :0 $11 ends-minute :0 "
                    + "$9 ends-hour :0 $8 ends-day :0 $10 ends-never :1 $5 bytes :"
            )
        )
        #expect(texts.contains("$5 state $4 open"))
    }

    @Test func theNumberOfDatabasesIsLimited() throws {
        let server = try SocketlessServer { $0.databasesMax = 2 }
        let call = server.connect()
        for name in ["a", "b"] {
            #expect(call("SELECT \(name)") == Wire.ok)
            #expect(call("SET k v") == Wire.ok)
        }
        #expect(call("SELECT c") == Wire.ok)
        #expect(call("GET k") == Wire.null)
        #expect(call("DEL k") == Wire.int(0))
        #expect(
            call("SET k v")
                == Wire.error(
                    "ERR create in database 'c': the larder already has 2 databases, which is its limit "
                        + "(--max-databases): raise it, or delete a database that is no longer needed: in a program "
                        + "with `Cache.delete(named:directory:)`, or remove its directory \(server.engine.directory)/<name> "
                        + "while no process uses the larder"))
        #expect(call("POLICY low").hasPrefix("-ERR create in database 'c'"))
        #expect(call("SELECT b") == Wire.ok)
        #expect(call("GET k") == Wire.bulk("v"))
    }

    @Test("PURGE removes the selected entries") func purging() throws {
        let server = try SocketlessServer()
        let call = server.connect()
        func entries(_ reply: String) -> String { reply.components(4) }
        #expect(entries(call("PURGE")) == "*6 $7 entries :0")
        #expect(call("MSET a:1 x a:2 x b:1 x") == Wire.ok)
        #expect(call("SET soon x PX 1") == Wire.ok)
        server.time.advance(milliseconds: 1)
        #expect(entries(call("PURGE EXPIRED")) == "*6 $7 entries :1")
        #expect(entries(call("PURGE PREFIX a:")) == "*6 $7 entries :2")
        #expect(call("KEYS *") == Wire.bulks("b:1"))
        #expect(call("SET c x") == Wire.ok)
        #expect(entries(call("purge")) == "*6 $7 entries :2")
        #expect(call("DBSIZE") == Wire.int(0))
        for line in ["PURGE BAD", "PURGE PREFIX", "PURGE PREFIX a b", "PURGE EXPIRED a"] {
            #expect(call(line) == Wire.syntaxError)
        }
    }

    // MARK: SNAPSHOT

    @Test func aSnapshotDoesNotSeeLaterChanges() throws {
        let server = try SocketlessServer(policy: .never)
        let call = server.connect()
        let other = server.connect()
        #expect(call("MSET a 1 b 2") == Wire.ok)
        #expect(call("SET soon x PX 100") == Wire.ok)
        #expect(call("SNAPSHOT OPEN") == Wire.ok)
        #expect(call("INFO larder").contains("open_snapshots:1\r\n"))
        #expect(other("SET a new") == Wire.ok)
        #expect(other("DEL b") == Wire.int(1))
        #expect(other("SET c 3") == Wire.ok)
        #expect(call("SET d 4") == Wire.ok, "writes go to the database")
        #expect(call("GET a") == Wire.bulk("1"))
        #expect(call("MGET a b c d") == Wire.array(Wire.bulk("1"), Wire.bulk("2"), Wire.null, Wire.null))
        #expect(call("EXISTS a b c d") == Wire.int(2))
        #expect(call("STRLEN a") == Wire.int(1))
        #expect(call("TTL b") == Wire.int(-1))
        #expect(call("KEYS *") == Wire.bulks("a", "b", "soon"))
        #expect(call("DBSIZE") == Wire.int(3))
        #expect(call("SCAN 0") == "*2\r\n$1\r\n0\r\n" + Wire.bulks("a", "b", "soon"))
        server.time.advance(milliseconds: 100)
        #expect(call("GET soon") == Wire.null, "a snapshot freezes data, not time")
        #expect(call("KEYS *") == Wire.bulks("a", "b"))
        #expect(call("SNAPSHOT OPEN") == Wire.error("ERR a snapshot is open already: SNAPSHOT CLOSE first"))
        #expect(call("SELECT 1").hasPrefix("-ERR a snapshot of the current database is open"))
        #expect(call("SNAPSHOT CLOSE") == Wire.ok)
        #expect(call("GET a") == Wire.bulk("new"))
        #expect(call("SNAPSHOT CLOSE") == Wire.error("ERR no snapshot is open"))
        #expect(call("SNAPSHOT BAD") == Wire.error("ERR unknown subcommand 'BAD'. Try SNAPSHOT HELP."))
        #expect(call("SNAPSHOT HELP").hasPrefix("*7\r\n+SNAPSHOT <subcommand> [<argument> ...]."))
        #expect(server.state.openSnapshots.read() == 0)
    }

    @Test func aSnapshotOfAPurgedDatabaseReturnsAnError() throws {
        let server = try SocketlessServer()
        let call = server.connect()
        #expect(call("SET a 1") == Wire.ok)
        #expect(call("SNAPSHOT OPEN") == Wire.ok)
        #expect(call("FLUSHDB") == Wire.ok)
        for line in ["GET a", "KEYS *", "DBSIZE", "MGET a b"] {
            #expect(call(line).contains("purged during the operation"), "\(line)")
        }
        #expect(call("SNAPSHOT CLOSE") == Wire.ok)
        #expect(call("GET a") == Wire.null)
    }

    @Test func openSnapshotsAreLimitedInNumberAndTime() throws {
        var limits = Limits()
        limits.snapshotsMax = 2
        limits.snapshotMilliseconds = 300_000
        let server = try SocketlessServer(limits: limits)
        let clients = (0..<3).map { _ in server.connect() }
        #expect(clients[0]("SET a 1") == Wire.ok)
        #expect(clients[0]("SNAPSHOT OPEN") == Wire.ok)
        #expect(clients[1]("SNAPSHOT OPEN") == Wire.ok)
        #expect(clients[2]("SNAPSHOT OPEN") == Wire.error("ERR the limit of 2 open snapshots is reached"))
        #expect(server.state.openSnapshots.read() == 2)
        clients[0].session.end()
        #expect(server.state.openSnapshots.read() == 1)
        #expect(clients[2]("SNAPSHOT OPEN") == Wire.ok)
        clients[1].session.expireSnapshot(monotonic: server.engine.monotonic() + 299_999)
        #expect(clients[1]("GET a") == Wire.bulk("1"))
        clients[1].session.expireSnapshot(monotonic: server.engine.monotonic() + 300_000)
        #expect(server.state.openSnapshots.read() == 1, "an expired snapshot pins nothing")
        let expired = Wire.error("ERR the snapshot expired after 300 s: send SNAPSHOT CLOSE to read current entries")
        for line in ["GET a", "MGET a b", "KEYS *", "SCAN 0", "DBSIZE", "TTL a", "META a"] {
            #expect(clients[1](line) == expired, "\(line)")
        }
        #expect(clients[1]("SET b 1") == Wire.ok)
        #expect(clients[1]("SNAPSHOT CLOSE") == Wire.ok)
        #expect(clients[1]("GET b") == Wire.bulk("1"))
    }

    /// The connection closes while another thread opens its snapshot, which is then closed too.
    @Test func aSnapshotIsClosedIfItsClientDisconnectsMeanwhile() throws {
        let server = try SocketlessServer()
        let call = server.connect()
        #expect(call("SET a 1") == Wire.ok)
        call.session.parser.append(Array("SNAPSHOT OPEN\r\n".utf8))
        guard case .work(let work) = CommandRunner(call.session).run(outputBytesMax: 1) else {
            Issue.record("a snapshot is opened on another thread")
            return
        }
        #expect(server.state.openSnapshots.read() == 1)
        do {
            let result = WorkResult(work, version: .two)
            call.session.end()
            #expect(server.state.openSnapshots.read() == 1)
            _ = result
        }
        withExtendedLifetime(work) {}
    }
}

extension String {
    /// Returns the first `count` lines of a reply, with spaces between them.
    fileprivate func components(_ count: Int) -> String {
        split(separator: "\r\n").prefix(count).joined(separator: " ")
    }
}
