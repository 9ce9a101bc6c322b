import LarderPlatform
import LarderTestSupport
import Testing

@testable import LarderEngine

/// Tests of rewrites of the journal. A rewrite removes old segments without writing to LevelDB, so newer segments must
/// have all entries.
@Suite struct RewriteTests {
    /// Returns a larder whose journal has a small size limit.
    private func makeLarder(_ configure: (inout EngineOptions) -> Void = { _ in }) throws -> TestLarder {
        try TestLarder {
            $0.checkpointBytes = 10_000
            $0.journalSegmentBytes = 3000
            configure(&$0)
        }
    }

    /// Writes the same keys until the journal is full.
    private func overwrite(_ database: Database, _ larder: TestLarder, round: Int) throws {
        let engine = try larder.engine()
        repeat {
            for key in 0..<10 { try database.put("k\(key)", "\(round)") }
        } while engine.journalByteCount < larder.options.checkpointBytes
    }

    private func expectSurvivor(_ larder: TestLarder, _ isTrue: (Database) throws -> Bool) throws {
        let crashCopy = try larder.crashCopy()
        let database = try crashCopy.database()
        let contents = try database.contents()
        #expect(try isTrue(database), "\(contents)")
    }

    private static func expected(_ round: Int) -> [String: String] {
        Dictionary(uniqueKeysWithValues: (0..<10).map { ("k\($0)", "\(round)") })
    }

    @Test func aRewriteKeepsOverwrittenKeysInTheJournal() throws {
        let larder = try makeLarder()
        let database = try larder.database()
        let engine = try larder.engine()
        for round in 1...5 {
            try overwrite(database, larder, round: round)
            database.checkpointer.checkpointIfDue()
            #expect(engine.statistics.journalRewrites.read() == round)
            #expect(engine.journalByteCount < 2000)
            let crashCopy = try larder.crashCopy()
            #expect(try crashCopy.database().contents() == Self.expected(round))
        }
        #expect(engine.statistics.checkpoints.read() == 0)
        #expect(try database.flushedStore()?.rawKeys().isEmpty == false)
        #expect(try database.contents() == Self.expected(5))
    }

    @Test func aRewriteKeepsRemovals() throws {
        let larder = try makeLarder()
        let database = try larder.database()
        try database.put("gone", "1")
        try database.flush()
        try database.remove("gone")
        try overwrite(database, larder, round: 1)
        database.checkpointer.checkpointIfDue()
        #expect(try larder.engine().statistics.journalRewrites.read() == 1)
        let crashCopy = try larder.crashCopy()
        #expect(try crashCopy.database().contents() == Self.expected(1))
    }

    @Test func aJournalOfManyDistinctKeysIsWrittenToLevelDB() throws {
        let larder = try makeLarder()
        let database = try larder.database()
        let engine = try larder.engine()
        var count = 0
        while engine.journalByteCount < larder.options.checkpointBytes {
            try database.put("k\(count)", "1")
            count += 1
        }
        database.checkpointer.checkpointIfDue()
        #expect(engine.statistics.journalRewrites.read() == 0)
        #expect(engine.statistics.checkpoints.read() == 1)
    }

    /// After a checkpoint interval, entries that are only in memory and in the journal are written to LevelDB.
    @Test func entriesReachLevelDBAfterTheCheckpointInterval() throws {
        let larder = try makeLarder()
        let database = try larder.database()
        let engine = try larder.engine()
        try overwrite(database, larder, round: 1)
        larder.time.advance(milliseconds: larder.options.checkpointMilliseconds)
        database.checkpointer.checkpointIfDue()
        #expect(engine.statistics.journalRewrites.read() == 0)
        #expect(engine.statistics.checkpoints.read() == 1)
    }

    /// A rewrite includes the entries of all databases, also of those that were not overwritten.
    @Test func aRewriteIncludesTheEntriesOfAllDatabases() throws {
        let larder = try makeLarder()
        for name in ["a", "b", "c"] { try larder.database(name).put("only", name) }
        let database = try larder.database()
        try overwrite(database, larder, round: 1)
        database.checkpointer.checkpointIfDue()
        #expect(try larder.engine().statistics.journalRewrites.read() == 1)
        let crashCopy = try larder.crashCopy()
        for name in ["a", "b", "c"] { #expect(try crashCopy.database(name).contents() == ["only": name]) }
        #expect(try crashCopy.database().contents() == Self.expected(1))
    }

    @Test func aRewriteThatCannotBeCommittedLosesNothing() throws {
        let fault = FailingCommitTests.Fault()
        let larder = try makeLarder { $0.beforeCommit = fault.hook }
        let database = try larder.database()
        let engine = try larder.engine()
        try overwrite(database, larder, round: 1)
        fault.isOn.value = true
        database.checkpointer.checkpointIfDue()
        #expect(engine.statistics.journalRewrites.read() == 0)
        try expectSurvivor(larder) { try $0.contents() == Self.expected(1) }
        #expect(try database.contents() == Self.expected(1))
        fault.isOn.value = false
        database.checkpointer.checkpointIfDue()
        #expect(engine.statistics.checkpoints.read() == 1, "a checkpoint runs because the rewrite failed")
        try overwrite(database, larder, round: 2)
        database.checkpointer.checkpointIfDue()
        #expect(engine.statistics.journalRewrites.read() == 1)
        try expectSurvivor(larder) { try $0.contents() == Self.expected(2) }
    }

    /// Old segments may be removed only after the newer ones are on disk.
    @Test(arguments: ["fsync", "write", "create", "rename"])
    func aJournalThatFailsDuringARewriteLosesNothing(failing: String) throws {
        let isFailing = Guarded(false)
        let larder = try makeLarder {
            $0.journalFaults = JournalFaults { call, _ in
                "\(call)".hasPrefix(failing) && isFailing.value ? .fail(EIO) : nil
            }
        }
        let database = try larder.database()
        let engine = try larder.engine()
        try overwrite(database, larder, round: 1)
        isFailing.value = true
        database.checkpointer.checkpointIfDue()
        #expect(engine.statistics.journalRewrites.read() == 0)
        try expectSurvivor(larder) { try $0.contents() == Self.expected(1) }
        isFailing.value = false
        database.checkpointer.checkpointIfDue()
        #expect(try database.contents() == Self.expected(1))
        try database.put("more", "1")
        try expectSurvivor(larder) { try $0.value("more") == "1" }
        try expectSurvivor(larder) { try $0.value("k3") == "1" }
    }

    /// LevelDB has older data than the rewritten journal. If the journal is truncated, that data must not be served as
    /// current.
    @Test func truncatingARewrittenJournalIsReportedAsDamage() throws {
        let larder = try makeLarder()
        let database = try larder.database()
        for key in 0..<10 { try database.put("k\(key)", "old") }
        try database.flush()
        try overwrite(database, larder, round: 1)
        database.checkpointer.checkpointIfDue()
        #expect(try larder.engine().statistics.journalRewrites.read() == 1)
        let segment = try #require(larder.journalSegments.last)
        let whole = try Files.read(segment).count
        for count in Array(stride(from: JournalFormat.segmentHeaderBytes, to: whole, by: 17)) + [whole] {
            let crashCopy = try larder.crashCopy()
            try Files.truncate(try #require(crashCopy.journalSegments.last), to: count)
            let code = errorCode { try #expect(crashCopy.database().contents() == Self.expected(1)) }
            #expect(code == (count == whole ? nil : .damaged), "\(count) of \(whole) bytes")
        }
    }
}
