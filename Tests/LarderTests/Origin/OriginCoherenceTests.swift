import LarderTestSupport
import Testing

@testable import Larder

/// Tests of a cache in front of an origin that reports changes.
@Suite(.timeLimit(.minutes(10))) struct OriginCoherenceTests {
    private let workspace: Workspace
    private let origin: ScriptedCacheOrigin

    init() throws {
        workspace = try Workspace()
        origin = ScriptedCacheOrigin(["a": "1", "b": "2"], tells: true)
    }

    private func cache(
        grace: Duration = .zero, writing: OriginCache.Writing = .through
    ) async throws -> (OriginCache, OriginChanges) {
        let cache = try workspace.cache()
        try await cache.setPolicy(.high, grace: grace)
        let front = OriginCache(cache, origin: origin, writing: writing, options: .patient, limits: .patient)
        await eventually { front.receivesChanges }
        return (front, try #require(origin.changes))
    }

    @Test func anOriginThatRetainsItsListenerIsReleasedWithItsCache() async throws {
        let released = WeakReference<ScriptedCacheOrigin>()
        do {
            let origin = ScriptedCacheOrigin(tells: true)
            released.object = origin
            let front = OriginCache(try workspace.cache(), origin: origin, options: .patient, limits: .patient)
            await eventually { front.receivesChanges }
            #expect(origin.changes != nil)
        }
        await eventually { released.object == nil }
    }

    /// A weak reference. `@unchecked Sendable`: one task uses it.
    private final class WeakReference<Object: AnyObject>: @unchecked Sendable {
        weak var object: Object?
    }

    @Test func aChangeIsSeenByTheNextRead() async throws {
        let (cache, _) = try await cache()
        #expect(try await cache.value(String.self, forKey: "a") == "1")
        #expect(try await cache.value(String.self, forKey: "b") == "2")
        origin.change("a", to: "new")
        #expect(try await cache.value(String.self, forKey: "a") == "new")
        #expect(try await cache.values(String.self, forKeys: ["a", "b"]) == ["a": "new", "b": "2"])
        #expect(origin.reads == [["a"], ["b"], ["a"]])
        #expect(try await cache.cache.tags(forKey: "a") == [OriginCache.tag])
    }

    @Test func changedEntriesAreServedOnlyWhileTheOriginFails() async throws {
        let (cache, _) = try await cache(grace: .seconds(60))
        #expect(try await cache.value(String.self, forKey: "a") == "1")
        origin.change("a", to: "new")
        origin.fails = true
        #expect(try await cache.value(String.self, forKey: "a") == "1")
        #expect(try await cache.cache.value(String.self, forKey: "a") == nil)
        origin.fails = false
        workspace.time.advance(milliseconds: 1_000)
        #expect(try await cache.value(String.self, forKey: "a") == "new")
    }

    /// A changed entry is not served while a call for it waits for the origin. Every call gets the new value.
    @Test(arguments: ["value", "values", "originOnly", "originElseCache"], ["value", "values", "both"])
    func changedEntriesAreNotServedDuringARequest(first: String, second: String) async throws {
        let (cache, _) = try await cache(grace: .seconds(60))
        #expect(try await cache.values(String.self, forKeys: ["a", "b"]).count == 2)
        origin.change("a", to: "new")
        origin.isHeld = true
        @Sendable func read(_ how: String) async throws -> String? {
            var options = FetchOptions.patient
            switch how {
            case "value": break
            case "values": return try await cache.values(String.self, forKeys: ["a"])["a"]
            case "both": return try await cache.values(String.self, forKeys: ["a", "b"])["a"]
            case "originOnly": options.source = .originOnly
            default: options.source = .originElseCache
            }
            return try await cache.value(String.self, forKey: "a", options: options)
        }
        let one = Task { try await read(first) }
        await eventually { origin.running == 1 }
        let other = Task { try await read(second) }
        await eventually { cache.trust.callCount >= 3 }
        origin.isHeld = false
        #expect(try await one.value == "new")
        #expect(try await other.value == "new")
    }

    /// The request was sent before the change. Only its callers get the old value, which is not cached.
    @Test func aReplyIsNotCachedIfItsKeyChangesMeanwhile() async throws {
        let (cache, _) = try await cache()
        origin.isHeld = true
        let first = Task { try await cache.value(String.self, forKey: "a") }
        await eventually { origin.running == 1 }
        origin.change("a", to: "new")
        let second = Task { try await cache.value(String.self, forKey: "a") }
        await eventually { cache.trust.callCount >= 3 }
        origin.isHeld = false
        #expect(try await first.value == "1")
        #expect(try await second.value == "new")
        #expect(try await cache.value(String.self, forKey: "a") == "new")
        #expect(origin.reads.count == 2)
    }

    @Test func aChangedKeyOfAReplyForManyKeysIsNotCached() async throws {
        let (cache, _) = try await cache()
        origin.isHeld = true
        let first = Task { try await cache.values(String.self, forKeys: ["a", "b"]) }
        await eventually { origin.running == 1 }
        origin.change("a", to: "new")
        origin.isHeld = false
        #expect(try await first.value == ["a": "1", "b": "2"])
        #expect(try await cache.values(String.self, forKeys: ["a", "b"]) == ["a": "new", "b": "2"])
        #expect(origin.reads == [["a", "b"], ["a"]])
    }

    @Test func aKeyIsReturnedAfterTheOriginAddsIt() async throws {
        let (cache, _) = try await cache()
        #expect(try await cache.value(String.self, forKey: "c") == nil)
        origin.change("c", to: "3")
        #expect(try await cache.value(String.self, forKey: "c") == "3")
    }

    @Test func readsGoToTheOriginAfterNotificationsStop() async throws {
        let (cache, changes) = try await cache(grace: .seconds(60))
        #expect(try await cache.values(String.self, forKeys: ["a", "b"]).count == 2)
        changes.lost()
        #expect(!cache.receivesChanges)
        origin.change("a", to: "new", silently: true)
        // The origin can still be read; nothing is cached.
        #expect(try await cache.value(String.self, forKey: "a") == "new")
        #expect(try await cache.value(String.self, forKey: "a") == "new")
        #expect(origin.reads.count == 3)
        origin.fails = true
        #expect(try await cache.value(String.self, forKey: "b") == "2")
        #expect(try await cache.cache.value(String.self, forKey: "b") == nil)
        origin.fails = false
        changes.begin()
        workspace.time.advance(milliseconds: 1_000)
        #expect(try await cache.values(String.self, forKeys: ["a", "b"]) == ["a": "new", "b": "2"])
        let count = origin.reads.count
        #expect(try await cache.values(String.self, forKeys: ["a", "b"]) == ["a": "new", "b": "2"])
        #expect(origin.reads.count == count)
    }

    @Test func withoutAGraceInvalidatedValuesAreNotServed() async throws {
        let (cache, changes) = try await cache()
        #expect(try await cache.value(String.self, forKey: "a") == "1")
        changes.changedAll()
        #expect(cache.receivesChanges)
        origin.fails = true
        await #expect(throws: ScriptedCacheOrigin.Failure.self) {
            _ = try await cache.value(String.self, forKey: "a")
        }
    }

    /// The number of the epoch in the origin's replies changes without a notification. Cached values of the previous
    /// epoch may then be outdated, so they are not served.
    @Test func aNewEpochOfTheOriginInvalidatesCachedValues() async throws {
        let (cache, _) = try await cache()
        #expect(try await cache.value(String.self, forKey: "a") == "1")
        origin.change("a", to: "new", silently: true)
        #expect(try await cache.value(String.self, forKey: "a") == "1")
        origin.epoch = 1
        #expect(try await cache.value(String.self, forKey: "a") == "new")
        origin.epoch = nil
        origin.change("a", to: "newer", silently: true)
        #expect(try await cache.value(String.self, forKey: "a") == "newer")
        #expect(!cache.receivesChanges)
    }

    @Test func aReplyIsNotCachedIfItsEpochEndsMeanwhile() async throws {
        let (cache, _) = try await cache()
        origin.isHeld = true
        let reader = Task { try await cache.value(String.self, forKey: "a") }
        await eventually { origin.running == 1 }
        origin.epoch = 1
        origin.isHeld = false
        #expect(try await reader.value == "1")
        #expect(try await !cache.cache.contains("a"))
    }

    @Test func afterARestartEntriesAreReadFromTheOriginAgain() async throws {
        do {
            let (cache, _) = try await cache()
            #expect(try await cache.value(String.self, forKey: "a") == "1")
            cache.close()
        }
        origin.change("a", to: "new", silently: true)
        let (cache, _) = try await cache()
        #expect(try await cache.value(String.self, forKey: "a") == "new")
    }

    @Test func valuesWhoseChangesAreNotReportedAreNotCached() async throws {
        let (cache, _) = try await cache()
        origin.isWatched = false
        #expect(try await cache.value(String.self, forKey: "a") == "1")
        #expect(try await !cache.cache.contains("a"))
        try await cache.set("2", forKey: "a")
        #expect(try await !cache.cache.contains("a"))
    }

    @Test func tooManyReportedChangesInvalidateAllValues() async throws {
        let (cache, changes) = try await cache()
        #expect(try await cache.value(String.self, forKey: "a") == "1")
        changes.changed((0..<200_000).map { "key:\($0)" })
        origin.change("a", to: "new", silently: true)
        #expect(try await cache.value(String.self, forKey: "a") == "new")
    }

    // MARK: Writing

    @Test func writesThroughTheCacheReachTheOriginAndAreCached() async throws {
        let (cache, _) = try await cache()
        try await cache.set("mine", forKey: "a", lifetime: .seconds(20))
        #expect(origin["a"] == "mine")
        #expect(try await cache.value(String.self, forKey: "a") == "mine")
        #expect(try await cache.cache.timeToLive(forKey: "a") == .milliseconds(20_000))
        #expect(origin.reads.isEmpty)
        try await cache.remove("a")
        #expect(origin["a"] == nil)
        #expect(try await cache.value(String.self, forKey: "a") == nil)
    }

    @Test func invalidLifetimesAndClosedCachesDoNotReachTheOrigin() async throws {
        let (cache, _) = try await cache()
        for lifetime in [Duration.zero, .seconds(-5), .microseconds(999)] {
            let error = await #expect(throws: LarderError.self) {
                try await cache.set("mine", forKey: "a", lifetime: lifetime)
            }
            #expect(error?.code == .invalidArgument && error?.message.contains("at least 1 millisecond") == true)
        }
        cache.close()
        let set = await #expect(throws: LarderError.self) { try await cache.set("mine", forKey: "a") }
        let removed = await #expect(throws: LarderError.self) { try await cache.remove("a") }
        #expect(set?.code == .closed && removed?.code == .closed)
        #expect(origin["a"] == "1")
    }

    @Test func writesAroundTheCacheAreNotCached() async throws {
        let (cache, _) = try await cache(writing: .around)
        #expect(try await cache.value(String.self, forKey: "a") == "1")
        try await cache.set("mine", forKey: "a")
        #expect(try await !cache.cache.contains("a"))
        #expect(try await cache.value(String.self, forKey: "a") == "mine")
        #expect(origin.reads.count == 2)
    }

    @Test func aWriteWithAnUnknownOutcomeInvalidatesItsKey() async throws {
        let (cache, _) = try await cache()
        #expect(try await cache.value(String.self, forKey: "a") == "1")
        origin.fails = true
        await #expect(throws: ScriptedCacheOrigin.Failure.self) { try await cache.set("mine", forKey: "a") }
        origin.fails = false
        #expect(try await cache.value(String.self, forKey: "a") == "mine")
        #expect(origin.reads.count == 2)
    }

    /// Only the origin knows which of two concurrent writes was the last, whichever is acknowledged first. So neither
    /// is cached.
    @Test(arguments: [true, false]) func concurrentWritesAreNotCached(_ firstEndsFirst: Bool) async throws {
        let (first, second) = (TestOrigin(), TestOrigin())
        let origin = ClosureOrigin(
            "slow",
            write: { _, value in
                _ = try await (value.bytes == [1] ? first : second).value()
                return OriginAcknowledgement()
            },
            readMany: { keys in keys.map { _ in .absent } })
        let cache = OriginCache(try workspace.cache(), origin: origin, options: .patient, limits: .patient)
        let writers = [(first, [UInt8(1)]), (second, [2])].map { (gate, value) in
            gate.hold()
            return Task { try await cache.set(value, forKey: "a") }
        }
        await first.waitUntil(calls: 1)
        await second.waitUntil(calls: 1)
        for index in firstEndsFirst ? [0, 1] : [1, 0] {
            [first, second][index].letGo()
            try await writers[index].value
        }
        #expect(try await !cache.cache.contains("a"))
        try await cache.set([UInt8(1)], forKey: "a")
        #expect(try await cache.cache.contains("a"))
    }

    @Test func aWriteIsNotCachedIfItsKeyChangesMeanwhile() async throws {
        let (cache, changes) = try await cache()
        origin.isHeld = true
        let writer = Task { try await cache.set("mine", forKey: "a") }
        await eventually { origin.running == 1 }
        changes.changed(["a"])
        origin.isHeld = false
        try await writer.value
        #expect(try await !cache.cache.contains("a"))
    }

    @Test("a value that overwrites another is cached although the origin reports the key as changed")
    func overwritesAreKept() async throws {
        let (cache, _) = try await cache(grace: .seconds(60))
        origin.tellsOwnWrites = true
        #expect(try await cache.value(String.self, forKey: "a") == "1")
        for number in 0..<50 {
            try await cache.set("mine \(number)", forKey: "a")
            #expect(try await cache.value(String.self, forKey: "a") == "mine \(number)")
        }
        #expect(origin.reads == [["a"]])
    }

    @Test("changes by the program, and changes after the confirmation of a write, invalidate the value")
    func aChangeAfterTheConfirmation() async throws {
        let (cache, _) = try await cache()
        origin.tellsOwnWrites = true
        for isProgram in [false, true] {
            origin.holdsWrites = true
            let writer = Task { try await cache.set("mine", forKey: "a") }
            await eventually { origin.running == 1 }
            if isProgram { try await cache.invalidate("a") } else { origin.change("a", to: "new") }
            origin.holdsWrites = false
            try await writer.value
            #expect(try await !cache.cache.contains("a"))
        }
    }

    @Test("a write that the origin refuses leaves the cached entry unchanged")
    func refusedWritesLeaveTheEntry() async throws {
        let origin = ClosureOrigin(
            "picky", write: { _, _ in throw OriginFailure.refused("no") },
            remove: { _ in throw OriginFailure.refused("no") },
            readMany: { keys in keys.map { _ in OriginAnswer(Array("1".utf8)) } })
        let readOnly = ClosureOrigin("books") { _ in OriginAnswer(Array("1".utf8)) }
        for (name, origin) in [("picky", origin), ("books", readOnly)] {
            let cache = OriginCache(
                try workspace.cache(name), origin: origin, options: .patient, limits: .patient)
            #expect(try await cache.value(Int.self, forKey: "a") == 1)
            await #expect(throws: OriginFailure.self) { try await cache.set(2, forKey: "a") }
            await #expect(throws: OriginFailure.self) { try await cache.remove("a") }
            #expect(try await cache.cache.value(Int.self, forKey: "a") == 1)
        }
    }

    @Test func invalidWritesDoNotReachTheOrigin() async throws {
        let (cache, _) = try await cache()
        await #expect { try await cache.set("1", forKey: "a", policy: .seconds(-1)) } throws: {
            ($0 as? LarderError)?.code == .invalidArgument
        }
        await #expect { try await cache.set(Double.nan, forKey: "a") } throws: {
            ($0 as? LarderError)?.code == .encoding
        }
        #expect(origin.writes.isEmpty)
    }
}
