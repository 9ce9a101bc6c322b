import Foundation
import Larder
import LarderTestSupport
import Testing

@Suite struct EnumerationTests {
    let work: Workspace
    let cache: Cache

    init() throws {
        work = try Workspace()
        cache = try work.cache()
    }

    private func fill(_ keys: [String]) throws {
        for key in keys { try cache.set(Reader(key), forKey: key) }
    }

    @Test func keysComeInTheOrderOfTheirBytes() throws {
        try fill(["b", "a", "ab", "B", "é", "一", "", "z", "10", "9"])
        #expect(try cache.keys() == ["", "10", "9", "B", "a", "ab", "b", "z", "é", "一"])
        #expect(try cache.keys(EntryOptions(backward: true)) == ["一", "é", "z", "b", "ab", "a", "B", "9", "10", ""])
    }

    @Test func boundsAndPrefixesSelectTheEnumeratedKeys() throws {
        try fill(["a", "ab", "abc", "b", "ba", "c"])
        #expect(try cache.keys(EntryOptions(from: "b")) == ["b", "ba", "c"])
        #expect(try cache.keys(EntryOptions(from: "aba")) == ["abc", "b", "ba", "c"])
        #expect(try cache.keys(EntryOptions(from: "d")) == [])
        #expect(try cache.keys(EntryOptions(to: "b")) == ["a", "ab", "abc"])
        #expect(try cache.keys(EntryOptions(to: "")) == [])
        #expect(try cache.keys(EntryOptions(from: "ab", to: "ba")) == ["ab", "abc", "b"])
        #expect(try cache.keys(EntryOptions(from: "ab", to: "ab")) == [])
        #expect(try cache.keys(EntryOptions(from: "c", to: "a")) == [])
        #expect(try cache.keys(EntryOptions(to: "b", backward: true)) == ["abc", "ab", "a"])
        #expect(try cache.keys(EntryOptions(to: "aba", backward: true)) == ["ab", "a"])
        #expect(try cache.keys(EntryOptions(from: "ab", to: "ba", backward: true)) == ["b", "abc", "ab"])
        #expect(try cache.keys(EntryOptions(from: "c", to: "a", backward: true)) == [])
        #expect(try cache.keys(EntryOptions(from: "b", backward: true)) == ["c", "ba", "b"])
        // A previous implementation returned nothing when enumerating backward from beyond the last key.
        #expect(try cache.keys(EntryOptions(to: "d", backward: true)) == ["c", "ba", "b", "abc", "ab", "a"])
        #expect(try cache.keys(EntryOptions(prefix: "ab")) == ["ab", "abc"])
        #expect(try cache.keys(EntryOptions(prefix: "ab", backward: true)) == ["abc", "ab"])
        #expect(try cache.keys(EntryOptions(prefix: "b", from: "ba")) == ["ba"])
        #expect(try cache.keys(EntryOptions(prefix: "b", from: "a")) == ["b", "ba"])
        #expect(try cache.keys(EntryOptions(prefix: "b", from: "c")) == [])
        #expect(try cache.keys(EntryOptions(prefix: "b", to: "ba")) == ["b"])
        #expect(try cache.keys(EntryOptions(prefix: "b", to: "c", backward: true)) == ["ba", "b"])
        #expect(try cache.keys(EntryOptions(prefix: "b", to: "a", backward: true)) == [])
        #expect(try cache.keys(EntryOptions(prefix: "x")) == [])
        #expect(try cache.entries(of: Reader.self, from: "ab", to: "c", limit: 2).keys() == ["ab", "abc"])
        #expect(try cache.entries(of: Reader.self, to: "c", backward: true, limit: 2).keys() == ["ba", "b"])
    }

    @Test func prefixesThatEndIn0xFFSelectAllTheirKeys() throws {
        // A previous implementation computed a wrong end of a prefix with 0xFF.
        let keys: [[UInt8]] = [[0xFE], [0xFE, 0xFF], [0xFE, 0xFF, 0x01], [0xFF], [0xFF, 0xFF], [0xFF, 0xFF, 0xFF]]
        for key in keys { try cache.setBytes([1], forKey: key) }
        func found(_ options: EntryOptions) throws -> [[UInt8]] {
            try cache.entries(of: Data.self, options).map { $0.keyBytes }
        }
        #expect(try found(EntryOptions(prefix: [0xFF] as [UInt8], backward: true)) == keys[3...].reversed())
        #expect(try found(EntryOptions(prefix: [0xFE, 0xFF] as [UInt8])) == Array(keys[1...2]))
        #expect(try found(EntryOptions(prefix: [0xFE, 0xFF] as [UInt8], backward: true)) == keys[1...2].reversed())
        #expect(try found(EntryOptions(from: [0xFF] as [UInt8])) == Array(keys[3...]))
    }

