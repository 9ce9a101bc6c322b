import LarderLevelDB
import LarderPlatform
import LarderTestSupport
import Testing

@testable import LarderEngine

/// Tests that a check reports all problems and no others, and does not change the files.
@Suite struct CheckTests {
    // MARK: Healthy larders

    @Test func aHealthyLarderHasNoFindings() throws {
        let larder = try Self.filled()
        try larder.expectHealthy()
        let report = try larder.check()
        #expect(report.databases == 2 && report.entries == 401)
        // An open larder can check itself. Another check is refused while it is open.
        let database = try larder.database()
        try database.put("later", "1", rule: .own(larder.time.wallMilliseconds() + 60_000))
        #expect(try larder.engine().check(copying: []).problems.isEmpty)
        #expect(errorCode { _ = try larder.check() } == .larderHeld)
        let error = #expect(throws: LarderError.self) { try larder.engine().check(copying: ["JOURNAL"]) }
        #expect(error?.code == .io && error?.operation == "check", "a directory cannot be copied")
        try database.put("last", "1")
        let copy = try larder.crashCopy()
        try copy.expectHealthy()
        #expect(try copy.check().operations == 1)
    }

    @Test func goldenLardersHaveNoFindings() throws {
        for name in try FileSystem.list(GoldenTests.directory) {
            let larder = try TestLarder()
            try Files.copy(GoldenTests.directory + "/" + name, to: larder.path)
            try larder.expectHealthy()
        }
    }

    @Test func aKilledLarderHasNoFindings() throws {
        let larder = try Self.filled()
        let database = try larder.database()
        for number in 0..<20 { try database.put("j\(number)", "x") }
        _ = try larder.database("other").purge()
        try FileSystem.makeDirectory(larder.path + "/.creating-new-5")
        let copy = try larder.crashCopy()
        let segment = try copy.lastSegment()
        try Files.write(segment, try Files.read(segment) + [0xF7, 0x4C, 0x4A, 0x46, 1, 2, 3, 4, 0, 0])
        try copy.expectHealthy()
        // An incomplete end of LevelDB's log, after the synced part, is not a problem either.
        let epoch = try copy.epochDirectory()
        let log = epoch + "/" + (try #require(try Files.names(in: epoch, endingWith: ".log").last))
        try Files.write(log, try Files.read(log) + [1, 2, 3])
        try copy.expectHealthy()
    }

    @Test func anIndexKeyWithoutAnEntryIsNotReported() throws {
        let larder = try Self.filled()
        let store = try #require(try larder.database().flushedStore())
        try store.rawPut([2] + [UInt8](repeating: 0, count: 6) + [1, 0] + Array("nobody".utf8), [0])
        larder.close()
        try larder.expectHealthy()
    }

    @Test func foreignFilesAreReportedAsNotes() throws {
        let larder = try Self.filled()
        try FileSystem.makeDirectory(larder.path + "/photos")
        try Files.write(larder.path + "/photos/one.jpg", [1])
        try Files.write(larder.path + "/README", [1])
        let report = try larder.check()
        #expect(report.problems.isEmpty)
        #expect(report.notes == ["\(larder.path)/photos is not a database of this larder; it is ignored"])
    }

    /// A mistyped path must not look like a healthy larder.
    @Test func aDirectoryThatIsNotALarderIsRefused() throws {
        let larder = try Self.filled()
        func refusal(_ path: String) -> LarderError? {
            #expect(throws: LarderError.self) { try Engine.check(path) }
        }
        let above = try TemporaryDirectory(inMemory: true)
        #expect(refusal(above.path)?.message == "\(above.path) is not a larder: it has neither databases nor a journal")
        try Files.copy(larder.path, to: above.path + "/larder")
        #expect(refusal(above.path)?.code == .invalidArgument)
        let within = larder.path + "/books"
        #expect(
            refusal(within)?.message
                == "\(within) is not a larder: it looks like one database of the larder \(larder.path)")
        #expect(refusal(try larder.epochDirectory())?.code == .invalidArgument)
        // A larder without entries is recognized as a larder.
        let empty = try TestLarder()
        _ = try empty.engine()
        empty.close()
        try empty.expectHealthy()
    }

