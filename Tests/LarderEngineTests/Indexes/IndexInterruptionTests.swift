import LarderLevelDB
import LarderPlatform
import LarderTestSupport
import Testing

@testable import LarderEngine

/// Work on indexes that is interrupted, and files that are damaged, checked, copied or salvaged.
@Suite struct IndexInterruptionTests {
    private static let count = 2600

    private func larder(_ configure: (inout EngineOptions) -> Void = { _ in }) throws -> TestLarder {
        let larder = try TestLarder { options in
            options.indexMaker = WordIndexMaker()
            configure(&options)
        }
        let books = try larder.database()
        for number in 0..<Self.count { _ = try books.putLater("k\(number)", "w\(number % 10)") }
        try books.flush()
        return larder
    }

    private func check(_ larder: TestLarder, _ expected: Int = Self.count) throws {
        let books = try larder.database()
        try books.finishIndexes()
        #expect(try books.keys(withWordsFrom: "w0", through: "w9")?.count == expected)
        #expect(try books.missingHints() == [])
        larder.close()
        let report = try Engine.check(larder.path, indexMaker: WordIndexMaker())
        #expect(report.problems.isEmpty)
    }

    /// A process that is killed after any step of building or dropping leaves a larder that continues.
    @Test func buildingAndDroppingContinueAfterAKillAtAnyStep() throws {
        let larder = try larder()
        try larder.database().createIndex("w")
        var isReady = false
        while !isReady {
            let copy = try larder.crashCopy()
            #expect(try copy.database().indexStates() != ["w": .ready])
            try copy.database().put("new", "w1")
            try check(copy, Self.count + 1)
            let books = try larder.database()
            #expect(try IndexWork(books.context) { [books] }.step(books))
            isReady = try books.indexStates() == ["w": .ready]
        }
        try check(try larder.crashCopy())
        #expect(try larder.database().indexes.drop(named: "w"))
        for step in 0... {
            let copy = try larder.crashCopy()
            try copy.database().finishIndexes()
            #expect(try copy.database().hintCountInLevelDB() == 0)
            let books = try larder.database()
            let work = IndexWork(books.context) { [books] }
            guard try work.step(books) else { break }
            #expect(step < 20)
        }
    }

    /// A step that fails is repeated after the database is writable again.
    @Test func buildingContinuesAfterAFailedWrite() throws {
        let larder = try larder()
        let books = try larder.database()
        try books.createIndex("w")
        let work = IndexWork(books.context) { [books] }
        #expect(try work.step(books))
        let store = try #require(books.durableState.store)
        store.suspend(LarderError(.io, "told to fail", operation: "test"))
        #expect(try !work.step(books))
        try books.prepare(forWriting: true)
        try check(larder)
    }

    /// A checkpoint of entries that were written before the index was created, and a purge, meet the building.
    @Test func checkpointsAndPurgesMeetTheBuilding() throws {
        let larder = try larder()
        let books = try larder.database()
        for number in 0..<500 { _ = try books.putLater("k\(number * 3)", "w0,w1") }
        try books.createIndex("w")
        let work = IndexWork(books.context) { [books] }
        for round in 0..<4 {
            #expect(try work.step(books))
            _ = try books.putLater("a\(round)", "w2")
            try books.flush()
            _ = try books.putLater("k\(round)", "w3")
        }
        try check(larder, Self.count + 4)
        let again = try larder.database()
        _ = try again.purge()
        try again.put("k", "w5")
        #expect(try again.keys(withWordsFrom: "w0", through: "w9") == ["k"])
        try check(larder, 1)
    }

    @Test func aCheckFindsMissingHintsAndARepairBuildsThem() throws {
        let larder = try larder()
        let books = try larder.database()
        try books.createIndex("w")
        try books.finishIndexes()
        let store = try #require(books.durableState.store)
        try store.rawDelete(Hint.head(books.appliedState.indexes[0].number) + Array("w7\0k17".utf8))
        try store.rawPut(Hint.head(1), [])
        let report = try larder.engine().check(copying: [])
        let lines = report.problems.map { "\($0.what)" }
        #expect(lines.contains { $0.hasPrefix("1 hint is missing") })
        #expect(lines.contains { $0.hasPrefix("1 hints of indexes are invalid") })
        #expect(try larder.engine().repair(report) == [])
        #expect(try books.indexStates() == ["w": .building(percent: 0)])
        try books.finishIndexes()
        try check(larder)
    }

    /// A salvage copies no hints; the indexes are built anew.
    @Test func aSalvageKeepsTheIndexes() throws {
        let larder = try larder { $0.onDamage = .salvage }
        let books = try larder.database()
        try books.createIndex("w")
        try books.finishIndexes()
        let damage = LarderError(.damaged, "told to be damaged", operation: "test")
        #expect(try books.salvage(books.durableState.store, damage) != nil)
        #expect(try books.hintCountInLevelDB() == 0)
        #expect(try books.indexStates() == ["w": .building(percent: 0)])
        try check(larder)
    }

    /// An image of the larder, from which backups are made, has the indexes.
    @Test func anImageHasTheIndexes() throws {
        let larder = try larder()
        try larder.database().createIndex("w")
        try larder.database().finishIndexes()
        let copy = larder.parent + "/image"
        try larder.engine().withImage(adding: []) { image in
            try Files.copy(image, to: copy + "/larder")
        }
        let image = try larder.crashCopy(in: copy)
        #expect(try image.database().indexStates() == ["w": .ready])
        try check(image)
    }

    /// On a full file system, whole tables are removed, but none that has hints.
    @Test func tablesWithHintsAreNotRemoved() throws {
        let larder = try larder { $0.writeBufferBytes = 64 << 10 }
        let books = try larder.database()
        try books.createIndex("w")
        try books.finishIndexes()
        for number in 0..<Self.count { _ = try books.putLater("k\(number)", "w\(number % 7)") }
        try books.flush()
        let store = try #require(books.durableState.store)
        for _ in 0..<5 {
            _ = try TableRemoval(database: books, store: store, wantedBytes: 1 << 20).run(now: books.now())
            #expect(try books.missingHints() == [])
        }
        let left = try books.count(includingExpired: true)
        #expect(try books.keys(withWordsFrom: "w0", through: "w9")?.count == left)
    }
}
