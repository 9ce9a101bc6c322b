import LarderPlatform
import LarderTestSupport
import Testing

@testable import LarderEngine

/// Tests of what counts as damage, and of how it is handled.
@Suite struct DamageTests {
    /// Ways to damage a closed database, each with its name.
    private static let damages: [(String, @Sendable (TestLarder) throws -> Void)] = [
        ("CURRENT names nothing", { try Files.misleadCurrent($0.epochDirectory()) }),
        (
            "CURRENT and a table missing",
            {
                try Files.remove($0.epochDirectory() + "/CURRENT")
                try Files.remove($0.epochDirectory() + "/" + Files.largestTable($0.epochDirectory()))
            }
        ),
        ("MANIFEST missing", { try Files.remove($0.epochDirectory() + "/" + $0.manifest()) }),
        ("MANIFEST cut short", { try Files.truncate($0.epochDirectory() + "/" + $0.manifest(), to: 10) }),
        ("epoch missing", { try Files.remove($0.epochDirectory()) }),
        (
            "epoch empty",
            {
                let epoch = try $0.epochDirectory()
                try Files.remove(epoch)
                try FileSystem.makeDirectory(epoch)
            }
        ),
        ("POINTER missing", { try Files.remove($0.directory(of: "books") + "/POINTER") }),
        ("POINTER empty", { try Files.truncate($0.directory(of: "books") + "/POINTER", to: 0) }),
        ("POINTER cut short", { try Files.truncate($0.directory(of: "books") + "/POINTER", to: 40) }),
        ("POINTER flipped", { try Files.flip($0.directory(of: "books") + "/POINTER", at: 25) }),
        (
            "POINTER names nothing",
            {
                let pointer = PointerFile(epoch: 77, rules: FreshnessRules(policy: .high))
                try Files.write($0.directory(of: "books") + "/POINTER", Array(pointer.text.utf8))
            }
        ),
    ]

    private func damaged(
        _ damage: (TestLarder) throws -> Void, _ configure: (inout EngineOptions) -> Void = { _ in }
    ) throws -> TestLarder {
        let larder = try TestLarder(configure)
        for name in ["books", "other"] { try larder.database(name, policy: .high).put("a", "1") }
        larder.close()
        try damage(larder)
        return larder
    }

    @Test func withoutSalvageDamageIsAnErrorAndFilesStayUnchanged() throws {
        for (name, damage) in Self.damages {
            let larder = try damaged(damage)
            let before = try larder.tree()
            let database = try larder.engine().database("books")
            for _ in 0..<2 {
                #expect(errorCode { _ = try database.value("a") } == .damaged, "\(name)")
                #expect(errorCode { try database.put("a", "2") } == .damaged, "\(name)")
                #expect(errorCode { _ = try larder.database() } == .damaged, "\(name)")
                try larder.maintain()
            }
            #expect(try larder.database("other").value("a") == "1")
            larder.close()
            #expect(try larder.tree() == before, "\(name)")
        }
    }

