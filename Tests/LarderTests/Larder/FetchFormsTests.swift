import Larder
import LarderTestSupport
import Testing

/// Tests that all forms in which fetching calls can be written compile and work.
@Suite struct FetchFormsTests {
    private struct Weather: Codable, Equatable, Sendable {
        var degrees = 7
    }

    private func ask() async throws -> Weather { Weather() }

    private func inContextOfAnOptional(_ cache: Cache) async throws -> Weather? {
        try await cache.value(Weather.self, forKey: "context") { try await ask() }
    }

    @Test func fetchClosuresCanHaveSeveralStatements() async throws {
        let work = try Workspace()
        let cache = try work.cache()
        let asked = Recorder<String>()
        let first = try await cache.value(Weather.self, forKey: "a") {
            asked.add("a")
            return try await ask()
        }
        #expect(first == Weather())
        let inferred: Weather = try await cache.value(forKey: "b") {
            asked.add("b")
            return try await ask()
        }
        #expect(inferred == Weather())
        async let together = cache.value(Weather.self, forKey: "c") {
            asked.add("c")
            return Weather()
        }
        #expect(try await together == Weather())
        #expect(asked.all == ["a", "b", "c"])
    }

    @Test func fetchesCompileWhereAnOptionalIsExpected() async throws {
        let work = try Workspace()
        let cache = try work.cache()
        #expect(try await inContextOfAnOptional(cache) == Weather())
        let tried = try? await cache.value(Weather.self, forKey: "a") { try await ask() }
        #expect(tried == Weather())
        await #expect(throws: CancellationError.self) {
            try await cache.value(Weather.self, forKey: "b") { throw CancellationError() }
        }
    }

    /// A closure that throws CancellationError is not a failure of the origin, so the key does not back off.
    @Test func aClosureThatThrowsCancellationDoesNotCountAsAFailure() async throws {
        let work = try Workspace()
        let cache = try work.cache()
        await #expect(throws: CancellationError.self) {
            try await cache.value(Weather.self, forKey: "k") { throw CancellationError() }
        }
        #expect(try await cache.value(Weather.self, forKey: "k") { try await ask() } == Weather())
        await #expect(throws: CancellationError.self) {
            try await cache.values(Weather.self, forKeys: ["a", "b"]) { _ in throw CancellationError() }
        }
        #expect(try await cache.value(Weather.self, forKey: "b") { try await ask() } == Weather())
    }

    /// The model may be an optional, specified or inferred. Nil means that the origin has no value, which is
    /// remembered; other values are stored like those of the wrapped type.
    @Test func aFetchedNilIsRememberedForOptionalModels() async throws {
        let work = try Workspace()
        let cache = try work.cache()
        let asked = Recorder<String>()
        for _ in 0..<3 {
            let named = try await cache.value(Int?.self, forKey: "none") {
                asked.add("named")
                return nil
            }
            #expect(named == nil)
            let inferred: Weather? = try await cache.value(forKey: "other") {
                asked.add("inferred")
                return nil
            }
            #expect(inferred == nil)
        }
        #expect(asked.all == ["named", "inferred"])
        #expect(try await cache.info(forKey: "none") == nil)
        let some: Weather? = try await cache.value(forKey: "some") {
            asked.add("some")
            return try await ask()
        }
        #expect(some == Weather())
        #expect(try await cache.value(Weather.self, forKey: "some") == Weather())
        let ignoring: Int? = try await cache.value(forKey: "none", options: FetchOptions(.ignoreCache)) { nil }
        #expect(ignoring == nil)
    }
}
