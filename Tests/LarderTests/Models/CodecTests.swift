import Foundation
import Larder
import LarderTestSupport
import Testing

/// A codec that stores JSON with its bytes in reverse order, so that no other codec can read it.
private let reversed = ModelCodec.custom(
    encode: { Array(try JSONEncoder().encode($0).reversed()) },
    decode: { try JSONDecoder().decode($0, from: Data($1.reversed())) })

@Suite struct CodecTests {
    let work: Workspace

    init() throws { work = try Workspace() }

    @Test func propertyListsAreReadBackUnchanged() throws {
        let cache = try work.cache { $0.codec = .propertyList }
        try cache.set(Everything(), forKey: "k")
        #expect(try cache.value(Everything.self, forKey: "k") == Everything())
        #expect(try cache.bytes(forKey: "k")?.starts(with: Array("bplist00".utf8)) == true)
        #expect(try cache.info(forKey: "k")?.codec == .propertyList)
        try cache.set([1, 2], forKey: "k")
        #expect(try cache.value([Int].self, forKey: "k") == [1, 2])
    }

    @Test func theErrorForABareValueAsAPropertyListExplainsIt() throws {
        let cache = try work.cache { $0.codec = .propertyList }
        let text = expectError(.encoding) { try cache.set(5, forKey: "number") }
        #expect(text.contains("'number'") && text.contains("Int") && text.contains("plist") && text.contains("top"))
        #expect(try cache.count() == 0)
    }

    @Test func customClosuresEncodeAndDecode() throws {
        let cache = try work.cache { $0.codec = reversed }
        try cache.set(Everything(), forKey: "k")
        #expect(try cache.value(Everything.self, forKey: "k") == Everything())
        #expect(try cache.info(forKey: "k")?.codec == .custom)
        try cache.set(5, forKey: "k")
        #expect(try cache.value(Int?.self, forKey: "k") == 5)
        #expect(try cache.bytes(forKey: "k") == Array("5".utf8))
        try cache.batch { try $0.set([1, 23], forKey: "k") }
        #expect(try cache.bytes(forKey: "k") == Array("]32,1[".utf8))
    }

    @Test func readsUseTheCodecOfTheEntryNotOfTheCache() throws {
        let json = try work.cache()
        let list = try work.cache { $0.codec = .propertyList }
        let custom = try work.cache { $0.codec = reversed }
        try json.set(Reader("json"), forKey: "json")
        try list.set(Reader("list"), forKey: "list")
        try custom.set(Reader("custom"), forKey: "custom")
        for cache in [json, list, custom] {
            #expect(try cache.value(Reader.self, forKey: "json") == Reader("json"))
            #expect(try cache.value(Reader.self, forKey: "list") == Reader("list"))
        }
        #expect(try custom.value(Reader.self, forKey: "custom") == Reader("custom"))
        let text = expectError(.decoding) { _ = try json.value(Reader.self, forKey: "custom") }
        #expect(text.contains("custom codec"))
        #expect(try custom.snapshot().value(Reader.self, forKey: "custom") == Reader("custom"))
    }

    @Test func customJSONCodersAreUsed() throws {
        let encoder = JSONEncoder()
        encoder.dateEncodingStrategy = .iso8601
        encoder.outputFormatting = .sortedKeys
        let decoder = JSONDecoder()
        decoder.dateDecodingStrategy = .iso8601
        let cache = try work.cache { $0.codec = .json(encoder: encoder, decoder: decoder) }
        let dates = ["b": Date(timeIntervalSince1970: 0), "a": Date(timeIntervalSince1970: 86_400)]
        try cache.set(dates, forKey: "k")
        let text = String(decoding: try cache.bytes(forKey: "k") ?? [], as: UTF8.self)
        #expect(text == #"{"a":"1970-01-02T00:00:00Z","b":"1970-01-01T00:00:00Z"}"#)
        #expect(try cache.value([String: Date].self, forKey: "k") == dates)
        #expect(try cache.info(forKey: "k")?.codec == .json)
    }

