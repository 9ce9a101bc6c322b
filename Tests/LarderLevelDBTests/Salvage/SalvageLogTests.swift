import LarderLevelDB
import LarderLevelDBSalvage
import LarderPlatform
import LarderTestSupport
import Testing

/// Tests of damage in the log. A table has a thousand keys with the value "old". In the log, one batch of several
/// hundred KiB sets all these keys to "new". A few small batches are before and after that batch.
@Suite struct SalvageLogTests {
    let workspace: Workspace
    let name: String
    let pristine: [UInt8]
    let number: UInt64

    init() throws {
        workspace = try Workspace()
        for round in ["old", "new"] {
            if round == "new" { try workspace.database.put(key(2000), bytes("before")) }
            let batch = WriteBatch()
            for number in 0..<1000 { batch.put(key(number), Self.value(round, number)) }
            try workspace.database.write(batch)
            if round == "old" {
                try workspace.database.compact()
                try workspace.reopen()
            }
        }
        try workspace.database.put(key(3), bytes("behind"))
        try workspace.database.put(key(2001), bytes("behind"))
        try workspace.database.close()
        name = try #require(try workspace.files(endingWith: ".log").last)
        number = try #require(UInt64(name.dropLast(4)))
        pristine = try Files.read("\(workspace.path)/\(name)")
    }

    static func value(_ name: String, _ number: Int) -> [UInt8] {
        bytes("\(name) \(number) ") + [UInt8](repeating: 0x2e, count: 300)
    }

    private func damage(sorted: Bool = true, synced: Int? = .max, _ change: (inout [UInt8]) -> Void) throws
        -> SalvageOutcome
    {
        var bytes = pristine
        change(&bytes)
        try Files.write("\(workspace.path)/\(name)", bytes)
        var options = SalvageOptions()
        options.batchesAreSorted = sorted
        if let synced { options.syncedLogBytes[number] = min(synced, pristine.count) }
        return try SalvageOutcome(path: workspace.path, options: options)
    }

    private func lost(_ outcome: SalvageOutcome) -> [Int] {
        (0..<1000).filter { number in outcome.report.lost.contains { $0.contains(key(number)) } }
    }