    @Test func anEnumerationEndsAtItsLimitOrWhenItIsStopped() throws {
        try fill(["a", "b", "c", "d"])
        #expect(try cache.keys(EntryOptions(limit: 2)) == ["a", "b"])
        #expect(try cache.keys(EntryOptions(limit: 0)) == [])
        #expect(try cache.keys(EntryOptions(limit: 9)).count == 4)
        expectError(.invalidArgument) { _ = try cache.keys(EntryOptions(limit: -1)) }
        let even = cache.entries(of: Reader.self, EntryOptions(limit: 1)).filter { $0.key > "b" }
        #expect(try even.keys() == ["c"])
        var seen: [String] = []
        try cache.entries(of: Reader.self).enumerate { entry, stop in
            seen.append(entry.key)
            stop = entry.key == "b"
        }
        #expect(seen == ["a", "b"])
    }

    @Test func expiredEntriesAreIncludedOnlyOnRequest() throws {
        try fill(["a", "c"])
        try cache.set(Reader("b"), forKey: "b", policy: .seconds(1))
        work.time.advance(milliseconds: 1_000)
        #expect(try cache.keys() == ["a", "c"])
        let all = try cache.entries(of: Reader.self, EntryOptions(includingExpired: true)).map {
            "\($0.key) \(try $0.info().isExpired) \(try $0.value().userName) \(try $0.info().timeToLive == .zero)"
        }
        #expect(all == ["a false a false", "b true b true", "c false c false"])
    }

    @Test func entriesThatExpireDuringAnEnumerationAreSkipped() throws {
        try fill(["a", "b"])
        try cache.set(Reader("c"), forKey: "c", policy: .never)
        let run = try cache.entries(of: Reader.self).makeIterator()
        #expect(try run.next()?.key == "a")
        work.time.advance(milliseconds: 60_000)
        #expect(try run.next()?.key == "c")
        #expect(try run.next() == nil)
        #expect(try run.next() == nil)
    }

    @Test func anEnumerationShowsTheDatabaseAsOfItsStart() throws {
        try fill(["a", "b", "c"])
        let sequence = cache.entries(of: Reader.self)
        var seen: [String] = []
        try sequence.enumerate { entry, _ in
            seen.append(try entry.value().userName)
            try cache.remove("c")
            try cache.set(Reader("changed"), forKey: "b")
            try cache.set(Reader("d"), forKey: "d")
        }
        #expect(seen == ["a", "b", "c"])
        // The next enumeration sees the current entries.
        #expect(try sequence.map { try $0.value().userName } == ["a", "changed", "d"])
    }

    @Test func valuesAreDecodedOnRequestAndOnce() throws {
        let decoded = Guarded(0)
        let counting = try work.cache { options in
            options.codec = .custom(
                encode: { Array(try JSONEncoder().encode($0)) },
                decode: { type, bytes in
                    decoded.with { $0 += 1 }
                    return try JSONDecoder().decode(type, from: Data(bytes))
                })
        }
        for index in 0..<10 { try counting.set(index, forKey: "\(index)") }
        #expect(try counting.keys().count == 10)
        #expect(try counting.entries(of: Int.self).count() == 10)
        #expect(try counting.entries(of: Int.self).map { try $0.info().byteCount } == Array(repeating: 1, count: 10))
        #expect(decoded.value == 0)
        var found: Int?
        try counting.entries(of: Int.self).enumerate { entry, stop in
            guard entry.key == "7" else { return }
            found = try entry.value() + entry.value()
            stop = true
        }
        #expect(found == 14)
        #expect(decoded.value == 1)
        #expect(try counting.entries(of: Int.self).filter(#Predicate { $0 > 4 }).values() == [5, 6, 7, 8, 9])
        #expect(decoded.value == 11)
        let lazy = counting.entries(of: Int.self)
        #expect(decoded.value == 11)
        #expect(try lazy.filter { try $0.value() == 0 }.makeIterator().next()?.key == "0")
        #expect(decoded.value == 12)
    }

    @Test func anEntryThrowsAfterItsIteratorHasMovedOn() throws {
        try fill(["a", "b"])
        let run = try cache.entries(of: Reader.self).makeIterator()
        let first = try #require(try run.next())
        #expect(try first.value() == Reader("a"))
        _ = try run.next()
        #expect(first.key == "a" && first.keyBytes == [0x61])
        expectError(.invalidArgument) { _ = try first.value() }
        expectError(.invalidArgument) { _ = try first.bytes() }
        expectError(.invalidArgument) { _ = try first.info() }
        var kept: [CacheEntry<Reader>] = []
        try cache.entries(of: Reader.self).enumerate { entry, _ in kept.append(entry) }
        for entry in kept { expectError(.invalidArgument) { _ = try entry.value() } }
        run.close()
        run.close()
        #expect(try run.next() == nil)
    }

    @Test func entriesReturnTheirStoredBytes() throws {
        try cache.setBytes([1, 2], forKey: "raw")
        try cache.set([3], forKey: "json")
        #expect(try cache.entries(of: Data.self).map { try $0.bytes() } == [Array("[3]".utf8), [1, 2]])
        #expect(try cache.entries(of: Data.self, EntryOptions(prefix: "r")).values() == [Data([1, 2])])
    }

