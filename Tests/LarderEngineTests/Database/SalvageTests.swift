import LarderLevelDB
import LarderLevelDBFormat
import LarderPlatform
import LarderTestSupport
import Testing

@testable import LarderEngine

/// Tests that a salvage loses only damaged entries.
@Suite struct SalvageTests {
    private static func value(_ number: Int) -> String { "v\(number)-" + String(repeating: "x", count: 600) }

    /// Returns a larder with 5,000 entries in LevelDB tables, in blocks of 4 KiB.
    private func filled(_ action: EngineOptions.DamageAction, policy: UpdatePolicy = .never) throws -> TestLarder {
        let larder = try TestLarder {
            $0.onDamage = action
            $0.compression = false
            $0.memoryBytes = 0
        }
        let database = try larder.database(policy: policy)
        for number in 0..<5000 { try database.put(key(number), Self.value(number)) }
        try database.flushedStore()?.compactAll()
        larder.close()
        larder.time.advance(milliseconds: 1000)
        return larder
    }

    private func key(_ number: Int) -> String { "k" + String(10_000 + number) }

    /// Flips a byte within the first data block that has the key.
    private func flipBlock(of number: Int, _ larder: TestLarder) throws {
        let epoch = try larder.epochDirectory()
        let wanted = Array("v\(number)-".utf8)
        for table in try Files.names(in: epoch, endingWith: ".ldb") {
            let bytes = try Files.read(epoch + "/" + table)
            guard let place = bytes.indices.first(where: { bytes[$0...].starts(with: wanted) }) else { continue }
            return try Files.flip(epoch + "/" + table, at: place + 10)
        }
        Issue.record("no table has \(number)")
    }

