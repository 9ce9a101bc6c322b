import LarderPlatform
import LarderRESP
import LarderTestSupport
import Testing

@testable import LarderClient

/// Tests of a missing, exiting or silent daemon, and of the state that the client restores on a new connection.
@Suite struct ConnectionLossTests {
    /// Answers `ONE` with 1 and closes the connection on `BYE`.
    private static func server() throws -> FakeServer {
        try FakeServer { request in
            switch request.name {
            case "ONE": .text(":1\r\n")
            case "BYE": .last(Array("+OK\r\n".utf8))
            case "DIE": .last([])
            case "HALF": .last(Array("$10\r\nabc".utf8))
            case "HANG": .nothing
            case "SNAPSHOT": .text("+OK\r\n")
            default: .standard
            }
        }
    }

    @Test func theErrorForAMissingDaemonSaysHowToStartOne() throws {
        let directory = try TemporaryDirectory(inMemory: true)
        let path = directory.path + "/none"
        let error = #expect(throws: LarderClientError.self) { try BlockingLarderClient(socketPath: path) }
        #expect(error?.code == .noDaemon)
        #expect(error?.socketPath == path)
        #expect(error?.message == "no daemon answers at \(path): start one with: larderd --socket \(path)")
    }

    @Test func aSocketLeftByADeadDaemonIsReportedAsNoDaemon() throws {
        let server = try FakeServer()
        server.stop()
        let error = #expect(throws: LarderClientError.self) { try BlockingLarderClient(socketPath: server.path) }
        #expect(error?.code == .noDaemon)
    }

    @Test func aFileThatIsNotASocketIsReportedAsNoDaemon() throws {
        let directory = try TemporaryDirectory(inMemory: true)
        let path = try directory.makeFile("file", [1])
        let error = #expect(throws: LarderClientError.self) { try BlockingLarderClient(socketPath: path) }
        #expect(error?.code == .noDaemon)
        let below = #expect(throws: LarderClientError.self) { try BlockingLarderClient(socketPath: path + "/socket") }
        #expect(below?.code == .noDaemon)
    }

