import LarderPlatform
import LarderTestSupport
import Testing

@testable import LarderEngine

extension Database {
    /// Looks up a key in memory only.
    fileprivate func readInMemory(_ key: Key) throws(LarderError) -> ReadOutcome {
        var ticket = CommitTicket.none
        return try key.withBytes { (bytes) throws(LarderError) in
            try read(bytes, .memoryOnly, ticket: &ticket) { _, _ in }
        }
    }
}

/// Tests of long values, which are written to a file of the journal before they are committed.
@Suite struct LargeValueTests {
    private static func value(_ byte: Character, _ count: Int) -> String { String(repeating: byte, count: count) }

    /// Returns the files in the journal's directory that are not segments.
    private func leftovers(_ larder: TestLarder) throws -> [String] {
        try FileSystem.list(larder.path + "/JOURNAL").filter { JournalFormat.number(ofFile: $0) == nil }
    }

    @Test(arguments: Durability.allCases)
    func committedLongValuesSurviveACrash(durability: Durability) throws {
        let larder = try TestLarder { $0.durability = durability }
        let database = try larder.database()
        try database.put("before", "1")
        let long = Self.value("x", 9 << 20)
        try database.putAhead("long", long, rule: .own(larder.engine().now() + 60_000))
        try database.put("behind", "2")
        let expected = ["before": "1", "long": long, "behind": "2"]
        #expect(try database.contents() == expected)
        #expect(try leftovers(larder).isEmpty)
        let crashCopy = try larder.crashCopy()
        #expect(try crashCopy.database().contents() == expected)
        try database.flush()
        #expect(try database.contents() == expected)
        larder.time.advance(milliseconds: 60_000)
        #expect(try database.value("long") == nil)
    }

    /// A committed long value ends its journal segment, and the journal continues with the next segment.
    @Test func longValuesCanBeStoredInSuccession() throws {
        let larder = try TestLarder { $0.journalSegmentBytes = 500 }
        let database = try larder.database()
        var expected: [String: String] = [:]
        for round in 0..<20 {
            let value = Self.value("y", round * 37)
            if round % 3 == 2 { try database.put("\(round)", value) } else { try database.putAhead("\(round)", value) }
            expected["\(round)"] = value
            if round % 7 == 6 {
                try database.putAhead("0", value)
                expected["0"] = value
            }
        }
        #expect(try database.contents() == expected)
        let crashCopy = try larder.crashCopy()
        #expect(try crashCopy.database().contents() == expected)
        larder.close()
        #expect(try larder.database().contents() == expected)
    }

    @Test func aLongValueThatIsNotStoredLeavesNoFile() throws {
        let larder = try TestLarder()
        let database = try larder.database()
        try database.put("k", "1")
        let key = Key("k")
        do {
            let long = try Array("long".utf8).withUnsafeBytes { (payload) throws(LarderError) in
                try LargeValue(staging: payload, key, in: database, rule: .governed)
            }
            #expect(try leftovers(larder).count == 1)
            // The entry exists, so the staged value is not stored.
            try database.commit([key], loading: .records) { update in
                if update.current(0) == nil {
                    Array("long".utf8).withUnsafeBytes { update.put(0, payload: $0, long: long) }
                }
            }
        }
        #expect(try leftovers(larder).isEmpty)
        #expect(try database.value("k") == "1")
    }

    /// If a value was staged (written to a file) with another kind of header or for another key, it is stored like a
    /// short value.
    @Test func aLongValueStagedForAnotherKeyIsStoredAsAShortOne() throws {
        let larder = try TestLarder()
        let database = try larder.database()
        let payload = Array("long".utf8)
        for (key, rule) in [("k", DeadlineRule.own(.max)), ("other", .governed)] {
            let long = try payload.withUnsafeBytes { (payload) throws(LarderError) in
                try LargeValue(staging: payload, Key("k"), in: database, rule: .governed)
            }
            try database.commit([Key(key)], loading: .none) { update in
                payload.withUnsafeBytes { update.put(0, payload: $0, long: long, rule: rule) }
            }
            #expect(try database.value(key) == "long")
        }
        #expect(try leftovers(larder).isEmpty)
        let crashCopy = try larder.crashCopy()
        #expect(try crashCopy.database().contents() == ["k": "long", "other": "long"])
    }

    @Test func leftoversOfACrashAreRemovedAtTheStart() throws {
        let larder = try TestLarder()
        try larder.database().put("k", "1")
        larder.close()
        let file = larder.path + "/JOURNAL/ahead-7.new"
        try Files.write(file, [1, 2, 3])
        #expect(try larder.database().value("k") == "1")
        #expect(try leftovers(larder).isEmpty)
    }

    // MARK: A disk that fails

