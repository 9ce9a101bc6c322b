import LarderTestSupport
import Testing

@testable import Larder

/// Tests of a program that learns of changes at the origin in its own way, and invalidates its cache.
@Suite(.timeLimit(.minutes(5)), .serialized) struct OriginInvalidatingTests {
    /// The kind of invalidation.
    enum Word: CaseIterable {
        case key, keys, prefix, all
    }

    private let workspace: Workspace

    init() throws { workspace = try Workspace() }

    private func front(tells: Bool) async throws -> (OriginCache, ScriptedCacheOrigin) {
        let origin = ScriptedCacheOrigin(["page:1": "1", "page:2": "2", "other": "3"], tells: tells)
        let cache = try workspace.cache()
        try await cache.setPolicy(.high, grace: .seconds(60))
        let front = OriginCache(cache, origin: origin, options: .patient, limits: .patient)
        await eventually { front.receivesChanges }
        return (front, origin)
    }

    private func say(_ word: Word, isPurge: Bool, to cache: OriginCache) async throws {
        switch (word, isPurge) {
        case (.key, false): try await cache.invalidate("page:1")
        case (.keys, false): try await cache.invalidate(["page:1", "page:2"])
        case (.prefix, false): try await cache.invalidate(prefix: "page:")
        case (.all, false): try await cache.invalidateAll()
        case (.key, true): try await cache.purge("page:1")
        case (.keys, true): try await cache.purge(["page:1", "page:2"])
        case (.prefix, true): try await cache.purge(prefix: "page:")
        case (.all, true): try await cache.purgeAll()
        }
    }

    private func keys(_ word: Word) -> [String] {
        switch word {
        case .key: ["page:1"]
        case .keys, .prefix: ["page:1", "page:2"]
        case .all: ["page:1", "page:2", "other"]
        }
    }

    @Test(arguments: Word.allCases, [(false, false), (false, true), (true, false), (true, true)])
    func invalidatedEntriesAreRequestedAgain(_ word: Word, _ how: (tells: Bool, isPurge: Bool)) async throws {
        let (cache, origin) = try await front(tells: how.tells)
        let all = ["page:1", "page:2", "other"]
        #expect(try await cache.values(String.self, forKeys: all).count == 3)
        for key in all { origin.change(key, to: "new", silently: true) }
        try await say(word, isPurge: how.isPurge, to: cache)
        let ended = Set(keys(word))
        for key in all { #expect(try await cache.cache.contains(key) == !ended.contains(key)) }
        // Stale values are served while the origin fails, purged ones are not.
        origin.fails = true
        for key in ended.sorted() {
            if how.isPurge {
                await #expect(throws: ScriptedCacheOrigin.Failure.self) {
                    _ = try await cache.value(String.self, forKey: key)
                }
            } else {
                #expect(try await cache.value(String.self, forKey: key) != "new")
            }
        }
        origin.fails = false
        workspace.time.advance(milliseconds: 1_000)
        let values = try await cache.values(String.self, forKeys: all)
        for key in all { #expect((values[key] == "new") == ended.contains(key), "\(key)") }
        #expect(origin.writes.isEmpty && origin["page:1"] == "new")
    }

    @Test(arguments: Word.allCases, [(false, false), (false, true), (true, false), (true, true)])
    func repliesToEarlierRequestsAreNotCached(_ word: Word, _ how: (tells: Bool, isPurge: Bool)) async throws {
        let (cache, origin) = try await front(tells: how.tells)
        origin.isHeld = true
        let early = Task { try await cache.value(String.self, forKey: "page:1") }
        await eventually { origin.running == 1 }
        let many = Task { try await cache.values(String.self, forKeys: ["page:1", "page:2"]) }
        await eventually { origin.running == 2 }
        origin.change("page:1", to: "new", silently: true)
        try await say(word, isPurge: how.isPurge, to: cache)
        // This call joins the earlier request, but does not accept its reply.
        let late = Task { try await cache.value(String.self, forKey: "page:1") }
        await eventually { cache.trust.callCount >= 5 }
        origin.isHeld = false
        #expect(try await early.value == "1")
        #expect(try await many.value["page:2"] == "2")
        #expect(try await late.value == "new")
        #expect(try await cache.value(String.self, forKey: "page:1") == "new")
        #expect(try await cache.cache.value(String.self, forKey: "page:1") != "1")
    }

    @Test(arguments: Word.allCases, [(false, false), (true, true)])
    func anInvalidationEndsARememberedAbsence(_ word: Word, _ how: (tells: Bool, isPurge: Bool)) async throws {
        let (cache, origin) = try await front(tells: how.tells)
        origin.change("page:1", to: nil, silently: true)
        #expect(try await cache.value(String.self, forKey: "page:1") == nil)
        origin.change("page:1", to: "new", silently: true)
        #expect(try await cache.value(String.self, forKey: "page:1") == nil)
        try await say(word, isPurge: how.isPurge, to: cache)
        #expect(try await cache.value(String.self, forKey: "page:1") == "new")
    }

    @Test(arguments: Word.allCases) func aWriteSentBeforeAnInvalidationIsNotCached(_ word: Word) async throws {
        let (cache, origin) = try await front(tells: false)
        origin.holdsWrites = true
        let writer = Task { try await cache.set("mine", forKey: "page:1") }
        await eventually { origin.running == 1 }
        try await say(word, isPurge: false, to: cache)
        origin.holdsWrites = false
        try await writer.value
        #expect(try await !cache.cache.contains("page:1"))
    }

    @Test func aPurgeDuringAnInvalidationDoesNotMakeItFail() async throws {
        let (cache, _) = try await front(tells: false)
        let batch = CacheBatch()
        for number in 0..<2_000 { try batch.set(number, forKey: "page:\(number)") }
        for _ in 1...10 {
            try await cache.cache.apply(batch)
            async let purged: Void = cache.purgeAll()
            try await cache.invalidate(prefix: "page:")
            try await purged
            #expect(try await cache.cache.count() == 0)
        }
    }

    @Test func thousandsOfKeysWithAPrefixAreAllInvalidated() async throws {
        let (cache, _) = try await front(tells: false)
        let batch = CacheBatch()
        for number in 0..<9_000 { try batch.set(number, forKey: "page:\(number)") }
        try batch.set(1, forKey: "other")
        try await cache.cache.apply(batch)
        try await cache.invalidate(prefix: "page:")
        #expect(try await cache.cache.count() == 1)
        try await cache.invalidateAll()
        #expect(try await cache.cache.count() == 0)
    }
}
