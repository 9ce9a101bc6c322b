import LarderPlatform
import LarderTestSupport
import Testing

@testable import LarderEngine

@Suite struct PurgeTests {
    @Test func aPurgeEmptiesTheDatabaseAndKeepsItsPolicy() throws {
        let larder = try TestLarder()
        let database = try larder.database(policy: .middle)
        for number in 0..<100 { try database.put("k\(number)", "v") }
        let report = try database.purge()
        #expect(report.entries == 100)
        #expect(report.bytes > 0)
        #expect(try database.contents() == [:])
        #expect(try database.rawKeys() == [[0] + Array("format".utf8)])
        try database.put("new", "v")
        #expect(database.policy == .middle)
        try larder.maintain()
        #expect(try larder.epochs().count == 1)
        larder.close()
        #expect(try larder.database().contents() == ["new": "v"])
        #expect(try larder.database().policy == .middle)
    }

    /// Opening LevelDB writes files, so it fails, for example, on a full disk. A purge must succeed even then.
    @Test func aDatabaseThatCannotBeOpenedCanBePurged() throws {
        let larder = try TestLarder()
        let database = try larder.database()
        try database.put("a", "old")
        try larder.maintain()
        let store = try #require(database.durableState.store)
        larder.close()
        try FileSystem.removeFile(store.path + "/LOCK")
        try FileSystem.makeDirectory(store.path + "/LOCK")
        let again = try larder.engine().database("books")
        #expect(errorCode { _ = try again.value("a") } == .io)
        _ = try again.purge()
        #expect(try again.value("a") == nil)
        try again.put("b", "new")
        larder.close()
        #expect(try larder.database().contents() == ["b": "new"])
    }

    /// After a purge, the first write to LevelDB creates the database's new files. Here a power failure damages that
    /// write, which was not synced. The journal also has the entry, so nothing is lost or reported as damage.
    @Test func aPowerFailureAfterAPurgeLosesOnlyUnsyncedData() throws {
        let larder = try TestLarder()
        let database = try larder.database()
        try database.put("a", "old")
        _ = try database.purge()
        try database.put("a", "new")
        let store = try #require(database.durableState.store)
        #expect(!store.isMade)
        try store.note(journalNeeded: 1, sync: false)
        let crashCopy = try larder.crashCopy()
        let epoch = try crashCopy.epochDirectory()
        let log = try #require(try Files.names(in: epoch, endingWith: ".log").first)
        // After the power failure, the length and some of the bytes of the unsynced record are on the disk.
        try Files.flip(epoch + "/" + log, at: 12)
        #expect(try crashCopy.database().contents() == ["a": "new"])
        #expect(crashCopy.setAside.isEmpty)
        #expect(!crashCopy.events.contains("damaged"))
    }

    @Test func openCursorsAndSnapshotsThrowPurgedAfterAPurge() throws {
        let larder = try TestLarder()
        let database = try larder.database()
        for number in 0..<1000 { try database.put("k\(number)", "v") }
        let snapshot = try database.snapshot()
        let cursor = try #require(try database.cursor())
        let snapshotCursor = try #require(try snapshot.cursor())
        #expect(try cursor.next())
        #expect(try snapshotCursor.next())
        #expect(try database.purge(.all(counting: false)).entries == nil)
        for _ in 0..<2 {
            #expect(errorCode { _ = try cursor.next() } == .purged)
            #expect(errorCode { _ = try cursor.key() } == .purged)
            #expect(errorCode { _ = try cursor.record() } == .purged)
            #expect(errorCode { _ = try snapshotCursor.next() } == .purged)
            #expect(errorCode { _ = try snapshot.value("k1") } == .purged)
            #expect(errorCode { _ = try snapshot.cursor() } == .purged)
            #expect(errorCode { _ = try snapshot.count(includingExpired: true) } == .purged)
            // After maintenance has closed the old epoch, the readers still get the error `purged`.
            try larder.maintain()
        }
        #expect(try larder.epochs() == [], "the new epoch is empty")
        cursor.close()
        snapshot.close()
    }

