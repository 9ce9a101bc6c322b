import LarderPlatform

/// A `redis-server` on a socket of its own, which replies are compared with, or which is an origin behind larders.
///
/// Thread-safe. The proof for `@unchecked Sendable`: the process is read and replaced with the lock held.
package final class RedisProcess: @unchecked Sendable {
    /// What such servers are called, Valkey among them, as far as they are installed. `LARDER_ORIGIN_SERVER` names one that
    /// takes the place of all.
    package static let programs: [String] =
        TestSetting.originServer.text.map { [$0] } ?? ["redis-server", "valkey-server"].filter(isInPath)

    package let socketPath: String
    /// Where it listens for TCP at 127.0.0.1; 0: nowhere.
    package let port: Int
    private let directory: TemporaryDirectory
    private let command: [String]
    private let lock = Lock()
    private var process: ChildProcess
    private var frozen = false

    /// - Parameters:
    ///   - settings: more words of its command line.
    ///   - port: where it listens for TCP besides; 0: nowhere.
    ///   - program: the server's program; nil: the first of ``programs``.
    package init(_ settings: [String] = [], port: Int = 0, program: String? = nil) throws {
        let program = program ?? Self.programs.first ?? "redis-server"
        directory = try TemporaryDirectory(inMemory: true)
        socketPath = directory.path + "/redis"
        self.port = port
        command =
            [
                program, "--port", "\(port)", "--bind", "127.0.0.1", "--unixsocket", socketPath, "--save", "",
                "--appendonly", "no", "--dir", directory.path,
            ] + settings
        do {
            process = try ChildProcess(program, Array(command.dropFirst()))
        } catch {
            throw ChildProcess.Failure(
                description: "\(error): this test compares with redis-server 7.0; `make test` installs it")
        }
        try waitUntilListening()
    }

    deinit { process.killNow() }

    package func connect() throws -> SocketClient { try SocketClient(socketPath) }

    /// The process runs and is not frozen.
    package var isUp: Bool { lock.withLock { !frozen && !process.hasEnded() } }

    /// SIGKILL, and waits for the end.
    package func kill() {
        lock.withLock {
            process.killNow()
            frozen = false
        }
    }

    /// SIGSTOP: it takes connections and requests, and says nothing, until ``thaw()``.
    package func freeze() {
        lock.withLock {
            process.send(signal: SIGSTOP)
            frozen = true
        }
    }

    package func thaw() {
        lock.withLock {
            process.send(signal: SIGCONT)
            frozen = false
        }
    }

    /// Starts it again after ``kill()``, at the same places and with the same files.
    /// - Parameter settings: more words of its command line, this time.
    package func restart(_ settings: [String] = []) throws {
        try lock.withLock {
            process.killNow()
            frozen = false
            unlink(socketPath)
            process = try ChildProcess(command[0], Array(command.dropFirst()) + settings)
        }
        try waitUntilListening()
    }

    /// It answers once it listens, which takes some milliseconds.
    private func waitUntilListening() throws {
        let started = lock.withLock { process }
        while (try? SocketClient(socketPath)) == nil {
            guard !started.hasEnded() else {
                throw ChildProcess.Failure(description: "\(command[0]) ended: \(started.output)\(started.errors)")
            }
            WorkThread.sleep(nanoseconds: 100_000)
        }
    }

    private static func isInPath(_ program: String) -> Bool {
        let path = getenv("PATH").map { String(cString: $0) } ?? ""
        return path.split(separator: ":").contains { access("\($0)/\(program)", X_OK) == 0 }
    }
}
