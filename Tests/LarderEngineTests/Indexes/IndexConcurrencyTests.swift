import Foundation
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

    /// An entry that was stored before a query began is found, also while a checkpoint moves it to LevelDB.
    @Test func newEntriesAreFoundWhileCheckpointsRun() throws {
        let larder = try TestLarder { options in
            options.indexMaker = WordIndexMaker()
            options.writeBufferBytes = 64 << 10
        }
        let books = try larder.database()
        try books.createIndex("w")
        let stored = Guarded(0)
        let losses = Recorder<String>()
        let isDone = Guarded(false)
        onThreads(4) { thread in
            do {
                if thread == 0 {
                    defer { isDone.value = true }
                    for number in 0..<(20 * Self.steps) {
                        try books.put("k\(number)", "n\(number / 20)")
                        stored.value = number + 1
                    }
                }
                while !isDone.value {
                    if thread == 1 {
                        try books.flush()
                        continue
                    }
                    let last = stored.value - 1
                    guard last >= 0 else { continue }
                    let word = "n\(last / 20)"
                    let found = Set(try books.keys(withWordsFrom: word, through: word) ?? [])
                    for number in (last / 20 * 20)...last where !found.contains("k\(number)") {
                        losses.add("k\(number) of \(last + 1)")
                    }
                }
            } catch {
                losses.add("\(error)")
            }
        }
        #expect(losses.all.prefix(3).isEmpty)
    }

    /// The end of a merge waits for reads in progress. Such a read must not wait for it in turn: both would hang.
    @Test func hintsCanBeReadWhileTablesAreMerged() throws {
        let larder = try TestLarder { $0.indexMaker = WordIndexMaker() }
        let books = try larder.database()
        try books.createIndex("w")
        for number in 0..<2000 { _ = try books.putLater("k\(number)", "w\(number)") }
        try books.flush()
        // If space is limited, LevelDB waits for reads at the end of a merge.
        try larder.engine().context.larder.disk.note(smallestDatabaseLimit: 1 << 30)
        let store = try #require(books.durableState.store)
        let index = try #require(books.indexing.open.first).index.number
        let isDone = Guarded(false)
        let counts = Recorder<Int>()
        onThreads(2) { thread in
            if thread == 0 {
                defer { isDone.value = true }
                for _ in 0..<300 {
                    try? store.note(journalNeeded: 0, sync: false)
                    store.flushMemtable()
                }
            } else {
                repeat {
                    var count = 0
                    try? store.forEachHint(index) { _, _ in count += 1 }
                    counts.add(count)
                } while !isDone.value
            }
        }
        #expect(Set(counts.all) == [2000])
    }

    /// Entries that are written between the beginning of a checkpoint and its end stay in the index.
    @Test func aCheckpointDropsOnlyTheHintsOfWhatItHasWritten() throws {
        let larder = try TestLarder { $0.indexMaker = WordIndexMaker() }
        let books = try larder.database()
        try books.createIndex("w")
        try books.put("1", "written")
        let sequence = books.pipeline.lastDecided
        try books.put("2", "left")
        books.indexes.fillHints()
        let pass = try #require(CheckpointPass(books, upTo: sequence, room: .max))
        try books.put("3", "later")
        books.indexes.fillHints()
        try pass.write(progress: {}, sync: {})
        try pass.store.noteSynced()
        pass.finish()
        #expect(try books.hintCountInLevelDB() == 1)
        for (key, word) in [("1", "written"), ("2", "left"), ("3", "later")] {
            #expect(try books.keys(withWordsFrom: word, through: word) == [key])
        }
        // A checkpoint that fails drops nothing.
        let failed = try #require(CheckpointPass(books, upTo: books.pipeline.lastDecided, room: .max))
        try failed.write(progress: {}, sync: {})
        failed.abandon()
        #expect(try books.keys(withWordsFrom: "a", through: "z")?.count == 3)
        #expect(books.indexing.dirty.hintCount == 2)
    }

    /// A checkpoint that ends while a query looks for new entries does not take the hints of an entry that it has left
    /// dirty: the query has passed its shard before the checkpoint noted it again.
    @Test func aCheckpointThatEndsDuringAQueryKeepsTheHintsOfWhatItHasLeft() throws {
        let larder = try TestLarder { $0.indexMaker = WordIndexMaker() }
        let books = try larder.database()
        try books.createIndex("w")
        let shard = { (key: String) in Shard.index(Key(Array(key.utf8)).hash) }
        let last = try #require((0..<1000).map { "k\($0)" }.max { shard($0) < shard($1) })
        let left = try #require((0..<1000).map { "k\($0)" }.min { shard($0) < shard($1) })
        let sequence = books.pipeline.lastDecided
        try books.put(left, "left")
        books.indexes.fillHints()
        let pass = try #require(CheckpointPass(books, upTo: sequence, room: .max))
        try books.put(last, "last")
        let hasPassed = Guarded(false)
        let isDone = Guarded(false)
        let hintCount = Guarded(0)
        // Used only by the second thread.
        nonisolated(unsafe) let checkpoint = pass
        onThreads(2) { thread in
            if thread == 0 {
                let runs = books.indexing.dirty.fill(books.shards, for: .query, pinnedBytesMin: .max) {
                    hasPassed.value = true
                    // The checkpoint has to wait for this. Without that, it ends soon.
                    for _ in 0..<100 where !isDone.value { usleep(1000) }
                    return books.indexing.open
                }
                hintCount.value = runs.values.joined().reduce(0) { $0 + $1.count }
                return
            }
            while !hasPassed.value { usleep(100) }
            #expect(throws: Never.self) {
                try checkpoint.write(progress: {}, sync: {})
                try checkpoint.store.noteSynced()
            }
            checkpoint.finish()
            isDone.value = true
        }
        #expect(hintCount.value == 2)
        for (key, word) in [(left, "left"), (last, "last")] {
            #expect(try books.keys(withWordsFrom: word, through: word) == [key])
        }
    }

    /// However many entries are written at full speed, a query has to find the hints of a few only.
    @Test(arguments: [false, true])
    func writersLeaveFewHintsForQueriesToFind(hasBackgroundWork: Bool) throws {
        let larder = try TestLarder { options in
            options.indexMaker = WordIndexMaker()
            options.backgroundMaintenance = hasBackgroundWork
        }
        let books = try larder.database()
        try books.createIndex("w")
        let threads = 4
        onThreads(threads) { thread in
            for number in 0..<10_000 {
                #expect(throws: Never.self) { _ = try books.putLater("k\(thread)-\(number)", "w\(number % 100)") }
            }
        }
        let changed = books.indexing.dirty.changed
        #expect(changed.value <= ChangedKeyCount.tooMany + threads)
        let most = ChangedKeyCount.tooMany + 2 * DirtyHints.sliceCount
        #expect(books.indexing.dirty.hintCount >= threads * 10_000 - most, "the others were found")
        if hasBackgroundWork {
            for _ in 0..<1000 where changed.areMany { usleep(10_000) }
            #expect(!changed.areMany)
        }
        #expect(try books.keys(withWordsFrom: "w7", through: "w7")?.count == threads * 100)
        #expect(changed.isZero)
        #expect(books.indexing.dirty.hintCount == threads * 10_000)
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
                        if step % 5 == 0 { _ = try books.indexes.drop(named: "w") }
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
