import Larder
import LarderTestSupport
import Testing

/// Tests of the hooks for events, measurements and calls, and of clocks that a program passes.
@Suite(.timeLimit(.minutes(10))) struct HookTests {
    private struct Down: Error {}
    @TaskLocal private static var request = "none"

    private let work: Workspace
    private let events = Recorder<CacheEvent>()
    private let measurements = Recorder<CacheMeasurement>()
    /// The beginnings and ends of calls, as text.
    private let calls = Recorder<String>()

    init() throws { work = try Workspace() }

    private func cache(_ change: (inout CacheOptions) -> Void = { _ in }) throws -> Cache {
        try work.cache(policy: .high) { [events, measurements, calls] options in
            options.onEvent = { events.add($0) }
            options.onMeasurement = { measurements.add($0) }
            options.onCall = { call in
                let name = "\(call.name) \(call.attributes["operation"] ?? "")"
                calls.add("\(name) begins in \(Self.request)")
                return { calls.add("\(name) ends with \($0.map { "\(type(of: $0))" } ?? "success")") }
            }
            change(&options)
        }
    }

    private var measured: [String] {
        measurements.all.map { "\($0.name) \($0.dimensions["operation"] ?? "") \($0.dimensions["outcome"] ?? "")" }
    }

    @Test func eventsNameLarderDatabaseKeyAndError() async throws {
        let cache = try cache()
        let opened = try #require(events.all.first { $0.message.contains("created database 'books'") })
        #expect(opened.level == .info && opened.error == nil)
        #expect(opened.metadata == ["larder": cache.directory, "database": "books"])
        try await cache.set("text", forKey: "k")
        #expect(try await cache.value(Int.self, forKey: "k") { 1 } == 1)
        let warning = try #require(events.all.first { $0.level == .warning })
        #expect(warning.metadata == ["larder": cache.directory, "database": "books", "key": "k"])
        #expect((warning.error as? LarderError)?.code == .decoding)
        #expect(CacheEvent.Level.allCases.sorted() == [.debug, .info, .warning, .error])
    }

    @Test func durationsOfWritesReadsAndFetchesAreMeasured() async throws {
        let cache = try cache { $0.memoryBytes = 0 }
        try await cache.set("1", forKey: "a")
        try await cache.set("2", forKey: "b")
        #expect(measured == ["larder.operation.duration set ok", "larder.operation.duration set ok"])
        #expect(measurements.all.allSatisfy { $0.kind == .duration && $0.value >= 0 && $0.value < 60 })
        #expect(measurements.all[0].dimensions["database"] == "books")
        try await cache.sweep()
        measurements.removeAll()
        #expect(try await cache.value(String.self, forKey: "a") == "1")
        #expect(try await cache.bytes(forKey: "a")?.isEmpty == false)
        #expect(measured.contains("larder.operation.duration get ok"))
        measurements.removeAll()
        _ = try await cache.value(String.self, forKey: "new") { "value" }
        await #expect(throws: Down.self) { _ = try await cache.value(String.self, forKey: "down") { throw Down() } }
        #expect(
            measured.filter { $0.contains("fetch.duration") } == [
                "larder.fetch.duration fetch ok", "larder.fetch.duration fetch error",
            ])
    }

    @Test func statisticsAreGauges() async throws {
        let cache = try cache()
        try await cache.set("1", forKey: "a")
        for key in ["a", "a", "b"] { _ = try await cache.value(String.self, forKey: key) }
        let gauges = try await cache.statistics().measurements
        #expect(gauges.allSatisfy { $0.kind == .gauge })
        func value(_ name: String) -> Double? {
            gauges.first { $0.name == name && $0.dimensions == ["database": "books"] }?.value
        }
        #expect(value("larder.hits") == 2 && value("larder.misses") == 1)
        #expect(value("larder.entries") == 1 && value("larder.writes") == 1)
        #expect(gauges.contains { $0.name == "larder.memory.bytes" && $0.dimensions.isEmpty && $0.value > 0 })
    }

    @Test func fetchesAreReportedInTheCallersContext() async throws {
        let cache = try cache()
        try await Self.$request.withValue("request 7") {
            _ = try await cache.value(String.self, forKey: "a") { "1" }
            _ = try await cache.values(String.self, forKeys: ["b", "c"]) { keys in
                Dictionary(uniqueKeysWithValues: keys.map { ($0, "2") })
            }
            await #expect(throws: Down.self) { _ = try await cache.value(String.self, forKey: "d") { throw Down() } }
        }
        #expect(
            calls.all == [
                "larder.fetch fetch begins in request 7", "larder.fetch fetch ends with success",
                "larder.fetch fetch begins in request 7", "larder.fetch fetch ends with success",
                "larder.fetch fetch begins in request 7", "larder.fetch fetch ends with Down",
            ])
    }

    @Test func callsToOriginsAndDeliveriesAreReported() async throws {
        let prices = OriginCache(try cache(), origin: ScriptedCacheOrigin(["apple": "3"]))
        #expect(try await prices.value(String.self, forKey: "apple") == "3")
        try await prices.set("4", forKey: "apple")
        #expect(
            calls.all == [
                "larder.origin read begins in none", "larder.origin read ends with success",
                "larder.origin write begins in none", "larder.origin write ends with success",
            ])
        prices.close()
        calls.removeAll()
        let outbox = try Outbox<String>(try cache { $0.backgroundMaintenance = true }) { _ in }
        try await outbox.save("1", forKey: "a")
        #expect(await outbox.untilDelivered("a"))
        #expect(calls.all == ["larder.outbox deliver begins in none", "larder.outbox deliver ends with success"])
        #expect(measured.contains("larder.outbox.duration deliver ok"))
        await outbox.close()
    }

    // MARK: Clocks

    /// A clock as test libraries have it: its instants count from an arbitrary start.
    private final class StepClock: Clock {
        struct Instant: InstantProtocol {
            var offset: Duration
            func advanced(by duration: Duration) -> Instant { Instant(offset: offset + duration) }
            func duration(to other: Instant) -> Duration { other.offset - offset }
            static func < (left: Instant, right: Instant) -> Bool { left.offset < right.offset }
        }

        private let offset = Guarded(Duration.seconds(-5))

        var now: Instant { offset.with { Instant(offset: $0) } }
        var minimumResolution: Duration { .nanoseconds(1) }
        func advance(by duration: Duration) { offset.with { $0 += duration } }
        func sleep(until deadline: Instant, tolerance: Duration?) async throws {}
    }

    @Test func anyClockControlsTheTime() throws {
        let clock = StepClock()
        let source = ClockTimeSource(clock, wallMilliseconds: 1_700_000_000_000)
        let cache = try cache { $0.timeSource = source }
        try cache.set("1", forKey: "a", policy: .seconds(10))
        #expect(try cache.info(forKey: "a")?.storedAtMilliseconds == 1_700_000_000_000)
        clock.advance(by: .milliseconds(9_999))
        #expect(try cache.value(String.self, forKey: "a") == "1")
        clock.advance(by: .milliseconds(1))
        #expect(try cache.value(String.self, forKey: "a") == nil)
        // Another object is another source of time, even with the same clock.
        expectError(.invalidArgument) {
            _ = try work.cache("other") { $0.timeSource = ClockTimeSource(clock) }
        }
        _ = try work.cache("other") { $0.timeSource = source }
        #expect(
            abs(ClockTimeSource(ContinuousClock()).wallMilliseconds() - SystemTimeSource().wallMilliseconds()) < 60_000)
    }
}
