import LarderPlatform
import LarderTestSupport
import Testing

@testable import LarderEngine

/// Tests that the journal has exactly the acknowledged groups after system calls fail.
@Suite struct JournalFaultTests {
    /// Records the journal's system calls, and makes some of them fail.
    private final class Script: Sendable {
        private let state = Guarded((count: 0, faults: [Int: JournalFault](), calls: [JournalCall]()))

        init(_ faults: [Int: JournalFault] = [:]) { state.with { $0.faults = faults } }

        /// Stops making calls fail.
        func end() { state.with { $0.faults = [:] } }

        var calls: [JournalCall] { state.value.calls }

        var hook: JournalFaults {
            JournalFaults { call, _ in
                if call == .open { return nil }
                return self.state.with { state in
                    state.calls.append(call)
                    state.count += 1
                    return state.faults[state.count - 1]
                }
            }
        }
    }

    /// Appends groups, syncs, rotates and removes segments, while some calls fail. Checks after each failure that this
    /// journal and a newly opened one have exactly the acknowledged groups.
    private func run(_ script: Script, _ what: Comment) throws {
        let history = try JournalHistory()
        let journal = try history.open(segmentBytes: 700, faults: script.hook)
        var acknowledged: UInt64 = 0
        func check() throws {
            for journal in [journal, try history.open()] {
                let (count, report) = try history.prefix(journal)
                #expect(count == history.groups.count, what)
                #expect(report.damage == nil, what)
            }
        }
        for step in 0..<24 {
            let group = history.makeGroup(count: 6)
            do throws(FileError) {
                try journal.append(group)
                history.groups.append(group)
                acknowledged = group.last
            } catch {
                try check()
            }
            if step % 5 == 4 {
                do throws(FileError) {
                    try journal.sync()
                    let (synced, isEmpty) = journal.lock.withLock {
                        (journal.syncedSequence, !journal.segments.contains(where: \.hasFrames))
                    }
                    #expect(isEmpty || synced == acknowledged, what)
                } catch {
                    try check()
                    // After a failed sync, all syncs fail until the segments are removed.
                    #expect(throws: FileError.self, what) { try journal.sync() }
                }
            }
            if step % 8 == 7, let number = journal.rotate() {
                // Simulates a checkpoint: the groups of these segments are stored in LevelDB, whether or not the
                // segments can be removed.
                do throws(FileError) {
                    try journal.removeSegments(upTo: number)
                    history.groups = []
                } catch {
                    let left = try journal.groups().groups.count
                    #expect(left <= history.groups.count, what)
                    history.groups.removeFirst(history.groups.count - left)
                    try check()
                }
            }
        }
        try check()
        // When calls no longer fail, the journal works again.
        script.end()
        if let number = journal.rotate() { try journal.removeSegments(upTo: number) }
        history.groups = []
        try history.append(3, to: journal)
        try journal.sync()
        try check()
    }

    @Test func noAcknowledgedGroupIsLostIfAnySystemCallFails() throws {
        let quiet = Script()
        try run(quiet, "without faults")
        let calls = quiet.calls
        #expect(calls.contains(.fsync) && calls.contains(.unlink) && calls.contains(.fsyncDirectory))
        for index in calls.indices {
            for number in [EIO, ENOSPC, EINTR] {
                try run(Script([index: .fail(number)]), "call \(index), \(calls[index]), errno \(number)")
            }
            // Two consecutive calls fail. The second one is often the call that would roll back the first failure.
            try run(Script([index: .fail(EIO), index + 1: .fail(EIO)]), "calls \(index) and next, \(calls[index])")
            guard case .write(let count) = calls[index] else { continue }
            for shorter in [1, 5, count / 2, count - 1] {
                try run(Script([index: .shorten(shorter)]), "call \(index) writes \(shorter)")
                let torn: [Int: JournalFault] = [index: .shorten(shorter), index + 1: .fail(ENOSPC)]
                try run(Script(torn), "call \(index) writes \(shorter), then fails")
                // ftruncate fails too, so the torn frame stays in the file, and the journal starts a new segment.
                var stuck = torn
                stuck[index + 2] = .fail(EIO)
                try run(Script(stuck), "call \(index) writes \(shorter), then fails, and ftruncate too")
            }
        }
    }

