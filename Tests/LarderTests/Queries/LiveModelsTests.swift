import Larder
import LarderTestSupport
import Testing

@testable import LarderModelQueries

/// Live queries of models in the library.
@Suite(.timeLimit(.minutes(2))) struct LiveModelsTests {
    fileprivate struct Book: Codable, Equatable, Sendable {
        var author: String
        var year: Int
        var isbn = "0"
        var next: Reference<Book>?

        enum CodingKeys: String, CodingKey {
            case author, year, next
            case isbn = "ISBN"
        }

        init(author: String, year: Int) { (self.author, self.year) = (author, year) }
    }

    private typealias Live = LiveModels<Book, Cache>

    private let workspace: Workspace
    private let cache: Cache

    init() throws {
        workspace = try Workspace()
        cache = try Cache(
            named: "books", policy: .never, directory: workspace.directory, options: workspace.options())
        for year in 1...3 { try cache.set(Book(author: "Bo", year: year), forKey: "b:\(year)") }
    }

    /// Applies changes until the rows have these keys.
    private func read(
        _ live: inout Live.Iterator, _ list: inout [ModelRow<Book>], until keys: [String]
    ) async throws -> [LiveChange<Book>] {
        var changes: [LiveChange<Book>] = []
        while changes.isEmpty || list.map(\.key) != keys {
            let next = try await live.next()
            let change = try #require(next)
            let fits = list.apply(change.difference)
            #expect(fits)
            #expect(list.map(\.key) == change.rows.map(\.key) && list.map(\.value) == change.values)
            changes.append(change)
        }
        return changes
    }

    @Test func differencesFollowTheFirstResult() async throws {
        let query = cache.query(Book.self).where(\.author, "Bo").sorted(by: \.year, .reverse).limit(3)
        var live = cache.live(query).makeAsyncIterator()
        var list: [ModelRow<Book>] = []
        let first = try await read(&live, &list, until: ["b:3", "b:2", "b:1"])
        #expect(first.count == 1 && !first[0].isReset && first[0].removals.isEmpty)
        try await cache.set(Book(author: "Bo", year: 9), forKey: "b:1")
        _ = try await read(&live, &list, until: ["b:1", "b:3", "b:2"])
        try await cache.set(Book(author: "Bo", year: 5), forKey: "new")
        let moved = try await read(&live, &list, until: ["b:1", "new", "b:3"])
        #expect(moved.removed == ["b:2 moved"])
        try await cache.remove("b:3")
        let removed = try await read(&live, &list, until: ["b:1", "new", "b:2"])
        #expect(removed.removed == ["b:3 removed"])
        try await cache.removeAll()
        let purged = try await read(&live, &list, until: [])
        #expect(Set(purged.removed) == ["b:1 purged", "b:2 purged", "new purged"])
        // The rows have changed since, so this difference does not fit.
        let fits = list.apply(moved[0].difference)
        #expect(!fits)
    }

    @Test func readerThatIsSlowGetsAReset() async throws {
        var live = cache.live(cache.query(Book.self).limit(10_000)).makeAsyncIterator()
        var list: [ModelRow<Book>] = []
        _ = try await read(&live, &list, until: ["b:1", "b:2", "b:3"])
        // Another query gets the last change when most others were sent.
        let query = cache.query(Book.self).where(\.author, "Al").where(\.year, 5_999)
        var other = cache.live(query).makeAsyncIterator()
        var last: [ModelRow<Book>] = []
        _ = try await read(&other, &last, until: [])
        for round in 0..<6_000 { try await cache.set(Book(author: "Al", year: round), forKey: "x\(10_000 + round)") }
        _ = try await read(&other, &last, until: ["x15999"])
        let keys = ["b:1", "b:2", "b:3"] + (10_000..<16_000).map { "x\($0)" }
        let changes = try await read(&live, &list, until: keys)
        #expect(changes.map(\.isReset).contains(true))
    }

    /// The rows of a live query, compared with an array.
    @Test func manyEventsAreAppliedInBlocks() {
        var random = SeededGenerator(seed: testSeed())
        let keys = (0..<3_000).map { index in withUnsafeBytes(of: index) { Array($0) } }
        var expected = keys.prefix(1_000).map { RowBlocks.Row(key: $0, value: 0) }
        var rows = RowBlocks(expected)
        for step in 1...10_000 {
            let key = keys[random.below(step < 5_000 ? 3_000 : 300)]
            rows.remove(key)
            expected.removeAll { $0.key == key }
            guard random.below(3) > 0 else { continue }
            // Most rows are inserted at one place, which makes blocks large.
            let index = random.oneIn(3) ? random.below(4_000) : 500
            rows.insert(RowBlocks.Row(key: key, value: step), at: index)
            expected.insert(RowBlocks.Row(key: key, value: step), at: min(index, expected.count))
        }
        var found: [(key: [UInt8], value: Int)] = []
        rows.updateEach { found.append(($0.key, $0.value)) }
        #expect(found.map(\.key) == expected.map(\.key) && found.map(\.value) == expected.map(\.value))
        #expect(rows.blockCounts.reduce(0, +) == found.count)
    }

    /// An event moves the rows of one block, and looks at the sizes of the others.
    @Test(arguments: [0, 5_000, 20_000]) func blocksAreSmallAndFew(index: Int) {
        var rows = RowBlocks<Int>([])
        for number in 0..<10_000 {
            rows.insert(RowBlocks.Row(key: withUnsafeBytes(of: number) { Array($0) }, value: 0), at: index)
        }
        #expect(rows.blockCounts.allSatisfy { $0 <= RowBlocks<Int>.blockCountMax })
        #expect(rows.blockCounts.count <= 10_000 / (RowBlocks<Int>.blockCountMax / 2) + 1)
    }

    @Test func impossibleQueriesThrow() async throws {
        let queries = [
            cache.query(Book.self).filter { $0.year > 1 }, cache.query(Book.self).limit(0),
            cache.query(Book.self).limit(20_000), cache.query(Book.self).skip(-1),
            cache.query(Book.self).where(\.isbn, "0"), cache.query(Book.self).including(\.next),
        ]
        for query in queries {
            await #expect(throws: LarderError.self) { for try await _ in cache.live(query) {} }
        }
        let snapshot = try await cache.snapshot()
        let error = await #expect(throws: LarderError.self) {
            for try await _ in snapshot.live(snapshot.query(Book.self)) {}
        }
        #expect(error?.message.contains("snapshot") == true)
    }

    @Test("a query of another cache is not followed, but one of another handle of the database is")
    func theQueryIsOfTheSameDatabase() async throws {
        let other = try workspace.cache("other")
        let error = await #expect(throws: LarderError.self) {
            for try await _ in cache.live(other.query(Book.self)) {}
        }
        #expect(error?.code == .invalidArgument && error?.message.contains("another cache") == true)
        let same = try workspace.cache("books", policy: nil)
        var list: [ModelRow<Book>] = []
        var live = cache.live(same.query(Book.self)).makeAsyncIterator()
        _ = try await read(&live, &list, until: ["b:1", "b:2", "b:3"])
    }

    @Test func aSecondIterationThrows() async throws {
        let live = cache.live(cache.query(Book.self))
        for try await change in live {
            #expect(change.rows.count == 3)
            break
        }
        let error = await #expect(throws: LarderError.self) { for try await _ in live {} }
        #expect(error?.code == .invalidArgument && error?.message.contains("only once") == true)
    }

    @Test func theSequenceEnds() async throws {
        let live = cache.live(cache.query(Book.self))
        var iterator = live.makeAsyncIterator()
        var list: [ModelRow<Book>] = []
        _ = try await read(&iterator, &list, until: ["b:1", "b:2", "b:3"])
        live.cancel()
        let afterCancelling = try await iterator.next()
        #expect(afterCancelling == nil)
        let task = Task { [cache] in for try await _ in cache.live(cache.query(Book.self)) {} }
        task.cancel()
        try await task.value
        var other = cache.live(cache.query(Book.self)).makeAsyncIterator()
        list = []
        _ = try await read(&other, &list, until: ["b:1", "b:2", "b:3"])
        await cache.close()
        let afterClosing = try await other.next()
        #expect(afterClosing == nil)
        await #expect(throws: LarderError.self) { for try await _ in cache.live(cache.query(Book.self)) {} }
    }

    @Test func entryOfAnotherTypeIsAnError() async throws {
        var live = cache.live(cache.query(Book.self)).makeAsyncIterator()
        var list: [ModelRow<Book>] = []
        _ = try await read(&live, &list, until: ["b:1", "b:2", "b:3"])
        try await cache.set(["x"], forKey: "other")
        let error = await #expect(throws: LarderError.self) { while try await live.next() != nil {} }
        #expect(error?.code == .decoding)
    }
}

extension [LiveChange<LiveModelsTests.Book>] {
    /// The removed keys with their reasons.
    fileprivate var removed: [String] {
        flatMap { change in change.removals.map { "\($0.key) \($0.reason)" } }
    }
}
