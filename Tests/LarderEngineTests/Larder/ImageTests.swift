import LarderLevelDB
import LarderLevelDBFormat
import LarderPlatform
import LarderTestSupport
import Testing

@testable import LarderEngine

/// Tests of images: copies of an open larder at one instant.
@Suite struct ImageTests {
    /// Opens a copy of an image as a larder of its own.
    private func withContents<Result>(
        of larder: Engine, adding names: [String] = [], _ time: ManualTimeSource, _ body: (Engine) throws -> Result
    ) throws -> Result {
        let place = FileSystem.parent(larder.directory) + "/copy"
        try larder.withImage(adding: names) { try Files.copy($0, to: place) }
        defer { try? Files.remove(place) }
        var options = larder.options
        options.onDamage = .fail
        options.backgroundMaintenance = false
        let engine = try Engine.open(place, options: options, time: time)
        defer { engine.shutdown() }
        return try body(engine)
    }

    @Test func anImageHasDatabasesInEveryState() throws {
        let larder = try TestLarder()
        try larder.database("unopened").put("a", "1")
        try larder.database("gone").put("a", "1")
        larder.close()
        let engine = try larder.engine()
        try larder.database("written").put("a", "in the journal")
        try larder.database("purged").put("a", "1")
        _ = try engine.database("purged").purge()
        try larder.database("again").put("a", "1")
        _ = try engine.database("again").purge()
        try engine.database("again").put("b", "2")
        _ = try engine.deleteDatabase("gone")
        _ = try engine.database("absent")
        try larder.database("policy", policy: .never).put("a", "1")
        try Files.write(larder.path + "/USER", Array("its user's".utf8))
        try withContents(of: engine, adding: ["USER", "NOTHING"], larder.time) { (copy: Engine) throws in
            #expect(copy.databases.map(\.name) == ["again", "policy", "purged", "unopened", "written"])
            #expect(try copy.openDatabase("unopened").contents() == ["a": "1"])
            #expect(try copy.openDatabase("written").contents() == ["a": "in the journal"])
            #expect(try copy.openDatabase("purged").contents() == [:])
            #expect(try copy.openDatabase("again").contents() == ["b": "2"])
            #expect(try copy.openDatabase("policy").rules.policy == .never)
            #expect(try Files.read(copy.directory + "/USER") == Array("its user's".utf8))
        }
        #expect(try FileSystem.list(larder.path).allSatisfy { !$0.hasPrefix(".image-") })
    }

    /// Entries that a tag purge removed do not come back in an image.
    @Test func anImageHasThePurgesOfTags() throws {
        let larder = try TestLarder()
        let database = try larder.database()
        try database.put("a", "1")
        _ = try database.commit([Key("tagged")], loading: .none) { update in
            let tags = try? Tags(checking: [Array("t".utf8)])
            update.put(0, payload: UnsafeRawBufferPointer(start: nil, count: 0), tags: tags)
        }
        try database.purge(.tags([Array("t".utf8)], soft: false))
        try withContents(of: try larder.engine(), larder.time) { (copy: Engine) throws in
            #expect(try copy.openDatabase("books").contents() == ["a": "1"])
        }
    }

    /// Each image has only complete commit units: all that were acknowledged before it, and none that came after.
    /// Meanwhile, other threads commit units of two databases, purge, delete and create databases, compact tables and
    /// rewrite the journal.
    @Test func anImageShowsAllDatabasesAtOneInstant() throws {
        let larder = try TestLarder {
            $0.backgroundMaintenance = true
            $0.memoryBytes = 200_000
            $0.checkpointBytes = 100_000
            $0.journalSegmentBytes = 50_000
        }
        let engine = try larder.engine()
        let (left, right) = (try larder.database("left"), try larder.database("right"))
        let time = larder.time
        let counts = Guarded([Int](repeating: 0, count: 2))
        let issued = Guarded([Int](repeating: 0, count: 2))
        let isOver = Guarded(false)
        let problems = Recorder<String>()
        onThreads(4) { thread in
            do {
                switch thread {
                case 0, 1:
                    var step = 0
                    while !isOver.value {
                        step += 1
                        issued.with { $0[thread] = step }
                        let value = "\(step) " + String(repeating: "x", count: step % 300)
                        _ = try engine.change("pair\(thread)", in: left, and: right) { first, second in
                            Array(value.utf8).withUnsafeBytes {
                                first.put(0, payload: $0)
                                second.put(0, payload: $0)
                            }
                        }
                        try left.put("k\(thread).\(step % 500)", value)
                        counts.with { $0[thread] = step }
                    }
                case 2:
                    var step = 0
                    while !isOver.value {
                        step += 1
                        let churned = try engine.openDatabase("churned\(step % 3)")
                        try churned.put("a", "\(step)")
                        if step % 2 == 0 { _ = try churned.purge() }
                        if step % 5 == 0 { _ = try engine.deleteDatabase(churned.name) }
                        if step % 7 == 0 { try left.setPolicy(step % 2 == 0 ? .lowest : .never) }
                        if step % 11 == 0 { try engine.save() }
                    }
                default:
                    defer { isOver.with { $0 = true } }
                    for _ in 0..<12 {
                        let before = counts.value
                        try withContents(of: engine, time) { (copy: Engine) throws in
                            let after = issued.value
                            let contents = try (
                                copy.openDatabase("left").contents(), copy.openDatabase("right").contents()
                            )
                            for thread in 0..<2 {
                                let key = "pair\(thread)"
                                let steps = [contents.0[key], contents.1[key]].map {
                                    Int($0?.split(separator: " ").first ?? "0") ?? -1
                                }
                                if steps[0] != steps[1] || steps[0] < before[thread] || steps[0] > after[thread] {
                                    problems.add("\(steps) of \(before[thread])...\(after[thread])")
                                }
                            }
                            for database in copy.databases { _ = try database.contents() }
                        }
                    }
                }
            } catch {
                isOver.with { $0 = true }
                problems.add("\(error)")
            }
        }
        #expect(problems.all == [])
    }

