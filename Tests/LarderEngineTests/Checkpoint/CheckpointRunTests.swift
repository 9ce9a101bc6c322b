import LarderLevelDBFormat
import LarderPlatform
import LarderTestSupport
import Testing

@testable import LarderEngine

/// Tests of checkpoints that write their entries in several runs. When a run is on the disk, its entries become clean,
/// before the checkpoint ends.
@Suite struct CheckpointRunTests {
    private typealias Fault = FailingCommitTests.Fault

    /// Calls a function whenever a checkpoint has written a run, before the run's entries become clean.
    private final class Runs: Sendable {
        private let count = Guarded(0)
        private let body = Guarded<(@Sendable (Int) -> JournalFault?)?>(nil)

        /// - Parameter body: called with the number of runs since this call.
        func observe(_ body: (@Sendable (Int) -> JournalFault?)?) {
            count.value = 0
            self.body.value = body
        }

        var faults: JournalFaults {
            JournalFaults { [self] call, path in
                // Before entries become clean, the names of LevelDB's files are synced.
                guard call == .fsyncDirectory, !path.hasSuffix("/JOURNAL"), let body = body.value else { return nil }
                return body(
                    count.with { count in
                        count += 1
                        return count
                    })
            }
        }
    }

    /// A larder with a database whose entries a checkpoint writes in several runs.
    private struct Fixture {
        static let count = 400
        let runs = Runs()
        let fault = Fault()
        let larder: TestLarder
        let database: Database

        init(_ configure: (inout EngineOptions) -> Void = { _ in }) throws {
            larder = try TestLarder { [runs, fault] options in
                options.checkpointRunBytes = 10_000
                options.journalFaults = runs.faults
                options.beforeCommit = fault.hook
                configure(&options)
            }
            database = try larder.database()
            if larder.options.indexMaker != nil {
                try database.createIndex("w")
                try database.finishIndexes()
            }
            for number in 0..<Self.count { _ = try database.putLater("k\(number)", "old,\(number)") }
            database.pipeline.drain()
        }

        static let old = Dictionary(uniqueKeysWithValues: (0..<count).map { ("k\($0)", "old,\($0)") })

        /// Runs a checkpoint on another thread, and `body` while some runs are clean, and the run with this number is
        /// written, but dirty.
        /// - Returns: the error of the checkpoint.
        @discardableResult
        func whileHeld(at number: Int = 3, _ body: () throws -> Void) throws -> LarderError.Code? {
            let gate = Gate(isClosed: true)
            runs.observe { run in
                if run == number { gate.pass() }
                return nil
            }
            let code = Guarded<LarderError.Code?>(nil)
            let checkpoint = WorkThread(name: "checkpoint") { [database] in
                let failure = errorCode { try database.checkpointer.checkpoint() }
                code.value = failure
            }
            let failure = Result {
                gate.waitUntil()
                #expect(number == 1 || database.dirtyCount < Self.count)
                #expect(database.dirtyCount > 0)
                try body()
            }
            gate.open()
            checkpoint.join()
            runs.observe(nil)
            try failure.get()
            return code.value
        }

        /// Returns a copy as after a power failure that has lost everything in LevelDB's logs that is not known to be
        /// synced.
        func powerCut() throws -> TestLarder {
            let copy = try larder.crashCopy()
            let epoch = try copy.epochDirectory()
            // After a purge, the new epoch has no files yet.
            guard FileSystem.exists(epoch) else { return copy }
            let synced = try EpochInspection.note(in: epoch).files
            for (name, byteCount) in try SyncedFiles.logLengths(in: epoch) {
                let number = try #require(FileNames.logNumber(name))
                try Files.truncate(epoch + "/" + name, to: min(byteCount, synced?.logs[number] ?? 0))
            }
            return copy
        }

        /// Checks the entries, also as after a crash, a power failure, and two restarts.
        func check(_ expected: [String: String] = Self.old) throws {
            #expect(try database.contents() == expected)
            for (key, value) in expected { #expect(try database.value(key) == value) }
            for copy in [try larder.crashCopy(), try powerCut()] {
                #expect(try copy.database().contents() == expected)
                copy.close()
                #expect(try copy.database().contents() == expected)
                copy.close()
                #expect(try Engine.check(copy.path, indexMaker: larder.options.indexMaker).problems.isEmpty)
            }
        }
    }

