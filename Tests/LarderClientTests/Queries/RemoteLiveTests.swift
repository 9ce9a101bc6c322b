import LarderTestSupport
import Testing

@testable import LarderClient

/// Live queries of models in the client.
@Suite(.timeLimit(.minutes(5))) struct RemoteLiveTests {
    fileprivate struct Book: Codable, Equatable, Sendable {
        var author: String
        var year: Int
    }

    private typealias Live = LiveModels<Book, RemoteCache<Book>>

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

    @Test(arguments: [LiveServer.larderd, .larderdOnFourThreads])
    func differencesFollowTheFirstResult(_ server: LiveServer) async throws {
        try await server.run { (client: LarderClient) in
            let books = client.cache("books", of: Book.self)
            func store(_ year: Int, _ policy: EntryPolicy = .database) async throws {
                // Each entry has another time.
                try await Task.sleep(for: .milliseconds(2))
                try await books.set(Book(author: "Bo", year: year), forKey: "b:\(year)", policy: policy)
            }
            for year in 1...3 { try await store(year) }
            let sequence = books.live(books.query().where(\.author, "Bo").sorted(by: .stored, .reverse).limit(2))
            var live = sequence.makeAsyncIterator()
            var list: [ModelRow<Book>] = []
            _ = try await read(&live, &list, until: ["b:3", "b:2"])
            try await store(4)
            let moved = try await read(&live, &list, until: ["b:4", "b:3"])
            #expect(moved.removed == ["b:2 moved"])
            try await books.remove("b:3")
            let removed = try await read(&live, &list, until: ["b:4", "b:2"])
            #expect(removed.removed == ["b:3 removed"])
            // Another row replaces one that leaves in the same change.
            #expect((moved + removed).allSatisfy { $0.rows.count == 2 })
            try await store(5, .seconds(2))
            _ = try await read(&live, &list, until: ["b:5", "b:4"])
            let expired = try await read(&live, &list, until: ["b:4", "b:2"])
            #expect(expired.removed == ["b:5 expired"])
            // After a lost connection, the whole result follows.
            let clients = try await client.command("CLIENT", "LIST").string ?? ""
            let line = try #require(clients.split(separator: "\n").first { $0.contains(" cmd=query ") })
            let id = try #require(line.split(separator: " ").first?.dropFirst(3))
            _ = try await client.command("CLIENT", "KILL", "ID", String(id))
            try await books.remove("b:4")
            let reset = try await read(&live, &list, until: ["b:2", "b:1"])
            #expect(reset.map(\.isReset).contains(true))
            sequence.cancel()
            let end = try await live.next()
            #expect(end == nil)
            let other = client.cache("other", of: Book.self)
            let error = await #expect(throws: LarderClientError.self) {
                for try await _ in other.live(books.query()) {}
            }
            #expect(error?.code == .invalidArgument && error?.message.contains("another cache") == true)
        }
    }

    @Test("queries with more words than the daemon accepts are not sent") func longQueriesAreRefused() throws {
        let words = [[UInt8]](repeating: Array("1".utf8), count: 1_048_575)
        #expect(try Request.query(words.dropLast()).words.count == 1_048_575)
        let error = #expect(throws: LarderClientError.self) { try Request.query(words) }
        #expect(
            error?.code == .invalidArgument
                && error?.message.contains("values too many for one request, which can have about 524287") == true)
    }

    @Test func messagesOfOneChangeAreMarked() {
        let message = ["live", "1", "out", "key", "removed"].map { RESPValue.bulk(Array($0.utf8)) }
        let more = RESPValue.bulk(Array("more".utf8))
        #expect(!message.continues && (message + [more]).continues)
        #expect(!(Array(message.prefix(3)) + [more]).continues, "the text of an end")
    }

    @Test("entries that are stored together appear together", arguments: [LiveServer.larderd, .larderdOnFourThreads])
    func entriesStoredTogetherAppearTogether(_ server: LiveServer) async throws {
        try await server.run { (client: LarderClient) in
            let books = client.cache("books", of: Book.self)
            @Sendable func store(_ author: String, _ year: Int) async throws {
                try await books.set((10..<30).map { (key: "k\($0)", value: Book(author: author, year: year)) })
            }
            try await store("", 0)
            let writers = Task {
                try await withThrowingTaskGroup { group in
                    for author in ["Al", "Bo"] {
                        group.addTask { for year in 1...300 { try await store(author, year) } }
                    }
                    try await group.waitForAll()
                }
                try await store("", 1_000)
            }
            var wrong = 0
            for try await change in books.live(books.query()) {
                let first = change.values.first
                if change.rows.count != 20 || change.values.contains(where: { $0 != first }) { wrong += 1 }
                if first?.year == 1_000 { break }
            }
            #expect(wrong == 0)
            try await writers.value
        }
    }

    @Test func theSequenceEndsWithTheClient() async throws {
        try await LiveServer.larderd.run { (client: LarderClient) in
            let books = client.cache("books", of: Book.self)
            var live = books.live(books.query()).makeAsyncIterator()
            var list: [ModelRow<Book>] = []
            _ = try await read(&live, &list, until: [])
            client.close()
            let end = try await live.next()
            #expect(end == nil)
            await #expect(throws: LarderClientError.self) { for try await _ in books.live(books.query()) {} }
        }
    }

    @Test func errorsOfTheDaemonAreThrown() async throws {
        try await LiveServer.larderd.run { (client: LarderClient) in
            let books = client.cache("books", of: Book.self)
            let error = await #expect(throws: LarderClientError.self) {
                for try await _ in books.live(books.query().limit(20_000)) {}
            }
            #expect(error?.code == .server)
            try await books.set(Book(author: "Bo", year: 1), forKey: "b")
            var live = books.live(books.query()).makeAsyncIterator()
            var list: [ModelRow<Book>] = []
            _ = try await read(&live, &list, until: ["b"])
            try await client.cache("books", of: [Int].self).set([1], forKey: "other")
            let other = await #expect(throws: LarderClientError.self) { while try await live.next() != nil {} }
            #expect(other?.code == .decode)
        }
    }
}

extension [LiveChange<RemoteLiveTests.Book>] {
    /// The removed keys with their reasons.
    fileprivate var removed: [String] {
        flatMap { change in change.removals.map { "\($0.key) \($0.reason)" } }
    }
}
