import LarderPlatform
import LarderTestSupport
import Testing

@testable import LarderEngine

@Suite struct SweepTests {
    /// Returns the number of LevelDB keys of one kind.
    private func raw(_ database: Database, _ kind: UInt8) throws -> Int {
        try database.rawKeys().count { $0.first == kind }
    }

    @Test func theSweepRemovesEntriesAndIndexKeys() throws {
        let larder = try TestLarder()
        let database = try larder.database(policy: .high)
        let now = larder.time.wallMilliseconds()
        for number in 0..<500 {
            try database.put("governed\(number)", "v")
            try database.put("own\(number)", "v", rule: .own(now + 30_000 + Int64(number)))
        }
        try database.put("never", "v", rule: .ownNever)
        larder.time.advance(milliseconds: 70_000)
        try larder.maintain()
        #expect(try database.rawKeys() == [[0] + Array("format".utf8), [1] + Array("never".utf8)])
        #expect(try larder.engine().statistics.expiredSwept.read() == 1000)
    }

    @Test func sweepStepsAreBoundedAndResume() throws {
        let larder = try TestLarder()
        let database = try larder.database(policy: .high)
        let count = Sweeper.recordsPerStep * 3 + 7
        let keys = (0..<count).map { Key("k\($0)") }
        try database.commit(keys, loading: .none) { update in
            for index in keys.indices { [1, 2, 3].withUnsafeBytes { update.put(index, payload: $0) } }
        }
        let engine = try larder.engine()
        engine.maintain()
        larder.time.advance(milliseconds: 61_024)
        for step in 1...3 {
            #expect(engine.maintain())
            // Each round runs one step of the index sweep and one step of the scan for entries without index keys.
            let swept = engine.statistics.expiredSwept.read()
            #expect(swept > 0 && swept <= 2 * step * Sweeper.recordsPerStep)
            #expect(try database.count(includingExpired: true) == count - swept)
        }
        #expect(!engine.maintain())
        #expect(try database.count(includingExpired: true) == 0)
    }

    @Test func staleIndexKeysAreDroppedAndFreshEntriesStay() throws {
        // Without memory for entries, the engine does not know the index key of an entry that it overwrites. The index
        // key then stays until the sweep finds it.
        let larder = try TestLarder { $0.memoryBytes = 0 }
        let database = try larder.database(policy: .high)
        let now = larder.time.wallMilliseconds()
        func flush() throws { _ = try database.flushedStore() }
        try database.put("own", "1", rule: .own(now + 5000))
        try flush()
        try database.put("own", "2", rule: .own(now + 900_000))
        try database.put("governed", "1")
        try flush()
        larder.time.advance(milliseconds: 50_000)
        try database.put("governed", "2")
        try database.put("changed", "1", rule: .own(now + 51_000))
        try database.put("removed", "1", rule: .own(now + 52_000))
        try flush()
        try database.put("changed", "2", rule: .ownNever)
        try database.commit([Key("removed")], loading: .none) { $0.remove(0) }
        #expect(try raw(database, KeyKind.ownDeadline) == 4)
        #expect(try raw(database, KeyKind.governed) == 2)
        larder.time.advance(milliseconds: 20_000)
        try larder.maintain()
        #expect(try database.contents() == ["own": "2", "governed": "2", "changed": "2"])
        #expect(try raw(database, KeyKind.ownDeadline) == 1)
        #expect(try raw(database, KeyKind.governed) == 1)
        larder.time.advance(milliseconds: 2_000_000)
        try larder.maintain()
        #expect(try database.rawKeys().count == 2)
    }

    @Test func repeatedOverwritesDoNotGrowTheExpiryIndex() throws {
        let larder = try TestLarder()
        let database = try larder.database(policy: .middle)
        var most = 0
        for step in 0..<3000 {
            larder.time.advance(milliseconds: 3600)
            try database.put("hot", "\(step)", rule: step % 2 == 0 ? .governed : .own(database.now() + 3_600_000))
            if step % 20 == 0 {
                try larder.maintain()
                most = max(most, try database.rawKeys().count)
            }
        }
        #expect(most <= 2 * 130)
    }

