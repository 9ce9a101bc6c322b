import LarderPlatform
import LarderTestSupport
import Synchronization
import Testing

@testable import LarderEngine

/// Tests of changes of a whole database: they are complete or have no effect, whatever fails, and do not affect other
/// databases.
@Suite struct ControlTests {
    /// Runs `body` while a directory replaces a file, so that the file can be neither read nor written.
    private func withDirectory<Result>(inPlaceOf path: String, _ body: () throws -> Result) throws -> Result {
        try FileSystem.rename(path, to: path + ".kept")
        try FileSystem.makeDirectory(path)
        defer {
            try? Files.remove(path)
            try? FileSystem.rename(path + ".kept", to: path)
        }
        return try body()
    }

    private func contentsAfterACrash(_ larder: TestLarder) throws -> [String: String] {
        let crashCopy = try larder.crashCopy()
        return try crashCopy.database().contents()
    }

    @Test func purgingAnEmptyDatabaseWritesNothing() throws {
        let larder = try TestLarder()
        let database = try larder.database(policy: .high)
        try database.put("a", "1")
        #expect(try database.purge().entries == 1)
        try larder.maintain()
        let pointer = larder.directory(of: "books") + "/POINTER"
        let before = try Files.read(pointer)
        let units = try larder.engine().statistics.commitUnits.read()
        let snapshot = try database.snapshot()
        for _ in 0..<3 {
            #expect(try database.purge() == PurgeReport())
            #expect(try database.contents() == [:])
            #expect(try database.count(includingExpired: true) == 0)
        }
        #expect(try Files.read(pointer) == before)
        #expect(try larder.engine().statistics.commitUnits.read() == units)
        #expect(try larder.epochs() == [])
        #expect(try snapshot.contents() == [:])
        // After a restart, repeating the purge still changes no files.
        larder.close()
        #expect(try larder.database().contents() == [:])
        _ = try larder.database().purge()
        #expect(try Files.read(pointer) == before)
        // Entries that are only in memory and in the journal are purged too.
        try larder.database().put("b", "2")
        #expect(try larder.database().purge().entries == 1)
        #expect(try larder.database().value("b") == nil)
    }

    @Test func theFirstCheckpointAfterAPurgeCreatesTheFiles() throws {
        let larder = try TestLarder()
        let database = try larder.database(policy: .high)
        try database.put("a", "1")
        _ = try database.purge()
        let snapshot = try database.snapshot()
        try database.put("b", "2")
        #expect(try database.contents() == ["b": "2"])
        #expect(try contentsAfterACrash(larder) == ["b": "2"])
        try larder.maintain()
        #expect(try larder.epochs().count == 1)
        let pointer = try PointerFile(parsing: try Files.read(larder.directory(of: "books") + "/POINTER"))
        #expect(!pointer.isUnmade && pointer.rules.policy == .high)
        #expect(try snapshot.contents() == [:])
        #expect(try contentsAfterACrash(larder) == ["b": "2"])
        // Now that the files exist, their loss is reported as damage.
        larder.close()
        try Files.remove(try larder.epochDirectory())
        #expect(errorCode { _ = try larder.database().value("b") } == .damaged)
    }

    @Test func aCrashWhileFilesAreCreatedAfterAPurgeLosesNothing() throws {
        let larder = try TestLarder()
        try larder.database().put("a", "1")
        _ = try larder.database().purge()
        try larder.database().put("b", "2")
        try larder.database().checkpointer.checkpoint()
        let crashCopy = try larder.crashCopy()
        #expect(try PointerFile(parsing: Files.read(crashCopy.directory(of: "books") + "/POINTER")).isUnmade)
        try FileSystem.makeDirectory(crashCopy.directory(of: "books") + "/.making-77")
        #expect(try crashCopy.database().contents() == ["b": "2"])
        #expect(try !FileSystem.list(crashCopy.directory(of: "books")).contains(".making-77"))
    }

