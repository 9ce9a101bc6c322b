import Foundation
import Larder
import LarderClient
import LarderTestSupport
import Testing

/// Tests schemas and references in both clients.
@Suite(.timeLimit(.minutes(2))) struct RemoteSchemaTests {
    private struct Book: Codable, Equatable, Sendable {
        var title = "Sea"
        var price = 5.0
        var language = "en"
        var sequel: Reference<Book>?
        var related: [Reference<Book>] = []
    }

    private static let schema = Schema(Book.self, version: 2, older: .upgrade { $0["price", default: 1.5] })
        .check(\.price, 0...10).default(\.language, "en").default(\.related, [])

    private let daemon: DaemonProcess
    private let client: LarderClient
    private let books: RemoteCache<Book>

    init() async throws {
        daemon = try DaemonProcess()
        client = try await LarderClient.connect(socketPath: daemon.socketPath)
        books = client.cache("books", of: Book.self, schema: Self.schema)
    }

    private func expectRefusal(_ operation: String = "SET", _ body: () async throws -> Void) async {
        let error = await #expect(throws: LarderClientError.self) { try await body() }
        #expect(error?.code == .encode && error?.operation == operation)
        #expect(error?.message.contains("'price' is not within") == true, "\(error as Any)")
    }

    @Test func theAsynchronousClientFollowsTheSchema() async throws {
        try await books.set(Book(), forKey: "a", tags: ["t"])
        await expectRefusal { try await books.set(Book(price: 11), forKey: "b") }
        await expectRefusal { _ = try await books.setIfAbsent(Book(price: 11), forKey: "b") }
        await expectRefusal { try await books.update(forKey: "a") { $0?.price = -1 } }
        await expectRefusal("EDIT") { _ = try await books.edit("a") { $0.increment(\.price, by: 6) } }
        await expectRefusal { _ = try await books.value(forKey: "b") { Book(price: 11) } }
        #expect(try await books.count() == 1)
        #expect(try await books.edit("a") { $0.increment(\.price, by: 5) }.price == 10)
        #expect(try await books.tags(forKey: "a") == ["t"])
        let missing = await #expect(throws: LarderClientError.self) {
            try await books.edit("x") { $0.set(\.price, to: 1) }
        }
        #expect(missing?.code == .noSuchEntry)
        try await books.setBytes(Array(#"{"title":"Old"}"#.utf8), forKey: "old")
        let expected = Book(title: "Old", price: 1.5)
        #expect(try await books.value(forKey: "old") == expected)
        #expect(try await books.query().where(\.title, "Old").values() == [expected])
        // Concurrent edits with checks are not lost.
        try await books.set(Book(price: 0), forKey: "n")
        try await withThrowingTaskGroup { [books] group in
            for _ in 0..<5 {
                group.addTask { _ = try await books.edit("n") { $0.increment(\.price) } }
            }
            try await group.waitForAll()
        }
        #expect(try await books.value(forKey: "n")?.price == 5)
        client.close()
    }

    @Test("edits leave entries alone that are older than the schema") func olderEntriesAreNotEdited() async throws {
        struct Item: Codable, Sendable {
            var title = "Sea"
            var price = 5.0
        }
        let schema = Schema(
            Item.self, version: 2,
            older: .upgrade { fields in
                fields.rename("name", to: "title")
                if let cents = fields.value("cents", as: Int.self) { fields.set("price", to: Double(cents) / 100) }
            })
        let items = client.cache("items", of: Item.self, schema: schema)
        try await items.set(Item(), forKey: "new")
        for price in [6.0, 7] { #expect(try await items.edit("new") { $0.increment(\.price) }.price == price) }
        let old = Array(#"{"name":"Old","cents":250}"#.utf8)
        try await items.setBytes(old, forKey: "old")
        await #expect(throws: LarderClientError.self) { try await items.edit("old") { $0.increment(\.price) } }
        #expect(try await items.bytes(forKey: "old") == old)
        client.close()
    }

    @Test func theBlockingClientFollowsTheSchema() throws {
        let client = try BlockingLarderClient(socketPath: daemon.socketPath, database: "books", schema: Self.schema)
        try client.set(Book(), forKey: "a")
        for body in [
            { try client.set(Book(price: 11), forKey: "b") },
            { try client.edit("a", of: Book.self) { $0.set(\.price, to: 11) } },
        ] as [() throws -> Any] {
            #expect(throws: LarderClientError.self) { _ = try body() }
        }
        #expect(try client.edit("a", of: Book.self) { $0.set(\.price, to: 9) }.price == 9)
        try client.setBytes(Array(#"{"title":"Old"}"#.utf8), forKey: "old")
        #expect(try client.value(Book.self, forKey: "old") == Book(title: "Old", price: 1.5))
        let error = #expect(throws: LarderClientError.self) {
            _ = try BlockingLarderClient(socketPath: daemon.socketPath, schema: Schema(Book.self, version: 0))
        }
        #expect(error?.code == .invalidArgument)
        client.close()
    }

    @Test func referencesAreLoadedInTheClients() async throws {
        let first = Book(title: "1", sequel: Reference("2"), related: [Reference("3"), Reference("x")])
        try await books.set(first, forKey: "1")
        try await books.set(Book(title: "2", sequel: Reference("1")), forKey: "2")
        try await books.set(Book(title: "3"), forKey: "3")
        let found = try await books.query().sorted(by: \.title).including(\.sequel).including(\.related).values()
        #expect(found.map(\.sequel?.model?.title) == ["2", "1", nil])
        #expect(found[0].related.map(\.model?.title) == ["3", nil])
        let blocking = try BlockingLarderClient(socketPath: daemon.socketPath, database: "books")
        let page = try blocking.query(Book.self).where(\.sequel, Reference("1")).including(\.sequel).page()
        #expect(page.values.map(\.sequel?.model?.title) == ["1"])
        client.close()
    }
}
