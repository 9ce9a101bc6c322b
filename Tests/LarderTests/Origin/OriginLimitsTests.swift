import LarderFetching
import LarderTestSupport
import Testing

@testable import Larder

/// Tests of a cache whose origin is slow or down.
@Suite(.timeLimit(.minutes(5))) struct OriginLimitsTests {
    private let workspace: Workspace
    private let origin: ScriptedCacheOrigin
    private let events = Recorder<CacheEvent>()

    init() throws {
        workspace = try Workspace()
        origin = ScriptedCacheOrigin(["a": "1", "b": "2"])
    }

    private func cache(
        call: Duration = .seconds(3_600), grace: Duration = .zero, hard: Duration? = nil,
        origin other: (any CacheOrigin)? = nil
    ) throws -> OriginCache {
        let cache = try workspace.cache { [events] options in options.onEvent = { events.add($0) } }
        try cache.setPolicy(.high, grace: grace)
        var limits = OriginCacheLimits()
        limits.call = call
        var options = OriginCache.standardOptions
        options.hardTimeout = hard
        let chosen: any CacheOrigin = other ?? origin
        return OriginCache(cache, origin: chosen, options: options, limits: limits)
    }

    private func expectOpenCircuit(
        _ reason: String, sourceLocation: SourceLocation = #_sourceLocation, _ body: () async throws -> Void
    ) async {
        await #expect(throws: OriginFailure.resting(origin.name, reason: reason), sourceLocation: sourceLocation) {
            try await body()
        }
    }

    /// Reads a key until its value is `expected`. On a busy machine, a reply may take longer than the limit. The key's
    /// back-off and the circuit breaker's rest then end only if the test's clock is advanced.
    private func eventuallyReads(_ key: String, _ expected: String?, _ cache: OriginCache) async {
        await eventually {
            do {
                return try await cache.value(String.self, forKey: key) == expected
            } catch {
                workspace.time.advance(milliseconds: 1_000)
                return false
            }
        }
    }

    // MARK: Limits

    @Test(arguments: [false, true]) func aWriteThatTimesOutPreventsCachingOfItsKey(isRemoval: Bool) async throws {
        let cache = try cache(call: .seconds(1))
        await eventuallyReads("a", "1", cache)
        origin.holdsWrites = true
        defer { origin.holdsWrites = false }
        await #expect(throws: OriginFailure.timedOut(origin.name, milliseconds: 1_000)) {
            if isRemoval { try await cache.remove("a") } else { try await cache.set("mine", forKey: "a") }
        }
        // The write may have been done, as here, or may still be done: nothing is cached until the outcome is known.
        for value in [isRemoval ? nil : "mine", "late"] {
            origin.change("a", to: value, silently: true)
            await eventuallyReads("a", value, cache)
            #expect(try await !cache.cache.contains("a"))
        }
        await eventuallyReads("b", "2", cache)
        #expect(try await cache.cache.contains("b"))
        origin.holdsWrites = false
        await eventually {
            await eventuallyReads("a", "late", cache)
            return (try? await cache.cache.contains("a")) == true
        }
        await eventually { cache.trust.callCount == 0 }
        #expect(cache.status.timeouts >= 1)
    }

    @Test func aReadThatTimesOutServesAStaleValueOrThrows() async throws {
        let cache = try cache(call: .seconds(1), grace: .seconds(60))
        await eventuallyReads("a", "1", cache)
        workspace.time.advance(milliseconds: 60_000)
        origin.isHeld = true
        defer { origin.isHeld = false }
        // The callers have no time limits of their own, so the limit for calls of the origin applies.
        #expect(try await cache.value(String.self, forKey: "a") == "1")
        for keys in [["b"], ["c", "d"]] {
            await #expect(throws: OriginFailure.timedOut(origin.name, milliseconds: 1_000)) {
                _ = try await cache.values(String.self, forKeys: keys)
            }
        }
        #expect(cache.status.timeouts >= 3)
    }

    /// If the origin's function ends because its task is cancelled, this is not a failure of the origin.
    @Test func aCancelledWriteDoesNotCountAsAFailure() async throws {
        let slow = TestOrigin()
        slow.hold()
        let cache = try cache(
            origin: ClosureOrigin(
                "slow",
                write: { _, _ in
                    _ = try await slow.value()
                    return OriginAcknowledgement()
                },
                readMany: { keys in keys.map { _ in .absent } }))
        let writer = Task { try await cache.set("1", forKey: "a") }
        await slow.waitUntil(calls: 1)
        writer.cancel()
        await #expect(throws: CancellationError.self) { try await writer.value }
        #expect(slow.cancellations == 1 && cache.status.failures == 0 && cache.trust.callCount == 0)
    }

    @Test func limitsOutOfRangeAreClamped() {
        var limits = OriginCacheLimits()
        (limits.call, limits.failuresBeforeRest, limits.rest) = (.zero, -1, .seconds(-5))
        var checked = limits.checked
        #expect(checked.call == 1 && checked.failuresBeforeRest == 1 && checked.rest == 1)
        (limits.call, limits.rest) = (.seconds(Int64.max), .seconds(86_401))
        checked = limits.checked
        #expect(checked.call == 86_400_000 && checked.rest == 86_400_000)
    }

    // MARK: Back-off and circuit breaker

    private func fail(_ cache: OriginCache, _ keys: [String]) async {
        for key in keys {
            await #expect(throws: ScriptedCacheOrigin.Failure.self) {
                _ = try await cache.value(String.self, forKey: key)
            }
        }
    }

    private let five = ["1", "2", "3", "4", "5"]

    @Test func repeatedFailuresOpenTheCircuit() async throws {
        let cache = try cache(grace: .seconds(60))
        #expect(try await cache.value(String.self, forKey: "a") == "1")
        workspace.time.advance(milliseconds: 60_000)
        origin.fails = true
        await fail(cache, ["1", "2", "3", "4"])
        #expect(cache.status.failuresInRow == 4 && !cache.status.isResting)
        await fail(cache, ["5"])
        #expect(cache.status.isResting && cache.status.restLeft == .seconds(1))
        #expect(cache.status.lastError == "Failure()")
        #expect(events.all.map(\.message).filter { $0.contains("is now asked at most every 1000 ms") }.count == 1)
        origin.fails = false
        let reads = origin.reads.count
        await expectOpenCircuit("Failure()") { _ = try await cache.value(String.self, forKey: "b") }
        await expectOpenCircuit("Failure()") { _ = try await cache.values(String.self, forKeys: ["b", "c"]) }
        // Stale values are served, and kept when a write is refused.
        #expect(try await cache.value(String.self, forKey: "a") == "1")
        await expectOpenCircuit("Failure()") { try await cache.set("mine", forKey: "a") }
        await expectOpenCircuit("Failure()") { try await cache.remove("a") }
        #expect(try await cache.value(String.self, forKey: "a") == "1")
        #expect(origin.reads.count == reads && origin.writes.isEmpty && origin["a"] == "1")
        #expect(cache.status.refused == 6 && cache.status.calls == 6)

        workspace.time.advance(milliseconds: 1_000)
        #expect(!cache.status.isResting)
        // A key whose call was refused while the circuit was open does not back off.
        #expect(try await cache.value(String.self, forKey: "b") == "2")
        #expect(cache.status.failuresInRow == 0 && cache.status.lastError == nil)
        #expect(events.all.last?.message.hasSuffix("is available again") == true)
        #expect(try await cache.values(String.self, forKeys: ["a", "c"]) == ["a": "1"])
    }

    @Test func onlyOneCallAtATimeProbesTheOrigin() async throws {
        let cache = try cache()
        origin.fails = true
        await fail(cache, five)
        for fails in [true, false] {
            workspace.time.advance(milliseconds: 1_000)
            origin.fails = fails
            origin.isHeld = true
            let reads = origin.reads.count
            let probe = Task { try await cache.value(String.self, forKey: fails ? "6" : "b") }
            await eventually { origin.running == 1 }
            await expectOpenCircuit("Failure()") { _ = try await cache.value(String.self, forKey: "7") }
            #expect(cache.status.isResting && cache.status.restLeft == .zero)
            origin.isHeld = false
            if fails {
                await #expect(throws: ScriptedCacheOrigin.Failure.self) { try await probe.value }
                await expectOpenCircuit("Failure()") { _ = try await cache.value(String.self, forKey: "7") }
                #expect(cache.status.restLeft == .seconds(1))
            } else {
                #expect(try await probe.value == "2")
            }
            #expect(origin.reads.count == reads + 1)
        }
        #expect(try await cache.value(String.self, forKey: "7") == nil)
    }

    /// Calls that were sent before the circuit opened do not close it when they end.
    @Test func callsSentBeforeTheCircuitOpenedDoNotCloseIt() async throws {
        let cache = try cache()
        origin.fails = true
        origin.isHeld = true
        let early = (1...8).map { number in Task { try await cache.value(String.self, forKey: "early:\(number)") } }
        await eventually { origin.running == 8 }
        origin.isHeld = false
        for each in early { await #expect(throws: ScriptedCacheOrigin.Failure.self) { try await each.value } }
        #expect(cache.status.failures == 8 && cache.status.failuresInRow == 5)
        await expectOpenCircuit("Failure()") { _ = try await cache.value(String.self, forKey: "b") }
    }

    @Test func repeatedFailuresOfOneReadCountOnce() async throws {
        let cache = try cache()
        origin.fails = true
        for _ in 1...8 {
            await fail(cache, ["a"])
            // Wait for the end of the key's back-off.
            workspace.time.advance(milliseconds: 1_000)
        }
        #expect(cache.status.failuresInRow == 1 && cache.status.failures == 8)
        origin.fails = false
        #expect(try await cache.value(String.self, forKey: "b") == "2")
    }

    @Test func aRefusalByTheOriginDoesNotCountAsAFailure() async throws {
        let cache = try cache(origin: ClosureOrigin("picky") { _ in throw OriginFailure.refused("no such page") })
        for key in five + five.map({ $0 + $0 }) {
            await #expect(throws: OriginFailure.refused("no such page")) {
                _ = try await cache.value(String.self, forKey: key)
            }
            await #expect(throws: OriginFailure.readOnly("picky")) { try await cache.set(1, forKey: key) }
        }
        #expect(cache.status.failures == 0 && cache.status.calls == 20)
    }

    /// If the origin refuses a key, neither that key nor any other key backs off.
    @Test func aRefusedKeyDoesNotBackOff() async throws {
        let cache = try cache(
            origin: ClosureOrigin("picky") { key in
                if key == "bad" { throw OriginFailure.refused("no such page") }
                return OriginAnswer(Array(key.utf8))
            })
        for key in ["bad", "good"] {
            await #expect(throws: OriginFailure.refused("no such page")) {
                _ = try await cache.values(String.self, forKeys: [key, "bad", "other"])
            }
        }
        #expect(try await cache.values(String.self, forKeys: ["good", "other"]).count == 2)
    }

    /// Stale values are served while the circuit is open, for one key and for several.
    @Test func originElseCacheServesStaleValuesWhileTheCircuitIsOpen() async throws {
        let cache = try cache(grace: .seconds(60))
        #expect(try await cache.value(String.self, forKey: "a") == "1")
        workspace.time.advance(milliseconds: 60_000)
        origin.fails = true
        var options = cache.options
        options.source = .originElseCache
        for _ in 1...3 {
            #expect(try await cache.value(String.self, forKey: "a", options: options) == "1")
            #expect(try await cache.values(String.self, forKeys: ["a"], options: options) == ["a": "1"])
        }
    }

    /// The callers' timeout is shorter than the limit, and the function ends when it is cancelled: this still counts as
    /// a timeout.
    @Test func readsCancelledAtTheirTimeoutCountAsTimeouts() async throws {
        let slow = TestOrigin()
        slow.hold()
        let cache = try cache(
            hard: .milliseconds(200),
            origin: ClosureOrigin("slow") { _ in
                _ = try await slow.value()
                return .absent
            })
        // On a busy machine a caller may time out before its request is sent; such calls are not counted.
        for number in 0..<100 where !cache.status.isResting {
            await #expect(throws: (any Error).self) { _ = try await cache.value(String.self, forKey: "\(number)") }
            await eventually { cache.trust.callCount == 0 }
        }
        var patient = cache.options
        patient.hardTimeout = .seconds(60)
        await #expect(throws: OriginFailure.resting("slow", reason: "no answer within the time limit")) {
            _ = try await cache.value(String.self, forKey: "6", options: patient)
        }
        #expect(cache.status.timeouts >= 5 && slow.cancellations == cache.status.timeouts)
    }

    /// A cancelled call is not a failure of the origin, even if it was the probe: the call that tests whether the
    /// origin is available again.
    @Test func aCancelledProbeDoesNotCountAsAFailure() async throws {
        let cache = try cache()
        origin.fails = true
        await fail(cache, five)
        workspace.time.advance(milliseconds: 1_000)
        origin.holdsWrites = true
        let probe = Task { try await cache.set("mine", forKey: "a") }
        await eventually { origin.running == 1 }
        await expectOpenCircuit("Failure()") { try await cache.set("mine", forKey: "b") }
        probe.cancel()
        origin.holdsWrites = false
        await #expect(throws: ScriptedCacheOrigin.Failure.self) { try await probe.value }
        origin.fails = false
        #expect(try await cache.value(String.self, forKey: "b") == "2")
    }

    /// When the cache is closed, callers that wait for a hanging origin return at once, and not after its time limit.
    @Test func closingEndsWaitingCalls() async throws {
        let cache = try cache()
        origin.isHeld = true
        defer { origin.isHeld = false }
        let calls = [
            Task { _ = try await cache.value(String.self, forKey: "a") },
            Task { _ = try await cache.values(String.self, forKeys: ["b", "c"]) },
            Task { try await cache.set("mine", forKey: "d") },
            Task { try await cache.remove("e") },
        ]
        await eventually { origin.running == 4 }
        cache.close()
        for call in calls {
            await #expect { try await call.value } throws: { ($0 as? LarderError)?.code == .closed }
        }
        origin.isHeld = false
        // Calls that end afterwards are subtracted from the count only once.
        await eventually { cache.trust.callCount == 0 }
        #expect(cache.status.failures == 0)
        await #expect { try await cache.set("mine", forKey: "d") } throws: { ($0 as? LarderError)?.code == .closed }
    }
}
