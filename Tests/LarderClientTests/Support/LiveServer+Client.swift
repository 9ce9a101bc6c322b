import LarderClient
import LarderTestSupport

extension LiveServer {
    /// Runs `body` with a client of the server.
    func run(_ options: ClientOptions = .init(), _ body: (LarderClient) async throws -> Void) async throws {
        try await run { try await body(try await LarderClient.connect(socketPath: $0, options: options)) }
    }
}
