import LarderPlatform
import LarderRESP

/// A scripted server in this process. Listens in a directory of its own.
///
/// Every connection has a thread. It replies to `HELLO` and `SELECT` like the daemon, unless the test's handler
/// replies.
package final class FakeServer: Sendable {
    package struct Request: Sendable {
        package let words: [[UInt8]]
        /// The number of the connection, counted from 0.
        package let connection: Int

        package var name: String { words.first.map { String(decoding: $0, as: UTF8.self) } ?? "" }
        package var text: [String] { words.map { String(decoding: $0, as: UTF8.self) } }
    }

    package enum Answer: Sendable {
        case bytes([UInt8])
        /// Each byte is sent in a separate write.
        case drip([UInt8])
        /// The bytes, followed by the end of the connection.
        case last([UInt8])
        case nothing
        /// The daemon's reply to `HELLO` and `SELECT`; an error for everything else.
        case standard

        package static func text(_ text: String) -> Answer { .bytes(Array(text.utf8)) }
    }

    package let path: String
    private let directory: TemporaryDirectory
    private let handler: @Sendable (Request) -> Answer
    private let lock = Lock()
    private let changed = Condition()
    private let state: State
    private let listener: CInt
    /// A pipe that becomes readable when the threads must stop.
    private let stopPipe: (read: CInt, write: CInt)

    /// The state shared by the threads. `@unchecked Sendable`: guarded by `lock`.
    private final class State: @unchecked Sendable {
        var requests: [Request] = []
        var threads: [WorkThread] = []
        var connections = 0
        var ended: Set<Int> = []
        var isStopped = false
    }

    /// - Parameter place: the path to listen at, replacing an existing file; nil for a new one.
    package init(at place: String? = nil, _ handler: @escaping @Sendable (Request) -> Answer = { _ in .standard })
        throws
    {
        self.handler = handler
        directory = try TemporaryDirectory()
        let state = State()
        self.state = state
        path = place ?? directory.path + "/s"
        if let place { unlink(place) }
        let listener = try Self.listen(at: path)
        self.listener = listener
        var ends: [CInt] = [0, 0]
        guard pipe(&ends) == 0 else { throw SocketClient.failure("make a pipe", path) }
        stopPipe = (ends[0], ends[1])
        let accepting = WorkThread(name: "fake-accept") { [self] in acceptConnections() }
        lock.withLock { state.threads.append(accepting) }
    }

    /// The requests so far, in the order of arrival, without `HELLO`.
    package var requests: [[String]] {
        lock.withLock { state.requests.map(\.text).filter { $0.first != "HELLO" } }
    }

    /// The number of connections so far.
    package var connectionCount: Int { lock.withLock { state.connections } }

    /// Waits until the server has closed a connection. Connections are counted from 0.
    package func waitForEnd(ofConnection number: Int) {
        lock.withLock {
            while !state.ended.contains(number) { changed.wait(lock) }
        }
    }

    /// Closes all connections and waits for the threads. Call it at the end of every test.
    package func stop() {
        let wasStopped = lock.withLock {
            defer { state.isStopped = true }
            return state.isStopped
        }
        guard !wasStopped else { return }
        // Write a byte. Closing alone has no effect while a process that another test has just started has a copy of
        // this end.
        var byte: UInt8 = 1
        _ = write(stopPipe.write, &byte, 1)
        close(stopPipe.write)
        while let thread = lock.withLock({ state.threads.popLast() }) { thread.join() }
        close(listener)
        close(stopPipe.read)
    }

    // MARK: Threads

    private func acceptConnections() {
        while waitForInput(listener) {
            let descriptor = accept(listener, nil, nil)
            guard descriptor >= 0 else { continue }
            let number = lock.withLock {
                state.connections += 1
                return state.connections - 1
            }
            let thread = WorkThread(name: "fake-serve") { [self] in
                serve(descriptor, number)
                // Closing alone would not end the connection: a process that another test has just started may still
                // have a copy of the descriptor.
                shutdown(descriptor, CInt(SHUT_RDWR))
                close(descriptor)
                lock.withLock { _ = state.ended.insert(number) }
                changed.broadcast()
            }
            lock.withLock { state.threads.append(thread) }
        }
    }

    private func serve(_ descriptor: CInt, _ number: Int) {
        var parser = RequestParser()
        while waitForInput(descriptor) {
            let space = parser.writableSpace(atLeast: 65_536)
            let count = recv(descriptor, space.baseAddress, space.count, 0)
            guard count > 0 else { return }
            parser.didWrite(count)
            while (try? parser.next()) == true {
                let words = (0..<parser.argumentCount).map { Array(parser.argument($0)) }
                let request = Request(words: words, connection: number)
                lock.withLock { state.requests.append(request) }
                guard answer(request, descriptor) else { return }
            }
        }
    }

    /// Sends the answer. Returns false if the connection must end.
    private func answer(_ request: Request, _ descriptor: CInt) -> Bool {
        switch handler(request) {
        case .bytes(let bytes): return send(bytes, descriptor)
        case .drip(let bytes): return bytes.allSatisfy { send([$0], descriptor) }
        case .last(let bytes):
            _ = send(bytes, descriptor)
            return false
        case .nothing: return true
        case .standard: return send(Self.standardAnswer(to: request), descriptor)
        }
    }

    private static func standardAnswer(to request: Request) -> [UInt8] {
        switch request.name.uppercased() {
        case "HELLO": Array("%2\r\n+server\r\n+fake\r\n+proto\r\n:3\r\n".utf8)
        case "SELECT": Array("+OK\r\n".utf8)
        default: Array("-ERR unknown command\r\n".utf8)
        }
    }

    // MARK: System calls

    private func send(_ bytes: [UInt8], _ descriptor: CInt) -> Bool {
        var start = 0
        while start < bytes.count {
            let count = bytes.withUnsafeBytes { bytes in
                systemSend(descriptor, bytes.baseAddress.map { $0 + start }, bytes.count - start, noSignal)
            }
            guard count > 0 else { return false }
            start += count
        }
        return true
    }

    /// Waits until there is something to read. Returns false if the server was stopped.
    private func waitForInput(_ descriptor: CInt) -> Bool {
        var entries = [descriptor, stopPipe.read].map {
            pollfd(fd: $0, events: Int16(truncatingIfNeeded: POLLIN), revents: 0)
        }
        while poll(&entries, 2, -1) < 0 {}
        return entries[1].revents == 0
    }

    private static func listen(at path: String) throws -> CInt {
        let descriptor = UnixSocket.make()
        guard descriptor >= 0, UnixSocket.bind(descriptor, to: path) == 0, systemListen(descriptor, 16) == 0 else {
            throw SocketClient.failure("listen", path)
        }
        return descriptor
    }
}
