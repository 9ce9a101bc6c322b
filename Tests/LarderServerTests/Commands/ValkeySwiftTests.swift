import LarderTestSupport
import Testing

@testable import LarderServer

/// Tests that valkey-swift can connect. The requests have the bytes and the order of its version 1.4.0
/// (`ValkeyChannelHandler.setConnected`), and the replies the types that it decodes.
@Suite struct ValkeySwiftTests {
    /// A request as valkey-swift encodes it: an array of bulk strings.
    private static func request(_ words: String...) -> String {
        "*\(words.count)\r\n" + words.map { Wire.bulk($0) }.joined()
    }

    private static let lines = [
        request("CLIENT", "SETINFO", "lib-name", "valkey-swift"), request("CLIENT", "SETINFO", "lib-ver", "1.4.0"),
    ]
    private static let database = request("SELECT", "5")
    private static let readOnly = request("READONLY")
    private static let redirects = request("CLIENT", "CAPA", "redirect")

    /// The options of ValkeyConnectionConfiguration, and the requests that valkey-swift sends because of them.
    static let handshakes: [(hello: [String], rest: [String])] = [
        (["HELLO", "3"], lines),
        (["HELLO", "3", "SETNAME", "web"], lines + [database]),
        (["HELLO", "3", "AUTH", "default", "secret", "SETNAME", "web"], lines + [database, readOnly, redirects]),
    ]

    @Test("the handshake of valkey-swift is accepted", arguments: handshakes)
    func theHandshakeIsAccepted(_ handshake: (hello: [String], rest: [String])) throws {
        let call = try SocketlessServer().connect()
        let hello = "*\(handshake.hello.count)\r\n" + handshake.hello.map { Wire.bulk($0) }.joined()
        // All requests are in one segment.
        call.feed(Array((hello + handshake.rest.joined()).utf8))
        let replies = call.takeSendable()
        #expect(replies.hasPrefix("%7\r\n" + Wire.bulk("server") + Wire.bulk("redis")), "\(replies)")
        let accepted = String(repeating: Wire.ok, count: handshake.rest.count)
        #expect(replies.hasSuffix(Wire.bulk("modules") + "*0\r\n" + accepted), "\(replies)")
        #expect(call("CLIENT INFO").contains(" lib-name=valkey-swift lib-ver=1.4.0"))
        if handshake.rest.count > 2 { #expect(call("CLIENT INFO").contains(" name=web ")) }
    }

    /// With `readOnlyCommandNodeSelection`, ValkeyClient asks for replicas at regular intervals. larderd has none.
    @Test func theRoleIsThatOfAPrimaryWithoutReplicas() throws {
        let call = try SocketlessServer().connect()
        _ = call("HELLO 3")
        call.feed(Array(Self.request("ROLE").utf8))
        #expect(call.takeSendable() == "*3\r\n" + Wire.bulk("master") + Wire.int(0) + "*0\r\n")
        call.feed(Array(Self.request("PING").utf8))
        #expect(call.takeSendable() == "+PONG\r\n")
    }

    /// The requests of Hummingbird's ValkeyPersistDriver: create, set, set with a lifetime, get, remove.
    @Test func theRequestsOfThePersistDriverAreAnswered() throws {
        let server = try SocketlessServer()
        let call = server.connect()
        _ = call("HELLO 3")
        func reply(_ request: String) -> String {
            call.feed(Array(request.utf8))
            server.commit()
            return call.takeSendable()
        }
        let created = Self.request("SET", "session", "{\"user\":1}", "NX", "PX", "3600000")
        #expect(reply(created) == Wire.ok)
        #expect(reply(created) == Wire.null3)
        #expect(reply(Self.request("SET", "session", "{\"user\":2}", "KEEPTTL")) == Wire.ok)
        #expect(call("TTL session") == Wire.int(3600))
        #expect(reply(Self.request("SET", "session", "{\"user\":3}", "PX", "60000")) == Wire.ok)
        #expect(call("TTL session") == Wire.int(60))
        #expect(reply(Self.request("GET", "session")) == Wire.bulk("{\"user\":3}"))
        #expect(reply(Self.request("DEL", "session")) == Wire.int(1))
        #expect(reply(Self.request("GET", "session")) == Wire.null3)
    }
}