    @Test("a damaged database is quarantined on request") func setAsideOnRequest() throws {
        for (name, damage) in Self.damages {
            let larder = try damaged(damage)
            let engine = try larder.engine()
            #expect(errorCode { try engine.setAsideDamaged("other") } == .invalidArgument, "\(name)")
            try engine.setAsideDamaged("books")
            let database = try larder.database()
            #expect(try database.contents() == [:], "\(name)")
            try database.put("b", "2")
            #expect(larder.setAside.count == 1, "\(name)")
            // Where POINTER can still be read, the policy is kept.
            #expect(
                database.policy == (name.contains("POINTER") && !name.contains("nothing") ? .lowest : .high), "\(name)")
            #expect(try larder.database("other").value("a") == "1")
            larder.close()
            #expect(try larder.database().contents() == ["b": "2"], "\(name)")
        }
    }

    @Test func aDamagedDatabaseIsSalvagedAndCanBeUsed() throws {
        for (name, damage) in Self.damages {
            let larder = try damaged(damage) { $0.onDamage = .salvage }
            larder.time.advance(milliseconds: 1000)
            let database = try larder.engine().database("books")
            // True if no file of the epoch remains, or if the policy is lost and the entries count as expired.
            let isLost = name.contains("epoch") || name.contains("POINTER")
            #expect(try database.value("a") == (isLost ? nil : "1"), "\(name)")
            try database.put("b", "2")
            let expected = isLost ? ["b": "2"] : ["a": "1", "b": "2"]
            #expect(try database.contents() == expected, "\(name)")
            #expect(larder.setAside.count == 1, "\(name)")
            #expect(larder.events.contains("and salvaged: "), "\(name)")
            #expect(try larder.engine().statistics.salvages.read() == 1)
            #expect(database.lastSalvage?.place == larder.path + "/DAMAGED/" + larder.setAside[0], "\(name)")
            larder.close()
            #expect(try larder.database().contents() == expected, "\(name)")
            #expect(larder.setAside.count == 1, "\(name)")
            #expect(try larder.database("other").value("a") == "1")
        }
    }

    @Test func aDamagedDatabaseCanBePurgedAndDeleted() throws {
        for (name, damage) in Self.damages {
            let larder = try damaged(damage)
            let database = try larder.engine().database("books")
            _ = try database.purge()
            #expect(try database.contents() == [:], "\(name)")
            #expect(
                database.policy == (name.contains("POINTER") && !name.contains("nothing") ? .lowest : .high), "\(name)")
            try database.put("b", "2")
            larder.close()
            #expect(try larder.database().contents() == ["b": "2"], "\(name)")
            larder.close()
            try? damage(larder)
            _ = try larder.engine().deleteDatabase("books")
            #expect(try larder.database().contents() == [:], "\(name)")
        }
    }

    /// Returns a larder with a flipped byte in a table. The damage is found when the block is read, not when the
    /// database is opened.
    private func withFlippedTable(_ action: EngineOptions.DamageAction) throws -> TestLarder {
        let larder = try TestLarder {
            $0.onDamage = action
            $0.compression = false
        }
        let database = try larder.database(policy: .middle)
        for number in 0..<2000 { try database.put("k\(number)", String(repeating: "x", count: 100)) }
        try database.flushedStore()?.compactAll()
        larder.close()
        let epoch = try larder.epochDirectory()
        let tables = try Files.names(in: epoch, endingWith: ".ldb")
        #expect(!tables.isEmpty)
        for table in tables {
            let path = epoch + "/" + table
            for offset in stride(from: 1000, to: try Files.read(path).count / 2, by: 4000) {
                try Files.flip(path, at: offset)
            }
        }
        return larder
    }

    @Test func damageFoundByAReadIsSalvaged() throws {
        let larder = try withFlippedTable(.salvage)
        let database = try larder.database()
        let other = try larder.database("other")
        let pending = try other.putLater("b", "1")
        let snapshot = try database.snapshot()
        #expect(errorCode { _ = try database.contents() } == .damaged)
        try larder.maintain()
        #expect(larder.setAside.count == 1)
        let left = try database.contents()
        #expect(left.count < 2000)
        #expect(left.values.allSatisfy { $0 == String(repeating: "x", count: 100) })
        #expect(database.policy == .middle)
        #expect(errorCode { _ = try snapshot.value("k1") } == .deleted)
        try larder.engine().pipeline.wait(for: pending)
        try database.put("new", "1")
        try larder.maintain()
        #expect(larder.setAside.count == 1)
        #expect(try larder.engine().statistics.commitFailures.read() == 0)
        larder.close()
        #expect(try larder.database().contents() == left.merging(["new": "1"]) { $1 })
    }

    @Test func damageFoundByAReadIsQuarantinedOnRequest() throws {
        let larder = try withFlippedTable(.fail)
        let database = try larder.database()
        #expect(errorCode { _ = try database.contents() } == .damaged)
        for _ in 0..<3 {
            #expect(errorCode { _ = try database.contents() } == .damaged)
            try larder.maintain()
        }
        #expect(larder.setAside.isEmpty)
        // The damage is reported once, not with every read.
        #expect(larder.events.all.count { $0.message.contains("is damaged") } == 1)
        try larder.engine().setAsideDamaged("books")
        #expect(try database.contents() == [:])
        #expect(larder.setAside.count == 1)
    }

    /// During a salvage, running reads and writes get an error or see the empty database. Other databases are not
    /// affected.
    @Test("a salvage under load does not affect other databases") func salvageUnderLoad() throws {
        let larder = try withFlippedTable(.salvage)
        let database = try larder.database()
        let other = try larder.database("other")
        let engine = try larder.engine()
        let problems = Recorder<String>()
        onThreads(4) { thread in
            for step in 0..<200 {
                do throws(LarderError) {
                    switch thread {
                    case 0: _ = try database.value("k\(step * 10)")
                    case 1: try database.put("new\(step)", "v")
                    case 2: try other.put("k", "v\(step)")
                    default: engine.maintain()
                    }
                } catch {
                    if thread == 2 || error.code != .damaged { problems.add("\(thread): \(error)") }
                }
            }
        }
        try larder.maintain()
        #expect(problems.all == [])
        #expect(larder.setAside.count == 1)
        for step in 0..<200 { #expect(try database.value("new\(step)") == "v") }
        try database.put("last", "1")
        #expect(try database.value("last") == "1")
    }

    /// A file that the system refuses to read is not damaged.
    @Test func aFileThatCannotBeReadIsNotTreatedAsDamage() throws {
        let larder = try TestLarder { $0.onDamage = .salvage }
        try larder.database().put("a", "1")
        larder.close()
        let pointer = larder.directory(of: "books") + "/POINTER"
        try FileSystem.rename(pointer, to: pointer + ".kept")
        try FileSystem.makeDirectory(pointer)
        let database = try larder.engine().database("books")
        for _ in 0..<2 {
            #expect(errorCode { _ = try database.value("a") } == .io)
            #expect(errorCode { try database.put("a", "2") } == .io)
        }
        #expect(larder.setAside.isEmpty)
        try Files.remove(pointer)
        try FileSystem.rename(pointer + ".kept", to: pointer)
        #expect(try database.value("a") == "1")
    }

    @Test func aNewerFormatIsRefusedForThatDatabaseOnly() throws {
        for isEntryFormat in [false, true] {
            let larder = try damaged({ _ in }, { $0.onDamage = .salvage })
            if isEntryFormat {
                let store = try #require(try larder.database().durableState.store)
                try store.rawPut(EpochMetadata.formatKey, [2])
                larder.close()
            } else {
                try Files.write(
                    larder.directory(of: "books") + "/POINTER", Array("larder-database 99\nwhatever\n".utf8))
            }
            let before = try larder.tree()
            let database = try larder.engine().database("books")
            for _ in 0..<2 {
                #expect(errorCode { _ = try database.value("a") } == .newerFormat)
                #expect(errorCode { try database.put("a", "2") } == .newerFormat)
                #expect(errorCode { _ = try database.purge() } == .newerFormat)
                #expect(errorCode { try larder.engine().setAsideDamaged("books") } == .newerFormat)
                try larder.maintain()
            }
            #expect(larder.setAside.isEmpty)
            #expect(try larder.database("other").value("a") == "1")
            larder.close()
            if !isEntryFormat { #expect(try larder.tree() == before) }
            _ = try larder.engine().deleteDatabase("books")
            #expect(try larder.database().contents() == [:])
        }
    }

    @Test func onlyTheEntryInANewerFormatIsRefused() throws {
        let larder = try damaged { _ in }
        let database = try larder.database()
        try database.put("b", "2")
        try #require(database.durableState.store).rawPut(Key("a").stored, [99] + [UInt8](repeating: 0, count: 20))
        #expect(errorCode { _ = try database.value("a") } == .newerFormat)
        #expect(errorCode { try database.remove("a") } == .newerFormat)
        #expect(try database.value("b") == "2")
        try database.put("a", "3")
        #expect(try database.contents() == ["a": "3", "b": "2"])
    }

    @Test func quarantinedFilesStayWithinTheirLimit() throws {
        let larder = try TestLarder {
            $0.onDamage = .salvage
            $0.damagedBytesMax = 100_000
        }
        for round in 0..<6 {
            try larder.database(policy: .never).put("a\(round)", String(repeating: "x", count: 40_000))
            larder.close()
            try Files.misleadCurrent(try larder.epochDirectory())
            // The oldest quarantined files are removed, even if the clock is set back.
            larder.time.stepWall(milliseconds: round.isMultiple(of: 2) ? -1_000_000 : 1_000_000)
            let before = Set(larder.setAside)
            _ = try larder.database().contents()
            #expect(!before.isSuperset(of: larder.setAside), "the newest directory is kept")
            #expect(larder.setAside.count <= 3)
        }
        #expect(larder.events.contains("exceed their limit"))
        #expect(larder.setAside.allSatisfy { $0.hasSuffix("-books") })
    }

    /// A failed salvage is retried, and the database can be used in the meantime.
    @Test func aSalvageThatFailsIsTriedAgain() throws {
        let larder = try withFlippedTable(.salvage)
        let database = try larder.database()
        try Files.write(larder.path + "/DAMAGED", [])
        #expect(errorCode { _ = try database.contents() } == .damaged)
        try larder.maintain()
        #expect(larder.events.contains("could not salvage database 'books'"))
        try database.put("new", "1")
        try larder.engine().save()
        try Files.remove(larder.path + "/DAMAGED")
        try larder.maintain()
        #expect(try database.contents()["new"] == "1")
        #expect(larder.setAside.count == 1)
    }

    @Test func aFailedCreationOfADatabaseCanBeRepeated() throws {
        let larder = try TestLarder()
        let engine = try larder.engine()
        try Files.write(larder.path + "/books", [])
        let database = try engine.database("books")
        #expect(errorCode { try database.put("a", "1") } == .io)
        #expect(try FileSystem.list(larder.path) == ["JOURNAL", "LOCK", "SEQUENCES", "SYNCED", "TIME", "books"])
        try Files.remove(larder.path + "/books")
        try database.put("a", "1")
        #expect(try database.value("a") == "1")
    }
}

extension TestLarder {
    /// The name of the newest manifest.
    func manifest() throws -> String {
        try FileSystem.list(epochDirectory()).last { $0.hasPrefix("MANIFEST-") } ?? ""
    }

    /// Returns the contents of all files of the database, except files that LevelDB writes whenever it is opened.
    func tree() throws -> [String: [UInt8]] {
        var result: [String: [UInt8]] = [:]
        func add(_ path: String) throws {
            for name in try FileSystem.list(path) where !["LOCK", "LOG", "LOG.old"].contains(name) {
                let full = path + "/" + name
                if FileSystem.isDirectory(full) { try add(full) } else { result[full] = try Files.read(full) }
            }
        }
        try add(directory(of: "books"))
        return result
    }
}
