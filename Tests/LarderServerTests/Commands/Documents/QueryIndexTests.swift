import Foundation
import LarderEngine
import LarderTestSupport
import Testing

@testable import LarderServer

/// Queries with indexes, compared with the same queries in a snapshot, which examine all entries.
@Suite struct QueryIndexTests {
    /// A client that reads replies as lines.
    private struct Client {
        let socket: SocketClient

        func callAsFunction(_ words: [String]) throws -> String {
            try socket.send(words)
            return String(decoding: try socket.receive(), as: UTF8.self)
        }

        func callAsFunction(_ line: String) throws -> String { try self(line.split(separator: " ").map(String.init)) }

        /// The keys of all pages of a query.
        func keys(_ query: [String], limit: Int) throws -> [String] {
            var keys: [String] = []
            var cursor: String?
            repeat {
                let page = try self(
                    ["QUERY", "KEYS"] + query + ["LIMIT", "\(limit)"] + (cursor.map { ["AFTER", $0] } ?? []))
                let lines = page.split(separator: "\r\n")
                guard lines[0] == "*2" else { throw QueryFailed(reply: page) }
                cursor = lines[1] == "$-1" ? nil : String(lines[2])
                keys += lines.dropFirst(cursor == nil ? 3 : 4).enumerated().filter { $0.offset % 2 == 1 }.map {
                    String($0.element)
                }
            } while cursor != nil
            return keys
        }

        func waitForIndexes() throws {
            while try self("INDEX").contains("building") { nap() }
        }
    }

    private struct QueryFailed: Error { let reply: String }

    private static let paths = ["a", "b", "a.b", "b.0"]

    private static func scalar(_ random: inout SeededGenerator) -> String {
        switch random.below(8) {
        case 0: ["null", "true", "false"][random.below(3)]
        case 1...4: ["-1", "0", "1", "2", "0.5", "9007199254740993", "9007199254740992"][random.below(7)]
        default:
            "\"" + ["", "x", "y", "xy", String(repeating: "z", count: 95 + random.below(3))][random.below(5)] + "\""
        }
    }

    private static func value(_ random: inout SeededGenerator) -> String {
        switch random.below(8) {
        case 0, 1: "[" + (0..<random.below(4)).map { _ in scalar(&random) }.joined(separator: ",") + "]"
        case 2: "{\"b\":\(scalar(&random))}"
        default: scalar(&random)
        }
    }

    private static func document(_ random: inout SeededGenerator) -> String {
        let members = ["a", "b"].filter { _ in random.below(5) > 0 }.map { "\"\($0)\":\(value(&random))" }
        return "{" + members.joined(separator: ",") + "}"
    }

    private static func test(_ random: inout SeededGenerator) -> [String] {
        let path = paths[random.below(paths.count)]
        let operand = ["JSON", scalar(&random)]
        switch random.below(9) {
        case 0...2: return [path, "="] + operand
        case 3: return [path, ["<", "<=", ">", ">="][random.below(4)]] + operand
        case 4: return [path, "BETWEEN"] + operand + ["JSON", scalar(&random)]
        case 5: return [path, "IN", "2"] + operand + ["JSON", scalar(&random)]
        case 6: return [path, "PREFIX", ["", "x", String(repeating: "z", count: 97)][random.below(3)]]
        case 7: return [path, "ALL", "2"] + operand + ["JSON", scalar(&random)]
        default: return [path, ["EXISTS", "MISSING"][random.below(2)]]
        }
    }

    private static func condition(_ random: inout SeededGenerator) -> [String] {
        let (first, second) = (test(&random), test(&random))
        switch random.below(5) {
        case 0: return first
        case 1: return first + ["OR"] + second
        case 2: return ["NOT"] + first + ["AND"] + second
        default: return first + ["AND"] + second
        }
    }

