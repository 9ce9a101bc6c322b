import LarderCommandCatalog
import LarderEngine
import LarderPlatform
import LarderTestSupport
import Testing

@testable import LarderServer

@Suite struct ServerCommandTests {
    @Test func commandDescribesEveryCommand() throws {
        let call = try SocketlessServer().connect()
        #expect(call("COMMAND COUNT") == Wire.int(CommandTable.all.count))
        #expect(call("COMMAND").hasPrefix("*\(CommandTable.all.count)\r\n*10\r\n$3\r\nget\r\n:2\r\n*2\r\n+readonly"))
        #expect(call("COMMAND LIST").hasPrefix("*\(CommandTable.withSubcommands.count)\r\n$3\r\nget\r\n"))
        let get =
            "*10\r\n$3\r\nget\r\n:2\r\n*2\r\n+readonly\r\n+fast\r\n:1\r\n:1\r\n:1\r\n*3\r\n+@read\r\n+@string\r\n+@fast\r\n"
        #expect(call("COMMAND INFO GET nosuch").hasPrefix("*2\r\n" + get))
        #expect(call("COMMAND INFO GET nosuch").hasSuffix("*0\r\n" + Wire.null))
        #expect(call("COMMAND DOCS nosuch") == "*0\r\n")
        #expect(call("COMMAND DOCS Get").hasPrefix("*2\r\n$3\r\nget\r\n*"))
        #expect(call("COMMAND COUNT x") == Wire.arity("command|count"))
        #expect(call("COMMAND BAD") == Wire.error("ERR unknown subcommand 'BAD'. Try COMMAND HELP."))
        _ = call("HELLO 3")
        #expect(call("COMMAND INFO get").contains(":2\r\n~2\r\n+readonly\r\n"))
        #expect(call("COMMAND DOCS get").hasPrefix("%1\r\n$3\r\nget\r\n%"))
    }

    /// Every reply has exactly as many elements as its headers state, in both protocol versions.
    @Test(arguments: [2, 3]) func repliesHaveAsManyElementsAsTheyAnnounce(_ version: Int) throws {
        let call = try SocketlessServer().connect()
        _ = call("HELLO \(version)")
        for line in [
            "COMMAND", "COMMAND DOCS", "COMMAND LIST", "COMMAND INFO", "COMMAND HELP", "CLIENT HELP", "INFO", "SET a 1",
            "META a", "POLICY", "DATABASES", "PURGE", "PURGE EXPIRED", "PURGE PREFIX a", "SCAN 0", "KEYS *", "HELLO",
        ] {
            let reply = Array(call(line).utf8)
            #expect(RawReply.length(reply) == reply.count, "\(line)")
        }
    }

    @Test func infoHasSectionsAndFields() throws {
        let server = try SocketlessServer()
        let call = server.connect()
        #expect(call("MSET a 1 b 2") == Wire.ok)
        #expect(call("GET a") == Wire.bulk("1"))
        #expect(call("GET nothing") == Wire.null)
        let all = call("INFO")
        for section in ["Server", "Clients", "Memory", "Persistence", "Stats", "Keyspace", "Larder"] {
            #expect(all.contains("# \(section)\r\n"), "\(section)")
        }
        for field in [
            "redis_version:7.0.0", "larder_version:\(Version.text)", "unixsocket:/a/socket", "maxclients:10000",
            "loading:0", "durability:everysecond", "pending_bytes:0", "keyspace_hits:1", "keyspace_misses:1",
            "db0:keys=2,expires=2,avg_ttl=604800000", "default_policy:lowest", "databases:1", "open_snapshots:0",
            "directory:\(server.engine.directory)",
        ] {
            #expect(all.contains("\(field)\r\n"), "\(field)")
        }
        // Written data is in the journal until a checkpoint moves it to LevelDB.
        #expect(all.contains("\r\njournal_bytes:\(server.engine.journalByteCount)\r\n"))
        #expect(server.engine.journalByteCount > 0)
        #expect(all.contains("\r\ncheckpoints:0\r\n"))
        server.engine.maintain()
        #expect(call("INFO persistence").contains("\r\njournal_bytes:0\r\ncheckpoints:1\r\n"))
        #expect(call("INFO keyspace") == Wire.bulk("# Keyspace\r\ndb0:keys=2,expires=2,avg_ttl=604800000\r\n"))
        #expect(call("INFO keyspace CLIENTS").hasPrefix("$"))
        #expect(call("INFO nosuch") == Wire.bulk(""))
        #expect(call("INFO everything").contains("# Larder"))
        _ = call("HELLO 3")
        #expect(
            call("INFO keyspace").hasPrefix(
                "=\(4 + "# Keyspace\r\ndb0:keys=2,expires=2,avg_ttl=604800000\r\n".utf8.count)\r\ntxt:# Key"))
    }

    /// Counting the entries of a database takes a while, and may fail. INFO then reports that the count is missing,
    /// rather than zero entries.
    @Test func infoReportsDatabasesWhoseEntriesAreNotCounted() throws {
        let server = try SocketlessServer()
        let call = server.connect()
        #expect(call("SET k v") == Wire.ok)
        #expect(call("INFO keyspace") == Wire.bulk("# Keyspace\r\ndb0:keys=1,expires=1,avg_ttl=604800000\r\n"))
        server.state.counts.stop()
        #expect(call("SELECT 1") + call("SET k v") == Wire.ok + Wire.ok)
        #expect(
            call("INFO keyspace")
                == Wire.bulk(
                    "# Keyspace\r\nuncounted_databases:1\r\ndb0:keys=1,expires=1,avg_ttl=604800000\r\n"))
    }

