import LarderEngine
import LarderTestSupport
import Testing

@testable import LarderServer

@Suite struct AdministrationCommandTests {
    @Test("CONFIG GET and CONFIG SET read and change settings, all or none") func settings() throws {
        let server = try SocketlessServer()
        let call = server.connect()
        #expect(call("CONFIG GET slowlog-*").contains("slowlog-max-len"))
        #expect(call("CONFIG GET save appendonly") == Wire.bulks("save", "", "appendonly", "yes"))
        #expect(call("CONFIG SET timeout 5 maxclients 7") == Wire.ok)
        #expect(call("CONFIG GET timeout maxclients") == Wire.bulks("timeout", "5", "maxclients", "7"))
        #expect(server.state.settings.clientsMax.read() == 7)
        // If one setting is invalid, CONFIG SET fails and changes no setting.
        #expect(call("CONFIG SET timeout 6 maxclients 0").contains("must be between 1 and"))
        #expect(call("CONFIG GET timeout") == Wire.bulks("timeout", "5"))
        // One call may not set an option twice, not even by two of its names.
        for twice in ["timeout 6 TIMEOUT", "maxclients 8 max-clients"] {
            let second = twice.split(separator: " ")[2]
            #expect(
                call("CONFIG SET \(twice) 9").hasSuffix("to argument '\(second)') - duplicate parameter\r\n"))
        }
        #expect(call("CONFIG GET timeout maxclients") == Wire.bulks("timeout", "5", "maxclients", "7"))
        #expect(
            call("CONFIG SET save x").hasSuffix(
                "(possibly related to argument 'save') - can't set immutable config\r\n"))
        #expect(call(["CONFIG", "SET", "save", ""]) == Wire.ok)
        _ = call("HELLO 3")
        #expect(call("CONFIG GET timeout") == "%1\r\n" + Wire.bulk("timeout") + Wire.bulk("5"))
        for setting in Setting.all {
            #expect(call("CONFIG GET \(setting.name)").hasPrefix("%1\r\n"), "\(setting.name)")
        }
    }

    @Test("CONFIG SET maxmemory shrinks and grows the memory for entries without data loss") func memoryLimit() throws {
        let server = try SocketlessServer { $0.memoryBytes = 16 << 20 }
        let call = server.connect()
        let value = String(repeating: "v", count: 1000)
        for index in 0..<2000 { _ = call(["SET", "k\(index)", value]) }
        server.engine.maintain()
        #expect(server.engine.memory.usedBytes > 2_000_000)
        #expect(call("CONFIG SET maxmemory 1mb") == Wire.ok)
        #expect(call("CONFIG GET maxmemory") == Wire.bulks("maxmemory", "1048576"))
        #expect(call("INFO memory").contains("\r\nmaxmemory:1048576\r\n"))
        #expect(server.engine.memory.usedBytes <= 1 << 20)
        #expect(server.engine.memory.usedBytes > 800_000)
        for index in 0..<2000 { #expect(call("GET k\(index)") == Wire.bulk(value)) }
        #expect(server.engine.memory.usedBytes <= 1 << 20)
        #expect(call("CONFIG SET maxmemory 16mb") == Wire.ok)
        for index in 0..<2000 { #expect(call("STRLEN k\(index)") == Wire.int(1000)) }
        #expect(server.engine.memory.usedBytes > 2_000_000)
        // No entries stay in memory, apart from data that is not yet in LevelDB.
        #expect(call("CONFIG SET maxmemory 0") == Wire.ok)
        #expect(server.engine.memory.usedBytes == 0)
        #expect(call("GET k7") == Wire.bulk(value))
        #expect(call("SET k7 new") == Wire.ok)
        #expect(call("GET k7") == Wire.bulk("new"))
        server.engine.maintain()
        #expect(server.engine.memory.usedBytes == 0)
        #expect(call("GET k7") == Wire.bulk("new"))
    }

    @Test func purgesBackupsAndTheFirstFailedSaveAreLogged() throws {
        let server = try InProcessServer()
        let client = try server.connect()
        for (line, logged) in [
            ("FLUSHDB", " ran FLUSHDB in database '0'"), ("FLUSHALL", " ran FLUSHALL"),
            ("PURGE EXPIRED", " ran PURGE EXPIRED in database '0', entries removed: 0"),
            ("PURGE", " ran PURGE in database '0', entries removed: 2"),
            ("BACKUP \(server.directory.path)/backups", " ran BACKUP to \(server.directory.path)/backups/20"),
        ] {
            #expect(try client.call("MSET a 1 b 2") == Wire.ok)
            #expect(try !client.call(line).hasPrefix("-"), "\(line)")
            #expect(server.logLines.line(containing: logged)?.contains(" info ") == true, "\(line)")
        }
        server.stop()
        let closed = try SocketlessServer()
        let lines = try LogReader()
        let log = Log(least: .info, descriptor: lines.writeEnd)
        let state = try ServerState(engine: closed.engine, log: log)
        closed.engine.shutdown()
        for _ in 0..<2 { #expect(throws: LarderError.self) { try state.save() } }
        log.flush()
        lines.closeWriteEnd()
        #expect(lines.line(containing: "a save failed")?.contains(" error ") == true)
        #expect(lines.line(containing: "a save failed") == nil)
    }

    @Test("client-output-buffer-limit can be changed for subscribers only") func outputLimits() throws {
        let server = try SocketlessServer()
        let call = server.connect()
        let name = "client-output-buffer-limit"
        func shown(_ subscribers: String) -> String {
            Wire.bulks(name, "normal 0 8388608 60 slave 0 0 0 pubsub \(subscribers)")
        }
        #expect(call("CONFIG GET \(name)") == shown("33554432 8388608 60"))
        #expect(call(["CONFIG", "SET", name, "pubsub 1mb 2kb 3"]) == Wire.ok)
        #expect(call("CONFIG GET \(name)") == shown("1048576 2048 3"))
        #expect(call("CONFIG GET max-subscriber-output").contains("1048576"))
        #expect(call(["CONFIG", "SET", name, "slave 0 0 0 normal 0 8mb 60"]) == Wire.ok)
        let refused = call(["CONFIG", "SET", name, "pubsub 1 1 1 normal 1 1 1"])
        #expect(refused.hasSuffix("can't set immutable config\r\n"))
        #expect(call("CONFIG GET \(name)") == shown("1048576 2048 3"), "all or nothing")
        #expect(call(["CONFIG", "SET", name, "pubsub 99999999999g 0 1"]).hasSuffix("configuration.\r\n"))
    }

    /// INFO names the allocator in use; MEMORY PURGE asks this allocator to release memory.
    @Test("INFO and MEMORY PURGE use the same allocator") func allocator() throws {
        let server = try SocketlessServer()
        let call = server.connect()
        #expect(call("INFO memory").contains("\r\nmem_allocator:\(Allocator.name)\r\n"))
        #expect(call("MEMORY PURGE") == Wire.ok)
    }

    @Test("INFO counts the calls and errors of each command") func statistics() throws {
        let server = try SocketlessServer()
        let call = server.connect()
        for line in ["SET a 1", "GET a", "GET b", "SET a 1 EX 0", "SET a", "DBSIZE", "MULTI", "APPEND a 2", "EXEC"] {
            _ = call(line)
        }
        let stats = call("INFO commandstats")
        for expected in [
            "cmdstat_get:calls=2,", "cmdstat_dbsize:calls=1,", "cmdstat_append:calls=1,", "cmdstat_exec:calls=1,",
        ] { #expect(stats.contains(expected), "\(expected): \(stats)") }
        let set = try #require(stats.split(separator: "\r\n").first { $0.hasPrefix("cmdstat_set:") })
        #expect(set.hasPrefix("cmdstat_set:calls=2,") && set.hasSuffix(",rejected_calls=1,failed_calls=1"), "\(set)")
        #expect(call("INFO errorstats") == Wire.bulk("# Errorstats\r\nerrorstat_ERR:count=2\r\n"))
        #expect(call("INFO latencystats").contains("latency_percentiles_usec_get:p50="))
        #expect(
            call("LATENCY HISTOGRAM dbsize").hasPrefix(
                "*2\r\n" + Wire.bulk("dbsize") + "*4\r\n" + Wire.bulk("calls") + ":1\r\n"))
        #expect(call("CONFIG RESETSTAT") == Wire.ok)
        #expect(call("INFO errorstats") == Wire.bulk("# Errorstats\r\n"))
        #expect(!call("INFO commandstats").contains("cmdstat_get:"))
    }

    @Test func percentilesReachTwoMinutes() throws {
        let statistics = CommandStatistics()
        statistics.newCounter().ran(1, nanoseconds: 100_000_000_000, failed: false)
        #expect(try #require(statistics.sums[1]).percentile(0.99) == 134_217_728)
    }

    @Test func infoShowsTheTrafficPerSecond() throws {
        let server = try SocketlessServer()
        let counter = server.state.statistics.newCounter()
        server.state.statistics.sample(at: 1000)
        counter.bytesIn.store(3072, ordering: .relaxed)
        counter.bytesOut.store(512, ordering: .relaxed)
        server.state.statistics.sample(at: 3000)
        let info = server.connect()("INFO stats")
        #expect(info.contains("instantaneous_input_kbps:1.50\r\ninstantaneous_output_kbps:0.25\r\n"), "\(info)")
        // After a reset, there may be more commands than before, but fewer bytes.
        let client = server.connect()
        #expect(client("CONFIG RESETSTAT") == Wire.ok)
        for _ in 0..<10 { #expect(client("PING") == "+PONG\r\n") }
        server.state.statistics.sample(at: 4000)
        #expect(client("INFO stats").contains("instantaneous_input_kbps:0.00\r\n"))
        counter.bytesIn.store(2048, ordering: .relaxed)
        server.state.statistics.sample(at: 5000)
        #expect(client("INFO stats").contains("instantaneous_input_kbps:2.00\r\n"))
    }

    @Test("CONFIG RESETSTAT resets the counters of reads and of expired entries, also in a transaction")
    func resettingReads() throws {
        let server = try SocketlessServer()
        let call = server.connect()
        for resetting in [["CONFIG RESETSTAT"], ["MULTI", "GET a", "CONFIG RESETSTAT", "EXEC"]] {
            for line in ["SET a 1", "GET a", "GET a", "GET b", "SET c 1 PX 10"] { _ = call(line) }
            server.time.advance(milliseconds: 10)
            #expect(call("GET c") == Wire.null)
            let before = call("INFO stats")
            for text in ["keyspace_hits:2\r\n", "keyspace_misses:2\r\n", "expired_keys:1\r\n"] {
                #expect(before.contains(text), "\(before)")
            }
            for line in resetting { #expect(!call(line).hasPrefix("-")) }
            let after = call("INFO stats")
            for name in ["keyspace_hits", "keyspace_misses", "keyspace_misses_expired", "expired_keys"] {
                #expect(after.contains(name + ":0\r\n"), "\(after)")
            }
        }
    }

    /// Scripts fail in the same way with and without the fast path, which is used from the second run on.
    @Test func infoCountsScriptsThatFail() throws {
        let call = try SocketlessServer().connect()
        let script = "redis.call('set',KEYS[1],'1') error('no')"
        for _ in 0..<5 { #expect(call(["EVAL", script, "1", "k"]).hasPrefix("-")) }
        let stats = call("INFO commandstats")
        let eval = try #require(stats.split(separator: "\r\n").first { $0.hasPrefix("cmdstat_eval:") })
        #expect(eval.hasPrefix("cmdstat_eval:calls=5,") && eval.hasSuffix(",failed_calls=5"), "\(eval)")
    }

    /// A command for a database that cannot be opened does not run, and gets an error.
    @Test func commandsOnADatabaseThatCannotBeOpenedReturnErrors() throws {
        let server = try SocketlessServer()
        let call = server.connect()
        // A file already has the name that the database's directory would need.
        _ = try server.directory.makeFile("larder/books", [1])
        #expect(call("SELECT books") == Wire.ok)
        for _ in 0..<3 { #expect(call("SET a 1").hasPrefix("-")) }
        let stats = call("INFO commandstats")
        let set = try #require(stats.split(separator: "\r\n").first { $0.hasPrefix("cmdstat_set:") })
        #expect(set.hasPrefix("cmdstat_set:calls=0,") && set.hasSuffix(",rejected_calls=3,failed_calls=0"), "\(set)")
        #expect(call("INFO stats").contains("\r\ntotal_error_replies:3\r\n"))
    }

    @Test("SLOWLOG lists slow commands with truncated arguments") func slowCommands() throws {
        let server = try SocketlessServer()
        let call = server.connect()
        #expect(call("CONFIG SET slowlog-log-slower-than 0 slowlog-max-len 3") == Wire.ok)
        #expect(call("SLOWLOG RESET") == Wire.ok)
        #expect(call("SET a 1") == Wire.ok)
        #expect(call(["SET", "b", String(repeating: "x", count: 200)]) == Wire.ok)
        #expect(call(["MGET"] + Array(repeating: "k", count: 40)).hasPrefix("*40"))
        let entries = call("SLOWLOG GET")
        #expect(RawReply.length(Array(entries.utf8)) == entries.utf8.count)
        #expect(entries.hasPrefix("*3\r\n*6\r\n"))
        #expect(entries.contains("... (10 more arguments)") && entries.contains("... (72 more bytes)"), "\(entries)")
        #expect(call("SLOWLOG LEN") == Wire.int(3))
        #expect(call("SLOWLOG GET 1").hasPrefix("*1\r\n*6\r\n"))
        #expect(call("CONFIG SET slowlog-log-slower-than -1") == Wire.ok)
        #expect(call("SLOWLOG RESET") == Wire.ok)
        #expect(call("GET a") == Wire.bulk("1"))
        #expect(call("SLOWLOG LEN") == Wire.int(0))
    }

    @Test func clientNoLogHidesCommandsFromTheSlowLog() throws {
        let server = try SocketlessServer()
        let (poller, client) = (server.connect(), server.connect())
        #expect(client("CONFIG SET slowlog-log-slower-than 0") == Wire.ok)
        #expect(client("SLOWLOG RESET") == Wire.ok)
        #expect(poller("CLIENT NO-LOG ON") == Wire.ok)
        #expect(poller("CLIENT INFO").contains(" flags=UL "))
        #expect(poller("INFO").hasPrefix("$"))
        #expect(poller("MULTI") == Wire.ok && poller("GET a") == "+QUEUED\r\n" && poller("EXEC").hasPrefix("*1"))
        let slow = client("SLOWLOG GET -1").uppercased()
        #expect(!slow.contains("\r\nINFO\r\n") && !slow.contains("\r\nGET\r\n\r\n$1"), "\(slow)")
        #expect(client("INFO commandstats").contains("cmdstat_info:calls=1,"), "the command is counted")
        #expect(poller("RESET") == "+RESET\r\n")
        #expect(poller("GET b") == Wire.null)
        #expect(client("SLOWLOG GET 1").contains("GET"))
        #expect(poller("CLIENT NO-LOG MAYBE") == Wire.error("ERR syntax error"))
    }

    @Test func clientNoLogHidesCommandsFromMONITOR() throws {
        let server = try SocketlessServer()
        let (monitor, client) = (server.connect(), server.connect())
        #expect(monitor("MONITOR") == Wire.ok)
        #expect(client("CLIENT NO-LOG ON") == Wire.ok)
        #expect(client("SET a secret-1") == Wire.ok)
        #expect(client(["EVAL", "return redis.call('get', KEYS[1])", "1", "a"]) == Wire.bulk("secret-1"))
        #expect(client("CLIENT NO-LOG OFF") == Wire.ok)
        #expect(client("SET a 2") == Wire.ok)
        let shown = monitor.takeSendable()
        #expect(shown.contains("\"SET\" \"a\" \"2\""), "\(shown)")
        #expect(!shown.contains("secret-1") && !shown.contains("EVAL"), "\(shown)")
    }

    @Test("LATENCY records only events that exceed the threshold") func latencyEvents() throws {
        let latency = LatencyMonitor()
        latency.note("command", time: 1, milliseconds: 50)
        #expect(latency.all.isEmpty, "the monitor is disabled by default")
        latency.threshold.store(10, ordering: .relaxed)
        for (time, length) in [(1, 5), (2, 20), (2, 15), (3, 12)] {
            latency.note("command", time: Int64(time), milliseconds: Int64(length))
        }
        let event = try #require(latency.event("command"))
        #expect(event.samples.map(\.milliseconds) == [20, 12] && event.longest == 20)
        #expect(latency.reset(["nothing"]) == 0 && latency.reset([]) == 1 && latency.all.isEmpty)
        let server = try SocketlessServer()
        let call = server.connect()
        // No command of this test takes an hour, however busy the machine is.
        server.state.latency.threshold.store(3_600_000, ordering: .relaxed)
        server.state.latency.note("command", time: 7, milliseconds: 3_600_001)
        #expect(
            call("LATENCY LATEST") == "*1\r\n*4\r\n" + Wire.bulk("command") + ":7\r\n:3600001\r\n:3600001\r\n")
        #expect(call("LATENCY HISTORY command") == "*1\r\n*2\r\n:7\r\n:3600001\r\n")
        #expect(call("LATENCY GRAPH command").contains("#"))
        #expect(call("LATENCY DOCTOR").contains("1 samples"))
        #expect(call("LATENCY RESET command") == Wire.int(1))
    }

    @Test("SAVE and BGSAVE write all entries to the databases") func saving() throws {
        let server = try SocketlessServer()
        let call = server.connect()
        #expect(call("SET a 1") == Wire.ok)
        #expect(server.engine.journalByteCount > 0)
        server.time.advance(milliseconds: 5000)
        #expect(call("SAVE") == Wire.ok)
        #expect(server.engine.journalByteCount == 0, "everything is in the databases")
        #expect(call("LASTSAVE") == Wire.int(Int(server.engine.now() / 1000)))
        #expect(call("BGSAVE") == "+Background saving started\r\n")
        #expect(call("INFO persistence").contains("rdb_last_bgsave_status:ok"))
    }

    @Test("DEBUG works only with --enable-debug") func debugNeedsAnOption() throws {
        #expect(try SocketlessServer().connect()("DEBUG SLEEP 0").contains("--enable-debug"))
        var limits = Limits()
        limits.allowsDebug = true
        let call = try SocketlessServer(limits: limits).connect()
        #expect(call("DEBUG SLEEP 0") == Wire.ok)
        #expect(call("DEBUG NOSUCH").hasPrefix("-ERR unknown subcommand"))
    }

    @Test("commands for types other than strings return an error that explains why")
    func commandsOfOtherTypesExplainTheError() throws {
        let call = try SocketlessServer().connect()
        #expect(
            call("LPUSH k v")
                == Wire.error(
                    "ERR unknown command 'LPUSH', with args beginning with: 'k' 'v' (there are no lists: Larder stores "
                        + "strings only)"))
        for name in ["hset", "SADD", "zadd", "XADD", "geoadd", "PFADD", "sort"] {
            #expect(call("\(name) k v").contains("Larder stores strings only"), "\(name)")
            #expect(CommandTable.find(name) == nil)
        }
        #expect(call("ZREVRANGEBYSCORE k 1 0") == "*0\r\n")
        #expect(!call("NOSUCH").contains("strings only"))
    }

    @Test("MONITOR shows commands in the order of execution", arguments: [1, 2])
    func monitoring(_ threads: Int) throws {
        let server = try InProcessServer(threads: threads)
        defer { server.stop() }
        let (monitor, client) = (try server.connect(), try server.connect())
        #expect(try monitor.call("MONITOR") == "+OK\r\n")
        for line in ["SET a 1", "GET a", "AUTH default secret", "CONFIG GET save", "PING"] { _ = try client.call(line) }
        let shown = try monitor.receive(4).map { String(decoding: $0, as: UTF8.self) }
        for (line, end) in zip(
            shown, ["\"SET\" \"a\" \"1\"", "\"GET\" \"a\"", "\"AUTH\" \"(redacted)\" \"(redacted)\"", "\"PING\""])
        {
            #expect(line.hasPrefix("+") && line.hasSuffix("] \(end)\r\n"), "\(line)")
        }
        #expect(try monitor.call("RESET").hasSuffix("+RESET\r\n"))
        #expect(try client.call("GET a") == "$1\r\n1\r\n")
        #expect(try monitor.call("PING") == "+PONG\r\n")
    }
}