    /// The missing database's entries are only in the journal. If the file SEQUENCES does not name the database, the
    /// next start skips these entries.
    @Test func aMissingDatabaseWithJournalOperationsIsReported() throws {
        let larder = try Self.filled()
        try larder.database("lost", policy: .never).put("a", "1")
        let copy = try larder.crashCopy()
        try FileSystem.removeTree(copy.path + "/lost")
        try copy.expect("database 'lost': its files are missing from lost/; restore them", "--repair", .damage)
        #expect(try copy.check().notes.isEmpty)
        try copy.forgetNamesOfDatabases()
        let report = try copy.check()
        #expect(report.problems.isEmpty)
        #expect(
            report.notes == [
                "the journal has operations of database 'lost', whose directory is missing: if the database was not "
                    + "deleted on purpose, restore the directory"
            ])
    }

    // MARK: LevelDB

    @Test("a check reports a flipped byte in a table") func aFlippedByteInATable() throws {
        let larder = try Self.filled()
        let before = try larder.database().contents()
        larder.close()
        let epoch = try larder.epochDirectory()
        let table = try Self.largestTable(epoch)
        try Files.flip(epoch + "/" + table, at: 50)
        try larder.expect("database 'books': \(table): data block at 0, ", "entries may be lost: ", .damage)
        try larder.expectRepair()
        let after = try larder.database().contents()
        #expect(!after.isEmpty && after.count < before.count)
        #expect(after.allSatisfy { before[$0.key] == $0.value })
        #expect(larder.setAside.count == 1)
        #expect(try larder.database("other").contents() == ["a": "1"])
    }

    @Test("a check reports missing files of a database") func missingFiles() throws {
        let larder = try Self.filled()
        let epoch = try larder.epochDirectory()
        let table = try Self.largestTable(epoch)
        let lacking = try larder.crashCopy()
        try FileSystem.removeFile(try lacking.epochDirectory() + "/" + table)
        try lacking.expect("database 'books': \(table): table at 0, ", "entries may be lost: ", .damage)
        try lacking.expectRepair()
        let misled = try larder.crashCopy()
        try Files.misleadCurrent(try misled.epochDirectory())
        try misled.expect("database 'books': MANIFEST-009999: manifest at 0, ", "", .damage)
        try misled.expectRepair()
        // A missing CURRENT is not a problem: a power failure may have removed it, and opening the larder recreates it.
        let usual = try larder.crashCopy()
        try FileSystem.removeFile(try usual.epochDirectory() + "/CURRENT")
        try usual.expectHealthy()
        let copy = try larder.crashCopy()
        try FileSystem.removeTree(try copy.epochDirectory())
        try copy.expect("database 'books': its files are missing from ", "--repair", .damage)
        try copy.expectRepair()
        #expect(try copy.database("other").contents() == ["a": "1"])
    }

    @Test("a check reports a damaged SYNCED file of a database") func aDamagedNoteOfSyncedFiles() throws {
        let larder = try Self.filled()
        try Files.flip(try larder.epochDirectory() + "/SYNCED", at: 20)
        try larder.expect("database 'books': SYNCED cannot be read: ", "the next start or --repair recreates", .damage)
        try larder.expectRepair()
        #expect(try larder.database().contents().count == 400)
        #expect(larder.setAside.isEmpty)
    }

    @Test("a check reports records and keys that cannot be parsed") func recordsThatCannotBeUnderstood() throws {
        let larder = try Self.filled()
        let store = try #require(try larder.database().flushedStore())
        try store.rawPut([1] + Array("bad".utf8), [9] + [UInt8](repeating: 0, count: 20))
        try store.rawPut([1] + Array("short".utf8), [1])
        try store.rawPut([2, 1], [0])
        try store.rawPut([7], [0])
        larder.close()
        let lines = try larder.check().problems.map(\.text)
        #expect(lines.count == 3)
        #expect(
            lines[0].hasPrefix(
                "database 'books': 2 entries cannot be read: \"bad\" (it has the unknown version "
                    + "9), \"short\" (it is cut short); if a newer Larder wrote it"))
        #expect(lines[1].hasPrefix("database 'books': 1 keys of the expiry index are invalid; "))
        #expect(lines[2].hasPrefix("database 'books': 1 keys in its LevelDB have an unknown kind; "))
    }

    @Test("a check reports entries without index keys") func recordsWithoutTheirIndexKeys() throws {
        let larder = try Self.filled()
        let database = try larder.database(policy: .high)
        try database.put("governed", "1")
        let store = try #require(try database.flushedStore())
        try larder.maintain()
        for key in try store.rawKeys() where key.first == 2 || key.first == 3 {
            try store.rawDelete(key)
        }
        larder.close()
        try larder.expect(
            "database 'books': 401 entries have no key in the expiry index: \"", " and 398 more; ", .damage)
        try larder.expectRepair()
        #expect(try larder.database().contents().count == 401)
        #expect(larder.setAside.isEmpty)
    }

    /// Earlier versions of Larder left expired records without a key in the expiry index. A check lists them as notes,
    /// not as problems.
    @Test func expiredEntriesWithoutIndexKeysAreReportedAsNotes() throws {
        let larder = try Self.filled()
        let database = try larder.database()
        try database.put("brief", "1", rule: .own(database.now() + 5000))
        // Empties the journal, because the check of the index does not include entries in the journal.
        try larder.engine().save()
        let store = try #require(try database.flushedStore())
        for key in try store.rawKeys() where key.first == 2 && Array(key.suffix(5)) == Array("brief".utf8) {
            try store.rawDelete(key)
        }
        let copy = try larder.crashCopy()
        try copy.expect("database 'books': 1 entry has no key in the expiry index: \"brief\"; ", "", .damage)
        larder.time.advance(milliseconds: 5000)
        _ = database.now()
        larder.close()
        let report = try larder.check()
        #expect(report.problems.isEmpty)
        #expect(
            report.notes == [
                "database 'books': 1 expired entry has no key in the expiry index; the next scan of all entries removes "
                    + "them"
            ])
        _ = try larder.database()
        try larder.maintain()
        larder.close()
        try larder.expectHealthy()
    }

    // MARK: The small files

    @Test("a check reports a newer, damaged or missing POINTER") func aPointer() throws {
        let larder = try Self.filled()
        let newer = try larder.crashCopy()
        let path = newer.directory() + "/POINTER"
        let text = String(decoding: try Files.read(path), as: UTF8.self)
        try Files.write(path, Array(text.replacing(/larder-database \d/, with: "larder-database 9").utf8))
        try newer.expect("database 'books': POINTER: a newer Larder wrote it (version 9, ", "with that Larder", .unseen)
        #expect(try newer.check().isBlind)
        let flipped = try larder.crashCopy()
        try Files.flip(flipped.directory() + "/POINTER", at: 20)
        try flipped.expect("database 'books': POINTER cannot be read: ", "--repair continues with its newest", .damage)
        try flipped.expectRepair()
        // Entries that follow the policy count as expired, because the policy is lost. Entries with their own deadline
        // remain.
        #expect(try flipped.database().contents().count == 400)
        let missing = try larder.crashCopy()
        try FileSystem.removeFile(missing.directory() + "/POINTER")
        try missing.expect("database 'books': POINTER is missing; ", "", .damage)
        try missing.expectRepair()
    }

    @Test("a check reports a ledger without POINTER") func aLedgerWithoutPointerIsReported() throws {
        let larder = try Self.filled()
        try larder.database().purge(.tags([Array("t".utf8)], soft: false))
        larder.close()
        try larder.expectHealthy()
        let databases = try larder.engine().databases.count
        larder.close()
        #expect(try larder.check().databases == databases, "the ledger does not count as a database")
        try FileSystem.removeFile(larder.path + "/LEDGER/POINTER")
        try larder.expect("the ledger: POINTER is missing", "", .damage)
        try larder.expectRepair()
        // The ledger's contents, such as tag purges, are intact, so no entry is stale.
        #expect(try larder.database().contents().count == 400)
    }

    @Test("a check reports a damaged, foreign or missing ledger") func theLedger() throws {
        let larder = try Self.filled()
        larder.close()
        #expect(errorCode { _ = try larder.check(DatabaseName.ledger) } == .noSuchDatabase)
        try larder.database().purge(.tags([Array("t".utf8)], soft: false))
        try larder.crashCopy().expectHealthy()
        _ = try larder.engine().ledger.database.flushedStore()
        larder.close()
        #expect(try larder.check(DatabaseName.ledger).problems.isEmpty)
        // Makes a ledger without the tag purges, as if TAGS, a file of earlier versions, was removed before the
        // migration.
        let without = try larder.crashCopy()
        let database = try without.database()
        try without.engine().ledger.set("functions", to: [1])
        database.tagPurges.forget(database.rules.purges)
        without.close()
        try without.expect("database 'books': its tags were purged, but neither TAGS nor the ledger", "", .damage)
        try without.expectRepair()
        let path = larder.path + "/LEDGER"
        let damaged = try larder.crashCopy()
        let epoch = try damaged.epochDirectory(of: "LEDGER")
        for name in try FileSystem.list(epoch) where name.hasSuffix(".log") || name.hasSuffix(".ldb") {
            let count = FileSystem.size(epoch + "/" + name)
            if count > 60 { try Files.flip(epoch + "/" + name, at: count / 2) }
        }
        try damaged.expect("the ledger: ", "", .damage)
        try damaged.expectRepair()
        #expect(try damaged.engine().ledger.lossMilliseconds > 0)
        let foreign = try larder.crashCopy()
        try FileSystem.removeTree(foreign.path + "/LEDGER")
        try Files.write(foreign.path + "/LEDGER", [1])
        try foreign.expect("the ledger: ", "is not the ledger of this larder: move it away", .manual)
        // A check of an open larder reads a consistent copy of its files (an image), and reports files that the copy
        // lacks.
        _ = try larder.engine()
        try FileSystem.rename(path, to: larder.path + "/../away")
        let live = try larder.engine().check(copying: [])
        #expect(Set(live.problems.map(\.place)) == ["the ledger", "database 'books'"], "\(live.problems)")
        try FileSystem.rename(larder.path + "/../away", to: path)
        larder.close()
        try FileSystem.removeTree(path)
        #expect(try larder.check(DatabaseName.ledger).problems.map(\.place) == ["the ledger"])
        #expect(try larder.check("other").problems.map(\.place) == ["the ledger"], "the ledger is always checked")
        try larder.expect("the ledger: its files are missing from LEDGER/, and with them purges", "--repair", .damage)
        try larder.expect("database 'books': its tags were purged, but neither TAGS nor the ledger", "", .damage)
        // If the file SEQUENCES does not name the ledger, only POINTER still shows that tags of the database were
        // purged.
        try larder.forgetNamesOfDatabases()
        try larder.expect("database 'books': its tags were purged, but neither TAGS nor the ledger", "", .damage)
        try larder.expectRepair()
    }

    @Test("the ledger's tables are read once for all databases")
    func theLedgerIsReadOnce() throws {
        let larder = try Self.filled()
        try larder.database().purge(.tags([Array("t".utf8)], soft: false))
        _ = try larder.engine().ledger.database.flushedStore()
        try larder.engine().save()
        larder.close()
        let facts = LedgerFacts(directory: larder.path, journal: JournalCheck.End())
        #expect(facts.mayHavePurges(of: "books"))
        // The ledger is removed now, so the following answers can only come from what was read before.
        try FileSystem.removeTree(larder.path + "/LEDGER")
        #expect(!facts.mayHavePurges(of: "other"))
        #expect(facts.mayHavePurges(of: "books"))
        let unread = LedgerFacts(directory: larder.path, journal: JournalCheck.End())
        #expect(!unread.mayHavePurges(of: "books"))
    }

    @Test("a check reports a damaged TAGS file of an earlier version")
    func theFileInWhichEarlierVersionsKeptPurgesOfTags() throws {
        let larder = try Self.filled()
        larder.close()
        try Files.write(larder.directory() + "/TAGS", Array("hard a\n".utf8))
        try larder.expect(
            "database 'books': TAGS cannot be read: the checksum of line 1", "a purge of a tag may", .damage)
    }

    @Test("a check reports damaged SEQUENCES, TIME and SYNCED files") func theLardersNumbersAndTime() throws {
        let larder = try Self.filled()
        for (name, offset) in [("SEQUENCES", 3), ("TIME", 20), ("SYNCED", 20)] {
            let copy = try larder.crashCopy()
            let path = copy.path + "/" + name
            try Files.flip(path, at: offset)
            let bytes = try Files.read(path)
            if bytes.count > 4096 { try Files.flip(path, at: 4096 + offset) }
            try copy.expect("\(name): ", "--repair", .damage)
            try copy.expectRepair()
            #expect(try copy.database().contents().count == 400)
        }
        // A file that a newer version of Larder wrote.
        let copy = try larder.crashCopy()
        let path = copy.path + "/SEQUENCES"
        let text = String(decoding: try Files.read(path), as: UTF8.self)
        try Files.write(path, Array(text.replacing("larder-sequences 3", with: "larder-sequences 4").utf8))
        try copy.expect("SEQUENCES: a newer Larder wrote it", "", .unseen)
    }

    // MARK: The journal

    @Test("a check reports damaged and missing journal segments") func aHoleInTheJournal() throws {
        let larder = try TestLarder()
        let database = try larder.database()
        for number in 0..<20 { try database.put("j\(number)", "x") }
        let copy = try larder.crashCopy()
        let segment = try copy.lastSegment()
        try Files.flip(segment, at: FileSystem.size(segment) / 2)
        try copy.expect("the journal: segment ", "continues with the part before that", .damage)
        try copy.expectRepair()
        let found = try copy.database().contents()
        #expect((1..<20).contains(found.count))
        // One of several segments is missing.
        let rolled = try TestLarder { $0.journalSegmentBytes = 400 }
        for number in 0..<20 { try rolled.database().put("j\(number)", "x") }
        let gap = try rolled.crashCopy()
        let names = try FileSystem.list(gap.path + "/JOURNAL")
        try #require(names.count > 3)
        try FileSystem.removeFile(gap.path + "/JOURNAL/" + names[1])
        try gap.expect(
            "the journal: segment \(names[2]) at byte 0: it follows \(names[1]), which is missing", "", .damage)
        try gap.expectRepair()
    }

    /// After a damaged segment was quarantined, it is not reported as missing, although SYNCED still records it.
    @Test func aGapInASyncedJournalIsReportedOnce() throws {
        let larder = try TestLarder {
            $0.durability = .always
            $0.onDamage = .salvage
        }
        for number in 0..<20 { try larder.database().put("j\(number)", "x") }
        let copy = try larder.crashCopy()
        let segment = try copy.lastSegment()
        try Files.flip(segment, at: FileSystem.size(segment) / 2)
        let started = try copy.crashCopy()
        try copy.expect("the journal: segment ", "continues with the part before that", .damage)
        try copy.expectRepair()
        // Opening the larder also reports the damage only once. Neither a kill nor a clean shutdown makes the next
        // start report it again.
        #expect(try started.engine().statistics.journalDamages.read() == 1)
        #expect(try started.engine().statistics.setAside.read() == 0, "no database was moved aside")
        try started.crashCopy().expectHealthy()
        try started.engine().save()
        let next = try started.crashCopy()
        try next.expectHealthy()
        #expect(try next.engine().statistics.journalDamages.read() == 0)
        started.close()
        try started.expectHealthy()
        #expect(try (1..<20).contains(started.database().contents().count))
        #expect(try started.engine().statistics.journalDamages.read() == 0)
    }

    @Test("a check reports a journal of a newer version") func aJournalOfAnotherVersion() throws {
        let larder = try TestLarder()
        try larder.database().put("a", "1")
        let copy = try larder.crashCopy()
        let segment = try copy.lastSegment()
        var header = Array(try Files.read(segment).prefix(11)) + [2]
        withUnsafeBytes(of: CRC32C.checksum(header).bigEndian) { header += $0 }
        try Files.write(segment, header + (try Files.read(segment).dropFirst(16)))
        try copy.expect("JOURNAL/", "with that Larder", .unseen)
    }

    // MARK: Permissions

    @Test func wrongPermissionsAreReported() throws {
        let larder = try Self.filled()
        let path = larder.directory() + "/POINTER"
        #expect(chmod(path, 0o666) == 0)
        try larder.expect("books/POINTER: other users can write to it; ", "chmod go-w", .manual)
        #expect(chmod(path, 0o400) == 0)
        try larder.expect("books/POINTER: its owner cannot read and write it; ", "chmod u+rwX", .manual)
        #expect(chmod(path, 0o600) == 0)
        try larder.expectHealthy()
    }

    @Test(.enabled(if: geteuid() == 0, "needs the rights of root"))
    func filesOfAnotherUserAreReported() throws {
        let larder = try Self.filled()
        #expect(chown(larder.path + "/TIME", 12_345, 12_345) == 0)
        try larder.expect(
            "TIME: it belongs to another user than the larder (uid 0); ", "chown it to that user", .manual)
    }

    // MARK: One database, and a larder in use

    @Test("a check of one database ignores the others") func oneDatabase() throws {
        let larder = try Self.filled()
        try FileSystem.removeFile(larder.directory(of: "other") + "/POINTER")
        #expect(try larder.check("books").problems.isEmpty)
        #expect(try larder.check("other").problems.count == 1)
        #expect(errorCode { _ = try larder.check("nobody") } == .noSuchDatabase)
    }

    /// After a repair, the damage is gone, even if another thread had begun to salvage the database.
    @Test func aRepairWaitsForASalvageThatHasBegun() async throws {
        let larder = try Self.filled()
        let epoch = try larder.epochDirectory()
        try Files.flip(epoch + "/" + (try Self.largestTable(epoch)), at: 50)
        let engine = try larder.engine()
        let report = try engine.check(copying: [])
        let database = try larder.database("books")
        try database.prepare(forWriting: false)
        database.life.openLock.withLock { database.life.isSalvaging = true }
        let isRepaired = Guarded(false)
        let repair = Task.detached {
            let failures = engine.repair(report)
            isRepaired.value = true
            return failures
        }
        await eventually { larder.events.contains("waits for a salvage that has begun") || isRepaired.value }
        #expect(!isRepaired.value)
        database.life.openLock.withLock { database.life.isSalvaging = false }
        #expect(await repair.value == [])
        #expect(try engine.check(copying: []).problems.isEmpty)
    }

    @Test("a larder can be checked while it is open") func aLarderInUse() throws {
        let larder = try Self.filled()
        let epoch = try larder.epochDirectory()
        let table = try Self.largestTable(epoch)
        try Files.flip(epoch + "/" + table, at: 50)
        let engine = try larder.engine()
        let report = try engine.check(copying: [])
        #expect(report.problems.count == 1 && report.problems[0].text.contains("\(table): data block at 0"))
        #expect(engine.repair(report) == [])
        #expect(try engine.check(copying: []).problems.isEmpty)
        #expect(try FileSystem.list(larder.path).allSatisfy { !$0.hasPrefix(".image") })
        // The permissions are those of the larder, not of the copy.
        #expect(chmod(larder.path, 0o707) == 0 && chmod(larder.path + "/SEQUENCES", 0o400) == 0)
        #expect(try engine.check(copying: []).problems.map(\.place) == ["SEQUENCES", "the larder's directory"])
        #expect(chmod(larder.path, 0o700) == 0 && chmod(larder.path + "/SEQUENCES", 0o600) == 0)
        // Files that cannot be copied are reported too.
        _ = try larder.database("other")
        try FileSystem.removeFile(larder.directory(of: "other") + "/POINTER")
        let other = try engine.check(database: "other", copying: [])
        #expect(other.problems.map(\.place) == ["database 'other'"])
    }

    /// A check copies the tables as hard links, which must not count twice towards the disk limit.
    @Test func hardLinksCountOnceTowardsTheDiskUsage() throws {
        let directory = try TemporaryDirectory(inMemory: true)
        let path = try directory.makeFile("one", [UInt8](repeating: 1, count: 1 << 20))
        let before = FileSystem.space(directory.path)
        try FileSystem.makeDirectory(directory.path + "/inner")
        try FileSystem.hardLink(path, to: directory.path + "/inner/two")
        #expect(FileSystem.space(directory.path) - before < 1 << 19)
        #expect(before >= 1 << 20)
    }

    // MARK: The comparison with the index

    @Test func comparingTheExpiryIndexStaysWithinItsMemoryLimit() {
        var found: Set<UInt64> = []
        var divisor: UInt64 = 1
        var remainder: UInt64 = 0
        repeat {
            var comparison = IndexComparison(
                IndexComparison.Part(divisor: divisor, remainder: remainder), keysMax: 64)
            for number in 0..<1000 { Self.with(number) { comparison.want(2, $0, from: Int64(number)) } }
            for number in 0..<1000 where number % 100 != 0 {
                Self.with(number) { comparison.meet(2, $0, bucket: Int64(number) + (number % 7 == 0 ? 0 : 5)) }
            }
            // Index keys that do not match: one with a bucket that is too early, and one of the wrong kind.
            Self.with(100) { comparison.meet(2, $0, bucket: 99) }
            Self.with(200) { comparison.meet(3, $0, bucket: 999) }
            divisor = comparison.part.divisor
            found.formUnion(comparison.missing().hashes)
            remainder += 1
        } while remainder < divisor
        #expect(divisor >= 16)
        let expected = (0..<10).map { number in Self.with(number * 100) { IndexComparison.hash(2, $0) } }
        #expect(found == Set(expected))
    }

    private static func with<Result>(_ number: Int, _ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        Array("key\(number)".utf8).withUnsafeBytes(body)
    }

    // MARK: The larder

    private static func largestTable(_ epoch: String) throws -> String {
        let names = try Files.names(in: epoch, endingWith: ".ldb")
        return try #require(names.max { FileSystem.size(epoch + "/" + $0) < FileSystem.size(epoch + "/" + $1) })
    }

    /// Returns a larder with two databases: one with 400 entries with deadlines, stored in tables, and one with a
    /// single entry.
    private static func filled() throws -> TestLarder {
        let larder = try TestLarder {
            $0.compression = false
            $0.memoryBytes = 0
        }
        let database = try larder.database(policy: .never)
        let deadline = larder.time.wallMilliseconds() + 3_600_000
        for number in 0..<400 {
            try database.put("k\(1000 + number)", String(repeating: "x", count: 100), rule: .own(deadline))
        }
        try database.flushedStore()?.compactAll()
        try larder.database("other", policy: .never).put("a", "1")
        larder.close()
        return larder
    }
}