    /// A flipped bit in a table costs at most the entries of its block. Entries that are only in the journal and in
    /// memory are not affected.
    @Test func aFlippedBitInATableLosesOnlyItsBlock() throws {
        let larder = try filled(.salvage)
        try flipBlock(of: 2500, larder)
        let database = try larder.database()
        var errors: [Int] = []
        for number in 0..<100 { try database.put("new\(number)", "n\(number)") }
        for number in 0..<5000 {
            do {
                #expect(try database.value(key(number)) == Self.value(number))
            } catch {
                #expect(error.code == .damaged)
                errors.append(number)
            }
        }
        #expect((1...30).contains(errors.count), "\(errors)")
        try larder.maintain()
        for round in 0..<3 {
            let database = try larder.database()
            for number in 0..<5000 {
                #expect(try database.value(key(number)) == (errors.contains(number) ? nil : Self.value(number)))
            }
            for number in 0..<100 { #expect(try database.value("new\(number)") == "n\(number)") }
            if round == 0 {
                let summary = try #require(database.lastSalvage)
                #expect(summary.pieces == 1 && summary.lostCount == 1)
                #expect(summary.description.contains("; 1 piece, "))
                #expect(summary.entries >= 5000 - errors.count)
                #expect(summary.lost[0].contains(" to \"\(key(errors.last ?? 0))\""), "\(summary.lost)")
                #expect(larder.events.contains("entries may be lost under the keys \"k12"))
                #expect(larder.setAside.count == 1)
            } else {
                larder.close()
            }
        }
    }

    /// A purged database has no files except POINTER. If POINTER is lost, the database still belongs to the larder. Its
    /// entries are restored from the journal, whose operations name the old epoch.
    @Test func aPurgedDatabaseWithoutPointerFileKeepsJournalEntries() throws {
        let larder = try TestLarder { $0.onDamage = .salvage }
        let database = try larder.database()
        try database.put("a", "purged")
        try larder.maintain()
        _ = try database.purge()
        try database.put("a", "new", rule: .ownNever)
        let crashCopy = try larder.crashCopy { $0.onDamage = .salvage }
        try FileSystem.removeFile(crashCopy.path + "/books/" + PointerFile.name)
        let salvaged = try crashCopy.database()
        #expect(try salvaged.contents() == ["a": "new"])
        #expect(try #require(salvaged.lastSalvage).description.contains("POINTER is lost, and with it the policy"))
        crashCopy.close()
        #expect(try crashCopy.database().contents() == ["a": "new"])
    }

    @Test func journalEntriesSurviveASalvageAndAKill() throws {
        let larder = try filled(.salvage)
        try flipBlock(of: 10, larder)
        let database = try larder.database()
        for number in 0..<100 { try database.put("new\(number)", "n\(number)") }
        try database.remove(key(4000))
        #expect(errorCode { _ = try database.contents() } == .damaged)
        try #require(database.durableState.store).setFrozen(false)
        let store = try #require(database.durableState.store)
        try database.salvage(store, LarderError(.damaged, "a test", operation: "test"))
        try database.put("later", "1")
        let crashCopy = try larder.crashCopy()
        let found = try crashCopy.database().contents()
        for number in 0..<100 { #expect(found["new\(number)"] == "n\(number)") }
        #expect(found["later"] == "1")
        #expect(found[key(4000)] == nil)
        #expect(found[key(3999)] == Self.value(3999))
        #expect(crashCopy.setAside.count == 1)
    }

    /// During a salvage, checkpoints remove journal segments only after the dirty entries of the database were written
    /// to the journal again.
    @Test func checkpointsDuringASalvageKeepDirtyEntries() throws {
        let larder = try filled(.salvage)
        let database = try larder.database()
        let other = try larder.database("other")
        let store = try #require(database.durableState.store)
        try database.put("a", "1")
        try other.put("a", "1")
        store.setFrozen(true)
        try larder.engine().save()
        try database.put("b", "2")
        try larder.engine().save()
        let crashCopy = try larder.crashCopy()
        #expect(try crashCopy.database().value("a") == "1", "\(crashCopy.events.all)")
        #expect(try crashCopy.database().value("b") == "2")
        #expect(try crashCopy.database("other").value("a") == "1")
        store.setFrozen(false)
        try larder.engine().save()
        #expect(try larder.engine().journalByteCount == 0)
    }

    /// A salvage waits until no checkpoint is running. A checkpoint that finds a database damaged therefore leaves the
    /// salvage to another thread; otherwise it would wait for itself.
    @Test func aCheckpointThatFindsDamageDoesNotDeadlock() throws {
        let larder = try TestLarder { $0.onDamage = .salvage }
        let database = try larder.database(policy: .never)
        try database.put("old", "1")
        try larder.engine().save()
        try database.put("new", "2")
        let crashCopy = try larder.crashCopy()
        try Files.flipBit(crashCopy.epochDirectory() + "/" + Files.manifest(crashCopy.epochDirectory()), at: 20)
        try crashCopy.engine().save()
        #expect(try crashCopy.engine().journalByteCount > 0, "only the journal has the entry")
        try crashCopy.maintain()
        #expect(crashCopy.setAside.count == 1, "\(crashCopy.events.all)")
        #expect(try crashCopy.database().contents() == ["old": "1", "new": "2"])
        #expect(try crashCopy.database().lastSalvage?.lostCount == 0)
        try crashCopy.engine().save()
        crashCopy.close()
        #expect(try crashCopy.database().contents() == ["old": "1", "new": "2"])
    }

    /// Overwritten values do not come back if the synced part of the log is damaged.
    @Test func aFlippedBitInTheLogNeverRevivesOlderValues() throws {
        let larder = try TestLarder { $0.onDamage = .salvage }
        let database = try larder.database(policy: .never)
        for number in 0..<300 { try database.put(key(number), "old") }
        try larder.engine().save()
        larder.close()
        larder.time.advance(milliseconds: 1000)
        let again = try larder.database()
        for number in 0..<300 where number % 3 == 0 { try again.put(key(number), "new" + Self.value(number)) }
        for number in 0..<300 where number % 3 == 1 { try again.remove(key(number)) }
        try larder.engine().save()
        let log = try #require(try Files.names(in: larder.epochDirectory(), endingWith: ".log").last)
        let count = try Files.read(larder.epochDirectory() + "/" + log).count
        var kept = 0
        for offset in stride(from: 3, to: count, by: count / 8) {
            let crashCopy = try larder.crashCopy()
            try Files.flip(crashCopy.epochDirectory() + "/" + log, at: offset)
            let salvaged = try crashCopy.database()
            let summary = try #require(salvaged.lastSalvage, "\(offset)")
            for number in 0..<300 {
                let found = try salvaged.value(key(number))
                let expected = number % 3 == 0 ? "new" + Self.value(number) : number % 3 == 1 ? nil : "old"
                #expect(found == expected || found == nil, "\(offset): \(number)")
                if found != nil { kept += 1 }
            }
            #expect(summary.lostCount > 0)
        }
        #expect(kept > 0)
    }

    @Test func entriesOfADamagedBlockAreRestoredFromMemory() throws {
        let larder = try TestLarder {
            $0.onDamage = .salvage
            $0.compression = false
        }
        let database = try larder.database(policy: .never)
        for number in 0..<1000 { try database.put(key(number), Self.value(number)) }
        try database.flushedStore()?.compactAll()
        let store = try #require(database.durableState.store)
        // All entries of the damaged block are still in memory.
        try flipBlock(of: 500, larder)
        try database.salvage(store, LarderError(.damaged, "a test", operation: "test"))
        #expect(database.lastSalvage?.lostCount == 1)
        larder.close { $0.memoryBytes = 0 }
        for number in 0..<1000 { #expect(try larder.database().value(key(number)) == Self.value(number)) }
    }

    /// The daemon continues after each kind of damage, and no older value comes back.
    @Test("a salvage after several kinds of damage returns no older values") func manyKindsOfDamage() throws {
        let damages: [(String, (String) throws -> Void)] = [
            ("MANIFEST lost", { try Files.remove($0 + "/" + (try Files.manifest($0))) }),
            ("CURRENT lost", { try Files.misleadCurrent($0) }),
            ("table deleted", { try Files.remove($0 + "/" + (try Files.largestTable($0))) }),
            ("table cut", { try Files.truncate($0 + "/" + (try Files.largestTable($0)), to: 9000) }),
            (
                "both lost",
                {
                    try Files.remove($0 + "/CURRENT")
                    try Files.truncate($0 + "/" + (try Files.largestTable($0)), to: 100_000)
                }
            ),
        ]
        let larder = try filled(.salvage)
        for (name, damage) in damages {
            let crashCopy = try larder.crashCopy()
            try damage(try crashCopy.epochDirectory())
            let database = try crashCopy.database()
            for number in 0..<5000 { _ = try? database.value(key(number)) }
            try crashCopy.maintain()
            var kept = 0
            for number in 0..<5000 {
                let found = try database.value(key(number))
                #expect(found == nil || found == Self.value(number), "\(name)")
                if found != nil { kept += 1 }
            }
            // One table has nearly all entries, and none of them can be found without its index.
            let isWhole = name.contains("lost") && !name.contains("both")
            #expect(kept == 5000 || !isWhole && database.lastSalvage?.lostCount ?? 0 > 0, "\(name): \(kept)")
            #expect(database.lastSalvage != nil, "\(name)")
            try database.put("k", "1")
            crashCopy.close()
            #expect(try crashCopy.database().value("k") == "1")
        }
    }

    /// Returns a copy of a larder without its manifest. Every second entry was removed, but the obsolete tables that
    /// have these entries exist again, as if a snapshot had kept them.
    /// - Parameter inOrder: whether the larder is closed cleanly after LevelDB's compaction has dropped the removals.
    private func withoutManifest(_ larder: TestLarder, inOrder: Bool) throws -> TestLarder {
        let epoch = try larder.epochDirectory()
        let previous = try Files.names(in: epoch, endingWith: ".ldb").map { ($0, try Files.read(epoch + "/" + $0)) }
        let database = try larder.database()
        for number in 0..<5000 where number.isMultiple(of: 2) { try database.remove(key(number)) }
        try larder.engine().save()
        try database.durableState.store?.compactAll()
        if inOrder { larder.close() }
        let crashCopy = try larder.crashCopy()
        let copy = try crashCopy.epochDirectory()
        for (name, bytes) in previous where !FileSystem.exists(copy + "/" + name) {
            try Files.write(copy + "/" + name, bytes)
        }
        #expect(try Files.names(in: copy, endingWith: ".ldb").count > 1)
        try Files.remove(copy + "/" + Files.manifest(copy))
        return crashCopy
    }

    /// SYNCED records which tables are valid, so no entry is lost.
    @Test func aLostManifestLosesNoEntriesAfterACleanShutdown() throws {
        let original = try filled(.salvage)
        let larder = try withoutManifest(original, inOrder: true)
        let database = try larder.database()
        for number in 0..<5000 {
            #expect(try database.value(key(number)) == (number.isMultiple(of: 2) ? nil : Self.value(number)))
        }
        let summary = try #require(database.lastSalvage)
        #expect(summary.isComplete && summary.lostCount == 0 && summary.doubts.isEmpty, "\(summary)")
        #expect(try larder.engine().statistics.salvagesInDoubt.read() == 0)
    }

    /// LevelDB compacted tables after SYNCED was written, so it is unknown which removals the compaction has dropped.
    @Test func aLostManifestDoesNotReviveRemovedEntries() throws {
        for isNoted in [true, false] {
            let original = try filled(.salvage)
            let larder = try withoutManifest(original, inOrder: false)
            if !isNoted { try Files.remove(larder.epochDirectory() + "/SYNCED") }
            let database = try larder.database()
            for number in 0..<5000 {
                let found = try database.value(key(number))
                #expect(found == nil || found == Self.value(number) && !number.isMultiple(of: 2), "\(number)")
            }
            let summary = try #require(database.lastSalvage)
            #expect(!summary.isComplete && summary.lostCount > 0)
            #expect(summary.doubts.count == (isNoted ? 1 : 2), "\(summary.doubts)")
            #expect(larder.events.contains("the manifest is lost; tables that may be obsolete were skipped"))
            #expect(larder.events.contains("SYNCED is missing") == !isNoted)
            #expect(try larder.engine().statistics.salvagesInDoubt.read() == 1)
            try database.put("k", "1")
            larder.close()
            #expect(try larder.database().value("k") == "1")
        }
    }

    /// If SYNCED is damaged, it is unknown whether the log has lost its end, and the salvage reports this.
    @Test func aDamagedSyncedFileIsReported() throws {
        for isLogDamaged in [false, true] {
            let larder = try TestLarder { $0.onDamage = .salvage }
            let database = try larder.database(policy: .never)
            for number in 0..<10 { try database.put(key(number), Self.value(number)) }
            try larder.engine().save()
            let crashCopy = try larder.crashCopy()
            let epoch = try crashCopy.epochDirectory()
            try Files.flip(epoch + "/SYNCED", at: 10)
            if isLogDamaged {
                try Files.flip(
                    epoch + "/" + (try #require(try Files.names(in: epoch, endingWith: ".log").last)), at: 900)
            }
            let found = try crashCopy.database().contents()
            #expect(
                found.allSatisfy { key, value in (0..<10).contains { key == self.key($0) && value == Self.value($0) } })
            if isLogDamaged {
                #expect(try crashCopy.database().lastSalvage?.doubts.first?.contains("SYNCED is damaged") == true)
                #expect(crashCopy.events.contains("SYNCED is damaged: the end of a log may be lost undetected"))
            } else {
                #expect(found.count == 10)
                #expect(
                    crashCopy.events.contains("SYNCED is damaged: the end of LevelDB's log"))
            }
        }
    }

    /// SYNCED, which records the tables, is read back as it was written.
    @Test func theTablesInTheSyncedFileAreReadBackAsWritten() throws {
        let larder = try filled(.fail)
        let bytes = try Files.read(larder.epochDirectory() + "/SYNCED")
        let files = try #require(SyncedFiles(parsing: bytes))
        let manifest = try #require(try ManifestScan.scan(directory: larder.epochDirectory()))
        #expect(files == SyncedFiles(manifest, logs: files.logs))
        #expect(
            Set(files.manifest.tables.keys)
                == Set(
                    try Files.names(in: larder.epochDirectory(), endingWith: ".ldb").compactMap {
                        UInt64($0.dropLast(4))
                    }))
        #expect(files.manifest.tables.values.contains { !$0.smallest.isEmpty && $0.byteCount > 100_000 })
        #expect(files.manifest.nextFileNumber > (files.manifest.tables.keys.max() ?? 0) && files.manifest.logNumber > 0)
        #expect(Array(files.text.utf8) == bytes)
        var longer = files
        longer.manifest.tables[7] = ManifestScan.Table(
            level: 2, byteCount: 5, smallest: [], largest: Array(repeating: 0xab, count: 9))
        #expect(SyncedFiles(parsing: Array(longer.text.utf8)) == longer)
    }

    /// The library does not salvage on its own. An explicit call finds the damage even if the engine that found it
    /// first was closed.
    @Test func damageFoundBeforeTheLarderWasClosedCanBeSalvaged() throws {
        for isSalvage in [true, false] {
            let larder = try filled(.fail)
            try flipBlock(of: 2500, larder)
            #expect(errorCode { _ = try larder.database().value(key(2500)) } == .damaged)
            larder.close()
            let engine = try larder.engine()
            if isSalvage {
                let summary = try engine.salvageDamaged("books")
                #expect(summary.lostCount == 1)
                #expect(try larder.database().value(key(1)) == Self.value(1))
            } else {
                try engine.setAsideDamaged("books")
                #expect(try larder.database().contents() == [:])
            }
            #expect(try larder.database().value(key(2500)) == nil)
            #expect(errorCode { _ = try engine.salvageDamaged("books") } == .invalidArgument)
            #expect(errorCode { try engine.setAsideDamaged("books") } == .invalidArgument)
        }
    }

    /// A salvage creates the expiry index again, so that the sweep finds the salvaged entries.
    @Test func salvagedEntriesExpireAndAreSwept() throws {
        let larder = try filled(.salvage, policy: .high)
        try flipBlock(of: 2500, larder)
        let database = try larder.database()
        #expect(errorCode { _ = try database.contents() } == .damaged)
        try larder.maintain()
        #expect(try database.contents().count > 4000)
        larder.time.advance(milliseconds: 3_600_000)
        #expect(try database.contents() == [:])
        try larder.maintain()
        #expect(try database.rawKeys().filter { $0[0] != KeyKind.metadata } == [])
    }

    /// Removed and overwritten entries do not come back after reads, crashes or repeated damage. Bytes are flipped, and
    /// files truncated and removed, at random.
    @Test func randomDamageNeverRevivesRemovedEntries() throws {
        let rounds = TestSetting.damageRounds.number() ?? 12
        var random = SeededGenerator(seed: testSeed())
        for round in 0..<rounds { try damageAtRandom(round, &random) }
    }

    private func damageAtRandom(_ round: Int, _ random: inout SeededGenerator) throws {
        let larder = try TestLarder {
            $0.onDamage = .salvage
            $0.memoryBytes = 0
            $0.writeBufferBytes = 64 << 10
        }
        var model: [String: String] = [:]
        for step in 0..<4 {
            let database = try larder.database(policy: .never)
            for number in 0..<Int.random(in: 50...600, using: &random) {
                let key = key(Int.random(in: 0..<800, using: &random))
                if Int.random(in: 0..<5, using: &random) == 0 {
                    try database.remove(key)
                    model[key] = nil
                } else {
                    let value = "\(round).\(step).\(number)" + String(repeating: "x", count: number % 300)
                    try database.put(key, value)
                    model[key] = value
                }
            }
            if Bool.random(using: &random) { try larder.engine().save() }
            if Bool.random(using: &random) { larder.close() }
            larder.time.advance(milliseconds: 1000)
        }
        let crashCopy = try larder.crashCopy()
        let epoch = try crashCopy.epochDirectory()
        var done: [String] = []
        for _ in 0..<Int.random(in: 1...3, using: &random) {
            // Damages SYNCED only if no other file is damaged: without SYNCED, a shortened file could not be noticed.
            let names = try FileSystem.list(epoch).filter {
                $0 != "LOCK" && !$0.hasPrefix("LOG") && ($0 != SyncedFiles.name || done.isEmpty)
            }
            if done.contains(where: { $0.hasPrefix(SyncedFiles.name) }) { break }
            let name = try #require(names.randomElement(using: &random))
            done.append(try damage(epoch + "/" + name, &random))
        }
        let database = try crashCopy.engine().database("books")
        for isSalvaged in [false, true] {
            for number in 0..<800 {
                do {
                    let found = try database.value(key(number))
                    let isRight = found == model[key(number)] || found == nil && database.lastSalvage != nil
                    #expect(
                        isRight,
                        "round \(round), \(done): \(key(number)) is \(found ?? "nil") \(number == 0 ? "\(crashCopy.events.all)" : "")"
                    )
                } catch {
                    #expect(!isSalvaged && error.code == .damaged, "round \(round), \(done): \(error)")
                }
            }
            try crashCopy.maintain()
        }
    }

    private func damage(_ path: String, _ random: inout SeededGenerator) throws -> String {
        let count = try Files.read(path).count
        let name = String(path.split(separator: "/").last ?? "")
        let offset = Int.random(in: 0..<max(1, count), using: &random)
        switch Int.random(in: 0..<6, using: &random) {
        case 0:
            try Files.remove(path)
            return "\(name) removed"
        case 1:
            try Files.truncate(path, to: offset)
            return "\(name) cut at \(offset)"
        default:
            if count > 0 { try Files.flip(path, at: offset) }
            return "\(name) flipped at \(offset)"
        }
    }
}

extension Files {
    static func largestTable(_ epoch: String) throws -> String {
        try names(in: epoch, endingWith: ".ldb").max {
            FileSystem.size(epoch + "/" + $0) < FileSystem.size(epoch + "/" + $1)
        } ?? ""
    }

    static func manifest(_ epoch: String) throws -> String {
        try FileSystem.list(epoch).last { $0.hasPrefix("MANIFEST-") } ?? ""
    }
}
