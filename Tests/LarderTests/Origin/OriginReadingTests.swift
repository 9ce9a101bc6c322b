import LarderFetching
import LarderTestSupport
import Testing

@testable import Larder

/// Tests of reads from a cache in front of an origin.
@Suite(.timeLimit(.minutes(10))) struct OriginReadingTests {
    private let workspace: Workspace
    private let origin: ScriptedCacheOrigin

    init() throws {
        workspace = try Workspace()
        origin = ScriptedCacheOrigin(["a": "1", "b": "2"])
    }

    private func cache(grace: Duration = .zero) throws -> OriginCache {
        let cache = try workspace.cache()
        try cache.setPolicy(.high, grace: grace)
        return OriginCache(cache, origin: origin, options: .patient, limits: .patient)
    }

    @Test func missingValuesAreRequestedOnce() async throws {
        let cache = try cache()
        #expect(try await cache.value(String.self, forKey: "a") == "1")
        #expect(try await cache.value(String.self, forKey: "a") == "1")
        #expect(try await cache.cache.value(String.self, forKey: "a") == "1")
        #expect(origin.reads == [["a"]])
        workspace.time.advance(milliseconds: 60_000)
        origin.change("a", to: "new")
        #expect(try await cache.value(String.self, forKey: "a") == "new")
        #expect(origin.reads.count == 2)
    }

    @Test func modelsAreDecodedFromTheOriginsBytes() async throws {
        origin.change("book", to: #"{"name":"Reader","price":2.5}"#)
        let cache = try cache()
        #expect(try await cache.value(Book.self, forKey: "book") == Book(name: "Reader", price: 2.5))
        await #expect { _ = try await cache.value(Book.self, forKey: "a") } throws: {
            ($0 as? LarderError)?.code == .decoding
        }
        #expect(try await !cache.cache.contains("a"))
    }

    /// A decoding error affects only its reader: neither the key nor the origin backs off.
    @Test func aDecodingErrorAffectsItsReaderOnly() async throws {
        origin.change("book", to: #"{"name":"Reader","price":2.5}"#)
        let cache = try cache()
        for _ in 1...6 {
            await #expect { _ = try await cache.values(Book.self, forKeys: ["book", "a"]) } throws: {
                ($0 as? LarderError)?.code == .decoding
            }
            await #expect { _ = try await cache.value(Book.self, forKey: "b") } throws: {
                ($0 as? LarderError)?.code == .decoding
            }
        }
        #expect(try await cache.value(String.self, forKey: "a") == "1")
        #expect(try await cache.value(String.self, forKey: "b") == "2")
        #expect(try await cache.values(Book.self, forKeys: ["book"]).count == 1)
        #expect(cache.status.failures == 0)
    }

    @Test func theAbsenceOfAKeyIsRememberedForAWhile() async throws {
        let cache = try cache()
        #expect(try await cache.value(String.self, forKey: "c") == nil)
        #expect(try await cache.value(String.self, forKey: "c") == nil)
        #expect(origin.reads == [["c"]])
        workspace.time.advance(milliseconds: 10_000)
        origin.change("c", to: "3")
        #expect(try await cache.value(String.self, forKey: "c") == "3")
        #expect(origin.reads.count == 2)
    }

    @Test func theEarlierDeadlineOfOriginAndCacheApplies() async throws {
        let cache = try cache()
        origin.lifetime = .seconds(10)
        origin.isHeld = true
        let reader = Task { try await cache.value(String.self, forKey: "a") }
        await eventually { origin.running == 1 }
        // The lifetime counts from the request.
        workspace.time.advance(milliseconds: 3_000)
        origin.isHeld = false
        #expect(try await reader.value == "1")
        #expect(try await cache.cache.timeToLive(forKey: "a") == .milliseconds(7_000))
        origin.lifetime = .seconds(600)
        #expect(try await cache.value(String.self, forKey: "b") == "2")
        #expect(try await cache.cache.timeToLive(forKey: "b") == .milliseconds(60_000))
        var options = FetchOptions(policy: .seconds(5))
        origin.change("c", to: "3")
        #expect(try await cache.value(String.self, forKey: "c", options: options) == "3")
        #expect(try await cache.cache.timeToLive(forKey: "c") == .milliseconds(5_000))
        // A value that expired before it arrived is returned to the caller, and not cached.
        options.policy = .never
        origin.lifetime = .zero
        origin.change("d", to: "4")
        #expect(try await cache.value(String.self, forKey: "d", options: options) == "4")
        #expect(try await !cache.cache.contains("d"))
    }

    @Test func manyCallersShareOneRequest() async throws {
        let cache = try cache()
        origin.isHeld = true
        let readers = (0..<20).map { _ in Task { try await cache.value(String.self, forKey: "a") } }
        // Each caller counts as a call, and the request as one more.
        await eventually { cache.trust.callCount == 21 }
        origin.isHeld = false
        for reader in readers { #expect(try await reader.value == "1") }
        #expect(origin.reads == [["a"]])
    }

    @Test func severalKeysTakeOneRequest() async throws {
        let cache = try cache()
        _ = try await cache.value(String.self, forKey: "a")
        let found = try await cache.values(String.self, forKeys: ["a", "b", "c", "b"])
        #expect(found == ["a": "1", "b": "2"])
        #expect(origin.reads == [["a"], ["b", "c"]])
        #expect(try await cache.values(String.self, forKeys: ["a", "b", "c"]) == found)
        #expect(origin.reads.count == 2)
    }

    @Test func staleValuesAreServedWhileTheOriginFails() async throws {
        let cache = try cache(grace: .seconds(60))
        #expect(try await cache.value(String.self, forKey: "a") == "1")
        workspace.time.advance(milliseconds: 60_000)
        origin.fails = true
        #expect(try await cache.value(String.self, forKey: "a") == "1")
        #expect(origin.reads.count == 2)
        // During the back-off of one second the key is not requested again.
        #expect(try await cache.value(String.self, forKey: "a") == "1")
        #expect(origin.reads.count == 2)
        await #expect(throws: ScriptedCacheOrigin.Failure.self) {
            _ = try await cache.value(String.self, forKey: "b")
        }
        workspace.time.advance(milliseconds: 60_000)
        await #expect(throws: ScriptedCacheOrigin.Failure.self) {
            _ = try await cache.value(String.self, forKey: "a")
        }
    }

    @Test func readsOfAHangingOriginServeAStaleValueOrThrow() async throws {
        let cache = try cache(grace: .seconds(60))
        #expect(OriginCache.standardOptions.hardTimeout == .seconds(10))
        #expect(try await cache.value(String.self, forKey: "a") == "1")
        workspace.time.advance(milliseconds: 60_000)
        origin.isHeld = true
        defer { origin.isHeld = false }
        var options = OriginCache.standardOptions
        options.hardTimeout = .milliseconds(20)
        // Reads return a stale value within its grace, or throw; the same holds for several keys.
        #expect(try await cache.value(String.self, forKey: "a", options: options) == "1")
        let impatient = options
        for keys in [["b"], ["c", "d"]] {
            let error = await #expect(throws: FetchError.self) {
                _ = try await cache.values(String.self, forKeys: keys, options: impatient)
            }
            #expect(error?.code == .timeout)
        }
    }

    @Test func theSourceOptionSelectsTheCacheOrTheOrigin() async throws {
        let cache = try cache()
        #expect(try await cache.value(String.self, forKey: "a", options: FetchOptions(.cacheOnly)) == nil)
        #expect(try await cache.values(String.self, forKeys: ["a"], options: FetchOptions(.cacheOnly)).isEmpty)
        #expect(try await cache.value(String.self, forKey: "a", options: FetchOptions(.ignoreCache)) == "1")
        #expect(try await !cache.cache.contains("a"))
        #expect(try await cache.value(String.self, forKey: "a") == "1")
        origin.change("a", to: "new")
        #expect(try await cache.value(String.self, forKey: "a", options: FetchOptions(.originOnly)) == "new")
        #expect(try await cache.value(String.self, forKey: "a", options: FetchOptions(.cacheOnly)) == "new")
    }

    @Test func tooFewAnswersOfAnOriginAreAnError() async throws {
        let cache = try cache()
        origin.answersMissing = 1
        await #expect(throws: OriginFailure.wrongAnswers(origin.name, expected: 1, got: 0)) {
            _ = try await cache.value(String.self, forKey: "a")
        }
    }

    @Test func aClosureCanBeAReadOnlyOrigin() async throws {
        let books = ClosureOrigin("books", of: Book.self, lifetime: .seconds(30)) { key in
            key == "none" ? nil : Book(name: key, price: 1)
        }
        let cache = OriginCache(try workspace.cache(), origin: books, options: .patient, limits: .patient)
        let names = (0..<20).map { "book:\($0)" }
        let found = try await cache.values(Book.self, forKeys: names + ["none"])
        #expect(found == Dictionary(uniqueKeysWithValues: names.map { ($0, Book(name: $0, price: 1)) }))
        #expect(try await cache.cache.timeToLive(forKey: "book:0") == .milliseconds(30_000))
        await #expect(throws: OriginFailure.readOnly("books")) { try await cache.set(1, forKey: "n") }
        await #expect(throws: OriginFailure.readOnly("books")) { try await cache.remove("n") }
        try await cache.invalidate(["book:0"])
        #expect(try await !cache.cache.contains("book:0"))
        #expect(try await cache.cache.contains("book:1"))
    }

    /// If such keys were converted to text, two keys could be requested as one.
    @Test func keysThatAreNotTextAreRefused() async throws {
        let cache = OriginCache(
            try workspace.cache(), origin: ClosureOrigin("text") { key in OriginAnswer(Array(key.utf8)) },
            options: .patient, limits: .patient)
        #expect(try await cache.value(String.self, forKey: [0xC3, 0xA9] as [UInt8]) == "é")
        for keys: [[UInt8]] in [[[0xFF]], [[0x61], [0xFE]]] {
            await #expect { _ = try await cache.values(String.self, forKeys: keys) } throws: { error in
                guard case .refused(let reason)? = error as? OriginFailure else { return false }
                return reason.contains("is not UTF-8")
            }
        }
    }
}
