import Foundation
import Larder
import Testing

@Suite struct SetAndGetTests {
    let work: Workspace
    let cache: Cache

    init() throws {
        work = try Workspace()
        cache = try work.cache()
    }

    private func roundTrip<Value: Codable & Equatable>(_ value: Value) throws -> Bool {
        try cache.set(value, forKey: "k")
        return try cache.value(Value.self, forKey: "k") == value
    }

    @Test func modelsAreReadBackUnchanged() throws {
        #expect(try roundTrip(Reader(book: Book(name: "一本书", price: 18.5), userName: "王五")))
        #expect(try roundTrip(Everything()))
        #expect(try roundTrip([Reader("a"), Reader("b")]))
        #expect(try roundTrip(["x": Reader("a")]))
        #expect(try roundTrip([Int]()))
    }

    /// Stores values of some megabytes, which are written to a file before they are committed.
    @Test func longValuesAreReadBackUnchanged() throws {
        let (text, bytes) = (String(repeating: "long ", count: 1 << 20), [UInt8](repeating: 7, count: 5 << 20))
        for policy in [EntryPolicy.database, .never, .highest] {
            try cache.set(text, forKey: "text", policy: policy, durability: .always)
            try cache.setBytes(bytes, forKey: "bytes", policy: policy)
            #expect(try cache.value(String.self, forKey: "text") == text)
            #expect(try cache.bytes(forKey: "bytes") == bytes)
            try cache.set("short", forKey: "text")
            #expect(try cache.value(String.self, forKey: "text") == "short")
        }
        work.time.advance(milliseconds: 10_000)
        #expect(try cache.bytes(forKey: "bytes") == nil)
    }

    @Test func topLevelValuesAreReadBackUnchanged() throws {
        #expect(try roundTrip(Int.min))
        #expect(try roundTrip(UInt64.max))
        #expect(try roundTrip(0.1 + 0.2))
        #expect(try roundTrip(true))
        #expect(try roundTrip(""))
        #expect(try roundTrip("e\u{301} 👩‍👩‍👧 \u{0}"))
        #expect(try roundTrip(Shelf.upper))
        #expect(try roundTrip(Date(timeIntervalSinceReferenceDate: 0.1)))
        #expect(try roundTrip(Data([1, 2, 255])))
        #expect(try roundTrip([UInt8]([1, 2, 255])))
        #expect(try roundTrip(Optional(5)))
        #expect(try roundTrip(UUID()))
    }

    @Test func aStoredNilIsAnEntry() throws {
        try cache.set(Int?.none, forKey: "k")
        #expect(try cache.contains("k"))
        #expect(try cache.value(Int?.self, forKey: "k") == .some(nil))
        #expect(try cache.value(Int?.self, forKey: "other") == nil)
    }

    @Test func valuesCanBeReadByInferredTypeAndBySubscript() throws {
        try cache.set(Reader("a"), forKey: "k")
        let inferred: Reader? = try cache.value(forKey: "k")
        #expect(inferred == Reader("a"))
        #expect(try cache["k", as: Reader.self]?.userName == "a")
        #expect(try cache["other", as: Reader.self] == nil)
    }

    @Test func settingAKeyAgainReplacesItsValue() throws {
        try cache.set(Reader("a"), forKey: "k")
        try cache.set(7, forKey: "k")
        #expect(try cache.value(Int.self, forKey: "k") == 7)
        #expect(try cache.count() == 1)
    }

    @Test func keysAreComparedByTheirBytes() throws {
        enum Setting: String, CacheKey { case theme }
        let composed = "\u{e9}"
        let decomposed = "e\u{301}"
        #expect(composed == decomposed)
        try cache.set(1, forKey: composed)
        try cache.set(2, forKey: decomposed)
        #expect(try cache.value(Int.self, forKey: composed) == 1)
        #expect(try cache.value(Int.self, forKey: decomposed) == 2)
        try cache.set(3, forKey: "abcd".dropFirst())
        #expect(try cache.value(Int.self, forKey: [0x62, 0x63, 0x64] as [UInt8]) == 3)
        try cache.set(4, forKey: Setting.theme)
        #expect(try cache.value(Int.self, forKey: "theme") == 4)
        try cache.set(5, forKey: "")
        #expect(try cache.value(Int.self, forKey: [UInt8]()) == 5)
        try cache.set(6, forKey: [0, 255, 0] as [UInt8])
        #expect(try cache.value(Int.self, forKey: [0, 255, 0] as [UInt8]) == 6)
        #expect(try cache.value(Int.self, forKey: [0, 255] as [UInt8]) == nil)
        #expect(try cache.count() == 6)
    }

