import Foundation
import Larder
import LarderClient
import LarderTestSupport
import Testing

/// Compares queries of the library and of both clients with plain Swift: the same random models, conditions,
/// predicates, orders and pages.
@Suite(.timeLimit(.minutes(10))) struct QueryOracleTests {
    private static func books(_ count: Int) -> [RandomBook] {
        var random = SeededGenerator(seed: 7)
        return (0..<count).map { RandomBook($0, &random) }
    }

    /// Checks the rows of one query. Without an order, only their set is known.
    private func check<Source: QuerySource>(
        _ random: RandomQuery<Source>, _ books: [RandomBook], values: [RandomBook], keys: [String], count: Int,
        _ context: String
    ) throws {
        let (all, isOrdered) = try random.expected(books)
        let expected = Array(all.dropFirst(random.skip).prefix(random.limit))
        #expect(count == expected.count, "\(context)")
        #expect(keys == values.map { "b:\($0.number)" }, "\(context)")
        if isOrdered {
            #expect(values == expected, "\(context)")
        } else {
            #expect(values.count == expected.count && Set(keys).count == keys.count, "\(context)")
            #expect(values.allSatisfy(all.contains), "\(context)")
        }
    }

    private func check<Source: AsyncQuerySource>(
        _ source: ModelQuery<RandomBook, Source>, _ books: [RandomBook], count: Int, seed: UInt64
    ) async throws {
        var random = SeededGenerator(seed: seed)
        for number in 0..<count {
            let test = RandomQuery(source, &random)
            let query = test.query
            try check(
                test, books, values: try await query.values(), keys: try await query.keys(),
                count: try await query.count(), "query \(number): \(try await query.explain())")
            guard number % 4 == 0, test.limit > 0 else { continue }
            // The pages together are the result without a limit.
            var (rows, cursor): ([RandomBook], String?) = ([], nil)
            repeat {
                let page = try await query.limit(7).page(after: cursor)
                rows += page.values
                cursor = page.cursor
            } while cursor != nil
            let all = try test.expected(books)
            #expect(rows.count == max(0, all.all.count - test.skip), "pages of query \(number)")
            if all.isOrdered { #expect(rows == Array(all.all.dropFirst(test.skip)), "pages of query \(number)") }
            try await checkGroups(test, books, number)
        }
    }

    private func checkGroups<Source: AsyncQuerySource>(
        _ test: RandomQuery<Source>, _ books: [RandomBook], _ number: Int
    ) async throws {
        let all = try test.expected(books).all
        guard test.comparisons.isEmpty else { return }
        let groups = try await test.query.grouped(by: \.kind, .count, .sum(\.price), .max(\.year)).rows()
        let byKind = Dictionary(grouping: all, by: \.kind).sorted { $0.key.rawValue < $1.key.rawValue }
        let expected = byKind.dropFirst(test.skip).prefix(test.limit)
        #expect(groups.map(\.group) == expected.map(\.key), "groups of query \(number)")
        for (group, (_, members)) in zip(groups, expected) {
            #expect(group.results.0 == members.count, "groups of query \(number)")
            #expect(group.results.1 == members.reduce(0) { $0 + $1.price }, "groups of query \(number)")
            #expect(group.results.2 == members.map(\.year).max(), "groups of query \(number)")
        }
    }

    @Test("the library finds what plain Swift finds, with and without indexes", arguments: [true, false])
    func theLibraryAgreesWithSwift(hasIndexes: Bool) async throws {
        let books = Self.books(300)
        let cache = try await Cache.inMemory()
        if hasIndexes { try await cache.declareIndexes(RandomBook.indexes) }
        for book in books { try await cache.set(book, forKey: "b:\(book.number)") }
        try await check(cache.query(RandomBook.self), books, count: 1500, seed: hasIndexes ? 1 : 2)
        let snapshot = try await cache.snapshot()
        try await check(snapshot.query(RandomBook.self), books, count: 100, seed: 3)
        await snapshot.close()
        await cache.close()
    }

    @Test func theClientsAgreeWithSwift() async throws {
        let books = Self.books(200)
        let daemon = try DaemonProcess()
        let client = try await LarderClient.connect(socketPath: daemon.socketPath)
        let cache = client.cache("books", of: RandomBook.self)
        try await cache.declareIndexes(RandomBook.indexes)
        for book in books { try await cache.set(book, forKey: "b:\(book.number)") }
        try await check(cache.query(), books, count: 300, seed: 4)
        let blocking = try BlockingLarderClient(socketPath: daemon.socketPath, database: "books")
        var random = SeededGenerator(seed: 6)
        for number in 0..<100 {
            let test = RandomQuery(blocking.query(RandomBook.self), &random)
            try check(
                test, books, values: try test.query.values(), keys: try test.query.keys(),
                count: try test.query.count(), "query \(number)")
        }
        client.close()
    }

    @Test("predicates become conditions; the rest is evaluated on decoded models") func predicatesAreTranslated()
        async throws
    {
        let books = Self.books(100)
        let cache = try await Cache.inMemory()
        for book in books { try await cache.set(book, forKey: "b:\(book.number)") }
        for (index, predicate) in RandomPredicates.all.enumerated() {
            let query = cache.query(predicate)
            let explanation = try await query.explain()
            let isExact = index < RandomPredicates.exact.count
            #expect(explanation.contains("evaluated on the decoded models") != isExact, "\(predicate)\n\(explanation)")
            let expected = try books.filter { try predicate.evaluate($0) }
            #expect(try await Set(query.values().map(\.number)) == Set(expected.map(\.number)), "\(predicate)")
            #expect(try await query.count() == expected.count, "\(predicate)")
        }
        let text = try await cache.query(#Predicate<RandomBook> { $0.tags.isEmpty && $0.year > 1990 }).explain()
        #expect(text.contains("the predicate, because of KeyPath: evaluated on the decoded models"), "\(text)")
        // An evaluation that fails is an error, not a crash.
        let failing = #Predicate<RandomBook> { $0.rating! + 1 > 2 }
        let error = try await #require(throws: LarderError.self) { try await cache.query(failing).count() }
        #expect(error.code == .filterFailed)
    }

    @Test func clientsRemoveTheRowsOfQueries() async throws {
        let daemon = try DaemonProcess()
        let client = try await LarderClient.connect(socketPath: daemon.socketPath)
        let cache = client.cache("books", of: RandomBook.self)
        var random = SeededGenerator(seed: 2)
        for number in 0..<600 { try await cache.set(RandomBook(number, &random), forKey: "b:\(number)") }
        #expect(try await cache.query().where(keyPrefix: "b:1").remove() == 111)
        let blocking = try BlockingLarderClient(socketPath: daemon.socketPath, database: "books")
        let newer = RandomBook(0, &random)
        let query = blocking.query(RandomBook.self).where(keyPrefix: "b:2").filter { _ in
            try blocking.set(newer, forKey: "b:2")
            return true
        }
        #expect(try query.remove() == 110)
        #expect(try await cache.query().where(keyPrefix: "b:2").keys() == ["b:2"])
        #expect(try await cache.query().remove() == 379)
    }

    @Test func aCancelledTaskReturnsTheNumberOfRemovedEntries() async throws {
        let daemon = try DaemonProcess()
        let client = try await LarderClient.connect(socketPath: daemon.socketPath)
        let cache = client.cache("books", of: RandomBook.self)
        var random = SeededGenerator(seed: 2)
        let book = RandomBook(0, &random)
        for round in 0..<5 {
            try await cache.set((0..<5000).map { ("b:\($0)", book) })
            let task = Task { try await cache.query().remove() }
            while try await cache.count() > 5000 - round * 500 {}
            task.cancel()
            let removed = try await task.value
            #expect(try await cache.count() == 5000 - removed)
        }
        client.close()
    }

    @Test func clientsExplainTheirErrors() async throws {
        let daemon = try DaemonProcess()
        let client = try await LarderClient.connect(socketPath: daemon.socketPath)
        let cache = client.cache("books", of: RandomBook.self)
        var random = SeededGenerator(seed: 1)
        let book = RandomBook(1, &random)
        try await cache.declareIndexes(RandomBook.indexes)
        try await cache.declareIndexes([Index(\RandomBook.kind, at: "genre")])
        var error = try await #require(throws: LarderClientError.self) { try await cache.set(book, forKey: "b:1") }
        #expect(error.code == .encode && error.message.contains("'genre'"))
        error = try await #require(throws: LarderClientError.self) {
            try await cache.declareIndexes((0..<40).map { Index(\RandomBook.kind, at: "f\($0)") })
        }
        #expect(error.code == .invalidArgument && error.message.contains("32"))
        #expect(try await cache.dropIndexes(except: RandomBook.indexes) == 1, "only the one of the genre was created")
        error = try await #require(throws: LarderClientError.self) {
            try await cache.declareIndexes((0..<32).map { Index(\RandomBook.kind, at: "f\($0)") })
        }
        #expect(error.code == .server && error.message.contains("32"))
        #expect(try await cache.dropIndexes(except: RandomBook.indexes) == 0, "all or none")
        let blocking = try BlockingLarderClient(socketPath: daemon.socketPath, database: "books")
        error = try #require(throws: LarderClientError.self) {
            try blocking.declareIndexes((0..<32).map { Index(\RandomBook.kind, at: "f\($0)") })
        }
        #expect(error.code == .server && error.message.contains("32"))
        #expect(try blocking.dropIndexes(except: RandomBook.indexes) == 0, "all or none")
        #expect(try blocking.dropIndexes(except: []) > 0)
        #expect(try await cache.dropIndexes(except: []) == 0)
        try await cache.declareIndexes(RandomBook.indexes)
        error = try await #require(throws: LarderClientError.self) { try await cache.query().skip(20_000).values() }
        #expect(error.code == .invalidArgument && error.message.contains("page(after:)"))
        error = try await #require(throws: LarderClientError.self) { try await cache.query().where("a..b", 1).count() }
        #expect(error.code == .invalidArgument)
        let lists = client.cache("books", of: RandomBook.self, codec: .propertyList)
        error = try await #require(throws: LarderClientError.self) { try await lists.query().count() }
        #expect(error.message.contains("only models stored as JSON"))
        try await cache.setBytes(Array(#"{"author": "Bo"}"#.utf8), forKey: "x")
        error = try await #require(throws: LarderClientError.self) { try await cache.query().values() }
        #expect(error.code == .decode && error.key == "x")
        #expect(try await cache.query().select(\.author, \.rating).rows().map(\.0) == ["Bo"])
        try await cache.withSnapshot { snapshot in
            try await cache.remove("x")
            #expect(try await snapshot.query().where(\.author, "Bo").keys() == ["x"])
            #expect(try await snapshot.query().explain().contains("queries in a snapshot use no index"))
            #expect(try await cache.query().where(\.author, "Bo").keys().isEmpty)
        }
        #expect(try await cache.query().where(\.author, "Bo").explain().contains("the index author-"))
        client.close()
    }
}
