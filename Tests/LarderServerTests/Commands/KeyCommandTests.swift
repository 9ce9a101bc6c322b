import LarderEngine
import LarderTestSupport
import Testing

@testable import LarderServer

@Suite struct KeyCommandTests {
    @Test("DEL and UNLINK remove entries and return their number") func removing() throws {
        let server = try SocketlessServer()
        let call = server.connect()
        #expect(call("DEL a") == Wire.int(0))
        #expect(call("MSET a 1 b 2 c 3 d 4") == Wire.ok)
        #expect(call("DEL a a nothing b") == Wire.int(2))
        #expect(call("UNLINK c") == Wire.int(1))
        #expect(call("SET d 4 PX 1") == Wire.ok)
        server.time.advance(milliseconds: 1)
        #expect(call("DEL d") == Wire.int(0))
        #expect(call("DBSIZE") == Wire.int(0))
        #expect(call("DEL") == Wire.arity("del"))
    }

    @Test func existsCountsKeysAndTYPEReturnsString() throws {
        let call = try SocketlessServer().connect()
        #expect(call("MSET a 1 b 2") == Wire.ok)
        #expect(call("EXISTS a") == Wire.int(1))
        #expect(call("EXISTS a a b nothing") == Wire.int(3))
        #expect(call("TYPE a") == "+string\r\n")
        #expect(call("TYPE nothing") == "+none\r\n")
    }

    @Test func dbsizeCountsFreshEntriesOnly() throws {
        let server = try SocketlessServer(policy: .high)
        let call = server.connect()
        #expect(call("DBSIZE") == Wire.int(0))
        #expect(call("MSET a 1 b 2 c 3") == Wire.ok)
        #expect(call("SET d 4 EX 61 GRACE 100") == Wire.ok)
        #expect(call("DBSIZE") == Wire.int(4))
        server.time.advance(milliseconds: 60_000)
        #expect(call("DBSIZE") == Wire.int(1))
        #expect(call("DATABASES").contains("entries\r\n:1\r\n$5\r\nstale\r\n:0\r\n"))
        server.time.advance(milliseconds: 1_000)
        #expect(call("DBSIZE") == Wire.int(0))
        #expect(call("DATABASES").contains("entries\r\n:0\r\n$5\r\nstale\r\n:1\r\n"))
        #expect(call("INFO keyspace").contains("db0:keys=0,expires=0,avg_ttl=0,stale=1"))
        #expect(call("META d").hasSuffix(Wire.bulk("state") + Wire.bulk("stale")))
        #expect(call("TTL d") == Wire.int(-2))
        server.time.advance(milliseconds: 100_000)
        #expect(call("DATABASES").contains("entries\r\n:0\r\n$5\r\nstale\r\n:0\r\n"))
        #expect(call("META d") == Wire.null)
        while server.engine.maintain() {}
        #expect(call("DBSIZE") == Wire.int(0))
    }

    @Test func keysReturnsTheKeysThatMatchAPattern() throws {
        let call = try SocketlessServer().connect()
        #expect(call("KEYS *") == "*0\r\n")
        #expect(call("MSET user:1 a user:2 b user:10 c other d") == Wire.ok)
        #expect(call("KEYS *") == Wire.bulks("other", "user:1", "user:10", "user:2"))
        #expect(call("KEYS user:?") == Wire.bulks("user:1", "user:2"))
        #expect(call("KEYS user:[^1]*") == Wire.bulks("user:2"))
        #expect(call("KEYS user:1") == Wire.bulks("user:1"))
        #expect(call("KEYS nothing*") == "*0\r\n")
    }

    // MARK: SCAN

    /// Returns the cursor and the keys of a reply to SCAN.
    private func parse(_ reply: String) -> (cursor: String, keys: [String]) {
        let lines = reply.split(separator: "\r\n").map(String.init)
        guard lines.count >= 4, lines[0] == "*2" else { return (reply, []) }
        return (lines[2], stride(from: 5, to: lines.count, by: 2).map { lines[$0] })
    }