    @Test func invalidSocketPathsAndTimeoutsAreRefused() throws {
        for path in ["", "a\0b", "/" + String(repeating: "x", count: LarderClient.socketPathBytesMax)] {
            let error = #expect(throws: LarderClientError.self) { try BlockingLarderClient(socketPath: path) }
            #expect(error?.code == .invalidArgument)
        }
        for time in [-1, ClientOptions.timeoutMillisecondsMax + 1, Int.max, Int.min] {
            let error = #expect(throws: LarderClientError.self) {
                try BlockingLarderClient(socketPath: "/none", timeoutMilliseconds: time)
            }
            #expect(error?.code == .invalidArgument)
        }
    }

    @Test func aSocketPathOfTheMaximumLengthWorks() throws {
        let server = try FakeServer { $0.name == "PING" ? .text("+PONG\r\n") : .standard }
        defer { server.stop() }
        // Fill the path with slashes up to the maximum length. It still leads to the same socket.
        let missing = LarderClient.socketPathBytesMax - server.path.utf8.count
        let filler = String(repeating: "/", count: missing)
        let client = try BlockingLarderClient(socketPath: filler + server.path)
        #expect(client.socketPath.utf8.count == LarderClient.socketPathBytesMax)
        try client.ping()
    }

    /// The daemon may be restarted between two calls. Nothing was lost then, so no error is needed. (This also tests
    /// that writing to the closed socket does not kill this process by SIGPIPE.)
    @Test func aConnectionLostBetweenCallsIsReplaced() throws {
        let server = try Self.server()
        defer { server.stop() }
        let client = try BlockingLarderClient(socketPath: server.path, database: "books")
        #expect(try client.command("BYE") == .simpleString("OK"))
        server.waitForEnd(ofConnection: 0)
        #expect(try client.command("ONE") == .integer(1))
        #expect(server.requests == [["SELECT", "books"], ["BYE"], ["SELECT", "books"], ["ONE"]])
    }

    @Test("a database that was selected with SELECT is selected again after a reconnection")
    func aDatabaseSelectedWithSELECTIsSelectedAgain() throws {
        let server = try Self.server()
        defer { server.stop() }
        let client = try BlockingLarderClient(socketPath: server.path)
        try client.command("select", "one")
        try client.select("two")
        try client.command("BYE")
        server.waitForEnd(ofConnection: 0)
        try client.command("ONE")
        #expect(server.requests.suffix(2) == [["SELECT", "two"], ["ONE"]])
    }

    /// A SELECT in a transaction takes effect when EXEC has executed the transaction, and not before.
    @Test func aSELECTInATransactionTakesEffectAtEXEC() throws {
        let server = try FakeServer { request in
            switch request.name {
            case "MULTI", "DISCARD": .text("+OK\r\n")
            case "EXEC": .text("*2\r\n+OK\r\n-ERR invalid database name\r\n")
            case "SELECT": request.text[1].hasPrefix("q") ? .text("+QUEUED\r\n") : .standard
            case "BYE": .last(Array("+OK\r\n".utf8))
            default: .standard
            }
        }
        defer { server.stop() }
        let client = try BlockingLarderClient(socketPath: server.path, database: "one")
        func run(_ words: String...) throws { _ = try client.pipeline([words.map { Array($0.utf8) }]) }
        try run("MULTI")
        try run("SELECT", "q1")
        #expect(client.name == "one")
        try run("DISCARD")
        #expect(client.name == "one")
        try run("MULTI")
        try run("SELECT", "q2")
        try run("SELECT", "q3")
        try run("EXEC")
        #expect(client.name == "q2", "the second one was refused")
    }

    /// A new connection has no snapshot. Without an error, the next read would silently see newer data.
    @Test func losingAConnectionWithASnapshotIsAnError() throws {
        let server = try Self.server()
        defer { server.stop() }
        let client = try BlockingLarderClient(socketPath: server.path)
        try client.command("SNAPSHOT", "OPEN")
        try client.command("BYE")
        server.waitForEnd(ofConnection: 0)
        let error = #expect(throws: LarderClientError.self) { try client.command("ONE") }
        #expect(error?.code == .closed)
        #expect(server.connectionCount == 1)
        #expect(try client.command("ONE") == .integer(1))
    }

    @Test(arguments: ["DIE", "HALF"])
    func aLostReplyIsAnErrorAndTheRequestIsNotRepeated(command: String) throws {
        let server = try Self.server()
        defer { server.stop() }
        let client = try BlockingLarderClient(socketPath: server.path)
        let error = #expect(throws: LarderClientError.self) { try client.command(command) }
        #expect(error?.code == .closed)
        #expect(error?.message.contains("unknown") == true)
        #expect(server.requests == [[command]])
        #expect(try client.command("ONE") == .integer(1))
        #expect(server.connectionCount == 2)
    }

    @Test func aLateReplyAfterATimeoutIsNotMistakenForAnother() throws {
        let server = try Self.server()
        defer { server.stop() }
        let client = try BlockingLarderClient(socketPath: server.path, timeoutMilliseconds: 1_000)
        let error = #expect(throws: LarderClientError.self) { try client.command("HANG") }
        #expect(error?.code == .timeout)
        #expect(error?.message == "the daemon at \(server.path) did not answer within 1000 ms")
        #expect(try client.command("ONE") == .integer(1))
        #expect(server.connectionCount == 2)
    }

    @Test func aCallToAServerThatDoesNotReadTimesOut() throws {
        let gate = Gate(isClosed: true)
        let server = try FakeServer { request in
            guard request.name == "HANG" else { return .standard }
            gate.pass()
            return .nothing
        }
        defer {
            gate.open()
            server.stop()
        }
        let client = try BlockingLarderClient(socketPath: server.path, timeoutMilliseconds: 1_000)
        let error = #expect(throws: LarderClientError.self) {
            try client.pipeline((0..<50).map { _ in [Array("HANG".utf8), [UInt8](repeating: 0, count: 100_000)] })
        }
        #expect(error?.code == .timeout)
    }

    @Test func callsOfAClosedClientThrowClosed() throws {
        let server = try Self.server()
        defer { server.stop() }
        let client = try BlockingLarderClient(socketPath: server.path)
        client.close()
        client.close()
        let error = #expect(throws: LarderClientError.self) { try client.command("ONE") }
        #expect(error?.code == .closed)
        #expect(error?.message == "the client was closed")
        server.waitForEnd(ofConnection: 0)
    }

    /// Waits until the server notices that the connection has ended.
    @Test func aReleasedClientClosesItsConnection() throws {
        let server = try Self.server()
        defer { server.stop() }
        do {
            let client = try BlockingLarderClient(socketPath: server.path)
            try client.command("ONE")
        }
        server.waitForEnd(ofConnection: 0)
    }

    @Test func aServerThatSupportsOnlyRESP2CanBeUsed() throws {
        let server = try FakeServer { request in
            switch request.name {
            case "HELLO": .text("-ERR unknown command 'HELLO'\r\n")
            case "GET": .text("$-1\r\n")
            default: .standard
            }
        }
        defer { server.stop() }
        let client = try BlockingLarderClient(socketPath: server.path)
        #expect(try client.bytes(forKey: "k") == nil)
    }

    @Test func theReasonOfARefusedConnectionIsReported() throws {
        let server = try FakeServer { _ in .last(Array("-ERR max number of clients reached\r\n".utf8)) }
        defer { server.stop() }
        let error = #expect(throws: LarderClientError.self) { try BlockingLarderClient(socketPath: server.path) }
        #expect(error?.code == .server)
        #expect(error?.serverText == "ERR max number of clients reached")
    }

    @Test func connectThrowsIfTheDatabaseCannotBeSelected() throws {
        let server = try FakeServer { $0.name == "SELECT" ? .text("-ERR invalid database name\r\n") : .standard }
        defer { server.stop() }
        let error = #expect(throws: LarderClientError.self) {
            try BlockingLarderClient(socketPath: server.path, database: "Bad Name")
        }
        #expect(error?.code == .server)
        #expect(error?.operation == "SELECT")
        let client = try BlockingLarderClient(socketPath: server.path)
        #expect(throws: LarderClientError.self) { try client.select("Bad Name") }
    }
}

