import LarderTestSupport
import Testing

@testable import LarderClient

/// Tests of the client's change feeds, which can continue from the position of any change.
@Suite(.timeLimit(.minutes(10))) struct RemoteFeedTests {
    private func notified(_ changes: PositionedChanges<Int>, end: String) async throws
        -> (texts: [String], position: ChangePosition)
    {
        var texts: [String] = []
        for try await change in changes {
            if change.key == end { return (texts, change.position) }
            let value = try change.value.map { "\($0)" }
            texts.append([change.kind.rawValue, change.key, value].compactMap(\.self).joined(separator: " "))
        }
        return (texts, .beginning)
    }

    @Test(arguments: [LiveServer.larderd, .larderdOnFourThreads])
    func aFeedResumesFromItsPosition(_ server: LiveServer) async throws {
        try await server.run { path in
            let mine = try await LarderClient.connect(socketPath: path)
            let theirs = try await LarderClient.connect(socketPath: path)
            let cache = mine.cache("books", of: Int.self)
            let other = theirs.cache("books", of: Int.self)
            try await other.set(1, forKey: "a")
            try await other.set(0, forKey: "end")
            let first = try await notified(cache.decodedChanges(since: .beginning), end: "end")
            #expect(first.texts == ["passBegan", "stored a 1"])
            var position = first.position
            for try await change in cache.changes(since: position) {
                position = change.position
                if change.kind == .passEnded { break }
            }
            try await other.set(2, forKey: "a")
            try await other.remove("a")
            try await other.set(3, forKey: "b")
            try await other.set(0, forKey: "last")
            let second = try await notified(cache.decodedChanges(since: position), end: "last")
            #expect(second.texts == ["removed a", "stored b 3"])
            // There are no more changes, so the iteration waits for the next one.
            let changes = cache.decodedChanges(since: second.position)
            let waiting = Task { try await notified(changes, end: "late") }
            try await other.set(4, forKey: "c")
            try await other.set(0, forKey: "late")
            #expect(try await waiting.value.texts.suffix(1) == ["stored c 4"])
            // Cancelling the task ends the iteration.
            let ended = Task { try await notified(cache.decodedChanges(since: .now), end: "never") }
            ended.cancel()
            #expect(try await ended.value.texts.isEmpty)
            // Closing the client ends its iterations, whether they wait or not.
            let hasRead = Guarded(false)
            let closed = Task {
                for try await change in cache.changes(since: .beginning) where change.kind == .passEnded {
                    hasRead.with { $0 = true }
                }
            }
            await eventually { hasRead.with { $0 } }
            mine.close()
            try await closed.value
            #expect(try await notified(cache.decodedChanges(since: .beginning), end: "never").texts.isEmpty)
            theirs.close()
        }
    }

    @Test func feedRefusesInvalidPositions() async throws {
        try await LiveServer.larderd.run { path in
            let client = try await LarderClient.connect(socketPath: path)
            var iterator = client.cache("books", of: Int.self).changes(since: ChangePosition("nonsense"))
                .makeAsyncIterator()
            await #expect(throws: LarderClientError.self) { try await iterator.next() }
            client.close()
        }
    }
}