    /// If an entry is in memory when it is overwritten or removed, its index key is removed too.
    @Test func changingAnEntryInMemoryRemovesItsIndexKey() throws {
        let larder = try TestLarder { $0.memoryBytes = 1 << 20 }
        let database = try larder.database(policy: .middle)
        for step in 0..<200 {
            larder.time.advance(milliseconds: 60_000_000)
            try database.commit([Key("session")], loading: .records) { update in
                let rule = DeadlineRule.own(update.now + 1_800_000 + Int64(step) * 100_000)
                Array("v".utf8).withUnsafeBytes { update.put(0, payload: $0, rule: rule) }
            }
            try database.put("unique\(step)", "v")
            if step % 3 == 0 { _ = try database.flushedStore() }
            try database.remove("unique\(step)")
            if step % 2 == 0 { _ = try database.flushedStore() }
        }
        #expect(try raw(database, KeyKind.ownDeadline) == 1)
        #expect(try raw(database, KeyKind.governed) == 0)
        #expect(try raw(database, KeyKind.record) == 1)
    }

    /// The sweep finds an expired record in LevelDB, for which memory has a newer value. The record's index key must
    /// stay, because a crash may lose the newer value.
    @Test func indexKeysStayWhileANewerValueIsOnlyInMemory() throws {
        let larder = try TestLarder { $0.memoryBytes = 1 << 20 }
        let database = try larder.database(policy: .never)
        try database.put("k", "1", rule: .own(database.now() + 5000))
        let store = try #require(try database.flushedStore())
        larder.time.advance(milliseconds: 20_000)
        try database.put("k", "2", rule: .ownNever)
        var sweeper = Sweeper()
        _ = try sweeper.step(database)
        #expect(try store.rawKeys().count { $0.first == KeyKind.ownDeadline } == 1)
        #expect(try database.value("k") == "2")
        #expect(try raw(database, KeyKind.ownDeadline) == 0)
        #expect(try raw(database, KeyKind.record) == 1)
    }

    /// During a checkpoint, an entry can already be in LevelDB but still be marked as dirty in memory. If it expires
    /// then, a later sweep removes it.
    @Test func entriesThatExpireDuringACheckpointAreSweptLater() throws {
        let larder = try TestLarder { $0.memoryBytes = 1 << 20 }
        let database = try larder.database(policy: .never)
        let deadline = database.now() + 5000
        try database.put("k", "1", rule: .own(deadline))
        let store = try #require(database.durableState.store)
        let pass = try #require(CheckpointPass(database, upTo: database.pipeline.lastDecided, room: .max))
        try pass.write(progress: {}, sync: {})
        larder.time.advance(milliseconds: 20_000)
        var sweeper = Sweeper()
        _ = try sweeper.step(database)
        pass.finish()
        #expect(try store.rawKeys().count { $0.first == KeyKind.record } == 1)
        #expect(try store.rawKeys().count { $0.first == KeyKind.ownDeadline } == 1)
        larder.time.advance(milliseconds: Sweeper.returnMilliseconds)
        _ = try sweeper.step(database)
        #expect(try store.rawKeys().allSatisfy { $0.first == KeyKind.metadata })
    }

    /// Entries that are stored under the policy "never" get no index keys. After a change of policy, the sweep must
    /// find them anyway.
    @Test func entriesWithoutIndexKeysAreSweptAfterAPolicyChange() throws {
        let larder = try TestLarder()
        let database = try larder.database(policy: .never)
        let count = Sweeper.recordsPerStep * 2 + 3
        for number in 0..<count { try database.put("k\(number)", "v") }
        try database.put("own", "v", rule: .own(database.now() + 80_000_000))
        #expect(try raw(database, KeyKind.governed) == 0)
        larder.time.advance(milliseconds: 1000)
        try database.setPolicy(.high)
        #expect(try larder.engine().maintain())
        // After a restart, the scan of all entries starts from the beginning.
        larder.close()
        let again = try larder.database()
        try larder.maintain()
        #expect(try raw(again, KeyKind.governed) == count)
        #expect(try again.contents().count == count + 1)
        larder.time.advance(milliseconds: 62_000)
        try larder.maintain()
        #expect(try raw(again, KeyKind.record) == 1)
        #expect(try raw(again, KeyKind.governed) == 0)
        larder.close()
        #expect(try !larder.database().durableState.isUnindexed)
    }

