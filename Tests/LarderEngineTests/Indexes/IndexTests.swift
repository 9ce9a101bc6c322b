import LarderTestSupport
import Testing

@testable import LarderEngine

@Suite struct IndexTests {
    private func larder(_ configure: (inout EngineOptions) -> Void = { _ in }) throws -> TestLarder {
        try TestLarder { options in
            options.indexMaker = WordIndexMaker()
            configure(&options)
        }
    }

    @Test func anIndexFindsEntriesInMemoryAndInLevelDB() throws {
        let larder = try larder()
        let books = try larder.database()
        try books.put("1", "red,blue")
        try books.createIndex("w")
        #expect(try books.indexStates() == ["w": .ready], "LevelDB has no entries yet")
        #expect(try books.keys(withWordsFrom: "red", through: "red") == ["1"])
        try books.put("2", "blue")
        #expect(try books.keys(withWordsFrom: "blue", through: "red") == ["1", "2"])
        #expect(try books.keys(withWordsFrom: "blue", through: "red", backward: true) == ["1", "2"])
        try books.flush()
        #expect(try books.hintCountInLevelDB() == 3)
        #expect(try books.keys(withWordsFrom: "blue", through: "blue", backward: true) == ["2", "1"])
        try books.put("1", "green")
        #expect(try books.keys(withWordsFrom: "blue", through: "blue") == ["2"])
        #expect(try books.keys(withWordsFrom: "a", through: "z") == ["2", "1"])
        #expect(try books.remove("2"))
        #expect(try books.keys(withWordsFrom: "a", through: "z") == ["1"])
        #expect(try books.count(includingExpired: true) == 1, "hints are not entries")
    }

    @Test func anIndexIsBuiltForEntriesThatAreStored() throws {
        let larder = try larder()
        let books = try larder.database()
        for number in 0..<1200 { try books.put("k\(number)", "w\(number % 10)") }
        try books.flush()
        try books.createIndex("w")
        #expect(try books.indexStates() == ["w": .building(percent: 0)])
        #expect(try books.keys(withWordsFrom: "a", through: "z") == nil)
        let work = IndexWork(books.context) { [books] }
        #expect(try work.step(books))
        #expect(try books.indexStates() == ["w": .building(percent: 512 * 100 / 1200)])
        try books.put("late", "w3")
        try books.finishIndexes()
        #expect(try books.indexStates() == ["w": .ready])
        #expect(try books.keys(withWordsFrom: "w3", through: "w3")?.count == 121)
        #expect(try books.missingHints() == [])
    }

    @Test func definitionsSurviveRestartPurgeAndExchange() throws {
        let larder = try larder()
        try larder.database().createIndex("w")
        try larder.database().createIndex("length", "length %\u{1}: é")
        try larder.database().put("1", "red")
        larder.close()
        let books = try larder.database()
        let states: [String: IndexStatus.State] = ["w": .ready, "length": .ready]
        #expect(try books.indexStates() == states)
        let definitions = try books.indexes.list(counting: true).map {
            String(decoding: $0.index.definition, as: UTF8.self)
        }
        #expect(definitions == ["words", "length %\u{1}: é"])
        #expect(try books.keys(withWordsFrom: "red", through: "red") == ["1"])
        #expect(try books.indexes.list(counting: true).map(\.hints) == [1, 1])
        _ = try books.purge()
        #expect(try books.indexes.list(counting: true).map(\.hints) == [0, 0])
        #expect(try books.keys(withWordsFrom: "a", through: "z") == [])
        try books.put("2", "blue")
        try books.flush()
        #expect(try books.indexStates() == states, "the first checkpoint of an epoch begins its indexes")
        #expect(try books.keys(withWordsFrom: "a", through: "z") == ["2"])
        let others = try larder.database("others")
        try others.put("3", "green")
        try larder.engine().exchange(books, others, entriesMax: 10, bytesMax: 100)
        #expect(try books.keys(withWordsFrom: "a", through: "z") == ["3"])
        try books.flush()
        #expect(try books.keys(withWordsFrom: "a", through: "z") == ["3"])
        #expect(try books.missingHints() == [])
    }

    @Test func creatingIsIdempotentAndReplaces() throws {
        let larder = try larder()
        let books = try larder.database()
        try books.put("1", "red")
        try books.flush()
        try books.createIndex("w")
        try books.finishIndexes()
        let number = try #require(books.appliedState.indexes.first?.number)
        try books.createIndex("w")
        #expect(books.appliedState.indexes.map(\.number) == [number])
        try books.createIndex("w", "words, but anew")
        #expect(books.appliedState.indexes.count == 1)
        #expect(books.appliedState.indexes.first?.number != number)
        #expect(try books.indexStates() == ["w": .building(percent: 0)])
        try books.finishIndexes()
        #expect(try books.keys(withWordsFrom: "a", through: "z") == ["1"])
        #expect(try books.hintCountInLevelDB() == 1, "the hints of the previous definition are removed")
        for name in ["", "a b", "a:b", "é", String(repeating: "x", count: 65)] {
            #expect(errorCode { try books.createIndex(name) } == .invalidArgument)
        }
        #expect(errorCode { try books.createIndex("x", "what") } == .invalidArgument)
        let long = "words" + String(repeating: "x", count: 4096)
        #expect(errorCode { try books.createIndex("x", long) } == .invalidArgument)
    }