    /// Purged entries do not come back after another database's commit is rolled back, after a checkpoint, or after a
    /// crash.
    @Test(arguments: [false, true]) func purgedEntriesAreNeverRestored(isFirstRefused: Bool) throws {
        let fault = FailingCommitTests.Fault()
        let larder = try TestLarder { $0.beforeCommit = fault.hook }
        let database = try larder.database()
        let other = try larder.database("other")
        try other.put("kept", "1")
        try database.put("a", "1")
        if isFirstRefused {
            // A directory at the temporary name makes writing a new POINTER fail.
            let spare = larder.directory(of: "books") + "/POINTER.new"
            try Files.remove(spare)
            try FileSystem.makeDirectories(spare + "/taken")
            #expect(errorCode { _ = try database.purge() } == .io)
            #expect(errorCode { try database.setPolicy(.high) } == .io)
            #expect(try database.value("a") == "1")
            #expect(database.policy == .lowest)
            #expect(try larder.engine().statistics.commitFailures.read() == 0, "no other commit fails")
            try other.put("while", "1")
            try larder.engine().save()
            try Files.remove(spare)
        }
        _ = try database.purge()
        fault.isOn.value = true
        #expect(errorCode { try other.put("b", "1") } == .commitFailed)
        fault.isOn.value = false
        #expect(try database.contents() == [:])
        try other.put("after", "1")
        try larder.engine().save()
        let crashCopy = try larder.crashCopy()
        #expect(try crashCopy.database().contents() == [:])
        #expect(try crashCopy.database("other").value("kept") == "1")
        try database.put("new", "1")
        fault.isOn.value = true
        #expect(errorCode { try other.put("b", "1") } == .commitFailed)
        fault.isOn.value = false
        #expect(try database.contents() == ["new": "1"])
        larder.close()
        #expect(try larder.database().contents() == ["new": "1"])
    }

    /// A database whose POINTER cannot be read keeps its entries in the journal. Other databases are not affected.
    @Test func anUnreadablePointerFileDoesNotAffectOtherDatabases() throws {
        let larder = try TestLarder()
        try larder.database().put("below", "0")
        try larder.engine().save()
        try larder.database().put("a", "1")
        try larder.database("other").put("b", "1")
        let crashCopy = try larder.crashCopy()
        try withDirectory(inPlaceOf: crashCopy.directory(of: "books") + "/POINTER") {
            let engine = try crashCopy.engine()
            #expect(errorCode { _ = try crashCopy.database().value("a") } == .io)
            #expect(errorCode { try engine.database("books").put("a", "2") } == .io)
            let other = try crashCopy.database("other")
            let value = String(repeating: "x", count: 50_000)
            for number in 0..<40 {
                try other.put("k\(number)", value)
                try engine.save()
            }
            #expect(engine.journalByteCount < 10_000, "the journal keeps only the entries of one database")
            // Closing the larder does not remove the unreadable database's journal entries.
            crashCopy.close()
        }
        #expect(try crashCopy.database().contents() == ["below": "0", "a": "1"])
        #expect(try crashCopy.database("other").value("b") == "1")
    }

    /// An unreadable POINTER is read again while the larder is open.
    @Test func entriesReturnWhenAnUnreadablePointerFileIsReadableAgain() throws {
        let fault = FailingCommitTests.Fault()
        let larder = try TestLarder { $0.beforeCommit = fault.hook }
        try larder.database().put("a", "1")
        _ = try larder.database().purge()
        try larder.database().put("b", "2")
        try larder.database("other").put("c", "3")
        let crashCopy = try larder.crashCopy { $0.beforeCommit = fault.hook }
        let database = try withDirectory(inPlaceOf: crashCopy.directory(of: "books") + "/POINTER") {
            let database = try crashCopy.engine().database("books")
            #expect(errorCode { _ = try database.value("b") } == .io)
            try crashCopy.engine().save()
            fault.isOn.value = true
            #expect(errorCode { try crashCopy.database("other").put("d", "4") } == .commitFailed)
            fault.isOn.value = false
            return database
        }
        #expect(try database.contents() == ["b": "2"])
        crashCopy.close()
        #expect(try crashCopy.database().contents() == ["b": "2"])
    }

