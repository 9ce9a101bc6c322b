import Foundation
import Larder
import Testing

@Suite struct ManyTests {
    let work: Workspace
    let cache: Cache

    init() throws {
        work = try Workspace()
        cache = try work.cache()
    }

    @Test func severalKeysAreReadInOneCall() throws {
        try cache.set(1, forKey: "a")
        try cache.set(2, forKey: "b")
        try cache.set(3, forKey: "expired", policy: .seconds(1))
        work.time.advance(milliseconds: 1_000)
        let keys = ["b", "none", "a", "expired", "b"]
        for reading in [cache, try cache.snapshot()] as [any CacheReading] {
            #expect(try reading.values(Int.self, forKeys: keys) == ["a": 1, "b": 2])
            #expect(try reading.values(Int.self, forKeys: keys, notFound: -1) == [2, -1, 1, -1, 2])
            #expect(try reading.values(Int.self, forKeys: keys, notFound: -1, fillCache: false) == [2, -1, 1, -1, 2])
            #expect(try reading.values(Int.self, forKeys: [String](), fillCache: false) == [:])
            #expect(try reading.values(Int.self, forKeys: [String](), notFound: 0) == [])
            #expect(try reading.values(Int.self, forKeys: [[0x61]], notFound: 0) == [1])
        }
        try cache.set("text", forKey: "text")
        expectError(.decoding) { _ = try cache.values(Int.self, forKeys: ["a", "text"]) }
    }

    @Test func severalEntriesAreStoredInOneBatch() throws {
        try cache.set(["a": Reader("a"), "b": Reader("b")])
        #expect(try cache.keys() == ["a", "b"])
        try cache.set(["x": 1, "y": 2, "x": 3] as KeyValuePairs, policy: .seconds(1))
        #expect(try cache.value(Int.self, forKey: "x") == 3)
        try cache.set([[0xFF] as [UInt8]: 9])
        #expect(try cache.value(Int.self, forKey: [0xFF] as [UInt8]) == 9)
        try cache.set([String: Int]())
        work.time.advance(milliseconds: 1_000)
        #expect(try cache.count() == 3)
    }

    @Test func ifOneValueCannotBeEncodedNoneIsStored() throws {
        expectError(.encoding) { try cache.set(["a": 1.0, "b": .nan, "c": 2]) }
        #expect(try cache.storedCount() == 0)
    }

    @Test func severalEntriesAreRemovedInOneBatch() throws {
        try cache.set(["a": 1, "b": 2, "c": 3])
        try cache.set(1, forKey: "expired", policy: .seconds(1))
        work.time.advance(milliseconds: 1_000)
        #expect(try cache.remove(["a", "none", "c", "a", "expired"]) == 2)
        #expect(try cache.keys(EntryOptions(includingExpired: true)) == ["b"])
        #expect(try cache.remove([String]()) == 0)
        #expect(try cache.remove(Set(["b"])) == 1)
        #expect(try cache.remove([[0x62] as [UInt8]]) == 0)
    }

    @Test func removingAPrefixRemovesTheEntriesWithIt() throws {
        for index in 0..<1_500 { try cache.set(index, forKey: "user:\(index)") }
        try cache.set(1, forKey: "user")
        try cache.set(1, forKey: "user;")
        try cache.set(1, forKey: [0xFF, 0xFF] as [UInt8])
        try cache.set(1, forKey: [0xFF] as [UInt8])
        let report = try cache.remove(prefix: "user:")
        #expect(report.entries == 1_500)
        #expect(report.bytes > 0)
        #expect(try cache.keys(EntryOptions(prefix: "user")) == ["user", "user;"])
        #expect(try cache.remove(prefix: [0xFF] as [UInt8]).entries == 2)
        #expect(try cache.remove(prefix: "none").entries == 0)
        #expect(try cache.remove(prefix: "").entries == 2)
    }

    @Test func removeAllRemovesEveryEntry() throws {
        try cache.set(["a": 1, "b": 2])
        let report = try cache.removeAll(counting: true)
        #expect(report.entries == 2 && report.bytes > 0)
        #expect("\(report)".hasPrefix("2 entries, "))
        #expect(try cache.storedCount() == 0)
        #expect(try cache.value(Int.self, forKey: "a") == nil)
        #expect(cache.policy == .high)
        try cache.set(3, forKey: "a")
        #expect(try cache.removeAll().entries == nil)
        #expect(try cache.contains("a") == false)
        cache.close()
        #expect(try work.cache().storedCount() == 0)
    }

    @Test func countExcludesExpiredEntries() throws {
        #expect(try cache.count() == 0)
        try cache.set(["a": 1, "b": 2])
        try cache.set(1, forKey: "short", policy: .seconds(1))
        #expect(try cache.count() == 3)
        work.time.advance(milliseconds: 1_000)
        #expect(try cache.count() == 2)
        #expect(try cache.storedCount() == 3)
    }
}
