import Foundation
import LarderPlatform
import LarderTestSupport
import Testing

/// Tests of the entry browser's API: docs/Operating.md.
@Suite struct WebEntriesTests {
    private struct Key: Decodable {
        struct Bytes: Decodable {
            let text: String?
            let hex: String?
        }

        let key: Bytes
        let size: Int?
        let ttl: Int?
    }

    private struct Page: Decodable {
        let keys: [Key]
        let next: String?
    }

    private struct Entry: Decodable {
        let storedAt: Int64
        let now: Int64
        let deadline: Int64?
        let grace: Int64
        let rule: String
        let size: Int
        let isStale: Bool
        let tags: [String]
        let value: Key.Bytes?
        let isCut: Bool
    }

    private func decode<Value: Decodable>(_ type: Value.Type, _ reply: WebProcess.Reply) throws -> Value {
        try #require(reply.status == 200, "\(reply)")
        return try JSONDecoder().decode(type, from: Data(reply.body.utf8))
    }

    /// All pages of a search, in order.
    private func keys(_ web: WebProcess, _ query: String) throws -> [String] {
        var all: [String] = []
        var cursor = ""
        while true {
            let page = try decode(Page.self, try web.get("/api/keys?" + query + cursor))
            all += page.keys.compactMap(\.key.hex)
            guard let next = page.next else { return all }
            cursor = "&cursor=" + next
        }
    }

    private func hex(_ text: String) -> String { text.utf8.map { String(format: "%02x", $0) }.joined() }

    @Test("keys are listed by a prefix of any bytes, in pages without gaps or repetitions")
    func keysAreListedByPrefixInPages() throws {
        let daemon = try DaemonProcess()
        let web = try WebProcess(daemon.socketPath)
        let client = try daemon.connect()
        let odd = ["a*b", "a*c", "aXb", "a[1]", "a[2]", "a\\x", "a\\y", "a?1", "a^1", "a-1", "b b", "ä1", "ä2", ""]
        for key in odd { _ = try client.call(["SET", key, "v"]) }
        for number in 0..<500 { _ = try client.call(["SET", "many:\(number)", "v"]) }
        for (prefix, found) in [
            ("a*", ["a*b", "a*c"]), ("a[", ["a[1]", "a[2]"]), ("a\\", ["a\\x", "a\\y"]), ("a?", ["a?1"]),
            ("a^", ["a^1"]),
            ("a-", ["a-1"]), ("b ", ["b b"]), ("ä", ["ä1", "ä2"]), ("c", []),
        ] {
            let query = prefix.utf8.map { String(format: "%%%02x", $0) }.joined()
            #expect(try keys(web, "database=0&prefix=" + query) == found.map(hex), "\(prefix)")
        }
        // The prefix is only the first byte of a character.
        #expect(try keys(web, "prefix=%c3") == ["ä1", "ä2"].map(hex))
        let many = try keys(web, "prefix=many:&count=7")
        #expect(many.count == 500 && Set(many).count == 500)
        #expect(try keys(web, "").count == 514)
        #expect(try keys(web, "database=none").isEmpty)
        // Reading does not create a database.
        #expect(try !client.call("DATABASES").contains("none"))
    }

