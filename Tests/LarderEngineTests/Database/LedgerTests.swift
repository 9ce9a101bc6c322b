import LarderPlatform
import LarderTestSupport
import Testing

@testable import LarderEngine

/// Tests of the ledger, a hidden database for the larder's own data (*facts*), such as tag purges. Facts are as durable
/// as entries, and each loss of facts is reported.
@Suite struct LedgerTests {
    private func put(_ database: Database, _ key: String, tag: String?, grace: Int64? = nil) throws {
        let tags = try tag.map { try Tags(checking: [Array($0.utf8)]) }
        _ = try database.commit([Key(key)], loading: .none) { update in
            Array("1".utf8).withUnsafeBytes { update.put(0, payload: $0, grace: grace, tags: tags) }
        }
    }

    private func purge(_ database: Database, _ tag: String) throws {
        try database.purge(.tags([Array(tag.utf8)], soft: false))
    }

    /// Returns a larder with three entries: the tag of `a` was purged, the tag of `b` was not, and `c` has no tag.
    private func filled(_ configure: (inout EngineOptions) -> Void = { _ in }) throws -> TestLarder {
        let larder = try TestLarder(configure)
        let database = try larder.database()
        try put(database, "a", tag: "x")
        try put(database, "b", tag: "y", grace: 600_000)
        try put(database, "c", tag: nil)
        try purge(database, "x")
        return larder
    }

    @Test func valuesInTheLedgerSurviveACrash() throws {
        let larder = try TestLarder()
        let ledger = try larder.engine().ledger
        #expect(try ledger.value("functions") == nil)
        try ledger.set("functions", to: nil)
        #expect(!FileSystem.exists(larder.path + "/LEDGER"), "nothing was stored")
        try ledger.set("functions", to: [1, 2])
        try ledger.set("origins", to: [3])
        try ledger.set("origins", to: nil)
        let copy = try larder.crashCopy()
        #expect(try copy.engine().ledger.value("functions") == [1, 2])
        #expect(try copy.engine().ledger.value("origins") == nil)
        copy.close()
        #expect(try copy.engine().ledger.value("functions") == [1, 2], "from LevelDB")
        #expect(try copy.engine().ledger.lossMilliseconds == 0)
    }

    @Test func theLedgerIsHiddenFromUsers() throws {
        let larder = try filled { $0.databasesMax = 1 }
        #expect(try larder.engine().databases.map(\.name) == ["books"])
        #expect(errorCode { _ = try larder.database("LEDGER") } == .invalidArgument)
        #expect(errorCode { _ = try larder.database("second") } == .tooManyDatabases, "the ledger does not count")
        #expect(DatabaseName.isKept("LEDGER"), "its entries are never evicted")
    }

    @Test func changesOfTheLedgerAreNotReportedToObservers() throws {
        let larder = try TestLarder()
        let seen = Guarded<[String]>([])
        let observer = NameObserver(seen)
        try larder.engine().changes.subscribe(observer)
        let database = try larder.database()
        try put(database, "a", tag: "x")
        try purge(database, "x")
        #expect(!seen.value.isEmpty && seen.value.allSatisfy { $0 == "books" }, "\(seen.value)")
    }

    @Test func purgedTagIsNotServedAfterAnyCrash() throws {
        let larder = try filled()
        for copy in [try larder.crashCopy(), larder] {
            #expect(try copy.database().contents() == ["b": "1", "c": "1"])
            copy.close()
            #expect(try copy.database().contents() == ["b": "1", "c": "1"])
        }
        // Entries that are stored later are served.
        try put(try larder.database(), "a", tag: "x")
        larder.close()
        #expect(try larder.database().value("a") == "1")
    }

    /// Earlier versions do not record in SEQUENCES that a ledger exists. If the ledger is missing, POINTER still shows
    /// that tags were purged, but not which ones. So all entries with tags must be stale.
    @Test func aMissingLedgerIsReportedAndMakesTaggedEntriesStale() throws {
        let larder = try filled()
        larder.close()
        try FileSystem.removeTree(larder.path + "/LEDGER")
        try larder.forgetNamesOfDatabases()
        for _ in 0..<2 {
            let database = try larder.database()
            #expect(try database.contents() == ["c": "1"])
            let outcome = try database.freshness(of: "b")
            #expect(outcome == .stale, "not gone")
            larder.close()
        }
        #expect(larder.events.all.count { $0.message.contains("purges of tags may be lost") } == 1, "reported once")
        try put(try larder.database(), "b", tag: "y")
        #expect(try larder.database().contents() == ["b": "1", "c": "1"])
    }