    /// After the files were copied, LevelDB writes its log to a table and compacts tables, which removes old files.
    @Test func anImageKeepsFilesThatTheOriginalRemoves() throws {
        let larder = try TestLarder(inMemory: false)
        let database = try larder.database()
        try database.put("a", "1")
        let store = try #require(try database.flushedStore())
        let scratch = try TemporaryDirectory()
        let image = EpochImage(source: store.path, place: scratch.path + "/image")
        try FileSystem.makeDirectory(image.place)
        func counted() throws -> Set<String> { Set(try FileSystem.list(image.place).filter { $0.contains(".") }) }

        let first = try #require(try image.round())
        let log = try #require(first.first { FileNames.logNumber($0) != nil })
        try store.compactAll()
        #expect(!FileSystem.exists(store.path + "/" + log), "LevelDB has its log in a table")
        try image.removeOthers(than: first)
        #expect(try counted().contains(log))
        try EpochInspection.inspect(image.place)
        #expect(try Self.keys(image.place, scratch.path + "/first") == (try store.rawKeys()))

        // After a second round of copying, files from the first round that are no longer needed are removed.
        let second = try #require(try image.round())
        try image.removeOthers(than: second)
        #expect(try !counted().contains(log))
        #expect(try Self.keys(image.place, scratch.path + "/second") == (try store.rawKeys()))
    }

    /// Copies the image of a LevelDB database, opens the copy and returns its keys.
    private static func keys(_ image: String, _ copy: String) throws -> [[UInt8]] {
        try Files.copy(image, to: copy)
        let database = try LarderLevelDB.Database(path: copy)
        defer { try? database.close() }
        let cursor = try database.cursor()
        defer { cursor.close() }
        var keys: [[UInt8]] = []
        try cursor.seekToFirst()
        while cursor.isValid {
            keys.append(cursor.key)
            try cursor.next()
        }
        return keys
    }

    @Test func makingAnImageOfADamagedDatabaseFails() throws {
        let larder = try TestLarder { $0.onDamage = .fail }
        try larder.database().put("a", "1")
        larder.close()
        try Files.write(larder.path + "/books/POINTER", Array("nonsense".utf8))
        let engine = try larder.engine()
        let error = #expect(throws: LarderError.self) { try engine.withImage(adding: []) { _ in } }
        #expect(error?.code == .damaged && error?.database == "books")
        #expect(error?.message.contains("salvage the database or set it aside") == true)
    }

    /// A check reports them instead.
    @Test func makingAnImageFailsIfFilesAreMissing() throws {
        let larder = try TestLarder(inMemory: false)
        let (database, other) = (try larder.database("books"), try larder.database("other"))
        for database in [database, other] { try database.put("a", "1") }
        let engine = try larder.engine()
        let store = try #require(try database.flushedStore())
        try store.compactAll()
        func failure() -> LarderError? {
            #expect(throws: LarderError.self) { try engine.withImage(adding: []) { _ in } }
        }
        let table = try #require(try FileSystem.list(store.path).first { FileNames.tableNumber($0) != nil })
        try FileSystem.rename(store.path + "/" + table, to: larder.path + "/table")
        let error = failure()
        #expect(error?.code == .damaged && error?.message.contains("has no table") == true, "\(error as Any)")
        let report: (LarderError) -> Void = { Issue.record("\($0)") }
        try engine.withImage(adding: [], leavingOut: report) { _ in }
        try FileSystem.rename(larder.path + "/table", to: store.path + "/" + table)
        #expect(try engine.withImage(adding: []) { try FileSystem.list($0).contains("books") })

        let scratch = try TemporaryDirectory()
        try FileSystem.rename(larder.path + "/other", to: scratch.path + "/other")
        #expect(failure()?.message.contains("removed or replaced") == true)
        try FileSystem.rename(scratch.path + "/other", to: larder.path + "/other")
        try FileSystem.rename(larder.path + "/JOURNAL", to: scratch.path + "/JOURNAL")
        #expect(failure()?.message.contains("removed or replaced") == true)
        try FileSystem.rename(scratch.path + "/JOURNAL", to: larder.path + "/JOURNAL")
    }

    /// An incomplete image that a killed process left is removed at the next start.
    @Test func anUnfinishedImageIsRemoved() throws {
        let larder = try TestLarder()
        try larder.database().put("a", "1")
        larder.close()
        try Files.copy(larder.path + "/books", to: larder.path + "/.image-1700000000000")
        #expect(try larder.database().contents() == ["a": "1"])
        #expect(try FileSystem.list(larder.path).allSatisfy { !$0.hasPrefix(".image-") })
    }
}