    @Test func entriesExpiredByANewPolicyAreSwept() throws {
        let larder = try TestLarder()
        let database = try larder.database(policy: .never)
        try database.put("old", "v")
        larder.time.advance(milliseconds: 3_600_000)
        try database.put("new", "v")
        try database.setPolicy(.high)
        try larder.maintain()
        #expect(try database.rawKeys().filter { $0.first == KeyKind.record } == [[1] + Array("new".utf8)])
        #expect(try database.contents() == ["new": "v"])
    }

    @Test func aSweepInterruptedByAPolicyWithoutExpiryStartsOver() throws {
        let larder = try TestLarder()
        let database = try larder.database(policy: .never)
        for number in 0..<Sweeper.recordsPerStep * 2 { try database.put("k\(number)", "v") }
        try database.setPolicy(.middle)
        #expect(try larder.engine().maintain())
        try database.setPolicy(.never)
        try database.put("a", "stored behind where the pass was")
        try larder.maintain()
        try database.setPolicy(.middle)
        try larder.maintain()
        #expect(try raw(database, KeyKind.governed) == Sweeper.recordsPerStep * 2 + 1)
        larder.time.advance(milliseconds: 100_000_000)
        try larder.maintain()
        #expect(try database.rawKeys().count == 1)
    }

    /// One record that cannot be read does not stop the sweep of the others.
    @Test func anUnreadableRecordDoesNotStopTheSweep() throws {
        // Keeps no entries in memory; otherwise reads would not see the bytes that the test puts into LevelDB.
        let larder = try TestLarder { $0.memoryBytes = 0 }
        let database = try larder.database(policy: .high)
        for name in ["a", "b", "c"] { try database.put(name, "v") }
        try larder.maintain()
        let store = try #require(database.durableState.store)
        try store.rawPut(Key("b").stored, [9, 9, 9])
        try store.rawPut([KeyKind.ownDeadline, 1], [0])
        #expect(errorCode { _ = try database.value("b") } == .damaged)
        larder.time.advance(milliseconds: 62_000)
        try larder.maintain()
        #expect(try database.rawKeys().filter { $0.first == KeyKind.record } == [Key("b").stored])
        #expect(try raw(database, KeyKind.ownDeadline) == 0)
        #expect(try database.purge(.prefix([])).entries == 1)
        #expect(try raw(database, KeyKind.record) == 0)
    }

    @Test func aLongerPolicyKeepsIndexKeysOfSurvivingEntries() throws {
        let larder = try TestLarder()
        let database = try larder.database(policy: .high)
        try database.put("a", "v")
        larder.time.advance(milliseconds: 30_000)
        try database.setPolicy(.middle)
        larder.time.advance(milliseconds: 60_000)
        try larder.maintain()
        #expect(try database.value("a") == "v")
        #expect(try raw(database, KeyKind.governed) == 1)
        larder.time.advance(milliseconds: 3_600_000)
        try larder.maintain()
        #expect(try database.rawKeys().count == 1)
    }

    /// An entry that expires before a checkpoint is not written to LevelDB, and no older version comes back.
    @Test func entriesThatExpireInMemoryAreNotWrittenToLevelDB() throws {
        let larder = try TestLarder()
        let database = try larder.database(policy: .high)
        try database.put("a", "1", rule: .ownNever)
        #expect(try raw(database, KeyKind.record) == 1)
        for number in 0..<100 { try database.put("k\(number)", "v") }
        try database.put("a", "2")
        larder.time.advance(milliseconds: 62_000)
        try larder.maintain()
        #expect(try database.rawKeys() == [[0] + Array("format".utf8)])
        #expect(try larder.engine().statistics.expiredSwept.read() == 101)
        larder.close()
        #expect(try larder.database().contents() == [:])
    }

    /// Entries that live for a day or longer have no index key, and are found anyway.
    @Test func longLivedEntriesAreSweptWithoutAnIndex() throws {
        let larder = try TestLarder()
        let database = try larder.database(policy: .lowest)
        for number in 0..<1000 { try database.put("k\(number)", "v") }
        try database.put("own", "v", rule: .own(database.now() + 86_400_000))
        try database.put("kept", "v", rule: .ownNever)
        #expect(try raw(database, KeyKind.governed) == 0)
        #expect(try raw(database, KeyKind.ownDeadline) == 0)
        #expect(try raw(database, KeyKind.record) == 1002)
        larder.time.advance(milliseconds: 604_800_000)
        for _ in 0..<4 { try larder.maintain() }
        #expect(try database.rawKeys().filter { $0[0] == KeyKind.record } == [[1] + Array("kept".utf8)])
        #expect(try larder.engine().statistics.expiredSwept.read() == 1001)
    }