    @Test("the loss of a removed ledger is reported, recorded and counted") func aRemovedLedger() throws {
        let larder = try filled()
        try larder.engine().ledger.set("functions", to: [1, 2])
        let crashed = try larder.crashCopy()
        larder.close()
        for copy in [larder, crashed] {
            try FileSystem.removeTree(copy.path + "/LEDGER")
            for isFirst in [true, false] {
                let database = try copy.database()
                // After a crash, facts that are still in the journal are kept.
                let isKept = copy === crashed
                #expect(try database.contents() == ["c": "1"])
                #expect(try database.freshness(of: "b") == .stale)
                let ledger = try copy.engine().ledger
                #expect(try ledger.value("functions") == (isKept ? [1, 2] : nil))
                #expect(ledger.lossMilliseconds > 0, "the loss of facts is reported")
                let statistics = try copy.engine().statistics
                #expect(statistics.factLosses.read() == (isFirst ? 1 : 0))
                #expect(statistics.salvagesInDoubt.read() == (isFirst ? 1 : 0))
                copy.close()
            }
            #expect(copy.events.all.count { $0.message.contains("/LEDGER is missing: ") && $0.level == .error } == 1)
            try put(try copy.database(), "b", tag: "y")
            #expect(try copy.database().contents()["b"] == "1")
            copy.close()
        }
    }

    @Test("a larder without ledger, databases and sequences starts empty")
    func removingTheLedgerOnPurposeIsNotDamage() throws {
        let larder = try filled()
        larder.close()
        for name in ["LEDGER", "books", SequencesFile.name] { try FileSystem.removeTree(larder.path + "/" + name) }
        #expect(try larder.engine().ledger.lossMilliseconds == 0)
        #expect(!larder.events.contains("missing"))
    }

    /// SEQUENCES durably records that a ledger exists before the first fact is acknowledged.
    @Test func theLedgersExistenceIsRecordedBeforeItsFirstValue() throws {
        let larder = try TestLarder()
        _ = try larder.engine()
        // A directory in place of SEQUENCES makes writing that file fail.
        let path = larder.path + "/" + SequencesFile.name
        let bytes = try Files.read(path)
        try FileSystem.removeFile(path)
        try FileSystem.makeDirectories(path + "/full")
        #expect(errorCode { try larder.engine().ledger.set("functions", to: [1]) } == .io)
        #expect(try larder.engine().ledger.value("functions") == nil)
        try FileSystem.removeTree(path)
        try Files.write(path, bytes)
        try larder.engine().ledger.set("functions", to: [1])
        #expect(try SequencesFile.read(in: larder.path)?.databases == [DatabaseName.ledger])
    }

    @Test("a file in place of the ledger, or an unreadable ledger, is an error") func noLedger() throws {
        let larder = try filled()
        larder.close()
        let path = larder.path + "/LEDGER"
        try FileSystem.rename(path, to: larder.path + "/../away")
        try Files.write(path, [1])
        let foreign = #expect(throws: LarderError.self) { _ = try larder.engine() }
        #expect(foreign?.message == "\(path) is not the ledger of this larder: move it away")
        try FileSystem.removeFile(path)
        // Uses a link to itself instead of a file without read permission, because root may read every file.
        #expect(symlink("LEDGER", path) == 0)
        let unreadable = #expect(throws: LarderError.self) { _ = try larder.engine() }
        #expect(unreadable?.code == .io && unreadable?.message.contains(path) == true, "\(unreadable?.message ?? "")")
        try FileSystem.removeFile(path)
        try FileSystem.rename(larder.path + "/../away", to: path)
        #expect(try larder.database().contents() == ["b": "1", "c": "1"])
        // If no ledger is expected, the larder continues without one.
        let other = try TestLarder()
        try other.database().put("k", "v")
        other.close()
        try Files.write(other.path + "/LEDGER", [1])
        #expect(try other.database().value("k") == "v")
        #expect(other.events.contains("/LEDGER is not the ledger of this larder: move it away; until then"))
    }

