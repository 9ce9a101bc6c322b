import LarderLevelDB
import LarderPlatform
import LarderTestSupport
import Testing

@testable import LarderEngine

/// Tests of a power failure while LevelDB changes to a new manifest. The file system does not order renames and
/// removals. After the failure, the removal of the previous manifest and its log is on disk, but the rename of CURRENT
/// is not.
@Suite struct CurrentFileTests {
    private let larder: TestLarder
    /// The files of the database's LevelDB before it was last opened.
    private let previous: [String: [UInt8]]
    private let previousManifest: String

    init() throws {
        larder = try TestLarder()
        let database = try larder.database(policy: .never)
        for number in 0..<100 { try database.put("k\(number)", "old") }
        try larder.engine().save()
        larder.close()
        let again = try larder.database()
        for number in 0..<50 { try again.put("k\(number)", "new\(number)") }
        for number in 50..<60 { try again.remove("k\(number)") }
        larder.close()
        let epoch = try larder.epochDirectory()
        previous = Dictionary(
            uniqueKeysWithValues: try FileSystem.list(epoch).map { ($0, try Files.read(epoch + "/" + $0)) })
        previousManifest = try Files.manifest(epoch)
        _ = try larder.database()
        larder.close()
        #expect(try Files.manifest(epoch) != previousManifest)
    }

    private func check(_ crashCopy: TestLarder, _ what: String, isRenewed: Bool = true) throws {
        let epoch = try crashCopy.epochDirectory()
        let newest = try Files.manifest(epoch)
        let database = try crashCopy.database()
        let found = try database.contents()
        #expect(found.count == 90, "\(what): \(crashCopy.events.all)")
        for number in 0..<50 { #expect(found["k\(number)"] == "new\(number)", "\(what)") }
        for number in 60..<100 { #expect(found["k\(number)"] == "old", "\(what)") }
        #expect(crashCopy.events.contains("it now names \(newest); no data was lost") == isRenewed, "\(what)")
        #expect(crashCopy.setAside == [] && database.lastSalvage == nil, "\(what)")
        try database.put("more", "1")
        crashCopy.close()
        #expect(try crashCopy.database().contents().count == 91, "\(what)")
    }

    private func restore(_ names: [String], in epoch: String) throws {
        for name in names { try Files.write(epoch + "/" + name, previous[name] ?? []) }
    }

    @Test func aMissingOrInvalidCurrentFileIsRepaired() throws {
        let newest = Array("\(try Files.manifest(larder.epochDirectory()))".utf8)
        for bytes in [nil, [], Array("MANIF".utf8), newest, Array("nonsense\n".utf8)] {
            let crashCopy = try larder.crashCopy()
            let current = try crashCopy.epochDirectory() + "/CURRENT"
            if let bytes { try Files.write(current, bytes) } else { try Files.remove(current) }
            try check(crashCopy, "\(bytes ?? [])")
        }
    }

    @Test func aCurrentFileThatNamesARemovedManifestIsRepaired() throws {
        let crashCopy = try larder.crashCopy()
        try restore(["CURRENT"], in: crashCopy.epochDirectory())
        try check(crashCopy, "the previous manifest is gone")
    }

    /// After the power failure, the previous manifest exists again, but its log does not.
    @Test func aCurrentFileThatNamesAManifestWithoutItsLogIsRepaired() throws {
        let crashCopy = try larder.crashCopy()
        try restore(["CURRENT", previousManifest], in: crashCopy.epochDirectory())
        try check(crashCopy, "the previous log is gone")
    }

    /// After a kill before CURRENT was renamed, LevelDB continues with the previous manifest, which has the same
    /// content.
    @Test func aCompletePreviousManifestIsKept() throws {
        let crashCopy = try larder.crashCopy()
        let logs = previous.keys.filter { $0.hasSuffix(".log") }
        try restore(["CURRENT", previousManifest, "SYNCED"] + logs, in: crashCopy.epochDirectory())
        try check(crashCopy, "the previous manifest has everything", isRenewed: false)
    }

    /// If the files do not show which manifest is valid, the database is reported as damaged.
    @Test func filesThatNameNoUniqueManifestAreReportedAsDamage() throws {
        let newest = try Files.manifest(larder.epochDirectory())
        let damages: [(String, (String) throws -> Void)] = [
            ("the newest one is cut short", { try Files.truncate($0 + "/" + newest, to: 40) }),
            ("the newest one has a flipped bit", { try Files.flipBit($0 + "/" + newest, at: 20) }),
            ("a table is gone", { try Files.remove($0 + "/" + Files.largestTable($0)) }),
            ("the log is gone", { try Files.remove($0 + "/" + (try Files.names(in: $0, endingWith: ".log")[0])) }),
            (
                "only an older one is there",
                {
                    try Files.write($0 + "/" + self.previousManifest, self.previous[self.previousManifest] ?? [])
                    try Files.remove($0 + "/" + newest)
                }
            ),
            (
                "CURRENT names a newer one that is gone",
                { try Files.misleadCurrent($0) }
            ),
            (
                "only the one of a creation is there",
                {
                    for name in try FileSystem.list($0) where !name.hasSuffix(".ldb") {
                        try Files.remove($0 + "/" + name)
                    }
                    let other = try TemporaryDirectory(inMemory: true)
                    var creating = LarderLevelDB.Options()
                    creating.createIfMissing = true
                    try LarderLevelDB.Database(path: other.path + "/db", options: creating).close()
                    let made = try Files.read(other.path + "/db/" + Files.manifest(other.path + "/db"))
                    try Files.write($0 + "/MANIFEST-000001", Array(made.prefix(50)))
                }
            ),
        ]
        for (what, damage) in damages {
            let crashCopy = try larder.crashCopy()
            let epoch = try crashCopy.epochDirectory()
            if !what.contains("CURRENT") { try Files.remove(epoch + "/CURRENT") }
            try damage(epoch)
            let before = try crashCopy.tree()
            #expect(errorCode { _ = try crashCopy.database() } == .damaged, "\(what)")
            crashCopy.close()
            #expect(try crashCopy.tree() == before, "\(what)")
        }
    }

    /// If the operating system makes a repair fail, the repair is tried again.
    @Test func aFailedRepairIsRetried() throws {
        let crashCopy = try larder.crashCopy()
        let epoch = try crashCopy.epochDirectory()
        try Files.remove(epoch + "/CURRENT")
        try FileSystem.makeDirectory(epoch + "/CURRENT.new")
        #expect(errorCode { _ = try crashCopy.database() } == .io)
        try Files.remove(epoch + "/CURRENT.new")
        try check(crashCopy, "refused once")
    }
}
