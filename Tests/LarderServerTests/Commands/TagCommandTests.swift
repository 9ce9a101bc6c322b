import LarderEngine
import Testing

@testable import LarderServer

@Suite struct TagCommandTests {
    @Test func aTagPurgeRemovesEveryEntryWithTheTag() throws {
        let server = try SocketlessServer()
        let (one, two) = (server.connect(), server.connect())
        #expect(one("SET page:1 a TAGS 2 article:17 front") == Wire.ok)
        #expect(one("SET page:2 b TAGS 1 article:17 EX 50") == Wire.ok)
        #expect(one("MSETEX 2 page:3 c page:4 d TAGS 1 front EX 100") == Wire.int(1))
        #expect(one("SET page:5 e") == Wire.ok)
        #expect(two("TAGS page:1") == Wire.bulks("article:17", "front"))
        #expect(two("TAGS page:5") == "*0\r\n")
        #expect(two("TAGS nothing") == Wire.null)
        #expect(two("PURGE TAG article:17") == Wire.ok)
        #expect(
            two("MGET page:1 page:2 page:3 page:4 page:5") == "*5\r\n" + Wire.null + Wire.null
                + Wire.bulk("c") + Wire.bulk("d") + Wire.bulk("e"))
        for key in ["page:1", "page:2"] {
            #expect(one("GET \(key)") == Wire.null)
            #expect(one("EXISTS \(key)") == Wire.int(0))
            #expect(one("TTL \(key)") == Wire.int(-2))
            #expect(one("META \(key)") == Wire.null)
            #expect(one("APPEND \(key) x") == Wire.int(1), "a new entry")
            #expect(one("TAGS \(key)") == "*0\r\n")
            #expect(one("DEL \(key)") == Wire.int(1))
        }
        #expect(one("APPEND page:3 x") == Wire.int(2))
        #expect(one("RENAME page:3 renamed") == Wire.ok)
        #expect(one("TAGS renamed") == Wire.bulks("front"))
        #expect(one("PURGE TAG front other") == Wire.ok)
        #expect(one("KEYS *") == Wire.bulks("page:5"))
        #expect(one("SET page:1 again TAGS 1 front") == Wire.ok)
        #expect(one("GET page:1") == Wire.bulk("again"))
    }

    /// An entry that keeps its lifetime keeps its tags too: it should still be invalidated with its source data.
    @Test("KEEPTTL keeps the tags too, unless new tags are given") func keepttlKeepsTheTags() throws {
        let server = try SocketlessServer()
        let one = server.connect()
        #expect(one("MSETEX 3 a 1 b 1 c 1 TAGS 1 t GRACE 60 EX 100") == Wire.int(1))
        #expect(one("SET a 2 KEEPTTL") == Wire.ok)
        #expect(one("SET a 3 KEEPTTL IFEQ 2") == Wire.ok)
        #expect(one("MSETEX 2 b 2 new 2 KEEPTTL") == Wire.int(1))
        #expect(one("SET c 2 KEEPTTL TAGS 1 other") == Wire.ok)
        #expect(one("TAGS a") == Wire.bulks("t"))
        #expect(one("TAGS b") == Wire.bulks("t"))
        #expect(one("TAGS new") == "*0\r\n")
        #expect(one("TAGS c") == Wire.bulks("other"))
        #expect(one("SET a 4 EX 100") == Wire.ok)
        #expect(one("TAGS a") == "*0\r\n")
        #expect(one("PURGE TAG t") == Wire.ok)
        #expect(one("MGET a b c") == "*3\r\n" + Wire.bulk("4") + Wire.null + Wire.bulk("2"))
        // A key without an entry has no lifetime to keep.
        #expect(one("SET b 3 KEEPTTL") == Wire.ok)
        #expect(one("TAGS b") == "*0\r\n")
    }

    @Test("a snapshot has the tags from the time when it was opened") func aSnapshotHasItsTags() throws {
        let server = try SocketlessServer()
        let (one, two) = (server.connect(), server.connect())
        #expect(one("SET k v TAGS 1 t") == Wire.ok)
        #expect(one("SNAPSHOT OPEN") == Wire.ok)
        #expect(two("SET k w TAGS 1 u") == Wire.ok)
        #expect(one("TAGS k") == Wire.bulks("t"))
        #expect(two("PURGE TAG t") == Wire.ok)
        #expect(one("TAGS k") == Wire.null)
        #expect(one("SNAPSHOT CLOSE") == Wire.ok)
        #expect(one("TAGS k") == Wire.bulks("u"))
    }

    @Test func aSoftTagPurgeMakesEntriesStale() throws {
        let server = try SocketlessServer(policy: .middle)
        let one = server.connect()
        #expect(one("SET k v TAGS 1 t GRACE 60") == Wire.ok)
        server.time.advance(milliseconds: 1000)
        #expect(one("PURGE TAG t SOFT") == Wire.ok)
        #expect(one("GET k") == Wire.null)
        let lead = try #require(one.fetch("k"))
        #expect(lead.state == "lead" && lead.value == "v")
        #expect(one("RELEASE k \(try #require(lead.token)) UNCHANGED") == Wire.ok, "the origin confirms the value")
        #expect(one("GET k") == Wire.bulk("v"))
        #expect(one("TAGS k") == Wire.bulks("t"))
        #expect(one("PURGE TAG SOFT") == Wire.ok, "SOFT is a tag here")
        #expect(one("GET k") == Wire.bulk("v"))
    }

    /// A client has a lease for a key (it fetches the value) while a tag is purged. The fetched value may be older than
    /// the purge, so it cannot be stored with this tag.
    @Test("a value fetched under a lease from before a tag purge is not stored with the tag")
    func aValueFetchedBeforeATagPurgeIsNotStored() throws {
        let server = try SocketlessServer()
        let (one, two) = (server.connect(), server.connect())
        var token = try #require(one.fetch("k")?.token)
        #expect(two("PURGE TAG t") == Wire.ok)
        #expect(two.fetch("k WAIT 1000") == nil)
        #expect(one("SET k old TAGS 1 t TOKEN \(token)") == Wire.null)
        let next = try #require(two.takeFetched())
        #expect(next.state == "lead", "the waiting client gets the lease")
        #expect(two("SET k new TAGS 1 t TOKEN \(try #require(next.token))") == Wire.ok)
        #expect(one("GET k") == Wire.bulk("new"))
        token = try #require(one.fetch("other")?.token)
        #expect(two("PURGE TAG t") == Wire.ok)
        #expect(one("SET other v TAGS 1 unrelated TOKEN \(token)") == Wire.ok)
    }

    /// A purge of any tag of the key's entry ends the lease. The value being fetched may be older than the purge, even
    /// if it is then stored without that tag.
    @Test func aPurgeOfAnyTagOfAnEntryEndsItsLease() throws {
        let server = try SocketlessServer()
        let (one, two) = (server.connect(), server.connect())
        #expect(one("SET k old TAGS 1 t GRACE 1000 PX 50") == Wire.ok)
        server.time.advance(milliseconds: 60)
        let token = try #require(one.fetch("k")?.token)
        #expect(two("PURGE TAG t") == Wire.ok)
        #expect(one("SET k older TOKEN \(token)") == Wire.null)
        #expect(two("GET k") == Wire.null)
    }

    @Test func tagsAndPURGETAGRefuseInvalidArguments() throws {
        let server = try SocketlessServer()
        let call = server.connect()
        let count = Wire.error("ERR TAGS needs the number of tags (1 or more), followed by the tags")
        for words in ["TAGS", "TAGS 0 a", "TAGS x a", "TAGS 2 a", "TAGS -1 a"] {
            #expect(call("SET k v \(words)") == count, "\(words)")
        }
        let many = (1...17).map { "t\($0)" }.joined(separator: " ")
        #expect(call("SET k v TAGS 17 \(many)") == Wire.error("ERR an entry can have at most 16 tags, not 17"))
        #expect(call(["SET", "k", "v", "TAGS", "1", "a\0b"]) == Wire.error("ERR a tag must not contain a NUL byte"))
        #expect(call(["SET", "k", "v", "TAGS", "1", ""]) == Wire.error("ERR a tag must have 1 to 128 bytes, not 0"))
        #expect(call(["PURGE", "TAG", ""]) == Wire.error("ERR a tag must have 1 to 128 bytes, not 0"))
        #expect(call("PURGE TAG") == Wire.syntaxError)
        #expect(call("GET k") == Wire.null)
    }

    @Test func aTrackingConnectionIsNotifiedOfATagPurge() throws {
        let server = try SocketlessServer()
        let (one, two) = (server.connect(), server.connect())
        #expect(two("HELLO 3").hasPrefix("%"))
        #expect(two("CLIENT TRACKING ON") == Wire.ok)
        #expect(one("SET k v TAGS 1 t") == Wire.ok)
        #expect(two("GET k") == Wire.bulk("v"))
        #expect(one("PURGE TAG t") == Wire.ok)
        #expect(two.takeSendable().hasPrefix(">2\r\n" + Wire.bulk("invalidate")))
        #expect(two("GET k") == Wire.null3)
    }
}
