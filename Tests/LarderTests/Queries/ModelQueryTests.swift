import Foundation
import Larder
import LarderTestSupport
import Testing

/// Tests queries of models in the library: each call, its errors, and the indexes that it uses.
@Suite(.timeLimit(.minutes(2))) struct ModelQueryTests {
    struct Publisher: Codable, Equatable, Sendable {
        var name: String
        var city: String?
    }

    enum Kind: String, Codable, Sendable { case novel, poem }

    struct Book: Codable, Equatable, Sendable {
        var title: String
        var author: String
        var year: Int
        var price: Double
        var tags: [String] = []
        var shelves: Set<Int> = []
        var bought: Date?
        var id = UUID()
        var kind = Kind.novel
        var publisher: Publisher?
        var cost: Decimal = 0
        /// Named like a word of a query.
        var limit = 0
        var not = false
        var isbn = ""

        var label: String { title + author }

        enum CodingKeys: String, CodingKey {
            case title, author, year, price, tags, shelves, bought, id, kind, publisher, cost, limit, not
            case isbn = "ISBN"
        }
    }

    static let books = [
        Book(
            title: "Sea", author: "Bo", year: 1990, price: 8.5, tags: ["x", "y"], shelves: [1, 2],
            bought: Date(timeIntervalSince1970: 1e9), publisher: Publisher(name: "P", city: "Ulm"), cost: 1.25,
            limit: 3, not: true, isbn: "1"),
        Book(title: "Land", author: "Al", year: 2000, price: 5, tags: ["x"], limit: 1, isbn: "2"),
        Book(
            title: "A seal", author: "Bo", year: 2010, price: 12, bought: Date(timeIntervalSince1970: 2e9),
            kind: .poem, publisher: Publisher(name: "Q"), limit: 2, isbn: "3"),
        Book(title: "Sky*", author: "Cy", year: 1999, price: 5, tags: ["z"], shelves: [2], isbn: "4"),
    ]

    private let workspace: Workspace
    private let cache: Cache
    private let indexes = [
        Index(\Book.author), Index(\Book.year, .descending(\Book.price)), Index(\Book.tags, prefix: "book:"),
        Index(\Book.isbn, at: "ISBN"), Index(.stored),
    ]

    init() throws {
        workspace = try Workspace()
        cache = try Cache(
            named: "books", policy: .high, indexes: indexes, directory: workspace.directory,
            options: workspace.options())
        for (index, book) in Self.books.enumerated() { try cache.set(book, forKey: "book:\(index)") }
    }

    private func titles(_ query: ModelQuery<Book, Cache>) throws -> [String] {
        let values = try query.values()
        #expect(try query.keys() == values.map { value in "book:\(Self.books.firstIndex(of: value) ?? -1)" })
        #expect(try query.count() == values.count)
        return values.map(\.title)
    }

    private var all: ModelQuery<Book, Cache> { cache.query(Book.self) }

    @Test func conditionsFindModels() throws {
        #expect(try titles(all.where(\.author, "Bo").sorted(by: \.price)) == ["Sea", "A seal"])
        #expect(try titles(all.where(\.author, in: ["Al", "Cy"]).sorted(by: \.title)) == ["Land", "Sky*"])
        #expect(try titles(all.where(\.author, in: [])).isEmpty)
        #expect(try titles(all.where(\.year, 1990..<2000).sorted(by: \.year)) == ["Sea", "Sky*"])
        #expect(try titles(all.where(\.year, 1990...2000).sorted(by: \.year, .reverse)) == ["Land", "Sky*", "Sea"])
        #expect(try titles(all.where(\.year, 2000...).sorted(by: \.year)) == ["Land", "A seal"])
        #expect(try titles(all.where(\.year, ..<1999)) == ["Sea"])
        #expect(try titles(all.where(\.year, ...1999).sorted(by: \.year)) == ["Sea", "Sky*"])
        #expect(try titles(all.where(\.title, prefix: "S").sorted(by: \.title)) == ["Sea", "Sky*"])
        #expect(try titles(all.where(\.title, like: "*ea?")) == ["A seal"])
        #expect(try titles(all.where(\.tags, contains: "x").sorted(by: \.title)) == ["Land", "Sea"])
        #expect(try titles(all.where(\.tags, containsAll: ["x", "y"])) == ["Sea"])
        #expect(try titles(all.where(\.tags, containsAll: [])).count == 4)
        #expect(try titles(all.where(\.tags, ["x"])) == ["Land"])
        #expect(try titles(all.where(\.shelves, contains: 2).sorted(by: \.title)) == ["Sea", "Sky*"])
        #expect(try titles(all.where(keyPrefix: "book:").where(\.tags, contains: "z")) == ["Sky*"])
        #expect(try titles(all.where(keyPrefix: "other:")).isEmpty)
    }

    @Test("values equal what is stored: dates, UUIDs, enumerations, decimals, optionals and nested properties")
    func valuesAreEncodedLikeModels() throws {
        let first = Self.books[0]
        #expect(try titles(all.where(\.bought, first.bought)) == ["Sea"])
        #expect(try titles(all.where(\.bought, nil).sorted(by: \.title)) == ["Land", "Sky*"])
        #expect(try titles(all.where(\.bought, Date(timeIntervalSince1970: 1.5e9)...)) == ["A seal"])
        #expect(try titles(all.where(\.id, first.id)) == ["Sea"])
        #expect(try titles(all.where(\.kind, .poem)) == ["A seal"])
        #expect(try titles(all.where(\.cost, 1.25)) == ["Sea"])
        #expect(try titles(all.where(\.cost, 1...2)) == ["Sea"])
        #expect(try titles(all.where(\.publisher?.city, "Ulm")) == ["Sea"])
        #expect(
            try titles(all.where(\.publisher?.name, in: ["P", nil]).sorted(by: \.title)) == ["Land", "Sea", "Sky*"])
        #expect(try titles(all.where(\.publisher, Publisher(name: "Q"))) == ["A seal"])
        #expect(try titles(all.where(\.price, 5).where(\.author, "Cy")) == ["Sky*"])
        #expect(try titles(all.where(\.not, true)) == ["Sea"])
        #expect(try titles(all.where(\.limit, 1...).sorted(by: \.limit)) == ["Land", "A seal", "Sea"])
        #expect(try titles(all.where("ISBN", "2")) == ["Land"])
        #expect(
            try titles(all.where(\.isbn, in: ["2", "4"], at: "ISBN").sorted(by: \.isbn, .reverse, at: "ISBN"))
                == ["Sky*", "Land"])
    }

    @Test func ordersSkipAndLimit() throws {
        #expect(
            try all.sorted(by: \.price).sorted(by: \.title, .reverse).values().map(\.title)
                == ["Sky*", "Land", "Sea", "A seal"])
        #expect(try all.sorted(by: \.title).skip(1).limit(2).values().map(\.title) == ["Land", "Sea"])
        #expect(try all.sorted(by: \.title).skip(3).count() == 1)
        #expect(try all.limit(0).values().isEmpty)
        #expect(try all.sorted(by: .key, .reverse).limit(1).keys() == ["book:3"])
        workspace.time.advance(milliseconds: 10_000)
        try cache.set(Self.books[0], forKey: "book:0")
        #expect(try all.sorted(by: .stored, .reverse).limit(1).keys() == ["book:0"])
        let stored = try #require(try cache.info(forKey: "book:0")).storedAt
        #expect(try all.where(.stored, ..<stored).count() == 3)
        #expect(try all.where(.stored, stored...).keys() == ["book:0"])
    }

    @Test func removeRemovesTheRows() throws {
        #expect(try all.where(\.author, "Bo").sorted(by: \.year).limit(1).remove() == 1)
        #expect(try all.sorted(by: .key).keys() == ["book:1", "book:2", "book:3"])
        #expect(try all.filter { $0.year < 2000 }.remove() == 1)
        #expect(try all.sorted(by: .key).skip(1).remove() == 1)
        #expect(try all.keys() == ["book:1"])
        let snapshot = try cache.snapshot()
        let error = #expect(throws: LarderError.self) { try snapshot.query(Book.self).remove() }
        #expect(error?.code == .invalidArgument && error?.message.contains("snapshot") == true)
        #expect(try all.remove() == 1)
        #expect(try all.remove() == 0)
        for number in 0..<2_500 { try cache.set(Self.books[number % 4], forKey: "many:\(number)") }
        #expect(try all.where(\.author, "Bo").remove() == 1_250)
        #expect(try all.count() == 1_250)
    }

    @Test func tasksRemoveTheRows() async throws {
        #expect(try await all.where(\.author, "Bo").remove() == 2)
        #expect(try await all.sorted(by: .key).keys() == ["book:1", "book:3"])
    }

    @Test("an entry that is stored again between the query and its removal stays")
    func removeKeepsNewerEntries() throws {
        let query = all.filter { [cache] book in
            if book.title == "Sea" {
                var newer = book
                newer.price += 1
                try cache.set(newer, forKey: "book:0")
            }
            return true
        }
        #expect(try query.remove() == 3)
        #expect(try all.keys() == ["book:0"])
    }

    @Test func pagesFollowEachOther() throws {
        for query in [all.sorted(by: \.title), all.where(\.author, "Bo"), all.filter { $0.year > 1995 }] {
            var (keys, cursor): ([String], String?) = ([], nil)
            repeat {
                let page = try query.limit(1).page(after: cursor)
                #expect(page.keys.count == page.values.count && page.keys.count <= 1)
                keys += page.keys
                cursor = page.cursor
            } while cursor != nil
            #expect(try keys == query.keys())
        }
    }

    @Test func filtersAreEvaluatedBeforeSkipLimitCountAndGroups() throws {
        let long = all.filter { $0.label.count > 5 }.sorted(by: \.year)
        #expect(try long.values().map(\.title) == ["Sky*", "Land", "A seal"])
        #expect(try long.skip(1).limit(1).values().map(\.title) == ["Land"])
        #expect(try long.skip(1).count() == 2)
        #expect(try long.limit(2).keys() == ["book:3", "book:1"])
        #expect(try long.select(\.title, \.year).rows().map(\.0) == ["Sky*", "Land", "A seal"])
        let groups = try all.filter { $0.label.count > 5 }.grouped(by: \.author, .count, .sum(\.price)).rows()
        #expect(groups.map(\.group) == ["Al", "Bo", "Cy"] && groups.map(\.results.0) == [1, 1, 1])
        #expect(groups.map(\.results.1) == [5, 12, 5])
        #expect(try long.explain().contains("a closure: evaluated on the decoded models"))
        struct Refusal: Error {}
        #expect(expectError(.filterFailed) { _ = try all.filter { _ in throw Refusal() }.count() }.contains("Refusal"))
    }

    @Test func groupsHaveTypedResults() throws {
        let rows = try all.grouped(by: \.author, .count, .min(\.year), .max(\.price), .sum(\.limit)).rows()
        #expect(rows.map(\.group) == ["Al", "Bo", "Cy"])
        #expect(rows[1].results == (2, 1990, 12, 5))
        let tags = try all.grouped(byElementsOf: \.tags, .count).rows()
        #expect(tags.map(\.group) == ["x", "y", "z"] && tags.map(\.results) == [2, 1, 1])
        let kinds = try all.skip(1).grouped(by: \.kind, .count).rows()
        #expect(kinds.map(\.group) == [.poem] && kinds.map(\.results) == [1])
        var counts: [String: Int] = [:]
        for (author, count) in try all.grouped(by: \.author, .count).rows() { counts[author] = count }
        #expect(counts == ["Al": 1, "Bo": 2, "Cy": 1])
    }

    @Test func selectionsReadSomeProperties() async throws {
        var found: [String] = []
        for try await (title, city) in all.where(\.author, "Bo").sorted(by: \.title).select(\.title, \.publisher?.city)
        {
            found.append("\(title) \(city ?? "-")")
        }
        #expect(found == ["A seal -", "Sea Ulm"])
        #expect(try await all.where(\.year, 2000).select(\.price).rows() == [5])
        let error = try await #require(throws: LarderError.self) { try await all.select(\.label).rows() }
        #expect(error.message.contains("is not a plain stored property"))
    }

    @Test func asynchronousFormsReturnTheSame() async throws {
        let query = all.where(\.author, "Bo").sorted(by: \.price)
        #expect(try await query.values().map(\.title) == ["Sea", "A seal"])
        #expect(try await query.keys() == ["book:0", "book:2"])
        #expect(try await query.count() == 2)
        #expect(try await query.limit(1).page().cursor != nil)
        #expect(try await all.where(\.author, "Bo").grouped(by: \.author, .count).rows().map(\.results) == [2])
        #expect(try await query.explain().contains("the index author-"))
        #expect(try await cache.query(#Predicate<Book> { $0.year == 2000 }).values().map(\.title) == ["Land"])
        let groups = try await all.grouped(by: \.author, .count).rows()
        for (author, count) in groups { #expect(count == (author == "Bo" ? 2 : 1)) }
        let error = await #expect(throws: LarderError.self) { try await all.where(\.isbn, "2").keys() }
        #expect(error?.message.contains("pass the name in the JSON, as in at: \"name\"") == true)
    }

    @Test func indexesAreUsed() throws {
        #expect(try all.where(\.author, "Bo").explain().contains("the index author-"))
        #expect(try all.where(\.year, 1990..<2000).explain().contains("(ON year price DESC)"))
        #expect(try all.where(\.tags, contains: "x").explain().contains("no index is used"))
        #expect(
            try all.where(keyPrefix: "book:").where(\.tags, contains: "x").explain().contains("(PREFIX book: ON tags)"))
        #expect(try all.where("ISBN", "2").explain().contains("(ON ISBN)"))
        #expect(try all.where(.stored, ..<Date.now).explain().contains("(ON @stored)"))
        #expect(try all.where("auhtor", "Bo").explain().contains("did you mean 'author'?"))
        // Declaring again changes nothing.
        let before = try all.where(\.author, "Bo").explain()
        try cache.declareIndexes(indexes)
        #expect(try all.where(\.author, "Bo").explain() == before)
    }

    struct Shop: Codable, Sendable {
        struct Spot: Codable, Sendable { var longitude, lat: Double }

        var at: [Double]
        var spot: Spot?
        var branches: [[Double]]
    }

    @Test func placesAreFoundByDistanceAndInBoxes() throws {
        try cache.declareIndexes([Index(geo: \Shop.at), Index(geo: \Shop.spot, prefix: "shop:")])
        for (key, longitude) in [("a", 179.9), ("b", -179.95), ("c", 170), ("d", 500)] {
            let at = [longitude, 10]
            try cache.set(
                Shop(at: at, spot: .init(longitude: longitude, lat: 10), branches: [[0, 0], at]), forKey: "shop:\(key)")
        }
        let shops = cache.query(Shop.self).where(keyPrefix: "shop:")
        let near = shops.where(\.at, near: [180, 10], within: 20_000)
        #expect(try near.keys() == ["shop:b", "shop:a"] && near.values().map(\.at[0]) == [-179.95, 179.9])
        #expect(try near.explain().contains("(GEO ON at)") && near.explain().contains("the distance of at"))
        #expect(try shops.where(\.at, near: [180, 10], within: 2e6).sorted(by: .key).limit(1).keys() == ["shop:a"])
        let spot = Shop.Spot(longitude: 170, lat: 10)
        let byDistance = shops.where(\.spot, near: spot, within: 1e7)
        #expect(try byDistance.keys() == ["shop:c", "shop:a", "shop:b"])
        #expect(try byDistance.explain().contains("(PREFIX shop: GEO ON spot)"))
        #expect(try byDistance.limit(2).page(after: byDistance.limit(1).page().cursor).keys == ["shop:a", "shop:b"])
        #expect(try shops.where(\.branches, near: [0.0, 0.0], within: 1).count() == 4)
        #expect(try shops.where(\.at, within: ([175, 0], [-175, 20])).keys() == ["shop:a", "shop:b"])
        #expect(try shops.where(\.at, within: ([-175, 0], [175, 20])).keys() == ["shop:c"])
        expectError(.invalidArgument) { _ = try shops.where(\.at, near: [1, 2, 3], within: 1).count() }
        expectError(.invalidArgument) { _ = try shops.where(\.at, near: [1, 200], within: 1).count() }
        expectError(.invalidArgument) { _ = try shops.where(\.at, near: [1, 2], within: -1).count() }
    }

    @Test("the first value of an index of places must be a place") func valuesThatAreNoPlacesAreRefused() throws {
        for (number, at) in [[52.5, 113.4], [13.4, 52.5, 34], [200, 10]].enumerated() {
            let cache = try workspace.cache("places\(number)")
            try cache.declareIndexes([Index(geo: \Shop.at), Index(geo: \Shop.spot), Index(geo: \Shop.branches)])
            for branches in [[], [[13.4, 52.5], at]] {
                let text = expectError(.encoding) { try cache.set(Shop(at: at, branches: branches), forKey: "a") }
                #expect(text.contains("the field 'at', which is not a place: a place is [longitude, lat"), "\(text)")
            }
            let valid = Shop(at: [13.4, 52.5], branches: [[13.4, 52.5], [-180, -90]])
            expectError(.encoding) { try cache.set(Shop(at: valid.at, branches: [at]), forKey: "a") }
            try cache.set(valid, forKey: "a")
            try cache.set(Shop(at: at, branches: [at]), forKey: "b")
        }
        let text = expectError(.invalidArgument) {
            _ = try cache.query(Shop.self).where(\.at, near: [52.5, 113.4], within: 1).count()
        }
        #expect(text.contains("[52.5, 113.4] is not a place: a place is [longitude, latitude]"), "\(text)")
    }

    private struct Email: Codable, Sendable {
        var raw: String

        init(_ raw: String) { self.raw = raw }

        init(from decoder: any Decoder) throws { raw = try decoder.singleValueContainer().decode(String.self) }

        func encode(to encoder: any Encoder) throws {
            var container = encoder.singleValueContainer()
            try container.encode(raw)
        }
    }

    private struct User: Codable, Sendable {
        struct Home: Codable, Sendable { var city: String? }

        var email: Email
        var other: Email?
        var home: Home?
    }

    @Test("a predicate on a property inside a value that is coded as one value is refused")
    func nestedPropertiesOfPredicatesAreCompared() throws {
        let cache = try workspace.cache("users")
        let home = User.Home(city: "Ulm")
        try cache.set(User(email: Email("a@x"), other: Email("b@x"), home: home), forKey: "u:1")
        for predicate in [
            #Predicate<User> { $0.email.raw == "a@x" }, #Predicate<User> { !($0.email.raw == "a@x") },
            #Predicate<User> { $0.other?.raw == "b@x" },
        ] {
            let text = expectError(.invalidArgument) { _ = try cache.query(predicate).keys() }
            #expect(text.contains("is stored as one value: use where(\\."), "\(text)")
        }
        #expect(try cache.query(#Predicate<User> { $0.home?.city == "Ulm" }).keys() == ["u:1"])
        #expect(try cache.query(#Predicate<User> { $0.home?.city == nil }).keys() == [])
    }

    @Test("queries examine all entries until an index is built") func anUnfinishedIndexIsNotUsed() throws {
        _ = try cache.sweep()
        try cache.declareIndexes([Index(\Book.title)])
        let query = all.where(\.title, "Sea")
        #expect(try query.explain().contains("no index is used") && query.keys() == ["book:0"])
        _ = try cache.sweep()
        #expect(try query.explain().contains("(ON title)") && query.keys() == ["book:0"])
    }

    @Test func snapshotsAreQueriedAsOfTheirMoment() throws {
        try cache.withSnapshot { snapshot in
            try cache.remove("book:0")
            #expect(try snapshot.query(Book.self).where(\.author, "Bo").keys() == ["book:0", "book:2"])
            #expect(try all.where(\.author, "Bo").keys() == ["book:2"])
        }
    }

    @Test func anEmptyDatabaseHasNoRows() throws {
        let empty = try workspace.cache("empty").query(Book.self)
        #expect(try empty.values().isEmpty && empty.count() == 0 && empty.page().cursor == nil)
        #expect(try empty.grouped(by: \.author, .count).rows().isEmpty)
        #expect(try empty.explain().contains("0 entries examined"))
    }

    @Test func expiredEntriesAreNotFound() throws {
        try cache.set(Self.books[1], forKey: "book:1", policy: .seconds(5))
        workspace.time.advance(milliseconds: 6_000)
        #expect(try all.where(\.author, "Al").count() == 0)
    }

    @Test("more rows than a page has are all returned") func resultsMayBeLong() throws {
        for number in 0..<2500 {
            try cache.set(Book(title: "t", author: "Zo", year: number, price: 1), forKey: "z\(number)")
        }
        #expect(try all.where(\.author, "Zo").sorted(by: \.year).values().map(\.year) == Array(0..<2500))
        #expect(try all.where(\.author, "Zo").limit(1200).keys().count == 1200)
        let even = all.where(\.author, "Zo").sorted(by: \.year).filter { $0.year % 2 == 0 }
        #expect(try even.skip(10).limit(1100).values().map(\.year) == (10..<1110).map { $0 * 2 })
        #expect(try even.count() == 1250)
    }

    @Test("without an index, more than 100,000 entries are examined only on request") func scansAreLimited() throws {
        let cache = try Cache.inMemory()
        let batch = cache.makeBatch()
        for number in 0...100_000 { try batch.setBytes(Array("{}".utf8), forKey: "\(number)") }
        try cache.apply(batch)
        let query = cache.query(Book.self).where(\.author, "Bo")
        let text = expectError(.invalidArgument) { _ = try query.count() }
        #expect(
            text.contains("more than 100000 entries: declare Index(\\Model.author) in `indexes:`")
                && text.hasSuffix("; or call scan() to examine all entries"))
        #expect(try query.scan().count() == 0)
        let several = query.where(\.year, 1...).sorted(by: \.price, .reverse)
        let words = expectError(.invalidArgument) { _ = try several.keys() }
        #expect(
            words.contains(
                "declare Index(\\Model.author, .ascending(\\Model.year), .descending(\\Model.price)) in `indexes:`"),
            "\(words)")
    }

    @Test func anIndexOnAnotherFieldIsRefusedByTheFirstStore() throws {
        try cache.declareIndexes([Index(\Book.isbn)])
        let text = expectError(.encoding) { try cache.set(Self.books[0], forKey: "book:9") }
        #expect(text.contains("reads the field 'isbn', which does not hold \\Book.isbn") && text.contains("at:"))
        #expect(text.contains("contains a dot or brackets, has no path, and no index"))
        for place in ["", "a..b", "a[0]"] {
            let indexes = expectError(.invalidArgument) { try cache.declareIndexes([Index(\Book.isbn, at: place)]) }
            let query = expectError(.invalidArgument) { _ = try all.where(\.isbn, "2", at: place).count() }
            #expect(indexes.contains("has no path") && query.contains("has no path"), "\(indexes) \(query)")
        }
        let batch = cache.makeBatch()
        expectError(.encoding) { try batch.set(Self.books[0], forKey: "a") }
        // Other types, and bytes, are not compared.
        try cache.set(Publisher(name: "x"), forKey: "p")
        try cache.set("text", forKey: "t")
        try cache.dropIndexes(except: indexes)
        try cache.set(Self.books[0], forKey: "book:9")
    }

    @Test("queries of a property that is stored under another name throw, and say what to do")
    func renamedPropertiesAreRefused() throws {
        let renamed = #Predicate<Book> { $0.year > 0 || $0.isbn == "2" }
        for query in [all.where(\.isbn, "2"), all.sorted(by: \.isbn), all.where(\.isbn, in: ["2"]), all.where(renamed)]
        {
            let text = expectError(.invalidArgument) { _ = try query.count() }
            #expect(text.contains("reads the field 'isbn', which does not hold \\Book.isbn; "), "\(text)")
            #expect(text.contains("contains a dot or brackets, has no path: use filter { }"), "\(text)")
        }
        #expect(expectError(.invalidArgument) { _ = try all.where(renamed).keys() }.contains("where(\"name\", value)"))
        expectError(.invalidArgument) { _ = try all.select(\.title, \.isbn).rows() }
        expectError(.invalidArgument) { _ = try all.grouped(by: \.isbn, .count).rows() }
        // A model says nothing about a property that is nil in it, about a field that its text lacks because it is
        // older than the property, and about models of another type.
        let other = try workspace.cache("other")
        #expect(try other.query(Renamed.self).where(\.note, "x").count() == 0)
        try other.setBytes(Array(#"{"other": 1}"#.utf8), forKey: "0")
        #expect(try other.query(Renamed.self).where(\.note, "x").count() == 0)
        try other.setBytes(Array(#"{"id": 1}"#.utf8), forKey: "00")
        #expect(try other.query(Renamed.self).where(\.note, "x").where(\.language, "en").count() == 0)
        try other.set(Renamed(id: 1, note: "x", language: "de"), forKey: "/")
        expectError(.invalidArgument) { _ = try other.query(Renamed.self).where(\.note, "x").count() }
        #expect(try other.query(Renamed.self).where(\.language, "de").count() == 1)
    }

    /// A property was added, and another one has another name in the JSON.
    private struct Renamed: Codable {
        var id: Int
        var note: String?
        var language: String

        enum CodingKeys: String, CodingKey {
            case id, language
            case note = "remark"
        }

        init(id: Int, note: String?, language: String) { (self.id, self.note, self.language) = (id, note, language) }

        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            id = try container.decode(Int.self, forKey: .id)
            note = try container.decodeIfPresent(String.self, forKey: .note)
            language = try container.decodeIfPresent(String.self, forKey: .language) ?? "en"
        }
    }

    private struct Shapes: Codable, Sendable {
        var rows: [[Int]] = []
        var span = 0..<1
        var data = Data()
        var cubes: [[[Int]]] = []
        var days = IndexSet()
    }

    /// Conditions also test the elements of arrays.
    @Test func valuesThatAreNotStoredAsTheirElementsAreRefused() throws {
        let shapes = try workspace.cache("shapes").query(Shapes.self)
        #expect(expectError(.invalidArgument) { _ = try shapes.where(\.span, contains: 3).keys() }.contains("filter"))
        expectError(.invalidArgument) { _ = try shapes.where(\.span, containsAll: [1, 5]).keys() }
        expectError(.invalidArgument) { _ = try shapes.where(\.data, contains: 1).keys() }
        expectError(.invalidArgument) { _ = try shapes.grouped(byElementsOf: \.data, .count).rows() }
        #expect(expectError(.invalidArgument) { _ = try shapes.where(\.rows, []).keys() }.contains("predicate"))
        expectError(.invalidArgument) { _ = try shapes.where(\.rows, in: [[[1]], []]).keys() }
        #expect(try shapes.where(\.rows, [[1]]).keys() == [] && all.where(\.tags, []).count() == 1)
    }

    @Test("an empty element is not found in arrays that are empty themselves", arguments: [false, true])
    func emptyElementsAreFound(hasIndex: Bool) throws {
        let cache = try workspace.cache("rows")
        if hasIndex { try cache.declareIndexes([Index(\Shapes.rows), Index(\Shapes.cubes)]) }
        let rows: [[[Int]]] = [[], [[]], [[1], []], [[1]], [[1], [2]]]
        for (number, row) in rows.enumerated() {
            try cache.set(Shapes(rows: row, cubes: row.map { [$0] }), forKey: "\(number)")
        }
        let query = cache.query(Shapes.self)
        for row in [[], [1], [2]] {
            let expected = try query.filter { $0.rows.contains(row) }.keys()
            #expect(try query.where(\.rows, contains: row).keys() == expected, "\(row)")
            #expect(try query.where(#Predicate<Shapes> { $0.rows.contains(row) }).keys() == expected, "\(row)")
        }
        for cube in [[], [[]], [[1]]] {
            let expected = try query.filter { $0.cubes.contains(cube) }.keys()
            #expect(try query.where(\.cubes, contains: cube).keys() == expected, "\(cube)")
        }
    }

    @Test("predicates on collections that are no arrays in JSON are evaluated")
    func bytesAreSearchedByPredicates() throws {
        let cache = try workspace.cache("bytes")
        try cache.set(Shapes(data: Data([1, 2]), days: [1, 5]), forKey: "a")
        try cache.set(Shapes(data: Data([3]), days: [2]), forKey: "b")
        let query = cache.query(Shapes.self)
        #expect(try query.where(#Predicate<Shapes> { $0.data.contains(1) }).keys() == ["a"])
        #expect(try query.where(#Predicate<Shapes> { !$0.data.contains(1) }).keys() == ["b"])
        for refused in [
            query.where(\.days, contains: 1), query.where(\.days, containsAll: [1]), query.where(\.days, [1]),
        ] {
            let text = expectError(.invalidArgument) { _ = try refused.keys() }
            #expect(text.contains("use filter") && !text.contains("containsAll"), "\(text)")
        }
        #expect(try query.filter { $0.days.contains(1) }.keys() == ["a"])
    }

    private struct Parcel: Codable, Equatable, Sendable {
        struct Inner: Codable, Equatable, Sendable { var count = 1 }

        var inner: Inner?
        var note: String?
    }

    @Test func keyPathsThatUnwrapValuesAreNotApplied() throws {
        let parcels = try workspace.cache("parcels")
        try parcels.declareIndexes([Index(\Parcel.inner!.count)])
        try parcels.set(Parcel(), forKey: "nil")
        try parcels.set(Parcel(inner: Parcel.Inner(), note: "sea"), forKey: "full")
        let query = parcels.query(Parcel.self)
        #expect(try query.where(\.note!, prefix: "s").keys() == ["full"])
        #expect(try query.where(\.inner!.count, 1).sorted(by: \.inner!.count).keys() == ["full"])
        #expect(try parcels.edit("full", of: Parcel.self) { $0.append("!", to: \.note!) }.note == "sea!")
        #expect(try parcels.edit("nil", of: Parcel.self) { $0.increment(\.inner!.count) }.inner?.count == 1)
    }

    @Test func namesOfPropertiesAreChecked() throws {
        for name in ["Isbn", "author"] {
            let text = expectError(.invalidArgument) { _ = try all.where(\.isbn, "2", at: name).keys() }
            #expect(text.contains("the query reads the field '\(name)', which does not hold"))
        }
    }

    @Test func aCancelledTaskRemovesNothing() async throws {
        let task = Task { [all] in
            while !Task.isCancelled { await Task.yield() }
            return try await all.remove()
        }
        task.cancel()
        let count = try await task.value
        let left = try await all.count()
        #expect(count == 0 && left == 4)
    }

    @Test func impossibleCallsAreExplained() throws {
        #expect(expectError(.invalidArgument) { _ = try all.where(\.label, "x").values() }.contains("filter { }"))
        #expect(expectError(.invalidArgument) { _ = try all.where(\.shelves, [1]).count() }.contains("containsAll"))
        let infinite = expectError(.invalidArgument) { _ = try all.where(\.price, 1...Double.infinity).count() }
        #expect(infinite.contains("'price'") && !infinite.contains("[0]"), "\(infinite)")
        let arrays = expectError(.decoding) { _ = try all.grouped(by: \.tags, .count).rows() }
        #expect(arrays.contains("use grouped(byElementsOf:)") && !arrays.contains("key"), "\(arrays)")
        expectError(.invalidArgument) { _ = try all.where("a..b", 1).count() }
        expectError(.invalidArgument) { _ = try all.limit(-1).count() }
        #expect(expectError(.invalidArgument) { _ = try all.skip(10_001).values() }.contains("page(after:)"))
        expectError(.invalidArgument) { _ = try all.page(after: "x") }
        expectError(.invalidArgument) { _ = try all.grouped(by: \.author, .sum(\.label.count)).rows() }
        expectError(.invalidArgument) { _ = try all.sorted(by: \.year).grouped(by: \.author, .count).rows() }
        expectError(.invalidArgument) { try cache.declareIndexes([Index(\Book.label)]) }
        expectError(.invalidArgument) { try cache.declareIndexes([Index(\Book.isbn, at: "@key")]) }
        let many = (0..<40).map { Index(\Book.isbn, at: "f\($0)") }
        #expect(expectError(.invalidArgument) { try cache.declareIndexes(many) }.contains("32"))
        #expect(try cache.dropIndexes(except: indexes) == 0, "more than a database can have: none is created")
        #expect(expectError(.invalidArgument) { try cache.declareIndexes(Array(many[..<30])) }.contains("32"))
        #expect(try cache.dropIndexes(except: indexes) == 0, "all or none")
        #expect(try all.where(\.author, "Bo").explain().contains("the index author-"))
        let long = Decimal(string: "12345678901234567.2") ?? 0
        #expect(expectError(.invalidArgument) { _ = try all.where(\.cost, long).keys() }.contains("as a double"))
        try cache.set(Publisher(name: "x"), forKey: "p")
        expectError(.decoding) { _ = try all.values() }
        let lists = try workspace.cache("lists") { $0.codec = .propertyList }
        #expect(expectError(.invalidArgument) { _ = try lists.query(Book.self).count() }.contains("stored as JSON"))
        expectError(.invalidArgument) { try lists.declareIndexes([Index(\Book.author)]) }
        cache.close()
        expectError(.closed) { _ = try all.count() }
    }
}
