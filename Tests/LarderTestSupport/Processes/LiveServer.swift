/// A server process for tests that run with several servers: redis-server, and larderd with one event loop and with
/// several. redis-server proves that a test requires only the behaviour of Redis.
// swift-format-ignore: AmbiguousTrailingClosureOverload
package enum LiveServer: String, CaseIterable, CustomStringConvertible, Sendable {
    case redis, larderd
    case larderdOnFourThreads = "larderd --threads 4"

    package var description: String { rawValue }

    /// Runs `body` with the path of a server's socket. There is also an asynchronous variant.
    package func run(_ body: (String) throws -> Void) throws {
        let server = try start()
        try body(server.socketPath)
        try server.stop()
    }

    package func run(_ body: (String) async throws -> Void) async throws {
        let server = try start()
        try await body(server.socketPath)
        try server.stop()
    }

    /// Starts a server, which runs as long as `stop` is retained.
    private func start() throws -> (socketPath: String, stop: () throws -> Void) {
        switch self {
        case .redis:
            let server = try RedisProcess()
            return (server.socketPath, { withExtendedLifetime(server) {} })
        case .larderd, .larderdOnFourThreads:
            // As in Redis, entries have no default lifetime.
            let daemon = try DaemonProcess(["--policy", "never"] + (self == .larderd ? [] : ["--threads", "4"]))
            return (daemon.socketPath, { try daemon.stop() })
        }
    }
}
