import LarderPlatform
import LarderTestSupport
import Testing

@testable import LarderServer

/// QUERY LIVE and QUERY STOP: replies, messages, errors, and the end of live queries.
@Suite(.timeLimit(.minutes(2))) struct LiveQueryCommandTests {
    private let server: SocketlessServer
    private let writer: TestClient

    init() throws {
        server = try SocketlessServer(policy: .never)
        writer = server.connect()
        _ = writer(["SET", "b:1", "{\"n\":1}"])
    }

    private func reader() -> TestClient {
        let client = server.connect()
        _ = client("HELLO 3")
        return client
    }

    private static func push(_ parts: String...) -> String { ">\(parts.count)\r\n" + parts.joined() }

    private static func live(_ id: Int, _ word: String, _ rest: String...) -> String {
        ">\(3 + rest.count)\r\n" + Wire.bulk("live") + Wire.int(id) + Wire.bulk(word) + rest.joined()
    }

    /// Waits for messages, and compares them.
    private func expect(_ client: TestClient, _ messages: String, line: Int = #line) async {
        var text = ""
        await eventually(
            {
                server.deliver()
                text += client.takeSendable()
                return text.utf8.count >= messages.utf8.count
            }, line: line)
        #expect(text == messages)
    }

    @Test func resultIsFollowedByDifferences() async throws {
        let client = reader()
        #expect(
            client("QUERY LIVE WHERE n > 0 SORT n LIMIT 2")
                == Wire.array(Wire.int(1), Wire.array(Wire.bulks("b:1", "{\"n\":1}"))))
        _ = writer(["SET", "b:2", "{\"n\":2}"])
        await expect(client, Self.live(1, "set", Wire.bulk("b:2"), Wire.bulk("{\"n\":2}")))
        _ = writer(["SET", "b:0", "{\"n\":0.5}"])
        await expect(
            client,
            Self.live(1, "out", Wire.bulk("b:2"), Wire.bulk("moved"))
                + Self.live(1, "set", Wire.bulk("b:0"), Wire.bulk("{\"n\":0.5}")))
        #expect(client("QUERY LIVE POSITIONS KEYS WHERE n > 1") == Wire.array(Wire.int(2), Wire.bulks("b:2")))
        _ = writer("DEL b:2")
        await expect(client, Self.live(2, "out", Wire.bulk("b:2"), Wire.bulk("removed")))
        _ = writer(["SET", "b:3", "{\"n\":3}"])
        await expect(client, Self.live(2, "set", Wire.bulk("b:3"), Wire.int(0)))
        #expect(writer("INFO clients").contains("live_queries:2\r\n"))
        #expect(client("QUERY STOP 2") == Wire.ok)
        #expect(client("QUERY STOP 2") == Wire.error("ERR the connection has no live query 2"))
        #expect(client("QUERY STOP x").hasPrefix("-ERR QUERY STOP takes the number"))
        _ = writer("DEL b:1")
        await expect(
            client,
            Self.live(1, "out", Wire.bulk("b:1"), Wire.bulk("removed"))
                + Self.live(1, "set", Wire.bulk("b:3"), Wire.bulk("{\"n\":3}")))
    }

    @Test func messagesOfOneChangeAreMarked() async {
        for number in 1...3 { _ = writer(["SET", "b:\(number)", "{\"n\":\(number)}"]) }
        let client = reader()
        _ = client("QUERY LIVE POSITIONS KEYS SORT n LIMIT 2")
        _ = writer("DEL b:1")
        await expect(
            client,
            Self.live(1, "out", Wire.bulk("b:1"), Wire.bulk("removed"), Wire.bulk("more"))
                + Self.live(1, "set", Wire.bulk("b:3"), Wire.int(1)))
    }

    @Test func impossibleCallsAreErrors() {
        #expect(writer("QUERY LIVE") == Wire.error("ERR QUERY LIVE needs RESP3: send HELLO 3 first"))
        let client = reader()
        #expect(client("QUERY LIVE COUNT").hasPrefix("-ERR a live query has rows or KEYS"))
        #expect(client("QUERY LIVE LIMIT 10001").hasPrefix("-ERR a live query has 1 to 10000 rows"))
        #expect(client("QUERY LIVE WHERE").hasPrefix("-ERR a path expected"))
        _ = client("MULTI")
        _ = client("QUERY LIVE KEYS")
        #expect(client("EXEC").contains("-ERR QUERY LIVE is not possible in transactions and scripts"))
        #expect(
            client(["EVAL", "redis.setresp(3) return redis.pcall('QUERY', 'LIVE', 'KEYS')", "0"])
                .contains("not possible in transactions and scripts"))
        _ = client("SNAPSHOT OPEN")
        #expect(client("QUERY LIVE KEYS").hasPrefix("-ERR QUERY LIVE is not possible in a snapshot"))
        _ = client("SNAPSHOT CLOSE")
        for _ in 0..<ConnectionQueries.queriesMax { _ = client("QUERY LIVE KEYS WHERE n = -1") }
        #expect(client("QUERY LIVE KEYS").hasPrefix("-ERR the connection already has 1000 live queries"))
    }

    @Test func queriesEndWithTheirConnection() async {
        for end in ["RESET", "HELLO 2"] {
            let client = reader()
            _ = client("QUERY LIVE KEYS")
            #expect(server.state.live.count == 1)
            _ = client(end)
            #expect(server.state.live.count == 0)
        }
        let client = reader()
        _ = client("QUERY LIVE KEYS")
        client.session.end()
        #expect(server.state.live.count == 0)
        await eventually { !server.engine.changes.isOn }
    }

    @Test func twoConnectionsHaveTheirOwnNumbers() async {
        let (one, two) = (reader(), reader())
        _ = one("QUERY LIVE KEYS WHERE n = 9")
        _ = two("QUERY LIVE KEYS WHERE n = 9")
        _ = writer(["SET", "k", "{\"n\":9}"])
        for client in [one, two] { await expect(client, Self.live(1, "set", Wire.bulk("k"))) }
    }

    /// A client that does not read gets the whole result afterwards.
    @Test(arguments: [Limits().subscriberBytesMax, 512 << 10])
    func clientThatDoesNotReadGetsTheWholeResult(_ subscriberBytesMax: Int) async throws {
        var limits = Limits()
        limits.subscriberBytesMax = subscriberBytesMax
        let server = try InProcessServer(limits: limits)
        defer { server.stop() }
        let (client, writer) = (try server.connect(), try server.connect())
        _ = try client.call("HELLO 3")
        _ = try client.call("QUERY LIVE WHERE n EXISTS")
        let padding = String(repeating: "x", count: 20_000)
        for round in 0..<1000 {
            try writer.send(["SET", "k\(round % 10)", "{\"n\":\(round),\"p\":\"\(padding)\"}"])
            _ = try writer.receive()
        }
        var (resets, rows) = (0, [String: String]())
        while rows.count < 10 || rows.contains(where: { !$0.value.contains("\"n\":99\($0.key.dropFirst()),") }) {
            let lines = String(decoding: try client.receive(), as: UTF8.self).split(separator: "\r\n").map(String.init)
            // live, id, set, key, text
            if lines[5] == "set" { rows[lines[7]] = lines[9] }
            guard lines[5] == "reset" else { continue }
            resets += 1
            rows = [:]
            for row in stride(from: 7, to: lines.count, by: 5) { rows[lines[row + 2]] = lines[row + 4] }
        }
        #expect(resets > 0)
    }

    @Test("a whole result is sent if it fits into the limit of unread messages", arguments: [24, 40])
    func longResult(_ rowCount: Int) async throws {
        var limits = Limits()
        limits.subscriberBytesMax = 1 << 20
        let server = try InProcessServer(limits: limits)
        defer { server.stop() }
        let (client, writer) = (try server.connect(), try server.connect())
        let text = "\"\(String(repeating: "x", count: 30_000))\""
        for row in 0..<rowCount { _ = try writer.call(["SET", "k\(row)", text]) }
        _ = try client.call("HELLO 3")
        _ = try client.call("QUERY LIVE SORT @expires")
        // The query runs again.
        _ = try writer.call("POLICY high")
        let message = String(decoding: try client.receive(), as: UTF8.self).split(separator: "\r\n")
        #expect(message[5] == (rowCount == 24 ? "reset" : "end"))
        if rowCount == 40 { #expect(message[7].contains("are too many for --max-subscriber-output")) }
    }

    /// Messages are dropped while those that were not read are too large. Later ones of other queries may still fit.
    @Test func allQueriesWhoseMessagesWereDroppedGetTheWholeResult() async {
        let client = reader()
        for condition in ["big = 1", "big EXISTS", "small = 1"] { _ = client("QUERY LIVE WHERE \(condition)") }
        var received = ""
        func receive(_ messages: String..., isRead: Bool, line: Int = #line) async {
            await eventually(
                {
                    server.deliver()
                    received += client.takeSendable()
                    if isRead { client.session.queries.didRead() }
                    return messages.allSatisfy { received.contains($0) }
                }, line: line)
        }
        let text = Wire.bulk("{\"big\":1,\"p\":\"\(String(repeating: "x", count: 600_000))\"}")
        func store(_ key: String, _ text: String) {
            _ = writer(["SET", key, String(text.split(separator: "\r\n")[1])])
        }
        store("1", text)
        await receive(Self.live(1, "set", Wire.bulk("1"), text), isRead: false)
        store("2", text)
        store("3", Wire.bulk("{\"small\":1}"))
        await receive(Self.live(3, "set", Wire.bulk("3"), Wire.bulk("{\"small\":1}")), isRead: false)
        #expect(!received.contains(Wire.bulk("reset")) && !received.contains(Wire.bulk("2")))
        // Each whole result is larger than the limit: the second one is sent after the first has been read.
        let rows = Wire.array("*2\r\n" + Wire.bulk("1") + text, "*2\r\n" + Wire.bulk("2") + text)
        await receive(Self.live(1, "reset", rows), Self.live(2, "reset", rows), isRead: true)
    }
}
