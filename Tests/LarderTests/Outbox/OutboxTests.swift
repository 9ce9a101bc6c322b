import LarderPlatform
import LarderTestSupport
import Testing

@testable import Larder

/// Tests of write-behind with an outbox. Unless a test says otherwise, nothing is delivered in the background: the test
/// triggers deliveries.
@Suite(.timeLimit(.minutes(10))) struct OutboxTests {
    private struct Down: Error {}

    private let workspace: Workspace
    private let cache: Cache
    /// The deliveries: `key=value`, `key-` for a removal.
    private let server = Recorder<String>()
    private let tokens = Recorder<String>()
    /// The errors that the handler throws, by key.
    private let faults = Guarded<[String: any Error & Sendable]>([:])

    init() throws {
        workspace = try Workspace()
        cache = try workspace.cache()
    }

    private func outbox(_ concurrency: Int = 1, keysMax: Int = 1_000, on cache: Cache? = nil) throws -> Outbox<String> {
        try Outbox<String>(cache ?? self.cache, concurrency: concurrency, keysMax: keysMax) {
            [server, tokens, faults] delivery in
            tokens.add("\(delivery.key) \(delivery.attempt) \(delivery.token)")
            if let fault = faults.with({ $0[delivery.key] }) { throw fault }
            server.add(delivery.key + (delivery.value.map { "=" + $0 } ?? "-"))
        }
    }

    /// Delivers all pending writes that are due.
    private func deliver(_ outbox: Outbox<String>) async { while await outbox.deliverDue() == 0 {} }

    @Test func savedValuesAreReadableAtOnceAndDeliveredInOrder() async throws {
        let outbox = try outbox()
        for number in 1...5 { try await outbox.save("\(number)", forKey: "key:\(number)") }
        #expect(try await cache.value(String.self, forKey: "key:3") == "3")
        #expect(outbox.progress.waiting == 5 && outbox.isWaiting("key:3"))
        workspace.time.advance(milliseconds: 1_500)
        #expect(outbox.progress.oldest == .milliseconds(1_500))
        try await outbox.remove("key:3")
        #expect(try await cache.value(String.self, forKey: "key:3") == nil)
        await deliver(outbox)
        #expect(server.all == ["key:1=1", "key:2=2", "key:4=4", "key:5=5", "key:3-"])
        #expect(outbox.progress.waiting == 0 && outbox.progress.delivered == 5 && outbox.progress.oldest == nil)
        await outbox.untilDelivered("key:3")
        #expect(try await cache.value(String.self, forKey: "key:4") == "4")
    }

    @Test func waitingForADeliveryCanBeCancelled() async throws {
        let outbox = try outbox()
        try await outbox.save("1", forKey: "a")
        let waiting = Task { await outbox.untilDelivered("a") }
        let cancelled = Task { await outbox.untilDelivered("a") }
        cancelled.cancel()
        #expect(await !cancelled.value)
        // An already cancelled caller does not wait at all.
        let late = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return await outbox.untilDelivered("a")
        }
        #expect(await !late.value)
        await deliver(outbox)
        #expect(await waiting.value)
        #expect(await outbox.untilDelivered("a"))
    }

    @Test func onlyTheLastWriteOfAKeyIsDelivered() async throws {
        let outbox = try outbox()
        for number in 1...3 { try await outbox.save("\(number)", forKey: "a") }
        try await outbox.save("x", forKey: "b")
        try await outbox.save("4", forKey: "a")
        await deliver(outbox)
        #expect(server.all == ["b=x", "a=4"])
    }

    private var tokensOfA: [String] { tokens.all.filter { $0.hasPrefix("a ") }.map { String($0.suffix(32)) } }

    @Test func aFailedWriteDelaysNoOtherWriteAndKeepsItsToken() async throws {
        let outbox = try outbox()
        faults.with { $0["a"] = Down() }
        try await outbox.save("1", forKey: "a")
        try await outbox.save("2", forKey: "b")
        await deliver(outbox)
        #expect(server.all == ["b=2"])
        #expect(outbox.progress.waiting == 1 && outbox.progress.lastFailure == "Down()")
        var attempts = 1
        for _ in 0..<3 {
            workspace.time.advance(milliseconds: 30_200)
            await deliver(outbox)
            attempts += 1
        }
        faults.with { $0 = [:] }
        workspace.time.advance(milliseconds: 30_200)
        await deliver(outbox)
        #expect(server.all == ["b=2", "a=1"])
        let seen = tokens.all.filter { $0.hasPrefix("a ") }.map { $0.split(separator: " ") }
        let numbers: [Int] = seen.compactMap { Int($0[1]) }
        #expect(numbers == Array(1...attempts + 1))
        #expect(Set(seen.map { $0[2] }).count == 1 && seen[0][2].count == 32)
        #expect(outbox.progress.retried == attempts)
        // Another write of the key has another token.
        try await outbox.save("1", forKey: "a")
        await deliver(outbox)
        #expect(Set(tokensOfA).count == 2)
    }

    @Test func aWriteMadeDuringADeliveryIsDeliveredAfterIt() async throws {
        let gate = TestOrigin()
        gate.hold()
        let outbox = try Outbox<String>(cache) { [server] delivery in
            _ = try await gate.value()
            server.add(delivery.value ?? "-")
        }
        try await outbox.save("1", forKey: "a")
        let round = Task { await outbox.deliverDue() }
        await gate.waitUntil(calls: 1)
        try await outbox.save("2", forKey: "a")
        gate.letGo()
        _ = await round.value
        #expect(outbox.isWaiting("a"))
        while await outbox.deliverDue() == 0 {}
        #expect(server.all == ["1", "2"])
        #expect(!outbox.isWaiting("a"))
    }

    @Test func aRefusedWriteIsDropped() async throws {
        let outbox = try outbox()
        faults.with { $0["a"] = DeliveryRefusal("no such customer") }
        try await outbox.save("1", forKey: "a")
        await deliver(outbox)
        #expect(outbox.progress.waiting == 0 && outbox.progress.refused == 1 && outbox.progress.delivered == 0)
        #expect(outbox.progress.lastFailure == "no such customer")
        #expect(try await cache.value(String.self, forKey: "a") == "1")
    }

    /// The previous version of the program saved texts; this one has books.
    private func savedByEarlierVersion(_ count: Int) async throws {
        let previous = try outbox()
        for number in 0..<count { try await previous.save("old", forKey: "old:\(number)") }
        await previous.close()
    }

    @Test func undecodableWritesAreKeptAndBlockNoOthers() async throws {
        try await savedByEarlierVersion(20)
        let outbox = try Outbox<Book>(cache) { [server] in server.add($0.key) }
        try await outbox.save(Book(name: "Reader", price: 1), forKey: "new")
        while await outbox.deliverDue() == 0 {}
        #expect(server.all == ["new"])
        #expect(outbox.progress.waiting == 20 && outbox.progress.undecodable == 20 && outbox.progress.refused == 0)
        #expect(outbox.progress.lastFailure?.contains("cannot be read as Book") == true)
        // After the entry was written again, it can be decoded.
        try await outbox.save(Book(name: "Reader", price: 2), forKey: "old:7")
        while await outbox.deliverDue() == 0 {}
        #expect(server.all == ["new", "old:7"] && outbox.progress.undecodable == 19)
        #expect(try await outbox.purge() == 19)
        #expect(outbox.progress.undecodable == 0)
    }

    @Test func undecodableWritesArePassedToTheirHandler() async throws {
        try await savedByEarlierVersion(3)
        let outbox = try Outbox<Book>(
            cache,
            undecodable: { [server, tokens] previous in
                #expect(previous.codec == .raw && previous.error.code == .decoding && previous.attempt == 1)
                if previous.key == "old:1" { throw DeliveryRefusal("too old") }
                tokens.add(previous.token)
                server.add(previous.key + "=" + String(decoding: previous.bytes, as: UTF8.self))
            },
            handler: { [server] in server.add($0.key) })
        while await outbox.deliverDue() == 0 {}
        #expect(server.all == ["old:0=old", "old:2=old"])
        #expect(tokens.all.allSatisfy { $0.count == 32 } && Set(tokens.all).count == 2)
        let progress = outbox.progress
        #expect(progress.waiting == 0 && progress.delivered == 2 && progress.refused == 1 && progress.undecodable == 0)
        #expect(progress.lastFailure == "too old")
    }

    @Test func onlyOneWriteProbesAnUnreachableReceiver() async throws {
        let outbox = try outbox()
        for number in 0..<100 {
            faults.with { $0["\(number)"] = Down() }
            try await outbox.save("x", forKey: "\(number)")
        }
        await deliver(outbox)
        #expect(tokens.all.count == 8)
        workspace.time.advance(milliseconds: 30_200)
        // Only one write is tried, to find out whether the receiver can be reached again.
        _ = await outbox.deliverDue()
        #expect(tokens.all.count == 9)
        faults.with { $0 = [:] }
        for _ in 0..<3 {
            workspace.time.advance(milliseconds: 30_200)
            await deliver(outbox)
        }
        #expect(outbox.progress.waiting == 0 && server.all.count == 100)
    }

    @Test func severalWritesAreDeliveredConcurrently() async throws {
        let gate = TestOrigin()
        gate.hold()
        let outbox = try Outbox<String>(cache, concurrency: 4) { _ in _ = try await gate.value() }
        for number in 0..<6 { try await outbox.save("x", forKey: "\(number)") }
        let round = Task { await outbox.deliverDue() }
        await gate.waitUntil(calls: 4)
        #expect(gate.running == 4)
        gate.letGo()
        _ = await round.value
        #expect(outbox.progress.delivered == 4)
    }

    @Test func pendingWritesSurviveARestart() async throws {
        let first = try outbox()
        faults.with { $0["a"] = Down() }
        try await first.save("1", forKey: "a")
        try await first.save("2", forKey: "b")
        try await first.save("3", forKey: "c")
        _ = await first.deliverDue()
        await first.close()
        await #expect { try await first.save("4", forKey: "a") } throws: { ($0 as? LarderError)?.code == .closed }
        await cache.close()
        faults.with { $0 = [:] }
        let again = try workspace.cache()
        let second = try outbox(on: again)
        #expect(second.progress.waiting == 3)
        #expect(try await again.value(String.self, forKey: "a") == "1")
        await deliver(second)
        #expect(server.all == ["a=1", "b=2", "c=3"])
        #expect(Set(tokensOfA).count == 1)
    }

    @Test func purgedWritesAreNotDelivered() async throws {
        let outbox = try outbox()
        for number in 0..<3 { try await outbox.save("x", forKey: "\(number)") }
        #expect(try await outbox.purge() == 3)
        await deliver(outbox)
        #expect(server.all.isEmpty && outbox.progress.waiting == 0)
        #expect(try await cache.value(String.self, forKey: "1") == "x")
        try await outbox.save("y", forKey: "1")
        await deliver(outbox)
        #expect(server.all == ["1=y"])
    }

    @Test func aDatabaseCanHaveOnlyOneOpenOutbox() async throws {
        let first = try outbox()
        #expect { _ = try outbox() } throws: { ($0 as? LarderError)?.code == .invalidArgument }
        let other = try workspace.cache("others")
        let second = try outbox(on: other)
        await second.close()
        await first.close()
        let third = try outbox()
        await third.close()
    }

    @Test func writesBeyondTheOutboxLimitAreRefused() async throws {
        let outbox = try outbox(keysMax: 2)
        try await outbox.save("1", forKey: "a")
        try await outbox.save("1", forKey: "b")
        await #expect { try await outbox.save("1", forKey: "c") } throws: {
            ($0 as? LarderError)?.code == .writesSuspended
        }
        try await outbox.save("2", forKey: "a")
        #expect(try await !cache.contains("c"))
        await outbox.close()
        for (concurrency, keysMax) in [(0, 1), (65, 1), (1, 0)] {
            #expect { _ = try self.outbox(concurrency, keysMax: keysMax) } throws: {
                ($0 as? LarderError)?.code == .invalidArgument
            }
        }
        let long = try workspace.cache(String(repeating: "n", count: 60))
        #expect { _ = try self.outbox(on: long) } throws: { ($0 as? LarderError)?.code == .invalidArgument }
    }

    /// If the larder has background threads, a separate thread delivers, and closing cancels running deliveries.
    @Test func anOutboxDeliversInTheBackground() async throws {
        let cache = try await Cache.inMemory()
        let gate = TestOrigin()
        let outbox = try Outbox<String>(cache) { [server] delivery in
            _ = try await gate.value()
            server.add(delivery.key)
        }
        for number in 0..<20 { try await outbox.save("x", forKey: "\(number)") }
        for number in 0..<20 { await outbox.untilDelivered("\(number)") }
        #expect(server.all == (0..<20).map { "\($0)" })
        gate.hold()
        try await outbox.save("x", forKey: "held")
        await gate.waitUntil(calls: 21)
        let waiter = Task { await outbox.untilDelivered("held") }
        await outbox.close()
        #expect(await !waiter.value)
        #expect(gate.cancellations == 1 && outbox.isWaiting("held"))
        #expect(outbox.progress.retried == 0)
    }

    @Test func aClosedOutboxKeepsPendingWrites() async throws {
        let previous = try outbox()
        try await previous.save("1", forKey: "a")
        await previous.close()
        let outbox = try outbox()
        await #expect { try await previous.purge() } throws: { ($0 as? LarderError)?.code == .closed }
        await deliver(outbox)
        #expect(server.all == ["a=1"])
    }

    /// If a handler waits for its own delivery, or closes its own outbox, it does not wait forever.
    @Test(arguments: [false, true]) func aHandlerCanWaitForOrCloseItsOwnOutbox(blocks: Bool) async throws {
        let cache = try await Cache.inMemory()
        let own = Guarded<Outbox<String>?>(nil)
        let outbox = try Outbox<String>(cache) { [server] delivery in
            guard let outbox = own.with({ $0 }) else { return }
            if delivery.key == "first" {
                server.add("\(await outbox.untilDelivered("first"))")
            } else if blocks {
                Self.closeBlocking(outbox)
            } else {
                await outbox.close()
            }
        }
        own.with { $0 = outbox }
        try await outbox.save("x", forKey: "first")
        #expect(await outbox.untilDelivered("first"))
        #expect(server.all == ["false"])
        try await outbox.save("x", forKey: "second")
        // This returns when the delivery is recorded, or when the outbox is closed before that.
        _ = await outbox.untilDelivered("second")
        await outbox.close()
        own.with { $0 = nil }
        try await Outbox<String>(cache) { _ in }.close()
    }

    private static func closeBlocking(_ outbox: Outbox<String>) { outbox.close() }
}
