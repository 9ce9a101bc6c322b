import LarderPlatform
import LarderTestSupport
import Testing

@testable import LarderEngine

/// Tests of the choice of the databases that evict entries when the disk limit is exceeded.
@Suite struct EvictionRoundsTests {
    /// Evicting entries of the large database frees no space, because of a snapshot. The small database is too small to
    /// help.
    @Test func aSmallDatabaseIsNotEvictedIfThatFreesTooLittle() throws {
        let larder = try TestLarder {
            $0.compression = false
            $0.diskBytesMax = 64 << 20
        }
        let large = try larder.database("large", policy: .never)
        for number in 0..<100 { try large.put("k\(number)", String(repeating: "x", count: 100_000)) }
        let small = try larder.database("small", policy: .never)
        try small.put("isbn", "a book")
        try larder.engine().save()
        let snapshot = try large.snapshot()
        let engine = try larder.engine()
        let limit = EvictionLimit(
            asked: 64 << 20, database: nil, databases: [large, small], disk: engine.context.larder.disk)
        #expect(try evict(limit, isUrgent: false))
        #expect(try small.value("isbn") == "a book")
        #expect(engine.statistics.evicted.read() == 0)
        // If a writer is waiting for space, all entries may be evicted.
        snapshot.close()
        #expect(try evict(limit, isUrgent: true))
        #expect(try small.contents().isEmpty && large.contents().isEmpty)
    }

    /// - Returns: whether the eviction ended within 500 steps.
    private func evict(_ limit: EvictionLimit, isUrgent: Bool) throws -> Bool {
        var rounds = EvictionRounds(context: try #require(limit.databases.first).context)
        for _ in 0..<500 {
            if try rounds.step(limit, limit.databases, over: 32 << 20, isUrgent: isUrgent) == .nothingLeft {
                return true
            }
        }
        return false
    }
}
