import LarderPlatform
import LarderTestSupport
import Testing

@testable import LarderEngine

/// Tests of the file `SYNCED`, which records how much of the journal is synced. A loss within that part is damage.
@Suite struct JournalMarkTests {
    /// Returns a larder with three synced segments. LevelDB has the value "old" for `a`; the first segment has "new"
    /// for `a`; the others have `b` and `c`.
    private func threeSegments() throws -> TestLarder {
        let larder = try TestLarder {
            $0.durability = .always
            $0.journalSegmentBytes = 1
        }
        let database = try larder.database()
        try database.put("a", "old")
        try larder.engine().save()
        try database.put("a", "new")
        try database.put("b", "1")
        try database.put("c", "1")
        return larder
    }

    private typealias Harm = @Sendable (_ segments: [String]) throws -> Void
    private static let harms: [(name: String, values: [String: String], harm: Harm)] = [
        (
            "the last is cut", ["a": "new", "b": "1"],
            { try Files.write($0[2], Array(try Files.read($0[2]).dropLast(9))) }
        ),
        ("the last is zero", ["a": "new", "b": "1"], { try zero($0[2]) }),
        ("the last is empty", ["a": "new", "b": "1"], { try Files.write($0[2], []) }),
        ("the last is missing", ["a": "new", "b": "1"], { try FileSystem.removeFile($0[2]) }),
        ("the last two are missing", ["a": "new"], { for path in $0[1...] { try FileSystem.removeFile(path) } }),
        ("the one between is missing", ["a": "new"], { try FileSystem.removeFile($0[1]) }),
        ("the first is missing", ["a": "old"], { try FileSystem.removeFile($0[0]) }),
        ("all are zero", ["a": "old"], { for path in $0 { try zero(path) } }),
        ("all are missing", ["a": "old"], { for path in $0 { try FileSystem.removeFile(path) } }),
        ("the directory is missing", ["a": "old"], { try FileSystem.removeTree(FileSystem.parent($0[0])) }),
    ]

    private static func zero(_ path: String) throws {
        try Files.write(path, [UInt8](repeating: 0, count: try Files.read(path).count))
    }

    @Test(arguments: harms.indices) func losingASyncedPartOfTheJournalIsReportedAsDamage(_ index: Int) throws {
        let (name, values, harm) = Self.harms[index]
        let larder = try threeSegments()
        defer { withExtendedLifetime(larder) {} }
        let copy = try larder.crashCopy { $0.onDamage = .salvage }
        #expect(copy.journalSegments.count == 3)
        try harm(copy.journalSegments)
        #expect(try copy.database().contents() == values, "\(name)")
        let reports = copy.events.all.filter { $0.message.contains("the journal is damaged") }
        #expect(reports.map(\.level) == [.error], "\(name): \(copy.events.all)")
        #expect(try copy.engine().statistics.journalDamages.read() == 1, "\(name)")
        // The loss is reported only once, and new writes are kept.
        try copy.database().put("d", "1")
        let again = try copy.crashCopy { $0.onDamage = .fail }
        #expect(try again.database().contents() == values.merging(["d": "1"]) { $1 }, "\(name)")
    }

