import Foundation
import Larder
import LarderTestSupport
import Testing

/// Tests schemas in the library: checks in all calls that store models, defaults, upgrades on read and of all entries.
@Suite(.timeLimit(.minutes(2))) struct SchemaTests {
    private struct Book: Codable, Equatable, Sendable {
        var title = "Sea"
        var price = 5.0
        var isbn = "1234567890123"
        var year = 2000
        var language = "en"
        var note: String?
        var rank: Int?
    }

    private struct Author: Codable, Equatable, Sendable {
        var name: String
        var born: Int
    }

    private static let schema = Schema(
        Book.self, version: 2,
        older: .upgrade { fields in
            fields["year", default: 1900]
            fields.rename("name", to: "title")
            if let cents = fields.value("cents", as: Int.self) { fields.set("price", to: Double(cents) / 100) }
            fields.remove("cents")
        }
    )
    .check(\.price, 0...10_000).check(\.rank, 1...3).check(\.isbn) { $0.count == 13 }
    .default(\.language, "en").default(\.note, "none")

    private static let old = #"{"name":"Old","cents":250,"isbn":"1234567890123","x":1.50}"#
    private static let upgraded = Book(title: "Old", price: 2.5, year: 1900, note: "none")

    private let workspace: Workspace
    private let cache: Cache

    init() throws {
        workspace = try Workspace()
        cache = try Cache(
            named: "books", policy: .high, schema: Self.schema, directory: workspace.directory,
            options: workspace.options())
    }

    private func text(_ key: String) throws -> String? {
        try cache.bytes(forKey: key).map { String(decoding: $0, as: UTF8.self) }
    }

    // MARK: Checks

    @Test("a model that fails a check is stored by no call") func checksPrecedeEveryStore() throws {
        let bad = Book(price: 10_001)
        try cache.set(Book(), forKey: "a", policy: .never)
        let text = expectError(.encoding) { try cache.set(bad, forKey: "b") }
        #expect(text.contains("the property 'price' is not within 0.0...10000.0"), "\(text)")
        expectError(.encoding) { _ = try cache.setIfAbsent(bad, forKey: "b") }
        expectError(.encoding) { _ = try cache.setIfPresent(bad, forKey: "a") }
        expectError(.encoding) { try cache.set(Book(isbn: "1"), forKey: "b") }
        expectError(.encoding) { try cache.set(Book(rank: 4), forKey: "b") }
        expectError(.encoding) { try cache.set(Book(price: .nan), forKey: "b") }
        expectError(.encoding) { try cache.set(Optional(bad), forKey: "b") }
        expectError(.encoding) { try cache.update(Book.self, forKey: "a") { $0?.isbn = "" } }
        let edit = expectError(.encoding) { try cache.edit("a", of: Book.self) { $0.increment(\.price, by: 1e5) } }
        #expect(edit.contains("edit") && !edit.contains("set"), "\(edit)")
        let batch = cache.makeBatch()
        expectError(.encoding) { try batch.set(bad, forKey: "b") }
        #expect(try cache.count() == 1 && cache.value(Book.self, forKey: "a") == Book(note: "none"))
        try cache.set(Book(rank: 3), forKey: "b")
        #expect(try cache.edit("a", of: Book.self) { $0.increment(\.price) }.price == 6)
    }

    @Test func asynchronousCallsCheckModels() async throws {
        let bad = Book(price: -1)
        await #expect(throws: LarderError.self) { try await cache.set(bad, forKey: "b") }
        await #expect(throws: LarderError.self) { try await cache.value(forKey: "b") { bad } }
        #expect(try await cache.count() == 0)
    }

    @Test func modelsOfAnOriginAreChecked() async throws {
        let good = String(decoding: try JSONEncoder().encode(Book()), as: UTF8.self)
        let bad = good.replacing("1234567890123", with: "1")
        let origin = ScriptedCacheOrigin(["good": good, "bad": bad])
        let books = OriginCache(cache, origin: origin)
        #expect(try await books.value(Book.self, forKey: "good") == Book(note: "none"))
        await #expect(throws: LarderError.self) { try await books.value(Book.self, forKey: "bad") }
        await #expect(throws: LarderError.self) { try await books.set(Book(isbn: ""), forKey: "new") }
        #expect(try await cache.count() == 1)
        #expect(origin.writes.isEmpty)
    }

    @Test func otherTypesHaveTheirOwnRules() throws {
        let authors = Schema(Author.self).check(\.name) { !$0.isEmpty }
        let cache = try Cache(
            named: "both", policy: .high, schema: Self.schema, authors, directory: workspace.directory,
            options: workspace.options())
        expectError(.encoding) { try cache.set(Author(name: "", born: 0), forKey: "a") }
        try cache.set(Author(name: "Bo", born: 0), forKey: "a")
        expectError(.encoding) { try cache.set(Book(isbn: ""), forKey: "b") }
        try cache.set("any text", forKey: "c")
    }

    @Test("a schema that contradicts itself, or another one, is refused when the cache is opened")
    func impossibleSchemasAreRefused() throws {
        let plain = Schema(Author.self)
        func openCache(_ schema: Schema<Author>, _ change: (inout CacheOptions) -> Void = { _ in }) throws {
            _ = try Cache(
                named: "i", policy: .high, schema: schema, directory: workspace.directory,
                options: workspace.options(change))
        }
        for (schema, reason) in [
            (plain.default(\.name.count, 1), "is not a stored property"), (Schema(version: 0), "less than 1"),
            (plain.default(\.born, 1).default(\.born, 2), "'born' has two defaults"),
            (plain.check(\.born, 5..<5), "'born' is not within 5..<5, which is an empty range"),
            (plain.check(\.born, 5...).default(\.born, 4), "the default of the property 'born' is not within 5..."),
            (plain.check(\.born, ..<5).default(\.born, 5), "the default of the property 'born' is not within ..<5"),
            (plain.check(\.born, ...5).default(\.born, 6), "the default of the property 'born' is not within ...5"),
            (plain.check(\.born, 0...9).default(\.born, 50), "the default of the property 'born' is not within 0...9"),
            (plain.default(\.born, 50).check(\.born) { $0 < 9 }, "the default of the property 'born' fails its check"),
        ] as [(Schema<Author>, String)] {
            let text = expectError(.invalidArgument) { try openCache(schema) }
            #expect(text.contains(reason), "\(text)")
        }
        let text = expectError(.invalidArgument) {
            _ = try Cache(
                named: "i", policy: .high, schema: plain, Schema(Author.self, version: 2),
                directory: workspace.directory, options: workspace.options())
        }
        #expect(text.contains("several schemas: version 1 of Author, version 2 of Author"), "\(text)")
        expectError(.invalidArgument) { try openCache(plain.default(\.born, 1)) { $0.codec = .propertyList } }
        try openCache(plain.check(\.born, 0...)) { $0.codec = .propertyList }
    }

    // MARK: Reading

    @Test func missingFieldsHaveTheirDefaults() throws {
        let text = #"{"title":"T","price":1,"isbn":"1234567890123","year":1}"#
        try cache.setBytes(Array(text.utf8), forKey: "a")
        let expected = Book(title: "T", price: 1, year: 1, language: "en", note: "none")
        #expect(try cache.value(Book.self, forKey: "a") == expected)
        #expect(try cache.query(Book.self).values() == [expected])
        #expect(try cache.query(Book.self).select(\.language, \.note, \.rank).rows().map(\.0) == ["en"])
        let english = cache.query(Book.self).filter { $0.language == "en" }
        #expect(try english.count() == 1)
        let read = try cache.withSnapshot { try $0.value(Book.self, forKey: "a") }
        #expect(read == expected)
        // Reading changes nothing.
        #expect(try self.text("a") == text)
        // A cache without the schema does not see the models that were decoded with it.
        let plain = try workspace.cache()
        expectError(.decoding) { _ = try plain.value(Book.self, forKey: "a") }
    }

    @Test func olderEntriesAreUpgradedWhenTheyAreRead() throws {
        try cache.setBytes(Array(Self.old.utf8), forKey: "a")
        #expect(try cache.value(Book.self, forKey: "a") == Self.upgraded)
        #expect(try cache.query(Book.self).values() == [Self.upgraded])
        #expect(try text("a") == Self.old)
        // An update stores the upgraded model.
        try cache.update(Book.self, forKey: "a") { $0?.rank = 1 }
        #expect(try text("a")?.contains(#""title":"Old""#) == true)
        try cache.setBytes(Array(#"{"name":5}"#.utf8), forKey: "b")
        let error = expectError(.decoding) { _ = try cache.value(Book.self, forKey: "b") }
        #expect(error.contains("it cannot be upgraded to version 2 of Book"), "\(error)")
        try cache.setBytes(Array("[1".utf8), forKey: "c")
        let text = expectError(.decoding) { _ = try cache.value(Book.self, forKey: "c") }
        #expect(text.contains("version 2 of Book: it is not JSON"), "\(text)")
    }

    private struct Item: Codable, Equatable, Sendable {
        var title: String
        var price: Double
        var note = "new"
    }

    private func set(_ texts: [String], in cache: Cache) throws {
        for (number, text) in texts.enumerated() { try cache.setBytes(Array(text.utf8), forKey: "\(number)") }
    }

    @Test("an upgrade runs before defaults hide what it would read; if it fails, there are the defaults")
    func upgradesPrecedeDefaults() throws {
        struct Refusal: Error {}
        let schema = Schema(
            Item.self, version: 2,
            older: .upgrade { fields in
                if fields.value("title", as: String.self) == "bad" { throw Refusal() }
                fields.rename("cost", to: "price")
            })
        let cache = try Cache(
            named: "items", policy: .high, schema: schema.default(\.price, 0).default(\.note, "-"),
            directory: workspace.directory, options: workspace.options())
        try set(
            [
                #"{"title":"a","cost":18.5}"#, #"{"title":"b"}"#, #"{"title":"bad","cost":1}"#,
                #"{"title":"d","cost":"x","note":"n"}"#, #"{"title":"e","price":2,"note":"n"}"#,
            ], in: cache)
        let items = [
            Item(title: "a", price: 18.5, note: "-"), Item(title: "b", price: 0, note: "-"),
            Item(title: "bad", price: 0, note: "-"), Item(title: "d", price: 0, note: "n"),
            Item(title: "e", price: 2, note: "n"),
        ]
        for (number, item) in items.enumerated() {
            #expect(try cache.value(Item.self, forKey: "\(number)") == item)
        }
        let progress = try cache.upgradeAll(Item.self)
        #expect(progress.examined == 5 && progress.upgraded == 4 && progress.failed == 0)
        #expect(try cache.bytes(forKey: "0") == Array(#"{"title":"a","price":18.5,"note":"-"}"#.utf8))
        #expect(try cache.query(Item.self).sorted(by: .key).values() == items)
    }

    @Test func theErrorNamesTheFieldThatHasNoDefault() throws {
        let cache = try Cache(
            named: "items", policy: .high, schema: Schema(Item.self).default(\.title, "-").default(\.note, "-"),
            directory: workspace.directory, options: workspace.options())
        try set([#"{"x":1}"#], in: cache)
        let text = expectError(.decoding) { _ = try cache.value(Item.self, forKey: "0") }
        #expect(text.contains("the field 'price' is missing"), "\(text)")
    }

    @Test func editsOfOlderEntriesAreExplained() throws {
        try cache.setBytes(Array(Self.old.utf8), forKey: "a")
        let text = expectError(.invalidArgument) { try cache.edit("a", of: Book.self) { $0.increment(\.price) } }
        #expect(text.contains("upgrade it first, with update or upgradeAll"), "\(text)")
        let notFinite = expectError(.invalidArgument) {
            try cache.edit("a", of: Book.self) { $0.increment(\.price, by: .nan) }
        }
        #expect(notFinite.contains("'price'") && !notFinite.contains("[0]"), "\(notFinite)")
    }

    @Test("current models keep the text that is stored without a schema") func textsHaveNoMark() throws {
        let book = Book(note: "x", rank: 2)
        try cache.set(book, forKey: "a")
        try workspace.cache("plain").set(book, forKey: "a")
        #expect(try cache.bytes(forKey: "a") == workspace.cache("plain").bytes(forKey: "a"))
    }

    // MARK: All entries

    @Test("upgradeAll keeps lifetimes and tags, and leaves other entries alone") func allEntriesAreUpgraded() throws {
        let other = try Cache.inMemory()
        let message = expectError(.invalidArgument) { try other.upgradeAll(Book.self) }
        #expect(message.contains("no schema of Book"), "\(message)")
        for number in 0..<600 {
            let bytes = Array(Self.old.utf8)
            switch number % 3 {
            case 0: try cache.setBytes(bytes, forKey: "b:\(number)", tags: ["t"])
            case 1: try cache.setBytes(bytes, forKey: "b:\(number)", policy: .seconds(20), tags: ["u"])
            default: try cache.set(Book(note: "n"), forKey: "b:\(number)", policy: .never)
            }
        }
        try cache.setBytes(Array("text".utf8), forKey: "b:x")
        try cache.setBytes(Array(Self.old.utf8), forKey: "other")
        workspace.time.advance(milliseconds: 10_000)
        let before = try (0..<600).map { try #require(try cache.info(forKey: "b:\($0)")).deadlineMilliseconds }
        var calls: [UpgradeProgress] = []
        let progress = try cache.upgradeAll(Book.self, keyPrefix: "b:") { calls.append($0) }
        #expect(progress.examined == 601 && progress.upgraded == 400 && progress.failed == 1 && calls.count == 3)
        #expect(progress.firstFailure?.contains("'b:x'") == true, "\(progress)")
        #expect(try (0..<600).map { try cache.info(forKey: "b:\($0)")?.deadlineMilliseconds } == before)
        let stored = #"{"isbn":"1234567890123","x":1.50,"year":1900,"title":"Old","price":2.5,"#
        #expect(try text("b:0") == stored + #""language":"en","note":"none"}"#)
        #expect(try text("other") == Self.old && text("b:x") == "text")
        #expect(try cache.upgradeAll(Book.self, keyPrefix: "b:").upgraded == 0)
        #expect(try cache.query(Book.self).where(keyPrefix: "b:").where(\.year, 1900).count() == 400)
        try cache.removeAll(tagged: "t")
        #expect(try cache.query(Book.self).where(keyPrefix: "b:").where(\.year, 1900).count() == 200)
        workspace.time.advance(milliseconds: 11_000)
        #expect(try cache.query(Book.self).where(keyPrefix: "b:").where(\.year, 1900).count() == 0)
        struct Stop: Error {}
        #expect(throws: Stop.self) { try cache.upgradeAll(Book.self) { _ in throw Stop() } }
    }

    @Test("upgradeAll in a task is the form that can be cancelled, with and without a closure")
    func upgradesOfTasksCanBeCancelled() async throws {
        for number in 0..<300 { try await cache.setBytes(Array(Self.old.utf8), forKey: "\(number)") }
        let cache = cache
        let plain = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return try await cache.upgradeAll(Book.self)
        }
        await #expect(throws: CancellationError.self) { try await plain.value }
        let reporting = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return try await cache.upgradeAll(Book.self) { progress in #expect(progress.examined == 256) }
        }
        await #expect(throws: CancellationError.self) { try await reporting.value }
    }

    @Test func anEntryThatChangesDuringItsUpgradeKeepsTheChange() async throws {
        for number in 0..<300 { try await cache.setBytes(Array(Self.old.utf8), forKey: "\(number)") }
        let cache = cache
        async let progress = cache.upgradeAll(Book.self)
        for number in 0..<300 where number % 2 == 0 { try await cache.set(Book(note: "new"), forKey: "\(number)") }
        for number in 0..<300 where number % 5 == 1 { try await cache.remove("\(number)") }
        #expect(try await progress.failed == 0)
        for number in 0..<300 {
            let value = try await cache.value(Book.self, forKey: "\(number)")
            if number % 5 == 1 {
                #expect(value == nil)
            } else {
                #expect(value == (number % 2 == 0 ? Book(note: "new") : Self.upgraded))
            }
        }
    }
}
