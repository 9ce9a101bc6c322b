import LarderObserving
import LarderTestSupport
import Testing

/// Tests of the buffer of changes that an observer has not read yet: at most one per key, and a limited number.
@Suite(.timeLimit(.minutes(10))) struct ChangeBufferTests {
    let buffer = ChangeBuffer(PendingChanges(max: 4))

    private struct Lost: Error {}

    private func add(_ keys: String..., kind: CacheChange.Kind = .stored) {
        for key in keys { buffer.change { $0.add(kind, key: Array(key.utf8)) } }
    }

    /// Returns all pending changes. To find their end, adds the change `~end`, and reads the changes before it.
    private func rest() async throws -> [String] {
        add("~end")
        var found: [String] = []
        while let change = try await buffer.next(), change.key != "~end" { found.append(change.description) }
        return found
    }

    @Test func changesOfAKeyAreCoalesced() async throws {
        add("a", "b")
        add("a", kind: .removed)
        add("a", "b", "a")
        add("b", kind: .expired)
        #expect(buffer.contentNow.count == 2)
        #expect(try await rest() == ["stored a", "expired b"])
        add("a")
        #expect(try await rest() == ["stored a"])
    }

    @Test func aFullBufferReportsThatItFellBehindAndContinues() async throws {
        add("a", "b", "c", "d", "a", "d")
        #expect(buffer.contentNow.count == 4)
        add("e")
        #expect(buffer.contentNow.count == 0)
        add("f", "g")
        #expect(try await rest() == ["fellBehind", "stored f", "stored g"])
    }

    @Test func repeatedPurgesDoNotGrowTheBuffer() async throws {
        let buffer = ChangeBuffer(PendingChanges(max: 10_000))
        for round in 0..<100_000 {
            buffer.change { $0.add(.stored, key: [UInt8(round % 3)]) }
            buffer.change { $0.purge(tags: [[1]]) }
            _ = try await buffer.next()
        }
        #expect(buffer.contentNow.count <= 10_000)
    }

    @Test func aPurgeReplacesPendingChanges() async throws {
        add("a", "b")
        buffer.change { $0.purge() }
        add("b")
        buffer.change { $0.purge() }
        add("c")
        #expect(try await rest() == ["purged", "stored c"])
    }

    @Test func aChangeAfterATagPurgeIsReportedAfterIt() async throws {
        add("a", "b")
        buffer.change { $0.purge(tags: [Array("x".utf8), Array("y".utf8)]) }
        add("a")
        #expect(buffer.contentNow.count == 4)
        #expect(try await buffer.next()?.description == "stored b")
        #expect(try await rest() == ["purged x y", "stored a"])
    }

    @Test func purgedTagsCountTowardsTheLimitOfTheBuffer() async throws {
        buffer.change { $0.purge(tags: [[0x78], [0x79], [0x7A], [0x78]]) }
        #expect(buffer.contentNow.count == 4)
        buffer.change { $0.purge(tags: [[0x78]]) }
        #expect(try await rest() == ["fellBehind"])
    }

    @Test func aBufferThrowsItsErrorOnceAfterEarlierChanges() async throws {
        add("a")
        buffer.change { $0.lose(Lost()) }
        #expect(try await buffer.next()?.description == "stored a")
        await #expect(throws: Lost.self) { try await self.buffer.next() }
        buffer.change { $0.fallBehind() }
        #expect(try await rest() == ["fellBehind"])
    }

    @Test func aBufferThrowsItsErrorBeforeLaterChanges() async throws {
        add("a")
        buffer.change { $0.lose(Lost()) }
        buffer.change { $0.fallBehind() }
        add("b")
        await #expect(throws: Lost.self) { try await self.buffer.next() }
        #expect(try await rest() == ["fellBehind", "stored b"])
    }

    @Test func waitingTasksGetChangesAndCancelledTasksDoNot() async throws {
        let cancelled = Task { try await buffer.next() }
        await eventually { buffer.takerCount == 1 }
        let served = Task { try await buffer.next() }
        await eventually { buffer.takerCount == 2 }
        cancelled.cancel()
        #expect(try await cancelled.value == nil)
        add("a")
        #expect(try await served.value?.description == "stored a")
        #expect(buffer.takerCount == 0)
    }

    @Test func closingEndsAllWaitsAtOnce() async throws {
        let waiting = Task { try await buffer.next() }
        await eventually { buffer.takerCount == 1 }
        buffer.finish()
        #expect(try await waiting.value == nil)
        add("a")
        #expect(try await buffer.next() == nil)
        buffer.finish(Lost())
        #expect(try await buffer.next() == nil)
    }
}
