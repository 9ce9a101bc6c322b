import LarderRESP
import LarderTestSupport
import LarderWire
import Testing

@testable import LarderClient

/// Tests of the asynchronous client with a scripted server: each caller gets its own reply or an error, also after
/// malformed replies, lost connections and timeouts.
@Suite(.timeLimit(.minutes(10))) struct AsyncClientTests {
    static func connect(_ server: FakeServer, _ options: ClientOptions = .init()) async throws -> LarderClient {
        try await LarderClient.connect(socketPath: server.path, options: options)
    }

    /// Answers `ECHO` with its argument; on request, closes the connection or sends half a reply.
    static func server(_ handler: @escaping @Sendable (FakeServer.Request) -> FakeServer.Answer? = { _ in nil }) throws
        -> FakeServer
    {
        try FakeServer { request in
            if let answer = handler(request) { return answer }
            switch request.name {
            case "ECHO": return .bytes(bulk(request.words[1]))
            case "ONE": return .text(":1\r\n")
            case "HANG": return .nothing
            default: return .standard
            }
        }
    }

    static func bulk(_ bytes: [UInt8]) -> [UInt8] { Array("$\(bytes.count)\r\n".utf8) + bytes + [13, 10] }

    // MARK: Replies and their tasks

    @Test(arguments: [1, 3])
    func everyTaskGetsItsOwnReply(connections: Int) async throws {
        let server = try Self.server { request in
            // Send some replies in small pieces.
            guard request.name == "ECHO", request.words[1].count % 7 == 0 else { return nil }
            return .drip(Self.bulk(request.words[1]))
        }
        defer { server.stop() }
        let client = try await Self.connect(server, .init(connections: connections))
        try await withThrowingTaskGroup(of: Void.self) { group in
            for task in 0..<50 {
                group.addTask {
                    for step in 0..<20 {
                        let text = "\(task)-\(step)" + String(repeating: "x", count: (task * step) % 50)
                        let reply = try await client.command("ECHO", text)
                        #expect(reply == .bulk(Array(text.utf8)))
                    }
                }
            }
            try await group.waitForAll()
        }
        #expect(server.connectionCount == connections)
    }

    @Test func requestsOfOneTaskKeepTheirOrder() async throws {
        let server = try Self.server()
        defer { server.stop() }
        let client = try await Self.connect(server)
        for step in 0..<100 { try await client.command("ECHO", "\(step)") }
        let expected: [String] = (0..<100).map { "\($0)" }
        #expect(server.requests.filter { $0[0] == "ECHO" }.map { $0[1] } == expected)
    }

    @Test func aPipelineIsNotInterleavedWithOtherRequests() async throws {
        let server = try Self.server()
        defer { server.stop() }
        let client = try await Self.connect(server)
        let others = Task { for _ in 0..<200 { try await client.command("ONE") } }
        for _ in 0..<20 {
            let replies = try await client.pipeline((0..<50).map { [Array("ECHO".utf8), Array("p\($0)".utf8)] })
            #expect(replies.map(\.string) == (0..<50).map { "p\($0)" })
        }
        try await others.value
        let echoes = server.requests.filter { $0[0] == "ECHO" || $0[0] == "ONE" }
        // The requests of a pipeline are sent together: no other task's request is among them.
        for (index, request) in echoes.enumerated() where request == ["ECHO", "p0"] {
            #expect(echoes[index..<(index + 50)].allSatisfy { $0[0] == "ECHO" })
        }
    }

    @Test func largeValuesAreSentAndReceived() async throws {
        let server = try Self.server()
        defer { server.stop() }
        let client = try await Self.connect(server)
        var generator = SeededGenerator(seed: testSeed())
        let values = (0..<8).map { _ in generator.bytes(count: 400_000) }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for value in values {
                group.addTask {
                    let reply = try await client.command(bytes: [Array("ECHO".utf8), value])
                    #expect(reply == .bulk(value))
                }
            }
            try await group.waitForAll()
        }
    }

    @Test func commandReturnsServerErrorsAndTypedCallsThrowThem() async throws {
        let server = try Self.server { $0.name == "GET" ? .text("-ERR no\r\n") : nil }
        defer { server.stop() }
        let client = try await Self.connect(server)
        #expect(try await client.command("GET", "k") == .error("ERR no"))
        let error = await #expect(throws: LarderClientError.self) {
            try await client.cache(of: Int.self).value(forKey: "k")
        }
        #expect(error?.code == .server)
        #expect(error?.serverText == "ERR no")
        #expect(error?.key == "k")
    }

    @Test(arguments: [":7\r\n", "+OK\r\n", "*0\r\n"])
    func aReplyOfTheWrongTypeAffectsOnlyItsCall(reply: String) async throws {
        let server = try Self.server { $0.name == "GET" ? .text(reply) : nil }
        defer { server.stop() }
        let client = try await Self.connect(server)
        let error = await #expect(throws: LarderClientError.self) {
            try await client.cache(of: Int.self).value(forKey: "k")
        }
        #expect(error?.code == .protocolViolation)
        #expect(try await client.command("ONE") == .integer(1))
        #expect(server.connectionCount == 1)
    }

    @Test func commandsThatChangeTheSharedConnectionAreRefused() async throws {
        let server = try Self.server()
        defer { server.stop() }
        let client = try await Self.connect(server)
        for command in ["select 1", "MULTI", "WATCH k", "SUBSCRIBE c", "MONITOR", "CLIENT REPLY OFF", "QUIT", ""] {
            let error = await #expect(throws: LarderClientError.self) {
                try await client.command(command.split(separator: " ").map(String.init))
            }
            #expect(error?.code == .invalidArgument)
        }
        #expect(server.requests == [["POLICY"]])
    }

    /// A shared connection must refuse commands that change its state, because the state would affect other callers.
    @Test func transactionsLeaveNoStateOnSharedConnections() async throws {
        let server = try Self.server()
        defer { server.stop() }
        let client = try await Self.connect(server)
        let changing = [
            "EXEC", "SELECT 1", "AUTH x", "HELLO 2", "SNAPSHOT OPEN", "client tracking on", "CLIENT REPLY SKIP",
            "SUBSCRIBE c",
        ]
        for command in changing {
            let error = await #expect(throws: LarderClientError.self) {
                try await client.transaction([command.split(separator: " ").map(String.init)])
            }
            #expect(error?.code == .invalidArgument, "\(command)")
        }
        #expect(server.requests == [["POLICY"]])
    }

    // MARK: Missing connections

    @Test func connectingWithoutADaemonFailsAtOnce() async throws {
        let directory = try TemporaryDirectory(inMemory: true)
        let path = directory.path + "/none"
        let error = await #expect(throws: LarderClientError.self) { try await LarderClient.connect(socketPath: path) }
        #expect(error?.code == .noDaemon)
        #expect(error?.message == "no daemon answers at \(path): start one with: larderd --socket \(path)")
    }

    /// Regression test: the error did not say that there was no daemon if the time limit of a call was shorter than the
    /// patience for a connection.
    @Test(arguments: [100, 200])
    func aStoppedDaemonIsReportedWhateverTheTimeLimit(limit: Int) async throws {
        let server = try Self.server()
        let client = try await Self.connect(
            server, .init(timeoutMilliseconds: limit, reconnectPatienceMilliseconds: 200))
        try await client.command("ECHO", "a")
        server.stop()
        // The client may send this request before it notices that the server has stopped. The error is then `closed`
        // instead of `noDaemon`.
        _ = try? await client.command("ECHO", "b")
        for _ in 0..<3 {
            let error = await #expect(throws: LarderClientError.self) {
                try await client.cache(of: Int.self).value(forKey: "k")
            }
            #expect(error?.code == .noDaemon, "\(error.map { "\($0)" } ?? "")")
        }
    }

    @Test func connectRefusesInvalidOptions() async throws {
        for options in [
            ClientOptions(timeoutMilliseconds: -1), .init(reconnectPatienceMilliseconds: -1),
            .init(connections: 0), .init(connections: 17), .init(ownConnectionsMax: 0),
            .init(nearCache: .init(entriesMax: 0)),
        ] {
            let error = await #expect(throws: LarderClientError.self) {
                try await LarderClient.connect(socketPath: "/none", options: options)
            }
            #expect(error?.code == .invalidArgument)
        }
    }

    @Test func theReasonOfARefusedConnectionIsReported() async throws {
        let server = try FakeServer { _ in .last(Array("-ERR max number of clients reached\r\n".utf8)) }
        defer { server.stop() }
        let error = await #expect(throws: LarderClientError.self) { try await Self.connect(server) }
        #expect(error?.code == .server)
        #expect(error?.serverText == "ERR max number of clients reached")
    }

    @Test func connectThrowsIfTheDatabaseCannotBeSelected() async throws {
        let server = try Self.server { $0.name == "SELECT" ? .text("-ERR invalid database name\r\n") : nil }
        defer { server.stop() }
        let error = await #expect(throws: LarderClientError.self) {
            try await Self.connect(server, .init(database: "Bad Name"))
        }
        #expect(error?.serverText == "ERR invalid database name")
        // GET is never sent, because it would run in another database.
        let client = try await Self.connect(server)
        let other = await #expect(throws: LarderClientError.self) {
            try await client.cache("Bad Name", of: Int.self).value(forKey: "k")
        }
        #expect(other?.serverText == "ERR invalid database name")
        #expect(!server.requests.contains { $0[0] == "GET" })
    }

    @Test func connectThrowsIfTheServerSpeaksAnotherProtocol() async throws {
        let server = try FakeServer { _ in .text("HTTP/1.1 400 Bad Request\r\n") }
        defer { server.stop() }
        let error = await #expect(throws: LarderClientError.self) { try await Self.connect(server) }
        #expect(error?.code == .protocolViolation)
    }

    @Test func aServerWithoutHELLOCanBeUsed() async throws {
        let server = try Self.server { request in
            switch request.name {
            case "HELLO": .text("-ERR unknown command 'HELLO'\r\n")
            case "GET": .text("$-1\r\n")
            default: nil
            }
        }
        defer { server.stop() }
        let client = try await Self.connect(server)
        #expect(try await client.cache(of: Int.self).value(forKey: "k") == nil)
        let error = await #expect(throws: LarderClientError.self) { try await client.subscribe(to: "c") }
        #expect(error?.code == .invalidArgument)
    }

    /// Regression test: the client sends ECHO after SUBSCRIBE, and the reply to ECHO marks the end of the
    /// confirmations. Redis without HELLO accepts SUBSCRIBE, but then rejects ECHO, so the client waited until its time
    /// limit. It also sent no password.
    @Test("a Redis server without HELLO can be used, but subscribing is refused")
    func subscribingWithoutHELLOIsRefused() async throws {
        let redis = try RedisProcess(["--rename-command", "HELLO", "", "--requirepass", "secret"])
        let options = ClientOptions(password: "secret", timeoutMilliseconds: 0, nearCache: .init())
        let client = try await LarderClient.connect(socketPath: redis.socketPath, options: options)
        try await client.cache(of: Int.self).set(1, forKey: "k")
        #expect(try await client.cache(of: Int.self).value(forKey: "k") == 1)
        #expect(client.nearCacheStatistics()?.isLive == false)
        for _ in 0..<2 {
            let error = await #expect(throws: LarderClientError.self) { try await client.subscribe(to: "c") }
            #expect(error?.code == .invalidArgument && error?.message.contains("RESP3") == true)
        }
        try await client.ping()
        let wrong = ClientOptions(password: "wrong")
        let error = await #expect(throws: LarderClientError.self) {
            try await LarderClient.connect(socketPath: redis.socketPath, options: wrong)
        }
        #expect(error?.serverText?.hasPrefix("WRONGPASS") == true)
        let blocking = try BlockingLarderClient(socketPath: redis.socketPath, password: "secret")
        try blocking.ping()
    }

    @Test func invalidSocketPathsAreExplained() async throws {
        let directory = try TemporaryDirectory(inMemory: true)
        for (path, code, words) in [
            (directory.path, LarderClientError.Code.noDaemon, "is not a socket"),
            (directory.path + "/none", .noDaemon, "start one with"), ("a\0b", .invalidArgument, "zero byte"),
            ("", .invalidArgument, "empty"),
        ] {
            let error = await #expect(throws: LarderClientError.self) {
                try await LarderClient.connect(socketPath: path)
            }
            #expect(error?.code == code && error?.message.contains(words) == true, "\(path)")
            let blocking = #expect(throws: LarderClientError.self) { try BlockingLarderClient(socketPath: path) }
            #expect(blocking?.message == error?.message)
        }
    }

    @Test func thePasswordIsSentOnEveryConnection() async throws {
        let server = try FakeServer { request in
            guard request.name == "HELLO" else { return request.name == "BYE" ? .last([]) : .standard }
            return request.text == ["HELLO", "3", "AUTH", "default", "secret"]
                ? .standard
                : .last(Array("-NOAUTH HELLO must be called with the client already authenticated\r\n".utf8))
        }
        defer { server.stop() }
        let client = try await Self.connect(server, .init(password: "secret"))
        await #expect(throws: LarderClientError.self) { try await client.command("BYE") }
        #expect(try await client.command("NONE").errorMessage == "ERR unknown command")
        let error = await #expect(throws: LarderClientError.self) { try await Self.connect(server) }
        #expect(error?.serverText?.hasPrefix("NOAUTH") == true)
        let blocking = try BlockingLarderClient(socketPath: server.path, password: "secret")
        #expect(try blocking.command("NONE").errorMessage == "ERR unknown command")
    }

    // MARK: Lost connections

    /// If a reply is lost, it is unknown whether its request was executed. So only reads are repeated.
    @Test(arguments: ["", "$3\r\n\"a"])
    func onlyReadsAreRepeatedAfterALostReply(half: String) async throws {
        let server = try Self.server { request in
            switch request.name {
            case "GET": request.connection == 0 ? .last(Array(half.utf8)) : .bytes(Self.bulk([0x37]))
            case "SET": .last(Array(half.utf8))
            default: nil
            }
        }
        defer { server.stop() }
        let client = try await Self.connect(server)
        let cache = client.cache(of: Int.self)
        #expect(try await cache.value(forKey: "k") == 7)
        let error = await #expect(throws: LarderClientError.self) { try await cache.set(1, forKey: "k") }
        #expect(error?.code == .closed)
        #expect(error?.message.contains("unknown") == true)
        #expect(server.requests.count { $0[0] == "SET" } == 1)
        #expect(try await client.command("ONE") == .integer(1))
    }

    @Test func aReadWhoseReplyWasLostIsRepeatedOnce() async throws {
        let server = try Self.server { $0.name == "GET" ? .last([]) : nil }
        defer { server.stop() }
        let client = try await Self.connect(server)
        let error = await #expect(throws: LarderClientError.self) {
            try await client.cache(of: Int.self).value(forKey: "k")
        }
        #expect(error?.code == .closed)
        #expect(server.requests.count { $0[0] == "GET" } == 2)
    }

    @Test func aMalformedReplyReplacesTheConnection() async throws {
        let server = try Self.server { $0.name == "BAD" ? .text("?what\r\n") : nil }
        defer { server.stop() }
        let client = try await Self.connect(server)
        let error = await #expect(throws: LarderClientError.self) { try await client.command("BAD") }
        #expect(error?.code == .protocolViolation)
        #expect(try await client.command("ONE") == .integer(1))
        #expect(server.connectionCount == 2)
    }

    @Test func anUnexpectedReplyClosesTheConnection() async throws {
        let server = try Self.server { $0.name == "TWO" ? .text(":1\r\n:2\r\n") : nil }
        defer { server.stop() }
        let client = try await Self.connect(server)
        #expect(try await client.command("TWO") == .integer(1))
        server.waitForEnd(ofConnection: 0)
        #expect(try await client.command("ONE") == .integer(1))
        #expect(server.connectionCount == 2)
    }

    /// Every call gets either its own reply or an error, even if the connection is lost many times.
    @Test func tasksSurviveRepeatedConnectionLosses() async throws {
        let server = try Self.server { request in
            guard request.name == "ECHO", request.words[1].last == UInt8(ascii: "7") else { return nil }
            return .last(Array("$5\r\nab".utf8))
        }
        defer { server.stop() }
        let client = try await Self.connect(server)
        let lost = try await withThrowingTaskGroup(of: Int.self) { group in
            for task in 0..<10 {
                group.addTask {
                    var lost = 0
                    for step in 0..<30 {
                        let text = "\(task).\(step)"
                        do {
                            let reply = try await client.command("ECHO", text)
                            #expect(reply == .bulk(Array(text.utf8)))
                            #expect(!text.hasSuffix("7"))
                        } catch let error as LarderClientError {
                            #expect(error.code == .closed)
                            lost += 1
                        }
                    }
                    return lost
                }
            }
            return try await group.reduce(0, +)
        }
        #expect(lost >= 30)
        #expect(server.connectionCount > 1)
        #expect(try await client.command("ONE") == .integer(1))
    }

    @Test func callsWaitUntilTheDaemonHasRestarted() async throws {
        let directory = try TemporaryDirectory(inMemory: true)
        let path = directory.path + "/s"
        let first = try FakeServer(at: path) { $0.name == "ONE" ? .text(":1\r\n") : .standard }
        let client = try await LarderClient.connect(
            socketPath: path, options: .init(timeoutMilliseconds: 60_000, reconnectPatienceMilliseconds: 60_000))
        #expect(try await client.command("ONE") == .integer(1))
        first.stop()
        let waiting = Task { try await client.command("ONE") }
        let second = try FakeServer(at: path) { $0.name == "ONE" ? .text(":2\r\n") : .standard }
        defer { second.stop() }
        // The request may already have been sent on the first connection before that ended.
        do { #expect(try await waiting.value == .integer(2)) } catch let error as LarderClientError {
            #expect(error.code == .closed)
        }
        #expect(try await client.command("ONE") == .integer(2))
    }

    @Test("with a reconnect patience of 0, calls fail at once, and later calls reconnect")
    func withoutReconnectPatienceCallsFailAtOnce() async throws {
        let directory = try TemporaryDirectory(inMemory: true)
        let path = directory.path + "/s"
        let first = try FakeServer(at: path) { $0.name == "ONE" ? .text(":1\r\n") : .standard }
        let client = try await LarderClient.connect(socketPath: path, options: .init(reconnectPatienceMilliseconds: 0))
        first.stop()
        for _ in 0..<3 { await #expect(throws: LarderClientError.self) { try await client.command("ONE") } }
        let second = try FakeServer(at: path) { $0.name == "ONE" ? .text(":2\r\n") : .standard }
        defer { second.stop() }
        while true {
            // This call fails as long as the client backs off before it connects again.
            if let reply = try? await client.command("ONE") {
                #expect(reply == .integer(2))
                break
            }
            await Task.yield()
        }
    }

    @Test func theReconnectBackOffGrowsWithJitter() {
        #expect(Link.rest(afterFailures: 0, random: 0.5) == 0)
        #expect(Link.rest(afterFailures: 1, random: 0) == 10)
        #expect(Link.rest(afterFailures: 1, random: 0.999) == 6)
        #expect(Link.rest(afterFailures: 5, random: 0) == 160)
        for failures in [9, 63, 64, 10_000] {
            #expect(Link.rest(afterFailures: failures, random: 0) == Link.backOffMillisecondsMax)
            #expect(Link.rest(afterFailures: failures, random: 0.999) > Link.backOffMillisecondsMax / 2 - 1)
        }
    }

    // MARK: Ending

    @Test func closingAClientFailsAllWaitingCalls() async throws {
        let server = try Self.server()
        defer { server.stop() }
        let client = try await Self.connect(server)
        let waiting = (0..<5).map { _ in Task { try await client.command("HANG") } }
        while server.requests.count(where: { $0[0] == "HANG" }) < 5 { await Task.yield() }
        client.close()
        client.close()
        for task in waiting {
            let error = await #expect(throws: LarderClientError.self) { try await task.value }
            #expect(error?.code == .closed)
        }
        let error = await #expect(throws: LarderClientError.self) { try await client.command("ONE") }
        #expect(error?.message == "the client was closed")
        let other = await #expect(throws: LarderClientError.self) {
            try await client.cache("other", of: Int.self).value(forKey: "k")
        }
        #expect(other?.code == .closed)
        server.waitForEnd(ofConnection: 0)
    }

    @Test func aReleasedClientClosesItsConnection() async throws {
        let server = try Self.server()
        defer { server.stop() }
        do {
            let cache = try await Self.connect(server).cache(of: Int.self)
            // There is no other reference to the client: the cache keeps it connected.
            _ = try? await cache.value(forKey: "k")
            #expect(server.connectionCount == 1)
        }
        server.waitForEnd(ofConnection: 0)
    }
}
