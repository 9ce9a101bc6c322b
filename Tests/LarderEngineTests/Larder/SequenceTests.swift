import LarderLevelDB
import LarderPlatform
import LarderTestSupport
import Testing

@testable import LarderEngine

/// Tests that each sequence and epoch number is assigned only once, whatever the clock shows at the next start.
@Suite struct SequenceTests {
    private var file: String { SequencesFile.name }

    /// Regression test: after a restart with the clock set back, and then SIGKILL, all databases were quarantined as
    /// damaged.
    @Test(arguments: [50, 30_000, 3_600_000, 315_360_000_000 as Int64])
    func settingTheClockBackBetweenRunsDamagesNothing(milliseconds: Int64) throws {
        for setsAside in [false, true] {
            let larder = try TestLarder { $0.onDamage = setsAside ? .salvage : .fail }
            try larder.database(policy: .never).put("a", "1")
            try larder.database("idle", policy: .never).put("i", "1")
            larder.close()
            larder.time.stepWall(milliseconds: -milliseconds)
            try larder.database().put("b", "2")
            let crashCopy = try larder.crashCopy()
            #expect(try crashCopy.database().contents() == ["a": "1", "b": "2"])
            #expect(try crashCopy.database("idle").contents() == ["i": "1"])
            #expect(try crashCopy.engine().statistics.setAside.read() == 0)
            #expect(try crashCopy.engine().statistics.journalDamages.read() == 0)
            #expect(try crashCopy.engine().statistics.salvages.read() == 0)
        }
    }

    /// Like the previous test, but a checkpoint has emptied the journal, and there are no later writes.
    @Test func settingTheClockBackBetweenRunsDamagesNoIdleLarder() throws {
        let larder = try TestLarder()
        try larder.database(policy: .never).put("a", "1")
        larder.close()
        larder.time.stepWall(milliseconds: -50)
        try larder.database().put("b", "2")
        try larder.engine().save()
        var crashCopy = try larder.crashCopy()
        for _ in 0..<3 {
            #expect(try crashCopy.database().contents() == ["a": "1", "b": "2"])
            crashCopy.time.stepWall(milliseconds: -1000)
            crashCopy = try crashCopy.crashCopy()
        }
    }

    @Test func sequencesNeverRepeatAcrossProcesses() throws {
        let larder = try TestLarder()
        var random = SeededGenerator(seed: testSeed())
        var highest: UInt64 = 0
        for round in 0..<12 {
            let pipeline = try larder.engine().pipeline
            let before = pipeline.everythingApplied.sequence
            #expect(before >= highest)
            #expect(before >= Sequences.first)
            for number in 0..<Int.random(in: 0..<3, using: &random) {
                try larder.database().put("\(number)", "\(round)")
            }
            if random.oneIn(2) { try larder.engine().save() }
            highest = pipeline.everythingApplied.sequence
            #expect(highest <= (try larder.engine().context.sequences.reserved.commitUnits))
            larder.close()
            larder.time.stepWall(milliseconds: Int64.random(in: -10_000_000...1_000_000, using: &random))
        }
    }

    /// The entries are from an older version, which took its sequences from the clock, and that clock was ahead.
    @Test func entriesOfAnOlderVersionAreNotReportedAsLost() throws {
        let larder = try TestLarder()
        try larder.database(policy: .never).put("a", "1")
        let store = try #require(try larder.database().flushedStore())
        let ahead = UInt64(larder.time.wallMilliseconds() + 3_600_000) << 16
        try store.note(journalNeeded: ahead)
        larder.close()
        try Files.remove(larder.path + "/" + file)
        let epoch = store.epoch
        // Creates the journal of an older process that was killed after the clock had been set back.
        let journal = try Journal(directory: larder.path + "/JOURNAL", segmentBytes: 1 << 20)
        let older = ahead - (7_200_000 << 16)
        journal.begin(behind: older)
        let batch = JournalBatch()
        batch.select(database: "books", number: 0, epoch: epoch)
        let record = Record(RecordHeader(storedAt: larder.time.wallMilliseconds()), payload: Array("2".utf8))
        Array("b".utf8).withUnsafeBytes { key in
            record.stored.withUnsafeBytes { batch.put(key: key, record: $0, sequence: older + 1) }
        }
        try journal.append(batch)
        journal.close()
        var crashCopy = try larder.crashCopy()
        for _ in 0..<3 {
            #expect(try crashCopy.database().contents() == ["a": "1", "b": "2"])
            try crashCopy.database("other").put("c", "3")
            crashCopy = try crashCopy.crashCopy()
        }
    }

