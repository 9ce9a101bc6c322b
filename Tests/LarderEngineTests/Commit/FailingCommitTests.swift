import LarderPlatform
import LarderTestSupport
import Testing

@testable import LarderEngine

/// Tests of commits that do not reach the disk.
@Suite struct FailingCommitTests {
    /// Makes selected commits fail.
    final class Fault: Sendable {
        let isOn = Guarded(false)
        let calls = Guarded(0)
        /// The number of the call that fails, counted from 1; nil for none.
        let failing = Guarded<Int?>(nil)
        /// Runs once, during the next commit. The commit then continues normally, unless `isOn` or `failing` makes it
        /// fail.
        let instead = Guarded<(@Sendable () -> Void)?>(nil)

        var hook: @Sendable () throws(LarderError) -> Void {
            { [self] () throws(LarderError) in
                let call = calls.with { calls in
                    calls += 1
                    return calls
                }
                if call == failing.value { throw LarderError(.io, "no space left", operation: "commit") }
                if let body = instead.with({ body in
                    defer { body = nil }
                    return body
                }) {
                    body()
                }
                if isOn.value { throw LarderError(.io, "no space left", operation: "commit") }
            }
        }
    }

    /// The recovery may open databases, and so decide units with higher numbers than those in the journal.
    @Test("a unit that was decided during the recovery is still decided after it", arguments: [false, true])
    func decidedDuringRecovery(fails: Bool) throws {
        let fault = Fault()
        let larder = try TestLarder { $0.beforeCommit = fault.hook }
        let pipeline = try larder.engine().pipeline
        let journalEnd = pipeline.lastDecided
        fault.isOn.with { $0 = fails }
        pipeline.resume(behind: journalEnd + 1_000)
        pipeline.drain()
        fault.isOn.with { $0 = false }
        pipeline.begin(behind: journalEnd)
        #expect(pipeline.isDecided(pipeline.everythingApplied))
    }

    @Test func aFailedCommitFailsAllQueuedOperationsAndRollsBack() throws {
        let fault = Fault()
        let larder = try TestLarder { $0.beforeCommit = fault.hook }
        let database = try larder.database()
        let other = try larder.database("other")
        try database.put("a", "old")
        fault.isOn.value = true
        let pipeline = try larder.engine().pipeline
        let first = try database.update([Key("a")], loading: true, now: database.now()) { update in
            Array("new".utf8).withUnsafeBytes { update.put(0, payload: $0) }
        }.1
        let second = try other.putLater("b", "new")
        let read = try database.read(Key("a"), now: database.now())
        #expect(read.record?.text == "new")
        #expect(read.ticket >= first)
        for ticket in [first, second, read.ticket] {
            #expect(errorCode { try pipeline.wait(for: ticket) } == .commitFailed)
        }
        #expect(try database.value("a") == "old")
        #expect(try other.value("b") == nil)
        fault.isOn.value = false
        try other.put("b", "again")
        #expect(try other.value("b") == "again")
        #expect(pipeline.pendingByteCount == 0)
    }

    @Test func onlyCommitsThatSucceedAreApplied() throws {
        for period in 1...5 {
            let fault = Fault()
            let larder = try TestLarder { $0.beforeCommit = fault.hook }
            let database = try larder.database()
            var expected: [String: String] = [:]
            for step in 0..<60 {
                let fails = step % period == 0
                fault.isOn.value = fails
                let key = "k\(step % 7)"
                let code = errorCode { try database.put(key, "\(step)") }
                #expect(code == (fails ? .commitFailed : nil))
                if !fails { expected[key] = "\(step)" }
                #expect(try database.value(key) == expected[key])
            }
            #expect(try database.contents() == expected)
        }
    }

