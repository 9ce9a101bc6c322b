import LarderEngine
import LarderTestSupport
import Testing

@testable import LarderServer

/// Tests of clients that cache data read from a database with an origin. They are notified of changes of every value
/// that they cache.
@Suite struct OriginTrackingTests {
    private struct Fixture {
        let origin = ScriptedOrigin()
        let server: SocketlessServer
        let reader: TestClient

        init(_ options: String = "") throws {
            server = try SocketlessServer(policy: .high, origin: origin)
            reader = server.connect()
            #expect(reader("ORIGIN redis://there") == Wire.ok)
            _ = reader("HELLO 3")
            #expect(reader("CLIENT TRACKING ON\(options)") == Wire.ok)
        }

        /// Returns the reader's reply to a line, with everything that follows it.
        func read(_ line: String) -> String {
            reader.feed(encodeRequest(line))
            // A command may wait for the origin more than once, so commit several times before the messages are
            // delivered.
            for _ in 0..<4 { server.commit() }
            return reader.takeSendable()
        }
    }

    private static func invalidation(_ key: String) -> String {
        ">2\r\n$10\r\ninvalidate\r\n*1\r\n" + Wire.bulk(key)
    }

    @Test(arguments: ["", " BCAST", " OPTOUT"]) func trackedKeysAreInvalidatedByOriginChanges(options: String) throws {
        let fixture = try Fixture(options)
        fixture.origin.change("a", to: "one", tells: false)
        for line in ["GET a", "GET a"] { #expect(fixture.read(line).hasSuffix(Wire.bulk("one"))) }
        fixture.origin.change("a", to: "two")
        fixture.server.deliver()
        #expect(fixture.reader.takeSendable() == Self.invalidation("a"))
        #expect(fixture.read("GET a").hasSuffix(Wire.bulk("two")))
    }

    /// A change during a request to the origin is reported before the reply, which has the older value. The change must
    /// be reported again after the reply, so that the client drops that value.
    @Test(arguments: ["", " BCAST"], [false, true])
    func changesDuringARequestAreReportedAfterTheReply(options: String, isKnownAgain: Bool) throws {
        let fixture = try Fixture(options)
        fixture.origin.change("a", to: "one", tells: false)
        fixture.origin.hold()
        #expect(fixture.reader("GET a") == "", "it waits")
        fixture.origin.change("a", to: "two")
        if isKnownAgain {
            // Another client's request gets its reply first.
            fixture.origin.letGo()
            #expect(fixture.server.connect()("GET a") == Wire.bulk("two"))
        }
        fixture.origin.answer()
        fixture.server.deliver()
        fixture.server.deliver()
        let all = fixture.reader.takeSendable()
        #expect(all.hasSuffix(Wire.bulk("one") + Self.invalidation("a")), "\(all)")
    }

    /// The key of a waiting command is also tracked when the command runs again.
    @Test func keysOfWaitingCommandsAreTracked() throws {
        let fixture = try Fixture(" OPTIN")
        fixture.origin.change("a", to: "one", tells: false)
        fixture.origin.hold()
        #expect(fixture.reader("CLIENT CACHING YES") == Wire.ok)
        #expect(fixture.reader("GET a") == "", "it waits")
        fixture.origin.change("b", to: "x")
        fixture.origin.change("a", to: "two")
        fixture.origin.answer()
        fixture.server.deliver()
        fixture.server.deliver()
        let all = fixture.reader.takeSendable()
        #expect(all.hasSuffix(Wire.bulk("one") + Self.invalidation("a")), "\(all)")
        // CLIENT CACHING YES applies to one command only.
        fixture.origin.letGo()
        #expect(fixture.read("GET b") == Wire.bulk("x"))
        fixture.origin.change("b", to: "y")
        fixture.server.deliver()
        #expect(fixture.reader.takeSendable() == "")
    }

    /// The client is notified at once, because the origin will not report later changes of the key.
    @Test func keysTheOriginDoesNotTrackAreInvalidatedAtOnce() throws {
        let fixture = try Fixture()
        fixture.origin.stopTracking()
        fixture.origin.change("a", to: "one", tells: false)
        for _ in 0..<2 { #expect(fixture.read("GET a") == Wire.bulk("one") + Self.invalidation("a")) }
    }

    @Test func keysReadByForwardedCommandsAreInvalidatedAtOnce() throws {
        let fixture = try Fixture()
        #expect(fixture.read("EVAL_RO text 1 a").hasSuffix(Wire.bulk("text") + Self.invalidation("a")))
        fixture.origin.setOtherType("l")
        #expect(fixture.read("TYPE l").hasSuffix(Wire.bulk("TYPE") + Self.invalidation("l")))
        fixture.origin.change("a", to: "one", tells: false)
        for line in ["MULTI", "GET a"] { _ = fixture.reader(line) }
        #expect(fixture.read("EXEC").hasSuffix(Wire.bulks("one") + Self.invalidation("a")))
    }

    /// A client is not notified of keys that it does not cache.
    @Test func clientsAreNotNotifiedOfKeysTheyDoNotCache() throws {
        let fixture = try Fixture(" OPTIN")
        fixture.origin.stopTracking()
        fixture.origin.change("a", to: "one", tells: false)
        #expect(fixture.read("GET a") == Wire.bulk("one"))
        let other = try Fixture(" BCAST PREFIX b")
        other.origin.stopTracking()
        other.origin.change("a", to: "one", tells: false)
        #expect(other.read("GET a") == Wire.bulk("one"))
    }
}
