import LarderPlatform
import LarderTestSupport
import Testing

@testable import LarderEngine

/// Tests that a checkpoint loses no acknowledged writes. Before a checkpoint, these writes are only in the journal
/// segments that the checkpoint removes.
@Suite struct CheckpointTests {
    /// Regression test: each request wrapped the function that wakes the checkpointer in two more closures, until their
    /// calls exceeded the stack of the thread that committed. A busy daemon crashed after some 120,000 commits.
    @Test func theCheckpointerIsWokenHundredsOfThousandsOfTimes() throws {
        let place = try TemporaryDirectory(inMemory: true)
        let trigger = CheckpointTrigger(
            disk: DiskBudget(directory: place.path, limitBytes: nil, checkpointBytes: 1 << 20),
            memory: MemoryBudget(limitBytes: 1 << 20))
        let calls = Guarded(0)
        trigger.onDue { calls.with { $0 += 1 } }
        for _ in 0..<300_000 { trigger.request() }
        #expect(calls.value == 300_000)
        trigger.note((live: .max / 2, counted: .max / 2))
        for _ in 0..<300_000 { trigger.wakeIfTooMuch() }
        #expect(calls.value == 600_000)
    }

    private typealias Fault = FailingCommitTests.Fault

    @Test("entries are written to LevelDB after ten minutes") func checkpointsAreRare() throws {
        let larder = try TestLarder()
        let database = try larder.database()
        let statistics = try larder.engine().statistics
        for minute in 1...10 {
            try database.put("a", "1")
            larder.time.advance(milliseconds: 60_000)
            database.checkpointer.checkpointIfDue()
            #expect(statistics.checkpoints.read() == (minute < 10 ? 0 : 1))
        }
    }

    @Test("entries that take much of the memory are written after half a minute")
    func manyEntriesAreWrittenSooner() throws {
        let larder = try TestLarder { $0.memoryBytes = 1 << 10 }
        let database = try larder.database()
        let statistics = try larder.engine().statistics
        for round in 1...3 {
            try database.put("a", String(repeating: "x", count: 1000))
            larder.time.advance(milliseconds: 10_000)
            database.checkpointer.checkpointIfDue()
            #expect(statistics.checkpoints.read() == (round < 3 ? 0 : 1))
        }
    }

    @Test("a large checkpoint leaves no entries in LevelDB's log") func aLargeCheckpointEndsInTables() throws {
        let larder = try TestLarder { $0.writeBufferBytes = 64 << 10 }
        let database = try larder.database()
        for number in 0..<500 { try database.put("\(number)", String(repeating: "x", count: 1000)) }
        try database.checkpointer.checkpoint()
        let logs = try SyncedFiles.logLengths(in: try larder.epochDirectory())
        #expect(logs.reduce(0) { $0 + $1.1 } < 1000)
        let crashCopy = try larder.crashCopy()
        #expect(try crashCopy.database().contents().count == 500)
    }

    /// Closing the larder keeps the journal entries of databases that have not been opened since the larder was opened.
    @Test func closingKeepsJournalEntriesOfUnopenedDatabases() throws {
        let larder = try TestLarder()
        try larder.database().put("a", "1")
        try larder.database("other").put("b", "2")
        let crashCopy = try larder.crashCopy()
        _ = try crashCopy.engine()
        crashCopy.close()
        #expect(try crashCopy.database().contents() == ["a": "1"])
        #expect(try crashCopy.database("other").contents() == ["b": "2"])
    }

    /// The journal also keeps the entries of a database that temporarily cannot be opened.
    @Test func theJournalKeepsEntriesOfDatabasesThatCannotBeOpened() throws {
        let larder = try TestLarder()
        try larder.database().put("a", "1")
        let crashCopy = try larder.crashCopy()
        let epoch = try crashCopy.epochDirectory()
        let manifest = try Files.manifest(epoch)
        try FileSystem.rename(epoch + "/" + manifest, to: epoch + "/hidden")
        #expect(errorCode { _ = try crashCopy.database().value("a") } == .damaged)
        _ = try crashCopy.engine().maintain()
        crashCopy.close()
        try FileSystem.rename(epoch + "/hidden", to: epoch + "/" + manifest)
        #expect(try crashCopy.database().contents() == ["a": "1"])
    }