extension TestLarder {
    /// Checks the files, and expects that this changes no contents, names or modification times.
    func check(_ name: String? = nil) throws -> CheckReport {
        let before = try Files.digest(path)
        defer { #expect((try? Files.digest(path)) == before, "a check has changed something") }
        return try Engine.check(path, database: name, indexMaker: options.indexMaker)
    }

    func expectHealthy(sourceLocation: SourceLocation = #_sourceLocation) throws {
        let report = try check()
        #expect(report.problems.map(\.text) == [], sourceLocation: sourceLocation)
        #expect(report.notes == [], sourceLocation: sourceLocation)
    }

    func expect(
        _ prefix: String, _ part: String, _ kind: CheckProblem.Kind, sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        let problems = try check().problems
        #expect(
            problems.contains {
                $0.text.hasPrefix(prefix) && (part.isEmpty || $0.text.contains(part)) && $0.kind == kind
            },
            "\(problems.map(\.text))", sourceLocation: sourceLocation)
        #expect(problems.allSatisfy { !$0.text.contains("\n") }, sourceLocation: sourceLocation)
    }

    /// Repairs the larder, and expects that a check then finds no problems.
    func expectRepair(sourceLocation: SourceLocation = #_sourceLocation) throws {
        let report = try check()
        #expect(try Engine.repair(path, report, options: options, time: time) == [], sourceLocation: sourceLocation)
        try expectHealthy(sourceLocation: sourceLocation)
    }

    fileprivate func lastSegment() throws -> String {
        path + "/JOURNAL/" + (try #require(try Files.names(in: path + "/JOURNAL", endingWith: ".log").last))
    }
}
