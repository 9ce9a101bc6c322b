import LarderEngine
import LarderFetching
import LarderTestSupport
import Testing

@testable import Larder

/// Tests of tags in the library, by which entries are removed together.
@Suite(.timeLimit(.minutes(10))) struct TagTests {
    let work: Workspace

    init() throws { work = try Workspace() }

    /// A removal by tag applies to decoded models in memory, to entries on disk, and to snapshots.
    @Test(arguments: [0, 64 << 20]) func entriesRemovedByTagAreNotReturned(memory: Int) throws {
        var cache = try work.cache { $0.memoryBytes = memory }
        for index in 0..<50 { try cache.set(index, forKey: "k\(index)", tags: ["all", index < 25 ? "low" : "high"]) }
        try cache.set(100, forKey: "untagged")
        cache.close()
        cache = try work.cache { $0.memoryBytes = memory }
        // Read twice, so that decoded models are kept.
        for _ in 0..<2 { for index in 0..<50 { #expect(try cache.value(Int.self, forKey: "k\(index)") == index) } }
        let snapshot = try cache.snapshot()
        try cache.removeAll(tagged: "low")
        for index in 0..<50 {
            let expected = index < 25 ? nil : index
            #expect(try cache.value(Int.self, forKey: "k\(index)") == expected)
            #expect(try snapshot.value(Int.self, forKey: "k\(index)") == expected)
            #expect(try snapshot.tags(forKey: "k\(index)") == (index < 25 ? nil : ["all", "high"]))
        }
        #expect(try cache.count() == 26)
        try cache.set(0, forKey: "k0", tags: ["low"])
        cache.close()
        cache = try work.cache { $0.memoryBytes = memory }
        #expect(try cache.value(Int.self, forKey: "k0") == 0)
        #expect(try cache.value(Int.self, forKey: "k1") == nil)
        try cache.removeAll(tagged: ["high", "low"])
        #expect(try cache.keys() == ["untagged"])
        snapshot.close()
    }

    @Test func longValuesHaveTagsToo() throws {
        let cache = try work.cache()
        let long = [UInt8](repeating: 7, count: 5 << 20)
        try cache.setBytes(long, forKey: "k", tags: ["t"])
        #expect(try cache.tags(forKey: "k") == ["t"])
        #expect(try cache.bytes(forKey: "k") == long)
        try cache.removeAll(tagged: "t")
        #expect(try cache.bytes(forKey: "k") == nil)
    }

    @Test func storingAnEntryReplacesItsTags() throws {
        let cache = try work.cache()
        try cache.set(1, forKey: "k", tags: ["old"])
        try cache.set(2, forKey: "k", tags: ["new"])
        try cache.removeAll(tagged: "old")
        #expect(try cache.value(Int.self, forKey: "k") == 2)
        try cache.set(3, forKey: "k")
        #expect(try cache.tags(forKey: "k") == [])
        try cache.removeAll(tagged: "new")
        #expect(try cache.value(Int.self, forKey: "k") == 3)
    }

    /// Regression test: `increment` stored the sum without the tags.
    @Test func anIncrementKeepsTheTags() throws {
        let cache = try work.cache()
        try cache.set(1, forKey: "k", tags: ["t"])
        #expect(try cache.increment("k") == 2)
        #expect(try cache.tags(forKey: "k") == ["t"])
        #expect(try cache.increment("k", by: 0.5) == 2.5)
        try cache.removeAll(tagged: "t")
        #expect(try cache.value(Double.self, forKey: "k") == nil)
    }

    /// Regression test: asynchronous reads from memory returned entries without their tags. So an update did not
    /// recognize the entry that it had read.
    @Test func anAsynchronousUpdateOfAnEntryInMemoryKeepsItsTags() async throws {
        let cache = try work.cache()
        try await cache.set(1, forKey: "k", tags: ["t"])
        try await cache.update(Int.self, forKey: "k", attempts: 1) { $0 = 2 }
        #expect(try await cache.tags(forKey: "k") == ["t"])
        #expect(try await cache.value(Int.self, forKey: "k") == 2)
        // Undecodable entries are removed, with or without tags.
        let strict = try work.cache(policy: nil) { $0.onDecodingFailure = .removeAndMiss }
        #expect(try await strict.value([String].self, forKey: "k") == nil)
        #expect(try await cache.contains("k") == false)
    }

    @Test func tagsThatAreNotTextAreOmitted() throws {
        let cache = try work.cache()
        let tags = try Tags(checking: [[0xFF], Array("t".utf8)])
        try cache.source.database.commit([try cache.source.key("k", "set")], loading: .none) { update in
            update.put(0, payload: UnsafeRawBufferPointer(start: nil, count: 0), tags: tags)
        }
        #expect(try cache.tags(forKey: "k") == ["t"])
    }

    @Test func invalidTagsLeaveABatchUnchanged() throws {
        let cache = try work.cache()
        let batch = cache.makeBatch()
        let text = expectError(.invalidArgument) { try batch.set(1, forKey: "k", tags: [""]) }
        #expect(text.contains("a tag must have 1 to 128 bytes, not 0"))
        expectError(.invalidArgument) { try batch.setBytes([1], forKey: "k", tags: ["a\0"]) }
        #expect(batch.isEmpty)
        expectError(.invalidArgument) { try cache.set(["k": 1], tags: [String(repeating: "x", count: 129)]) }
        expectError(.invalidArgument) { try cache.removeAll(tagged: "") }
        expectError(.invalidArgument) { try cache.removeAll(tagged: ["t", "\0"], soft: true) }
        // Duplicates count once: these are 16 different tags.
        try cache.set(1, forKey: "k", tags: (1...40).map { "\($0 % 16)" })
        #expect(try cache.tags(forKey: "k")?.count == 16)
        cache.close()
        expectError(.closed) { try cache.removeAll(tagged: []) }
    }

    // MARK: Fetching

    private static func fetch(_ cache: Cache, _ tags: [String], _ origin: TestOrigin) async throws -> Int {
        try await cache.value(Int.self, forKey: "k", options: FetchOptions(tags: tags)) { try await origin.value() }
    }

    @Test func fetchedValuesAreStoredWithTags() async throws {
        let cache = try work.cache()
        let origin = TestOrigin()
        #expect(try await Self.fetch(cache, ["t", "u"], origin) == 1)
        #expect(try await cache.tags(forKey: "k") == ["t", "u"])
        #expect(try await Self.fetch(cache, ["t"], origin) == 1)
        try await cache.removeAll(tagged: "u")
        #expect(try await Self.fetch(cache, ["t"], origin) == 2)
        let many = try await cache.values(
            Int.self, forKeys: ["a", "b"], options: FetchOptions(tags: ["many"])
        ) { keys in Dictionary(uniqueKeysWithValues: keys.map { ($0, 7) }) }
        #expect(many == ["a": 7, "b": 7])
        #expect(try await cache.tags(forKey: "b") == ["many"])
        try await cache.removeAll(tagged: ["many", "t"])
        #expect(try await cache.count() == 0)
        let error = await #expect(throws: FetchError.self) { try await Self.fetch(cache, [""], origin) }
        #expect(error?.code == .invalidArgument)
        #expect(origin.calls == 2)
    }

    /// A value that the origin returned before the purge may be one of the values to be purged, so it is not stored.
    @Test(arguments: [false, true]) func aTagPurgeDuringAFetchPreventsStoring(soft: Bool) async throws {
        let cache = try work.cache()
        let origin = TestOrigin()
        origin.hold()
        let task = Task { try await Self.fetch(cache, ["t"], origin) }
        await origin.waitUntil(calls: 1)
        try await cache.removeAll(tagged: ["other", "t"], soft: soft)
        origin.letGo()
        #expect(try await task.value == 1)
        #expect(try await cache.value(Int.self, forKey: "k") == nil)
        origin.hold()
        let unrelated = Task { try await Self.fetch(cache, ["t"], origin) }
        await origin.waitUntil(calls: 2)
        try await cache.removeAll(tagged: "other", soft: soft)
        origin.letGo()
        #expect(try await unrelated.value == 2)
        #expect(try await cache.value(Int.self, forKey: "k") == 2)
    }

    @Test func aSoftRemovalMakesEntriesStale() async throws {
        let cache = try work.cache()
        let origin = TestOrigin()
        let policy = EntryPolicy.hours(1).grace(.seconds(600))
        try await cache.set(50, forKey: "k", policy: policy, tags: ["t"])
        try await cache.set(60, forKey: "graceless", tags: ["t"])
        #expect(try await cache.value(Int.self, forKey: "k") == 50)
        work.time.advance(milliseconds: 1)
        try await cache.removeAll(tagged: "t", soft: true)
        for key in ["k", "graceless"] { #expect(try await cache.value(Int.self, forKey: key) == nil) }
        origin.hold()
        #expect(try await Self.fetch(cache, ["t"], origin) == 50, "the stale one")
        await origin.waitUntil(calls: 1)
        origin.letGo()
        await eventually { (try? cache.value(Int.self, forKey: "k")) == 1 }
        #expect(try await cache.tags(forKey: "k") == ["t"])
    }
}