    /// Regression test: a database refused writes and had more in the journal than the journal's limit. Each checkpoint
    /// rewrote all of it to the journal, so the next checkpoint was due at once. Writers of all databases waited
    /// forever.
    @Test(arguments: [false, true]) func aDatabaseThatRefusesWritesDoesNotBlockOthers(_ hasThreads: Bool) throws {
        let larder = try TestLarder { $0.checkpointBytes = 64 << 20 }
        let value = String(repeating: "x", count: 100_000)
        for number in 0..<30 { try larder.database("broken").put("\(number)", value) }
        try larder.database().put("a", "1")
        let written = Guarded(0)
        let crashCopy = try larder.crashCopy {
            $0.checkpointBytes = 1000
            $0.backgroundMaintenance = hasThreads
            $0.maintenanceMilliseconds = 10
            $0.onDamage = .fail
            $0.journalFaults = JournalFaults { call, _ in
                if case .write(let count) = call { written.with { $0 += count } }
                return nil
            }
        }
        let epoch = try crashCopy.epochDirectory(of: "broken")
        let manifest = try Files.manifest(epoch)
        try FileSystem.rename(epoch + "/" + manifest, to: epoch + "/hidden")
        _ = try crashCopy.engine()
        let error = #expect(throws: LarderError.self) {
            for number in 0..<10_000 { try crashCopy.database().put("\(number)", "2") }
        }
        #expect(error?.code == .writesSuspended && error?.database == "broken", "\(String(describing: error))")
        #expect(try crashCopy.database().value("a") == "1")
        if hasThreads { usleep(200_000) } else { for _ in 0..<20 { _ = try crashCopy.engine().maintain() } }
        #expect(written.value < 7_000_000, "\(written.value)")
        try FileSystem.rename(epoch + "/hidden", to: epoch + "/" + manifest)
        _ = try crashCopy.engine().maintain()
        try crashCopy.database().put("b", "3")
        #expect(try crashCopy.database("broken").contents().count == 30)
        #expect(try crashCopy.engine().journalByteCount < 1 << 20)
    }

    /// If a recreated database reused an epoch number, old entries in the journal would be applied to it.
    @Test func aRecreatedDatabaseNeverReusesAnEpochNumber() throws {
        let larder = try TestLarder()
        for _ in 0..<5 { _ = try larder.database().purge(.all(counting: false)) }
        larder.close()
        try larder.database().put("a", "1")
        for _ in 0..<10 {
            _ = try larder.engine().deleteDatabase("books")
            try larder.database().put("b", "2")
            let crashCopy = try larder.crashCopy()
            #expect(try crashCopy.database().contents() == ["b": "2"])
        }
    }

    /// POINTER records which journal entries belong to the database. If it cannot be read, those entries must stay in
    /// the journal.
    @Test func theJournalKeepsEntriesOfADatabaseWithUnreadablePointer() throws {
        let larder = try TestLarder()
        try larder.database().put("a", "1")
        let crashCopy = try larder.crashCopy()
        let pointer = crashCopy.directory(of: "books") + "/POINTER"
        try FileSystem.rename(pointer, to: pointer + ".kept")
        try FileSystem.makeDirectory(pointer)
        _ = errorCode { _ = try crashCopy.engine().maintain() }
        crashCopy.close()
        try Files.remove(pointer)
        try FileSystem.rename(pointer + ".kept", to: pointer)
        #expect(try crashCopy.database().contents() == ["a": "1"])
    }

    /// Data is flushed to LevelDB only after it was synced in the journal. So a journal that ends before the flushed
    /// data has lost entries.
    @Test func aJournalThatEndsBeforeTheDataInLevelDBIsDamage() throws {
        let larder = try TestLarder()
        try larder.database("other").put("b", "1")
        try larder.database().put("a", "2")
        try larder.database().flush()
        let whole = try Files.read(larder.journalSegments[0]).count
        for count in JournalFormat.segmentHeaderBytes...whole {
            let crashCopy = try larder.crashCopy()
            // Without SYNCED, which would reveal the loss too, only LevelDB shows that the journal has lost entries.
            try FileSystem.removeFile(crashCopy.path + "/SYNCED")
            try Files.truncate(crashCopy.journalSegments[0], to: count)
            let code = errorCode { try #expect(crashCopy.database().value("a") == "2") }
            #expect(code == (count == whole ? nil : .damaged), "\(count) of \(whole) bytes")
        }
    }

    /// The loss of a journal part is detected even if the larder was opened and closed without using the database.
    @Test(arguments: [false, true])
    func lostJournalEntriesAreDetectedBeforeSegmentsAreRemoved(setsAside: Bool) throws {
        let larder = try TestLarder()
        try larder.database("other").put("b", "1")
        try larder.database().put("a", "2")
        try larder.database().flush()
        let crashCopy = try larder.crashCopy { $0.onDamage = setsAside ? .salvage : .fail }
        try FileSystem.removeFile(crashCopy.path + "/SYNCED")
        try Files.truncate(crashCopy.journalSegments[0], to: JournalFormat.segmentHeaderBytes)
        for _ in 0..<2 {
            _ = try crashCopy.engine()
            crashCopy.close()
        }
        if setsAside {
            #expect(try crashCopy.database().contents().isEmpty)
            #expect(crashCopy.setAside.count == 1)
            crashCopy.close()
            #expect(crashCopy.journalSegments.isEmpty)
        } else {
            #expect(errorCode { _ = try crashCopy.database().contents() } == .damaged)
        }
    }

    /// A power failure emptied the last of several segments. This is found when the larder is opened, not when the
    /// database is first used.
    @Test func anEmptiedJournalSegmentIsDetectedOnOpening() throws {
        let larder = try TestLarder { $0.journalSegmentBytes = 300 }
        for number in 0..<10 { try larder.database().put("a\(number)", "1") }
        try larder.database().flush()
        let crashCopy = try larder.crashCopy()
        #expect(crashCopy.journalSegments.count > 1)
        try Files.truncate(try #require(crashCopy.journalSegments.last), to: 0)
        #expect(errorCode { _ = try crashCopy.engine() } == .damaged)
    }

    /// Refusing to open a larder with a damaged journal does not change its files.
    @Test func refusingADamagedJournalDoesNotChangeIt() throws {
        // All writes are synced, so a power failure cannot explain the damage.
        let larder = try TestLarder { $0.durability = .always }
        for number in 0..<5 { try larder.database().put("a\(number)", "1") }
        let crashCopy = try larder.crashCopy()
        let journal = try Files.read(crashCopy.journalSegments[0])
        try Files.flip(crashCopy.journalSegments[0], at: journal.count / 2)
        #expect(errorCode { _ = try crashCopy.engine() } == .damaged)
        #expect(errorCode { _ = try crashCopy.engine() } == .damaged)
        try Files.write(crashCopy.journalSegments[0], journal)
        #expect(try crashCopy.database().contents().count == 5)
    }

    /// A change of a whole database has a sequence number, but is not in the journal. Neither such a change nor a
    /// failed group of commits makes the journal look incomplete.
    @Test func aFailedSyncLeavesNoGapInTheJournal() throws {
        let isFailing = Guarded(false)
        let larder = try TestLarder {
            $0.journalFaults = JournalFaults { call, _ in call == .fsync && isFailing.value ? .fail(EIO) : nil }
        }
        let database = try larder.database()
        try database.put("a", "1")
        try database.setPolicy(.never)
        isFailing.value = true
        #expect(errorCode { try database.put("a", "2", durability: .always) } == .commitFailed)
        isFailing.value = false
        try database.put("b", "3")
        let crashCopy = try larder.crashCopy()
        #expect(try crashCopy.database().contents() == ["a": "1", "b": "3"])
    }

    /// A purge clears memory before the purge is durable. The journal must keep the purged entries until then.
    @Test func aFailedPurgeAfterACheckpointLosesNothing() throws {
        let fault = Fault()
        let larder = try TestLarder { $0.beforeCommit = fault.hook }
        let database = try larder.database()
        try database.put("a", "1")
        let gate = Gate(isClosed: true)
        fault.instead.value = { gate.pass() }
        let purge = Guarded<LarderError.Code?>(nil)
        let purging = WorkThread(name: "purge") {
            let code = errorCode { _ = try database.purge(.all(counting: false)) }
            purge.value = code
        }
        gate.waitUntil()
        let isDone = Guarded(false)
        let checkpoint = WorkThread(name: "checkpoint") {
            try? database.checkpointer.checkpoint()
            isDone.value = true
        }
        let pipeline = try larder.engine().pipeline
        while !isDone.value, pipeline.waiterCount < 2 { sched_yield() }
        let crashCopy = try larder.crashCopy()
        fault.isOn.value = true
        gate.open()
        purging.join()
        fault.isOn.value = false
        checkpoint.join()
        #expect(purge.value == .commitFailed)
        #expect(try database.value("a") == "1")
        #expect(try crashCopy.database().contents() == ["a": "1"])
        larder.close()
        #expect(try larder.database().contents() == ["a": "1"])
    }

    /// A new policy makes an entry expire. If the policy cannot be made durable, the entry must be fresh again.
    @Test func aFailedPolicyChangeAfterACheckpointExpiresNothing() throws {
        for sweeps in [false, true] {
            let fault = Fault()
            let larder = try TestLarder { $0.beforeCommit = fault.hook }
            let database = try larder.database(policy: .middle)
            try database.put("a", "1")
            if sweeps { try larder.maintain() }
            larder.time.advance(milliseconds: 120_000)
            fault.isOn.value = true
            let ticket = try database.changePolicy(DatabasePolicy(.highest), now: database.now())
            if sweeps {
                var sweeper = Sweeper()
                _ = try? sweeper.step(database)
            } else {
                _ = try? database.checkpointer.checkpoint()
            }
            #expect(errorCode { try larder.engine().pipeline.wait(for: ticket) } == .commitFailed)
            fault.isOn.value = false
            #expect(database.policy == .middle)
            #expect(try database.value("a") == "1", "sweeping: \(sweeps)")
            larder.close()
            #expect(try larder.database().contents() == ["a": "1"], "sweeping: \(sweeps)")
        }
    }

    /// A deletion is durable when observers are notified of it, even if a checkpoint runs at that moment.
    @Test func aDeletionIsDurableBeforeObserversAreNotified() throws {
        final class AtDecision: CommitObserver {
            let body: @Sendable () -> Void
            init(_ body: @escaping @Sendable () -> Void) { self.body = body }
            func commitsDecided(upTo sequence: UInt64, failure: LarderError?) { body() }
        }
        let larder = try TestLarder()
        let database = try larder.database()
        try database.put("a", "1")
        let (path, copy) = (larder.path, larder.parent + "/copy")
        let isCopied = Guarded(false)
        let observer = AtDecision {
            try? database.checkpointer.checkpoint()
            isCopied.with { isCopied in
                if !isCopied { try? Files.copy(path, to: copy + "/larder") }
                isCopied = true
            }
        }
        let pipeline = try larder.engine().pipeline
        pipeline.add(observer: observer)
        _ = try larder.engine().deleteDatabase("books")
        pipeline.remove(observer: observer)
        #expect(isCopied.value)
        let crashCopy = try larder.crashCopy(in: copy)
        #expect(try crashCopy.engine().databases.isEmpty)
        #expect(try larder.engine().databases.isEmpty)
    }

    @Test func aFailedDeletionLosesNothing() throws {
        let larder = try TestLarder()
        let database = try larder.database()
        try database.put("old", "0")
        try larder.maintain()
        try database.put("a", "1")
        // Creates directories with all the names to which the database could be moved.
        let now = UInt64(try larder.engine().now())
        for number in now..<(now + 200) {
            try FileSystem.makeDirectories(larder.path + "/.deleted-books-\(number)/taken")
        }
        #expect(errorCode { _ = try larder.engine().deleteDatabase("books") } == .io)
        #expect(try larder.database().contents() == ["old": "0", "a": "1"])
        try larder.maintain()
        larder.close()
        #expect(try larder.database().contents() == ["old": "0", "a": "1"])
    }

    /// A checkpoint of only the oldest segments must not record that LevelDB needs no newer ones.
    @Test func aCheckpointOfAPartOfTheJournalNeedsTheRest() throws {
        let larder = try TestLarder()
        let database = try larder.database()
        try database.put("a", "1")
        let part = database.pipeline.lastDecided
        try database.put("b", "2")
        let end = database.pipeline.lastDecided
        let pass = try #require(CheckpointPass(database, upTo: part, journalEnd: end, room: .max))
        try pass.write(progress: {}, sync: {})
        #expect(database.durableState.store?.journalNeeded.load(ordering: .relaxed) == end)
        #expect(pass.newest == end)
        pass.finish()
        #expect(database.dirtyCount == 1)
    }

    /// A checkpoint has evicted an entry, but has not removed it from the journal. If the key is removed now, a crash
    /// must not bring the entry back.
    @Test func removingAnEvictedEntrySurvivesACrash() throws {
        let larder = try TestLarder()
        let database = try larder.database()
        try database.put("a", "1")
        func remove() throws { try database.commit([Key("a")], loading: .headers) { $0.removeStored(0) } }
        let pass = try #require(CheckpointPass(database, upTo: database.pipeline.lastDecided, room: 0))
        try pass.write(progress: {}, sync: {})
        #expect(try database.get(Key("a")) == nil)
        try remove()
        pass.finish()
        let crashCopy = try larder.crashCopy()
        #expect(try crashCopy.database().contents() == [:])
        // When the journal no longer has the entry, such a removal commits nothing.
        try database.checkpointer.checkpoint()
        let bytes = try larder.engine().journalByteCount
        try remove()
        #expect(try larder.engine().journalByteCount == bytes)
    }

    /// LevelDB must not have data that the journal could lose: replaying a shorter journal over newer data would mix
    /// old and new values.
    @Test func theJournalIsSyncedBeforeLevelDBIsWritten() throws {
        let calls = Recorder<JournalCall>()
        let larder = try TestLarder {
            $0.journalFaults = JournalFaults { call, _ in
                calls.add(call)
                return nil
            }
        }
        let database = try larder.database()
        try database.put("a", "1")
        #expect(!calls.all.contains(.fsync))
        try database.flush()
        #expect(calls.all.contains(.fsync))
    }

    /// After a failed fsync it is unknown which part of a segment is on disk. The segment must be copied before its
    /// entries are written to LevelDB: otherwise a power failure during that write would damage the database.
    @Test func unsyncedSegmentsAreCopiedBeforeLevelDBIsWritten() throws {
        let isFailing = Guarded(false)
        let store = Guarded<EpochStore?>(nil)
        // Breaks a reference cycle: the store keeps the options with this closure, which keeps the store.
        defer { store.value = nil }
        let noted = Recorder<UInt64>()
        let larder = try TestLarder {
            $0.journalFaults = JournalFaults { call, path in
                if call == .rename, path.contains("ahead-"), let store = store.value {
                    noted.add(store.journalNeeded.load(ordering: .relaxed))
                }
                return call == .fsync && isFailing.value && !path.contains("ahead-") ? .fail(EIO) : nil
            }
        }
        let database = try larder.database()
        try database.put("a", "1")
        store.value = database.durableState.store
        isFailing.value = true
        #expect(errorCode { try database.put("a", "2", durability: .always) } == .commitFailed)
        try database.put("b", "3")
        // The second segment cannot be synced either.
        try database.checkpointer.checkpoint()
        #expect(noted.all.first == .max)
        isFailing.value = false
        try database.put("c", "4", durability: .always)
        let crashCopy = try larder.crashCopy()
        #expect(try crashCopy.database().contents() == ["a": "1", "b": "3", "c": "4"])
    }

    /// If no checkpoint succeeds, writers get an error instead of waiting for space forever. Existing data stays
    /// readable.
    @Test(arguments: [false, true])
    func writersAreRefusedWhileTheJournalIsFullAndCannotBeEmptied(hasThreads: Bool) throws {
        let isFailing = Guarded(true)
        let larder = try TestLarder {
            $0.checkpointBytes = 100_000
            $0.backgroundMaintenance = hasThreads
            $0.maintenanceMilliseconds = 1
            $0.journalFaults = JournalFaults { call, _ in call == .unlink && isFailing.value ? .fail(EIO) : nil }
        }
        let database = try larder.database()
        let value = String(repeating: "x", count: 50_000)
        var count = 0
        var code: LarderError.Code?
        while code == nil, count < 1000 {
            code = errorCode { try database.put("k\(count)", value) }
            if code == nil { count += 1 }
        }
        #expect(code == .writesSuspended)
        #expect(count > 10)
        #expect(try database.value("k3") == value)
        #expect(try !larder.engine().pipeline.isCongested, "event loops must not wait for space, but return the error")
        isFailing.value = false
        // With background threads, the next checkpoint may not have run yet. Without them, the next writer runs it.
        while try larder.engine().pipeline.refusal("test") != nil, hasThreads { sched_yield() }
        for number in 0..<100 { try database.put("n\(number)", value) }
        larder.close()
        #expect(try larder.database().contents().count == count + 100)
    }

    /// Damage of the journal left the database with a mixture of old and new values. The database is quarantined before
    /// the next start can use it.
    @Test func databasesThatNeedLostJournalEntriesAreQuarantined() throws {
        let larder = try TestLarder()
        let database = try larder.database()
        try database.put("a", "1")
        try database.flush()
        try database.put("b", "2")
        try larder.database("other").put("c", "3")
        let crashCopy = try larder.crashCopy { $0.onDamage = .salvage }
        // Damages the payload of the journal's first frame.
        try Files.flip(crashCopy.journalSegments[0], at: JournalFormat.segmentHeaderBytes + 60)
        _ = try crashCopy.engine()
        let next = try crashCopy.crashCopy()
        #expect(try next.database().contents() == [:])
        #expect(next.setAside.contains { $0.hasSuffix("-books") })
        #expect(!next.setAside.contains { $0.hasSuffix("-other") })
    }
}
