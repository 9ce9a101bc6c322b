import LarderClient
import TestSupport
import Testing

/// A server as a process, which tests of the asynchronous client run with: the daemon itself, and redis-server, whose
/// protocol is the same.
enum LiveServer: String, CaseIterable, CustomTestStringConvertible, Sendable {
    case redis, larderd
    /// With several event loops.
    case larderdOnFourThreads = "larderd --threads 4"

    var testDescription: String { rawValue }

    /// Runs `body` with the path of a server's socket.
    func run(_ body: (String) async throws -> Void) async throws {
        switch self {
        case .redis:
            let process = try RedisProcess()
            try await body(process.socketPath)
            withExtendedLifetime(process) {}
        case .larderd, .larderdOnFourThreads:
            let process = try DaemonProcess(self == .larderd ? [] : ["--threads", "4"])
            try await body(process.socketPath)
            try process.stop()
        }
    }

    func run(_ options: ClientOptions = .init(), _ body: (LarderClient) async throws -> Void) async throws {
        try await run { try await body(try await LarderClient.connect(socketPath: $0, options: options)) }
    }
}