    @Test("an entry is returned with its times, policy and value") func anEntryIsReturnedWithItsTimes() throws {
        let daemon = try DaemonProcess()
        let web = try WebProcess(daemon.socketPath)
        let client = try daemon.connect()
        _ = try client.call(["SET", "k", "{\"a\":1}", "EX", "100", "GRACE", "50", "TAGS", "2", "t", "u"])
        let entry = try decode(Entry.self, try web.get("/api/entry?database=0&key=%6B"))
        #expect(entry.deadline == entry.storedAt + 100_000 && entry.grace == 50_000 && entry.rule == "own")
        #expect(entry.now >= entry.storedAt && !entry.isStale && Set(entry.tags) == ["t", "u"] && entry.size == 7)
        #expect(entry.value?.text == "{\"a\":1}" && entry.value?.hex == nil)
        try client.send(encodeRequest([Array("SET".utf8), [0xFF, 0], [0, 0xC3]]))
        _ = try client.receive()
        let binary = try decode(Entry.self, try web.get("/api/entry?key=%ff%00"))
        #expect(binary.value?.text == nil && binary.value?.hex == "00c3" && binary.rule == "governed")
        // The value is truncated within a character, or within bytes that are not UTF-8.
        _ = try client.call(["SET", "long", String(repeating: "é", count: 200_000)])
        let long = try decode(Entry.self, try web.get("/api/entry?key=long"))
        #expect(long.isCut && long.size == 400_000 && long.value?.text?.count == 131_072)
        _ = try client.call(["SET", "odd", "x" + String(repeating: "é", count: 200_000)])
        #expect(try decode(Entry.self, try web.get("/api/entry?key=odd")).value?.text?.count == 131_072)
        _ = try client.call("POLICY never")
        #expect(try decode(Entry.self, try web.get("/api/entry?key=odd")).deadline == nil)
        #expect(try web.get("/api/entry?key=nothing").status == 404)
        // A stale entry that is kept during its grace is shown without its value.
        _ = try client.call("SET stale v PX 1 GRACE 100")
        var stale = try decode(Entry.self, try web.get("/api/entry?key=stale"))
        while !stale.isStale { stale = try decode(Entry.self, try web.get("/api/entry?key=stale")) }
        #expect(stale.value == nil && stale.grace == 100_000)
    }

    @Test func policyChangesAndPurgesAreApplied() throws {
        let daemon = try DaemonProcess()
        let web = try WebProcess(daemon.socketPath, ["--allow-changes"])
        let client = try daemon.connect()
        for key in ["a", "b", "c"] { _ = try client.call(["SET", key, "v", "TAGS", "1", "t" + key]) }
        func post(_ path: String, _ body: String) throws -> String { try web.post("/api/" + path, body).body }
        #expect(try post("policy", #"{"database":"0","key":"61","policy":"never"}"#) == #"{"done":true}"#)
        #expect(try client.call("TTL a") == ":-1\r\n")
        #expect(try post("policy", #"{"database":"0","key":"7a","policy":"never"}"#) == #"{"done":false}"#)
        #expect(try post("policy", #"{"database":"0","key":"61","policy":"often"}"#).contains("highest"))
        #expect(try post("purge", #"{"database":"0","tag":"tb","confirm":"0"}"#) == #"{"done":true}"#)
        #expect(try client.call("EXISTS a b c") == ":2\r\n")
        #expect(try web.post("/api/purge", #"{"database":"0","tag":"","confirm":"0"}"#).status == 400)
        #expect(try post("purge", #"{"database":"0"}"#).contains("confirm"))
        #expect(try post("purge", #"{"database":"0","confirm":"1"}"#).contains("confirm"))
        #expect(try client.call("EXISTS a b c") == ":2\r\n")
        #expect(try post("purge", #"{"database":"0","confirm":"0"}"#).hasPrefix(#"{"done":true,"entries":"#))
        #expect(try client.call("EXISTS a b c") == ":0\r\n")
    }