    enum Loss: CaseIterable { case removed, flipped, empty, directory }

    /// If the file SEQUENCES is lost or damaged, the larder reports this and continues.
    @Test(arguments: Loss.allCases) func aLostSequencesFileIsReportedAndHarmless(_ loss: Loss) throws {
        let larder = try TestLarder { $0.onDamage = .salvage }
        try larder.database(policy: .never).put("a", "1")
        try larder.database("unused", policy: .never).put("u", "1")
        try larder.engine().save()
        try larder.database().put("b", "2")
        let crashCopy = try larder.crashCopy()
        let path = crashCopy.path + "/" + file
        switch loss {
        case .removed: try Files.remove(path)
        case .flipped: try Files.flip(path, at: 30)
        case .empty: try Files.truncate(path, to: 0)
        case .directory:
            try Files.remove(path)
            try FileSystem.makeDirectory(path)
        }
        crashCopy.time.stepWall(milliseconds: -86_400_000)
        #expect(try crashCopy.database().contents() == ["a": "1", "b": "2"])
        #expect(crashCopy.events.contains(file), "the loss was not reported")
        if loss == .directory {
            #expect(errorCode { try crashCopy.database().put("c", "3") } == .commitFailed)
            try Files.remove(path)
            _ = try crashCopy.engine().maintain()
        }
        try crashCopy.database().put("c", "3")
        let next = try crashCopy.crashCopy()
        #expect(try next.database().contents() == ["a": "1", "b": "2", "c": "3"])
        #expect(try next.database("unused").contents() == ["u": "1"])
        #expect(try next.engine().statistics.setAside.read() == 0)
        #expect(try next.engine().statistics.journalDamages.read() == 0)
        #expect(try next.engine().statistics.salvages.read() == 0)
    }

    /// Nothing is lost or reported as damage although SEQUENCES is lost, the journal is empty, and the clock was set
    /// back.
    @Test func aLostSequencesFileOfAnIdleLarderIsHarmless() throws {
        let larder = try TestLarder { $0.onDamage = .salvage }
        try larder.database(policy: .never).put("a", "1")
        try larder.database("unused", policy: .never).put("u", "1")
        larder.close()
        try Files.remove(larder.path + "/" + file)
        larder.time.stepWall(milliseconds: -3_600_000)
        try larder.database().put("b", "2")
        let crashCopy = try larder.crashCopy()
        try crashCopy.database().put("c", "3")
        let next = try crashCopy.crashCopy()
        #expect(try next.database().contents() == ["a": "1", "b": "2", "c": "3"])
        #expect(try next.database("unused").contents() == ["u": "1"])
        #expect(try next.engine().statistics.setAside.read() == 0)
        #expect(try next.engine().statistics.journalDamages.read() == 0)
        #expect(try next.engine().statistics.salvages.read() == 0)
    }

    @Test func aSequencesFileOfANewerVersionIsRefused() throws {
        let larder = try TestLarder()
        try larder.database().put("a", "1")
        larder.close()
        try Files.write(larder.path + "/" + file, Array("larder-sequences 4\nwhatever\n".utf8))
        #expect(errorCode { _ = try larder.engine() } == .newerFormat)
    }

