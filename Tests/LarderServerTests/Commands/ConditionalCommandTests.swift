import LarderEngine
import Testing

@testable import LarderServer

/// Tests of changes that depend on the current value. Redis 7.0 does not have them; the expected results follow the
/// documentation of Redis 8.4.
@Suite struct ConditionalCommandTests {
    /// The digest of "Hello world", as in Redis' documentation.
    private let digest = "b6acb9d84a38ff74"

    @Test("DIGEST returns the hash of a value") func digests() throws {
        let call = try SocketlessServer().connect()
        #expect(call("DIGEST k") == Wire.null)
        #expect(call(["SET", "k", "Hello world"]) == Wire.ok)
        #expect(call("DIGEST k") == Wire.bulk(digest))
        #expect(call("DIGEST") == Wire.arity("digest"))
        #expect(call("DIGEST a b") == Wire.arity("digest"))
    }

    @Test("SET IFEQ stores only if the current value is the given one") func setIfEqual() throws {
        let call = try SocketlessServer().connect()
        #expect(call("SET k new IFEQ old") == Wire.null, "a missing entry equals no value")
        #expect(call("EXISTS k") == Wire.int(0))
        #expect(call("SET k old") == Wire.ok)
        #expect(call("SET k new IFEQ other") == Wire.null)
        #expect(call("SET k new IFEQ ol") == Wire.null)
        #expect(call("SET k new ifeq old") == Wire.ok)
        #expect(call("GET k") == Wire.bulk("new"))
        #expect(call("SET k newer IFEQ other GET") == Wire.bulk("new"))
        #expect(call("GET k") == Wire.bulk("new"))
        #expect(call("SET k newer GET IFEQ new EX 100") == Wire.bulk("new"))
        #expect(call("TTL k") == Wire.int(100))
        #expect(call("SET k newest IFEQ newer KEEPTTL") == Wire.ok)
        #expect(call("TTL k") == Wire.int(100))
    }

    @Test("SET IFNE stores unless the current value is the given one") func setIfNotEqual() throws {
        let call = try SocketlessServer().connect()
        #expect(call("SET k 1 IFNE 1") == Wire.ok, "a missing entry differs from every value")
        #expect(call("SET k 2 IFNE 1") == Wire.null)
        #expect(call("SET k 2 IFNE 3") == Wire.ok)
        #expect(call("GET k") == Wire.bulk("2"))
        #expect(call("SET gone 1 IFNE 1 GET") == Wire.null)
        #expect(call("GET gone") == Wire.bulk("1"))
    }

    @Test("SET IFDEQ and IFDNE compare the digest of the current value") func setByDigest() throws {
        let call = try SocketlessServer().connect()
        #expect(call("SET k new IFDEQ \(digest)") == Wire.null)
        #expect(call(["SET", "k", "Hello world"]) == Wire.ok)
        #expect(call("SET k new IFDNE \(digest)") == Wire.null)
        #expect(call("SET k new IFDEQ 0000000000000000") == Wire.null)
        #expect(call("SET k new IFDEQ \(digest.uppercased())") == Wire.ok)
        #expect(call("SET k newer IFDNE \(digest)") == Wire.ok)
        #expect(call("SET gone new IFDNE \(digest)") == Wire.ok)
        let bad = Wire.error("ERR the digest must be 16 hexadecimal digits, as DIGEST returns them")
        for text in ["abc", "xyzxyzxyzxyzxyzx", "\(digest)0"] {
            #expect(call("SET k v IFDEQ \(text)") == bad)
            #expect(call("DELEX k IFDNE \(text)") == bad)
        }
    }

    @Test(
        "contradictory conditions are syntax errors and store nothing",
        arguments: [
            "SET k v IFEQ", "SET k v NX IFEQ a", "SET k v IFEQ a XX", "SET k v IFEQ a IFEQ b", "SET k v IFEQ a IFNE b",
            "SET k v IFDEQ", "DELEX k BAD v", "DELEX k NX v",
        ])
    func syntax(_ line: String) throws {
        let call = try SocketlessServer().connect()
        #expect(call(line) == Wire.syntaxError)
        #expect(call("EXISTS k") == Wire.int(0))
    }