    /// A database directory that cannot be listed is not treated as a foreign directory.
    @Test func theJournalKeepsEntriesOfADirectoryThatCannotBeListed() throws {
        let larder = try TestLarder()
        try larder.database().put("a", "1")
        try larder.database("other").put("b", "1")
        let crashCopy = try larder.crashCopy()
        let directory = crashCopy.directory(of: "books")
        try FileSystem.rename(directory, to: crashCopy.path + "/.hidden")
        // Nobody can read a symbolic link to itself, not even root.
        #expect(symlink(directory, directory) == 0)
        #expect(crashCopy.events.all.isEmpty)
        #expect(errorCode { _ = try crashCopy.database().value("a") } == .io)
        #expect(crashCopy.events.contains("cannot be used until that is fixed"))
        try crashCopy.database("other").put("c", "1")
        try crashCopy.engine().save()
        crashCopy.close()
        unlink(directory)
        try FileSystem.rename(crashCopy.path + "/.hidden", to: directory)
        #expect(try crashCopy.database().contents() == ["a": "1"])
        #expect(try crashCopy.database("other").contents() == ["b": "1", "c": "1"])
    }

    @Test func theErrorForALockThatIsNotAFileSuggestsToMoveIt() throws {
        let larder = try TestLarder()
        try larder.database().put("a", "1")
        larder.close()
        try withDirectory(inPlaceOf: larder.path + "/LOCK") {
            do {
                _ = try larder.engine()
                Issue.record("it was opened")
            } catch let error as LarderError {
                #expect(error.code == .io && error.message.contains("is not a file"))
                #expect(error.message.contains("move it"))
            }
        }
        #expect(try larder.database().contents() == ["a": "1"])
    }

    /// Rebuilt files replace the files of an open database. Journal entries for the old files then apply to the new
    /// files.
    @Test func journalEntriesOfTheOldFilesApplyToRebuiltFiles() throws {
        let larder = try TestLarder()
        let database = try larder.database(policy: .high)
        try database.put("a", "1")
        let state = database.appliedState
        try database.life.openLock.withLock {
            let heir = try database.files.makeEpoch(
                database.context.nextEpoch(after: state.epoch), in: database.files.directory)
            let old = try database.switchEpoch(
                to: heir, rules: state.rules, .heir(journalFrom: state.journalFrom), ending: .setAside,
                operation: "test")
            #expect(old === state.store)
            if let old { database.context.disposalQueue.add(old) }
        }
        try database.put("b", "2")
        #expect(try database.contents() == ["a": "1", "b": "2"])
        #expect(try contentsAfterACrash(larder) == ["a": "1", "b": "2"])
        try larder.maintain()
        #expect(try contentsAfterACrash(larder) == ["a": "1", "b": "2"])
        _ = try database.purge()
        try database.put("c", "3")
        #expect(try contentsAfterACrash(larder) == ["c": "3"])
    }

    /// Journal segments are removed even while the LevelDB of one database accepts no writes.
    @Test func aDatabaseThatAcceptsNoWritesDoesNotStopCheckpoints() throws {
        let larder = try TestLarder()
        let database = try larder.database()
        let other = try larder.database("other")
        try database.put("a", "1")
        let store = try #require(database.durableState.store)
        store.suspend(LarderError(.io, "pulled out", operation: "test"))
        for number in 0..<40 {
            try other.put("k\(number)", String(repeating: "x", count: 50_000))
            #expect(errorCode { try larder.engine().save() } == .writesSuspended)
        }
        #expect(try larder.engine().journalByteCount < 10_000)
        #expect(try contentsAfterACrash(larder) == ["a": "1"])
        try larder.maintain()
        try database.put("b", "2")
        larder.close()
        #expect(try larder.database().contents() == ["a": "1", "b": "2"])
    }