    @Test("FLUSHDB and FLUSHALL remove all entries but keep the policies") func flushing() throws {
        let call = try SocketlessServer().connect()
        for (database, key) in [("0", "a"), ("books", "b"), ("1", "c")] {
            #expect(call("SELECT \(database)") == Wire.ok)
            #expect(call("SET \(key) v") == Wire.ok)
            #expect(call("POLICY high") == Wire.ok)
        }
        #expect(call("FLUSHDB") == Wire.ok)
        #expect(call("DBSIZE") == Wire.int(0))
        #expect(call("SELECT books") == Wire.ok)
        #expect(call("DBSIZE") == Wire.int(1))
        #expect(call("FLUSHALL async") == Wire.ok)
        #expect(call("DBSIZE") == Wire.int(0))
        #expect(call("POLICY").contains("high"), "the policy stays")
        #expect(call("SET b v") == Wire.ok)
        #expect(call("FLUSHDB SYNC") == Wire.ok)
        #expect(call("EXISTS b") == Wire.int(0))
        for line in ["FLUSHDB BAD", "FLUSHALL BAD", "FLUSHALL SYNC ASYNC"] { #expect(call(line) == Wire.syntaxError) }
    }

    @Test("SHUTDOWN stops the server without a reply") func shutdown() throws {
        let server = try SocketlessServer()
        let call = server.connect()
        for words in ["BAD", "SAVE NOSAVE", "nosave now save"] {
            #expect(call("SHUTDOWN \(words)") == Wire.syntaxError)
        }
        #expect(server.stopReasons.all.isEmpty)
        #expect(call("SHUTDOWN NOSAVE now FORCE NOSAVE") == "")
        #expect(call.session.isClosing)
        #expect(server.stopReasons.all == ["SHUTDOWN from client \(call.session.id)"])
    }

    @Test func everyCommandHasAHandlerAndViceVersa() {
        let rows = CommandMetadata.withSubcommands
        let implemented = Set(CommandTable.handlers.keys).union(CommandTable.planners.keys)
        #expect(implemented == Set(rows.filter { $0.runsByItself && !$0.isHelp }))
        #expect(CommandTable.withSubcommands.map(\.metadata) == rows)
        for row in rows { #expect(CommandMetadata.numbered(row.number) == row) }
    }

    @Test("every row of the command table has a unique name, valid texts and a matching syntax")
    func theCommandTableIsConsistent() {
        #expect(Set(CommandTable.all.map(\.name)).count == CommandTable.all.count)
        for spec in CommandTable.all {
            #expect(spec.name == spec.name.lowercased())
            #expect(spec.arity != 0)
            let row = spec.metadata
            #expect(row.summary.hasSuffix("."), "\(row.name)")
            #expect(!row.complexity.isEmpty && !row.reply.isEmpty && !row.since.isEmpty, "\(row.name)")
            let isExact = spec.arity > 0
            #expect(
                isExact == !(row.syntax.contains("[") || row.syntax.contains("...") || row.arity < 0), "\(spec.name)"
            )
            #expect(CommandTable.find(spec.name.uppercased())?.name == spec.name)
        }
        for name in """
        ping echo quit hello select command info client set get getdel mget mset del unlink exists type strlen ttl \
        pttl expire pexpire expireat pexpireat expiretime persist dbsize keys scan flushdb flushall meta policy \
        databases purge snapshot shutdown
        """.split(separator: " ") {
            #expect(CommandTable.find(String(name)) != nil, "\(name)")
        }
        #expect(CommandTable.find("") == nil)
        #expect(CommandTable.find(String(repeating: "get", count: 20)) == nil)
    }

    /// A call has one word too few, or, for a command with a fixed number of words, one word too many. The error names
    /// the command.
    @Test("a wrong number of arguments is an error that names the command") func arity() throws {
        let call = try SocketlessServer().connect()
        // EXEC is excluded: its error also reports that the queued commands are discarded.
        for spec in CommandTable.all where spec.name != "exec" {
            let least = abs(spec.arity)
            if least > 1 {
                let words = [spec.name] + Array(repeating: "x", count: least - 2)
                #expect(call(words) == Wire.arity(spec.name))
            }
            if spec.arity > 0 {
                let words = [spec.name.uppercased()] + Array(repeating: "x", count: spec.arity)
                #expect(call(words) == Wire.arity(spec.name))
            }
        }
    }

    /// Regression test: INFO reported invented values in all of these fields.
    @Test func infoReportsExpiriesAndUnsavedChanges() throws {
        let server = try SocketlessServer(policy: .never)
        let call = server.connect()
        _ = call("MSET a 1 b 2 c 3")
        #expect(call("INFO keyspace").contains("db0:keys=3,expires=0,avg_ttl=0\r\n"))
        _ = call("PEXPIRE a 1000")
        _ = call("PEXPIRE b 3000")
        #expect(call("INFO keyspace").contains("db0:keys=3,expires=2,avg_ttl=2000\r\n"))
        server.time.advance(milliseconds: 2000)
        #expect(call("INFO keyspace").contains("db0:keys=2,expires=1,avg_ttl=1000\r\n"))

        #expect(call("INFO persistence").contains("rdb_changes_since_last_save:5\r\n"))
        #expect(call("SAVE") == Wire.ok)
        #expect(call("INFO persistence").contains("rdb_changes_since_last_save:0\r\n"))
        _ = call("MSET d 1 e 2")
        _ = call("DEL d")
        #expect(call("INFO persistence").contains("rdb_changes_since_last_save:3\r\n"))
    }

    @Test("keyspace_hits and keyspace_misses count each read once, in memory, on disk, in transactions and in scripts")
    func infoCountsHitsAndMisses() throws {
        let script = "return{redis.call('mget',KEYS[1],KEYS[2]),redis.call('get',KEYS[1])}"
        // This script restarts for each key that it does not declare.
        let undeclared = "redis.call('get','c')redis.call('get','d')return{redis.call('get','a')}"
        let restoring = "return{redis.call('restore',KEYS[2],0,redis.call('dump',KEYS[1]))}"
        let cases: [(lines: String, hits: Int, misses: Int)] = [
            ("GETDEL a", 1, 0), ("GETDEL c", 0, 1), ("GETSET a x", 1, 0), ("SET c x GET", 0, 1), ("SET a x", 0, 0),
            ("GETEX a PERSIST", 1, 0), ("LCS a b", 2, 0), ("LCS a c", 1, 1), ("TAGS a", 1, 0), ("TAGS c", 0, 1),
            ("BITOP OR d a c", 1, 1), ("BITOP NOT d c", 0, 1), ("MULTI;GET a;MGET a c;STRLEN c;EXEC", 2, 2),
            ("MULTI;SET c x;GET c;GETDEL c;LCS a c;EXEC", 3, 1), ("EVAL \(script) 2 a c", 2, 1),
            ("EVAL \(undeclared) 0", 1, 2), ("MULTI;EVAL \(undeclared) 0;EXEC", 1, 2),
            ("COPY a d", 1, 0), ("COPY a b", 1, 0), ("COPY c d", 0, 1), ("COPY a d DB 1", 1, 0),
            ("COPY c d DB 1", 0, 1),
            ("MULTI;COPY a d DB 1;COPY c d DB 1;EXEC", 1, 1), ("MOVE a 1", 0, 0), ("MULTI;MOVE a 1;EXEC", 0, 0),
            ("MEMORY USAGE a", 0, 0), ("MEMORY USAGE c", 0, 0), ("HDEL c f", 0, 0), ("ZREM c m", 0, 0),
            ("LPOP c", 0, 0), ("HGET c f", 0, 1), ("XACK c g 1-1", 0, 1), ("EVAL \(restoring) 2 a c", 1, 0),
        ]
        for (lines, hits, misses) in cases {
            for isCold in [false, true] {
                let first = try SocketlessServer()
                #expect(first.connect()("MSET a 1 b 2") == Wire.ok)
                if isCold { first.engine.shutdown() }
                let server = try isCold ? SocketlessServer(reopening: first) : first
                let call = server.connect()
                for line in lines.split(separator: ";") { #expect(!call(String(line)).hasPrefix("-"), "\(line)") }
                let counts = call("INFO stats").split(separator: "\r\n").filter { $0.hasPrefix("keyspace_") }
                #expect(
                    counts.prefix(2) == ["keyspace_hits:\(hits)", "keyspace_misses:\(misses)"], "\(lines) \(isCold)")
            }
        }
    }

    @Test func infoCountsTrackedKeys() throws {
        let server = try SocketlessServer()
        let (one, two, three, call) = (server.connect(), server.connect(), server.connect(), server.connect())
        _ = call("MSET a 1 b 2")
        for client in [one, two] {
            _ = client("HELLO 3")
            _ = client("CLIENT TRACKING on")
        }
        _ = one("MGET a b")
        _ = two("GET a")
        _ = three("HELLO 3")
        _ = three("CLIENT TRACKING on BCAST PREFIX x PREFIX y")
        let stats = call("INFO stats")
        for line in ["tracking_total_keys:2", "tracking_total_items:3", "tracking_total_prefixes:2"] {
            #expect(stats.contains("\r\n\(line)\r\n"), "\(line)")
        }
        #expect(call("INFO clients").contains("\r\ntracking_clients:3\r\n"))
        _ = call("SET a 2")
        #expect(call("INFO stats").contains("\r\ntracking_total_keys:1\r\ntracking_total_items:1\r\n"))
        for client in [one, two, three] { client.session.end() }
        #expect(call("INFO stats").contains("\r\ntracking_total_keys:0\r\ntracking_total_items:0\r\n"))
    }

    /// Regression test: a password that was passed to CONFIG SET appeared in SLOWLOG.
    @Test(arguments: ["requirepass", "RequirePass", "masterauth"])
    func slowlogAndMonitorShowNoPasswords(_ name: String) throws {
        let server = try SocketlessServer()
        let (call, monitor) = (server.connect(), server.connect())
        _ = call("CONFIG SET slowlog-log-slower-than 0")
        _ = monitor("MONITOR")
        _ = call("CONFIG SET \(name) topsecret")
        _ = call("CONFIG SET maxmemory 64mb \(name) topsecret")
        _ = call("AUTH topsecret")
        _ = call("HELLO 3 AUTH default topsecret")
        let log = call("SLOWLOG GET 128")
        #expect(log.contains("(redacted)"))
        #expect(!log.contains("topsecret"))
        #expect(!monitor.takeSendable().contains("topsecret"))
        #expect(!call("CLIENT LIST").contains("topsecret"))
    }

    /// All options with sizes use one parser. In CONFIG SET, single letters have their meaning in Redis.
    @Test func configSetAcceptsSizesWithUnits() throws {
        for text in ["64M", "64m", "64mb", "64MB", "64MiB", "64mib", "65536k", "65536KiB", "67108864", "67108864b"] {
            #expect(ByteCount.parse(text, letters: .binary) == 64 << 20, "\(text)")
        }
        #expect(ByteCount.parse("1gb", letters: .binary) == 1 << 30)
        #expect(ByteCount.parse("1T", letters: .binary) == 1 << 40)
        #expect(ByteCount.parse("64m", letters: .decimal) == 64_000_000)
        #expect(ByteCount.parse("64mb", letters: .decimal) == 64 << 20)
        for text in ["", "M", "mb", "1.5G", "-1", "+1", "64 M", "64x", "64mbb", "64bm", "64iB", "9999999999T", "٣"] {
            #expect(ByteCount.parse(text, letters: .binary) == nil, "\(text)")
        }
        let call = try SocketlessServer().connect()
        for text in ["64mb", "64MiB", "67108864"] {
            #expect(call("CONFIG SET maxmemory \(text)") == Wire.ok)
            #expect(call("CONFIG GET maxmemory") == Wire.bulks("maxmemory", "67108864"))
        }
        #expect(call("CONFIG SET maxmemory 64xb").hasPrefix("-ERR CONFIG SET failed"))
    }
}
