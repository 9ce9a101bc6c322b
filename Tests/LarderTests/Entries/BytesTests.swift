import Foundation
import Larder
import Testing

/// Tests that texts and bytes of any type are stored as raw bytes, and that entries in earlier formats can be read.
@Suite struct BytesTests {
    let work: Workspace
    let cache: Cache

    init() throws {
        work = try Workspace()
        cache = try work.cache()
    }

    private let bytes: [UInt8] = [0, 1, 255, 34, 91]

    @Test func bytesAreStoredWithoutEncoding() throws {
        try cache.set(Data(bytes), forKey: "data")
        try cache.set(bytes, forKey: "array")
        try cache.set(ContiguousArray(bytes), forKey: "contiguous")
        try cache.set(Optional(Data(bytes)), forKey: "optional")
        try cache.set(["pair": Data(bytes)])
        try cache.batch { try $0.set(bytes, forKey: "batch") }
        for key in ["data", "array", "contiguous", "optional", "pair", "batch"] {
            #expect(try cache.bytes(forKey: key) == bytes, "\(key)")
            #expect(try cache.info(forKey: key)?.codec == .raw, "\(key)")
            for _ in 0..<2 {
                #expect(try cache.value(Data.self, forKey: key) == Data(bytes), "\(key)")
                #expect(try cache.value([UInt8].self, forKey: key) == bytes, "\(key)")
                #expect(try cache.value(ContiguousArray<UInt8>.self, forKey: key) == ContiguousArray(bytes), "\(key)")
                #expect(try cache.value(Data?.self, forKey: key) == .some(.some(Data(bytes))), "\(key)")
                #expect(try cache.values([UInt8].self, forKeys: [key]) == [key: bytes], "\(key)")
            }
        }
        try cache.set(Data(), forKey: "empty")
        #expect(try cache.value([UInt8].self, forKey: "empty") == [])
    }

    /// Text is stored without JSON quotes, as other programs store it, so quotes in the stored bytes are part of the
    /// text.
    @Test func textIsStoredWithoutEncoding() throws {
        for text in ["", "plain", "\"quoted\"", "null", "5", "{\"a\":1}", "中"] {
            try cache.set(text, forKey: "set")
            try cache.set(Optional(text), forKey: "optional")
            try cache.set(["pair": text])
            try cache.batch { try $0.set(text, forKey: "batch") }
            for key in ["set", "optional", "pair", "batch"] {
                #expect(try cache.bytes(forKey: key) == Array(text.utf8), "\(key)")
                #expect(try cache.info(forKey: key)?.codec == .raw, "\(key)")
                for _ in 0..<2 {
                    #expect(try cache.value(String.self, forKey: key) == text, "\(key)")
                    #expect(try cache.value(String?.self, forKey: key) == .some(.some(text)), "\(key)")
                    #expect(try cache.value([UInt8].self, forKey: key) == Array(text.utf8), "\(key)")
                }
            }
            #expect(try cache.replace(text, with: "next", forKey: "set"))
        }
        try cache.set(String?.none, forKey: "none")
        #expect(try cache.value(String?.self, forKey: "none") == .some(.none))
        let json = try work.cache { $0.codec = .json }
        try json.set("x", forKey: "json")
        #expect(try cache.bytes(forKey: "json") == Array("\"x\"".utf8))
        for reader in [cache, json] { #expect(try reader.value(String.self, forKey: "json") == "x") }
    }

    /// Clients of larderd read a raw property list in the same way: they cannot know how the value was stored.
    @Test func aRawPropertyListIsReadAsAModel() throws {
        let lists = try work.cache { $0.codec = .propertyList }
        try lists.set(["a": 1], forKey: "list")
        let bytes = try #require(try lists.bytes(forKey: "list"))
        try cache.setBytes(bytes, forKey: "raw")
        #expect(try cache.value([String: Int].self, forKey: "raw") == ["a": 1])
        #expect(try cache.value([UInt8].self, forKey: "raw") == bytes)
    }

    @Test func bytesStoredAsJSONCanBeRead() throws {
        let before = try work.cache { $0.codec = .json }
        try before.set(Data(bytes), forKey: "data")
        try before.set(bytes, forKey: "array")
        #expect(try before.info(forKey: "data")?.codec == .json)
        for reader in [cache, before] {
            #expect(try reader.value(Data.self, forKey: "data") == Data(bytes))
            #expect(try reader.value([UInt8].self, forKey: "array") == bytes)
            #expect(try reader.value(Data?.self, forKey: "data") == Data(bytes))
        }
        // The cache with the codec `json` can read raw bytes too, because the codec of the entry is used.
        try cache.set(Data(bytes), forKey: "data")
        #expect(try before.value(Data.self, forKey: "data") == Data(bytes))
    }

    @Test func anExplicitCodecIsUsedForBytesToo() throws {
        let lists = try work.cache { $0.codec = .propertyList }
        try lists.set([Data(bytes)], forKey: "list")
        #expect(try lists.info(forKey: "list")?.codec == .propertyList)
        let json = try work.cache { $0.codec = .json }
        try json.set(Data(bytes), forKey: "data")
        #expect(try json.bytes(forKey: "data") == Array("\"AAH/Ils=\"".utf8))
    }

    /// A stored nil is an entry. Reading an optional distinguishes it from a missing entry.
    @Test func aStoredNilDiffersFromAMissingEntry() throws {
        try cache.set(Int?.none, forKey: "none")
        try cache.set(Int?.some(5), forKey: "some")
        try cache.set(Data?.none, forKey: "bytes")
        let snapshot = try cache.snapshot()
        for _ in 0..<3 {
            for read in [
                { try cache.value(Int?.self, forKey: $0) }, { try snapshot.value(Int?.self, forKey: $0) },
                { try cache.values(Int?.self, forKeys: [$0])[$0] }, { try cache[$0, as: Int?.self] },
                { try cache.values(Int?.self, forKeys: [$0], notFound: -1)[0] },
            ] as [(String) throws -> Int??] {
                #expect(try read("none") == .some(.none))
                #expect(try read("some") == .some(.some(5)))
            }
            #expect(try cache.value(Int?.self, forKey: "absent") == .none)
            #expect(try cache.value(Data?.self, forKey: "bytes") == .some(.none))
            #expect(try cache.values(Int?.self, forKeys: ["none", "absent"]) == ["none": .none])
        }
        #expect(try cache.entries(of: Int?.self).dictionary()["none"] == .some(.none))
        // The entry cannot be read as a number.
        expectError(.decoding) { _ = try cache.value(Int.self, forKey: "none") }
    }

    @Test func localizedDescriptionsExplainTheError() throws {
        let error = try #require(throws: LarderError.self) { try cache.set(1, forKey: "k", policy: .seconds(0)) }
        #expect(error.localizedDescription == error.description)
        #expect(error.localizedDescription.contains("0.001"))
        for seconds in [0, -1, .nan, .infinity, -.infinity, 1e300, 0.0001] {
            expectError(.invalidArgument) { try cache.set(1, forKey: "k", policy: .seconds(seconds)) }
        }
        #expect(try cache.value(Int.self, forKey: "k") == nil)
    }
}