    @Test func readersAndWritersContinueDuringPurges() throws {
        let larder = try TestLarder { $0.backgroundMaintenance = true }
        let database = try larder.database()
        let problems = Recorder<String>()
        let isDone = Guarded(false)
        onThreads(4) { thread in
            for step in 0..<300 where thread > 0 {
                do throws(LarderError) {
                    let key = "k\(step % 20)"
                    switch thread {
                    case 1: try database.put(key, "v\(step)")
                    case 2: _ = try database.value(key)
                    default: _ = try database.contents()
                    }
                } catch {
                    // Only the thread that enumerates the entries may get the error `purged`.
                    if thread < 3 || error.code != .purged { problems.add("\(error)") }
                }
            }
            if thread > 0 { isDone.value = true }
            while thread == 0, !isDone.value {
                if let code = errorCode({ _ = try database.purge(.all(counting: false)) }) {
                    problems.add("\(code)")
                }
            }
        }
        #expect(problems.all == [])
    }

    @Test func aPurgeRemovesEarlierWritesAndKeepsLaterOnes() throws {
        let larder = try TestLarder()
        let database = try larder.database()
        let before = try database.putLater("a", "1")
        _ = try database.purge(.all(counting: false))
        let after = try database.putLater("b", "2")
        try larder.engine().pipeline.wait(for: before)
        try larder.engine().pipeline.wait(for: after)
        #expect(try database.contents() == ["b": "2"])
    }

    @Test("a purge of a missing database does not create it") func aPurgeOfNothing() throws {
        let larder = try TestLarder()
        let database = try larder.engine().database("none")
        #expect(try database.purge().entries == 0)
        #expect(!database.exists)
        #expect(try !FileSystem.list(larder.path).contains("none"))
    }

    @Test func anUnopenedDatabaseCanBePurged() throws {
        let larder = try TestLarder()
        try larder.database(policy: .high).put("a", "1")
        larder.close()
        let database = try larder.engine().database("books")
        #expect(try database.purge().entries == 1)
        #expect(try database.contents() == [:])
        #expect(database.policy == .high)
    }

    @Test("a prefix purge removes only keys with the prefix") func prefixes() throws {
        let larder = try TestLarder()
        let database = try larder.database()
        for number in 0..<1300 { try database.put("user:\(number)", "v") }
        for name in ["usen", "user", "user;", "uses", "\u{7f}"] { try database.put(name, "v") }
        let report = try database.purge(.prefix(Array("user:".utf8)))
        #expect(report.entries == 1300)
        #expect(try Set(database.contents().keys) == ["usen", "user", "user;", "uses", "\u{7f}"])
        #expect(try database.purge(.prefix([0xFF])).entries == 0)
        #expect(try database.purge(.prefix([])).entries == 5)
        #expect(try database.rawKeys().count == 1)
    }

    /// The client may repeat a purge whose reply was lost. The second purge finds no entries, but must make the first
    /// one durable.
    @Test("a purge that finds nothing to remove makes earlier removals durable")
    func aPurgeOfNothingSyncsEarlierRemovals() throws {
        let larder = try TestLarder()
        let database = try larder.database()
        func synced() throws -> UInt64 {
            let bytes = try #require(try FileSystem.read(larder.path + "/" + JournalMarkFile.fileName))
            return try #require(try JournalMark.newest(in: bytes, secondOffset: JournalMarkFile.secondOffset)).synced
        }
        let purges: [(Database) throws -> Int?] = [
            { try $0.purge(.prefix(Array("k".utf8))).entries },
            { try $0.purge(.upTo(ChangeVersion(time: $0.now() + 1), prefix: [], tags: nil)).entries },
            { try $0.purge(.upTo(ChangeVersion(time: $0.now() + 1), prefix: Array("k".utf8), tags: nil)).entries },
        ]
        for purge in purges {
            try database.put("k", "v")
            try database.commit([Key("k")], loading: .none) { $0.remove(0) }
            let last = database.pipeline.everythingApplied.sequence
            #expect(try synced() < last)
            #expect(try purge(database) == 0)
            #expect(try synced() >= last)
        }
    }

    @Test func aPrefixPurgeRemovesEntriesStoredWhileTheClockWasAhead() throws {
        let larder = try TestLarder()
        do {
            let database = try larder.database()
            larder.time.stepWall(milliseconds: 3_600_000)
            try database.put("a:1", "v")
        }
        larder.close()
        larder.time.stepWall(milliseconds: -3_600_000)
        let database = try larder.database()
        #expect(try database.purge(.prefix(Array("a:".utf8))).entries == 1)
        #expect(try database.count(includingExpired: true) == 0)
    }

