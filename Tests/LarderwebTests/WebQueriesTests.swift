import Foundation
import LarderPlatform
import LarderTestSupport
import Testing

/// Tests of the API for queries and indexes: docs/Operating.md.
@Suite struct WebQueriesTests {
    private struct Page: Decodable {
        struct Row: Decodable {
            struct Key: Decodable {
                let text: String?
                let hex: String
            }

            let key: Key?
            let values: [String?]
        }

        let columns: [String]
        let rows: [Row]
        let next: String?
    }

    private struct ListedIndex: Decodable {
        let name: String
        let paths: [String]
        let prefix: Page.Row.Key
        let state: String
        let percent: Int
        let entries: Int
        let stale: Int
    }

    private let daemon: DaemonProcess
    private let client: SocketClient

    init() throws {
        daemon = try DaemonProcess()
        client = try daemon.connect()
        for number in 0..<250 {
            let author = number % 5 == 0 ? #""Al""# : #""Bo \"B\"""#
            _ = try client.call(["SET", "b:\(1000 + number)", #"{"author":\#(author),"year":\#(number)}"#])
        }
        _ = try client.call("SET other text")
    }

    private func encoded(_ text: String) -> String { text.utf8.map { String(format: "%%%02x", $0) }.joined() }

    private func get(_ web: WebProcess, _ path: String, _ query: String, _ more: String = "") throws -> WebProcess.Reply
    {
        try web.get("/api/\(path)?database=0&query=" + encoded(query) + more)
    }

    private func page(_ web: WebProcess, _ query: String, after: String? = nil) throws -> Page {
        let reply = try get(web, "query", query, after.map { "&after=" + $0 } ?? "")
        try #require(reply.status == 200, "\(query): \(reply)")
        return try JSONDecoder().decode(Page.self, from: Data(reply.body.utf8))
    }

    /// All rows, from pages of any length.
    private func keys(_ web: WebProcess, _ query: String) throws -> [String] {
        var result = try page(web, query)
        var keys = result.rows.map { $0.key?.text ?? "" }
        while let next = result.next {
            result = try page(web, query, after: next)
            keys += result.rows.map { $0.key?.text ?? "" }
        }
        return keys
    }

    @Test func queriesReturnRowsGroupsAndCounts() throws {
        let web = try WebProcess(daemon.socketPath)
        let rows = try page(web, #"where author = "Bo \"B\"" and year < 4 sort year desc"#)
        #expect(rows.columns == ["KEY", "VALUE"] && rows.rows.map(\.key?.text) == ["b:1003", "b:1002", "b:1001"])
        #expect(rows.rows[0].values == [#"{"author":"Bo \"B\"","year":3}"#] && rows.next == nil)
        let selected = try page(web, "SELECT 2 year isbn WHERE year = 7")
        #expect(selected.columns == ["KEY", "year", "isbn"] && selected.rows[0].values == ["7", nil])
        let groups = try page(web, "GROUP author COUNT SUM year")
        #expect(groups.columns == ["author", "COUNT", "SUM year"] && groups.rows[0].key == nil)
        #expect(groups.rows.map(\.values) == [[#""Al""#, "50", "6125"], [#""Bo \"B\"""#, "200", "25000"]])
        let count = try page(web, "COUNT")
        #expect(count.columns == ["COUNT"] && count.rows[0].values == ["250"])
        // Without LIMIT, a page has 100 rows. SKIP applies to the first page only.
        let first = try page(web, "KEYS")
        #expect(first.columns == ["KEY"] && first.rows.count == 100 && first.rows[0].values.isEmpty)
        let all = (1000..<1250).map { "b:\($0)" }
        #expect(try keys(web, "KEYS") == all && keys(web, "") == all)
        #expect(try keys(web, "KEYS SKIP 3 LIMIT 7 SORT @key") == Array(all.dropFirst(3)))
        // The cursor of the page replaces the one in the query, and values may look like clauses.
        let cursor = try #require(first.next)
        #expect(try keys(web, "KEYS AFTER \(cursor) LIMIT 50") == Array(all.dropFirst(100)))
        #expect(try keys(web, "KEYS WHERE author != AFTER LIMIT 120") == all)
        let explanation = try get(web, "explain", "WHERE author = Al").body
        #expect(explanation.contains(#"{"text":"no index is used: the entries are scanned\n"#), "\(explanation)")
        #expect(explanation.contains("250 of them JSON; 50 match"), "\(explanation)")
        // A long value is cut, and the key of an entry can be any bytes.
        let long = #"{"year":9999,"text":"\#(String(repeating: "x", count: 9_000))"}"#
        try client.send(encodeRequest([Array("SET".utf8), [0xFF, 0], Array(long.utf8)]))
        _ = try client.receive()
        let cut = try page(web, "WHERE year = 9999").rows[0]
        #expect(cut.key?.text == nil && cut.key?.hex == "ff00" && cut.values == [String(long.prefix(4_096)) + "…"])
        #expect(try page(web, "SELECT 1 text WHERE year = 9999").rows[0].values[0]?.count == 4_097)
    }

    /// A query is sent as the words of one command, and the connection can be used by the next request.
    @Test(
        "only queries are run, and their errors are those of the daemon",
        arguments: [
            "LIVE", "live KEYS", "STOP 1", "QUERY KEYS", "FLUSHALL", "KEYS\r\nFLUSHALL", "\r\n*1\r\n$8\r\nFLUSHALL\r\n",
            "DEL b:1000",
            "KEYS; FLUSHALL", "KEYS LIMIT x", "LIMIT 1 LIMIT 1", "WHERE author", "WHERE ( year = 1", "COUNT AFTER x",
            "AFTER x",
            "SKIP 99999", "\u{0}", "WHERE \u{0} = 1 )", String(repeating: "( ", count: 2_000),
            String(repeating: "x", count: 4_000),
            "WHERE " + String(repeating: "NOT ", count: 500) + "a EXISTS",
        ])
    func onlyQueriesAreRun(query: String) throws {
        let web = try WebProcess(daemon.socketPath, ["--allow-changes"])
        for path in ["query", "explain"] {
            let reply = try get(web, path, query)
            #expect(reply.status == 400, "\(path): \(reply)")
            let isLive = ["LIVE", "STOP"].contains { query.uppercased().hasPrefix($0) }
            guard !isLive, !query.contains("\r\n"), !query.contains("\u{0}") else { continue }
            let words = query.split(separator: " ").map(String.init)
            let error = String(decoding: try client.call(["QUERY"] + words), as: UTF8.self)
            #expect(error == "-\(errorText(reply))\r\n" && error.hasPrefix("-ERR "), "\(reply)")
        }
        #expect(try client.call("DBSIZE") == ":251\r\n")
        #expect(try page(web, "COUNT").rows[0].values == ["250"])
    }

    private func errorText(_ reply: WebProcess.Reply) -> String {
        (try? JSONDecoder().decode([String: String].self, from: Data(reply.body.utf8)))?["error"] ?? "\(reply)"
    }

    @Test func unsuitableQueriesAreRefused() throws {
        let web = try WebProcess(daemon.socketPath)
        for (query, text) in [
            ("KEYS WHERE author = \"Al", "unbalanced quotes"), ("KEYS WHERE author = 'Al'x", "unbalanced quotes"),
            ("LIMIT 1001", "LIMIT is at most 1000 here"), ("GROUP author LIMIT 100000", "LIMIT is at most 1000 here"),
        ] {
            let reply = try get(web, "query", query)
            #expect(reply.status == 400 && errorText(reply) == text, "\(reply)")
        }
        #expect(try page(web, "LIMIT 1000").rows.count == 250)
        #expect((try? get(web, "query", String(repeating: "x", count: 1 << 20)).status) != 200)
        #expect(try get(web, "query", "KEYS", "&after=x").body.contains("invalid cursor"))
        for name in ["..", "A%20B", "99"] {
            for path in ["query", "explain", "indexes"] {
                #expect(try web.get("/api/\(path)?database=\(name)&query=KEYS").status == 400, "\(path) \(name)")
            }
        }
        // Reading does not create a database.
        #expect(try web.get("/api/query?database=none&query=COUNT").body.contains("\"0\""))
        #expect(try web.get("/api/indexes?database=none").body == "[]")
        #expect(try !client.call("DATABASES").contains("none"))
        // The daemon's own limits apply.
        let strict = try DaemonProcess(["--query-scan", "1"])
        for key in ["a", "b"] { _ = try strict.connect().call(["SET", key, #"{"year":1}"#]) }
        let refused = try get(try WebProcess(strict.socketPath), "query", "KEYS WHERE year > 5")
        #expect(refused.status == 400 && refused.body.contains("INDEX CREATE"), "\(refused)")
    }

    @Test func indexesAreListedCreatedAndDropped() async throws {
        let web = try WebProcess(daemon.socketPath, ["--allow-changes"])
        func indexes() throws -> [ListedIndex] {
            try JSONDecoder().decode([ListedIndex].self, from: Data(try web.get("/api/indexes?database=0").body.utf8))
        }
        func create(_ name: String, _ definition: String) throws -> WebProcess.Reply {
            let body = try JSONEncoder().encode(["database": "0", "index": name, "definition": definition])
            return try web.post("/api/create-index", String(decoding: body, as: UTF8.self))
        }
        #expect(try create("byYear", #"PREFIX "b:" ON year DESC author"#).body == #"{"done":true}"#)
        await eventually { (try? indexes().first?.state) == "ready" }
        let index = try #require(try indexes().first)
        #expect(index.name == "byYear" && index.paths == ["year DESC", "author"] && index.prefix.text == "b:")
        #expect(index.percent == 100 && index.entries >= 250 && index.stale == 0)
        #expect(try get(web, "explain", "WHERE @key PREFIX b: AND year = 5").body.contains("byYear"))
        for (name, definition) in [
            ("a b", "ON year"), ("", "ON year"), ("x", ""), ("x", "ON"), ("x", "ON \"year"), ("x", "year"),
            ("x", "ON @expires"), ("x", String(repeating: "y ", count: 20_000)),
        ] { #expect(try create(name, definition).status == 400, "\(name) \(definition.prefix(20))") }
        // Line ends separate words, not commands.
        #expect(try create("lines", "ON a\r\nFLUSHALL\r\n").status == 200)
        #expect(try indexes().last?.paths == ["a", "FLUSHALL"])
        #expect(try web.post("/api/drop-index", #"{"database":"0","index":"lines"}"#).status == 200)
        #expect(try web.post("/api/create-index", #"{"database":"0","definition":"ON a"}"#).status == 400)
        #expect(try web.post("/api/drop-index", #"{"database":"0","index":"none"}"#).body.contains("no index 'none'"))
        let readOnly = try WebProcess(daemon.socketPath)
        for path in ["create-index", "drop-index"] {
            let reply = try readOnly.post("/api/" + path, #"{"database":"0","index":"byYear","definition":"ON a"}"#)
            #expect(reply.status == 403 && reply.body.contains("--allow-changes"))
        }
        #expect(try indexes().map(\.name) == ["byYear"] && client.call("DBSIZE") == ":251\r\n")
        #expect(try web.post("/api/drop-index", #"{"database":"0","index":"byYear"}"#).body == #"{"done":true}"#)
        #expect(try indexes().isEmpty)
    }
}
