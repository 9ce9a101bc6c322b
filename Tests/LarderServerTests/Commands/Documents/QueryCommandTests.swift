import LarderEngine
import LarderQueries
import LarderQuerying
import LarderTestSupport
import Testing

@testable import LarderServer

/// QUERY and EXPLAIN: replies, limits, and the entries they see. LarderQueriesTests test what conditions mean.
@Suite struct QueryCommandTests {
    private let server: SocketlessServer
    private let client: TestClient

    init() throws {
        server = try SocketlessServer(policy: .never)
        client = server.connect()
        for (key, text) in [
            ("b:1", #"{"author":"Bo","year":1999,"tags":["x","y"]}"#), ("b:2", #"{"author":"Al","year":2001}"#),
            ("b:3", #"{"author":"Bo","year":2005,"tags":["x"]}"#), ("n", "5"), ("text", "not JSON"),
        ] {
            #expect(client(["SET", key, text]) == Wire.ok)
        }
    }

    @Test func eachOutputIsRepliedInItsForm() {
        #expect(client("QUERY COUNT") == Wire.int(4))
        #expect(client("QUERY KEYS WHERE author = Bo") == Wire.array("$-1\r\n", Wire.bulks("b:1", "b:3")))
        let row = Wire.bulks("b:2", #"{"author":"Al","year":2001}"#)
        #expect(client("QUERY WHERE year > 2000 AND author = Al") == Wire.array("$-1\r\n", Wire.array(row)))
        #expect(
            client("QUERY SELECT 2 year nosuch WHERE author = Al")
                == Wire.array(
                    "$-1\r\n", Wire.array(Wire.array(Wire.bulk("b:2"), Wire.array(Wire.bulk("2001"), "$-1\r\n")))))
        #expect(
            client("QUERY GROUP author COUNT SUM year MAX nosuch")
                == Wire.array(
                    Wire.array(Wire.bulk("\"Al\""), Wire.int(1), Wire.bulk("2001"), "$-1\r\n"),
                    Wire.array(Wire.bulk("\"Bo\""), Wire.int(2), Wire.bulk("4004"), "$-1\r\n")))
        #expect(client("QUERY KEYS WHERE @key PREFIX b: SORT year DESC LIMIT 0") == Wire.array("$-1\r\n", "*0\r\n"))
        #expect(client("QUERY COUNT WHERE author EXISTS SKIP 1 LIMIT 1") == Wire.int(1))
    }

    @Test func theDistanceOfNEARCanBeSelected() {
        #expect(client(["SET", "x", #"{"at":[[0,1],[0.001,0]],"n":1}"#]) == Wire.ok)
        func selected(_ rest: String) -> String { client("QUERY SELECT 2 @distance n WHERE \(rest)") }
        for rest in ["at NEAR 0 0 1 km", "n = 1 AND ( at NEAR 0 0 1 km AND at NEAR 1 1 1000 km ) SORT n"] {
            let reply = selected(rest)
            #expect(reply.contains("\r\n111.2263") && reply.hasSuffix(Wire.bulk("1")), "\(reply)")
        }
        for rest in ["n = 1", "at NEAR 0 0 1 km OR n = 1", "NOT at NEAR 0 0 1 km"] {
            #expect(selected(rest).hasPrefix("-ERR @distance is that of NEAR"), "\(rest)")
        }
        #expect(client("QUERY KEYS WHERE @distance < 5").hasPrefix("-ERR unknown field '@distance'"))
    }

    @Test("without its index, a query on computed values is refused above the limit of a scan")
    func computedValuesWithoutAnIndexAreScanned() throws {
        var limits = QueryLimits()
        limits.scannedMax = 5
        func run(_ words: String) throws(QueryFailure) -> QueryResult? {
            let words = ["WHERE", "@computed x version 1", "=", "1"] + words.split(separator: " ").map(String.init)
            guard let query = try? Query(words.map { Array($0.utf8) }, allowsComputed: true),
                let database = try? server.engine.database("0")
            else { return nil }
            var run = QueryRun(query, in: database, nil, limits)
            return try run.result()
        }
        #expect(try run("LIMIT 1")?.rows.count == 1)
        for key in 0..<4 { #expect(client(["SET", "c\(key)", "1"]) == Wire.ok) }
        #expect(throws: QueryFailure.self) { try run("LIMIT 1") }
        let first = try #require(try run("LIMIT 1 SCAN"))
        #expect(first.rows.count == 1)
        let cursor = String(decoding: try #require(first.cursor), as: UTF8.self)
        // The limit is one of all pages: the first one has found it observed.
        #expect(try run("LIMIT 1 AFTER \(cursor)")?.rows.count == 1)
        #expect(try run("AND @key PREFIX c LIMIT 1")?.rows.count == 1)
    }

    @Test func pagesFollowEachOther() throws {
        var keys: [String] = []
        var cursor: String?
        repeat {
            let page = client("QUERY KEYS SORT year DESC LIMIT 1" + (cursor.map { " AFTER \($0)" } ?? ""))
            let lines = page.split(separator: "\r\n")
            cursor = lines[1] == "$-1" ? nil : String(lines[2])
            keys.append(String(try #require(lines.last)))
        } while cursor != nil
        #expect(keys == ["b:3", "b:2", "b:1", "n"])
    }

    @Test func fieldsThatNoEntryHasAreReported() {
        let warning = "no entry has the field 'auhtor'; did you mean 'author'?"
        #expect(client("QUERY COUNT WHERE auhtor = Bo") == Wire.int(0))
        #expect(client("EXPLAIN QUERY COUNT WHERE auhtor = Bo").hasSuffix("\(warning)\n\r\n"))
        // Many clients cannot read attributes, so they must ask for them.
        _ = client("HELLO 3")
        #expect(client("QUERY COUNT WHERE auhtor = Bo") == Wire.int(0))
        #expect(client("CLIENT CAPA redirect attributes") == Wire.ok)
        let attribute = "|1\r\n" + Wire.bulk("warnings") + Wire.bulks(warning)
        #expect(client("QUERY COUNT WHERE auhtor = Bo") == attribute + Wire.int(0))
        #expect(client("QUERY COUNT WHERE author = Bo") == Wire.int(2))
        // Scripts and transactions get the reply only.
        _ = client("MULTI")
        _ = client("QUERY COUNT WHERE auhtor = Bo")
        #expect(client("EXEC") == Wire.array(Wire.int(0)))
        let script = "redis.setresp(3) return redis.call('QUERY', 'COUNT', 'WHERE', 'auhtor', '=', 'Bo')"
        #expect(client(["EVAL", script, "0"]) == Wire.int(0))
        _ = client("RESET")
        _ = client("HELLO 3")
        #expect(client("QUERY COUNT WHERE auhtor = Bo") == Wire.int(0))
    }

    @Test func aPathCannotBeSelectedRepeatedly() {
        #expect(client("INDEX CREATE x ON year PREFIX b:").hasPrefix("-ERR PREFIX is out of place after a path"))
        #expect(client("QUERY SELECT 2 year $.year") == Wire.error("ERR the path 'year' is repeated"))
        #expect(client("QUERY SELECT 3 year @key @key") == Wire.error("ERR the path '@key' is repeated"))
        for words in ["WHERE n = 1 COUNT", "KEYS COUNT"] {
            let text = "ERR COUNT is only possible as the first word of a query"
            #expect(client("QUERY \(words)") == Wire.error(text))
        }
    }

    @Test func explainDescribesTheRun() {
        #expect(
            client("EXPLAIN QUERY KEYS WHERE author = Bo SORT year DESC LIMIT 1")
                == Wire.bulk(
                    """
                    no index is used: the entries are scanned
                    5 entries examined, 4 of them JSON; 2 match
                    the matches are sorted by year DESC and key, and the first 1 are kept
                    an index would help: INDEX CREATE by-author ON author year DESC

                    """))
        #expect(client("EXPLAIN KEYS").hasPrefix("-ERR EXPLAIN explains a query"))
    }

    @Test func tooManyEntriesNeedAnIndexOrSCAN() throws {
        var limits = Limits()
        limits.queryScanMax = 4
        let server = try SocketlessServer(policy: .never, limits: limits)
        let client = server.connect()
        for key in ["a:1", "a:2", "b:1", "b:2", "b:3"] { _ = client(["SET", key, "{\"a\":1}"]) }
        #expect(
            client("QUERY COUNT WHERE a = 1")
                == Wire.error(
                    "ERR no index supports the query, and the database has more than 4 entries (--query-scan): create an "
                        + "index, for example with INDEX CREATE by-a ON a; or add SCAN to examine all entries"))
        #expect(client("QUERY COUNT WHERE a = 1 SCAN") == Wire.int(5))
        #expect(client("QUERY COUNT").hasSuffix("(--query-scan): add SCAN to examine all entries\r\n"))
        // This server has no maintenance, so an index of entries in LevelDB is never built.
        try server.engine.database("0").flush()
        #expect(client("INDEX CREATE byA ON a") == Wire.ok)
        #expect(
            client("QUERY COUNT WHERE a = 1")
                == Wire.error(
                    "ERR the index byA is still being built (0 %), and the database has more than 4 entries (--query-scan): "
                        + "try again later; or add SCAN to examine all entries"))
        #expect(client("QUERY COUNT WHERE b = 1").hasPrefix("-ERR no index supports the query"))
        _ = client("SNAPSHOT OPEN")
        #expect(client("QUERY COUNT WHERE a = 1").hasPrefix("-ERR queries in a snapshot use no index"))
        #expect(client("EXPLAIN QUERY COUNT SCAN").contains("queries in a snapshot use no index\n"))
        _ = client("SNAPSHOT CLOSE")
        // The order of the keys is an index.
        #expect(client("QUERY COUNT WHERE a = 1 AND @key PREFIX b:") == Wire.int(3))
        #expect(client("QUERY COUNT WHERE @key BETWEEN a:2 b:2") == Wire.int(3))
        #expect(client("QUERY COUNT WHERE @key > a:2 AND @key < b:2") == Wire.int(1))
        #expect(client("QUERY COUNT WHERE @key = b:2") == Wire.int(1))
        #expect(client("QUERY COUNT WHERE @key = b:2 AND @key PREFIX a") == Wire.int(0))
        #expect(client("QUERY KEYS LIMIT 2").hasSuffix(Wire.bulks("a:1", "a:2")))
    }

    @Test func rowsThatExceedTheLimitOfRepliesAreAnError() throws {
        var limits = Limits()
        limits.replyBytesMax = 1000
        let server = try SocketlessServer(policy: .never, limits: limits)
        let client = server.connect()
        for key in 0..<20 { _ = client(["SET", "\(key)", "{\"a\":\"\(String(repeating: "x", count: 90))\"}"]) }
        #expect(client("QUERY").hasPrefix("-ERR the rows exceed 1000 bytes (--max-reply)"))
        #expect(client("QUERY COUNT") == Wire.int(20))
        #expect(client("QUERY LIMIT 3").hasPrefix("*2"))
    }

    @Test func onlyFreshEntriesAreFound() {
        _ = client(["SET", "b:4", #"{"author":"Bo"}"#, "PX", "1000"])
        #expect(client("QUERY COUNT WHERE author = Bo") == Wire.int(3))
        #expect(client("QUERY COUNT WHERE @expires EXISTS") == Wire.int(1))
        server.time.advance(milliseconds: 1000)
        #expect(client("QUERY COUNT WHERE author = Bo") == Wire.int(2))
        _ = client(["SET", "b:5", #"{"author":"Bo"}"#, "TAGS", "1", "t"])
        #expect(client("QUERY COUNT WHERE author = Bo") == Wire.int(3))
        _ = client("PURGE TAG t")
        #expect(client("QUERY COUNT WHERE author = Bo") == Wire.int(2))
        _ = client("PURGE")
        #expect(client("QUERY COUNT") == Wire.int(0))
    }

    @Test func anEntryThatExpiresDuringAQueryLeavesItsPlaceToTheNext() throws {
        _ = client(["SET", "a", "{}", "PX", "1000"])
        for key in 0..<300 { _ = client(["SET", "c:\(key)", "{}"]) }
        let database = try server.engine.database("0")
        let query = try Query(["KEYS", "SORT", "nosuch", "LIMIT", "2"].map { Array($0.utf8) })
        // The query asks after some entries whether it is cancelled.
        var run = QueryRun(query, in: database, nil, QueryLimits()) { [server] in
            server.time.advance(milliseconds: 1000)
            return false
        }
        #expect(try run.result().rows.map(\.key) == ["b:1", "b:2"].map { Array($0.utf8) })
    }

    @Test func snapshotsTransactionsAndScriptsCanQuery() {
        _ = client("SNAPSHOT OPEN")
        let other = server.connect()
        _ = other("DEL b:1")
        #expect(client("QUERY COUNT WHERE author = Bo") == Wire.int(2))
        #expect(other("QUERY COUNT WHERE author = Bo") == Wire.int(1))
        _ = client("SNAPSHOT CLOSE")
        _ = other("MULTI")
        _ = other(["SET", "b:9", #"{"author":"Bo"}"#])
        _ = other("QUERY COUNT WHERE author = Bo")
        #expect(other("EXEC") == Wire.array(Wire.ok, Wire.int(2)))
        #expect(other(["EVAL", "return redis.call('QUERY', 'COUNT')", "0"]) == Wire.int(4))
    }

    /// The keys of the rows if an event loop can run the query; nil if another thread has to.
    private func keysInMemory(_ words: String, _ server: SocketlessServer) throws -> [String]? {
        let query = try Query(words.split(separator: " ").map { Array($0.utf8) })
        // After a failure, the next queries do not try.
        for _ in 0..<100 {
            var run = QueryRun(query, in: try server.engine.database("0"), nil, QueryLimits())
            if let result = run.resultInMemory() { return result.rows.map { String(decoding: $0.key, as: UTF8.self) } }
        }
        return nil
    }

    @Test func anEventLoopRunsQueriesThatNeedOnlyMemory() throws {
        let client = server.connect()
        #expect(client("INDEX CREATE author ON author") == Wire.ok)
        for number in 0..<200 { _ = client(["SET", "k\(number)", #"{"author":"a\#(number / 50)","n":1}"#]) }
        let query = "KEYS WHERE author = a1 SORT n"
        let expected = (50..<100).map { "k\($0)" }
        #expect(try keysInMemory(query, server) == nil, "the hints of many entries have to be found")
        #expect(client("QUERY COUNT WHERE author = a1") == Wire.int(50))
        #expect(try keysInMemory(query, server) == expected)
        #expect(try keysInMemory("KEYS WHERE author > a SORT n", server) == nil, "there are many candidates")
        #expect(try keysInMemory("KEYS WHERE n = 1", server) == nil, "there is no index")
        _ = client("SAVE")
        server.engine.shutdown()
        let again = try SocketlessServer(reopening: server)
        let other = again.connect()
        #expect(other("EXISTS k1") == Wire.int(1))
        #expect(try keysInMemory(query, again) == nil, "LevelDB has to read files")
        #expect(other("QUERY COUNT WHERE author = a1") == Wire.int(50))
        #expect(try keysInMemory(query, again) == expected)
    }

    @Test func aQueryStopsAtItsTimeLimit() throws {
        var limits = Limits()
        limits.queryMilliseconds = -1
        let server = try SocketlessServer(policy: .never, limits: limits)
        let client = server.connect()
        for key in 0..<300 { _ = client(["SET", "\(key)", "1"]) }
        #expect(
            client("QUERY COUNT")
                == Wire.error("ERR the query was stopped after -1 ms (--query-time-limit) and 256 entries"))
        // Long entries and long conditions take more time.
        _ = client("FLUSHDB")
        for key in 0..<3 { _ = client(["SET", "\(key)", "[" + String(repeating: "1,", count: 5_000) + "1]"]) }
        let tests = (0..<100).map { "a = \($0)" }.joined(separator: " OR ")
        #expect(client("QUERY COUNT WHERE a = 1") == Wire.int(0))
        #expect(
            client("QUERY COUNT WHERE \(tests)")
                == Wire.error("ERR the query was stopped after -1 ms (--query-time-limit) and 2 entries"))
    }
}
