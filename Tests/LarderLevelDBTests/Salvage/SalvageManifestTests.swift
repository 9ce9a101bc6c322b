import LarderLevelDB
import LarderLevelDBSalvage
import LarderPlatform
import LarderTestSupport
import Testing

/// Tests of damage in CURRENT and the manifest, of directories that are not databases, and of states that are not
/// damage.
@Suite struct SalvageManifestTests {
    let history: SalvageHistory
    let manifest: String
    let pristine: [UInt8]
    var options = SalvageOptions()

    init() throws {
        history = try SalvageHistory.usual(seed: testSeed("SalvageManifestTests"))
        manifest = try history.manifest()
        pristine = try Files.read("\(history.path)/\(manifest)")
        options.syncedLogBytes = try history.synced()
    }

    private func outcome() throws -> SalvageOutcome {
        let outcome = try SalvageOutcome(path: history.path, options: options)
        outcome.check(against: history, "\(outcome.report.damages)")
        return outcome
    }

    @Test func theManifestIsFoundWithoutAValidCurrentFile() throws {
        for bytes in [
            nil, [], bytes("MANIFEST"), bytes("MANIFEST-000001\n"), bytes("MANIFEST-99999999999999999999999\n"),
        ] {
            if let bytes { try history.replace("CURRENT", bytes) } else { unlink("\(history.path)/CURRENT") }
            let outcome = try outcome()
            #expect(outcome.entries == history.model && outcome.report.lost.isEmpty)
            #expect(!outcome.report.isUndamaged && outcome.report.notes.contains { $0.hasPrefix(manifest) })
        }
    }

    @Test func aFlippedBitInTheManifestLosesNoEntries() throws {
        for place in [0, 5, 6, 9, 30, pristine.count / 2, pristine.count - 2] {
            var bytes = pristine
            bytes[place] ^= 2
            try history.replace(manifest, bytes)
            let outcome = try outcome()
            #expect(outcome.entries == history.model && outcome.report.lost.isEmpty, "\(place): \(outcome.report)")
            #expect(outcome.report.damages.map(\.part) == [.manifest] && outcome.report.isComplete)
        }
    }

    @Test func aMissingManifestIsReportedAndAllTablesAreRead() throws {
        unlink("\(history.path)/\(manifest)")
        let outcome = try outcome()
        #expect(!outcome.report.isComplete && !outcome.report.isUndamaged)
        for (key, value) in history.model { #expect(outcome.entries[key] == value) }
        // The directory has no obsolete tables, so no removed entry comes back.
        #expect(outcome.entries.count == history.model.count)
    }

    /// The manifest is damaged after its first edits, and the tables that these edits name no longer exist.
    @Test func aDamagedManifestThatNamesMissingTablesIsIgnored() throws {
        try history.workspace.reopen(history.options)
        for _ in 0..<30 { try history.writeSome(30, removing: 4, valueBytes: 200...600) }
        try history.workspace.database.compact()
        try history.workspace.database.close()
        let name = try history.manifest()
        var bytes = try Files.read("\(history.path)/\(name)")
        for place in (bytes.count / 2)..<bytes.count { bytes[place] = 0xA5 }
        try history.replace(name, bytes)
        let outcome = try SalvageOutcome(path: history.path)
        outcome.check(against: history, "\(outcome.report)")
        #expect(!outcome.report.isComplete && outcome.report.damages.contains { $0.part == .manifest })
        for (key, value) in history.model { #expect(outcome.entries[key] == value) }
    }

    @Test func foreignFilesAreIgnored() throws {
        for name in [
            "000005.ldb.bak", "5.ldb", "99999999999999999999999.ldb", "MANIFEST-", ".log", "000012.dbtmp", "x",
        ] {
            try history.replace(name, bytes("nonsense"))
        }
        mkdir("\(history.path)/000001.log", 0o700)
        // A table that the manifest does not name was being written when the machine failed.
        try history.replace("009999.ldb", try Files.read("\(history.path)/\(try history.tables()[0])"))
        let outcome = try outcome()
        #expect(outcome.report.isUndamaged && outcome.entries == history.model)
    }

    @Test func anEmptyDirectoryIsReportedAsUndamaged() throws {
        let path = "\(history.workspace.directory.path)/empty"
        mkdir(path, 0o700)
        #expect(try SalvageOutcome(path: path).report.isUndamaged)
        try Files.write("\(path)/LOG", bytes("hello"))
        #expect(try SalvageOutcome(path: path).report.isUndamaged)
    }

    @Test func systemErrorsAreThrownAndNotTakenForDamage() async throws {
        let error = #expect(throws: SalvageError.self) {
            _ = try SalvageReader(path: "\(history.path)/absent")
        }
        #expect(error?.code == .system && error?.errno == ENOENT)
        // Runs in a separate process without free file descriptors. The error must not be reported as a damaged table
        // or a shorter log.
        await #expect(processExitsWith: .success) {
            let history = try SalvageHistory.usual(seed: 7)
            let reader = try SalvageReader(path: history.path)
            try #require(try reader.next())
            ResourceLimit.openFiles.set(current: 3)
            var found: SalvageError?
            do throws(SalvageError) {
                while try reader.next() {}
            } catch {
                found = error
            }
            try #require(found?.errno == EMFILE)
            try #require(reader.report.damageCount == 0)
            do throws(SalvageError) {
                _ = try SalvageReader(path: history.path)
            } catch {
                if error.code == .system, error.errno == EMFILE { exit(0) }
            }
            exit(1)
        }
    }
}
