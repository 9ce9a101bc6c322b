import Foundation
import Larder
import LarderClient
import LarderTestSupport
import Testing

/// Tests edits of single properties of models, by the library and both clients.
@Suite(.timeLimit(.minutes(5))) struct ModelEditTests {
    private struct Author: Codable, Equatable, Sendable {
        var name: String
        var born: Int?
    }

    private struct Book: Codable, Equatable, Sendable {
        var title: String
        var price: Double
        var stock: Int
        var tags: [String]
        var shelves: Set<Int>
        var author: Author
        var sold: Int?
        var isbn: String
        var weight: Float = 0.1

        enum CodingKeys: String, CodingKey {
            case title, price, stock, tags, shelves, author, sold, weight
            case isbn = "ISBN"
        }

        var label: String { title + isbn }
    }

    private struct Counter: Codable, Equatable, Sendable {
        struct Place: Codable, Equatable, Sendable {
            var x: Int
            var y: Int
        }

        var a = 1
        var b = 2
        var c: Int?
        var d: Int? = 7
        var small: Int8 = 1
        var home: Place?
    }

    private static let book = Book(
        title: "Sea", price: 8.5, stock: 2, tags: ["a"], shelves: [1, 2], author: Author(name: "Bo", born: 1950),
        sold: nil, isbn: "1")

    private typealias Edit = ((inout ModelEdits<Book>) -> Void) throws -> Book

    private static func editEverything(_ edits: inout ModelEdits<Book>) {
        edits.set(\.title, to: "Land")
        edits.append("!", to: \.title)
        edits.increment(\.price, by: 0.5)
        edits.increment(\.stock, by: -1)
        edits.increment(\.sold)
        edits.set(\.sold, to: nil)
        edits.increment(\.sold)
        // The sum of the doubles has more digits than a Float.
        edits.increment(\.weight, by: 0.2)
        edits.append("b", "a", to: \.tags)
        edits.insert("b", "c", into: \.tags)
        edits.remove("a", from: \.tags)
        edits.insert(2, 3, into: \.shelves)
        edits.remove(1, from: \.shelves)
        edits.set(\.author.name, to: "Al")
        edits.removeValue(of: \.author.born)
        edits.set(\.isbn, to: "2", at: "ISBN")
    }

    private static let edited = Book(
        title: "Land!", price: 9, stock: 1, tags: ["b", "c"], shelves: [2, 3], author: Author(name: "Al", born: nil),
        sold: 1, isbn: "2", weight: 0.3)

    /// Runs the checks for one way to edit.
    private func check(
        _ edit: Edit, read: () throws -> Book?, missing: ((inout ModelEdits<Book>) -> Void) throws -> Book
    )
        throws
    {
        #expect(throws: (any Error).self, "the field has another name") { try edit { $0.set(\.isbn, to: "9") } }
        #expect(throws: (any Error).self, "computed") { try edit { $0.set(\.label, to: "x") } }
        #expect(throws: (any Error).self, "no edits") { try edit { _ in } }
        #expect(throws: (any Error).self, "no elements") { try edit { $0.append(to: \.tags) } }
        #expect(throws: (any Error).self, "the second edit is impossible") {
            try edit {
                $0.increment(\.stock)
                $0.set(\.stock, to: 1, at: "title.x")
            }
        }
        #expect(throws: (any Error).self, "no longer a model") {
            try edit { $0.increment(\.stock, by: .max) }
        }
        #expect(try read() == Self.book, "nothing was changed")
        #expect(try edit(Self.editEverything) == Self.edited)
        #expect(try read() == Self.edited)
        do {
            _ = try missing { $0.increment(\.stock) }
            Issue.record("there is no entry")
        } catch let error as LarderError {
            #expect(error.code == .noSuchEntry)
        } catch let error as LarderClientError {
            #expect(error.code == .noSuchEntry)
        }
    }

    @Test func theLibraryEditsProperties() async throws {
        let directory = try TemporaryDirectory(inMemory: true)
        let cache = try await Cache(named: "books", directory: directory.path + "/larder")
        try await cache.set(Self.book, forKey: "b", policy: .hours(1), tags: ["t"])
        try check(
            { try cache.edit("b", of: Book.self, $0) }, read: { try cache.value(Book.self, forKey: "b") },
            missing: { try cache.edit("none", of: Book.self, $0) })
        #expect(try await cache.tags(forKey: "b") == ["t"])
        #expect(try await cache.info(forKey: "b")?.deadline != nil)
        // Fields that the model does not know, and digits, stay.
        try await cache.setBytes(Array(#"{"new":[1.50], "name":"Bo"}"#.utf8), forKey: "a")
        #expect(try await cache.edit("a", of: Author.self) { $0.increment(\.born, by: 1990) }.born == 1990)
        #expect(
            try await cache.bytes(forKey: "a").map { String(decoding: $0, as: UTF8.self) }
                == #"{"new":[1.50], "name":"Bo","born":1990}"#)
        try await cache.setBytes([0], forKey: "raw")
        #expect(throws: LarderError.self) { try cache.edit("raw", of: Author.self) { $0.set(\.name, to: "x") } }
    }

    @Test("a property whose array would be stored as bytes is edited as a number") func bytesAreEdited() async throws {
        struct Level: Codable, Equatable {
            var volume: UInt8
        }
        let cache = try await Cache.inMemory()
        try await cache.set(Level(volume: 1), forKey: "l")
        #expect(try await cache.edit("l", of: Level.self) { $0.set(\.volume, to: 7) } == Level(volume: 7))
    }

    @Test func concurrentEditsLoseNothing() async throws {
        let directory = try TemporaryDirectory(inMemory: true)
        let cache = try await Cache(named: "books", directory: directory.path + "/larder")
        try await cache.set(Self.book, forKey: "b")
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<4 {
                group.addTask {
                    for _ in 0..<50 { _ = try await cache.edit("b", of: Book.self) { $0.increment(\.stock) } }
                }
            }
            try await group.waitForAll()
        }
        #expect(try await cache.value(Book.self, forKey: "b")?.stock == 202)
    }

    // MARK: Impossible edits

    private typealias CounterEdit = ((inout ModelEdits<Counter>) -> Void) async throws -> Counter

    /// Edits that would change another field, or have a result that is no model.
    private static var harmful: [(inout ModelEdits<Counter>) -> Void] {
        [
            { $0.set(\.a, to: 5, at: "b") }, { $0.set(\.a, to: 1, at: "c") }, { $0.removeValue(of: \.c, at: "b") },
            { $0.removeValue(of: \.c, at: "d") }, { $0.increment(\.small, by: 127) }, { $0.increment(\.home?.x) },
            { $0.set(\.home?.x, to: 1) }, { $0.set(\.self, to: Counter()) },
        ]
    }

    private func checkHarm(
        _ edit: CounterEdit, read: () async throws -> Counter?, write: (Counter) async throws -> Void
    ) async throws {
        // A nil property equals another one that is nil, but is not stored there.
        try await write(Counter(d: nil))
        #expect(try await edit { $0.removeValue(of: \.c, at: "d") } == Counter(d: nil))
        for round in 0..<2 {
            try await write(Counter())
            for (number, harm) in Self.harmful.enumerated() {
                do {
                    _ = try await edit(harm)
                    Issue.record("edit \(number) of round \(round) was made")
                } catch {
                    // The sum is no Int8.
                    let text = "the result of the edits is no valid Counter, and nothing was stored: "
                    if number == 4 { #expect("\(error)".contains(text)) }
                }
                #expect(try await read() == Counter(), "edit \(number) of round \(round)")
            }
            // From now on, the places are known.
            let changed = try await edit {
                $0.increment(\.a)
                $0.increment(\.b)
                $0.set(\.c, to: 4)
                $0.removeValue(of: \.d)
                $0.increment(\.small, by: 126)
                $0.set(\.home, to: Counter.Place(x: 1, y: 2))
                $0.increment(\.home?.x)
            }
            #expect(changed == Counter(a: 2, b: 3, c: 4, d: nil, small: 127, home: Counter.Place(x: 2, y: 2)))
        }
    }

    @Test func theLibraryRefusesHarmfulEdits() async throws {
        let cache = try await Cache.inMemory()
        try await checkHarm(
            { try await cache.edit("k", of: Counter.self, $0) },
            read: { try await cache.value(Counter.self, forKey: "k") }, write: { try await cache.set($0, forKey: "k") })
    }

    @Test func theClientsRefuseHarmfulEdits() async throws {
        let daemon = try DaemonProcess()
        let client = try await LarderClient.connect(socketPath: daemon.socketPath)
        let counters = client.cache("0", of: Counter.self)
        try await checkHarm(
            { try await counters.edit("k", $0) }, read: { try await counters.value(forKey: "k") },
            write: { try await counters.set($0, forKey: "k") })
        let blocking = try BlockingLarderClient(socketPath: daemon.socketPath)
        try await checkHarm(
            { try blocking.edit("k", of: Counter.self, $0) }, read: { try blocking.value(Counter.self, forKey: "k") },
            write: { try blocking.set($0, forKey: "k") })
        client.close()
    }

    @Test("the error for an edit of a value that was no model does not blame the edit")
    func valuesThatAreNoModelsAreNamed() async throws {
        let daemon = try DaemonProcess()
        let client = try BlockingLarderClient(socketPath: daemon.socketPath)
        let cache = try await Cache.inMemory()
        let text = #"{"title":"Sea","stock":1,"tags":[]}"#
        try await cache.setBytes(Array(text.utf8), forKey: "b")
        try client.setBytes(Array(text.utf8), forKey: "b")
        for edit: Edit in [{ try cache.edit("b", $0) }, { try client.edit("b", $0) }] {
            let error = #expect(throws: (any Error).self) { try edit { $0.set(\.author.name, to: "Al", at: "title") } }
            let reason = "the stored value is no valid Book, and no edit was made: "
            let text = "\(error as Any)"
            #expect(text.contains(reason) && text.contains("the field 'price' is missing"), "\(text)")
            let call = #expect(throws: (any Error).self) { try edit { $0.set(\.tags[7], to: "a", at: "tags.7") } }
            #expect("\(call as Any)".contains("no element '7'; append(_:to:) appends elements"), "\(call as Any)")
        }
    }

    @Test("the error for an edit that the daemon has stored says so") func storedEditsAreNamed() throws {
        struct Stock: Codable {
            var count = 1
            var note = "a"
        }
        let daemon = try DaemonProcess()
        let client = try BlockingLarderClient(socketPath: daemon.socketPath)
        try client.set(Stock(), forKey: "good")
        for _ in 0..<2 { _ = try client.edit("good", of: Stock.self) { $0.increment(\.count) } }
        try client.setBytes(Array(#"{"count":1}"#.utf8), forKey: "bad")
        let error = #expect(throws: LarderClientError.self) {
            _ = try client.edit("bad", of: Stock.self) { $0.increment(\.count) }
        }
        #expect(error?.message.hasSuffix("the field 'note' is missing; the edit was stored") == true, "\(error as Any)")
        #expect(try client.bytes(forKey: "bad") == Array(#"{"count":2}"#.utf8))
        client.close()
    }

    @Test("a field whose name is no path is not edited, and the error says what to do")
    func namesThatAreNoPathsAreExplained() throws {
        struct Item: Codable {
            var version = 1
            enum CodingKeys: String, CodingKey { case version = "api.version" }
        }
        let cache = try Cache.inMemory()
        try cache.set(Item(), forKey: "i")
        for place in [nil, "api.version", "version", "", "$", "['api.version']"] {
            let error = #expect(throws: LarderError.self) {
                try cache.edit("i", of: Item.self) { $0.set(\.version, to: 2, at: place) }
            }
            #expect(error?.message.contains("contains a dot or brackets, has no path: use update") == true, "\(error)")
        }
    }

    // MARK: Neighbouring edits

    @Test func neighbouringEditsOfAnArrayAreOneStep() async throws {
        var edits = ModelEdits<Book>(.json)
        for number in 0..<100 { edits.append("\(number)", to: \.tags) }
        for number in 0..<100 { edits.insert("\(number)", into: \.tags) }
        for number in 0..<100 { edits.remove("\(number)", from: \.tags) }
        for number in 0..<100 { edits.insert(number, into: \.shelves) }
        #expect(edits.edits.count == 4)
        edits.insert("a", into: \.tags)
        edits.insert(7, into: \.shelves)
        #expect(edits.edits.count == 6)
        let cache = try await Cache.inMemory()
        var random = SeededGenerator(seed: 5)
        for _ in 0..<50 {
            var expected = Self.book
            try await cache.set(expected, forKey: "b")
            let changes = (0..<20).map { _ in (kind: random.below(3), tag: "abcd".randomElement(using: &random) ?? "a")
            }
            let edited = try await cache.edit("b", of: Book.self) { edits in
                for (kind, tag) in changes {
                    switch kind {
                    case 0: edits.append("\(tag)", to: \.tags)
                    case 1: edits.insert("\(tag)", into: \.tags)
                    default: edits.remove("\(tag)", from: \.tags)
                    }
                }
            }
            for (kind, tag) in changes {
                switch kind {
                case 1 where expected.tags.contains("\(tag)"): break
                case 0, 1: expected.tags.append("\(tag)")
                default: expected.tags.removeAll { $0 == "\(tag)" }
                }
            }
            #expect(edited == expected, "\(changes)")
        }
    }

    @Test func sumsThatAreTooLargeNameTheirProperty() throws {
        let cache = try Cache.inMemory()
        try cache.set(Self.book, forKey: "b")
        let error = #expect(throws: LarderError.self) {
            try cache.edit("b", of: Book.self) {
                $0.set(\.title, to: "x")
                $0.increment(\.stock, by: .max)
            }
        }
        #expect(error?.message == "edit 2: stock: numeric overflow")
        #expect(try cache.value(Book.self, forKey: "b") == Self.book)
    }

    @Test func clientsEditProperties() async throws {
        let daemon = try DaemonProcess()
        let blocking = try BlockingLarderClient(socketPath: daemon.socketPath)
        try blocking.set(Self.book, forKey: "b")
        try check(
            { try blocking.edit("b", of: Book.self, $0) }, read: { try blocking.value(Book.self, forKey: "b") },
            missing: { try blocking.edit("none", of: Book.self, $0) })
        let client = try await LarderClient.connect(socketPath: daemon.socketPath)
        let books = client.cache("0", of: Book.self)
        try await books.set(Self.book, forKey: "b")
        #expect(try await books.edit("b", Self.editEverything) == Self.edited)
        let authors = client.cache("0", of: Author.self)
        try await authors.set(Author(name: "Bo", born: nil), forKey: "a")
        let error = await #expect(throws: LarderClientError.self) {
            try await authors.edit("a", of: Author.self) { $0.set(\.name, to: "x", at: "nome") }
        }
        #expect(error?.code == .invalidArgument)
        #expect(try await authors.value(forKey: "a") == Author(name: "Bo", born: nil))
        await #expect(throws: LarderClientError.self) { try await authors.edit("none") { $0.increment(\.born) } }
        client.close()
    }

    @Test("an edit in a nested object that is missing is refused if the result is no model")
    func missingObjectsAreNotMade() throws {
        struct Shop: Codable {
            struct Home: Codable {
                var x = 1
                var y = 2
            }
            var home = Home()

            enum CodingKeys: String, CodingKey { case home }

            init() {}

            init(from decoder: any Decoder) throws {
                let container = try decoder.container(keyedBy: CodingKeys.self)
                home = try container.decodeIfPresent(Home.self, forKey: .home) ?? Home()
            }
        }
        let daemon = try DaemonProcess()
        let client = try BlockingLarderClient(socketPath: daemon.socketPath)
        try client.set(Shop(), forKey: "s")
        #expect(try client.edit("s", of: Shop.self) { $0.increment(\.home.x) }.home.x == 2)
        try client.setBytes(Array("{}".utf8), forKey: "s")
        let error = #expect(throws: LarderClientError.self) {
            try client.edit("s", of: Shop.self) { $0.increment(\.home.x) }
        }
        #expect(error?.message.contains("nothing was stored: the field 'y' is missing at '.home'") == true, "\(error)")
        #expect(try client.bytes(forKey: "s") == Array("{}".utf8))
    }
}
