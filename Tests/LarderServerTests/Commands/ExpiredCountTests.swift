import LarderTestSupport
import Testing

@testable import LarderEngine
@testable import LarderServer

/// Tests of the field `expired_keys` of INFO.
@Suite struct ExpiredCountTests {
    private func expiredKeys(_ call: TestClient) -> String? {
        call("INFO stats").split(separator: "\r\n").first { $0.hasPrefix("expired_keys:") }.map {
            String($0.dropFirst("expired_keys:".count))
        }
    }

    /// Regression test: an entry that a read found expired was counted only when it was swept, if at all.
    @Test(arguments: [
        "GET k", "EXISTS k", "MGET k k", "TTL k", "STRLEN k", "GETRANGE k 0 1", "EXISTS k k", "SET k v XX",
    ])
    func aReadCountsAnExpiredEntryOnce(_ read: String) throws {
        for isClean in [false, true] {
            let server = try SocketlessServer()
            let call = server.connect()
            #expect(call("SET k v PX 100") == Wire.ok)
            #expect(call("SET other v PX 100") == Wire.ok)
            if isClean { try server.engine.save() }
            #expect(expiredKeys(call) == "0")
            server.time.advance(milliseconds: 5_000)
            _ = call(read)
            #expect(expiredKeys(call) == "1", "clean: \(isClean)")
            _ = call("GET k")
            #expect(expiredKeys(call) == "1", "clean: \(isClean)")
            while server.engine.maintain() {}
            try server.engine.save()
            // The remaining entry is counted when its space is reclaimed.
            #expect(expiredKeys(call) == "2", "clean: \(isClean)")
            #expect(call("SET k v PX 100") == Wire.ok)
            server.time.advance(milliseconds: 5_000)
            #expect(call("GET k") == Wire.null)
            #expect(expiredKeys(call) == "3", "clean: \(isClean)")
        }
    }

    /// Like the previous test, for entries that are only in LevelDB. If there is memory for entries, an expired entry
    /// is counted when it is read. Otherwise, it is counted only when it is removed.
    @Test(arguments: [(1 << 20, "1"), (0, "0")])
    func aReadCountsAnExpiredEntryOnDiskOnce(_ memoryBytes: Int, _ found: String) throws {
        let server = try SocketlessServer { $0.memoryBytes = memoryBytes }
        let call = server.connect()
        #expect(call("SET k v PX 100") == Wire.ok)
        try server.engine.save()
        let database = try server.engine.database("0")
        for index in 0..<Shard.count {
            let shard = database.shards[index]
            shard.lock.withLock { shard.forgetStored() }
        }
        server.time.advance(milliseconds: 5_000)
        for _ in 0..<3 {
            #expect(call("GET k") == Wire.null)
            #expect(expiredKeys(call) == found)
        }
        while server.engine.maintain() {}
        #expect(expiredKeys(call) == "1")
    }
}
