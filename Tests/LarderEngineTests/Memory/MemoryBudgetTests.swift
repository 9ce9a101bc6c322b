import LarderTestSupport
import Testing

@testable import LarderEngine

/// Tests that the entries in memory stay within their limit, and that reads never return outdated entries from memory.
@Suite struct MemoryBudgetTests {
    private static func open(_ directory: TemporaryDirectory, memory: Int) throws -> (Engine, ManualTimeSource) {
        let time = ManualTimeSource()
        var options = EngineOptions()
        options.backgroundMaintenance = false
        options.memoryBytes = memory
        return (try Engine.open(directory.path + "/larder", options: options, time: time), time)
    }

    private static func put(_ database: Database, _ key: String, _ value: [UInt8]) throws {
        try database.commit([Key(key)], loading: .none) { update in
            value.withUnsafeBytes { update.put(0, payload: $0) }
        }
    }

    @Test func memoryStaysWithinItsLimit() throws {
        let directory = try TemporaryDirectory(inMemory: true)
        let (engine, _) = try Self.open(directory, memory: 1 << 20)
        let first = try engine.openDatabase("first")
        for index in 0..<5000 { try Self.put(first, "\(index)", [UInt8](repeating: 1, count: 500)) }
        // New entries cannot be evicted until a checkpoint has written them.
        #expect(engine.memory.usedBytes > 2_500_000)
        engine.maintain()
        #expect(engine.memory.usedBytes <= 1 << 20)
        #expect(engine.memory.usedBytes > 900_000)
        // A second database gets its share of the memory that the first one has used.
        let second = try engine.openDatabase("second")
        for index in 0..<5000 { try Self.put(second, "\(index)", [UInt8](repeating: 2, count: 500)) }
        engine.maintain()
        #expect(engine.memory.usedBytes <= 1 << 20)
        let bytes = (0..<Shard.count).reduce(0) { $0 + second.shards[$1].table.byteCount }
        #expect(bytes > 350_000, "the second database has \(bytes)")
        _ = try second.purge()
        _ = try first.purge()
        #expect(engine.memory.usedBytes == 0)
        engine.shutdown()
    }

    /// The memory that the process uses for a while besides the entries takes part of the limit, at most half of it.
    @Test func theLimitIncludesTheOtherMemoryOfTheProcess() throws {
        let directory = try TemporaryDirectory(inMemory: true)
        let (engine, _) = try Self.open(directory, memory: 1 << 20)
        let database = try engine.openDatabase("db")
        let budget = engine.context.memory
        func fill() throws {
            for index in 0..<3000 { try Self.put(database, "\(index)", [UInt8](repeating: 1, count: 500)) }
            engine.maintain()
        }
        func note(other bytes: Int) { budget.note(residentBytes: engine.memory.usedBytes + bytes) }
        try fill()
        #expect(engine.memory.usedBytes > 900_000)
        note(other: 300_000)
        #expect((600_000...748_576).contains(engine.memory.usedBytes))
        // Memory that is used only for a moment does not count.
        for _ in 0..<9 { note(other: 400_000) }
        #expect(engine.memory.usedBytes > 600_000)
        note(other: 400_000)
        #expect((500_000...648_576).contains(engine.memory.usedBytes))
        try fill()
        #expect((500_000...648_576).contains(engine.memory.usedBytes))
        for _ in 0..<10 { note(other: 10 << 20) }
        #expect((400_000...524_288).contains(engine.memory.usedBytes))
        note(other: 0)
        try fill()
        #expect(engine.memory.usedBytes > 900_000)
        engine.shutdown()
    }

    /// Dirty entries, which are not yet in LevelDB, count once towards the memory that makes a checkpoint due. After
    /// the checkpoint, they no longer count.
    @Test func checkpointsFreeMemoryForWrites() throws {
        let directory = try TemporaryDirectory(inMemory: true)
        let (engine, _) = try Self.open(directory, memory: 1 << 20)
        let database = try engine.openDatabase("first")
        // Writes 48 MB in total, but at most 8 MB between two checkpoints.
        for round in 0..<6 {
            for index in 0..<8 { try Self.put(database, "\(round) \(index)", [UInt8](repeating: 1, count: 1 << 20)) }
            engine.maintain()
            #expect(!engine.context.memory.isCheckpointDue, "round \(round)")
            guard !engine.context.memory.isCheckpointDue else { return }
        }
        engine.shutdown()
    }

    @Test func entriesThatAreTooLargeAreNotKeptInMemory() throws {
        let directory = try TemporaryDirectory(inMemory: true)
        let (engine, _) = try Self.open(directory, memory: 1 << 20)
        let database = try engine.openDatabase("db")
        try Self.put(database, "large", [UInt8](repeating: 1, count: 100_000))
        #expect(try database.get(Key("large"))?.payloadCount == 100_000)
        engine.maintain()
        #expect(try database.get(Key("large"))?.payloadCount == 100_000)
        #expect(engine.memory.usedBytes == 0)
        engine.shutdown()
    }

    @Test func expiredEntriesAreNotServedAndLeaveMemory() throws {
        let directory = try TemporaryDirectory(inMemory: true)
        let (engine, time) = try Self.open(directory, memory: 1 << 20)
        let database = try engine.openDatabase("db", policy: .highest)
        try Self.put(database, "a", [1])
        engine.maintain()
        #expect(try database.get(Key("a")) != nil)
        #expect(engine.memory.usedBytes > 0)
        time.advance(milliseconds: 10_000)
        // The expired entry stays in memory as the first to be evicted, so that its expiry is counted once. The sweep
        // removes it from memory and LevelDB.
        #expect(try database.get(Key("a")) == nil)
        #expect(try database.get(Key("a")) == nil)
        time.advance(milliseconds: 10_000)
        while engine.maintain() {}
        #expect(engine.memory.usedBytes == 0)
        engine.shutdown()
    }

    @Test func entriesInMemoryAreReadWithoutFiles() throws {
        let directory = try TemporaryDirectory(inMemory: true)
        let (engine, _) = try Self.open(directory, memory: 1 << 20)
        let database = try engine.openDatabase("db")
        try Self.put(database, "a", [1, 2, 3])
        engine.maintain()
        // With the store closed, a value can come only from memory.
        database.durableState.store?.close()
        #expect(try database.get(Key("a")).map { Array($0.payload) } == [1, 2, 3])
        #expect(throws: LarderError.self) { try database.get(Key("b")) }
        engine.shutdown()
    }

    @Test func readsOfAClosedOrDeletedDatabaseThrow() throws {
        let directory = try TemporaryDirectory(inMemory: true)
        let (engine, _) = try Self.open(directory, memory: 1 << 20)
        let database = try engine.openDatabase("db")
        try Self.put(database, "a", [1])
        _ = try engine.deleteDatabase("db")
        #expect(throws: LarderError.self) { try database.get(Key("a")) }
        let other = try engine.openDatabase("other")
        try Self.put(other, "a", [1])
        engine.shutdown()
        #expect(throws: LarderError.self) { try other.get(Key("a")) }
        #expect(engine.memory.usedBytes == 0)
    }
}
