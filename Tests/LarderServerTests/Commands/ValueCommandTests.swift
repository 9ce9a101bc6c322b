import LarderEngine
import LarderTestSupport
import Testing

@testable import LarderServer

/// Tests of how commands that change, move or restore values affect the lifetimes and times of entries. The conformance
/// tests compare the replies with those of Redis.
@Suite struct ValueCommandTests {
    /// Returns a field of a key's metadata from the reply of META; "none" if the field is missing.
    private func meta(_ call: TestClient, _ key: String, _ field: String) -> String {
        let lines = call("META \(key)").split(separator: "\r\n").map(String.init)
        guard let place = lines.firstIndex(of: field), place + 1 < lines.count else { return "none" }
        let value = lines[place + 1]
        return value.hasPrefix("$") ? lines[place + 2] : String(value.dropFirst())
    }

    /// A value that is changed in place counts as stored now, and keeps its lifetime.
    @Test(
        "changing a value in place keeps its lifetime and renews its storage time",
        arguments: [
            "APPEND k 5", "INCR k", "DECR k", "INCRBY k 2", "DECRBY k 2", "INCRBYFLOAT k 0.5", "SETRANGE k 0 9",
            "SETBIT k 6 1", "BITFIELD k SET u8 0 50",
        ])
    func changesInPlaceKeepTheLifetime(_ line: String) throws {
        let server = try SocketlessServer(policy: .high)
        let call = server.connect()
        for (store, rule) in [("SET k 1", "governed"), ("SET k 1 EX 1000", "own"), ("SET k 1 POLICY never", "never")] {
            #expect(call(store) == Wire.ok)
            let (storedAt, deadline) = (Int(meta(call, "k", "stored-at")) ?? 0, Int(meta(call, "k", "deadline")) ?? 0)
            server.time.advance(milliseconds: 30_000)
            #expect(!call(line).hasPrefix("-"))
            #expect(meta(call, "k", "rule") == rule)
            #expect(meta(call, "k", "stored-at") == "\(storedAt + 30_000)")
            let renewed = rule == "governed" ? deadline + 30_000 : deadline
            #expect(meta(call, "k", "deadline") == "\(renewed)")
        }
        #expect(call("SET k 1 CODEC json") == Wire.ok)
        #expect(!call(line).hasPrefix("-"))
        #expect(meta(call, "k", "codec") == "json")
    }

    /// As in Redis, nothing is stored if no bit changes.
    @Test(
        "commands that change no bit store nothing",
        arguments: ["SETBIT k 7 1", "BITFIELD k SET u8 0 49", "BITFIELD k OVERFLOW FAIL INCRBY u8 0 255"])
    func bitCommandsWithoutEffectStoreNothing(_ line: String) throws {
        let server = try SocketlessServer(policy: .high)
        let call = server.connect()
        #expect(call("SET k 1") == Wire.ok)
        let storedAt = meta(call, "k", "stored-at")
        server.time.advance(milliseconds: 30_000)
        #expect(!call(line).hasPrefix("-"))
        #expect(meta(call, "k", "stored-at") == storedAt)
    }

    /// A replaced value starts a new lifetime under the database's policy.
    @Test(
        "a command that replaces the value starts a new lifetime",
        arguments: ["GETSET k 5", "SET k 5", "BITOP NOT k k", "RESTORE k 0 \u{1}five REPLACE"])
    func replacedValuesStartANewLifetime(_ line: String) throws {
        let server = try SocketlessServer(policy: .high)
        let call = server.connect()
        #expect(call("SET k 1 EX 1000") == Wire.ok)
        if line.hasPrefix("RESTORE") {
            let dump = [UInt8(0x35)].withUnsafeBytes { DumpPayload.encode($0) }
            call.feed(encodeRequest([Array("RESTORE".utf8), Array("k".utf8), [0x30], dump, Array("REPLACE".utf8)]))
            server.commit()
            #expect(call.takeSendable() == Wire.ok)
        } else {
            _ = call(line)
        }
        #expect(meta(call, "k", "rule") == "governed")
        #expect(call("TTL k") == Wire.int(60))
    }

