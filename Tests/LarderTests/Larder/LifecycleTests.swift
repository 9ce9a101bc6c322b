import LarderTestSupport
import Testing

@testable import Larder

/// Tests of `run()` and `shutdown()`.
@Suite(.timeLimit(.minutes(10))) struct LifecycleTests {
    /// The form of ServiceLifecycle's protocol.
    protocol Service: Sendable {
        func run() async throws
    }

    /// How a run is ended.
    enum End: CaseIterable {
        case shutdown, cancellation, close
    }

    private let work: Workspace

    init() throws { work = try Workspace() }

    private func outbox(
        _ handler: @escaping @Sendable (OutboxDelivery<String>) async throws -> Void
    ) throws -> Outbox<String> {
        try Outbox(try work.cache { $0.backgroundMaintenance = true }, handler: handler)
    }

    @Test(arguments: End.allCases)
    func anOutboxStopsWhenItsRunEnds(end: End) async throws {
        let outbox = try outbox { _ in }
        let run = Task { try await outbox.run() }
        try await outbox.save("1", forKey: "a")
        #expect(await outbox.untilDelivered("a"))
        switch end {
        case .shutdown: outbox.shutdown()
        case .cancellation: run.cancel()
        case .close: await outbox.close()
        }
        try await run.value
        await #expect(throws: LarderError.self) { try await outbox.save("2", forKey: "b") }
        // After the end, another run ends at once.
        if end != .cancellation { try await outbox.run() }
    }

    @Test(arguments: [false, true])
    func aRunningDeliveryIsCompletedUnlessItIsCancelled(isCancelled: Bool) async throws {
        let (begun, letGo) = (Guarded(false), Guarded(false))
        let ends = Recorder<String>()
        let outbox = try outbox { _ in
            begun.value = true
            while !letGo.value { try await Task.sleep(for: .milliseconds(1)) }
            ends.add("delivered")
        }
        let run = Task { try await outbox.run() }
        try await outbox.save("1", forKey: "a")
        try await outbox.save("2", forKey: "b")
        await eventually { begun.value }
        outbox.shutdown()
        await eventually { throwsError { try outbox.save("3", forKey: "b") } }
        if isCancelled { run.cancel() } else { letGo.value = true }
        try await run.value
        // The second write was not begun, and stays pending.
        #expect(ends.all == (isCancelled ? [] : ["delivered"]))
        #expect(outbox.progress.waiting == (isCancelled ? 2 : 1))
    }

    /// The handler of "a" waits until "b" is delivered, which never happens after the shutdown.
    @Test func aHandlerThatWaitsForAnotherKeyDoesNotBlockTheShutdown() async throws {
        let begun = Guarded(false)
        let waits = Recorder<Bool>()
        let other = Guarded<(@Sendable () async -> Bool)?>(nil)
        let outbox = try outbox { _ in
            begun.value = true
            await eventually { other.value != nil }
            if let wait = other.value { waits.add(await wait()) }
        }
        let run = Task { try await outbox.run() }
        try await outbox.save("1", forKey: "a")
        try await outbox.save("2", forKey: "b")
        await eventually { begun.value }
        other.value = { [weak outbox] in await outbox?.untilDelivered("b") ?? true }
        outbox.shutdown()
        try await run.value
        #expect(waits.all == [false])
        #expect(outbox.progress.waiting == 1)
    }

    /// More outboxes than there are threads for blocking work, and handlers that need such a thread.
    @Test(arguments: [End.shutdown, .close]) func handlersMayBlockWhileManyOutboxesEnd(end: End) async throws {
        let side = try work.cache("side") { $0.backgroundMaintenance = true }
        let (begun, ended) = (Recorder<Int>(), Recorder<Int>())
        let letGo = Guarded(false)
        let outboxes = try (0..<8).map { number in
            try Outbox<String>(try work.cache("\(number)") { $0.backgroundMaintenance = true }) { _ in
                begun.add(number)
                // In a task of its own, because closing cancels the handler.
                await Task.detached { await eventually { letGo.value } }.value
                try await side.set("x", forKey: "mark")
                ended.add(number)
            }
        }
        for outbox in outboxes { try await outbox.save("1", forKey: "a") }
        await eventually { begun.all.count == outboxes.count }
        await withTaskGroup { group in
            for outbox in outboxes {
                outbox.shutdown()
                group.addTask { if end == .close { await outbox.close() } else { try? await outbox.run() } }
            }
            // All of them wait for their handlers.
            try? await Task.sleep(for: .milliseconds(50))
            letGo.value = true
        }
        #expect(ended.all.count == outboxes.count)
    }

    @Test("a write is refused, or the next outbox of the database delivers it", arguments: 0..<20)
    func noWriteIsLostBetweenTwoOutboxes(round: Int) async throws {
        let cache = try work.cache { $0.backgroundMaintenance = true }
        let (accepted, delivered) = (Recorder<String>(), Recorder<String>())
        let first = try Outbox<String>(cache) { delivered.add($0.key) }
        let savers = (0..<3).map { saver in
            Task.detached {
                for number in 0... {
                    let key = "\(saver)-\(number)"
                    do { try await first.save("1", forKey: key) } catch { break }
                    accepted.add(key)
                }
            }
        }
        await eventually { accepted.all.count > round * 3 }
        await first.close()
        let second = try Outbox<String>(cache) { delivered.add($0.key) }
        for saver in savers { await saver.value }
        await eventually { delivered.all.count >= accepted.all.count }
        #expect(Set(accepted.all).isSubset(of: delivered.all))
        await eventually { second.progress.waiting == 0 }
        await second.close()
    }

    @Test func nothingIsDeliveredAfterTheEnd() async throws {
        let cache = try work.cache()
        let delivered = Recorder<String>()
        let outbox = try Outbox<String>(cache) { delivered.add($0.key) }
        try await outbox.save("1", forKey: "a")
        async let first: Void = outbox.close()
        async let second: Void = outbox.run()
        _ = try await (first, second)
        await outbox.deliverDue()
        #expect(delivered.all.isEmpty)
        // The next outbox delivers the write.
        let next = try Outbox<String>(cache) { delivered.add($0.key) }
        await next.deliverDue()
        #expect(delivered.all == ["a"])
        await next.close()
    }

    private func throwsError(_ body: () throws -> Void) -> Bool {
        do { try body() } catch { return true }
        return false
    }

    @Test(arguments: End.allCases)
    func anOriginCacheIsClosedWhenItsRunEnds(end: End) async throws {
        let origin = ScriptedCacheOrigin(["apple": "3"])
        let prices = OriginCache(try work.cache(), origin: origin)
        let run = Task { try await prices.run() }
        #expect(try await prices.value(String.self, forKey: "apple") == "3")
        switch end {
        case .shutdown: prices.shutdown()
        case .cancellation: run.cancel()
        case .close: prices.close()
        }
        try await run.value
        await #expect(throws: LarderError.self) { try await prices.value(String.self, forKey: "apple") }
    }

    @Test func shutdownLetsRunningCallsToTheOriginEnd() async throws {
        let origin = ScriptedCacheOrigin(["apple": "3"])
        origin.isHeld = true
        let prices = OriginCache(try work.cache(), origin: origin)
        let run = Task { try await prices.run() }
        let read = Task { try await prices.value(String.self, forKey: "apple") }
        await eventually { prices.status.calls == 1 }
        prices.shutdown()
        try await Task.sleep(for: .milliseconds(50))
        #expect(!prices.cache.source.isClosed)
        origin.isHeld = false
        #expect(try await read.value == "3")
        try await run.value
        #expect(prices.cache.source.isClosed)
    }

    @Test(arguments: 0..<8) func shutdownLetsWritesReachTheCache(round: Int) async throws {
        let origin = ScriptedCacheOrigin([:])
        let prices = OriginCache(try work.cache(), origin: origin)
        let run = Task { try await prices.run() }
        async let set: Void = prices.set("4", forKey: "pear")
        await eventually { prices.status.calls == 1 }
        prices.shutdown()
        try await set
        try await run.value
        let stored = try await work.cache().value(String.self, forKey: "pear")
        #expect(stored == "4")
    }
}

extension Outbox: LifecycleTests.Service {}
extension OriginCache: LifecycleTests.Service {}