    @Test func droppingRemovesTheHints() throws {
        let larder = try larder()
        let books = try larder.database()
        try books.createIndex("w")
        try books.createIndex("length", "length")
        for number in 0..<3000 { try books.put("k\(number)", "a,b") }
        try books.flush()
        #expect(try books.hintCountInLevelDB() == 9000)
        #expect(try books.indexes.drop(named: "w"))
        #expect(try !books.indexes.drop(named: "w"))
        #expect(try books.keys(withWordsFrom: "a", through: "b") == nil)
        let work = IndexWork(books.context) { [books] }
        #expect(try work.step(books))
        larder.close()
        let again = try larder.database()
        try again.finishIndexes()
        #expect(try again.hintCountInLevelDB() == 3000)
        #expect(try again.indexes.drop(named: "length"))
        larder.close()
        try larder.maintain()
        let last = try larder.database()
        try larder.maintain()
        #expect(try last.hintCountInLevelDB() == 0)
        #expect(try last.rawKeys().allSatisfy { key in key.withUnsafeBytes { IndexProgress.number($0) == nil } })
        #expect(!last.shards.all.contains { $0.changedKeys != nil })
    }

    @Test func staleHintsAreRemoved() throws {
        let larder = try larder()
        let books = try larder.database()
        try books.createIndex("w")
        try books.createIndex("other", "words")
        for number in 0..<2000 { try books.put("k\(number)", "old") }
        try books.flush()
        for number in 0..<2000 { try books.put("k\(number)", "new") }
        try books.flush()
        #expect(try books.hintCountInLevelDB() == 8000)
        #expect(try books.keys(withWordsFrom: "a", through: "z")?.count == 2000)
        try books.finishIndexes()
        #expect(try books.hintCountInLevelDB() == 4000)
        #expect(try books.keys(withWordsFrom: "new", through: "new")?.count == 2000)
        #expect(try books.indexes.list(counting: true).map(\.hints) == [2000, 2000])
        #expect(try books.indexes.drop(named: "other"))
        // A report alone removes a hint too.
        try books.put("k1", "newer")
        try books.flush()
        #expect(try books.keys(withWordsFrom: "new", through: "new")?.count == 1999)
        try books.finishIndexes()
        #expect(try books.hintCountInLevelDB() == 2000)
    }

    /// Otherwise a fourth of the hints could be stale forever.
    @Test func moreStaleHintsAreRemovedWhileNothingIsWritten() throws {
        let larder = try larder()
        let books = try larder.database()
        try books.createIndex("w")
        for number in 0..<6000 { try books.put("k\(number)", "old") }
        try books.flush()
        try books.finishIndexes()
        for number in 0..<1990 { try books.put("k\(number)", "new") }
        try books.flush()
        let work = IndexWork(books.context) { [books] }
        while try work.step(books) {}
        #expect(try books.hintCountInLevelDB() == 7990)
        #expect(try work.step(books, isQuiet: true))
        while try work.step(books) {}
        #expect(try books.hintCountInLevelDB() == 6000)
    }

    /// No background work runs here.
    @Test func checkpointsRemoveStaleHintsIfNothingElseDoes() throws {
        let larder = try larder()
        let books = try larder.database()
        try books.createIndex("w")
        var most = 0
        for round in 0..<30 {
            for number in 0..<2000 { _ = try books.putLater("k\(number)", "w\(round),same") }
            try books.flush()
            most = try max(most, books.hintCountInLevelDB())
        }
        #expect(most < 36_000)
        #expect(try books.keys(withWordsFrom: "w29", through: "w29")?.count == 2000)
        // The hints of removed entries go too.
        let before = try books.hintCountInLevelDB()
        for number in 0..<1000 { _ = try books.remove("k\(number)") }
        try books.flush()
        #expect(try books.hintCountInLevelDB() == before - 2000)
        #expect(try books.keys(withWordsFrom: "same", through: "same")?.count == 1000)
        try books.finishIndexes()
        #expect(try books.hintCountInLevelDB() == 2000)
        #expect(!books.indexing.isCleaningTooSlow)
    }

