import LarderEngine
import LarderOriginClients
import LarderTestSupport
import Testing

@testable import LarderServer

/// A server whose default database has an origin that the test controls.
struct OriginFixture {
    let origin: ScriptedOrigin
    let server: SocketlessServer
    let client: TestClient

    /// - Parameters:
    ///   - words: the words after the address in the command ORIGIN.
    ///   - hasGrace: whether stale entries may be served for another ten minutes. If so, the policy is `high`.
    init(
        _ words: String = "", policy: UpdatePolicy = .low, hasGrace: Bool = false, limits: Limits = Limits(),
        configure: (inout EngineOptions) -> Void = { _ in }
    ) throws {
        origin = ScriptedOrigin()
        server = try SocketlessServer(policy: policy, limits: limits, origin: origin, configure: configure)
        client = server.connect()
        if hasGrace { #expect(client("POLICY high GRACE 600") == Wire.ok) }
        #expect(client("ORIGIN redis://there" + (words.isEmpty ? "" : " " + words)) == Wire.ok)
        _ = origin.takeCommands()
    }

    /// Restarts the server of another fixture, with the same files and the same origin.
    init(after other: OriginFixture) throws {
        origin = other.origin
        other.server.state.origins.close()
        other.server.engine.shutdown()
        server = try SocketlessServer(reopening: other.server, origin: origin)
        client = server.connect()
        _ = origin.takeCommands()
    }
}
