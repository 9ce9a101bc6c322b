import LarderPlatform
import LarderTestSupport
import LarderVocabulary
import Synchronization
import Testing

@testable import LarderEngine

/// Tests of entries that were evicted from LevelDB while the journal still has them. A crash restores such an entry,
/// but not after it was removed.
@Suite struct EvictedInJournalTests {
    enum Way: CaseIterable { case entries, tables }

    /// Writes the entries to LevelDB, and evicts all of them there. The journal keeps them.
    private func evict(_ database: Database, by way: Way = .entries) throws {
        let store = try #require(try database.flushedStore())
        switch way {
        case .entries:
            let pass = EvictionPass(
                database: database, store: store, estimate: EvictionEstimate(now: database.now(), residence: 1000),
                threshold: .infinity, rangeBytes: 1 << 20, wantedBytes: 1 << 20)
            #expect(try pass.run(from: [KeyKind.record], leastShare: 0).hasRemoved)
        case .tables:
            store.flushMemtable()
            let removal = TableRemoval(database: database, store: store, wantedBytes: .max)
            #expect(try removal.run(now: database.now()).hasRemoved)
        }
        #expect(try database.contents() == [:])
    }

    /// Returns a database whose entries were evicted, and are in the journal.
    private func evicted(
        _ larder: TestLarder, _ keys: [String] = ["a"], in name: String = "books", by way: Way = .entries
    ) throws -> Database {
        let database = try larder.database(name, policy: .never)
        for key in keys { try database.put(key, "1") }
        try evict(database, by: way)
        return database
    }

    private func contentsAfterCrash(_ larder: TestLarder, _ name: String = "books") throws -> [String: String] {
        let copy = try larder.crashCopy()
        defer { copy.close() }
        return try copy.database(name).contents()
    }

    private func removeStored(_ key: String, in database: Database) throws {
        try database.commit([Key(key)], loading: .headers) { $0.removeStored(0) }
    }

    @Test(arguments: Way.allCases) func aRemovedEntryDoesNotReturn(_ way: Way) throws {
        let larder = try TestLarder()
        let database = try evicted(larder, ["a", "b"], by: way)
        #expect(try contentsAfterCrash(larder) == ["a": "1", "b": "1"])
        try removeStored("a", in: database)
        #expect(try contentsAfterCrash(larder) == ["b": "1"])
        try larder.engine().save()
        #expect(try contentsAfterCrash(larder) == [:])
    }

    @Test func otherRemovalsOfAbsentKeysCommitNothing() throws {
        let larder = try TestLarder()
        let database = try larder.database(policy: .never)
        func expectNoCommit(line: Int = #line) throws {
            let bytes = try larder.engine().journalByteCount
            try removeStored("none", in: database)
            #expect(try larder.engine().journalByteCount == bytes, "line \(line)")
        }
        try database.put("a", "1")
        try database.flush()
        try expectNoCommit()
        // The journal no longer has the entry when it is evicted.
        try larder.engine().save()
        try evict(database)
        try database.put("b", "1")
        try expectNoCommit()
        // The journal has the entry until a checkpoint.
        try evict(database)
        try larder.engine().save()
        try database.put("c", "1")
        try expectNoCommit()
    }

    /// A failed commit is rolled back by a replay of the journal.
    @Test func aRemovedEntryDoesNotReturnAfterARollback() throws {
        let isFailing = Guarded(false)
        let larder = try TestLarder {
            $0.beforeCommit = { () throws(LarderError) in
                if isFailing.value { throw LarderError(.io, "a test says so", operation: "commit") }
            }
        }
        let database = try evicted(larder)
        try removeStored("a", in: database)
        isFailing.value = true
        #expect(errorCode { try database.put("b", "1") } == .commitFailed)
        isFailing.value = false
        #expect(try database.contents() == [:])
    }

    @Test func anExpiredEntryDoesNotReturn() throws {
        let larder = try TestLarder()
        let database = try larder.database(policy: .never)
        try database.put("a", "1", rule: .own(database.now() + 1000))
        try evict(database)
        larder.time.advance(milliseconds: 1000)
        #expect(try contentsAfterCrash(larder) == [:])
    }

    @Test(arguments: [false, true]) func aPurgeIncludesEvictedEntries(isOfAnotherLarder: Bool) throws {
        let larder = try TestLarder()
        let database = try evicted(larder)
        let prefix = Array("a".utf8)
        let version = ChangeVersion(time: database.now())
        try database.purge(isOfAnotherLarder ? .upTo(version, prefix: prefix, tags: nil) : .prefix(prefix))
        #expect(try contentsAfterCrash(larder) == [:])
    }

    @Test func exchangedDatabasesDoNotGetEvictedEntriesBack() throws {
        let larder = try TestLarder()
        let first = try evicted(larder, in: "first")
        let second = try larder.database("second", policy: .never)
        try second.put("b", "2")
        try larder.engine().exchange(first, second, entriesMax: 10, bytesMax: 1000)
        #expect(try contentsAfterCrash(larder, "first") == ["b": "2"])
        #expect(try contentsAfterCrash(larder, "second") == [:])
        // The journal may be empty when an eviction is noted.
        try larder.engine().save()
        first.isEvictedInJournal.store(true, ordering: .relaxed)
        try larder.engine().exchange(first, second, entriesMax: 10, bytesMax: 1000)
        #expect(try second.contents() == ["b": "2"])
    }

    @Test func anExchangeThatEvictionsInterruptAllTheTimeFails() throws {
        /// An eviction whenever the time is read.
        final class EvictingTime: TimeSource {
            let evicting = Guarded<Database?>(nil)
            private let calls = Atomic<Int64>(0)

            func wallMilliseconds() -> Int64 {
                evicting.value?.isEvictedInJournal.store(true, ordering: .relaxed)
                return 1_700_000_000_000
            }

            // Time that stands still is not read again.
            func monotonicMilliseconds() -> Int64 { calls.wrappingAdd(1, ordering: .relaxed).newValue }
        }
        let (larder, time) = (try TestLarder(), EvictingTime())
        let engine = try Engine.open(larder.path, options: larder.options, time: time)
        defer {
            time.evicting.value = nil
            engine.shutdown()
        }
        let (first, second) = (try engine.database("first"), try engine.database("second"))
        try second.put("b", "2")
        time.evicting.value = first
        #expect(errorCode { try engine.exchange(first, second, entriesMax: 10, bytesMax: 1000) } == .conflict)
        #expect(try second.contents() == ["b": "2"])
    }
}