    @Test("writers continue before a checkpoint ends") func writersContinueBeforeACheckpointEnds() throws {
        final class Ear: CommitObserver {
            let calls = Guarded(0)
            func commitsDecided(upTo sequence: UInt64, failure: LarderError?) {}
            func congestionMayBeOver() { calls.with { $0 += 1 } }
        }
        let runs = Runs()
        let larder = try TestLarder {
            $0.journalFaults = runs.faults
            $0.checkpointBytes = 1 << 30
            $0.checkpointRunBytes = 8 << 20
            $0.memoryBytes = 1 << 20
        }
        let database = try larder.database()
        let engine = try larder.engine()
        let value = String(repeating: "x", count: 400_000)
        var count = 0
        while !engine.pipeline.isCongested, count < 1000 {
            try engine.pipeline.wait(for: database.putLater("\(count)", value))
            count += 1
        }
        let ear = Ear()
        engine.pipeline.add(observer: ear)
        // The first two writers to find the memory full: one of them runs the checkpoint, and the other one waits.
        let written = Guarded(0)
        let writtenEarly = Guarded(0)
        let callsEarly = Guarded(0)
        runs.observe { run in
            guard run == 3 else { return nil }
            for _ in 0..<20_000 where written.value == 0 { usleep(1000) }
            writtenEarly.value = written.value
            callsEarly.value = ear.calls.value
            return nil
        }
        onThreads(2) { thread in
            if (try? database.put("new\(thread)", value)) != nil { written.with { $0 += 1 } }
        }
        engine.pipeline.remove(observer: ear)
        #expect(writtenEarly.value == 1)
        #expect(callsEarly.value > 0)
        #expect(written.value == 2)
        #expect(try database.count(includingExpired: true) == count + 2)
        #expect(!engine.pipeline.isCongested)
    }

    @Test("entries that LevelDB is about to sync leave room for writers") func passedEntriesLeaveRoom() {
        let budget = MemoryBudget(limitBytes: 1 << 20)
        budget.changed(by: 0, dirty: (64 << 20) + 1, attached: 0)
        #expect(budget.mustBlockWriters(besides: 0))
        budget.notePassed(1)
        #expect(!budget.mustBlockWriters(besides: 0))
        budget.notePassed(-1)
        #expect(budget.mustBlockWriters(besides: 0))
    }

    @Test("a thread that no longer needs a checkpoint stops waiting for it") func aThreadStopsWaiting() {
        let turn = CheckpointTurn()
        let isNeeded = Guarded(true)
        let calls = Guarded(0)
        let isTaken = Guarded(false)
        #expect(turn.take { true })
        let thread = WorkThread(name: "waiting") {
            let taken = turn.take {
                calls.with { $0 += 1 }
                return isNeeded.value
            }
            isTaken.value = taken
        }
        while calls.value == 0 { sched_yield() }
        isNeeded.value = false
        turn.noteRoom()
        thread.join()
        #expect(!isTaken.value)
        #expect(!turn.tryLock())
        turn.unlock()
        #expect(turn.tryLock())
        turn.unlock()
        #expect(turn.withLock { 1 } == 1)
    }

    @Test("a crash or a power failure between two runs loses nothing", arguments: [1, 2, 3])
    func aCrashBetweenTwoRunsLosesNothing(run: Int) throws {
        let fixture = try Fixture()
        let code = try fixture.whileHeld(at: run) {
            try fixture.check()
            #expect(try fixture.database.snapshot().contents() == Fixture.old)
        }
        #expect(code == nil)
        #expect(fixture.database.dirtyCount == 0)
        #expect(fixture.larder.journalSegments.allSatisfy { FileSystem.size($0) < 1000 })
        try fixture.check()
    }

    /// The rest of the entries is appended to the journal again, and the old segments are removed.
    @Test("a run that cannot be synced loses neither earlier nor later runs")
    func aRunThatCannotBeSyncedLosesNothing() throws {
        let fixture = try Fixture()
        fixture.runs.observe { run in run == 3 ? .fail(EIO) : nil }
        _ = errorCode { try fixture.database.checkpointer.checkpoint() }
        fixture.runs.observe(nil)
        #expect(fixture.database.dirtyCount > 0)
        #expect(fixture.database.dirtyCount < Fixture.count)
        try fixture.check()
        try fixture.database.checkpointer.checkpoint()
        #expect(fixture.database.dirtyCount == 0)
        try fixture.check()
    }