/// Tests of signals that interrupt a waiting client. Serialized, because a process has one handler for a signal.
@Suite(.serialized) struct SignalTests {
    /// Sends a thread a signal that interrupts system calls, over and over, while `isWanted` returns true.
    private static func disturb(_ thread: pthread_t, while isWanted: @escaping @Sendable () -> Bool) -> WorkThread {
        var action = sigaction()
        #if canImport(Darwin)
            action.__sigaction_u.__sa_handler = { _ in }
        #else
            action.__sigaction_handler.sa_handler = { _ in }
        #endif
        sigaction(SIGUSR2, &action, nil)
        let thread = SignalledThread(handle: thread)
        return WorkThread(name: "signals") {
            while isWanted() {
                pthread_kill(thread.handle, SIGUSR2)
                // Wait 1 ms, so that the thread gets into its next system call.
                poll(nil, 0, 1)
            }
        }
    }

    @Test func aSignalDuringACallDoesNotTruncateTheReply() throws {
        let gate = Gate(isClosed: true)
        let server = try FakeServer { request in
            guard request.name == "ONE" else { return .standard }
            // Answer only after the signals have been sent.
            gate.pass()
            return .text(":1\r\n")
        }
        defer { server.stop() }
        let client = try BlockingLarderClient(socketPath: server.path)
        nonisolated(unsafe) var signalsLeft = 30
        let signals = Self.disturb(pthread_self()) {
            signalsLeft -= 1
            if signalsLeft == 0 { gate.open() }
            return signalsLeft > 0
        }
        #expect(try client.command("ONE") == .integer(1))
        signals.join()
    }

    /// A periodic signal must not restart the wait each time.
    @Test func signalsDoNotPostponeATimeout() throws {
        let isOver = Gate(isClosed: true)
        let server = try FakeServer { $0.name == "ONE" ? .nothing : .standard }
        defer { server.stop() }
        let client = try BlockingLarderClient(socketPath: server.path, timeoutMilliseconds: 1_000)
        let signals = Self.disturb(pthread_self()) { !isOver.isOpen }
        let error = #expect(throws: LarderClientError.self) { try client.command("ONE") }
        isOver.open()
        signals.join()
        #expect(error?.code == .timeout)
    }
}

/// Makes `pthread_t` Sendable: it is a pointer on Darwin, but any thread may use it. The thread must not end before the
/// last signal was sent.
private struct SignalledThread: @unchecked Sendable {
    let handle: pthread_t
}
