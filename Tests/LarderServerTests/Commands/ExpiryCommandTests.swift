import LarderEngine
import Testing

@testable import LarderServer

@Suite struct ExpiryCommandTests {
    /// PERSIST replies as in Redis, and later policies do not affect the entry.
    @Test(
        "PERSIST under the policy `never` protects an entry from later policies",
        arguments: ["PERSIST k", "GETEX k PERSIST"])
    func persistUnderNeverProtectsFromLaterPolicies(_ line: String) throws {
        let server = try SocketlessServer(policy: .never)
        let call = server.connect()
        for key in ["k", "other"] { #expect(call("SET \(key) v") == Wire.ok) }
        #expect(call(line) == (line.hasPrefix("PERSIST") ? Wire.int(0) : Wire.bulk("v")))
        #expect(call("POLICY low") == Wire.ok)
        server.time.advance(milliseconds: 86_400_000)
        #expect(call("GET k") == Wire.bulk("v"))
        #expect(call("TTL k") == Wire.int(-1))
        #expect(call("GET other") == Wire.null)
        #expect(call("PERSIST k") == Wire.int(0))
    }

    @Test("an entry expires exactly at its deadline") func theBoundary() throws {
        let server = try SocketlessServer(policy: .never)
        let call = server.connect()
        #expect(call("SET k v PX 1000") == Wire.ok)
        server.time.advance(milliseconds: 999)
        #expect(call("GET k") == Wire.bulk("v"))
        #expect(call("PTTL k") == Wire.int(1))
        #expect(call("TTL k") == Wire.int(0))
        server.time.advance(milliseconds: 1)
        for line in [
            "GET k", "MGET k", "EXISTS k", "TTL k", "PTTL k", "EXPIRETIME k", "TYPE k", "STRLEN k", "GETDEL k",
            "PERSIST k", "EXPIRE k 10", "DEL k", "META k", "KEYS *", "SET k w XX",
        ] {
            let expected =
                switch line.split(separator: " ")[0] {
                case "GET", "GETDEL", "META", "SET": Wire.null
                case "MGET": Wire.array(Wire.null)
                case "TTL", "PTTL", "EXPIRETIME": Wire.int(-2)
                case "TYPE": "+none\r\n"
                case "KEYS": "*0\r\n"
                default: Wire.int(0)
                }
            #expect(call(line) == expected, "\(line)")
        }
        #expect(call("SET k w NX") == Wire.ok)
        #expect(call("GET k") == Wire.bulk("w"))
    }

    @Test("TTL and EXPIRETIME round to the nearest second") func secondsAreRoundedToTheNearest() throws {
        let server = try SocketlessServer(policy: .never)
        let call = server.connect()
        for (milliseconds, seconds) in [(1, 0), (499, 0), (500, 1), (1499, 1), (1500, 2), (10_000, 10)] {
            #expect(call("SET k v PX \(milliseconds)") == Wire.ok)
            #expect(call("TTL k") == Wire.int(seconds))
        }
        #expect(call("SET k v PXAT 2000000000499") == Wire.ok)
        #expect(call("EXPIRETIME k") == Wire.int(2_000_000_000))
        #expect(call("SET k v PXAT 2000000000500") == Wire.ok)
        #expect(call("EXPIRETIME k") == Wire.int(2_000_000_001))
        #expect(call("PEXPIREAT k 9223372036854775807") == Wire.int(1))
        #expect(call("PEXPIRETIME k") == Wire.int(.max))
        #expect(call("EXPIRETIME k") == Wire.int(9_223_372_036_854_776))
        #expect(call("PTTL k") == Wire.int(.max - Int(server.engine.now())))
    }

    @Test("EXPIRE and its variants set the deadline, or remove the key if it has passed") func expireForms() throws {
        let server = try SocketlessServer(policy: .never)
        let call = server.connect()
        let now = Int(server.engine.now())
        for (line, deadline) in [
            ("EXPIRE k 100", now + 100_000), ("PEXPIRE k 100", now + 100),
            ("EXPIREAT k \(now / 1000 + 9)", (now / 1000 + 9) * 1000), ("PEXPIREAT k \(now + 1)", now + 1),
        ] {
            #expect(call("SET k v") == Wire.ok)
            #expect(call(line) == Wire.int(1), "\(line)")
            #expect(call("PEXPIRETIME k") == Wire.int(deadline))
        }
        for line in [
            "EXPIRE k 0", "EXPIRE k -1", "PEXPIRE k -9223372036854775808", "PEXPIREAT k \(now)", "EXPIREAT k 1",
        ] {
            #expect(call("SET k v") == Wire.ok)
            #expect(call(line) == Wire.int(1), "\(line)")
            #expect(call("GET k") == Wire.null)
            #expect(call(line) == Wire.int(0))
        }
    }

    @Test func expireOptionsDecideWhetherTheDeadlineChanges() throws {
        let server = try SocketlessServer(policy: .never)
        let call = server.connect()
        #expect(call("SET k v") == Wire.ok)
        for (line, changed) in [
            ("EXPIRE k 10 XX", 0), ("EXPIRE k 10 GT", 0), ("EXPIRE k 100 LT", 1), ("EXPIRE k 10 NX", 0),
            ("EXPIRE k 100 GT", 0), ("EXPIRE k 101 GT", 1), ("EXPIRE k 101 LT", 0), ("EXPIRE k 5 LT XX", 1),
            ("EXPIRE k 50 xx gt", 1), ("EXPIRE k 50 XX XX", 1), ("PERSIST k", 1), ("PERSIST k", 0),
            ("EXPIRE k 10 NX", 1), ("EXPIRE nothing 10 NX", 0),
        ] {
            #expect(call(line) == Wire.int(changed), "\(line)")
        }
    }

    @Test func expireExplainsInvalidArguments() throws {
        let server = try SocketlessServer(policy: .never)
        let call = server.connect()
        #expect(call("SET k v") == Wire.ok)
        for (line, text) in [
            ("EXPIRE k", "ERR wrong number of arguments for 'expire' command"),
            ("EXPIRE k x", "ERR value is not an integer or out of range"),
            ("EXPIRE nothing x", "ERR value is not an integer or out of range"),
            ("EXPIRE k 1 ZZ", "ERR Unsupported option ZZ"),
            ("EXPIRE k x ZZ", "ERR Unsupported option ZZ"),
            ("EXPIRE k x NX XX", "ERR NX and XX, GT or LT options at the same time are not compatible"),
            ("EXPIRE k 1 GT LT", "ERR GT and LT options at the same time are not compatible"),
            ("EXPIRE k 9223372036854775807", "ERR invalid expire time in 'expire' command"),
            ("EXPIREAT k -9223372036854775808", "ERR invalid expire time in 'expireat' command"),
            ("PEXPIRE k 9223372036854775807", "ERR invalid expire time in 'pexpire' command"),
        ] {
            #expect(call(line) == Wire.error(text), "\(line)")
        }
        #expect(call("TTL k") == Wire.int(-1))
    }

    /// Under a policy with an expiration, TTL returns the time to the effective deadline, and the options of EXPIRE
    /// compare with that deadline.
    @Test("TTL and EXPIRE options use the deadline given by the policy") func underAPolicy() throws {
        let server = try SocketlessServer(policy: .high)
        let call = server.connect()
        #expect(call("SET k v") == Wire.ok)
        server.time.advance(milliseconds: 10_000)
        #expect(call("TTL k") == Wire.int(50))
        #expect(call("EXPIRE k 100 NX") == Wire.int(0))
        #expect(call("EXPIRE k 49 GT") == Wire.int(0))
        #expect(call("EXPIRE k 51 GT XX") == Wire.int(1))
        #expect(call("PERSIST k") == Wire.int(1))
        #expect(call("TTL k") == Wire.int(-1))
        server.time.advance(milliseconds: 1_000_000)
        #expect(call("GET k") == Wire.bulk("v"))
        #expect(call("SET k v") == Wire.ok)
        #expect(call("POLICY highest") == Wire.ok)
        #expect(call("TTL k") == Wire.int(10))
        server.time.advance(milliseconds: 10_000)
        #expect(call("TTL k") == Wire.int(-2))
        #expect(call("POLICY never") == Wire.ok)
        #expect(call("GET k") == Wire.null, "a policy change does not revive entries")
    }

    @Test("EXPIRE keeps the storage time of an entry, and SET renews it")
    func expireKeepsTheTimeOfStoringAndSetRenewsIt() throws {
        let server = try SocketlessServer(policy: .never)
        let call = server.connect()
        let start = Int(server.engine.now())
        #expect(call("SET k v") == Wire.ok)
        server.time.advance(milliseconds: 5)
        #expect(call("EXPIRE k 100") == Wire.int(1))
        #expect(call("META k").contains("stored-at\r\n:\(start)\r\n$3\r\nage\r\n:5\r\n"))
        #expect(call("SET k v KEEPTTL") == Wire.ok)
        #expect(call("META k").contains("stored-at\r\n:\(start + 5)\r\n"))
    }

    @Test func steppingTheClockBackDoesNotPostponeExpiry() throws {
        let server = try SocketlessServer(policy: .high)
        let call = server.connect()
        #expect(call("SET k v") == Wire.ok)
        server.time.stepWall(milliseconds: -3_600_000)
        #expect(call("PTTL k") == Wire.int(60_000))
        server.time.advance(milliseconds: 59_999)
        #expect(call("GET k") == Wire.bulk("v"))
        server.time.advance(milliseconds: 1)
        #expect(call("GET k") == Wire.null)
        #expect(call("INFO larder").contains("clock_offset_milliseconds:3600000\r\n"))
    }

    /// Clients send and receive points in time by the system clock, even if the larder's own time is ahead of it.
    @Test("times in commands and replies follow the wall clock, even after it was set back")
    func expiryTimesUseTheWallClockEvenIfSetBack() throws {
        let server = try SocketlessServer(policy: .high)
        let call = server.connect()
        server.time.stepWall(milliseconds: -3_600_000)
        let clock = server.time.wallMilliseconds()
        #expect(call("SET a v PXAT \(clock + 5000)") == Wire.ok)
        #expect(call("SET b v") == Wire.ok)
        #expect(call("PEXPIREAT b \(clock + 5000)") == Wire.int(1))
        for key in ["a", "b"] {
            #expect(call("PTTL \(key)") == Wire.int(5000))
            #expect(call("PEXPIRETIME \(key)") == Wire.int(Int(clock) + 5000))
            #expect(call("META \(key)").contains("deadline\r\n:\(clock + 5000)\r\n"))
            #expect(call("META \(key)").contains("stored-at\r\n:\(clock)\r\n"))
        }
        #expect(call("TIME").contains("\r\n\(clock / 1000)\r\n"))
        server.time.advance(milliseconds: 4999)
        #expect(call("GET a") == Wire.bulk("v"))
        server.time.advance(milliseconds: 1)
        #expect(call("EXISTS a b") == Wire.int(0))
        #expect(call("SET c v PXAT \(clock)") == Wire.ok)
        #expect(call("GET c") == Wire.null)
    }
}