    @Test func encodingErrorsNameKeyTypeAndPath() throws {
        struct Ratio: Codable { var values: [Double] }
        struct Refusal: Error {}
        let cache = try work.cache()
        let text = expectError(.encoding) { try cache.set(Ratio(values: [1, .nan]), forKey: "ratio") }
        #expect(
            text.contains("'ratio'") && text.contains("Ratio") && text.contains("json") && text.contains("values[1]"))
        expectError(.encoding) { try cache.set(["a": Double.infinity]) }
        expectError(.encoding) { try cache.batch { try $0.set(Double.nan, forKey: "k") } }
        let refusing = ModelCodec.custom(encode: { _ in throw Refusal() }, decode: { _, _ in throw Refusal() })
        let strict = try work.cache { $0.codec = refusing }
        #expect(expectError(.encoding) { try strict.set(1, forKey: "k") }.contains("Refusal"))
        #expect(try cache.count() == 0)
    }

    @Test func decodingErrorsNameKeyTypeCodecAndPath() throws {
        let cache = try work.cache()
        try cache.setBytes(Array(#"{"secret":"#.utf8), forKey: "broken", policy: .database)
        try cache.set(["userName": "secret"], forKey: "short")
        try cache.set(["book": Optional<Book>.none], forKey: "null")
        try cache.set(["secret"], forKey: "array")
        try cache.set(["numbers": [1, 300]], forKey: "range")
        struct Small: Decodable { var numbers: [UInt8] }
        let texts = [
            ("broken", expectError(.decoding) { _ = try cache.value(Reader.self, forKey: "broken") }, "raw bytes"),
            (
                "short", expectError(.decoding) { _ = try cache.value(Reader.self, forKey: "short") },
                "'book' is missing"
            ),
            ("null", expectError(.decoding) { _ = try cache.value([String: Book].self, forKey: "null") }, "null"),
            ("array", expectError(.decoding) { _ = try cache.value(Reader.self, forKey: "array") }, "Dictionary"),
            ("range", expectError(.decoding) { _ = try cache.value(Small.self, forKey: "range") }, "out of range"),
        ]
        for (key, text, reason) in texts {
            #expect(text.contains("'\(key)'") && text.contains("database 'books'") && text.contains(reason), "\(text)")
            // Messages do not contain values.
            #expect(!text.contains("secret") && !text.contains("300"), "\(text)")
        }
        #expect(texts[1].1.contains("Reader") && texts[1].1.contains("json"))
    }

    @Test func aDecodingErrorHasTheDecodersErrorAsUnderlyingError() throws {
        let cache = try work.cache()
        try cache.set("text", forKey: "k")
        do {
            _ = try cache.value(Int.self, forKey: "k")
            Issue.record("nothing was thrown")
        } catch {
            #expect(error.code == .decoding && error.key == "k" && error.database == "books")
            #expect(error.underlying is DecodingError)
        }
    }

    @Test func aCustomDecoderThatReturnsAnotherTypeIsAnError() throws {
        let cache = try work.cache { options in
            options.codec = .custom(encode: { _ in [1] }, decode: { _, _ in "always text" })
        }
        try cache.set(5, forKey: "k")
        #expect(try cache.value(String.self, forKey: "k") == "always text")
        #expect(expectError(.decoding) { _ = try cache.value(Int.self, forKey: "k") }.contains("String"))
    }

    @Test func decodingFailuresMayCountAsMisses() throws {
        let cache = try work.cache { $0.onDecodingFailure = .treatAsMiss }
        try cache.set("no reader", forKey: "wrong")
        try cache.set(Reader("a"), forKey: "right")
        #expect(try cache.value(Reader.self, forKey: "wrong") == nil)
        #expect(try cache.values(Reader.self, forKeys: ["wrong", "right"]) == ["right": Reader("a")])
        #expect(
            try cache.values(Reader.self, forKeys: ["wrong", "right"], notFound: Reader("none"))
                == [Reader("none"), Reader("a")])
        #expect(try cache.entries(of: Reader.self).dictionary() == ["right": Reader("a")])
        #expect(try cache.keys(matching: #Predicate<Reader> { _ in true }) == ["right"])
        #expect(try cache.snapshot().value(Reader.self, forKey: "wrong") == nil)
        #expect(try cache.value(String.self, forKey: "wrong") == "no reader")
        // Reading the value of an enumerated entry throws.
        expectError(.decoding) { try cache.entries(of: Reader.self).enumerate { entry, _ in _ = try entry.value() } }
    }

    @Test func decodingFailuresMayRemoveTheEntry() throws {
        let cache = try work.cache { $0.onDecodingFailure = .removeAndMiss }
        try cache.set("no reader", forKey: "a")
        try cache.set("no reader", forKey: "b")
        try cache.set(Reader("c"), forKey: "c")
        let snapshot = try cache.snapshot()
        #expect(try snapshot.value(Reader.self, forKey: "a") == nil)
        #expect(try cache.keys() == ["a", "b", "c"])
        #expect(try cache.value(Reader.self, forKey: "a") == nil)
        #expect(try cache.keys() == ["b", "c"])
        #expect(try cache.entries(of: Reader.self).values() == [Reader("c")])
        #expect(try cache.keys() == ["c"])
        #expect(try snapshot.value(String.self, forKey: "a") == "no reader")
    }

    private struct Book: Codable, Equatable {
        var title: String
    }

    private struct BookWithPages: Codable, Equatable {
        var title: String
        var pages: Int
    }

    @Test("if a model gains a field, calls with a closure replace entries of the old model and report them")
    func aModelThatGainsAField() async throws {
        let events = Recorder<String>()
        let cache = try work.cache { $0.onEvent = { events.add("\($0)") } }
        let keys = ["a", "b", "c", "d", "e"]
        for key in keys { try await cache.set(Book(title: "secret"), forKey: key) }
        let new = BookWithPages(title: "new", pages: 3)
        events.removeAll()
        await #expect(throws: LarderError.self) { try await cache.value(BookWithPages.self, forKey: "a") }
        await #expect(throws: LarderError.self) {
            try await cache.value(BookWithPages.self, forKey: "a", options: FetchOptions(.cacheOnly)) { new }
        }
        #expect(events.isEmpty)
        #expect(try await cache.value(BookWithPages.self, forKey: "a") { new } == new)
        let found = try await cache.values(BookWithPages.self, forKeys: ["a", "b"]) { missing in
            #expect(missing == ["b"])
            return ["b": new]
        }
        #expect(found == ["a": new, "b": new])
        var both: [BookWithPages] = []
        for try await book in cache.cachedThenFetched(forKey: "c", fetch: { new }) { both.append(book) }
        #expect(both == [new])
        func updateBlocking() throws {
            try cache.update(BookWithPages.self, forKey: "d") { book in
                #expect(book == nil)
                book = new
            }
        }
        try updateBlocking()
        try await cache.update(BookWithPages.self, forKey: "e") { (book: inout BookWithPages?) async in
            #expect(book == nil)
            book = new
        }
        #expect(try await cache.values(BookWithPages.self, forKeys: keys).count == 5)
        for key in keys {
            #expect(
                events.all.contains { $0.hasPrefix("warning:") && $0.contains("'\(key)' is treated as missing") },
                "\(key)")
        }
        #expect(!events.all.contains { $0.contains("secret") })
    }

    @Test func anEntryReplacedDuringDecodingIsNotRemoved() throws {
        // Regression test: the entry was read, decoded and then removed, although it might have been replaced in the
        // meantime.
        let decoded = Guarded(0)
        let writer = try work.cache()
        let cache = try work.cache { options in
            options.onDecodingFailure = .removeAndMiss
            options.codec = .custom(
                encode: { _ in [1] },
                decode: { _, _ in
                    decoded.with { $0 += 1 }
                    try writer.set("new", forKey: "k")
                    throw CancellationError()
                })
        }
        try cache.set(1, forKey: "k")
        #expect(try cache.value(Int.self, forKey: "k") == nil)
        #expect(decoded.value == 1)
        #expect(try writer.value(String.self, forKey: "k") == "new")
    }

    @Test func damagedJSONIsAnError() throws {
        // Stores truncated JSON that is marked as JSON, as another program might leave it.
        let broken = ModelCodec.custom(encode: { _ in Array(#"{"name":"a","pri"#.utf8) }, decode: { _, _ in 0 })
        let cache = try work.cache { $0.codec = broken }
        try cache.set(1, forKey: "k")
        #expect(try cache.bytes(forKey: "k")?.count == 16)
        let raw = try work.cache()
        try raw.setBytes(Array(#"{"name":"a","pri"#.utf8), forKey: "raw")
        expectError(.decoding) { _ = try raw.value(Book.self, forKey: "raw") }
    }
}