    // MARK: From one database into another

    /// Earlier policy changes of the target database do not make an entry from another database expire; only the
    /// entry's age does.
    @Test(arguments: [UpdatePolicy.never, .lowest, .low, .middle], [UpdatePolicy.never, .lowest, .low, .middle])
    func exchangedEntriesKeepTheirAge(_ from: UpdatePolicy, _ to: UpdatePolicy) throws {
        for isExchanged in [false, true] {
            let larder = try TestLarder()
            let (source, target) = (
                try larder.database("a", policy: .highest), try larder.database("b", policy: .highest)
            )
            for database in [source, target] { try database.put("dead", "1") }
            larder.time.advance(milliseconds: 20_000)
            let stored = source.now()
            try source.setPolicy(from)
            try source.put("k", "v")
            larder.time.advance(milliseconds: 60_000)
            // The target's change of policy expires its own older entries, but must not expire entries that come from
            // another database.
            try target.setPolicy(to)
            #expect(target.rules.deadBefore >= stored)
            if isExchanged {
                try larder.engine().exchange(source, target, entriesMax: 10, bytesMax: 1000)
            } else {
                _ = try larder.engine().change("k", in: source, and: target) {
                    guard let record = $0.current(0) else { return }
                    $0.remove(0)
                    $1.place(0, record)
                }
            }
            #expect(try target.value("k") == "v", "\(from) to \(to)")
            #expect(try source.value("k") == nil)
            #expect(try target.value("dead") == nil)
            #expect(try source.value("dead") == nil)
            let record = try #require(try target.get(Key("k")))
            if let interval = to.intervalMilliseconds {
                #expect(target.rules.deadline(record.header) == stored + interval)
                #expect(record.header.storedAt == stored)
                larder.time.advance(milliseconds: interval - 60_001)
                #expect(try target.value("k") == "v")
                larder.time.advance(milliseconds: 1)
                #expect(try target.value("k") == nil)
            } else {
                #expect(target.rules.deadline(record.header) == nil)
                try target.setPolicy(.high)
                larder.time.advance(milliseconds: 60_000)
                #expect(try target.value("k") == nil, "a later policy applies to the entry")
            }
        }
    }

    /// An exchange completes although other threads write, and no write is lost.
    @Test func anExchangeCompletesUnderConcurrentWrites() throws {
        let larder = try TestLarder { $0.backgroundMaintenance = true }
        let databases = [try larder.database("a"), try larder.database("b"), try larder.database("c")]
        try databases[0].put("mark", "a")
        try databases[1].put("mark", "b")
        let isOver = Atomic<Bool>(false)
        let problems = Recorder<String>()
        let written = Guarded([0, 0, 0])
        let threads = databases.indices.map { index in
            WorkThread(name: "writer") {
                var count = 0
                while !isOver.load(ordering: .relaxed), count < 2_000 {
                    if let code = errorCode({ try databases[index].put("\(index):\(count)", "v") }) {
                        problems.add("\(code)")
                    }
                    count += 1
                }
                written.with { $0[index] = count }
            }
        }
        for round in 1...11 {
            try larder.engine().exchange(databases[0], databases[1], entriesMax: 1_000_000, bytesMax: 1 << 30)
            #expect(try databases[0].value("mark") == (round % 2 == 1 ? "b" : "a"))
        }
        isOver.store(true, ordering: .relaxed)
        for thread in threads { thread.join() }
        #expect(problems.all == [])
        let counts = written.value
        var keys = try databases[0].contents().keys.filter { $0 != "mark" }
        keys += try databases[1].contents().keys.filter { $0 != "mark" }
        #expect(keys.count == counts[0] + counts[1])
        #expect(Set(keys).count == keys.count)
    }
}
