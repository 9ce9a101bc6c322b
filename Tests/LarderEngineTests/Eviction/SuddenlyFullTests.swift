import LarderPlatform
import LarderTestSupport
import LarderVocabulary
import Testing

@testable import LarderEngine

/// Tests of a file system that other programs fill suddenly.
extension FullFileSystemTests {
    /// Writes, removals and checkpoints continue. The test fills the disk only twice: if it is filled more often, all
    /// remaining entries may be in level 0 of LevelDB, and then writes may fail.
    @Test func noWriteFailsWhenOtherProgramsFillTheDisk() throws {
        let disk = try SmallDisk(bytes: Self.diskBytes)
        let larder = try larder(disk)
        let database = try larder.database(policy: .never)
        let half = Self.diskBytes / 2 / Self.valueBytes
        for number in 0..<half { try put(database, number) }
        try larder.maintain()
        disk.fill(leaving: 0)
        try database.remove("key:\(half - 1)")
        #expect(try database.get(Key("key:\(half - 1)")) == nil)
        let next = half + 50
        for number in half..<next { try put(database, number) }
        #expect(try database.get(Key("key:\(next - 1)")) != nil)
        #expect(try check(database, 0..<next) > 0)
        // A new database can be created too.
        disk.fill(leaving: 0)
        try larder.database("other").put("a", "1")
        #expect(try larder.engine().statistics.evicted.read() > 0)
        try Files.remove(disk.filler)
        larder.close()
        #expect(try check(try larder.database(), 0..<next) > 0)
    }