    /// The purge is the last commit in the journal. It is synced, but only the header of a later group of commits would
    /// record that. So after damage, recovery cannot know whether the journal had a purge, and must assume that one is
    /// lost.
    @Test("journal damage before the last tag purge does not lose that purge silently")
    func damageInFrontOfTheLastFact() throws {
        let larder = try TestLarder { $0.onDamage = .salvage }
        let database = try larder.database()
        try put(database, "a", tag: "x")
        try put(database, "c", tag: nil)
        try database.put("marker", "to be damaged")
        try purge(database, "x")
        let copy = try larder.crashCopy()
        let segment =
            copy.path + "/JOURNAL/"
            + (try #require(try FileSystem.list(copy.path + "/JOURNAL").filter { $0.hasSuffix(".log") }.max()))
        let bytes = try Files.read(segment)
        let place = try #require(bytes.indices.first { bytes[$0...].starts(with: Array("to be damaged".utf8)) })
        try Files.flip(segment, at: place)
        let again = try copy.database()
        #expect(try again.contents() == ["c": "1"])
        #expect(try copy.engine().ledger.lossMilliseconds > 0)
        #expect(copy.events.contains("the journal is damaged"))
        #expect(copy.events.contains("purges of tags, functions and origins may be lost"))
    }

    /// The next process has reserved sequences in SEQUENCES, but a power failure loses its marks in SYNCED and the
    /// header of the first segment, which were not synced. The segment's groups record that earlier units were synced.
    /// These are in LevelDB.
    /// - Parameter isClosed: whether the segment is the first one after a clean shutdown.
    @Test("an unsynced segment without its header makes nothing stale", arguments: [false, true])
    func anUnsyncedSegment(_ isClosed: Bool) throws {
        let larder = try filled { $0.onDamage = .salvage }
        try larder.engine().save()
        if isClosed {
            larder.close()
            try larder.engine().pipeline.sync()
        }
        for key in ["d", "e"] { try put(try larder.database(), key, tag: nil) }
        let next = try larder.crashCopy()
        let copy = try larder.crashCopy()
        _ = try next.engine()
        try Files.write(copy.path + "/SEQUENCES", try Files.read(next.path + "/SEQUENCES"))
        try loseHeader(of: copy)
        #expect(try copy.database().contents() == ["b": "1", "c": "1"])
        #expect(copy.events.contains("the journal is damaged"))
        #expect(!copy.events.contains("may be lost"))
    }

    /// Overwrites the header of the last segment, which records the end of the previous segment.
    private func loseHeader(of larder: TestLarder) throws {
        let journal = larder.path + "/JOURNAL/"
        let segment = journal + (try #require(try FileSystem.list(journal).max()))
        var bytes = try Files.read(segment)
        bytes.replaceSubrange(..<JournalFormat.segmentHeaderBytes, with: [UInt8](repeating: 0, count: 52))
        try Files.write(segment, bytes)
    }

    /// A power failure leaves holes in the unsynced part of the journal, which contains an unacknowledged purge.
    @Test("an unsynced purge that is lost with the journal's first page makes nothing stale") func anUnsyncedFact()
        throws
    {
        let larder = try filled { $0.onDamage = .salvage }
        larder.close()
        let database = try larder.database()
        let marks = try Files.read(larder.path + "/" + JournalMarkFile.fileName)
        try put(database, "d", tag: "y")
        try purge(database, "y")
        let copy = try larder.crashCopy()
        try Files.write(copy.path + "/" + JournalMarkFile.fileName, marks)
        try loseHeader(of: copy)
        #expect(try copy.database().contents() == ["b": "1", "c": "1"])
        #expect(copy.events.contains("the journal is damaged"))
        #expect(try copy.engine().ledger.lossMilliseconds == 0)
        #expect(!copy.events.contains("may be lost"))
    }

    @Test("a damaged block of the ledger does not keep the larder from starting") func anyDamagedByteOfTheLedger()
        throws
    {
        let larder = try filled()
        try larder.engine().ledger.set("functions", to: Array(repeating: 7, count: 3_000))
        _ = try larder.engine().ledger.database.flushedStore()
        larder.close()
        let epoch = try larder.epochDirectory(of: "LEDGER")
        let table = epoch + "/" + (try #require(try FileSystem.list(epoch).first { $0.hasSuffix(".ldb") }))
        let count = try Files.read(table).count
        for place in stride(from: 0, to: count, by: max(1, count / 40)) {
            let copy = try larder.crashCopy()
            try Files.flip(copy.path + table.dropFirst(larder.path.count), at: place)
            let database = try copy.database()
            let contents = try database.contents()
            #expect(contents["a"] == nil && contents["c"] == "1", "byte \(place): \(contents)")
            let functions = try copy.engine().ledger.value("functions")
            let isReported = try copy.engine().ledger.lossMilliseconds > 0
            #expect(isReported || functions?.count == 3_000 && contents["b"] == "1", "byte \(place)")
            copy.close()
            #expect(try copy.database().contents() == contents, "byte \(place), opened again")
        }
    }

    @Test(arguments: [EngineOptions.DamageAction.salvage, .fail]) func aDamagedLedgerAffectsOnlyTaggedEntries(
        _ onDamage: EngineOptions.DamageAction
    ) throws {
        let larder = try filled { $0.onDamage = onDamage }
        let untagged = try larder.database("untagged")
        try put(untagged, "t", tag: "x")
        _ = try larder.engine().ledger.database.flushedStore()
        larder.close()
        let epoch = try larder.epochDirectory(of: "LEDGER")
        for name in try FileSystem.list(epoch) where name.hasSuffix(".log") || name.hasSuffix(".ldb") {
            let bytes = try Files.read(epoch + "/" + name)
            if bytes.count > 60 { try Files.flip(epoch + "/" + name, at: bytes.count / 2) }
        }
        for _ in 0..<2 {
            #expect(try larder.database().contents() == ["c": "1"])
            #expect(try larder.database("untagged").contents() == ["t": "1"], "no tag of this database was purged")
            #expect(try larder.engine().ledger.lossMilliseconds > 0)
            larder.close()
        }
        #expect(larder.events.contains("database 'LEDGER' was damaged"))
    }

    @Test func tagPurgesOfEarlierVersionsAreMigrated() throws {
        let larder = try filled()
        try put(try larder.database(), "d", tag: "z")
        let sequence = try larder.engine().pipeline.everythingApplied.sequence + 1
        larder.close()
        try FileSystem.removeTree(larder.path + "/LEDGER")
        try larder.forgetNamesOfDatabases()
        func line(_ body: String) -> String { "\(body) \(UInt64(CRC32C.checksum(body.utf8)).hexadecimal(digits: 8))\n" }
        let hash = Array("y".utf8).withUnsafeBytes { TagPurges.hash($0) }
        let path = larder.directory() + "/TAGS"
        let text = line("larder-tags 1") + line("hard \(hash.hexadecimal()) \(sequence)")
        // The last line is incomplete, so its purge was never acknowledged.
        try Files.write(path, Array((text + "floor 9").utf8))
        for _ in 0..<2 {
            #expect(try larder.database().contents() == ["c": "1", "d": "1"])
            #expect(!FileSystem.exists(path))
            larder.close()
        }
        #expect(!larder.events.contains("may be lost"))
    }

    @Test func aDamagedTagsFileMakesTaggedEntriesStale() throws {
        let larder = try filled()
        larder.close()
        try Files.write(larder.directory() + "/TAGS", Array("larder-tags 1 00000000\n".utf8))
        for _ in 0..<2 {
            #expect(try larder.database().contents() == ["c": "1"])
            larder.close()
        }
        #expect(larder.events.all.count { $0.message.contains("TAGS is damaged") } == 1)
    }

    @Test func deletingADatabaseRemovesItsTagPurges() throws {
        let larder = try filled()
        #expect(try larder.engine().ledger.database.contents().count == 2)
        _ = try larder.engine().deleteDatabase("books")
        #expect(try larder.engine().ledger.database.contents().isEmpty)
    }

    /// A purge that fails is undone completely, both in memory and on disk.
    @Test func aFailedTagPurgeIsUndoneInMemoryAndOnDisk() throws {
        let isFailing = Guarded(false)
        let larder = try filled { options in
            options.journalFaults = JournalFaults { call, _ in
                if case .write = call, isFailing.value { return .fail(EIO) }
                return nil
            }
        }
        let database = try larder.database()
        isFailing.value = true
        #expect(throws: LarderError.self) { try purge(database, "y") }
        isFailing.value = false
        #expect(try database.contents() == ["b": "1", "c": "1"])
        let copy = try larder.crashCopy()
        #expect(try copy.database().contents() == ["b": "1", "c": "1"])
        try purge(database, "y")
        #expect(try database.contents() == ["c": "1"])
    }
}

extension Database {
    /// Returns the current freshness of a key's entry; nil if there is no entry.
    fileprivate func freshness(of key: String) throws -> Freshness? {
        var options = EnumerationOptions(prefix: Array(key.utf8))
        options.includeExpired = true
        guard let cursor = try cursor(options), try cursor.next() else { return nil }
        return rules.freshness(try cursor.header(), now: now())
    }
}

/// Records the name of the database of each change.
private final class NameObserver: ChangeSubscriber {
    private let names: Guarded<[String]>

    init(_ names: Guarded<[String]>) { self.names = names }

    func take(_ changes: [EntryChange]) {
        for change in changes { names.with { $0.append(change.database.name) } }
    }
}