    /// The library refuses to open the larder until the option to salvage is set.
    @Test(arguments: harms.indices) func withoutSalvageALostPartOfTheJournalIsAlwaysAnError(_ index: Int) throws {
        let (name, values, harm) = Self.harms[index]
        let larder = try threeSegments()
        defer { withExtendedLifetime(larder) {} }
        let copy = try larder.crashCopy { $0.onDamage = .fail }
        try harm(copy.journalSegments)
        for _ in 0..<3 { #expect(errorCode { _ = try copy.engine() } == .damaged, "\(name)") }
        copy.close { $0.onDamage = .salvage }
        #expect(try copy.database().contents() == values, "\(name)")
    }

    @Test("the loss of a journal is reported although its durability promises no syncs")
    func losingAJournalOfTheSystem() throws {
        let larder = try TestLarder {
            $0.backgroundMaintenance = true
            $0.maintenanceMilliseconds = 1_000_000
        }
        for key in ["a", "b"] {
            try larder.database().put(key, "1")
            // The thread may do one of the rounds.
            for _ in 0..<2 {
                larder.time.advance(milliseconds: 1000)
                try larder.maintain()
            }
            let syncs = try larder.engine().statistics.syncs.read()
            try larder.database().put(key, "2")
            larder.time.advance(milliseconds: 1000)
            try larder.maintain()
            #expect(try larder.engine().statistics.syncs.read() == syncs, "once is enough")
            let copy = try larder.crashCopy { $0.onDamage = .salvage }
            try FileSystem.removeTree(copy.path + "/JOURNAL")
            #expect(try copy.database().contents() == (key == "a" ? [:] : ["a": "2"]))
            #expect(try copy.engine().statistics.journalDamages.read() == 1)
            try larder.engine().save()
        }
    }

    @Test func losingAJournalIsReportedIfItWasNoticed() throws {
        let larder = try TestLarder()
        try larder.database().put("a", "1")
        try FileSystem.removeTree(larder.path + "/JOURNAL")
        try larder.maintain()
        #expect(larder.events.contains("were removed or replaced"))
        let copy = try larder.crashCopy { $0.onDamage = .salvage }
        #expect(try copy.database().contents() == [:])
        #expect(try copy.engine().statistics.journalDamages.read() == 1)
    }

    /// A power failure may lose unsynced data, so such a loss is not damage.
    @Test(arguments: [harms.startIndex, 1, 2, 3]) func aLostUnsyncedTailIsNotDamage(_ index: Int) throws {
        let larder = try threeSegments()
        try larder.database().put("d", "1", durability: .os)
        let copy = try larder.crashCopy { $0.onDamage = .fail }
        try Self.harms[index].harm(Array(copy.journalSegments.dropFirst()))
        #expect(try copy.database().contents() == ["a": "new", "b": "1", "c": "1"])
        #expect(try copy.engine().statistics.journalDamages.read() == 0)
    }

    /// Segments that Larder removed are not reported as missing, even if the process is killed right after the removal.
    @Test func removedSegmentsAreNotReportedMissing() throws {
        let larder = try threeSegments()
        var values = ["a": "new", "b": "1", "c": "1"]
        for round in 0..<4 {
            try larder.engine().save()
            if round > 1 {
                try larder.database().put("e\(round)", "1")
                values["e\(round)"] = "1"
            }
            let copy = try larder.crashCopy { $0.onDamage = .fail }
            #expect(try copy.database().contents() == values)
            #expect(try copy.engine().statistics.journalDamages.read() == 0)
            try copy.database().put("f", "1")
            copy.close()
            #expect(try copy.database().contents() == values.merging(["f": "1"]) { $1 })
            #expect(try copy.engine().statistics.journalDamages.read() == 0)
        }
        larder.close()
        #expect(try larder.database().contents() == values)
        #expect(try larder.engine().statistics.journalDamages.read() == 0)
    }

    /// An older version does not know SYNCED. It leaves the file in place and removes segments that the file mentions.
    @Test func anOutdatedSyncedFileOfAnOlderVersionIsIgnored() throws {
        let larder = try threeSegments()
        let mark = try Files.read(larder.path + "/SYNCED")
        let copy = try larder.crashCopy { $0.onDamage = .fail }
        _ = try copy.database().contents()
        copy.close()
        try Files.write(copy.path + "/SYNCED", mark)
        #expect(try copy.database().contents() == ["a": "new", "b": "1", "c": "1"])
    }

    /// If SYNCED cannot be read, this is reported, and the whole journal is used.
    @Test(arguments: ["", "nonsense"]) func aDamagedSyncedFileIsReported(_ text: String) throws {
        let larder = try threeSegments()
        defer { withExtendedLifetime(larder) {} }
        let copy = try larder.crashCopy { $0.onDamage = .fail }
        try Files.write(copy.path + "/SYNCED", Array(text.utf8))
        #expect(try copy.database().contents() == ["a": "new", "b": "1", "c": "1"])
        #expect(copy.events.all.contains { $0.level == .warning && $0.message.contains("SYNCED is damaged") })
        let again = try copy.crashCopy { $0.onDamage = .fail }
        _ = try again.database()
        #expect(!again.events.contains("SYNCED"))
    }

    /// If the newest mark in SYNCED was only partly written, the previous mark is used. It covers less of the journal,
    /// and none of the segments that were removed since.
    @Test func aTornWriteOfTheSyncedFileIsNotReportedAsDamage() throws {
        let larder = try threeSegments()
        try larder.engine().save()
        try larder.database().put("d", "1")
        let whole = try Files.read(larder.path + "/SYNCED")
        for offset in [0, JournalMarkFile.secondOffset] {
            let copy = try larder.crashCopy { $0.onDamage = .fail }
            var torn = whole
            torn[offset + 40] ^= 0xFF
            try Files.write(copy.path + "/SYNCED", torn)
            #expect(try copy.database().contents()["d"] == "1")
        }
    }

    @Test func aSyncedFileOfANewerVersionIsRefused() throws {
        let larder = try threeSegments()
        defer { withExtendedLifetime(larder) {} }
        let copy = try larder.crashCopy()
        var bytes = try Files.read(copy.path + "/SYNCED")
        bytes.replaceSubrange(8..<12, with: [0, 0, 0, 2])
        let sum = CRC32C.checksum(Array(bytes[..<12]))
        bytes.replaceSubrange(12..<16, with: (0..<4).map { UInt8(truncatingIfNeeded: sum >> (24 - 8 * $0)) })
        try Files.write(copy.path + "/SYNCED", bytes)
        #expect(errorCode { _ = try copy.engine() } == .newerFormat)
    }
}
