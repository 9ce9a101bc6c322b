import LarderTestSupport
import Testing

@testable import LarderEngine

/// Queries while other threads write, checkpoint and clean.
@Suite struct IndexConcurrencyTests {
    private static let steps = 150

    /// The terms of the entries change all the time, but each entry always matches the query.
    @Test(arguments: [0, 20_000, 16 << 20])
    func anEntryThatMatchesThroughoutAQueryIsFound(memoryBytes: Int) throws {
        let larder = try TestLarder { options in
            options.indexMaker = WordIndexMaker()
            options.backgroundMaintenance = true
            options.maintenanceMilliseconds = 1
            options.writeBufferBytes = 64 << 10
            options.memoryBytes = memoryBytes
        }
        let books = try larder.database()
        let keys = (0..<40).map { "k\($0)" }
        for key in keys { try books.put(key, "w0") }
        try books.flush()
        try books.createIndex("w")
        let losses = Recorder<String>()
        let queries = Guarded(0)
        let isDone = Guarded(0)
        onThreads(6) { thread in
            defer { isDone.with { $0 += 1 } }
            do {
                var random = SeededGenerator(seed: UInt64(thread))
                if thread < 2 {
                    for step in 0..<(20 * Self.steps) {
                        guard let key = keys.randomElement(using: &random) else { continue }
                        let word = "w\(Int.random(in: 0..<10, using: &random))"
                        _ = try books.putLater(key, step % 7 == 0 ? word + ",w9" : word)
                    }
                    return
                }
                let work = IndexWork(books.context) { [books] }
                while isDone.value < 2 {
                    switch thread {
                    case 2: try books.flush()
                    case 3: _ = try work.step(books)
                    default:
                        guard let found = try books.keys(withWordsFrom: "w0", through: "w9", isExact: false) else {
                            continue
                        }
                        queries.with { $0 += 1 }
                        let lost = Set(keys).subtracting(found)
                        if !lost.isEmpty { losses.add("\(lost)") }
                    }
                }
            } catch {
                losses.add("\(error)")
            }
        }
        #expect(losses.all.prefix(3).isEmpty)
        try books.finishIndexes()
        #expect(try books.keys(withWordsFrom: "w0", through: "w9")?.count == keys.count)
        #expect(queries.value > 0)
        try books.flush()
        #expect(try books.missingHints() == [])
    }

    @Test func indexesCanBeCreatedAndDroppedWhileOthersWrite() throws {
        let larder = try TestLarder { options in
            options.indexMaker = WordIndexMaker()
            options.backgroundMaintenance = true
            options.maintenanceMilliseconds = 1
            options.writeBufferBytes = 64 << 10
        }
        let books = try larder.database()
        let failures = Recorder<String>()
        let isDone = Guarded(false)
        onThreads(4) { thread in
            do {
                switch thread {
                case 0:
                    for step in 0..<Self.steps / 3 {
                        try books.createIndex("w", "words\(step % 3)")
                        if step % 5 == 0 { _ = try books.dropIndex(named: "w") }
                    }
                    isDone.value = true
                case 1: while !isDone.value { try books.flush() }
                default:
                    for step in 0... {
                        if isDone.value { break }
                        _ = try books.putLater("k\(thread)-\(step % 300)", "w\(step % 10)")
                    }
                }
            } catch {
                failures.add("\(error)")
                isDone.value = true
            }
        }
        #expect(failures.all.isEmpty)
        try books.createIndex("w")
        try books.finishIndexes()
        let count = try books.count(includingExpired: false)
        #expect(try books.keys(withWordsFrom: "w0", through: "w9")?.count == count)
        try books.flush()
        #expect(try books.missingHints() == [])
        larder.close()
        let again = try larder.database()
        try again.finishIndexes()
        #expect(try again.keys(withWordsFrom: "w0", through: "w9")?.count == count)
        #expect(try again.hintCountInLevelDB() == count)
    }
}