    /// Changes an entry, or the indexes.
    private static func change(_ client: Client, _ random: inout SeededGenerator) throws {
        let key = "k\(random.below(200))"
        switch random.below(20) {
        case 0...11: _ = try client(["SET", key, document(&random)])
        case 12: _ = try client(["DEL", key])
        case 13:
            _ = try client(["SET", key, document(&random), "PX", "1"])
            while try client(["EXISTS", key]) == ":1\r\n" {}
        case 14: _ = try client(["SET", key, "not JSON"])
        case 15:
            _ = try client(["SET", key, document(&random), "TAGS", "1", "t"])
            if random.oneIn(3) { _ = try client("PURGE TAG t") }
        case 16: _ = try client("SAVE")
        case 17 where random.oneIn(5): _ = try client("PURGE PREFIX k1")
        default:
            let name = "i\(random.below(3))"
            if random.oneIn(6) {
                _ = try client(["INDEX", "DROP", name])
            } else if random.oneIn(3) {
                let order = paths.shuffled(using: &random).prefix(1 + random.below(2)).flatMap {
                    random.oneIn(3) ? [$0, "DESC"] : [$0]
                }
                let prefix = random.oneIn(4) ? ["PREFIX", "k1"] : []
                #expect(try client(["INDEX", "CREATE", name] + prefix + ["ON"] + order) == "+OK\r\n")
            }
        }
    }

    /// A server that has many checkpoints.
    private static func server() throws -> InProcessServer {
        try InProcessServer(configure: {
            $0.defaultPolicy = .never
            $0.checkpointBytes = 1 << 16
        })
    }