    /// A failed commit must be rolled back, but the journal cannot be read for a while. Acknowledged writes are lost
    /// neither in memory nor by the next checkpoint, and refused writes do not get into LevelDB.
    @Test(arguments: [1, 2]) func aFailedCommitIsRolledBackOnceTheJournalIsReadable(pass: Int) throws {
        let failing = Guarded(false)
        let opens = Guarded<Int?>(nil)
        let larder = try TestLarder {
            $0.journalFaults = JournalFaults { call, _ in
                if case .write = call { return failing.value ? .fail(ENOSPC) : nil }
                guard call == .open else { return nil }
                return opens.with { opens in
                    guard let count = opens else { return nil }
                    opens = count + 1
                    return count + 1 >= pass ? .fail(EMFILE) : nil
                }
            }
        }
        let database = try larder.database()
        let other = try larder.database("other")
        try database.put("a", "in LevelDB")
        try other.put("x", "clean")
        try larder.engine().save()
        #expect(try other.value("x") == "clean")
        try database.put("a", "acknowledged")
        failing.value = true
        opens.value = 0
        #expect(errorCode { try database.put("a", "refused") } == .commitFailed)
        failing.value = false
        #expect(errorCode { try database.flush() } == .io)
        #expect(try larder.engine().writeFailure != nil, "the rollback is still pending")
        #expect(errorCode { try larder.engine().save() } != nil)
        #expect(errorCode { try database.put("b", "refused") } == .io)
        // No read returns the refused value or the older value in LevelDB, and no update is based on either of them.
        #expect(errorCode { _ = try database.value("a") } == .io)
        #expect(errorCode { _ = try database.commit([Key("a")], loading: .records) { $0.current(0)?.text } } == .io)
        // A database without writes in the failed commit can still be read.
        if pass == 1 { #expect(try other.value("x") == "clean") }
        let early = try larder.crashCopy()
        #expect(try early.database().contents() == ["a": "acknowledged"])
        #expect(early.setAside.isEmpty)
        opens.value = nil
        try database.flush()
        #expect(try database.value("a") == "acknowledged")
        try database.put("b", "again")
        #expect(try larder.engine().writeFailure == nil)
        #expect(try database.contents() == ["a": "acknowledged", "b": "again"])
        try larder.engine().save()
        let crashCopy = try larder.crashCopy()
        #expect(try crashCopy.database().contents() == ["a": "acknowledged", "b": "again"])
        #expect(crashCopy.setAside.isEmpty)
    }

    /// Until a failed commit is rolled back, the database counts as failed. Its files stay open, and must not be opened
    /// a second time.
    @Test(arguments: [false, true]) func rollingBackACommitKeepsOpenFilesOpen(isPurged: Bool) throws {
        let fails = Guarded(false)
        let larder = try TestLarder {
            $0.journalFaults = JournalFaults { call, _ in
                switch call {
                case .write: fails.value ? .fail(ENOSPC) : nil
                case .open: fails.value ? .fail(EMFILE) : nil
                default: nil
                }
            }
        }
        let database = try larder.database()
        try database.put("a", "1")
        let store = try #require(database.durableState.store)
        fails.value = true
        #expect(errorCode { try database.put("a", "refused") } == .commitFailed)
        #expect(errorCode { _ = try database.purge() } == .io)
        fails.value = false
        if isPurged {
            _ = try database.purge()
            #expect(store.ending == .purged)
            #expect(try database.contents() == [:])
        } else {
            #expect(errorCode { _ = try DatabaseRepair(database: database).salvage() } == .invalidArgument)
            #expect(database.durableState.store === store)
            #expect(try database.contents() == ["a": "1"])
        }
    }

    /// The failure of one write does not affect later readers.
    @Test func aFailedWriteDoesNotMakeLaterReadsFail() throws {
        let fault = Fault()
        let larder = try TestLarder { $0.beforeCommit = fault.hook }
        let database = try larder.database()
        try database.put("a", "1")
        fault.isOn.value = true
        #expect(errorCode { try database.put("a", "2") } == .commitFailed)
        #expect(try database.count(includingExpired: false) == 1)
        #expect(try database.snapshot().value("a") == "1")
        #expect(try database.contents() == ["a": "1"])
    }

    /// A durable change of a whole database is not undone if a later write of the same group of commits fails.
    @Test func durableOperationsBeforeAFailureStayCommitted() throws {
        let fault = Fault()
        let larder = try TestLarder { $0.beforeCommit = fault.hook }
        let database = try larder.database()
        let other = try larder.database("other")
        try database.put("a", "1")
        try database.put("kept", "1", rule: .ownNever)
        let pipeline = try larder.engine().pipeline
        // These operations are queued while another commit is running, so they are committed as one group.
        let gathered = Guarded<[CommitTicket]>([])
        fault.instead.with {
            $0 = {
                let good = try? database.putLater("b", "2")
                let policy = try? database.changePolicy(DatabasePolicy(.high), now: database.now())
                let bad = try? other.putLater("c", "3")
                gathered.value = [good, policy, bad].compactMap { $0 }
                fault.failing.value = fault.calls.value + 3
            }
        }
        try database.put("trigger", "0")
        let tickets = gathered.value
        #expect(tickets.count == 3)
        try pipeline.wait(for: tickets[0])
        try pipeline.wait(for: tickets[1])
        #expect(errorCode { try pipeline.wait(for: tickets[2]) } == .commitFailed)
        #expect(database.policy == .high)
        #expect(try database.value("b") == "2")
        larder.close()
        #expect(try larder.database().policy == .high)
        #expect(try larder.database().value("b") == "2")
    }

    @Test func aPurgeSurvivesALaterFailure() throws {
        let fault = Fault()
        let larder = try TestLarder { $0.beforeCommit = fault.hook }
        let database = try larder.database()
        let other = try larder.database("other")
        try database.put("a", "1")
        // During a commit, another thread queues a purge. Then this thread queues a write, which will fail.
        let purged = Guarded<LarderError.Code?>(nil)
        let thread = Guarded<WorkThread?>(nil)
        fault.instead.with {
            $0 = {
                let before = database.appliedState.store
                thread.with {
                    $0 = WorkThread(name: "purge") {
                        let code = errorCode { _ = try database.purge(.all(counting: false)) }
                        purged.value = code
                    }
                }
                while database.appliedState.store === before { sched_yield() }
                _ = try? other.putLater("c", "3")
                fault.failing.value = fault.calls.value + 2
            }
        }
        try database.put("trigger", "0")
        thread.value?.join()
        #expect(purged.value == nil)
        // Writes that are queued while the failure is handled fail too.
        try larder.engine().pipeline.drain()
        #expect(try other.value("c") == nil)
        try database.put("b", "2")
        try larder.maintain()
        larder.close()
        #expect(try larder.database().contents() == ["b": "2"])
    }

    @Test func aPurgeThatFailsLeavesTheOldEntries() throws {
        let fault = Fault()
        let larder = try TestLarder { $0.beforeCommit = fault.hook }
        let database = try larder.database()
        try database.put("a", "1")
        fault.isOn.value = true
        #expect(errorCode { _ = try database.purge() } == .commitFailed)
        #expect(errorCode { try database.setPolicy(.never) } == .commitFailed)
        fault.isOn.value = false
        #expect(database.policy == .lowest)
        #expect(try database.value("a") == "1")
        try larder.maintain()
        try database.put("b", "2")
        #expect(try FileSystem.list(database.files.directory).filter { UInt64($0) != nil }.count == 1)
        larder.close()
        #expect(try larder.database().contents() == ["a": "1", "b": "2"])
    }

    @Test func aFailedWriteIsNeverReportedAsCommitted() {
        var failures = CommitFailures()
        let error = LarderError(.io, "x", operation: "test")
        for number in UInt64(0)...UInt64(CommitFailures.rangesMax + 10) {
            failures.add(number * 10 + 5...number * 10 + 7, error)
        }
        #expect(failures.error(of: 6)?.code == .commitFailed)
        let last = UInt64(CommitFailures.rangesMax + 10) * 10
        #expect(failures.error(of: last + 4) == nil)
        #expect(failures.error(of: last + 5)?.code == .io)
        #expect(failures.error(of: last + 8) == nil)
        #expect(failures.error(of: 0) != nil)
    }

    @Test func aReadDoesNotWaitForAChangeThatIsDurable() throws {
        let larder = try TestLarder()
        let database = try larder.database()
        try database.put("a", "1")
        try database.setPolicy(.high)
        #expect(try database.read(Key("a"), now: database.now()).ticket == .none)
    }

    /// A write that LevelDB reported as failed may still be in its log, and appear when the log is read again. Older
    /// values in memory must not hide it.
    @Test func oldValuesInMemoryDoNotHideValuesFoundOnReopening() throws {
        let larder = try TestLarder { $0.memoryBytes = 1 << 20 }
        let database = try larder.database()
        try database.put("a", "old")
        try larder.maintain()
        #expect(try database.value("a") == "old")
        let store = try #require(database.durableState.store)
        store.suspend(LarderError(.io, "pulled out", operation: "test"))
        #expect(try database.value("a") == "old")
        let record = Record(RecordHeader(storedAt: database.now()), payload: Array("new".utf8))
        try store.rawPut(Key("a").stored, record.stored)
        try database.prepare(forWriting: true)
        #expect(try database.value("a") == "new")
        #expect(try database.contents() == ["a": "new"])
        #expect(try database.commit([Key("a")], loading: .records) { $0.current(0)?.text } == "new")
    }
}
