import LarderEngine
import Testing

@testable import LarderServer

/// Fetching, and what purges of tags, kept lives and limits mean for it.
@Suite struct FetchTagTests {
    @Test(arguments: ["", " SOFT"]) func aPurgeOfATagEndsRememberedAbsences(_ soft: String) throws {
        let server = try SocketlessServer()
        let (one, two) = (server.connect(), server.connect())
        let missing = try #require(one.fetch("missing")?.token)
        #expect(one("RELEASE missing \(missing) ABSENT 60000") == Wire.ok)
        let failed = try #require(one.fetch("failed")?.token)
        #expect(one("RELEASE failed \(failed) FAILED 60000") == Wire.ok)
        #expect(two.fetch("missing")?.state == "absent")
        #expect(two("PURGE TAG article:17\(soft)") == Wire.ok)
        #expect(two.fetch("missing")?.state == "lead", "it may be there now")
        #expect(two.fetch("failed")?.state == "failed", "the origin rests all the same")
    }

    @Test func anAbsenceFromBeforeAPurgeOfATagIsNotRemembered() throws {
        let server = try SocketlessServer()
        let (one, two) = (server.connect(), server.connect())
        #expect(two("SET stored old PX 1 GRACE 60") == Wire.ok)
        server.time.advance(milliseconds: 2)
        for key in ["missing", "stored"] {
            let token = try #require(one.fetch(key)?.token)
            #expect(two("PURGE TAG article:17") == Wire.ok)
            #expect(one("RELEASE \(key) \(token) ABSENT 60000") == Wire.null)
            let next = try #require(two.fetch(key))
            #expect(next.state == "lead" && next.value == (key == "stored" ? "old" : nil))
            #expect(two("RELEASE \(key) \(try #require(next.token)) ABSENT 60000") == Wire.ok)
            #expect(one.fetch(key)?.state == "absent")
        }
    }
}
