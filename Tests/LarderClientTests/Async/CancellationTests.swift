import Foundation
import LarderRESP
import LarderTestSupport
import Testing

@testable import LarderClient

/// Tests that a task that stops waiting, because of a cancellation or a timeout, does not affect other tasks.
@Suite(.timeLimit(.minutes(10))) struct CancellationTests {
    /// A server that does not answer `HANG`, and the requests after it, until the gate is opened.
    private static func server(_ gate: Gate) throws -> FakeServer {
        try AsyncClientTests.server { request in
            guard request.name == "HANG" else { return nil }
            gate.pass()
            return .text("+late\r\n")
        }
    }

    private func requested(_ server: FakeServer, _ name: String) async {
        while !server.requests.contains(where: { $0[0] == name }) { await Task.yield() }
    }

    @Test func repliesStayInOrderAfterACancelledCall() async throws {
        let gate = Gate(isClosed: true)
        let server = try Self.server(gate)
        defer { server.stop() }
        // Use a long time limit, so that the connection is not dropped even if other tests delay these tasks.
        let client = try await AsyncClientTests.connect(server, ClientOptions(timeoutMilliseconds: 600_000))
        let hanging = Task { try await client.command("HANG") }
        await requested(server, "HANG")
        hanging.cancel()
        let error = await #expect(throws: LarderClientError.self) { try await hanging.value }
        #expect(error?.code == .cancelled)
        // This request is sent after the cancelled HANG, and must not get the late reply to HANG.
        let behind = Task { try await client.command("ECHO", "mine") }
        gate.open()
        #expect(try await behind.value == .bulk(Array("mine".utf8)))
        #expect(server.connectionCount == 1)
    }

    @Test func anAlreadyCancelledTaskSendsNothing() async throws {
        let server = try AsyncClientTests.server()
        defer { server.stop() }
        let client = try await AsyncClientTests.connect(server)
        let gate = Gate(isClosed: true)
        let task = Task {
            while !gate.isOpen { await Task.yield() }
            return try await client.command("ONE")
        }
        task.cancel()
        gate.open()
        let error = await #expect(throws: LarderClientError.self) { try await task.value }
        #expect(error?.code == .cancelled)
        #expect(try await client.command("ECHO", "x") == .bulk([0x78]))
        #expect(!server.requests.contains { $0[0] == "ONE" })
    }

    /// A call that is cancelled before there is a connection is never sent.
    @Test func aCallThatWaitsForAConnectionCanBeCancelled() async throws {
        let directory = try TemporaryDirectory(inMemory: true)
        let path = directory.path + "/s"
        let first = try FakeServer(at: path) { _ in .standard }
        let client = try await LarderClient.connect(
            socketPath: path, options: .init(timeoutMilliseconds: 60_000, reconnectPatienceMilliseconds: 60_000))
        first.stop()
        let waiting = Task { try await client.command("NEVER") }
        // The call may or may not have begun to wait now. The result must be the same.
        await Task.yield()
        waiting.cancel()
        let error = await #expect(throws: LarderClientError.self) { try await waiting.value }
        #expect(error?.code == .cancelled || error?.code == .closed)
        let second = try FakeServer(at: path) { $0.name == "ONE" ? .text(":2\r\n") : .standard }
        defer { second.stop() }
        #expect(try await client.command("ONE") == .integer(2))
        #expect(!second.requests.contains { $0[0] == "NEVER" })
    }

    /// Tasks are cancelled at random times; the others must get their own replies.
    @Test func cancellationAtAnyTimeDoesNotAffectOtherCalls() async throws {
        let server = try AsyncClientTests.server()
        defer { server.stop() }
        let client = try await AsyncClientTests.connect(server)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for task in 0..<300 {
                group.addTask {
                    let text = "\(task)"
                    let call = Task { try await client.command("ECHO", text) }
                    for _ in 0..<(task % 13) { await Task.yield() }
                    if task.isMultiple(of: 2) { call.cancel() }
                    do {
                        let reply = try await call.value
                        #expect(reply == .bulk(Array(text.utf8)))
                    } catch let error as LarderClientError {
                        #expect(error.code == .cancelled && task.isMultiple(of: 2))
                    }
                }
            }
            try await group.waitForAll()
        }
        #expect(try await client.command("ECHO", "end") == .bulk(Array("end".utf8)))
        #expect(server.connectionCount == 1)
    }

    @Test func repliesStayInOrderAfterATimeout() async throws {
        // Let the server answer after 8 s: later than the time limit of 5 s, but long before the connection would be
        // dropped because of missing replies.
        let server = try AsyncClientTests.server { request in
            guard request.name == "HANG" else { return nil }
            Thread.sleep(forTimeInterval: 8)
            return .text("+late\r\n")
        }
        defer { server.stop() }
        let client = try await AsyncClientTests.connect(server, .init(timeoutMilliseconds: 5_000))
        let error = await #expect(throws: LarderClientError.self) { try await client.command("HANG") }
        #expect(error?.code == .timeout)
        #expect(error?.message == "the daemon at \(server.path) did not answer within 5000 ms")
        #expect(try await client.command("ECHO", "mine") == .bulk(Array("mine".utf8)))
        #expect(server.connectionCount == 1)
    }

    /// The connection to a silent server is dropped, and reads are repeated on the next one.
    @Test func aConnectionThatDoesNotReplyIsReplaced() async throws {
        let server = try AsyncClientTests.server { $0.connection == 0 && $0.name == "ECHO" ? .nothing : nil }
        defer { server.stop() }
        let client = try await AsyncClientTests.connect(server, .init(timeoutMilliseconds: 200))
        let error = await #expect(throws: LarderClientError.self) { try await client.command("ECHO", "a") }
        #expect(error?.code == .timeout)
        server.waitForEnd(ofConnection: 0)
        // On a busy machine, requests on the next connection may time out too.
        var reply: RESPValue?
        while reply == nil { reply = try? await client.command("ECHO", "b") }
        #expect(reply == .bulk([0x62]))
        #expect(server.connectionCount >= 2)
    }

    @Test func connectTimesOutIfTheServerDoesNotReply() async throws {
        let server = try FakeServer { _ in .nothing }
        defer { server.stop() }
        let error = await #expect(throws: LarderClientError.self) {
            try await AsyncClientTests.connect(server, .init(timeoutMilliseconds: 300))
        }
        #expect(error?.code == .timeout)
    }

    @Test func waitingForAnExclusiveConnectionCanBeCancelled() async throws {
        let server = try AsyncClientTests.server()
        defer { server.stop() }
        let client = try await AsyncClientTests.connect(server, .init(timeoutMilliseconds: 0, ownConnectionsMax: 1))
        try await client.withConnection { connection in
            let reply = try await connection.command("ECHO", "own")
            #expect(reply == .bulk(Array("own".utf8)))
            let second = Task { try await client.withConnection { try await $0.command("ONE") } }
            for _ in 0..<100 { await Task.yield() }
            second.cancel()
            let error = await #expect(throws: LarderClientError.self) { try await second.value }
            #expect(error?.code == .cancelled)
        }
        #expect(try await client.withConnection { try await $0.command("ONE") } == .integer(1))
    }

    @Test func anExclusiveConnectionIsClosedAfterItsUse() async throws {
        let server = try AsyncClientTests.server { $0.name == "BYE" ? .last([]) : nil }
        defer { server.stop() }
        let client = try await AsyncClientTests.connect(server)
        let kept = try await client.withConnection { $0 }
        let error = await #expect(throws: LarderClientError.self) { try await kept.command("ONE") }
        #expect(error?.code == .closed)
        try await client.withConnection { connection in
            await #expect(throws: LarderClientError.self) { try await connection.command("BYE") }
            // An exclusive connection is not replaced, because its state is lost.
            let lost = await #expect(throws: LarderClientError.self) { try await connection.command("ONE") }
            #expect(lost?.code == .closed)
        }
        for number in 1...2 { server.waitForEnd(ofConnection: number) }
    }
}