    /// If the disk is full, an event loop leaves its writes to a thread that may evict entries.
    @Test func onAFullDiskEventLoopsLeaveEvictionToOtherThreads() throws {
        let disk = try SmallDisk(bytes: Self.diskBytes)
        let larder = try larder(disk)
        let database = try larder.database(policy: .never)
        for number in 0..<1000 { try put(database, number) }
        try larder.maintain()
        try larder.engine().save()
        disk.fill(leaving: 0)
        let bytes = value(1000)
        let ticket = try #require(
            try database.perform([Key("key:1000")], .none, .mayBlock, now: database.now(), needsFiles: true) {
                update in
                bytes.withUnsafeBytes { update.put(0, payload: $0) }
            })
        let pipeline = try larder.engine().pipeline
        // Commits as an event loop does at the end of an iteration.
        pipeline.commitNow()
        try pipeline.wait(for: ticket)
        #expect(try database.get(Key("key:1000")) != nil)
        #expect(try larder.engine().statistics.commitFailures.read() == 0)
    }

    /// There is nothing to evict. An outbox, which is never evicted, uses nearly all of the space. The few entries of
    /// the other database have newer values in memory, so none of its tables can be removed.
    @Test func evictionEndsIfThereIsNothingToEvict() throws {
        let disk = try SmallDisk(bytes: 40 << 20)
        let larder = try larder(disk, limit: 30 << 20)
        let outbox = try larder.database("0" + CompanionName.ending, policy: .never)
        for number in 0..<700 { try put(outbox, number) }
        let database = try larder.database("0")
        for number in 0..<4 { try put(database, number) }
        try larder.engine().save()
        // Entries with newer values in memory are not evicted.
        for number in 0..<4 { try put(database, number) }
        disk.fill(leaving: 0)
        let engine = try larder.engine()
        let limit = EvictionLimit(
            asked: 30 << 20, database: nil, databases: [outbox, database], disk: engine.context.larder.disk)
        var rounds = EvictionRounds(context: engine.context)
        var steps = 0
        while steps < 500 {
            let progress = try? rounds.step(limit, limit.databases, over: 8 << 20, isUrgent: false)
            if progress ?? .nothingLeft == .nothingLeft { break }
            steps += 1
        }
        #expect(steps < 500)
        // Writes may fail from here on, but reads continue.
        for number in 4..<40 { _ = errorCode { try put(database, number) } }
        #expect(try check(outbox, 0..<700) == 700)
    }

    /// In a small larder, the key ranges of all tables overlap. Writes on a full disk must continue even then.
    @Test(arguments: [6, 10, 12, 14]) func writesToASmallLarderContinueOnAFullDisk(mebibytes: Int) throws {
        let disk = try SmallDisk(bytes: 80 << 20)
        let larder = try TestLarder(below: disk.path) { $0.diskBytesMax = 1 << 30 }
        let database = try larder.database(policy: .never)
        let count = mebibytes << 20 / Self.valueBytes
        for number in 0..<count { try put(database, number) }
        try larder.maintain()
        disk.fill(leaving: 0)
        for number in count..<(count + 300) { try put(database, number) }
        #expect(try check(database, 0..<(count + 300)) > 0)
        #expect(try database.get(Key("key:\(count + 299)")) != nil)
        #expect(try larder.engine().statistics.commitFailures.read() == 0)
        larder.close()
        #expect(try check(try larder.database(), 0..<(count + 300)) > 0)
    }

    @Test("a larder without a limit keeps its ledger after a start on a full disk") func factsAfterAStartOnAFullDisk()
        throws
    {
        let disk = try SmallDisk(bytes: 40 << 20)
        let larder = try larder(disk, limit: nil)
        let database = try larder.database("0", policy: .never)
        try database.put("a", "1")
        try larder.engine().ledger.set("functions", to: [7])
        try larder.maintain()
        disk.fill(leaving: 0)
        larder.close()
        disk.fill(leaving: 0)
        #expect(try larder.engine().ledger.value("functions") == [7])
        #expect(try larder.database("0").get(Key("a")) != nil)
        _ = try larder.database("0").purge()
    }

    /// Opening a database, writing to it and reserving sequence numbers each evict entries until they have enough
    /// space.
    @Test func allDatabasesAreServedAfterAStartOnAFullDisk() throws {
        let disk = try SmallDisk(bytes: Self.diskBytes)
        let larder = try larder(disk)
        let names = ["a", "b", "c"]
        for name in names {
            let database = try larder.database(name, policy: .never)
            for number in 0..<300 { try put(database, number) }
        }
        try larder.maintain()
        larder.close()
        disk.fill(leaving: 0)
        for name in names + ["new"] {
            let database = try larder.database(name, policy: .never)
            _ = try check(database, 0..<300)
            try put(database, 300)
            #expect(try database.get(Key("key:300")) != nil, "\(name)")
        }
        #expect(try larder.engine().statistics.commitFailures.read() == 0)
    }

    /// Opens the files of a larder that was killed when two databases had 30 MB of entries only in the journal.
    private func openLongJournal(_ larder: TestLarder) throws {
        let killed = try TestLarder(inMemory: false) {
            ($0.checkpointBytes, $0.memoryBytes) = (1 << 30, 1 << 30)
            $0.journalSegmentBytes = 4 << 20
        }
        for number in 0..<1500 { try put(try killed.database(number % 2 == 0 ? "a" : "b", policy: .never), number) }
        #expect(try killed.engine().journalByteCount > 1500 * Self.valueBytes)
        try Files.copy(killed.path, to: larder.path)
    }

    private func count(_ larder: TestLarder) throws -> Int {
        try check(try larder.database("a"), 0..<1600) + check(try larder.database("b"), 0..<1600)
    }

    /// A larder without a limit was killed, and its long journal is then on a file system with little space. The oldest
    /// part of the journal does not fit into LevelDB, but its removal frees the space for the other parts.
    @Test(arguments: [34, 38]) func writesContinueIfTheJournalIsLongerThanTheFreeSpace(mebibytes: Int) throws {
        let disk = try SmallDisk(bytes: mebibytes << 20)
        let larder = try larder(disk)
        try openLongJournal(larder)
        for number in 1500..<1600 { try put(try larder.database(number % 2 == 0 ? "a" : "b"), number) }
        #expect(try larder.engine().journalByteCount < 8 << 20)
        #expect(try larder.engine().statistics.evicted.read() > 0)
        let found = try count(larder)
        #expect(found > 300, "\(found)")
        #expect(try larder.database("b").get(Key("key:1599")) != nil)
        larder.close()
        #expect((1...found).contains(try count(larder)), "no evicted entry reappears")
    }

    /// LevelDB compresses these entries, so all of them fit.
    @Test func entriesOfALongJournalThatCompressWellAreKept() throws {
        let killed = try TestLarder(inMemory: false) { ($0.checkpointBytes, $0.memoryBytes) = (1 << 30, 1 << 30) }
        let value = String(repeating: "x", count: 2000)
        for number in 0..<15_000 { _ = try killed.database(policy: .never).putLater("\(number)", value) }
        try killed.engine().pipeline.waitForAllCommits()
        let disk = try SmallDisk(bytes: try killed.engine().journalByteCount + (4 << 20))
        let larder = try larder(disk)
        try Files.copy(killed.path, to: larder.path)
        let database = try larder.database()
        try database.put("last", value)
        #expect(try larder.engine().statistics.evicted.read() == 0)
        try database.flush()
        #expect(try larder.engine().journalByteCount < 1 << 20)
        #expect(try (0..<15_000).allSatisfy { try database.get(Key("\($0)")) != nil })
    }

    @Test("without a limit, a long journal is written in parts, and nothing is evicted")
    func aLongJournalIsWrittenInParts() throws {
        let disk = try SmallDisk(bytes: 76 << 20)
        let larder = try larder(disk, limit: nil)
        try openLongJournal(larder)
        let statistics = try larder.engine().statistics
        try larder.engine().save()
        #expect(try larder.engine().journalByteCount == 0)
        #expect(statistics.checkpoints.read() > 1)
        #expect(try count(larder) == 1500)
        larder.close()
        #expect(try count(larder) == 1500)
    }

    /// If too little space is left, the error of a write reports this. Reads continue, and writes resume when there is
    /// space again.
    @Test func theErrorOfAWriteReportsThatTheFileSystemIsFull() throws {
        let disk = try SmallDisk(bytes: Self.diskBytes)
        let larder = try larder(disk)
        let database = try larder.database(policy: .never)
        for number in 0..<5 { try put(database, number) }
        try larder.maintain()
        disk.fill(leaving: 0)
        var failure: LarderError?
        var kept = 5
        while failure == nil, kept < 1000 {
            do {
                try put(database, kept)
                kept += 1
            } catch let error as LarderError {
                failure = error
            }
        }
        let error = try #require(failure)
        #expect(error.message.contains("No space left on device"))
        #expect(error.message.contains("the file system is full"))
        _ = try check(database, 0..<kept)
        try Files.remove(disk.filler)
        try larder.maintain()
        try put(database, kept)
        #expect(try database.get(Key("key:\(kept)")) != nil)
    }

    @Test func theReserveFileIsRemovedWhenSpaceIsNeeded() throws {
        let disk = try SmallDisk(bytes: Self.diskBytes)
        let larder = try larder(disk)
        let path = larder.path + "/" + ReserveFile.name
        let engine = try larder.engine()
        try larder.maintain()
        #expect(FileSystem.space(path) >= 1 << 20)
        #expect(engine.diskBytes > 1 << 20)
        let budget = engine.context.larder.disk
        // The reserve, a file that only takes space, is removed when space is needed, and created again when space is
        // available.
        disk.fill(leaving: 0)
        #expect(budget.relieve(4096, takesReserve: true))
        #expect(!FileSystem.exists(path))
        try Files.remove(disk.filler)
        try larder.maintain()
        #expect(FileSystem.exists(path))
        // Without a limit there is no reserve.
        engine.changeDiskLimit(to: nil)
        try larder.maintain()
        #expect(!FileSystem.exists(path))
    }
}
