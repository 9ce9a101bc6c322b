import Larder
import LarderEngine
import LarderTestSupport
import Testing

/// Tests of the library's change feeds, which can continue from the position of any change.
@Suite(.timeLimit(.minutes(10))) struct PositionedChangesTests: Sendable {
    // `nonisolated(unsafe)` is safe here, because only one task at a time creates caches in the workspace.
    nonisolated(unsafe) let work: Workspace
    let cache: Cache

    init() throws {
        work = try Workspace()
        cache = try work.cache(policy: .high)
    }

    /// Returns the changes before that of the key `end`, and the position of the change of `end`.
    private func notified<Value>(_ changes: PositionedChanges<Value>, end: String) async throws
        -> (texts: [String], position: ChangePosition)
    {
        var texts: [String] = []
        for try await change in changes {
            if change.key == end { return (texts, change.position) }
            let text = (try? change.value).flatMap { $0.map { "\($0)" } }
            texts.append([change.kind.rawValue, change.key, text].compactMap(\.self).joined(separator: " "))
        }
        return (texts, .beginning)
    }

    @Test func aFeedReportsEachEntryOnceAndThenNewChanges() async throws {
        try await cache.set(1, forKey: "a")
        try await cache.set("text", forKey: "b")
        let all = try cache.decodedChanges(Int.self, since: .beginning)
        var position = ChangePosition.beginning
        var texts: [String] = []
        for try await change in all {
            texts.append([change.kind.rawValue, change.key].compactMap(\.self).joined(separator: " "))
            if change.key == "a" {
                #expect(try change.value == 1)
                #expect(change.deadline == work.time.wallMilliseconds() + 60_000)
            }
            if change.key == "b" { #expect(throws: LarderError.self) { try change.value } }
            position = change.position
            if change.kind == .passEnded { break }
        }
        #expect(texts == ["passBegan", "stored a", "stored b", "passEnded"])
        try await cache.set(2, forKey: "a")
        try await cache.remove("b")
        try await cache.removeAll(tagged: "t")
        try await cache.set(0, forKey: "end")
        let more = try await notified(try cache.decodedChanges(Int.self, since: position), end: "end")
        #expect(more.texts == ["stored a 2", "removed b", "purged"])
        // A position is text, and may be used again.
        let same = ChangePosition(position.description)
        #expect(try await notified(try cache.decodedChanges(Int.self, since: same), end: "end").texts == more.texts)
        try await cache.removeAll()
        try await cache.set(0, forKey: "a1")
        try await cache.set(0, forKey: "last")
        let last = try cache.changes(since: more.position, prefix: "a")
        var iterator = last.makeAsyncIterator()
        #expect(try await iterator.next()?.kind == .purged)
        #expect(try await iterator.next()?.key == "a1")
        try await cache.remove(prefix: "a1")
        let purged = try await iterator.next()
        #expect(purged?.kind == .purged && purged?.prefixBytes == Array("a1".utf8))
        #expect(try await iterator.next()?.kind == .removed)
    }

    @Test func aWaitingFeedReceivesChangesAtOnce() async throws {
        let changes = try cache.decodedChanges(Int.self, since: .now, prefix: "a")
        var iterator = changes.makeAsyncIterator()
        let cache = cache
        // The change may be made before the feed waits, or while it waits.
        let writer = Task {
            var number = 0
            while !Task.isCancelled {
                number += 1
                try await cache.set(number, forKey: "b")
                try await cache.set(number, forKey: "a")
                await Task.yield()
            }
        }
        for _ in 0..<20 { #expect(try await iterator.next()?.key == "a") }
        writer.cancel()
        _ = await writer.result
    }

    @Test func aFeedEndsWhenItsTaskIsCancelledOrItsCacheCloses() async throws {
        let changes = try cache.changes(since: .now)
        let ended = Task {
            for try await _ in changes { Issue.record("nothing has changed") }
        }
        ended.cancel()
        try await ended.value
        let closed = Task {
            for try await _ in changes { Issue.record("nothing has changed") }
        }
        await Task.yield()
        await cache.close()
        try await closed.value
    }

    @Test func aFeedResumesAfterARestart() async throws {
        try await cache.set(1, forKey: "a")
        try await cache.set(1, forKey: "end")
        var position = ChangePosition.beginning
        for try await change in try cache.changes(since: position) {
            position = change.position
            if change.kind == .passEnded { break }
        }
        #expect(position != .beginning)
        await cache.close()
        let again = try work.cache(policy: .high)
        try await again.set(2, forKey: "a")
        try await again.set(2, forKey: "end")
        let changes = try await notified(try again.decodedChanges(Int.self, since: position), end: "end")
        #expect(changes.texts == ["stored a 2"])
    }

    @Test func invalidPositionsAreRefused() {
        #expect(throws: LarderError.self) { try cache.changes(since: ChangePosition("nonsense")) }
    }
}
