import LarderTestSupport
import Testing

@testable import LarderEngine
@testable import LarderServer

/// Tests of commands that remove a key whose entry was evicted from LevelDB, while the journal still has it.
@Suite struct EvictedRemovalTests {
    private func server() throws -> SocketlessServer {
        let server = try SocketlessServer(policy: .never)
        let client = server.connect()
        #expect(client(["SET", "k", "{\"a\":1}", "TAGS", "1", "t"]) == Wire.ok)
        let database = try server.engine.database("0")
        try database.checkpointer.flush(database)
        let pass = EvictionPass(
            database: database, store: try #require(database.durableState.store),
            estimate: EvictionEstimate(now: database.now(), residence: 1000), threshold: .infinity,
            rangeBytes: 1 << 20, wantedBytes: 1 << 20)
        _ = try pass.run(from: [KeyKind.record], leastShare: 0)
        #expect(client("GET k") == Wire.null)
        return server
    }

    private func valueAfterCrash(_ server: SocketlessServer) throws -> String {
        let directory = try TemporaryDirectory(inMemory: true)
        try Files.copyUnchanged(server.directory.path + "/larder", to: directory.path + "/larder")
        let next = try SocketlessServer(in: directory, policy: .never, clock: server.time)
        return next.connect()("GET k")
    }

    @Test(arguments: [
        "DEL k", "UNLINK k", "GETDEL k", "DELEX k", "EXPIRE k -1", "PEXPIREAT k 1", "GETEX k PXAT 1", "JSON.DEL k",
        "SET k v PXAT 1", "INCREX k PXAT 1", "BITOP AND k none", "EVAL return(redis.call('DEL',KEYS[1])) 1 k",
        "MULTI;DEL k;EXEC", "MULTI;GET k;EXPIRE k 0;EXEC", "PURGE TAG t", "PURGE PREFIX k", "PURGE", "FLUSHDB",
        "FLUSHALL", "SWAPDB 0 1", "UNPLACE k %now-7", "PLACE k v STOREDAT 1 PXAT 2 VERSION %now-7",
    ])
    func aRemovedKeyStaysAbsentAfterACrash(_ lines: String) throws {
        let server = try server()
        #expect(try valueAfterCrash(server) == Wire.bulk("{\"a\":1}"))
        let client = server.connect()
        for line in lines.split(separator: ";") {
            let reply = client(String(line.replacing("%now", with: "\(server.engine.now())")))
            #expect(!reply.isEmpty && !reply.contains("-ERR"), "\(line): \(reply)")
        }
        #expect(client("GET k") == Wire.null)
        #expect(try valueAfterCrash(server) == Wire.null)
    }

    @Test func anAbsenceThatAFetchHasFoundStaysAfterACrash() throws {
        let server = try server()
        let client = server.connect()
        let token = try #require(client.fetch("k")?.token)
        #expect(client("RELEASE k \(token) ABSENT 1000") == Wire.ok)
        #expect(client.fetch("k")?.state == "absent")
        #expect(try valueAfterCrash(server) == Wire.null)
    }
}