    /// Checks that no value is older than the key's value in the log, and that each missing entry is in a lost range.
    private func check(_ outcome: SalvageOutcome) {
        for number in 0..<1000 {
            let value = outcome.entries[key(number)]
            let expected = number == 3 ? bytes("behind") : Self.value("new", number)
            #expect(value == nil || value == expected, "\(number)")
            if value == nil { #expect(outcome.report.lost.contains { $0.contains(key(number)) }, "\(number)") }
        }
    }

    @Test func aZeroedPageOfASortedBatchLosesOnlyTheKeysAroundIt() throws {
        for page in [8, 9, 31, 40] {
            let outcome = try damage { for place in (page * 4096)..<(page * 4096 + 4096) { $0[place] = 0 } }
            check(outcome)
            let lost = lost(outcome)
            #expect(lost.count > 5 && lost.count < 130, "\(lost.count) of page \(page), \(outcome.report)")
            #expect(outcome.entries[key(3)] == bytes("behind") && outcome.entries[key(2001)] == bytes("behind"))
            #expect(outcome.report.damageCount == 1 && outcome.report.isComplete)
        }
    }

    @Test func aZeroedPageOfAnUnsortedBatchLosesAllOlderEntries() throws {
        let outcome = try damage(sorted: false) { for place in 40960..<45056 { $0[place] = 0 } }
        check(outcome)
        #expect(outcome.report.lost.contains { $0.isEverything })
        // Only entries that were written after the batch are returned. Entries at the beginning of the batch are not,
        // because they are not newer than the damage.
        #expect(Set(outcome.entries.keys) == [key(3), key(2001)])
    }

    @Test func aFlippedBitLosesOnlyTheKeysOfItsLogFragment() throws {
        for place in [7, 20, 60, 100, 4096, 33000, 60000, 131_072, 131_076, 200_000, pristine.count - 3] {
            for bit in [0, 5] {
                let outcome = try damage(sorted: place % 2 == 0) { $0[place] ^= 1 << UInt8(bit) }
                check(outcome)
                let lost = lost(outcome)
                #expect(lost.count < 130, "\(place), \(lost.count): \(outcome.report.damages)")
                #expect(outcome.report.damageCount == 1, "\(outcome.report)")
                #expect(!outcome.report.isUndamaged && outcome.report.isComplete)
                if place > 100 { #expect(outcome.entries[key(2000)] == bytes("before")) }
            }
        }
    }

    @Test func aDamagedBatchEndLosesOnlyTheKeysAfterTheReadablePart() throws {
        // Damages a page of the batch's last fragment. The fragment's header is intact, so the small batches after it
        // can be found.
        let page = ((pristine.count - 400) & ~32767) + 8192
        let outcome = try damage { for place in page..<(page + 4096) { $0[place] = 0 } }
        check(outcome)
        #expect(lost(outcome).first.map { $0 > 800 } == true && lost(outcome).last == 999)
    }

    @Test func aDamagedLogRecordLosesAllOlderEntries() throws {
        // Damages more than one bit of the first record, which is at the start of the log.
        let outcome = try damage { for place in 10..<30 { $0[place] = 0xEE } }
        check(outcome)
        #expect(outcome.report.lost.contains { $0.isEverything })
        // The entries of the batch are newer than the lost ones, so they are returned.
        #expect(outcome.entries.count == 1001 && outcome.entries[key(2000)] == nil)
    }

    @Test func aTornEndAfterTheSyncedPartIsNotDamage() throws {
        for count in [1, 5, 20, 60, 5000, 100_000] {
            let synced = pristine.count - count
            for known in [0, 30, nil] {
                let outcome = try damage(synced: known.map { min($0, synced) }) { $0.removeLast(count) }
                #expect(outcome.report.isUndamaged, "\(count): \(outcome.report)")
                let isRolledBack = outcome.entries[key(999)] == Self.value("old", 999)
                #expect(isRolledBack == (count >= 5000))
            }
            let outcome = try damage { $0.removeLast(count) }
            check(outcome)
            #expect(!outcome.report.isUndamaged && !outcome.report.lost.isEmpty)
        }
        // After the synced part, even records that are complete and invalid are not damage.
        let outcome = try damage(synced: 60) { for place in 40000..<50000 { $0[place] = 0xEE } }
        #expect(outcome.report.isUndamaged && outcome.entries[key(2000)] == bytes("before"))
        #expect(outcome.report.notes.count == 1)
    }

    /// LevelDB began an empty log each time it was opened without free disk space.
    @Test func aTornLogFollowedByEmptyLogsIsNotDamage() throws {
        for later in [number + 2, number + 3] {
            try Files.write(
                "\(workspace.path)/" + String(repeating: "0", count: max(0, 6 - "\(later)".count)) + "\(later)"
                    + ".log", [])
        }
        for count in [5, 5000, 100_000] {
            #expect(try damage(synced: nil) { $0.removeLast(count) }.report.isUndamaged)
            #expect(try !damage { $0.removeLast(count) }.report.isUndamaged)
        }
    }

    @Test func aMissingLogLosesAllEntries() throws {
        unlink("\(workspace.path)/\(name)")
        for synced in [[:], [number: 10]] {
            var options = SalvageOptions()
            options.syncedLogBytes = synced
            let outcome = try SalvageOutcome(path: workspace.path, options: options)
            #expect(outcome.entries.isEmpty && outcome.report.lost.contains { $0.isEverything })
        }
        // If the log had no acknowledged data, its loss costs nothing.
        var options = SalvageOptions()
        options.syncedLogBytes = [number: 0]
        let outcome = try SalvageOutcome(path: workspace.path, options: options)
        #expect(outcome.entries.count == 1000 && outcome.report.isUndamaged)
    }

    @Test func aPageWrittenInTheWrongPlaceIsDamage() throws {
        let outcome = try damage { bytes in
            bytes.replaceSubrange(65536..<98304, with: bytes[98304..<131_072])
        }
        check(outcome)
        #expect(!outcome.report.isUndamaged)
    }

    /// If a part of a long value is missing, only its key is lost. The value's length shows where the next entry
    /// begins.
    @Test func damageInALongValueLosesOnlyItsKey() throws {
        try workspace.database.close()
        let other = try workspace.open("long")
        let long = [UInt8](repeating: 0x41, count: 5 << 20)
        let batch = WriteBatch()
        batch.put(bytes("a"), bytes("1"))
        batch.put(bytes("b"), long)
        batch.put(bytes("c"), bytes("2"))
        try other.write(batch)
        try other.close()
        let log = "\(other.path)/000003.log"
        var damaged = try Files.read(log)
        var options = SalvageOptions()
        options.batchesAreSorted = true
        let whole = try SalvageOutcome(path: other.path, options: options)
        #expect(whole.entries == [bytes("a"): bytes("1"), bytes("b"): long, bytes("c"): bytes("2")])
        for place in (1 << 20)..<(1 << 20) + 4096 { damaged[place] = 0 }
        try Files.write(log, damaged)
        let outcome = try SalvageOutcome(path: other.path, options: options)
        #expect(outcome.entries == [bytes("a"): bytes("1"), bytes("c"): bytes("2")])
        #expect(outcome.report.lost == [LarderLevelDBSalvage.KeyRange(lower: bytes("b"), upper: bytes("c"))])
    }
}
