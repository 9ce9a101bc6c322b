import LarderPlatform
import LarderTestSupport
import Synchronization
import Testing

@testable import LarderEngine

/// Tests of SWAPDB, which exchanges the entries of two databases atomically.
@Suite struct ExchangeTests {
    private func exchange(_ larder: TestLarder, most: Int = 1000, bytes: Int = 1 << 20) throws {
        try larder.engine().exchange(
            try larder.database("a"), try larder.database("b"), entriesMax: most, bytesMax: bytes)
    }

    @Test(arguments: [nil, 0]) func anExchangeSwapsEntriesAndKeepsPolicies(_ memoryBytes: Int?) throws {
        let larder = try TestLarder { if let memoryBytes { $0.memoryBytes = memoryBytes } }
        let (first, second) = (try larder.database("a", policy: .high), try larder.database("b", policy: .low))
        try first.put("both", "1")
        try first.put("onlyA", "a", rule: .ownNever)
        try second.put("both", "2")
        try second.put("onlyB", "b")
        for database in [first, second] { _ = try database.checkpointer.flush(database) }
        larder.time.advance(milliseconds: 30_000)
        try exchange(larder)
        larder.close()
        let (left, right) = (try larder.database("a"), try larder.database("b"))
        #expect([try left.value("both"), try left.value("onlyA"), try left.value("onlyB")] == ["2", nil, "b"])
        #expect([try right.value("both"), try right.value("onlyA"), try right.value("onlyB")] == ["1", "a", nil])
        #expect(left.policy == .high && right.policy == .low)
        // Entries without their own deadline follow the policy of their new database, counted from the time at which
        // they were stored.
        larder.time.advance(milliseconds: 30_000)
        #expect(try left.value("both") == nil)
        #expect(try right.value("both") == "1")
    }

    /// Otherwise other writers would wait for as long as exchanges go on.
    @Test func exchangesWaitForRoomInTheJournal() throws {
        let larder = try TestLarder { $0.checkpointBytes = 1 << 20 }
        for number in 0..<50 { try larder.database("a").put("k\(number)", String(repeating: "v", count: 4000)) }
        _ = try larder.database("b")
        for _ in 0..<50 {
            try exchange(larder)
            #expect(try larder.engine().journalByteCount < 3 << 20)
        }
        #expect(try larder.database("a").contents().count == 50)
    }

    @Test func anExchangeWithAnEmptyDatabaseMovesTheEntries() throws {
        let larder = try TestLarder()
        try larder.database("a").put("k", "v")
        try exchange(larder)
        #expect(try larder.database("a").value("k") == nil)
        #expect(try larder.database("b").value("k") == "v")
        try exchange(larder)
        #expect(try larder.database("a").value("k") == "v")
        #expect(try larder.database("b").value("k") == nil)
    }

    @Test func anExchangeOfTooManyEntriesOrBytesIsRefused() throws {
        let larder = try TestLarder()
        for index in 0..<10 { try larder.database("a").put("k\(index)", "0123456789") }
        #expect(errorCode { try exchange(larder, most: 9) } == .invalidArgument)
        #expect(errorCode { try exchange(larder, bytes: 99) } == .invalidArgument)
        #expect(try larder.database("a").value("k0") == "0123456789")
        try exchange(larder, most: 10, bytes: 100)
        #expect(try larder.database("b").value("k0") == "0123456789")
    }

    /// A reader of both databases at one instant sees the state either before or after the exchange, and no write is
    /// lost.
    @Test func exchangesAreIsolated() throws {
        let larder = try TestLarder()
        let (first, second) = (try larder.database("a"), try larder.database("b"))
        try first.put("x", "1")
        try second.put("x", "2")
        let engine = try larder.engine()
        let isOver = Atomic<Bool>(false)
        let mixed = Atomic<Int>(0)
        let reader = WorkThread(name: "reader") {
            while !isOver.load(ordering: .relaxed) {
                let parts = [first, second].map {
                    TransactionPart(database: $0, keys: [Key("x")], loadedCount: 1, watches: [])
                }
                _ = try? engine.transact(parts, now: first.now(), bytesMax: .max, .mayBlock) { update in
                    let texts = [0, 1].map { update.current(part: $0, position: 0)?.text }
                    if Set(texts) != ["1", "2"] { mixed.wrappingAdd(1, ordering: .relaxed) }
                    return false
                }
            }
        }
        for _ in 0..<100 { try exchange(larder) }
        isOver.store(true, ordering: .relaxed)
        reader.join()
        #expect(mixed.load(ordering: .relaxed) == 0)
        #expect(try first.value("x") == "1")
    }
}
