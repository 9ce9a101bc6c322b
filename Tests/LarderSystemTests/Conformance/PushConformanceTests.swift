import LarderTestSupport
import Testing

/// One line of a script for several connections: the sender and its command, then the number of replies and messages
/// that each connection receives.
///
/// `a SUBSCRIBE x y | a2` sends from the connection `a`, which then receives two messages. Without `|`, the sender
/// receives one reply. After `b PUBLISH x 1 | a1 b1`, `a` and `b` receive one each.
struct PushStep: CustomStringConvertible, Sendable {
    let line: String
    let sender: String
    let command: ConformanceStep
    let received: [(connection: String, count: Int)]
    var description: String { line }

    init(_ line: String) {
        self.line = line
        let parts = line.split(separator: " | ", maxSplits: 1).map(String.init)
        let words = parts[0].split(separator: " ", maxSplits: 1).map(String.init)
        sender = words[0]
        command = ConformanceStep(words.count > 1 ? words[1] : "PING")
        received =
            parts.count > 1
            ? parts[1].split(separator: " ").map { (String($0.prefix(1)), Int($0.dropFirst()) ?? 1) } : [(words[0], 1)]
    }
}

/// Runs the same script on redis-server and larderd, over several connections. All replies and messages must have the
/// same bytes, in the same order on each connection.
@Suite struct PushConformanceTests {
    private final class Side {
        private let connect: () throws -> SocketClient
        private var clients: [String: SocketClient] = [:]
        private var ids: [String: String] = [:]

        init(_ connect: @escaping () throws -> SocketClient) { self.connect = connect }

        func client(_ name: String) throws -> SocketClient {
            if let client = clients[name] { return client }
            let client = try connect()
            let id = String(decoding: try client.call(["CLIENT", "ID"]).dropFirst().dropLast(2), as: UTF8.self)
            clients[name] = client
            ids[name] = id
            return client
        }

        /// The words of a step, with the names in braces replaced by the IDs of the connections.
        func words(_ step: PushStep) -> [[UInt8]] {
            step.command.words.map { word in
                guard word.first == UInt8(ascii: "{"), word.count == 3 else { return word }
                return Array((ids[String(decoding: word[1...1], as: UTF8.self)] ?? "?").utf8)
            }
        }

        /// A reply with the IDs of connections replaced by their names.
        func named(_ reply: [UInt8]) -> [UInt8] {
            var text = String(decoding: reply, as: UTF8.self)
            // In a line of MONITOR, the database, the socket and the words follow the time.
            if text.hasPrefix("+1"), let bracket = text.firstIndex(of: "["), let end = text.firstRange(of: "] \"") {
                return Array((text[bracket...].prefix { $0 != " " } + text[end.lowerBound...]).utf8)
            }
            guard text.contains("redirect") || text.contains("redir-broken") || text.hasPrefix(":") else {
                return reply
            }
            for (name, id) in ids { text = text.replacing("\r\n:\(id)\r\n", with: "\r\n:{\(name)}\r\n") }
            return Array(text.utf8)
        }

        var names: [String] { clients.keys.sorted() }
    }

    private func shown(_ replies: [[UInt8]]) -> String {
        replies.map { String(decoding: $0.prefix(300), as: UTF8.self).debugDescription }.joined(separator: " ")
    }

    private func receive(_ client: SocketClient, _ count: Int, _ what: String) throws -> [[UInt8]] {
        do { return try client.receive(count) } catch { throw SocketClient.Failure(description: "\(what): \(error)") }
    }

    /// Runs a script. A leading `~` of a command means that its replies may come in any order.
    private func run(_ script: String, _ options: [String], redis settings: [String] = []) throws {
        let redis = try RedisProcess(settings)
        let daemon = try DaemonProcess(["--policy", "never", "--durability", "os"] + options)
        let (one, other) = (Side { try redis.connect() }, Side { try daemon.connect() })
        for line in script.split(separator: "\n") where !line.hasPrefix("#") {
            let step = PushStep(String(line))
            if step.command.line == "EOF" {
                // Wait until both servers have closed the connection.
                #expect(try one.client(step.sender).receiveToEnd() == other.client(step.sender).receiveToEnd())
                continue
            }
            let (redisClient, larderClient) = (try one.client(step.sender), try other.client(step.sender))
            try redisClient.send(encodeRequest(one.words(step)))
            try larderClient.send(encodeRequest(other.words(step)))
            for (name, count) in step.received {
                var expected = try receive(one.client(name), count, "redis at \(step)")
                var found = try receive(other.client(name), count, "larder at \(step)")
                if step.command.comparison == .unordered {
                    expected.sort { $0.lexicographicallyPrecedes($1) }
                    found.sort { $0.lexicographicallyPrecedes($1) }
                }
                if step.line.contains("CLIENT") || step.line.contains("SET") || name == "m" {
                    expected = expected.map { one.named($0) }
                    found = found.map { other.named($0) }
                }
                // Do not compare the reply of HELLO: it contains connection IDs and versions, which differ.
                if step.line.contains("HELLO"), name == step.sender { (expected, found) = ([], []) }
                #expect(found == expected, "\(step) at \(name): redis \(shown(expected)), larder \(shown(found))")
            }
        }
        // No connection has received anything more.
        for name in one.names where name != "q" {
            let expected = try one.client(name).call(["PING", "the end"])
            let found = try other.client(name).call(["PING", "the end"])
            #expect(found == expected, "after the script at \(name): larder \(shown([found]))")
        }
    }

    @Test("publish and subscribe behave as in Redis", arguments: ["1", "2", "4"])
    func publishAndSubscribe(_ threads: String) throws {
        try run(PushScript.pubsub, ["--threads", threads])
    }

    @Test("CLIENT REPLY behaves as in Redis", arguments: ["1", "2", "4"]) func replyModes(_ threads: String) throws {
        try run(PushScript.replyModes, ["--threads", threads])
    }

    /// Runs with one event loop, because the order of the commands of several connections is visible.
    @Test("MONITOR shows the same lines as Redis") func monitor() throws { try run(PushScript.monitor, []) }

    @Test("FLUSHALL sends the same invalidations as Redis", arguments: ["1", "4"])
    func flushes(_ threads: String) throws {
        try run(PushScript.flushes, ["--threads", threads])
    }

    @Test("CLIENT TRACKING sends the same invalidations as Redis", arguments: ["1", "2", "4"])
    func tracking(_ threads: String) throws {
        try run(PushScript.tracking, ["--threads", threads])
    }

    @Test("commands send the same keyspace events as Redis", arguments: ["1", "4"])
    func events(_ threads: String) throws {
        let events = ["--notify-keyspace-events", "KEA"]
        try run(PushScript.events, ["--threads", threads] + events, redis: events)
    }

    @Test("keyspace notifications are the same as in Redis", arguments: ["1", "2", "4"])
    func notifications(_ threads: String) throws {
        let events = ["--notify-keyspace-events", "KEAn"]
        try run(PushScript.notifications, ["--threads", threads] + events, redis: events)
    }
}