    @Test func purgeExpiredRemovesExpiredEntriesOnly() throws {
        let larder = try TestLarder()
        let database = try larder.database(policy: .high)
        for number in 0..<1500 { try database.put("old\(number)", "value") }
        larder.time.advance(milliseconds: 60_000)
        for number in 0..<10 { try database.put("new\(number)", "value") }
        let report = try database.purge(.expired(merges: true))
        #expect(report.entries == 1500)
        #expect(report.bytes == (0..<1500).reduce(0) { $0 + "old\($1)".utf8.count + 5 })
        #expect(try database.count(includingExpired: true) == 10)
        #expect(try raw(database, KeyKind.governed) == 10)
        #expect(try database.purge(.expired(merges: true)) == PurgeReport())
    }

    /// `purgeExpired` must not wait for a checkpoint, which can take seconds if other databases have large values. So
    /// it leaves the compaction of the tables to the maintenance.
    @Test(.timeLimit(.minutes(10))) func purgeExpiredWithoutMergeDoesNotWaitForACheckpoint() throws {
        let larder = try TestLarder()
        let database = try larder.database(policy: .high)
        for number in 0..<600 { try database.put("old\(number)", "value") }
        larder.time.advance(milliseconds: 60_000)
        try database.put("new", "value")
        let gate = Gate(isClosed: true)
        let checkpoint = WorkThread(name: "checkpoint") { [checkpointer = database.checkpointer] in
            checkpointer.withTurn { gate.pass() }
        }
        gate.waitUntil()
        let report = try database.purge(.expired(merges: false))
        gate.open()
        checkpoint.join()
        #expect(report.entries == 600)
        #expect(report.bytes == (0..<600).reduce(0) { $0 + "old\($1)".utf8.count + 5 })
        #expect(try database.count(includingExpired: true) == 1)
        try larder.maintain()
        #expect(try larder.engine().statistics.compactions.read() == 1)
        #expect(try database.purge(.expired(merges: false)) == PurgeReport())
    }
}

/// Tests that the disk space of swept entries is reclaimed.
@Suite struct CompactionTests {
    private func filled(_ configure: (inout EngineOptions) -> Void) throws -> TestLarder {
        let larder = try TestLarder {
            $0.compression = false
            $0.writeBufferBytes = 256 << 10
            $0.memoryBytes = 0
            configure(&$0)
        }
        let database = try larder.database(policy: .high)
        for number in 0..<600 { try database.put("k\(number)", String(repeating: "x", count: 10_000)) }
        _ = try database.flushedStore()
        larder.time.advance(milliseconds: 62_000)
        return larder
    }

    @Test func sweptSpaceIsReturnedToTheDisk() throws {
        let larder = try filled { $0.compactionBytesMin = 1 << 20 }
        let database = try larder.database()
        #expect(database.byteCountOnDisk() > 5_000_000)
        try larder.maintain()
        #expect(try larder.engine().statistics.compactions.read() == 1)
        #expect(database.byteCountOnDisk() < 1_000_000)
        try larder.maintain()
        #expect(try larder.engine().statistics.compactions.read() == 1)
    }

    @Test func aLittleGarbageIsNotCompacted() throws {
        let larder = try filled { $0.compactionBytesMin = 100 << 20 }
        try larder.maintain()
        #expect(try larder.engine().statistics.expiredSwept.read() == 600)
        #expect(try larder.engine().statistics.compactions.read() == 0)
    }

    @Test func littleGarbageInALargeDatabaseIsNotCompacted() throws {
        let larder = try filled { $0.compactionBytesMin = 1 << 20 }
        let database = try larder.database()
        for number in 0..<1500 { try database.put("fresh\(number)", String(repeating: "x", count: 10_000)) }
        try larder.maintain()
        #expect(try larder.engine().statistics.compactions.read() == 0)
        #expect(try database.count(includingExpired: true) == 1500)
    }