    @Test func oldHintsOfEntriesAfterManyNewOnesAreRemoved() throws {
        let larder = try larder()
        let books = try larder.database()
        try books.createIndex("w")
        for number in 0..<200 { _ = try books.putLater("z\(number)", "old") }
        try books.flush()
        books.indexing.churn.store(1 << 20, ordering: .relaxed)
        #expect(books.indexing.isCleaningTooSlow)
        for number in 0..<500 { _ = try books.putLater("a\(number)", "new") }
        for number in 0..<200 { _ = try books.putLater("z\(number)", "other") }
        try books.flush()
        // Behind 32 new entries, only each 32nd one is looked for.
        #expect(try (700..<732).contains(books.hintCountInLevelDB()))
    }

    @Test func theListCountsStaleHints() throws {
        let larder = try larder()
        let books = try larder.database()
        try books.createIndex("w")
        for number in 0..<20 { try books.put("k\(number)", "red") }
        try books.flush()
        #expect(try books.indexes.list(counting: true).map(\.stale) == [0])
        let head = Hint.head(books.appliedState.indexes[0].number)
        let store = try #require(books.durableState.store)
        for number in 10..<30 { try store.rawPut(head + Array("old\0k\(number)".utf8), Hint.value(termCount: 4)) }
        try books.put("k", "red")
        try books.flush()
        let status = try #require(try books.indexes.list(counting: true).first)
        #expect(status.hints == 41 && status.stale == 20)
    }

    @Test func theListCountsAnEntryOnceThatIsWrittenAllTheTime() throws {
        let larder = try larder()
        let books = try larder.database()
        try books.createIndex("w")
        for number in 0..<3000 { try books.put("k\(number % 3)", "w\(number),same") }
        #expect(try books.indexes.list(counting: true).map(\.hints) == [6])
        #expect(try books.keys(withWordsFrom: "same", through: "same") == ["k0", "k1", "k2"])
    }

    @Test func withoutAnExtractorAnIndexIsBuiltAnewLater() throws {
        let larder = try larder()
        try larder.database().createIndex("w")
        try larder.database().put("1", "red")
        try larder.database().flush()
        larder.close { $0.indexMaker = nil }
        let books = try larder.database()
        #expect(try books.indexStates() == ["w": .unreadable])
        try books.put("2", "blue")
        try books.flush()
        larder.close { $0.indexMaker = WordIndexMaker() }
        let again = try larder.database()
        #expect(try again.indexStates() == ["w": .building(percent: 0)])
        try again.finishIndexes()
        #expect(try again.keys(withWordsFrom: "a", through: "z") == ["2", "1"])
    }

    @Test func manyChangesOfOneEntryKeepFewHintsInMemory() throws {
        let larder = try larder()
        let books = try larder.database()
        try books.createIndex("w")
        for number in 0..<200_000 {
            _ = try books.putLater("k", "w\(number)")
            if number % 1000 == 0 { books.indexes.fillHints() }
        }
        #expect(try books.keys(withWordsFrom: "a", through: "z") == ["k"])
        #expect(books.indexing.dirty.hintCount < 1 << 17)
    }

    @Test func candidatesAreInOrderInBothDirections() throws {
        let larder = try larder()
        let books = try larder.database()
        try books.createIndex("w")
        for number in 0..<50 { try books.put("k\(number)", "w\(number % 7)") }
        try books.flush()
        for number in 30..<80 { try books.put("k\(number)", "w\(number % 7)") }
        for backward in [false, true] {
            let view = try #require(try books.indexes.view())
            let index = try #require(view.indexes.first).index
            let candidates = try view.candidates(
                index, from: Array("w1".utf8), upTo: Array("w6".utf8), backward: backward)
            var found: [[UInt8]] = []
            while try candidates.next() { found.append(try candidates.withCandidate { [UInt8]($0) + [UInt8]($1) }) }
            let numbers = (0..<80).filter { (1...5).contains($0 % 7) }
            let expected = numbers.map { Array("w\($0 % 7)\0k\($0)".utf8) }.sorted { $0.lexicographicallyPrecedes($1) }
            #expect(found == (backward ? expected.reversed() : expected))
        }
    }

    @Test func aTermThatFollowsAllOthersIsFoundAfterACheckpoint() throws {
        let larder = try larder()
        let books = try larder.database()
        try books.createIndex("w")
        try books.createIndex("other")
        try books.put("k", "a")
        try books.flush()
        // Queries remember that no term in LevelDB follows `a`.
        for _ in 0..<2 { #expect(try books.keys(withWordsFrom: "m", through: "p") == []) }
        try books.put("x", "p")
        #expect(try books.keys(withWordsFrom: "m", through: "p") == ["x"])
        try books.flush()
        for backward in [false, true] {
            #expect(try books.keys(withWordsFrom: "m", through: "p", backward: backward) == ["x"])
        }
    }
}
