import Testing

import class LarderTestSupport.TemporaryDirectory

@testable import larderbench

@Suite struct StoreTests {
    private static let count = 3000

    private func check(_ entries: Entries, _ make: (String) throws -> any EmbeddedStore) throws {
        let directory = try TemporaryDirectory()
        let store = try make(directory.path)
        #expect(try !store.get(0))
        for index in 0..<10 { try store.put(index) }
        try store.putBatch(Array(10..<Self.count)[...])
        try store.writeOut()
        for index in 0..<Self.count { #expect(try store.get(index)) }
        #expect(try !store.get(Self.count))
        #expect(try !store.getAbsent(5))
        try store.close()
        let again = try make(directory.path)
        #expect(try again.get(0) && again.get(Self.count - 1))
        #expect(try !again.get(Self.count))
        try again.close()
    }

    @Test func everyStoreReturnsTheStoredEntries() throws {
        let entries = Entries(valueBytes: 100)
        try check(entries) { try RawStore($0, entries) }
        try check(entries) { try ModuleStore($0, entries) }
        try check(entries) { try EngineStore($0, entries, memoryBytes: 0) }
        try check(entries) { try EngineStore($0, entries, memoryBytes: 1 << 20) }
        try check(entries) { try CacheStore($0, entries) }
    }

    @Test(.enabled(if: (try? SQLiteLibrary.shared.get()) != nil, "SQLite's library is not there"))
    func sqliteReturnsTheStoredEntries() throws {
        let entries = Entries(valueBytes: 100)
        try check(entries) { try SQLiteStore($0, entries) }
    }

    @Test func benchmarkValuesHaveTheirSizeAndCompressByHalf() {
        for size in [1, 16, 64, 100, 1024] {
            let values = Values(bytes: size)
            #expect(values[3].count == size)
            #expect(values[3] == values[3 + 512])
            if size > 1 {
                #expect(values[3].prefix(size / 2) == values[3].suffix(from: (size + 1) / 2).prefix(size / 2))
            }
        }
    }

    /// If all keys of a trace fit into the memory tier, the second half of the trace is served from it. A tier without
    /// memory serves nothing.
    @Test func theProbeMeasuresTheMemoryTierOfTheEngine() throws {
        let directory = try TemporaryDirectory()
        let keys = (0..<4000).map { Int32($0 % 2000) }
        let probe = try TierProbe(directory.path, universe: 2000)
        let all = try probe.run(Trace(keys: keys, universe: 2000), memoryBytes: 16 << 20, from: 2000)
        #expect(all.hitRatio == 1)
        #expect(all.count == 2000)
        let none = try probe.run(Trace(keys: keys, universe: 2000), memoryBytes: 0, from: 2000)
        #expect(none.hitRatio == 0)
    }
}