    /// The disk space of removed entries is reclaimed too, both while the larder is idle and after a restart.
    @Test(arguments: [false, true], [false, true])
    func deletedSpaceIsReturnedToTheDisk(byPrefix: Bool, restarts: Bool) throws {
        let larder = try TestLarder {
            $0.compression = false
            $0.memoryBytes = 0
        }
        let database = try larder.database(policy: .never)
        let value = String(repeating: "x", count: 60_000)
        for number in 0..<500 { try database.put("k\(number)", value) }
        try database.put("stays", value)
        _ = try database.flushedStore()
        try larder.maintain()
        #expect(database.byteCountOnDisk() > 29_000_000)
        if byPrefix {
            #expect(try database.purge(.prefix([UInt8(ascii: "k")])).entries == 500)
        } else {
            for number in 0..<500 { try database.remove("k\(number)") }
        }
        if restarts { larder.close() } else { _ = try database.flushedStore() }
        let again = try larder.database()
        try larder.maintain()
        #expect(again.byteCountOnDisk() < 5_000_000)
        #expect(try again.contents() == ["stays": value])
        let compactions = try larder.engine().statistics.compactions.read()
        try larder.maintain()
        #expect(try larder.engine().statistics.compactions.read() == compactions)
    }

    /// Space is also reclaimed from databases that are not used after a restart.
    @Test func spaceOfUnopenedDatabasesIsReturnedToTheDisk() throws {
        let larder = try TestLarder {
            $0.compression = false
            $0.memoryBytes = 0
            $0.compactionBytesMin = 2 << 20
        }
        let value = String(repeating: "x", count: 50_000)
        for name in ["one", "two", "three"] {
            let database = try larder.database(name, policy: .never)
            for number in 0..<100 { try database.put("k\(number)", value) }
            _ = try database.flushedStore()
            for number in 1..<100 { try database.remove("k\(number)") }
        }
        try larder.database("small", policy: .never).put("k", "v")
        larder.close()
        let engine = try larder.engine()
        try larder.maintain()
        larder.time.advance(milliseconds: Sweeper.restMilliseconds - 1)
        try larder.maintain()
        #expect(engine.databases.allSatisfy { $0.isUnopened })
        #expect(FileSystem.size(larder.path) > 14_000_000)
        larder.time.advance(milliseconds: 1)
        // Each round of maintenance handles one database.
        try larder.maintain()
        #expect(engine.databases.count { $0.isUnopened } == 3)
        for _ in 0..<6 { try larder.maintain() }
        #expect(engine.databases.filter { $0.isUnopened }.map { $0.name } == ["small"])
        #expect(FileSystem.size(larder.path) < 3_000_000)
        for name in ["one", "two", "three"] { #expect(try larder.database(name).contents() == ["k0": value]) }
    }

    /// No database alone has enough garbage for a compaction.
    @Test func spaceOfManySmallDatabasesIsReturnedToTheDisk() throws {
        let larder = try TestLarder {
            $0.compression = false
            $0.memoryBytes = 0
            $0.compactionBytesMin = 2 << 20
        }
        let value = String(repeating: "x", count: 50_000)
        let databases = try (0..<12).map { try larder.database("d\($0)", policy: .never) }
        for database in databases {
            for number in 0..<60 { try database.put("k\(number)", value) }
            _ = try database.flushedStore()
        }
        try larder.maintain()
        #expect(databases.allSatisfy { $0.byteCountOnDisk() > 2_900_000 })
        for database in databases {
            for number in 1..<60 { try database.remove("k\(number)") }
            _ = try database.flushedStore()
        }
        try larder.maintain()
        #expect(databases.allSatisfy { $0.byteCountOnDisk() < 300_000 }, "\(databases.map { $0.byteCountOnDisk() })")
    }

    @Test func theSweepRunsInTheBackground() throws {
        let larder = try filled {
            $0.compactionBytesMin = 1 << 20
            $0.backgroundMaintenance = true
            $0.maintenanceMilliseconds = 1
        }
        let engine = try larder.engine()
        while engine.statistics.compactions.read() == 0 { sched_yield() }
        #expect(try larder.database().byteCountOnDisk() < 1_000_000)
    }
}