    private func scanAll(_ call: TestClient, _ options: String, between: () -> Void = {}) -> [String] {
        var cursor = "0"
        var keys: [String] = []
        repeat {
            let step = parse(call("SCAN \(cursor) \(options)"))
            keys += step.keys
            cursor = step.cursor
            between()
        } while cursor != "0" && !cursor.hasPrefix("-")
        return keys
    }

    @Test(arguments: [1, 2, 7, 10, 99, 100, 1000]) func scanReturnsEveryKeyOnce(_ count: Int) throws {
        let call = try SocketlessServer().connect()
        let expected = (100..<200).map { "k\($0)" }
        #expect(call(["MSET"] + expected.flatMap { [$0, "v"] }) == Wire.ok)
        #expect(scanAll(call, "COUNT \(count)") == expected)
        #expect(scanAll(call, "COUNT \(count) MATCH k1[5-9]*") == expected.filter { $0 >= "k150" })
        #expect(scanAll(call, "COUNT \(count) MATCH nothing*").isEmpty)
        #expect(scanAll(call, "COUNT \(count) TYPE string") == expected)
        #expect(scanAll(call, "COUNT \(count) TYPE list").isEmpty)
    }

    @Test func scanReturnsAllKeysThatExistThroughout() throws {
        let server = try SocketlessServer()
        let call = server.connect()
        let other = server.connect()
        let staying = (0..<200).map { "stay\($0)" }
        #expect(call(["MSET"] + staying.flatMap { [$0, "v"] }) == Wire.ok)
        var step = 0
        let found = scanAll(call, "COUNT 7") {
            #expect(other("SET come\(step) v") == Wire.ok)
            #expect(other("SET zcome\(step) v") == Wire.ok)
            #expect(other("SET stay\(step) new") == Wire.ok)
            _ = other("DEL come\(step / 2)")
            // Also remove the key that the cursor refers to.
            _ = other("DEL zcome\(step - 1)")
            step += 1
        }
        for key in staying { #expect(found.filter { $0 == key }.count == 1, "\(key)") }
    }

    @Test func aCursorOfSCANWorksOnEveryConnectionUntilEvicted() throws {
        var limits = Limits()
        limits.scanCursorsMax = 3
        let server = try SocketlessServer(limits: limits)
        let one = server.connect()
        let two = server.connect()
        #expect(one("MSET a 1 b 2 c 3") == Wire.ok)
        let first = parse(one("SCAN 0 COUNT 1"))
        #expect(first.keys == ["a"])
        #expect(parse(two("SCAN \(first.cursor) COUNT 1")).keys == ["b"])
        #expect(parse(one("SCAN \(first.cursor) COUNT 5")).keys == ["b", "c"], "a cursor may be used again")
        for _ in 0..<3 { _ = one("SCAN 0 COUNT 1") }
        let unknown = Wire.error(
            "ERR unknown cursor \(first.cursor): it has expired or is invalid; restart with cursor 0")
        #expect(one("SCAN \(first.cursor)") == unknown)
        let fresh = parse(one("SCAN 0 COUNT 1"))
        #expect(two("SELECT 1") == Wire.ok)
        #expect(two("SCAN \(fresh.cursor)").hasPrefix("-ERR unknown cursor"), "a cursor belongs to its database")
    }

    @Test func scanExplainsInvalidArguments() throws {
        let call = try SocketlessServer().connect()
        for (line, text) in [
            ("SCAN x", "ERR invalid cursor"), ("SCAN -1", "ERR invalid cursor"),
            ("SCAN 99999999999999999999", "ERR invalid cursor"),
            ("SCAN 0 COUNT", "ERR syntax error"), ("SCAN 0 COUNT 0", "ERR syntax error"),
            ("SCAN 0 COUNT x", "ERR value is not an integer or out of range"), ("SCAN 0 BAD x", "ERR syntax error"),
            ("SCAN", "ERR wrong number of arguments for 'scan' command"),
        ] {
            #expect(call(line) == Wire.error(text), "\(line)")
        }
        #expect(call("SCAN 0 COUNT 9223372036854775807") == "*2\r\n$1\r\n0\r\n*0\r\n")
    }

    /// The replies take a limited amount of memory, whatever the number and the lengths of the keys.
    @Test("KEYS and SCAN limit the size of their replies") func longLists() throws {
        var limits = Limits()
        limits.replyBytesMax = 1000
        let server = try SocketlessServer(limits: limits)
        let call = server.connect()
        for index in 0..<10 { _ = call("SET key\(index) v") }
        #expect(call("KEYS *").hasPrefix("*10\r\n"))
        for index in 10..<20 { _ = call("SET key\(index) v") }
        #expect(call("KEYS *").contains("(--max-reply): use SCAN"))
        #expect(call("KEYS key1").hasPrefix("*1\r\n"))
        // There are 17 MiB of keys: one SCAN stops before the end.
        let long = String(repeating: "k", count: 60_000)
        for index in 0..<300 { _ = call(["SET", "\(long)\(index)", "v"]) }
        let reply = call("SCAN 0 COUNT 10000")
        let words = reply.split(separator: "\r\n", maxSplits: 4).map(String.init)
        #expect(words[2] != "0" && words[3] != "*320", "\(words.prefix(4))")
        let rest = call("SCAN \(words[2]) COUNT 10000")
        let more = rest.split(separator: "\r\n", maxSplits: 4).map(String.init)
        #expect(more[2] == "0")
        let counts: [Int] = [words[3], more[3]].map { Int($0.dropFirst()) ?? 0 }
        #expect(counts[0] + counts[1] == 320)
    }

    /// As in Redis, no command fails because of a concurrent FLUSHDB: a read restarts if the database is emptied while
    /// it runs.
    @Test func commandsThatReadAllKeysRestartAfterFLUSHDB() throws {
        let server = try SocketlessServer()
        let call = server.connect()
        #expect(call("MSET a 1 b 2") == Wire.ok)
        let database = try server.engine.database("0")
        let view = View(database)
        var rounds = 0
        let keys = try view.run { () throws(LarderError) -> [String] in
            rounds += 1
            guard let cursor = try view.cursor(EnumerationOptions()) else { return [] }
            if rounds == 1 { _ = try database.purge() }
            var keys: [String] = []
            while try cursor.next() { keys.append(String(decoding: try cursor.key().bytes, as: UTF8.self)) }
            return keys
        }
        #expect(rounds == 2 && keys.isEmpty)
        #expect(call("SET c 3") == Wire.ok)
        let sizes = try view.run { () throws(LarderError) -> [Int] in
            rounds += 1
            let snapshot = try view.snapshot()
            let before = try snapshot.count(includingExpired: true)
            if rounds == 3 { _ = try database.purge() }
            return [before, try snapshot.count(includingExpired: true)]
        }
        #expect(rounds == 4 && sizes == [0, 0])
    }

    @Test func commandsThatReadAllKeysNeverFailDuringFLUSHDB() throws {
        let server = try InProcessServer()
        let (reader, writer) = (try SocketClient(server.socketPath), try SocketClient(server.socketPath))
        for round in 0..<60 {
            let pairs = (0..<200).map { "k\($0) \(round)" }.joined(separator: " ")
            try writer.send(Array("MSET \(pairs)\r\nFLUSHDB\r\n".utf8))
            try reader.send(Array("KEYS *\r\nSCAN 0\r\nDBSIZE\r\nRANDOMKEY\r\n".utf8))
            for reply in try reader.receive(4) {
                #expect(reply.first != UInt8(ascii: "-"), "\(String(decoding: reply, as: UTF8.self))")
            }
            #expect(try writer.receive(2) == [Array("+OK\r\n".utf8), Array("+OK\r\n".utf8)])
        }
        server.stop()
    }
}