    @Test func aPrefixLongerThanAnyKeyMatchesNoKey() throws {
        let longest = [UInt8](repeating: 0x61, count: 65_536)
        try cache.set(1, forKey: longest)
        #expect(try cache.entries(of: Int.self, prefix: longest).values() == [1])
        #expect(try cache.entries(of: Int.self, prefix: longest + [0x61]).values().isEmpty)
    }

    @Test func keysThatAreNotTextAreNotReturnedAsText() throws {
        try cache.set(1, forKey: "a")
        try cache.set(2, forKey: [0xC3] as [UInt8])
        #expect(try cache.keys() == ["a"])
        #expect(expectError(.decoding) { _ = try cache.entries(of: Int.self).dictionary() }.contains("\\xc3"))
        #expect(try cache.entries(of: Int.self).map { $0.keyBytes } == [[0x61], [0xC3]])
        #expect(try cache.entries(of: Int.self).map { $0.key } == ["a", "\u{FFFD}"])
        #expect(try cache.entries(of: Int.self).values() == [1, 2])
    }

    /// Regression test: one key that is not text, stored by another program, made the call fail.
    @Test func keysThatAreNotTextAreOmittedFromTheKeys() async throws {
        try await cache.set(1, forKey: "a")
        try await cache.set(2, forKey: [0xC3] as [UInt8])
        #expect(try await cache.keys() == ["a"])
        #expect(try await cache.entries(of: Int.self).keys() == ["a"])
        var found: [[UInt8]: Int] = [:]
        for try await entry in cache.entries(of: Int.self) { found[entry.keyBytes] = try entry.value() }
        #expect(found == [[0x61]: 1, [0xC3]: 2])
    }

    @Test func aDictionaryOfKeysThatSwiftConsidersEqualIsAnError() throws {
        try cache.set(1, forKey: "\u{e9}")
        try cache.set(2, forKey: "e\u{301}")
        #expect(try cache.keys().count == 2)
        expectError(.decoding) { _ = try cache.entries(of: Int.self).dictionary() }
    }

    @Test func aPurgeOrADeletionEndsAnEnumerationWithAnError() throws {
        try fill(["a", "b", "c"])
        let purged = try cache.entries(of: Reader.self).makeIterator()
        let entry = try #require(try purged.next())
        try cache.removeAll()
        expectError(.purged) { _ = try purged.next() }
        expectError(.invalidArgument) { _ = try entry.value() }
        try fill(["a"])
        let deleted = try cache.entries(of: Reader.self).makeIterator()
        _ = try deleted.next()
        try cache.delete()
        expectError(.deleted) { _ = try deleted.next() }
    }

    @Test func enumerationsCanBeNested() throws {
        try fill(["a", "b", "c"])
        var pairs: [String] = []
        try cache.entries(of: Reader.self).enumerate { outer, _ in
            try cache.entries(of: Reader.self, EntryOptions(from: outer.keyBytes)).enumerate { inner, _ in
                pairs.append(try outer.value().userName + inner.value().userName)
            }
        }
        #expect(pairs == ["aa", "ab", "ac", "bb", "bc", "cc"])
    }

    @Test func errorsOfFiltersAndBodiesArePassedOn() throws {
        struct Halt: Error {}
        try fill(["a"])
        #expect(throws: Halt.self) { try cache.entries(of: Reader.self).enumerate { _, _ in throw Halt() } }
        let text = expectError(.filterFailed) {
            _ = try cache.entries(of: Reader.self).filter { _ in throw Halt() }.keys()
        }
        #expect(text.contains("Halt"))
        // Errors of the cache itself are passed on unchanged.
        expectError(.decoding) {
            _ = try cache.entries(of: Int.self).filter { try $0.value() == 1 }.keys()
        }
    }

    @Test func aPredicateSelectsTheEnumeratedEntries() throws {
        for index in 0..<20 { try cache.set(Reader("r\(index)", price: Double(index)), forKey: "r\(index)") }
        try cache.set(Reader("王五", price: 3), forKey: "中")
        let cheap = #Predicate<Reader> { $0.book.price < 2 }
        #expect(try cache.keys(matching: cheap) == ["r0", "r1"])
        #expect(try cache.keys(matching: cheap, EntryOptions(backward: true, limit: 1)) == ["r1"])
        #expect(
            try cache.dictionary(matching: #Predicate<Reader> { $0.userName.contains("王") }) == [
                "中": Reader("王五", price: 3)
            ])
        let limit = 18.0
        #expect(
            try cache.dictionary(matching: #Predicate<Reader> { $0.book.price >= limit && $0.userName != "r18" })
                .keys.sorted() == ["r19"])
        #expect(try cache.keys(matching: #Predicate<Reader> { _ in false }) == [])
        #expect(try cache.snapshot().keys(matching: cheap) == ["r0", "r1"])
        let both = cache.entries(of: Reader.self).filter(cheap).filter { $0.key.hasSuffix("1") }
        #expect(try both.values() == [Reader("r1", price: 1)])
        try cache.set("text", forKey: "text")
        expectError(.decoding) { _ = try cache.keys(matching: cheap) }
        #expect(try cache.keys(matching: cheap, EntryOptions(prefix: "r")) == ["r0", "r1"])
    }
}