    @Test func newValuesGetTheLifetimeOfThePolicy() throws {
        let server = try SocketlessServer(policy: .high)
        let call = server.connect()
        for line in ["SETNX a 1", "APPEND b 1", "INCR c", "SETRANGE d 3 x", "MSETNX e 1 f 2", "GETSET g 1"] {
            #expect(!call(line).hasPrefix("-"))
        }
        for key in ["a", "b", "c", "d", "e", "f", "g"] { #expect(call("TTL \(key)") == Wire.int(60)) }
        server.time.advance(milliseconds: 60_000)
        #expect(call("SETNX a 2") == Wire.int(1))
        #expect(call("INCR c") == Wire.int(1), "an expired entry counts as missing")
        #expect(call("APPEND b 22") == Wire.int(2))
        #expect(call("GETEX e") == Wire.null)
        #expect(call("RENAME f x") == Wire.error("ERR no such key"))
        #expect(call("COPY f x") == Wire.int(0))
        #expect(call("MSETNX e 1 f 2") == Wire.int(1))
    }

    @Test func getexUsesTheEffectiveDeadline() throws {
        let server = try SocketlessServer(policy: .high)
        let call = server.connect()
        #expect(call("SET k v") == Wire.ok)
        #expect(call("GETEX k EX 1000") == Wire.bulk("v"))
        #expect(meta(call, "k", "rule") == "own")
        #expect(call("GETEX k PERSIST") == Wire.bulk("v"))
        #expect(meta(call, "k", "rule") == "never")
        server.time.advance(milliseconds: 60_000)
        #expect(call("GETEX k PXAT 1") == Wire.bulk("v"))
        #expect(call("GET k") == Wire.null)
    }

    // MARK: Moving

    @Test(
        "a renamed or copied entry keeps its times and its deadline rule",
        arguments: ["RENAME a b", "RENAMENX a b", "COPY a b", "COPY a b REPLACE"])
    func anotherKey(_ line: String) throws {
        let server = try SocketlessServer(policy: .high)
        let call = server.connect()
        for (store, rule) in [("SET a 1", "governed"), ("SET a 1 EX 1000", "own"), ("SET a 1 POLICY never", "never")] {
            #expect(call("DEL b") == Wire.int(rule == "governed" ? 0 : 1))
            #expect(call(store + " CODEC json") == Wire.ok)
            let (storedAt, deadline) = (meta(call, "a", "stored-at"), meta(call, "a", "deadline"))
            server.time.advance(milliseconds: 30_000)
            #expect(!call(line).hasPrefix("-"))
            #expect(meta(call, "b", "rule") == rule)
            #expect(meta(call, "b", "stored-at") == storedAt)
            #expect(meta(call, "b", "deadline") == deadline)
            #expect(meta(call, "b", "codec") == "json")
        }
    }

    /// A moved or copied entry that follows a policy follows the policy of its new database.
    @Test(
        "an entry moved to another database follows that database's policy",
        arguments: ["MOVE k books", "COPY k k DB books"])
    func anotherDatabase(_ line: String) throws {
        let server = try SocketlessServer(policy: .high)
        let call = server.connect()
        #expect(call("SELECT books") == Wire.ok)
        #expect(call("POLICY low") == Wire.ok)
        #expect(call("SET other v") == Wire.ok)
        #expect(call("SELECT 0") == Wire.ok)
        #expect(call("SET k v") == Wire.ok)
        server.time.advance(milliseconds: 30_000)
        #expect(call("TTL k") == Wire.int(30))
        #expect(call(line) == Wire.int(1))
        #expect(call("EXISTS k") == Wire.int(line.hasPrefix("MOVE") ? 0 : 1))
        #expect(call("SELECT books") == Wire.ok)
        #expect(call("TTL k") == Wire.int(86_400 - 30))
        #expect(meta(call, "k", "rule") == "governed")
    }

    @Test("MOVE and COPY of a missing key create no database") func movingAMissingKeyCreatesNoDatabase() throws {
        let server = try SocketlessServer()
        let call = server.connect()
        #expect(call("MOVE k 5") == Wire.int(0))
        #expect(call("COPY k k DB 6") == Wire.int(0))
        #expect(call("SET k v") == Wire.ok)
        #expect(call("MOVE nothing 5") == Wire.int(0))
        #expect(!call("DATABASES").contains("$1\r\n5\r\n"))
        #expect(call("MOVE k 5") == Wire.int(1))
        #expect(call("DATABASES").contains("$1\r\n5\r\n"))
    }

    /// Keys that only LevelDB has are read on a thread that may block.
    @Test("commands that change values read keys on disk") func coldKeys() throws {
        let server = try SocketlessServer { $0.memoryBytes = 0 }
        let call = server.connect()
        func makeCold() throws {
            for database in server.engine.databases { _ = try database.flush() }
        }
        #expect(call("MSET a 1 b 2 c 3") == Wire.ok)
        #expect(call("COPY a a DB 1") == Wire.int(1))
        for (line, reply) in [
            ("RENAME a x", Wire.ok), ("APPEND x 5", Wire.int(2)), ("INCR x", Wire.int(16)), ("MOVE b 1", Wire.int(1)),
            ("COPY c d", Wire.int(1)), ("GETRANGE c 0 0", Wire.bulk("3")), ("SETNX c 4", Wire.int(0)),
            ("OBJECT ENCODING c", Wire.bulk("int")), ("RENAMENX c d", Wire.int(0)),
        ] {
            try makeCold()
            let before = call.colds
            #expect(call(line) == reply, "\(line)")
            #expect(call.colds == before + 1, "\(line)")
        }
    }

    /// In a transaction, MOVE and COPY are part of the commit unit, which includes the other database.
    @Test("commands that change values and move entries work in a transaction", arguments: [false, true])
    func inATransaction(_ isCold: Bool) throws {
        let server = try SocketlessServer { if isCold { $0.memoryBytes = 0 } }
        let call = server.connect()
        #expect(call("MSET a 1 b 2 c 3") == Wire.ok)
        if isCold { for database in server.engine.databases { _ = try database.flush() } }
        let lines: [(String, String)] = [
            ("MOVE nothing 7", Wire.int(0)), ("MOVE a 5", Wire.int(1)), ("COPY b x DB 6", Wire.int(1)),
            ("INCR b", Wire.int(3)), ("COPY b x DB 6", Wire.int(0)), ("COPY b x DB 6 REPLACE", Wire.int(1)),
            ("RENAME c d", Wire.ok), ("RENAME c d", Wire.error("ERR no such key")), ("APPEND d 4", Wire.int(2)),
            ("MSETEX 2 e 5 f 6 NX", Wire.int(1)), ("SETBIT g 8388610 1", Wire.int(0)), ("LCS d d", Wire.bulk("34")),
            ("MOVE d 0", Wire.error("ERR source and destination objects are the same")),
        ]
        #expect(call("MULTI") == Wire.ok)
        for (line, _) in lines { #expect(call(line) == "+QUEUED\r\n") }
        #expect(call("EXEC") == "*\(lines.count)\r\n" + lines.map(\.1).joined())
        #expect(call("MGET a b d e") == Wire.array(Wire.null, Wire.bulk("3"), Wire.bulk("34"), Wire.bulk("5")))
        #expect(call("SELECT 5") == Wire.ok)
        #expect(call("GET a") == Wire.bulk("1"))
        #expect(call("SELECT 6") == Wire.ok)
        #expect(call("GET x") == Wire.bulk("3"))
        #expect(!call("DATABASES").contains("$1\r\n7\r\n"), "nothing was moved there")
    }

    // MARK: RANDOMKEY

    @Test func randomkeyFindsEveryKey() throws {
        let server = try SocketlessServer(policy: .high)
        let call = server.connect()
        #expect(call("RANDOMKEY") == Wire.null)
        #expect(call("SET expired v PX 1") == Wire.ok)
        server.time.advance(milliseconds: 1)
        #expect(call("RANDOMKEY") == Wire.null)
        let keys = ["", "a", "aa", "aab", "b", "user:1", "user:10", "user:2", "zzzzzz"]
        for key in keys { #expect(call(["SET", key, "v"]) == Wire.ok) }
        var seen: Set<String> = []
        // The rarest key is chosen in about one of several hundred tries. Missing it in all tries has a probability of
        // about 10^-20.
        for _ in 0..<8000 where seen.count < keys.count { seen.insert(call("RANDOMKEY")) }
        #expect(seen == Set(keys.map { Wire.bulk($0) }))
    }

    // MARK: Limits

    /// A command whose result would be too long is refused before memory is allocated.
    @Test("a command whose result would be too long is refused") func valuesThatAreTooLong() throws {
        var limits = Limits()
        limits.valueBytesMax = 10
        let call = try SocketlessServer(limits: limits).connect()
        let tooLong = Wire.error("ERR string exceeds maximum allowed size (proto-max-bulk-len)")
        #expect(call("SETRANGE k 9 x") == Wire.int(10))
        #expect(call("SETRANGE k 10 x") == tooLong)
        #expect(call("SETRANGE k 9223372036854775807 x") == tooLong)
        #expect(call("APPEND k x") == tooLong)
        #expect(call(["APPEND", "k", ""]) == Wire.int(10))
        #expect(call("SETBIT k 79 1") == Wire.int(0))
        #expect(call("SETBIT k 80 1") == Wire.error("ERR bit offset is not an integer or out of range"))
        #expect(call("STRLEN k") == Wire.int(10))
    }
}