    @Test("all uses of a deleted database fail") func deletingADatabase() throws {
        let larder = try TestLarder()
        let engine = try larder.engine()
        let database = try larder.database(policy: .high)
        try database.put("a", "1")
        let snapshot = try database.snapshot()
        let cursor = try #require(try database.cursor())
        let report = try engine.deleteDatabase("books", counting: true)
        #expect(report.entries == 1)
        #expect(report.bytes > 0)
        #expect(errorCode { _ = try database.value("a") } == .deleted)
        #expect(errorCode { try database.put("a", "2") } == .deleted)
        #expect(errorCode { try database.setPolicy(.low) } == .deleted)
        #expect(errorCode { _ = try database.purge() } == .deleted)
        #expect(errorCode { _ = try database.cursor() } == .deleted)
        #expect(errorCode { _ = try database.snapshot() } == .deleted)
        #expect(errorCode { _ = try snapshot.value("a") } == .deleted)
        #expect(errorCode { _ = try cursor.next() } == .deleted)
        #expect(errorCode { _ = try engine.deleteDatabase("books") } == .noSuchDatabase)
        #expect(!database.exists)
        #expect(database.condition == "deleted")
        #expect(engine.databases.isEmpty)
        #expect(try FileSystem.list(larder.path) == ["JOURNAL", "LOCK", "SEQUENCES", "SYNCED", "TIME"])
        let again = try larder.database()
        #expect(again !== database)
        #expect(try again.contents() == [:])
        #expect(again.policy == .lowest)
        try again.put("b", "2")
        #expect(errorCode { _ = try database.value("b") } == .deleted)
    }

    /// A deletion moves the files before it is committed. If a reader of the old store does not find the files, that is
    /// not damage.
    @Test(arguments: [false, true]) func filesMovedByADeletionAreNotTreatedAsDamage(isMade: Bool) throws {
        let larder = try TestLarder()
        let database = try larder.database()
        try database.put("a", "1")
        // After a purge, the files are created by the next operation that needs them.
        if !isMade { _ = try database.purge() }
        let store = try #require(database.durableState.store)
        #expect(store.isMade == isMade)
        func use() throws(LarderError) {
            if isMade { try store.noteSynced(isReopening: true) } else { try store.access("get") { _ in } }
        }
        let directory = FileSystem.parent(store.path)
        store.prepareEnd(.deleted)
        try FileSystem.rename(directory, to: directory + ".moved")
        #expect(errorCode(use) == .deleted)
        store.cancelEnd()
        #expect(errorCode(use) == .io)
        try FileSystem.rename(directory + ".moved", to: directory)
        try use()
        #expect(!larder.events.contains("damaged"))
    }

    /// Deleting a database does not make earlier writes fail, neither in that database nor in others.
    @Test func deletingADatabaseDoesNotFailEarlierWrites() throws {
        let larder = try TestLarder()
        let engine = try larder.engine()
        let other = try larder.database("other")
        for round in 0..<50 {
            let database = try larder.database()
            let first = try other.putLater("a", "\(round)")
            let own = try database.putLater("b", "\(round)")
            let second = try other.putLater("c", "\(round)")
            _ = try engine.deleteDatabase("books")
            for ticket in [first, own, second] { try engine.pipeline.wait(for: ticket) }
        }
        #expect(engine.statistics.commitFailures.read() == 0)
    }

    @Test func databasesCanBeWrittenAndDeletedConcurrently() throws {
        let larder = try TestLarder { $0.backgroundMaintenance = true }
        let engine = try larder.engine()
        let other = try larder.database("other")
        let problems = Recorder<String>()
        onThreads(3) { thread in
            for step in 0..<60 {
                do throws(LarderError) {
                    switch thread {
                    case 0: try other.put("k", "\(step)")
                    case 1: try engine.database("books").put("k\(step)", "v")
                    default: if step % 5 == 0 { _ = try engine.deleteDatabase("books") }
                    }
                } catch {
                    let isExpected = thread > 0 && [.deleted, .noSuchDatabase].contains(error.code)
                    if !isExpected { problems.add("\(thread): \(error)") }
                }
            }
        }
        #expect(problems.all == [])
        #expect(engine.statistics.commitFailures.read() == 0)
    }

    @Test func theNumberOfDatabasesIsLimited() throws {
        let larder = try TestLarder { $0.databasesMax = 2 }
        _ = try larder.database("a")
        _ = try larder.database("b")
        #expect(errorCode { _ = try larder.database("c") } == .tooManyDatabases)
        #expect(try larder.engine().database("c").value("k") == nil)
        _ = try larder.engine().deleteDatabase("a")
        _ = try larder.database("c")
        larder.close { $0.databasesMax = 1 }
        #expect(try larder.database("b").contents() == [:])
    }
}