    @Test(arguments: [JournalCall.create, .rename, .fsync, .write(0)])
    func aFailedWriteRefusesOnlyTheLongValue(call: JournalCall) throws {
        let isFailing = Guarded(false)
        let larder = try TestLarder {
            $0.durability = .always
            $0.journalFaults = JournalFaults { made, path in
                guard isFailing.value, path.contains("ahead-") || made == .rename else { return nil }
                if case .write = made, case .write = call { return .fail(ENOSPC) }
                return made == call ? .fail(EIO) : nil
            }
        }
        let database = try larder.database()
        try database.put("k", "1")
        isFailing.value = true
        #expect(errorCode { try database.putAhead("k", "2") } == .commitFailed)
        #expect(errorCode { try database.putAhead("new", "2") } == .commitFailed)
        isFailing.value = false
        #expect(try database.contents() == ["k": "1"])
        #expect(try leftovers(larder).isEmpty)
        let crashCopy = try larder.crashCopy()
        #expect(try crashCopy.database().contents() == ["k": "1"])
        try database.putAhead("k", "3")
        let again = try larder.crashCopy()
        #expect(try again.database().contents() == ["k": "3"])
    }

    /// If the disk has no space for a long value, writes that are queued meanwhile are not affected.
    @Test func aFullDiskRefusesOnlyTheLongValue() throws {
        let larder = try TestLarder {
            $0.journalFaults = JournalFaults { call, path in
                if case .write = call, path.contains("ahead-") { return .fail(ENOSPC) }
                return nil
            }
        }
        let database = try larder.database()
        let ticket = try database.putLater("short", "1")
        #expect(errorCode { try database.putAhead("long", "2") } == .commitFailed)
        try larder.engine().pipeline.wait(for: ticket)
        #expect(try larder.engine().rollbackCount == 0)
        #expect(try database.contents() == ["short": "1"])
    }

