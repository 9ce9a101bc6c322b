import LarderEngine
import LarderTestSupport
import Testing

@testable import LarderServer

@Suite struct TransactionCommandTests {
    private static let queued = "+QUEUED\r\n"

    @Test("MULTI queues commands, and EXEC runs them") func queuesAndRuns() throws {
        let server = try SocketlessServer()
        let (call, other) = (server.connect(), server.connect())
        #expect(call("SET a 1") == Wire.ok)
        #expect(call("MULTI") == Wire.ok)
        for line in ["SET a 2", "GET a", "DEL a", "GET a", "MSET a 3 b 4", "MGET a b c", "EXISTS a b c", "STRLEN b"] {
            #expect(call(line) == Self.queued)
        }
        #expect(other("GET a") == Wire.bulk("1"), "nothing has run yet")
        #expect(
            call("EXEC")
                == Wire.array(
                    Wire.ok, Wire.bulk("2"), Wire.int(1), Wire.null, Wire.ok,
                    Wire.array(Wire.bulk("3"), Wire.bulk("4"), Wire.null), Wire.int(2), Wire.int(1)))
        #expect(other("MGET a b") == Wire.bulks("3", "4"))
        #expect(call("EXEC") == Wire.error("ERR EXEC without MULTI"))
        #expect(call("MULTI") == Wire.ok)
        #expect(call("EXEC") == "*0\r\n")
    }

    @Test("DISCARD drops the queued commands") func discarding() throws {
        let call = try SocketlessServer().connect()
        #expect(call("DISCARD") == Wire.error("ERR DISCARD without MULTI"))
        #expect(call("MULTI") == Wire.ok)
        #expect(call("SET a 1") == Self.queued)
        #expect(call("DISCARD") == Wire.ok)
        #expect(call("GET a") == Wire.null)
        #expect(call("EXEC") == Wire.error("ERR EXEC without MULTI"))
    }

    /// Each transaction moves or copies an entry to a database without files, and runs another command on the same key
    /// there.
    @Test(arguments: [
        (["MOVE i books", "SELECT books", "EXPIRE i 100", "TTL i"], [":1", "+OK", ":1", ":100"]),
        (["COPY i d DB books", "SELECT books", "GET d"], [":1", "+OK", "$1|v"]),
        (["SELECT books", "GET d", "SELECT 0", "COPY i d DB books"], ["+OK", "$-1", "+OK", ":1"]),
        (["MOVE i books", "SELECT books", "MOVE i 0"], [":1", "+OK", ":1"]),
        (["MOVE none books", "SELECT books", "GET none"], [":0", "+OK", "$-1"]),
    ])
    func transactionsCreateDatabasesForMOVEAndCOPY(commands: [String], replies: [String]) throws {
        let server = try SocketlessServer()
        let call = server.connect()
        #expect(call("SET i v") == Wire.ok)
        #expect(call("MULTI") == Wire.ok)
        for line in commands { #expect(call(line) == Self.queued) }
        let all = replies.map { $0.replacing("|", with: "\r\n") + "\r\n" }.joined()
        #expect(call("EXEC") == "*\(replies.count)\r\n" + all)
    }

    @Test func refusedCommandsAbortTheTransaction() throws {
        let call = try SocketlessServer().connect()
        let aborted = Wire.error("EXECABORT Transaction discarded because of previous errors.")
        for (line, error) in [
            ("NOSUCH", Wire.error("ERR unknown command 'NOSUCH', with args beginning with: ")),
            ("GET", Wire.arity("get")),
            ("SHUTDOWN", Wire.error("ERR Command not allowed inside a transaction")),
        ] {
            #expect(call("MULTI") == Wire.ok)
            #expect(call("SET a 1") == Self.queued)
            #expect(call(line) == error)
            #expect(call("SET a 2") == Self.queued)
            #expect(call("EXEC") == aborted)
            #expect(call("GET a") == Wire.null)
        }
        // These commands return errors too, but the transaction continues.
        #expect(call("MULTI") == Wire.ok)
        #expect(call("MULTI") == Wire.error("ERR MULTI calls can not be nested"))
        #expect(call("WATCH a") == Wire.error("ERR WATCH inside MULTI is not allowed"))
        #expect(call("SET a 3") == Self.queued)
        #expect(call("EXEC") == Wire.array(Wire.ok))
    }

    @Test func anErrorOfOneCommandDoesNotStopTheTransaction() throws {
        let call = try SocketlessServer().connect()
        #expect(call("MULTI") == Wire.ok)
        for line in ["SET a 1", "SET a 2 EX 0", "MSET a 1 b", "SELECT 99", "GET a"] {
            #expect(call(line) == Self.queued)
        }
        #expect(
            call("EXEC")
                == Wire.array(
                    Wire.ok, Wire.error("ERR invalid expire time in 'set' command"), Wire.arity("mset"),
                    Wire.error("ERR DB index is out of range"), Wire.bulk("1")))
    }

    @Test(
        "a transaction with a key that is too long changes nothing",
        arguments: ["SET key v", "DEL a key", "MSET a 1 key 2"])
    func tooLongKeysAreRefusedWhenQueued(_ line: String) throws {
        let call = try SocketlessServer().connect()
        let key = String(repeating: "k", count: Key.bytesMax + 1)
        #expect(call("MULTI") == Wire.ok && call("SET a 1") == Self.queued)
        let words = line.split(separator: " ").map { $0 == "key" ? key : String($0) }
        #expect(call(words) == Wire.error("ERR key is 65537 bytes long, the longest is 65536"))
        #expect(call("EXEC").hasPrefix("-EXECABORT"))
        #expect(call("EXISTS a") == Wire.int(0))
    }

    @Test func queuedBytesAndWatchedKeysAreLimited() throws {
        var limits = Limits()
        limits.transactionBytesMax = 4096
        limits.watchedKeysMax = 3
        let call = try SocketlessServer(limits: limits).connect()
        #expect(call("MULTI") == Wire.ok)
        #expect(call(["SET", "a", String(repeating: "x", count: 2000)]) == Self.queued)
        #expect(
            call(["SET", "b", String(repeating: "x", count: 2000)])
                == Wire.error("ERR the transaction is longer than 4096 bytes (--max-transaction)"))
        #expect(call("EXEC").hasPrefix("-EXECABORT"))
        #expect(call("EXISTS a") == Wire.int(0))
        #expect(call("WATCH a b") == Wire.ok)
        #expect(call("WATCH a b").hasPrefix("-ERR the limit of 3 watched keys"))
        #expect(call("UNWATCH") == Wire.ok)
        #expect(call("WATCH a b") == Wire.ok)
    }

    // MARK: WATCH

    @Test(arguments: [
        "SET a 2", "SET a 1", "DEL a", "EXPIRE a 100", "FLUSHDB", "FLUSHALL", "POLICY high", "PURGE PREFIX a",
    ]) func aChangeOfAWatchedKeyAbortsTheTransaction(_ change: String) throws {
        let server = try SocketlessServer()
        let (call, other) = (server.connect(), server.connect())
        #expect(call("SET a 1") == Wire.ok)
        #expect(call("WATCH a") == Wire.ok)
        #expect(!other(change).hasPrefix("-"))
        #expect(call("MULTI") == Wire.ok)
        #expect(call("SET b 1") == Self.queued)
        #expect(call("EXEC") == "*-1\r\n")
        #expect(call("EXISTS b") == Wire.int(0))
        // The first EXEC ends the watch.
        #expect(call("MULTI") == Wire.ok)
        #expect(call("SET b 1") == Self.queued)
        #expect(call("EXEC") == Wire.array(Wire.ok))
    }

    @Test("commands without effect do not abort transactions that watch the key")
    func commandsWithoutEffectDoNotAbortTransactions() throws {
        let server = try SocketlessServer { $0.memoryBytes = 0 }
        let (call, other) = (server.connect(), server.connect())
        #expect(call("MSET a 1 b 2") == Wire.ok)
        server.engine.maintain()
        #expect(call("WATCH a nothing") == Wire.ok)
        #expect(other("GET a") == Wire.bulk("1"))
        #expect(other("SET b 3") == Wire.ok)
        #expect(other("DEL nothing") == Wire.int(0))
        // Remove all entries from memory.
        server.engine.maintain()
        #expect(call("MULTI") == Wire.ok)
        #expect(call("GET a") == Self.queued)
        #expect(call("EXEC") == Wire.array(Wire.bulk("1")))
        #expect(call.colds > 0, "the key was not in memory")
    }

    @Test("a client's own change of a watched key aborts its transaction")
    func ownChangesOfWatchedKeysAbortTheTransaction() throws {
        let call = try SocketlessServer().connect()
        #expect(call("WATCH a") == Wire.ok)
        #expect(call("SET a 1") == Wire.ok)
        #expect(call("MULTI") == Wire.ok)
        #expect(call("EXEC") == "*-1\r\n")
    }

    @Test("UNWATCH and DISCARD end all watches") func unwatching() throws {
        let server = try SocketlessServer()
        let (call, other) = (server.connect(), server.connect())
        for end in ["UNWATCH", "DISCARD"] {
            if end == "DISCARD" { #expect(call("WATCH a") == Wire.ok) }
            if end == "DISCARD" { #expect(call("MULTI") == Wire.ok) } else { #expect(call("WATCH a") == Wire.ok) }
            #expect(other("SET a 1") == Wire.ok)
            #expect(call(end) == Wire.ok)
            #expect(call("MULTI") == Wire.ok)
            #expect(call("EXEC") == "*0\r\n")
        }
    }

    /// As in Redis 7.0, the expiry of a watched key counts as a change, unless the key had expired before WATCH.
    @Test("the expiry of a watched key aborts the transaction") func expiryOfAWatchedKey() throws {
        let server = try SocketlessServer()
        let call = server.connect()
        #expect(call("SET a 1 PX 100") == Wire.ok)
        #expect(call("WATCH a") == Wire.ok)
        server.time.advance(milliseconds: 100)
        #expect(call("MULTI") == Wire.ok)
        #expect(call("EXEC") == "*-1\r\n")
        #expect(call("WATCH a") == Wire.ok)
        server.time.advance(milliseconds: 100)
        #expect(call("MULTI") == Wire.ok)
        #expect(call("EXEC") == "*0\r\n")
    }

    @Test("a watch concerns the database selected at that time") func watchingInAnotherDatabase() throws {
        let server = try SocketlessServer()
        let (call, other) = (server.connect(), server.connect())
        for change in ["SET a 1", "GET a"] {
            #expect(call("SELECT 1") == Wire.ok)
            #expect(call("WATCH a") == Wire.ok)
            #expect(call("SELECT 0") == Wire.ok)
            #expect(call("WATCH a") == Wire.ok)
            #expect(other("SELECT 1") == Wire.ok)
            _ = other(change)
            #expect(call("MULTI") == Wire.ok)
            #expect(call("SET b 1") == Self.queued)
            #expect(call("EXEC") == (change == "GET a" ? Wire.array(Wire.ok) : "*-1\r\n"))
        }
    }

    // MARK: Databases

    @Test("changes in several databases are one commit unit") func changesToSeveralDatabasesCommitAsOneUnit() throws {
        let server = try SocketlessServer()
        let call = server.connect()
        #expect(call("MULTI") == Wire.ok)
        for line in ["SET a 0", "SELECT books", "SET a 1", "SELECT 2", "SET a 2", "SELECT books", "GET a"] {
            #expect(call(line) == Self.queued)
        }
        let units = server.engine.statistics.commitUnits.read()
        #expect(
            call("EXEC")
                == Wire.array(Wire.ok, Wire.ok, Wire.ok, Wire.ok, Wire.ok, Wire.ok, Wire.bulk("1")))
        // The entries are written in one commit unit. Creating the files of three databases takes additional units.
        #expect(server.engine.statistics.commitUnits.read() - units <= 4)
        for (database, value) in [("0", "0"), ("books", "1"), ("2", "2")] {
            #expect(call("SELECT \(database)") == Wire.ok)
            #expect(call("GET a") == Wire.bulk(value))
        }
    }

    @Test("a command on a whole database runs between two commit units") func wholeDatabases() throws {
        let server = try SocketlessServer()
        let call = server.connect()
        #expect(call("MSET a 1 b 2") == Wire.ok)
        #expect(call("MULTI") == Wire.ok)
        for line in [
            "DBSIZE", "KEYS *", "FLUSHDB", "GET a", "SET c 3", "DBSIZE", "SCAN 0", "INFO keyspace", "POLICY", "META c",
            "TTL c", "PURGE", "EXISTS c",
        ] {
            #expect(call(line) == Self.queued)
        }
        let reply = call("EXEC")
        #expect(RawReply.length(Array(reply.utf8)) == reply.utf8.count)
        #expect(
            reply.hasPrefix(
                "*13\r\n" + Wire.int(2) + Wire.bulks("a", "b") + Wire.ok + Wire.null + Wire.ok + Wire.int(1)
                    + Wire.array(Wire.bulk("0"), Wire.bulks("c"))))
        #expect(reply.hasSuffix(Wire.int(0)))
    }

    // MARK: Commits

    @Test func repliesOfATransactionWaitForItsCommit() throws {
        let server = try SocketlessServer()
        let call = server.connect()
        #expect(call("SET a 1") == Wire.ok)
        call.feed("MULTI\r\nSET a 2\r\nGET a\r\nEXEC\r\nPING\r\n".utf8)
        #expect(call.takeSendable() == Wire.ok + Self.queued + Self.queued + "*2\r\n")
        server.commit()
        #expect(call.takeSendable() == Wire.ok + Wire.bulk("2") + "+PONG\r\n")
    }

    /// Keys that are only on the disk are read by a thread that may block, and no command runs twice.
    @Test("a transaction reads keys on disk, and no command runs twice") func coldKeys() throws {
        let server = try SocketlessServer { $0.memoryBytes = 0 }
        let call = server.connect()
        #expect(call("MSET a 1 b 2 c 3") == Wire.ok)
        server.engine.maintain()
        #expect(call("MULTI") == Wire.ok)
        for line in ["GET a", "GETDEL b", "MGET a b c", "SET c 4"] { #expect(call(line) == Self.queued) }
        #expect(
            call("EXEC")
                == Wire.array(
                    Wire.bulk("1"), Wire.bulk("2"), Wire.array(Wire.bulk("1"), Wire.null, Wire.bulk("3")), Wire.ok))
        #expect(call.colds == 1)
        // A key that is only overwritten need not be read.
        server.engine.maintain()
        #expect(call("MULTI") == Wire.ok)
        for line in ["SET a 5", "MSET b 6 c 7", "GET a"] { #expect(call(line) == Self.queued) }
        #expect(call("EXEC") == Wire.array(Wire.ok, Wire.ok, Wire.bulk("5")))
        #expect(call.colds == 1)
    }

    /// Every command runs in a transaction as it does outside. The transaction has the locks of all shards, so a
    /// handler that called the engine directly instead of through `Call` would deadlock.
    @Test("every command runs in a transaction as it does outside", .timeLimit(.minutes(10)))
    func everyCommandRunsInside() throws {
        let server = try SocketlessServer()
        let many = (0..<200).map { "many\($0)" }
        for spec in CommandTable.all where !spec.flags.contains(.inMulti) && !spec.flags.contains(.noMulti) {
            // Skip SHUTDOWN, which stops the server. Skip MONITOR, after which the connection also receives lines about
            // its own commands.
            if ["shutdown", "monitor"].contains(spec.name) { continue }
            for count in [abs(spec.arity), abs(spec.arity) + 1] where spec.arity < 0 || count == spec.arity {
                // Use a new connection each time: a connection with subscriptions accepts only a few commands.
                let call = server.connect()
                #expect(call("MULTI") == Wire.ok)
                // These keys are in all shards of the database.
                #expect(call(["EXISTS"] + many) == Self.queued)
                let words = [spec.name] + (1..<max(1, count)).map { "\($0)" }
                let isQueued = call(words) == Self.queued
                #expect(call(["EXISTS"] + many) == Self.queued)
                let reply = call("EXEC")
                // As in Redis, a subscribing command replies once for each name.
                if !spec.flags.contains(.pubsub) {
                    #expect(RawReply.length(Array(reply.utf8)) == reply.utf8.count, "\(words)")
                }
                #expect(reply.hasPrefix(isQueued ? "*3\r\n:0\r\n" : "-EXECABORT"), "\(words): \(reply)")
                call.session.end()
            }
        }
    }
}
