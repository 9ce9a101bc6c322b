import LarderPlatform
import LarderRESP
import LarderTestSupport
import Testing

@testable import LarderClient

/// Tests of requests and replies on the socket: raw commands, pipelines, failures of the connection.
@Suite struct WireTests {
    @Test func commandSendsAnArrayAndReturnsTheReply() throws {
        let server = try FakeServer { request in
            request.name == "ECHO" ? .bytes(Array("$1\r\n".utf8) + request.words[1] + [13, 10]) : .standard
        }
        defer { server.stop() }
        let client = try BlockingLarderClient(socketPath: server.path)
        #expect(try client.command("ECHO", "a") == .bulk([0x61]))
        #expect(try client.command(["ECHO", "b"]) == .bulk([0x62]))
        #expect(try client.command(bytes: [Array("ECHO".utf8), [0xFF]]) == .bulk([0xFF]))
        #expect(server.requests.count == 3)
        #expect(client.socketPath == server.path)
    }

    @Test func rawCommandsReturnServerErrors() throws {
        let server = try FakeServer()
        defer { server.stop() }
        let client = try BlockingLarderClient(socketPath: server.path)
        #expect(try client.command("NOSUCH") == .error("ERR unknown command"))
        #expect(throws: LarderClientError.self) { try client.ping() }
    }

    @Test func typedCallsThrowServerErrorsWithTheirText() throws {
        let server = try FakeServer { $0.name == "GET" ? .text("-WRONGTYPE not so\r\n") : .standard }
        defer { server.stop() }
        let client = try BlockingLarderClient(socketPath: server.path)
        let error = #expect(throws: LarderClientError.self) { try client.bytes(forKey: "k") }
        #expect(error?.code == .server)
        #expect(error?.serverText == "WRONGTYPE not so")
        #expect(error?.operation == "GET")
        #expect(error?.key == "k")
        #expect(error?.description == "GET in database '0', key 'k': WRONGTYPE not so")
    }

    @Test func emptyCommandsAreRefusedWithoutARequest() throws {
        let server = try FakeServer()
        defer { server.stop() }
        let client = try BlockingLarderClient(socketPath: server.path)
        for words in [[], [""]] as [[String]] {
            let error = #expect(throws: LarderClientError.self) { try client.command(words) }
            #expect(error?.code == .invalidArgument)
        }
        #expect(try client.pipeline([]) == [])
        #expect(throws: LarderClientError.self) { try client.pipeline([[Array("PING".utf8)], []]) }
        #expect(server.requests.isEmpty)
    }

    @Test func pipelinesReturnRepliesAndErrorsInOrder() throws {
        let server = try FakeServer { request in
            switch request.name {
            case "ONE": .text(":1\r\n")
            case "BAD": .text("-ERR bad\r\n")
            default: .standard
            }
        }
        defer { server.stop() }
        let client = try BlockingLarderClient(socketPath: server.path)
        let replies = try client.pipeline(["ONE", "BAD", "ONE"].map { [Array($0.utf8)] })
        #expect(replies == [.integer(1), .error("ERR bad"), .integer(1)])
    }

    /// Requests and replies fill the socket buffers of both sides. A client that sent everything first would hang.
    @Test func pipelinesLargerThanTheSocketBuffersDoNotBlock() throws {
        let server = try FakeServer { request in
            guard request.name == "ECHO" else { return .standard }
            return .bytes(Array("$\(request.words[1].count)\r\n".utf8) + request.words[1] + [13, 10])
        }
        defer { server.stop() }
        let client = try BlockingLarderClient(socketPath: server.path)
        let values = (0..<400).map { [UInt8](repeating: UInt8($0 % 100), count: 20_000) }
        let replies = try client.pipeline(values.map { [Array("ECHO".utf8), $0] })
        #expect(replies == values.map { .bulk($0) })
        #expect(try client.command("ECHO", "x") == .bulk([0x78]))
    }

    @Test func repliesThatArriveByteByByteAreRead() throws {
        let server = try FakeServer { request in
            request.name == "LIST"
                ? .drip(Array("%1\r\n+a\r\n*3\r\n:1\r\n$2\r\nxy\r\n_\r\n".utf8)) : .standard
        }
        defer { server.stop() }
        let client = try BlockingLarderClient(socketPath: server.path)
        let expected = RESPValue.map([
            .init(key: .simpleString("a"), value: .array([.integer(1), .bulk([0x78, 0x79]), .null]))
        ])
        #expect(try client.command("LIST") == expected)
    }

    @Test func aBlockingClientIgnoresPushMessages() throws {
        let server = try FakeServer {
            $0.name == "ONE" ? .text(">1\r\n+before\r\n:1\r\n>1\r\n+after\r\n") : .standard
        }
        defer { server.stop() }
        let client = try BlockingLarderClient(socketPath: server.path)
        #expect(try client.command("ONE") == .integer(1))
        #expect(try client.command("ONE") == .integer(1))
    }

    @Test func unexpectedRepliesAreProtocolViolations() throws {
        let server = try FakeServer { $0.name == "ONE" ? .text(":1\r\n:2\r\n") : .standard }
        defer { server.stop() }
        let client = try BlockingLarderClient(socketPath: server.path)
        #expect(try client.command("ONE") == .integer(1))
        let error = #expect(throws: LarderClientError.self) { try client.command("ONE") }
        #expect(error?.code == .protocolViolation)
        #expect(try client.command("ONE") == .integer(1))
        #expect(server.connectionCount == 2)
    }

    @Test(arguments: ["?what\r\n", "$-7\r\n", "$3\r\nabcde", "*99999999999\r\n", ":12x\r\n", "HTTP/1.1 400 Bad\r\n"])
    func malformedRepliesAreProtocolViolations(answer: String) throws {
        let server = try FakeServer { $0.name == "ONE" ? .text(answer) : .standard }
        defer { server.stop() }
        let client = try BlockingLarderClient(socketPath: server.path)
        let error = #expect(throws: LarderClientError.self) { try client.command("ONE") }
        #expect(error?.code == .protocolViolation)
        #expect(error?.socketPath == server.path)
    }

    @Test func aLargeReplyArrivesCompletely() throws {
        let value = [UInt8](repeating: 7, count: 5_000_000)
        let server = try FakeServer { request in
            request.name == "GET" ? .bytes(Array("$5000000\r\n".utf8) + value + [13, 10]) : .standard
        }
        defer { server.stop() }
        let client = try BlockingLarderClient(socketPath: server.path)
        #expect(try client.bytes(forKey: "k") == value)
        #expect(try client.bytes(forKey: "k") == value)
    }

    @Test func threadsCanShareABlockingClient() throws {
        let server = try FakeServer { request in
            request.name == "ECHO"
                ? .bytes(Array("$\(request.words[1].count)\r\n".utf8) + request.words[1] + [13, 10]) : .standard
        }
        defer { server.stop() }
        let client = try BlockingLarderClient(socketPath: server.path)
        let lock = Lock()
        nonisolated(unsafe) var wrong = 0
        let threads = (0..<6).map { thread in
            WorkThread(name: "client-\(thread)") {
                for number in 0..<200 {
                    let text = "\(thread).\(number)"
                    let reply = try? client.command("ECHO", text)
                    if reply?.string != text { lock.withLock { wrong += 1 } }
                }
            }
        }
        for thread in threads { thread.join() }
        #expect(wrong == 0)
        #expect(server.connectionCount == 1)
    }
}