    /// Connections to the daemon are shared. If SELECT is refused, the removal must not run in the connection's
    /// previous database.
    @Test("requests for a refused database do not affect other databases")
    func aRefusedDatabaseDoesNotAffectOthers() throws {
        let daemon = try DaemonProcess()
        let web = try WebProcess(daemon.socketPath, ["--allow-changes"])
        let client = try daemon.connect()
        for database in ["0", "shop"] {
            _ = try client.call("SELECT \(database)")
            _ = try client.call("SET k v")
        }
        for database in ["0", "shop"] {
            for name in ["NOT-VALID", "..", "", "99999999999999999999"] {
                // The next request uses the connection of this one.
                #expect(try web.get("/api/entry?database=\(database)&key=k").status == 200)
                for (path, body) in [
                    ("delete", #""key":"6b""#), ("policy", #""key":"6b","policy":"1s""#),
                    ("purge", #""confirm":"\#(name)""#),
                ] {
                    let reply = try web.post("/api/" + path, #"{"database":"\#(name)",\#(body)}"#)
                    #expect(reply.status == 400, "\(path) \(name): \(reply)")
                }
                #expect(try web.get("/api/keys?database=\(name)").status == 400)
            }
            _ = try client.call("SELECT \(database)")
            #expect(try client.call("EXISTS k") == ":1\r\n", "\(database)")
            #expect(try client.call("TTL k").hasPrefix(":604"))
        }
    }

    /// There are two kinds of keys: a few long ones with a common prefix, which expire after days and are on the disk;
    /// and many different ones, which expire within minutes and are in memory.
    @Test("the estimated number of entries that expire within an hour is right for any keys")
    func entriesThatSoonExpireAreEstimated() throws {
        struct Report: Decodable {
            let database: String
            let entries: Int
            let minute: Double
            let hour: Double
            let day: Double
            let never: Double
        }
        let daemon = try DaemonProcess(["--policy", "never"])
        let client = try daemon.connect()
        for number in 0..<1800 { _ = try client.call("SET article:2026:long:\(number) v EX 259200") }
        _ = try client.call("SAVE")
        let letters = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
        for number in 0..<160 { _ = try client.call("SET \(letters[number % 26])\(number) v EX 3000") }
        for number in 0..<40 { _ = try client.call("SET \(letters[number % 26])x\(number) v EX 50") }
        _ = try client.call("SELECT 1")
        _ = try client.call("SET k v")
        let web = try WebProcess(daemon.socketPath)
        let reports = try decode([Report].self, try web.get("/api/freshness"))
        let report = try #require(reports.first)
        #expect(report.database == "0" && report.entries == 2000)
        #expect(report.minute == 0.02 && report.hour == 0.1 && report.day == 0.1 && report.never == 0)
        #expect(reports.last?.database == "1" && reports.last?.never == 1)
    }

    @Test("the figures of the last day are stored in a separate larder")
    func theLastDayIsStoredInASeparateLarder() async throws {
        struct Point: Decodable {
            let time: Int64
            let commandRates: [String: Double]
        }
        let place = try TemporaryDirectory(inMemory: true)
        let history = ["--history", place.path + "/figures"]
        let daemon = try DaemonProcess()
        let client = try daemon.connect()
        func points(_ web: WebProcess, _ range: String) throws -> [Point] {
            try decode([Point].self, try web.get("/api/history?range=" + range))
        }
        let web = try WebProcess(daemon.socketPath, history)
        await eventually { (try? points(web, "day").count) ?? 0 > 0 && (try? points(web, "recent").count) ?? 0 > 1 }
        let before = try points(web, "day")
        #expect(try web.get("/api/history").status == 400)
        let recent = try points(web, "recent")
        #expect(try points(web, "recent&since=\(recent[0].time)").first?.time == recent[1].time)
        // Rates include the commands of larderweb's own polling.
        await eventually { (try? points(web, "recent").contains { $0.commandRates["info"] ?? 0 > 0 }) ?? false }
        #expect(try !web.get("/api/overview").body.contains("historyNote"))
        // The history is not stored in the daemon.
        #expect(try client.call("INFO keyspace").contains("keys=") == false)
        // Only one process can open the history's larder. The second one reports that, and works without it.
        let second = try WebProcess(daemon.socketPath, history)
        await eventually { (try? second.get("/api/overview").body.contains("figures are kept in")) ?? false }
        #expect(try second.stop() == .exited(0))
        #expect(try web.stop() == .exited(0))
        // After a restart, the history is available again, even without the daemon.
        let address = daemon.socketPath
        daemon.process.killNow()
        let again = try WebProcess(address, history)
        await eventually { (try? points(again, "day").first?.time) == before[0].time }
        #expect(try again.stop() == .exited(0))
        // The history of another daemon is separate.
        let other = try WebProcess("/nowhere/socket", history)
        _ = try other.process.waitForErrorLine(containing: "figures are kept in")
        #expect(try points(other, "day").isEmpty)
        // If the history cannot be stored, it stays in memory, and this is reported. A larder that other programs use
        // is not changed.
        try FileSystem.makeDirectories(place.path + "/others/pages")
        for (place, hint) in [
            ("none", "historyNote"), ("/dev/null/figures", "figures are kept in memory only"),
            (place.path + "/others", "other databases"),
        ] {
            let web = try WebProcess(daemon.socketPath, ["--history", place])
            await eventually { (try? web.get("/api/overview").body.contains(hint)) ?? false }
        }
    }
}
