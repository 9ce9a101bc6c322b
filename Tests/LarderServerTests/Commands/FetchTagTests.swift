import LarderEngine
import Testing

@testable import LarderServer

/// Tests of FETCH together with purges of tags, with KEEPTTL and KEEPTAGS, and with limits.
@Suite struct FetchTagTests {
    @Test("a purge of a tag ends all cached absences", arguments: ["", " SOFT"])
    func aTagPurgeEndsCachedAbsences(_ soft: String) throws {
        let server = try SocketlessServer()
        let (one, two) = (server.connect(), server.connect())
        let missing = try #require(one.fetch("missing")?.token)
        #expect(one("RELEASE missing \(missing) ABSENT 60000") == Wire.ok)
        let failed = try #require(one.fetch("failed")?.token)
        #expect(one("RELEASE failed \(failed) FAILED 60000") == Wire.ok)
        #expect(two.fetch("missing")?.state == "absent")
        #expect(two("PURGE TAG article:17\(soft)") == Wire.ok)
        #expect(two.fetch("missing")?.state == "lead", "the key may exist now")
        #expect(two.fetch("failed")?.state == "failed", "the back-off continues")
    }

    @Test("a key found absent before a purge of a tag is not cached as absent")
    func anAbsenceFoundBeforeATagPurgeIsNotCached() throws {
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

    /// A SET with KEEPTTL refreshes a stale entry. The new lifetime has the same length as the previous one, but starts
    /// now, because the previous deadline has passed.
    @Test func aRefreshWithKEEPTTLKeepsLifetimeGraceAndTags() throws {
        let server = try SocketlessServer(policy: .low)
        let one = server.connect()
        func refresh(_ options: String) throws {
            let lead = try #require(one.fetch("k"))
            #expect(lead.state == "lead")
            #expect(one("SET k v TOKEN \(try #require(lead.token)) \(options)") == Wire.ok)
        }
        #expect(one("SET k v EX 100 GRACE 600 TAGS 1 t") == Wire.ok)
        for milliseconds in [Int64(130_000), 99_000] {
            server.time.advance(milliseconds: milliseconds)
            try refresh("KEEPTTL")
            #expect(one("TTL k") == Wire.int(100))
            #expect(one("TAGS k") == Wire.bulks("t"))
        }
        server.time.advance(milliseconds: 699_000)
        #expect(one.fetch("k")?.state == "lead", "the grace was kept")
        #expect(one("SET k v EX 100 GRACE 600 TAGS 1 t") == Wire.ok)
        server.time.advance(milliseconds: 100_000)
        let token = try #require(one.fetch("k")?.token)
        #expect(one("MSETEX 1 k w KEEPTTL TOKEN \(token)") == Wire.int(1))
        #expect(one("TTL k") == Wire.int(100))
        #expect(one("PURGE TAG t") == Wire.ok)
        #expect(one("EXISTS k") == Wire.int(0))
        // A key without an entry has no lifetime to keep.
        try refresh("KEEPTTL")
        #expect(one("TTL k") == Wire.int(86_400))
        #expect(one("TAGS k") == "*0\r\n")
    }

    @Test func setWithKEEPTAGSKeepsTheTags() throws {
        let server = try SocketlessServer()
        let one = server.connect()
        #expect(one("SET k 1 TAGS 1 t EX 50") == Wire.ok)
        #expect(one("SET k 2 EX 100 KEEPTAGS") == Wire.ok)
        #expect(one("SET k 3 EX 100 IFEQ 2 KEEPTAGS KEEPTAGS") == Wire.ok)
        #expect(one("MSETEX 2 k 4 new 4 EX 100 KEEPTAGS") == Wire.int(1))
        #expect(one("TAGS k") == Wire.bulks("t"))
        #expect(one("TAGS new") == "*0\r\n")
        #expect(one("TTL k") == Wire.int(100))
        for both in ["KEEPTAGS TAGS 1 u", "TAGS 1 u KEEPTAGS"] { #expect(one("SET k 5 \(both)") == Wire.syntaxError) }
        #expect(one("PURGE TAG t") == Wire.ok)
        #expect(one("MGET k new") == "*2\r\n" + Wire.null + Wire.bulk("4"))
        #expect(one("SET k 6 KEEPTAGS") == Wire.ok)
        #expect(one("TAGS k") == "*0\r\n")
    }

    @Test("PURGE TAG treats SOFT as a tag if another tag follows")
    func softIsATagIfAnotherTagFollows() throws {
        let server = try SocketlessServer()
        let one = server.connect()
        #expect(one("MSETEX 1 a 1 TAGS 1 SOFT GRACE 60 EX 50") == Wire.int(1))
        #expect(one("PURGE TAG SOFT front") == Wire.ok)
        #expect(one.fetch("a")?.value == nil, "the entry is removed, not stale")
    }

    @Test func bitopWithAnEmptyResultEndsTheLeaseOfItsTarget() throws {
        let server = try SocketlessServer()
        let (one, two) = (server.connect(), server.connect())
        let token = try #require(one.fetch("k")?.token)
        #expect(two("BITOP AND k nothing") == Wire.int(0))
        #expect(one("SET k older TOKEN \(token)") == Wire.null)
    }

    @Test("the number of leases of a connection is limited") func leasesOfAConnectionAreLimited() throws {
        var limits = Limits()
        limits.leasesMax = 3
        let server = try SocketlessServer(limits: limits)
        let (one, two) = (server.connect(), server.connect())
        func error(_ key: String) -> String {
            let limit = "this client has reached the limit of 3 leases (--max-leases); store values, or release leases"
            return Wire.error("ERR fetch, key '\(key)': \(limit)")
        }
        let token = try #require(one.fetch("a")?.token)
        #expect(one.fetch("b")?.state == "lead")
        #expect(one.fetch("c LEASE 1000")?.state == "lead", "a lease that outlives its connection counts too")
        #expect(one("FETCH d") == error("d"))
        #expect(one("FETCH d LEASE 1000") == error("d"))
        #expect(two.fetch("d")?.state == "lead")
        #expect(one("RELEASE a \(token)") == Wire.ok)
        #expect(one.fetch("a")?.state == "lead")
        server.time.advance(milliseconds: 1001)
        #expect(two.fetch("c")?.state == "lead", "the lease has expired")
        #expect(one.fetch("e")?.state == "lead")
        #expect(one("FETCH f") == error("f"))
        #expect(one("RESET") == "+RESET\r\n")
        let three = server.connect()
        for key in ["a", "b", "e"] { #expect(three.fetch(key)?.state == "lead", "\(key)") }
        #expect(one.fetch("f")?.state == "lead")
    }
}