    /// If there is no space for SEQUENCES, reads continue, and writes fail with the reason until there is space.
    @Test func sequencesThatCannotBeReservedAreNotUsed() throws {
        let larder = try TestLarder()
        try larder.database().put("a", "1")
        larder.close()
        let obstacle = larder.path + "/" + file + ".new"
        try FileSystem.makeDirectory(obstacle)
        #expect(try larder.database().contents() == ["a": "1"])
        #expect {
            try larder.database().put("b", "2")
        } throws: { error in
            (error as? LarderError)?.code == .commitFailed && "\(error)".contains(file)
        }
        #expect(larder.events.contains("sequences cannot be reserved"))
        try Files.remove(obstacle)
        _ = try larder.engine().maintain()
        try larder.database().put("b", "2")
        let crashCopy = try larder.crashCopy()
        #expect(try crashCopy.database().contents() == ["a": "1", "b": "2"])
    }

    @Test("the names of databases are written again after a failed write, and only then")
    func namesThatCouldNotBeWritten() throws {
        let directory = try TemporaryDirectory()
        let sequences = Sequences(directory: directory.path) { _, _ in }
        func names() throws -> Set<String>? { try SequencesFile.read(in: directory.path)?.databases }
        try sequences.load()
        _ = sequences.found(["a"])
        sequences.begin(behind: 0, now: 1_700_000_000_000)
        #expect(try names() == ["a"])
        let obstacle = directory.path + "/" + file + ".new"
        try FileSystem.makeDirectory(obstacle)
        for exists in [true, true, false] {
            #expect(throws: FileError.self) { try sequences.note("b", exists: exists) }
        }
        try Files.remove(obstacle)
        try sequences.note("a", exists: true)
        #expect(try names() == ["a"])
        try sequences.note("b", exists: true)
        #expect(try names() == ["a", "b"])
        try Files.remove(directory.path + "/" + file)
        try sequences.note("b", exists: true)
        #expect(try names() == nil, "unchanged names are not written again")
    }

    @Test func moreSequencesAreReservedBeforeTheyAreUsedUp() throws {
        let directory = try TemporaryDirectory(inMemory: true)
        let sequences = Sequences(directory: directory.path) { _, _ in }
        try sequences.load()
        sequences.begin(behind: 0, now: 1_700_000_000_000)
        let reserved = sequences.reserved.commitUnits
        #expect(reserved == sequences.base + Sequences.unitsStep)
        sequences.extendIfNeeded(last: sequences.base + 5)
        #expect(sequences.reserved.commitUnits == reserved)
        #expect(sequences.refusal(of: reserved) == nil)
        sequences.extendIfNeeded(last: reserved - 5)
        #expect(sequences.reserved.commitUnits == reserved - 5 + Sequences.unitsStep)
        #expect(sequences.refusal(of: reserved + 1) == nil)
        let refused = sequences.reserved.commitUnits + 1
        #expect(sequences.refusal(of: refused) != nil)
        // The numbers of refused writes are not assigned again.
        sequences.extendIfNeeded(last: reserved)
        #expect(sequences.reserved.commitUnits == refused + Sequences.unitsStep)
        let text = try #require(try FileSystem.read(directory.path + "/" + file))
        #expect(try SequencesFile(parsing: text) == sequences.reserved)
    }

    /// Numbers at the end of their range, from a manipulated file, never trap.
    @Test func sequencesAtTheEndOfTheirRangeNeverCrash() throws {
        for units in [UInt64.max, Sequences.end, Sequences.end - 1] {
            let directory = try TemporaryDirectory(inMemory: true)
            let text = SequencesFile(commitUnits: units, epochs: .max).text
            try Files.write(directory.path + "/" + file, Array(text.utf8))
            let sequences = Sequences(directory: directory.path) { _, _ in }
            try sequences.load()
            sequences.begin(behind: units, now: .max)
            #expect(sequences.base < Sequences.end)
            #expect(sequences.nextEpoch(after: .max) <= Sequences.epochMax + 1)
        }
    }

    /// Epoch numbers increase, whatever the clock shows.
    @Test func epochsIncreaseWithAnyClock() throws {
        let larder = try TestLarder()
        var last: UInt64 = 0
        for round in 0..<6 {
            for _ in 0..<2 {
                let database = try larder.database()
                let epoch = try #require(database.durableState.store?.epoch)
                #expect(epoch > last)
                last = epoch
                if round % 2 == 0 {
                    _ = try database.purge(.all(counting: false))
                } else {
                    _ = try larder.engine().deleteDatabase("books")
                }
            }
            let epoch = try larder.database().durableState.store?.epoch
            last = try #require(epoch)
            _ = try larder.engine().deleteDatabase("books")
            larder.close()
            larder.time.stepWall(milliseconds: round % 2 == 0 ? -3_600_000 : -1_000_000_000_000)
        }
    }

    /// `PURGE` and other operations flush data to LevelDB. Data that is appended to the journal while it is being
    /// synced may be lost in a power failure. A flush must not write such data to LevelDB, nor record that the database
    /// needs it.
    @Test func aFlushWritesOnlySyncedGroupsToLevelDB() throws {
        let state = Guarded<(database: LarderEngine.Database?, synced: Int?)>((nil, nil))
        let larder = try TestLarder {
            $0.journalFaults = JournalFaults { call, path in
                guard call == .fsync, let database = state.value.database else { return nil }
                state.with { state in
                    state.database = nil
                    state.synced = FileSystem.size(path)
                }
                _ = try? database.put("b", "2")
                return nil
            }
        }
        let database = try larder.database()
        try database.put("a", "1")
        state.with { $0.database = database }
        try database.checkpointer.flush(database)
        let crashCopy = try larder.crashCopy { $0.onDamage = .salvage }
        // The machine fails: data that the sync did not cover is lost.
        try Files.truncate(crashCopy.journalSegments[0], to: try #require(state.value.synced))
        #expect(try crashCopy.database().contents() == ["a": "1"])
        #expect(try crashCopy.engine().statistics.setAside.read() == 0)
        #expect(try crashCopy.engine().statistics.journalDamages.read() == 0)
        #expect(try crashCopy.engine().statistics.salvages.read() == 0)
    }

    /// LevelDB never syncs the directory entry of a new log. So the larder must sync that entry before it removes the
    /// log's data from the journal.
    @Test func databaseNamesAreSyncedBeforeSegmentsAreRemoved() throws {
        let calls = Recorder<(JournalCall, String)>()
        let isFailing = Guarded(false)
        let larder = try TestLarder {
            $0.journalFaults = JournalFaults { call, path in
                calls.add((call, path))
                return call == .fsyncDirectory && isFailing.value && !path.hasSuffix("JOURNAL") ? .fail(EIO) : nil
            }
        }
        try larder.database(policy: .never).put("a", "1")
        let epoch = try larder.epochDirectory()
        isFailing.value = true
        #expect(throws: LarderError.self) { try larder.engine().save() }
        #expect(!larder.journalSegments.isEmpty)
        isFailing.value = false
        calls.removeAll()
        try larder.engine().save()
        let all = calls.all
        let synced = try #require(all.firstIndex { $0.0 == .fsyncDirectory && $0.1 == epoch })
        let removed = try #require(all.firstIndex { $0.0 == .unlink })
        #expect(synced < removed)
        #expect(larder.journalSegments.isEmpty)
        // A flush must sync directory entries too, because later checkpoints do not write the flushed entries again.
        try larder.database().put("b", "2")
        calls.removeAll()
        try larder.database().checkpointer.flush(larder.database())
        #expect(calls.all.contains { $0.0 == .fsyncDirectory && $0.1 == epoch })
    }

    /// Regression test: the journal's entries were written to LevelDB although the names of its files could not be
    /// synced. After a power failure lost these files, the whole database was treated as damaged.
    @Test func levelDBIsNotWrittenWhileJournalNamesCannotBeSynced() throws {
        let isFailing = Guarded(false)
        let larder = try TestLarder {
            $0.journalFaults = JournalFaults { call, path in
                call == .fsyncDirectory && isFailing.value && path.hasSuffix("JOURNAL") ? .fail(EIO) : nil
            }
        }
        let database = try larder.database(policy: .never)
        try database.put("a", "1")
        try larder.engine().save()
        isFailing.value = true
        try database.put("b", "2")
        try database.put("a", "3")
        #expect(throws: LarderError.self) { try larder.engine().save() }
        #expect(try database.contents() == ["a": "3", "b": "2"])
        let crashCopy = try larder.crashCopy { $0.onDamage = .salvage }
        // The machine fails, and a frame that was not synced is lost.
        let segment = try #require(crashCopy.journalSegments.last)
        try Files.truncate(segment, to: FileSystem.size(segment) - 1)
        #expect(try crashCopy.database().contents() == ["a": "1", "b": "2"])
        #expect(crashCopy.setAside == [])
        isFailing.value = false
        try larder.engine().save()
        #expect(larder.journalSegments.isEmpty)
        #expect(try database.contents() == ["a": "3", "b": "2"])
    }
}