    @Test func delexRemovesTheKeyOnlyIfItsConditionHolds() throws {
        let server = try SocketlessServer(policy: .high)
        let call = server.connect()
        #expect(call("DELEX k") == Wire.int(0))
        #expect(call("DELEX k IFNE v") == Wire.int(0), "a missing entry is not removed")
        #expect(call(["SET", "k", "Hello world"]) == Wire.ok)
        #expect(call("DELEX k IFEQ v") == Wire.int(0))
        #expect(call("DELEX k IFDEQ 0000000000000000") == Wire.int(0))
        #expect(call("DELEX k IFDNE \(digest)") == Wire.int(0))
        #expect(call("DELEX k IFDEQ \(digest)") == Wire.int(1))
        #expect(call("EXISTS k") == Wire.int(0))
        for line in ["DELEX k", "DELEX k IFEQ v", "DELEX k IFNE w", "DELEX k IFDNE \(digest)"] {
            #expect(call("SET k v") == Wire.ok)
            #expect(call(line) == Wire.int(1))
            #expect(call("EXISTS k") == Wire.int(0))
        }
        #expect(call("SET k v") == Wire.ok)
        server.time.advance(milliseconds: 60_000)
        #expect(call("DELEX k IFEQ v") == Wire.int(0), "an expired entry counts as missing")
        #expect(call("DELEX k IFEQ") == Wire.arity("delex"))
        #expect(call("DELEX k IFEQ v x") == Wire.arity("delex"))
    }

    @Test func msetexStoresAllKeysOrNone() throws {
        let server = try SocketlessServer(policy: .high)
        let call = server.connect()
        #expect(call("MSETEX 2 a 1 b 2") == Wire.int(1))
        #expect(call("MGET a b") == Wire.bulks("1", "2"))
        #expect(call("TTL a") == Wire.int(60))
        #expect(call("MSETEX 2 a 3 c 4 NX") == Wire.int(0))
        #expect(call("MSETEX 2 a 3 c 4 XX") == Wire.int(0))
        #expect(call("MGET a c") == Wire.array(Wire.bulk("1"), Wire.null))
        #expect(call("MSETEX 2 a 3 b 4 XX EX 100") == Wire.int(1))
        #expect(call("TTL b") == Wire.int(100))
        #expect(call("MSETEX 2 a 5 b 6 KEEPTTL") == Wire.int(1))
        #expect(call("TTL b") == Wire.int(100))
        #expect(call("MSETEX 1 c NX NX PX 5000") == Wire.int(1), "a value may look like an option")
        #expect(call("GET c") == Wire.bulk("NX"))
        #expect(call("TTL c") == Wire.int(5))
        #expect(call("MSETEX 2 d 1 d 2 NX") == Wire.int(1), "a key named twice did not exist before")
        #expect(call("GET d") == Wire.bulk("2"))
        #expect(call("MSETEX 1 e 1 POLICY never") == Wire.int(1))
        #expect(call("TTL e") == Wire.int(-1))
        #expect(call("MSETEX 1 e 1 PXAT 1") == Wire.int(1))
        #expect(call("EXISTS e") == Wire.int(0))
        server.time.advance(milliseconds: 60_000)
        #expect(call("MSETEX 1 d 3 XX") == Wire.int(0))
        #expect(call("MSETEX 1 d 3 NX") == Wire.int(1))
    }

    @Test(arguments: [
        ("MSETEX 1 a", "ERR wrong number of arguments for 'msetex' command"),
        ("MSETEX 0 a 1", "ERR invalid numkeys value"), ("MSETEX -1 a 1", "ERR invalid numkeys value"),
        ("MSETEX x a 1", "ERR invalid numkeys value"), ("MSETEX 2 a 1 b", "ERR wrong number of key-value pairs"),
        ("MSETEX 9223372036854775807 a 1", "ERR wrong number of key-value pairs"),
        ("MSETEX 1 a 1 b 2", "ERR syntax error"), ("MSETEX 1 a 1 GET", "ERR syntax error"),
        ("MSETEX 1 a 1 IFEQ 1", "ERR syntax error"), ("MSETEX 1 a 1 NX XX", "ERR syntax error"),
        ("MSETEX 1 a 1 EX 1 PX 1", "ERR syntax error"),
        ("MSETEX 1 a 1 EX 0", "ERR invalid expire time in 'msetex' command"),
        ("MSETEX 1 a 1 EX x", "ERR value is not an integer or out of range"),
    ])
    func msetexExplainsInvalidArguments(_ line: String, _ text: String) throws {
        let call = try SocketlessServer().connect()
        #expect(call(line) == Wire.error(text))
        #expect(call("EXISTS a") == Wire.int(0))
    }
}