    /// A long value that cannot be written counts as a failed write. It is logged, but at most once a minute.
    @Test func aRefusedLongValueIsReported() throws {
        let larder = try TestLarder {
            $0.journalFaults = JournalFaults { call, path in
                if case .write = call, path.contains("ahead-") { return .fail(EFBIG) }
                return nil
            }
        }
        let (database, engine) = (try larder.database(), try larder.engine())
        let lines = { larder.events.all.filter { $0.level == .error }.map(\.message) }
        for _ in 0..<3 { #expect(errorCode { try database.putAhead("long", "1") } == .commitFailed) }
        #expect(engine.statistics.commitFailures.read() == 3 && engine.writeFailure?.systemErrorNumber == EFBIG)
        #expect(lines().count == 1 && lines()[0].contains(SystemErrorText.of(EFBIG)), "\(lines())")
        larder.time.advance(milliseconds: 60_000)
        #expect(errorCode { try database.putAhead("long", "1") } == .commitFailed)
        #expect(lines().count == 2 && lines()[1].hasSuffix("; 2 more of these failures since the last line"))
        try database.put("short", "1")
        #expect(engine.writeFailure == nil)
    }

    // MARK: Others

    /// Other threads can write and read while a long value is being written to disk.
    @Test func otherWritesContinueWhileALongValueIsWritten() throws {
        let gate = Gate()
        let larder = try TestLarder {
            $0.backgroundMaintenance = true
            $0.journalFaults = JournalFaults { call, path in
                if case .write = call, path.contains("ahead-") { gate.pass() }
                return nil
            }
        }
        let database = try larder.database()
        gate.close()
        let thread = WorkThread(name: "long") { _ = try? database.putAhead("long", "1") }
        gate.waitUntil()
        for round in 0..<50 {
            try database.put("k\(round % 5)", "\(round)", durability: .always)
            #expect(try database.value("k\(round % 5)") == "\(round)")
        }
        try database.flush()
        #expect(try database.value("long") == nil)
        gate.open()
        thread.join()
        #expect(try database.value("long") == "1")
        let crashCopy = try larder.crashCopy()
        #expect(try crashCopy.database().contents() == database.contents())
    }

    /// If the journal is full because of one long value, only the next long value waits; short values do not.
    @Test func aLongValueDoesNotMakeOtherWritersWait() throws {
        let larder = try TestLarder {
            $0.checkpointBytes = 1 << 20
            $0.journalSegmentBytes = 1 << 20
        }
        let database = try larder.database()
        let engine = try larder.engine()
        try database.putAhead("long", Self.value("x", 12 << 20))
        #expect(engine.journalByteCount > 12 << 20)
        #expect(database.checkpointer.isFull(for: .long))
        // 8 MiB of the long value count towards the limit, which is smaller here.
        #expect(engine.pipeline.isCongested)
        larder.close { $0.checkpointBytes = 5 << 20 }
        let again = try larder.database()
        #expect(try larder.engine().journalByteCount < 1 << 20)
        try again.putAhead("long", Self.value("y", 12 << 20))
        #expect(try !larder.engine().pipeline.isCongested)
        #expect(again.checkpointer.isFull(for: .long))
        // Before the next long value is written, a checkpoint runs.
        try again.putAhead("longer", Self.value("z", 11 << 20))
        #expect(try larder.engine().statistics.checkpoints.read() == 1)
        #expect(try larder.engine().journalByteCount < 12 << 20)
        #expect(try again.value("long")?.first == "y")
    }

    /// A long value leaves memory at the next checkpoint. Until then, it evicts no other entries.
    @Test func aLongValueDoesNotEvictOtherEntriesFromMemory() throws {
        let larder = try TestLarder { $0.memoryBytes = 2 << 20 }
        let database = try larder.database()
        for number in 0..<1000 { try database.put("k\(number)", Self.value("x", 500)) }
        try database.flush()
        let before = try larder.engine().memory.usedBytes
        let hits = { Set(try (0..<1000).filter { try database.readInMemory(Key("k\($0)")) == .hit }) }
        let kept = try hits()
        #expect(kept.count == 1000)
        try database.putAhead("long", Self.value("y", 5 << 20))
        try database.put("longer", Self.value("z", 6 << 20))
        #expect(try larder.engine().memory.usedBytes > before + 11 << 20)
        #expect(try hits() == kept)
        #expect(try database.value("longer")?.utf8.count == 6 << 20)
        try database.flush()
        #expect(try hits() == kept)
        let after = try larder.engine().memory.usedBytes
        #expect(after <= before + 16 << 10, "the queues keep some memory")
        #expect(try database.value("long")?.utf8.count == 5 << 20)
    }

    // MARK: Pins

    /// A pinned entry's value stays readable, whatever happens to the key.
    @Test func aPinnedEntryStaysReadableAfterItsKeyChanges() throws {
        let table = TestTable(pinnedBytesMin: 1)
        func text(_ record: UnsafeRawBufferPointer) -> String { String(decoding: record.dropFirst(16), as: UTF8.self) }
        func stored(_ text: String) -> [UInt8] { Record(RecordHeader(storedAt: 1), payload: Array(text.utf8)).stored }
        let ways: [(String) -> Void] = [
            { table.put($0, stored("overwritten"), sequence: 2) },
            { table.put($0, stored("o"), sequence: 2) },
            { table.remove($0, sequence: 2) },
            { _ in table.table.removeAll() },
            { _ in },
        ]
        for (index, change) in ways.enumerated() {
            let key = "k\(index)"
            table.put(key, stored("pinned text"), sequence: 1)
            let entry = try #require(table.entry(key))
            let record = try #require(entry.pinnedRecord)
            #expect(entry.pin() && entry.pin())
            change(key)
            // Stores other entries, which would reuse the memory of the pinned value if it had been released.
            for other in 0..<50 { table.put("other\(other)", stored("other text."), sequence: 3) }
            #expect(text(record) == "pinned text")
            entry.unpin()
            #expect(text(record) == "pinned text")
            entry.unpin()
        }
        #expect(table.entry("k4")?.block.pointee.pins == 0)
        #expect(table.payloadCount("k4") == 11)
    }

    @Test func anEntryCanBePinnedAtMost255Times() throws {
        let table = TestTable(pinnedBytesMin: 1)
        table.put("k", Record(RecordHeader(storedAt: 1), payload: [1]).stored, sequence: 1)
        let entry = try #require(table.entry("k"))
        for _ in 0..<255 { #expect(entry.pin()) }
        #expect(!entry.pin())
        for _ in 0..<255 { entry.unpin() }
        #expect(entry.pin())
        entry.unpin()
    }

    /// While long entries are overwritten, removed and written to LevelDB, a read returns one complete value or none.
    @Test func longEntriesAreReadConsistently() throws {
        let larder = try TestLarder {
            $0.backgroundMaintenance = true
            $0.maintenanceMilliseconds = 1
            $0.checkpointBytes = 300_000
            $0.journalSegmentBytes = 100_000
            $0.pinnedBytesMin = 1000
        }
        let database = try larder.database(policy: .never)
        let errors = Recorder<String>()
        onThreads(4) { thread in
            do {
                for round in 0..<300 {
                    if thread < 2 {
                        let byte: Character = ["a", "b", "c"][round % 3]
                        let value = Self.value(byte, 2000 + round % 5 * 700)
                        if thread == 0 { try database.putAhead("k", value) } else { try database.put("k", value) }
                        if round % 10 == 9 { try database.remove("k") }
                        if round % 50 == 49 { _ = try database.purge() }
                    } else if let text = try database.value("k") {
                        if text.count < 2000 || Set(text.utf8).count != 1 {
                            errors.add("\(text.prefix(9))")
                        }
                    }
                }
            } catch {
                errors.add("\(error)")
            }
        }
        #expect(errors.all.isEmpty, "\(errors.all.prefix(3))")
    }
}