    @Test func longerKeysThanTheMaximumAreRefused() throws {
        let longest = String(repeating: "k", count: 65_536)
        try cache.set(1, forKey: longest)
        #expect(try cache.value(Int.self, forKey: longest) == 1)
        let calls: [(String) throws -> Void] = [
            { try cache.set(1, forKey: $0) }, { _ = try cache.value(Int.self, forKey: $0) },
            { _ = try cache.contains($0) }, { try cache.remove($0) }, { _ = try cache.info(forKey: $0) },
            { _ = try cache.values(Int.self, forKeys: ["a", $0]) }, { try cache.remove(["a", $0]) },
            { try cache.remove(prefix: $0) }, { try cache.set([$0: 1]) },
            { key in try cache.batch { try $0.set(1, forKey: key) } },
        ]
        for call in calls {
            let text = expectError(.invalidArgument) { try call(longest + "k") }
            #expect(text.contains("65537") && text.contains("65536"))
            #expect(text.count < 400)
        }
        // A key that is too long can be added to a batch, but then no part of the batch is applied.
        let batch = cache.makeBatch()
        batch.remove(longest)
        batch.remove(longest + "k")
        let text = expectError(.invalidArgument) { try cache.apply(batch) }
        #expect(text.contains("65537") && text.contains("65536"))
        #expect(try cache.contains(longest))
        batch.removeAll()
        try cache.apply(batch)
        #expect(try cache.count() == 1)
    }

    @Test func rawBytesAreReadBackUnchanged() throws {
        try cache.setBytes([0, 1, 255], forKey: "k")
        #expect(try cache.bytes(forKey: "k") == [0, 1, 255])
        #expect(try cache.info(forKey: "k")?.codec == .raw)
        try cache.setBytes([], forKey: "empty")
        #expect(try cache.bytes(forKey: "empty") == [])
        #expect(try cache.contains("empty"))
        #expect(try cache.bytes(forKey: "none") == nil)
    }

    @Test func rawBytesCanBeReadAsBytesAndText() throws {
        try cache.setBytes(Array("一本书".utf8), forKey: "k")
        #expect(try cache.value([UInt8].self, forKey: "k") == Array("一本书".utf8))
        #expect(try cache.value(Data.self, forKey: "k") == Data("一本书".utf8))
        #expect(try cache.value(String.self, forKey: "k") == "一本书")
        try cache.setBytes([0xFF], forKey: "k")
        #expect(expectError(.decoding) { _ = try cache.value(String.self, forKey: "k") }.contains("UTF-8"))
    }

    /// Values stored by a shell or another client are raw bytes. If they are JSON, they can be read as a model.
    @Test func rawJSONCanBeReadAsAModel() throws {
        try cache.setBytes(Array(#"{"name":"a","price":1.5}"#.utf8), forKey: "k")
        #expect(try cache.value(Book.self, forKey: "k")?.price == 1.5)
        let message = expectError(.decoding) { _ = try cache.value([Int].self, forKey: "k") }
        #expect(message.contains("cannot be decoded as JSON") && message.contains("'k'"))
    }

    @Test func theBytesOfAModelAreItsJSON() throws {
        try cache.set(Book(name: "a/b 书", price: 1.5), forKey: "k")
        let text = try #require(try cache.bytes(forKey: "k").map { String(decoding: $0, as: UTF8.self) })
        #expect([#"{"name":"a/b 书","price":1.5}"#, #"{"price":1.5,"name":"a/b 书"}"#].contains(text))
    }

    @Test func largeValuesAreReadBackUnchanged() throws {
        let text = String(repeating: "0123456789abcdef书", count: 200_000)
        try cache.set(text, forKey: "k")
        #expect(try cache.value(String.self, forKey: "k") == text)
        #expect(try cache.value(String.self, forKey: "k", fillCache: false) == text)
        #expect(try cache.bytes(forKey: "k", fillCache: false)?.count == text.utf8.count)
    }

    @Test func removingAnEntryReturnsWhetherItExisted() throws {
        try cache.set(1, forKey: "k")
        #expect(try cache.remove("k"))
        #expect(try cache.remove("k") == false)
        #expect(try cache.value(Int.self, forKey: "k") == nil)
        #expect(try cache.storedCount() == 0)
    }

    @Test func setDoesNotChangeTheCallersModel() throws {
        // A previous implementation wrote its time stamp into the model itself.
        let model = Everything()
        try cache.set(model, forKey: "k")
        #expect(model == Everything())
    }
}