    @Test func aTornFrameThatCannotBeRemovedIsIgnored() throws {
        let script = Script([4: .shorten(30), 5: .fail(ENOSPC), 6: .fail(EIO)])
        let history = try JournalHistory()
        let journal = try history.open(faults: script.hook)
        try history.append(1, to: journal)
        let failed = history.makeGroup()
        #expect(throws: FileError.self) { try journal.append(failed) }
        #expect(
            script.calls.suffix(2) == [.ftruncate(journal.byteCounts.live), .write(JournalFormat.frameHeaderBytes)])
        #expect(journal.activeNumber == nil)
        try history.append(2, to: journal)
        #expect(journal.activeNumber == 2)
        let (count, report) = try history.prefix(try history.open())
        #expect(count == 3 && report.damage == nil && report.cut == nil)
    }

    @Test func eachGroupIsAppendedWithOneSystemCall() throws {
        let script = Script()
        let history = try JournalHistory()
        let journal = try history.open(faults: script.hook)
        try history.append(1, to: journal)
        let first = script.calls.count
        try history.append(10, to: journal)
        #expect(script.calls.count == first + 10)
        try journal.sync()
        #expect(script.calls.suffix(2) == [.fsync, .fsyncDirectory])
        // If nothing was appended, a sync makes no system call.
        try journal.sync()
        #expect(script.calls.count == first + 12)
        try history.append(1, to: journal)
        try journal.sync()
        #expect(script.calls.suffix(2).last == .fsync)
    }

    /// Data that could not be synced is copied to a new segment, unless the system has dropped pages that it could not
    /// write.
    @Test(arguments: [false, true]) func dataThatCannotBeSyncedIsCopiedToANewSegment(isLost: Bool) throws {
        let place = try TemporaryDirectory(inMemory: true)
        let isFailing = Guarded(true)
        let faults = JournalFaults { call, path in
            call == .fsync && isFailing.value && !path.contains("ahead-") ? .fail(EIO) : nil
        }
        let path = place.path + "/JOURNAL"
        let journal = try Journal(directory: path, segmentBytes: 1 << 20, faults: faults)
        let group = { (sequence: UInt64) in
            JournalGroup(
                first: sequence, last: sequence,
                entries: [JournalEntry(key: [UInt8(sequence)], record: [UInt8](repeating: 7, count: 100))])
        }
        for sequence: UInt64 in 1...3 { try journal.append(group(sequence)) }
        #expect(throws: FileError.self) { try journal.sync() }
        isFailing.value = false
        // The sync still fails, although fsync would succeed now.
        #expect(throws: FileError.self) { try journal.sync() }
        let segment = path + "/" + JournalFormat.fileName(1)
        if isLost { try Files.flip(segment, at: JournalFormat.segmentHeaderBytes + 40) }
        if isLost {
            #expect(throws: FileError.self) { try journal.withoutRemovals { try journal.copyUnsynced() } }
            #expect(throws: FileError.self) { try journal.sync() }
        } else {
            try journal.withoutRemovals { () throws(FileError) in try journal.copyUnsynced() }
            try journal.sync()
            try journal.append(group(4))
        }
        #expect(try FileSystem.list(path).allSatisfy { !$0.hasSuffix(".new") })
        journal.close()
        let report = try Journal(directory: path, segmentBytes: 1 << 20).replay { _, _ in }
        #expect(report.lastSequence == (isLost ? 0 : 4))
    }

    /// Data that earlier processes left unsynced is synced before later data is reported as durable.
    @Test func aSyncIncludesSegmentsOfEarlierProcesses() throws {
        let history = try JournalHistory.threeSegments()
        let script = Script()
        let journal = try history.open(faults: script.hook)
        try history.append(1, to: journal)
        try journal.sync()
        #expect(script.calls.filter { $0 == .fsync }.count == 4)
    }

    /// After a failed fsync all syncs fail until the segment is removed, because later frames depend on earlier ones.
    @Test func afterAFailedSyncAllSyncsFailUntilItsSegmentIsRemoved() throws {
        let script = Script([4: .fail(EIO)])
        let history = try JournalHistory()
        let journal = try history.open(faults: script.hook)
        try history.append(1, to: journal)
        #expect(throws: FileError.self) { try journal.sync() }
        #expect(journal.activeNumber == nil)
        try history.append(1, to: journal)
        #expect(journal.activeNumber == 2)
        #expect(throws: FileError.self) { try journal.sync() }
        try journal.removeSegments(upTo: 1)
        try journal.sync()
        history.groups.removeFirst()
        #expect(try history.prefix(try history.open()).count == 1)
    }

    /// Regression test: data that a process left unsynced was synced only by the first write of the next process; until
    /// then a power failure lost data that readers had seen.
    @Test(arguments: Durability.allCases) func openingSyncsSegmentsOfAPreviousProcess(_ durability: Durability) throws {
        let larder = try TestLarder { $0.durability = durability }
        try larder.database(policy: .never).put("a", "1", durability: .os)
        for isFailing in [false, true] {
            let syncs = Guarded(0)
            let crashCopy = try larder.crashCopy {
                $0.journalFaults = JournalFaults { call, _ in
                    guard call == .fsync else { return nil }
                    syncs.with { $0 += 1 }
                    return isFailing ? .fail(EIO) : nil
                }
            }
            #expect(try crashCopy.database().contents() == ["a": "1"])
            #expect(syncs.value == (durability == .always ? 1 : 0))
            #expect(crashCopy.events.contains("may undo") == (durability == .always && isFailing))
            if !isFailing {
                try crashCopy.maintain()
                #expect(syncs.value == 1)
            }
        }
    }

    /// The calls that fail while a refused write is rolled back. Each case makes one more kind of call fail.
    enum RollbackFailure: Int, CaseIterable {
        case none, cutting, overwriting, beginningAnother

        /// The event after which the refused write may take effect, if every fsync before the event fails.
        var doubt: String { self == .beginningAnother ? "this process terminates" : "the machine fails" }
    }

    /// If syncing the rolled-back state succeeds, the error does not say that the write may take effect.
    @Test func aSyncThatFailsOnceIsRecovered() throws {
        let failures = Guarded(0)
        let synced = Guarded(0)
        let larder = try TestLarder {
            $0.durability = .always
            $0.journalFaults = JournalFaults { call, _ in
                guard call == .fsync else { return nil }
                if failures.with({ count in
                    defer { count -= 1 }
                    return count == 1
                }) {
                    return .fail(EIO)
                }
                synced.with { $0 += 1 }
                return nil
            }
        }
        let database = try larder.database(policy: .never)
        try database.put("a", "1")
        synced.value = 0
        failures.value = 1
        let error = #expect(throws: LarderError.self) { try database.put("a", "2") }
        #expect(!"\(try #require(error))".contains("is unknown"))
        #expect(synced.value >= 1)
        let crashCopy = try larder.crashCopy()
        #expect(try crashCopy.database().contents() == ["a": "1"])
    }

    /// Regression test: if the fsyncs of two segments failed, only the first one was copied, and LevelDB got entries that
    /// the journal lost in a power failure.
    @Test func everySegmentThatCannotBeSyncedIsCopied() throws {
        let (failures, copies) = (Guarded(0), Guarded(0))
        let larder = try TestLarder {
            $0.durability = .everysecond
            $0.journalSegmentBytes = 4096
            $0.journalFaults = JournalFaults { call, path in
                if call == .rename, path.contains("ahead-") { copies.with { $0 += 1 } }
                guard call == .fsync, !path.contains("ahead-") else { return nil }
                return failures.with { count in
                    defer { count -= 1 }
                    return count > 0 ? .fail(EIO) : nil
                }
            }
        }
        let database = try larder.database(policy: .never)
        for number in 0..<200 { try database.put("k\(number)", String(repeating: "v", count: 100)) }
        failures.value = 3
        try database.checkpointer.checkpoint()
        #expect(copies.value == 3)
        #expect(failures.value <= 0)
    }

    /// Regression test: a refused write took effect if fsync and ftruncate both failed and the process was then killed.
    @Test(arguments: RollbackFailure.allCases, [false, true])
    func aRefusedWriteIsNotReplayed(_ obstacle: RollbackFailure, isLong: Bool) throws {
        let isFailing = Guarded(false)
        let larder = try TestLarder {
            $0.durability = .always
            $0.journalFaults = JournalFaults { call, path in
                guard isFailing.value else { return nil }
                let isFaulty =
                    switch call {
                    case .fsync: true
                    case .ftruncate: obstacle.rawValue >= RollbackFailure.cutting.rawValue
                    case .write(JournalFormat.frameHeaderBytes):
                        obstacle.rawValue >= RollbackFailure.overwriting.rawValue
                    // A long value is in its own file, which the commit renames. That rename must succeed.
                    case .rename: obstacle == .beginningAnother && !path.contains("ahead-")
                    default: false
                    }
                return isFaulty ? .fail(EIO) : nil
            }
        }
        let database = try larder.database(policy: .never)
        try database.put("a", "1")
        try database.put("b", "1", durability: .os)
        if isLong {
            // The value is written to its own file before calls fail.
            let long = try Array("2".utf8).withUnsafeBytes { payload in
                Result { () throws(LarderError) in
                    try LargeValue(
                        staging: payload, Key("a"), in: database, rule: .governed, durability: .always)
                }
            }.get()
            isFailing.value = true
            let error = #expect(throws: LarderError.self) {
                try database.commit([Key("a")], loading: .none, durability: .always) { update in
                    Array("2".utf8).withUnsafeBytes { update.put(0, payload: $0, long: long, rule: .governed) }
                }
            }
            #expect("\(try #require(error))".contains("if \(obstacle.doubt) before another write is committed"))
        } else {
            isFailing.value = true
            let error = #expect(throws: LarderError.self) { try database.put("a", "2") }
            #expect("\(try #require(error))".contains("if \(obstacle.doubt) before another write is committed"))
        }
        #expect(try database.value("a") == "1")
        if obstacle != .beginningAnother {
            let crashCopy = try larder.crashCopy()
            #expect(try crashCopy.database().contents() == ["a": "1", "b": "1"])
        }
        // After the next successful write, the refused write can no longer take effect.
        isFailing.value = false
        try database.put("c", "3", durability: .os)
        let crashCopy = try larder.crashCopy()
        #expect(try crashCopy.database().contents() == ["a": "1", "b": "1", "c": "3"])
    }
}