    @Test func queriesWithIndexesFindWhatScansFind() throws {
        var random = SeededGenerator(seed: testSeed())
        let server = try Self.server()
        defer { server.stop() }
        let client = Client(socket: try server.connect())
        var planned = 0
        for round in 0..<60 {
            for _ in 0..<20 { try Self.change(client, &random) }
            if round % 3 == 0 { try client.waitForIndexes() }
            for _ in 0..<6 {
                var query = ["WHERE"] + Self.condition(&random)
                if random.oneIn(4) { query += ["AND", "@key", "PREFIX", "k1"] }
                let sort =
                    random.oneIn(2) ? ["SORT", Self.paths[random.below(4)]] + (random.oneIn(2) ? ["DESC"] : []) : []
                let found = try client.keys(query + sort, limit: [2, 7, 1000][random.below(3)])
                let count = try client(["QUERY", "COUNT"] + query)
                if try client(["EXPLAIN", "QUERY", "COUNT"] + query).contains("is used (") { planned += 1 }
                _ = try client("SNAPSHOT OPEN")
                let expected = try client.keys(query + sort, limit: 1000)
                _ = try client("SNAPSHOT CLOSE")
                #expect(
                    (sort.isEmpty ? found.sorted() : found) == (sort.isEmpty ? expected.sorted() : expected),
                    "\(query) \(sort)")
                #expect(count == ":\(expected.count)\r\n", "\(query)")
            }
        }
        #expect(planned > 20, "\(planned)")
    }

    /// A place and its JSON, or a value that is not a place.
    private static func place(_ random: inout SeededGenerator) -> (text: String, place: (Double, Double)?) {
        if random.oneIn(10) {
            let invalid = [
                "[181,0]", "[0,-91]", "[1e999,0]", "\"[1,2]\"", "[\"1\",2]", "null", "[1,2,3]", "{\"lon\":1}",
            ]
            return (invalid[random.below(invalid.count)], nil)
        }
        let center: (Double, Double) = [(13.4, 52.5), (179.9, -20), (0, 90), (-70, -89)][random.below(4)]
        let spread = exp(Double.random(in: log(1e-5)...log(30), using: &random))
        var longitude = center.0 + Double.random(in: -spread...spread, using: &random)
        if longitude > 180 { longitude -= 360 }
        let latitude = min(90, max(-90, center.1 + Double.random(in: -spread...spread, using: &random)))
        let isPair = random.oneIn(2)
        let text = isPair ? "[\(longitude),\(latitude)]" : "{\"lat\":\(latitude),\"lng\":\(longitude)}"
        return (text, (longitude, latitude))
    }

    @Test("NEAR and WITHIN find what they find without an index, sorted by distance, while places change")
    func placesAreFoundWithAndWithoutAnIndex() throws {
        var random = SeededGenerator(seed: testSeed())
        let server = try Self.server()
        defer { server.stop() }
        let client = Client(socket: try server.connect())
        #expect(try client("INDEX CREATE byPlace GEO ON at") == Wire.ok)
        for key in 0..<2000 { _ = try client(["SET", "k\(key)", "{\"at\":\(Self.place(&random).text),\"a\":1}"]) }
        try client.waitForIndexes()
        #expect(try client("INDEX").contains(Wire.bulks("at GEO")))
        var rows = 0
        for round in 0..<60 {
            for _ in 0..<20 {
                let key = "k\(random.below(2000))"
                switch random.below(4) {
                case 0: _ = try client(["DEL", key])
                case 1 where random.oneIn(5): _ = try client("SAVE")
                default: _ = try client(["SET", key, "{\"at\":[\(Self.place(&random).text),[1,1]]}"])
                }
            }
            guard let (longitude, latitude) = Self.place(&random).place else { continue }
            let meters = exp(Double.random(in: 0...log(2e7), using: &random))
            let near = ["WHERE", "at", "NEAR", "\(longitude)", "\(latitude)", "\(meters)", "m"]
            let east = longitude + 10 > 180 ? longitude - 350 : longitude + 10
            let within = ["WHERE", "at", "WITHIN", "\(longitude)", "\(latitude)", "\(east)", "0"]
            let limit = [3, 50, 1000][round % 3]
            let found = [try client.keys(near, limit: limit), try client.keys(within, limit: limit)]
            let explanation = try client(["EXPLAIN", "QUERY", "KEYS"] + near + ["LIMIT", "\(limit)"])
            #expect(explanation.contains("the index byPlace is used (GEO ON at)"), "\(explanation)")
            #expect(explanation.contains("sorted by the distance of at and key"), "\(explanation)")
            _ = try client("SNAPSHOT OPEN")
            #expect(try found[0] == client.keys(near, limit: 1000), "\(near)")
            #expect(try found[1].sorted() == client.keys(within, limit: 1000).sorted(), "\(within)")
            _ = try client("SNAPSHOT CLOSE")
            rows += found[0].count + found[1].count
        }
        #expect(rows > 1000, "\(rows)")
    }

    @Test func theNearestRowsOfALargeCircleAreFoundInSmallOnes() throws {
        let server = try InProcessServer(configure: { $0.defaultPolicy = .never })
        defer { server.stop() }
        let client = Client(socket: try server.connect())
        for key in 0..<1000 { _ = try client(["SET", "\(key)", "{\"at\":[\(Double(key) / 10),0]}"]) }
        _ = try client("INDEX CREATE byPlace GEO ON at")
        try client.waitForIndexes()
        let near = "WHERE at NEAR 0.01 0 10000 km"
        #expect(try client("QUERY KEYS \(near) LIMIT 3").contains(Wire.bulks("0", "1", "2")))
        let explanation = try client("EXPLAIN QUERY KEYS \(near) LIMIT 3")
        // The first circle, of 39 km, has 4 entries, and its cells a few more.
        let examined = explanation.firstMatch(of: /([0-9]+) entries examined/).flatMap { Int($0.1) }
        #expect((4...20).contains(try #require(examined)), "\(explanation)")
        #expect(try client.keys(near.split(separator: " ").map(String.init), limit: 7) == (0..<900).map(String.init))
    }

    @Test func aPageOfNEARExaminesAboutAsManyEntriesAsItHas() throws {
        var random = SeededGenerator(seed: testSeed())
        let server = try InProcessServer(configure: { $0.defaultPolicy = .never })
        defer { server.stop() }
        let client = Client(socket: try server.connect())
        _ = try client("INDEX CREATE byPlace GEO ON at")
        for key in 0..<4000 {
            let place = (0..<2).map { _ in "\(Double.random(in: -1...1, using: &random))" }.joined(separator: ",")
            _ = try client(["SET", "\(key)", "{\"at\":[\(place)]}"])
            if key == 2000 { _ = try client("SAVE") }
        }
        try client.waitForIndexes()
        let near = ["KEYS", "WHERE", "at", "NEAR", "0.1", "0", "200", "km", "LIMIT", "100"]
        var (keys, cursor): (Set<String>, [String]) = ([], [])
        repeat {
            let lines = try client(["QUERY"] + near + cursor).split(separator: "\r\n").map(String.init)
            keys.formUnion(lines.dropFirst(3).filter { Int($0) != nil })
            let explanation = try client(["EXPLAIN", "QUERY"] + near + cursor)
            let examined = explanation.firstMatch(of: /([0-9]+) entries examined/).flatMap { Int($0.1) }
            #expect((1..<800).contains(try #require(examined)), "\(keys.count): \(explanation)")
            cursor = lines[1] == "$-1" ? [] : ["AFTER", lines[2]]
        } while !cursor.isEmpty
        #expect(keys.count == 4000)
    }

    /// A query with an index examines a part of the entries, so it does not know which fields no entry has.
    @Test func fieldsOfEntriesThatWereNotExaminedAreNotReported() throws {
        let server = try InProcessServer(configure: { $0.defaultPolicy = .never })
        defer { server.stop() }
        let client = Client(socket: try server.connect())
        _ = try client(["SET", "x1", #"{"a":1}"#])
        _ = try client(["SET", "x2", #"{"a":2,"b":5}"#])
        _ = try client("INDEX CREATE byA ON a")
        try client.waitForIndexes()
        for condition in ["a = 1 AND b = 5", "@key = x1 AND b = 5", "@key PREFIX x1 AND b = 5"] {
            let explanation = try client("EXPLAIN QUERY KEYS WHERE \(condition)")
            #expect(explanation.contains("no examined entry has the field 'b'"), "\(explanation)")
        }
        let missing = try client("EXPLAIN QUERY COUNT WHERE a MISSING")
        #expect(missing.contains("0 match") && !missing.contains("has the field"), "\(missing)")
        let many = ["EXPLAIN", "QUERY", "COUNT", "WHERE", "a", "IN", "100"] + (0..<100).map { "\($0)" }
        #expect(try client(many).contains("the index byA is used"), "IN with more than 64 values")
        _ = try client("HELLO 3")
        _ = try client("CLIENT CAPA attributes")
        #expect(try client("QUERY COUNT WHERE a = 1 AND b = 5") == Wire.int(0))
        #expect(try client("QUERY COUNT WHERE a = 1 AND b = 5 OR c = 1").hasPrefix("|1\r\n"))
    }

    @Test func indexesAreCreatedListedAndDropped() throws {
        let server = try InProcessServer(configure: { $0.defaultPolicy = .never })
        defer { server.stop() }
        let client = Client(socket: try server.connect())
        #expect(try client("INDEX") == "*0\r\n")
        for key in 0..<10 { _ = try client(["SET", "b:\(key)", "{\"year\":\(key)}"]) }
        #expect(try client("INDEX CREATE byYear PREFIX b: ON year DESC title") == Wire.ok)
        #expect(try client("INDEX CREATE byYear PREFIX b: ON year DESC title") == Wire.ok)
        try client.waitForIndexes()
        let list = try client("INDEX byYear")
        #expect(
            list.hasPrefix(
                "*1\r\n*14\r\n" + Wire.bulk("name") + Wire.bulk("byYear") + Wire.bulk("paths")
                    + Wire.bulks("year DESC", "title") + Wire.bulk("prefix") + Wire.bulk("b:") + Wire.bulk("state")
                    + Wire.bulk("ready") + Wire.bulk("percent") + Wire.int(100)
                    // Entries that are not in LevelDB yet count too.
                    + Wire.bulk("entries") + Wire.int(10)), "\(list)")
        let explanation = try client("EXPLAIN QUERY KEYS WHERE @key PREFIX b: AND year > 3 SORT year DESC LIMIT 2")
        #expect(explanation.contains("the index byYear is used (PREFIX b: ON year DESC title)"))
        #expect(explanation.contains("the rows have the order of the index: year DESC"))
        // Stops at the limit: one entry more shows that there is a next page.
        #expect(explanation.contains("3 entries examined; 3 match"), "\(explanation)")
        // Without the prefix, the index does not have all entries.
        #expect(try client("EXPLAIN QUERY KEYS WHERE year > 3").contains("no index is used"))
        #expect(try client("INFO larder").contains("queries:2\r\nquery_scans:1\r\nquery_entries_examined:13\r\n"))
        #expect(try client("INDEX DROP byYear") == Wire.ok)
        #expect(try client("INDEX DROP byYear").hasPrefix("-ERR there is no index 'byYear'"))
        #expect(try client("INDEX byYear").hasPrefix("-ERR there is no index"))
        #expect(try client("INDEX CREATE b ON a..b").hasPrefix("-ERR invalid path"))
        #expect(try client("INDEX CREATE b/c ON a").hasPrefix("-ERR"))
        #expect(try client("INDEX CREATE b").hasPrefix("-ERR PREFIX, GEO or ON expected"))
        for words in ["FROB x y", "CREATE", "DROP", "help"] {
            #expect(try client("INDEX \(words)").hasPrefix("-ERR INDEX takes"))
        }
    }
}
