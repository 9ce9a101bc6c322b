import LarderTestSupport
import LarderVocabulary
import Testing

@testable import LarderFetching

/// Tests of callers that share a fetch, with a cache whose lookups wait until the test lets them continue.
@Suite(.timeLimit(.minutes(10))) struct FlightTests {
    /// A cache of one key. Each lookup returns the value at the time of its start.
    private struct HeldCache: FetchBackend {
        final class State: Sendable {
            let value = Guarded("old")
            let asked = Guarded(0)
            let gate = TestOrigin()
        }

        let state = State()
        var name: FetchName { FetchName(state, "held", [0x6B]) }

        func now() -> Int64 { 0 }

        func ask(maxAge: Int64?, lease: Int64?, waits: FetchWait) async throws -> FetchReply<String> {
            let value = state.value.with { $0 }
            let isFirst = state.asked.with { count in
                count += 1
                return count == 1
            }
            if isFirst { _ = try await state.gate.value() }
            return .fresh(value)
        }

        func store(_ value: String, token: UInt64, _ options: CheckedFetch) async throws {}
        func release(token: UInt64, _ release: FetchRelease) async {}
        func failedInBackground(_ error: any Error) {}
    }

    /// A caller that joins a running lookup must check the cache again, because the value may have changed since that
    /// lookup began.
    @Test func aCallerThatJoinsALookupChecksTheCacheItself() async throws {
        let cache = HeldCache()
        let options = try CheckedFetch(FetchOptions(), cache.name)
        cache.state.gate.hold()
        let first = Task { try await FlightTable.shared.value(cache, options) { "origin" } }
        await cache.state.gate.waitUntil(calls: 1)
        cache.state.value.with { $0 = "new" }
        let later = (0..<3).map { _ in Task { try await FlightTable.shared.value(cache, options) { "origin" } } }
        // The result must be the same whether or not the callers have joined by now.
        for _ in 0..<100 { await Task.yield() }
        cache.state.gate.letGo()
        #expect(try await first.value == "old")
        for task in later { #expect(try await task.value == "new") }
    }

    /// A caller that got the cached value does not also get the closure's failure, even if the caller's task has not
    /// continued yet. The failure is then reported as one in the background.
    @Test func aFailureRightAfterTheCachedValueWasReturnedIsInTheBackground() async {
        for _ in 0..<100 {
            let table = FlightTable()
            let flight = Flight<String>(alone: [], table)
            let waiter = Flight<String>.Waiter(takesFound: true, soft: 0)
            let caller = Task { await flight.wait(waiter, hard: nil) }
            await eventually { table.lock.withLock { !flight.waiters.isEmpty } }
            flight.load(FoundValue("cached", isFresh: false, isYoung: true), leaseEnds: .max)
            #expect(!flight.finish(.failure(CancellationError())), "nobody receives this error")
            guard case .found("cached") = await caller.value else {
                Issue.record("the caller did not get the cached value")
                return
            }
        }
    }
}
