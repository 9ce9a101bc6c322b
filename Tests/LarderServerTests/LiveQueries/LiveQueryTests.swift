import LarderPlatform
import LarderQueries
import LarderTestSupport
import Testing

@testable import LarderEngine
@testable import LarderQuerying
@testable import LarderServer

/// Live queries in the engine: reasons, slow readers, limits and many queries.
@Suite(.timeLimit(.minutes(2))) struct LiveQueryTests {
    private let server: SocketlessServer
    private let client: TestClient
    private let database: Database
    private var live: LiveQueries { server.state.live }

    init() throws {
        server = try SocketlessServer(policy: .never)
        client = server.connect()
        database = try server.engine.database("0")
        for index in 1...5 { _ = client(["SET", "b:\(index)", "{\"year\":\(2000 + index)}"]) }
    }

    @Test func eachRemovalHasItsReason() async throws {
        let reader = LiveReader(["WHERE", "year", ">", "0", "SORT", "year"])
        let handle = try reader.begin(live, in: database)
        #expect(reader.keys == ["b:1", "b:2", "b:3", "b:4", "b:5"])
        func expect(_ outs: [String], line: Int = #line) async {
            await eventually({ reader.outs == outs }, line: line)
            reader.change { $0.outs = [] }
        }
        _ = client("DEL b:1")
        await expect(["b:1 removed"])
        _ = client(["SET", "b:2", "{}"])
        await expect(["b:2 changed"])
        _ = client("EXPIRE b:3 5")
        await eventually { reader.now.sets == 1 }
        server.time.advance(milliseconds: 5_000)
        await expect(["b:3 expired"])
        _ = client(["SET", "b:4", "{\"year\":2004}", "TAGS", "1", "t"])
        await eventually { reader.now.sets == 2 }
        _ = client("PURGE TAG t")
        await expect(["b:4 purged"])
        _ = client("PURGE PREFIX b:")
        await expect(["b:5 purged"])
        for (purge, reason) in [("PURGE", "purged"), ("FLUSHDB", "purged")] {
            _ = client(["SET", "b:6", "{\"year\":1}"])
            await eventually { reader.keys == ["b:6"] }
            _ = client(purge)
            await expect(["b:6 \(reason)"])
        }
        _ = client(["SET", "b:7", "{\"year\":1}"])
        await eventually { reader.keys == ["b:7"] }
        _ = client(["SET", "b:8", "{\"year\":1}"])
        await eventually { reader.keys == ["b:7", "b:8"] }
        _ = client("POLICY 1")
        server.time.advance(milliseconds: 1_000)
        await eventually { reader.keys == [] }
        #expect(reader.outs.sorted() == ["b:7 expired", "b:8 expired"])
        #expect(reader.now.resets == 0 && reader.now.problems.isEmpty)
        withExtendedLifetime(handle) {}
    }

    @Test func rowsBeyondTheLimitMoveIn() async throws {
        let reader = LiveReader(["KEYS", "SORT", "year", "DESC", "LIMIT", "2"])
        let handle = try reader.begin(live, in: database)
        #expect(reader.keys == ["b:5", "b:4"])
        _ = client(["SET", "b:1", "{\"year\":9999}"])
        await eventually { reader.keys == ["b:1", "b:5"] }
        #expect(reader.outs == ["b:4 moved"])
        for key in ["b:1", "b:5", "b:4", "b:3"] { _ = client("DEL \(key)") }
        await eventually { reader.keys == ["b:2"] }
        withExtendedLifetime(handle) {}
    }

    @Test func readerThatIsSlowGetsTheWholeResult() async throws {
        let reader = LiveReader(["WHERE", "year", "EXISTS"])
        let handle = try reader.begin(live, in: database)
        reader.change { $0.isSlow = true }
        _ = client("DEL b:1")
        await eventually { reader.now.refused == 1 }
        _ = client("DEL b:2")
        _ = client(["SET", "b:9", "{\"year\":1}"])
        reader.change { $0.isSlow = false }
        handle.resume()
        await eventually { reader.keys == ["b:3", "b:4", "b:5", "b:9"] }
        #expect(reader.now.resets == 1)
        _ = client("DEL b:9")
        await eventually { reader.outs == ["b:9 removed"] }
    }

    @Test func deletedDatabaseIsFollowedByItsSuccessor() async throws {
        let reader = LiveReader(["WHERE", "year", "EXISTS"])
        let handle = try reader.begin(live, in: database)
        _ = try server.engine.deleteDatabase("0")
        await eventually { reader.keys == [] }
        #expect(reader.outs.count == 5 && reader.outs.allSatisfy { $0.hasSuffix("purged") })
        try server.store("{\"year\":1}", under: "new", in: "0")
        await eventually { reader.keys == ["new"] }
        // Without a successor, the query ends.
        let queries = LiveQueries(server.engine, QueryLimits())
        let other = LiveReader([])
        let second = try other.begin(queries, in: try server.engine.database("0"))
        _ = try server.engine.deleteDatabase("0")
        await eventually { other.now.ended != nil }
        withExtendedLifetime((handle, second)) {}
    }

    @Test func impossibleQueriesAreRefused() throws {
        for words in [
            ["COUNT"], ["GROUP", "a"], ["SELECT", "1", "a"], ["LIMIT", "0"], ["LIMIT", "10001"],
            ["SKIP", "9999", "LIMIT", "2"],
        ] {
            let reader = LiveReader(words)
            #expect(throws: QueryFailure.self) { try reader.begin(live, in: database) }
        }
        #expect(live.count == 0)
    }

    @Test func aThousandQueriesEvaluateOnlyThoseConcerned() async throws {
        let readers = (0..<1000).map { LiveReader(["KEYS", "WHERE", "year", "=", "\($0)"]) }
        let handles = try readers.map { try $0.begin(live, in: database) }
        _ = client(["SET", "x", "{\"year\":7}"])
        _ = client(["SET", "y", "{\"year\":[8,9]}"])
        await eventually { readers[7].keys == ["x"] && readers[8].keys == ["y"] && readers[9].keys == ["y"] }
        _ = client(["SET", "x", "{\"year\":8}"])
        await eventually { readers[7].keys == [] && readers[8].keys == ["x", "y"] }
        #expect(readers[7].outs == ["x changed"])
        #expect(readers.allSatisfy { $0.now.problems.isEmpty && $0.now.sets <= 2 })
        for handle in handles { handle.stop() }
        #expect(live.count == 0)
        await eventually { !server.engine.changes.isOn }
    }

    @Test func changesOfAKeyAreNotedOnce() {
        var noted = NotedChanges()
        func note(_ kind: EntryChange.Kind, expired: Bool = false) {
            noted.note(EntryChange(database: database, key: [1], kind: kind, removesExpired: expired))
        }
        note(.stored(RecordHeader(storedAt: 0)))
        note(.evicted)
        #expect(noted.keys[[1]]?.reason == .evicted && noted.keys[[1]]?.isStored == true)
        note(.removed, expired: true)
        #expect(noted.keys[[1]]?.reason == .expired)
        note(.outdated)
        note(.removed)
        #expect(noted.keys.count == 1 && noted.keys[[1]]?.reason == .removed && noted.recheck == nil)
        for index in 0..<70_000 {
            let key = withUnsafeBytes(of: index) { Array($0) }
            noted.note(EntryChange(database: database, key: key, kind: .removed))
        }
        #expect(noted.isUnknown && noted.keys.isEmpty)
    }
}