    /// LevelDB accepts no more writes after a failed one, until it is reopened.
    @Test("a run that cannot be written loses neither earlier nor later runs")
    func aRunThatCannotBeWrittenLosesNothing() throws {
        let fixture = try Fixture()
        let store = try #require(fixture.database.durableState.store)
        let segments = Set(fixture.larder.journalSegments)
        try fixture.whileHeld(at: 2) { store.suspend(LarderError(.io, "told to fail", operation: "test")) }
        #expect(fixture.database.dirtyCount > 0)
        #expect(fixture.database.dirtyCount < Fixture.count)
        // The old segments were removed, and the LevelDB was not synced after the failure.
        #expect(segments.isDisjoint(with: fixture.larder.journalSegments))
        let copy = try fixture.powerCut()
        #expect(try copy.database().contents() == Fixture.old)
        copy.close()
        try fixture.database.prepare(forWriting: true)
        try fixture.check()
        try fixture.database.checkpointer.checkpoint()
        try fixture.check()
    }

    @Test("entries that are changed while their run is written stay dirty", arguments: [0, 16 << 20], [1, 3])
    func changedEntriesStayDirty(memoryBytes: Int, run: Int) throws {
        let fixture = try Fixture { $0.memoryBytes = memoryBytes }
        let database = fixture.database
        var expected = Fixture.old
        try fixture.whileHeld(at: run) {
            for number in stride(from: 0, to: Fixture.count, by: 2) {
                if number % 3 == 0 {
                    try database.remove("k\(number)")
                    expected["k\(number)"] = nil
                } else {
                    try database.put("k\(number)", "new,\(number)")
                    expected["k\(number)"] = "new,\(number)"
                }
            }
            try fixture.check(expected)
        }
        #expect(database.dirtyCount == Fixture.count / 2)
        try fixture.check(expected)
        try database.checkpointer.checkpoint()
        #expect(database.dirtyCount == 0)
        try fixture.check(expected)
    }

    @Test("a failed commit is rolled back while some runs are clean", arguments: [1, 3])
    func aFailedCommitIsRolledBack(run: Int) throws {
        let fixture = try Fixture()
        let database = fixture.database
        try fixture.whileHeld(at: run) {
            fixture.fault.isOn.value = true
            for number in 0..<Fixture.count where number % 7 != 0 { _ = try database.putLater("k\(number)", "refused") }
            let last = try database.putLater("k0", "refused")
            #expect(errorCode { try database.pipeline.wait(for: last) } == .commitFailed)
            fixture.fault.isOn.value = false
            try fixture.check()
        }
        // The journal still has the entries that the rollback needed.
        #expect(database.dirtyCount == Fixture.count)
        try fixture.check()
        try database.checkpointer.checkpoint()
        #expect(database.dirtyCount == 0)
        try fixture.check()
    }

    @Test("a purge while some runs are clean removes all entries") func aPurgeRemovesAllEntries() throws {
        let fixture = try Fixture()
        try fixture.whileHeld {
            _ = try fixture.database.purge(.all(counting: false))
            try fixture.database.put("k1", "new")
            try fixture.check(["k1": "new"])
        }
        try fixture.check(["k1": "new"])
    }

    @Test("hints of indexes are complete after a crash between two runs") func hintsAreComplete() throws {
        let fixture = try Fixture { $0.indexMaker = WordIndexMaker() }
        func check(_ database: Database, old: Int, new: Int) throws {
            #expect(try database.keys(withWordsFrom: "old", through: "old")?.count == old)
            #expect(try database.keys(withWordsFrom: "new", through: "new")?.count == new)
            #expect(try database.missingHints() == [])
        }
        func checkAll(old: Int, new: Int) throws {
            try check(fixture.database, old: old, new: new)
            for copy in [try fixture.larder.crashCopy(), try fixture.powerCut()] {
                try copy.database().finishIndexes()
                try check(copy.database(), old: old, new: new)
                try copy.database().flush()
                try check(copy.database(), old: old, new: new)
            }
        }
        try fixture.whileHeld {
            try checkAll(old: Fixture.count, new: 0)
            for number in 0..<100 { try fixture.database.put("k\(number)", "new,\(number)") }
            try checkAll(old: Fixture.count - 100, new: 100)
        }
        try checkAll(old: Fixture.count - 100, new: 100)
        fixture.runs.observe { run in run == 1 ? .fail(EIO) : nil }
        _ = errorCode { try fixture.database.checkpointer.checkpoint() }
        fixture.runs.observe(nil)
        try checkAll(old: Fixture.count - 100, new: 100)
        try fixture.database.checkpointer.checkpoint()
        try checkAll(old: Fixture.count - 100, new: 100)
    }
}
