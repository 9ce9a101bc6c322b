import LarderPlatform

/// A `redis-server` with its own socket, as a reference for replies or as an origin.
///
/// Thread-safe. `@unchecked Sendable`: the process is guarded by `lock`.
package final class RedisProcess: @unchecked Sendable {
    /// The installed server programs, including Valkey. If `LARDER_ORIGIN_SERVER` is set, that program only.
    package static let programs: [String] =
        TestSetting.originServer.text.map { [$0] } ?? ["redis-server", "valkey-server"].filter(isInPath)

    package let socketPath: String
    /// The TCP port on 127.0.0.1; 0 for none.
    package let port: Int
    private let directory: TemporaryDirectory
    private let command: [String]
    private let lock = Lock()
    private var process: ChildProcess
    private var frozen = false

    /// - Parameters:
    ///   - settings: additional options.
    ///   - port: the additional TCP port; 0 for none.
    ///   - program: the server's program; nil for the first of ``programs``, or for redis-server if the settings need
    ///     TLS, which the Valkey that `make valkey` installs does not have.
    package init(_ settings: [String] = [], port: Int = 0, program: String? = nil) throws {
        let known = settings.contains("--tls-port") ? nil : Self.programs.first
        let program = program ?? known ?? "redis-server"
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

    /// Whether the process is running and not frozen.
    package var isUp: Bool { lock.withLock { !frozen && !process.hasEnded() } }

    /// Sends SIGKILL, and waits until the process has ended.
    package func kill() {
        lock.withLock {
            process.killNow()
            frozen = false
        }
    }

    /// Sends SIGSTOP: the server accepts connections and requests, and does not reply, until ``thaw()``.
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

    /// Restarts the server after ``kill()``, at the same addresses and with the same files.
    /// - Parameter settings: additional options, for this start.
    package func restart(_ settings: [String] = []) throws {
        try lock.withLock {
            process.killNow()
            frozen = false
            unlink(socketPath)
            process = try ChildProcess(command[0], Array(command.dropFirst()) + settings)
        }
        try waitUntilListening()
    }

    /// Waits until the server listens, which takes some milliseconds.
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
