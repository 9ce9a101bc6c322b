import LarderTestSupport
import Testing

@testable import LarderClient

/// Tests of sequences of changes in the client, with changes by this and other clients.
@Suite(.timeLimit(.minutes(10))) struct RemoteChangesTests {
    private static let daemons: [LiveServer] = [.larderd, .larderdOnFourThreads]

    /// Returns the changes reported so far. Stores the key `end`, and reads until the change of that key, because it is
    /// the last one.
    private func notified(_ changes: CacheChanges, _ cache: RemoteCache<Int>, end: String = "~end") async throws
        -> [String]
    {
        try await cache.set(0, forKey: end)
        var found: [String] = []
        for try await change in changes {
            if change.key == end { break }
            found.append(change.description)
        }
        return found
    }

    /// Runs `body` with an observer's cache and that of another client.
    private func run(
        _ server: LiveServer, _ options: ClientOptions = .init(),
        _ body: (_ mine: RemoteCache<Int>, _ theirs: RemoteCache<Int>) async throws -> Void
    ) async throws {
        try await server.run { path in
            let mine = try await LarderClient.connect(socketPath: path, options: options)
            let theirs = try await LarderClient.connect(socketPath: path)
            try await body(mine.cache("books", of: Int.self), theirs.cache("books", of: Int.self))
            mine.close()
            theirs.close()
        }
    }

    @Test(arguments: daemons) func everyKindOfChangeIsReported(_ server: LiveServer) async throws {
        try await run(server) { mine, theirs in
            let changes = try await mine.changes()
            try await theirs.set(1, forKey: "a")
            try await mine.set(["b": 2])
            #expect(try await notified(changes, theirs) == ["stored a", "stored b"])
            try await theirs.increment("a")
            #expect(try await theirs.touch("b", policy: .hours(1)))
            #expect(try await notified(changes, theirs) == ["stored a", "stored b"])
            try await theirs.batch { $0.remove("a") }
            try await theirs.remove("nothing")
            #expect(try await notified(changes, theirs) == ["removed a"])
            try await theirs.remove(prefix: "b")
            #expect(try await notified(changes, theirs) == ["removed b"])
            try await theirs.set(1, forKey: "soon", policy: .after(.milliseconds(1)))
            #expect(try await changes.text(except: "stored soon") == "expired soon")
            try await theirs.removeAll()
            #expect(try await notified(changes, theirs) == ["purged"])
        }
    }

    @Test("changes of a prefix or key are reported literally, without patterns")
    func changesOfAPrefixOrKeyMatchLiterally() async throws {
        try await run(.larderd) { mine, theirs in
            let prefix = try await mine.changes(prefix: "u*[?]\\:")
            let key = try await mine.changes(forKey: "u*[?]\\:1")
            let bytes = try await mine.changes(prefix: [0, 255] as [UInt8])
            for text in ["u*[?]\\", "u*[?]\\:", "u*[?]\\:1", "ux[?]\\:1", "u*?\\:1", "", "u*[?]\\:10"] {
                try await theirs.set(1, forKey: text)
            }
            try await theirs.set(1, forKey: [0, 255, 10, 13] as [UInt8])
            try await theirs.set(1, forKey: [0, 254] as [UInt8])
            let ofPrefix = try await notified(prefix, theirs, end: "u*[?]\\:~")
            #expect(ofPrefix == ["stored u*[?]\\:", "stored u*[?]\\:1", "stored u*[?]\\:10"])
            #expect(try await key.text() == "stored u*[?]\\:1")
            #expect(try await bytes.first { _ in true }?.keyBytes == [0, 255, 10, 13])
        }
    }

    @Test func observersOfAKeyAreNotifiedOfItsExpiry() async throws {
        try await run(.larderd) { mine, theirs in
            try await theirs.set(1, forKey: "k", policy: .seconds(1))
            let changes = try await mine.changes(forKey: "k")
            #expect(try await changes.text() == "expired k")
        }
    }

    @Test(arguments: [nil, NearCacheOptions()]) func observersReadTheNewestValue(_ near: NearCacheOptions?)
        async throws
    {
        try await run(.larderdOnFourThreads, .init(nearCache: near)) { mine, theirs in
            var iterator = try await mine.decodedChanges(prefix: "n").makeAsyncIterator()
            for round in 0..<200 {
                try await theirs.set(round, forKey: "n")
                // The near cache may keep this value, but must not return it after the next change was reported.
                _ = try await mine.value(forKey: "n")
                var change = try await iterator.next()
                while try change?.value != round { change = try await iterator.next() }
                #expect(try await mine.value(forKey: "n") == round)
            }
            try await theirs.setBytes(Array("no number".utf8), forKey: "n1")
            let odd = try #require(try await iterator.next())
            #expect(odd.key == "n1")
            let error = #expect(throws: LarderClientError.self) { try odd.value }
            #expect(error?.code == .decode)
            try await theirs.set(1, forKey: "n2")
            #expect(try await iterator.next()?.value == 1)
        }
    }

    @Test func aSlowObserverIsNotifiedThatItFellBehind() async throws {
        try await run(.larderd) { mine, theirs in
            let changes = try await mine.changes(prefix: "k", bufferMax: 4)
            let all = try await mine.changes()
            for index in 0..<100 { try await theirs.set(index, forKey: "k\(index)") }
            // When `all` has received the last change, `changes` has received it too.
            _ = try await notified(all, theirs)
            #expect(try await changes.text() == "fellBehind")
            #expect(try await notified(changes, theirs, end: "k~").count < 4)
        }
    }

    @Test func changesRefusesInvalidArguments() async throws {
        try await LiveServer.larderd.run { client in
            let cache = client.cache(of: Int.self)
            let long = String(repeating: "x", count: 65_537)
            await refuses(.invalidArgument) { _ = try await cache.changes(prefix: long) }
            await refuses(.invalidArgument) { _ = try await cache.changes(forKey: long) }
            await refuses(.invalidArgument) { _ = try await cache.changes(bufferMax: 0) }
            let longest = String(long.dropLast())
            let changes = try await cache.changes(prefix: longest)
            try await cache.set(1, forKey: longest)
            #expect(try await changes.first { _ in true }?.key == longest)
            for name in ["No Name", "a\0b", "17"] {
                await refuses(.server) { _ = try await client.cache(name, of: Int.self).changes() }
            }
            client.close()
            #expect(try await changes.first { _ in true } == nil)
            await refuses(.closed) { _ = try await cache.changes() }
        }
        try await LiveServer.redis.run { client in
            await refuses(.invalidArgument) { _ = try await client.cache(of: Int.self).changes() }
        }
    }

    private func refuses(_ code: LarderClientError.Code, _ body: () async throws -> Void) async {
        let error = await #expect(throws: LarderClientError.self) { try await body() }
        #expect(error?.code == code, "\(String(describing: error))")
    }

    @Test func aChangeSequenceEndsWithItsTaskOrClient() async throws {
        try await LiveServer.larderd.run { client in
            let cache = client.cache(of: Int.self)
            let changes = try await cache.changes()
            let cancelled = Task { try await changes.first { $0.kind == .purged } }
            cancelled.cancel()
            #expect(try await cancelled.value == nil)
            var other: CacheChanges? = try await cache.changes(forKey: "k")
            other?.cancel()
            #expect(try await other?.first { _ in true } == nil)
            other = nil
            #expect(try await notified(changes, cache) == [])
            let waiting = Task { try await changes.first { $0.kind == .purged } }
            client.close()
            #expect(try await waiting.value == nil)
        }
    }

    @Test func aLostConnectionIsReportedToObservers() async throws {
        let place = try TemporaryDirectory(inMemory: true)
        var daemon = try DaemonProcess(in: place)
        let client = try await LarderClient.connect(
            socketPath: daemon.socketPath,
            options: .init(timeoutMilliseconds: 60_000, reconnectPatienceMilliseconds: 60_000))
        let cache = client.cache(of: Int.self)
        let changes = try await cache.changes()
        for round in 0..<3 {
            try await cache.set(round, forKey: "k")
            let notified = try await changes.text()
            #expect(notified == "stored k")
            daemon.kill()
            let error = await #expect(throws: LarderClientError.self) { try await changes.text() }
            #expect(error?.code == .closed)
            daemon = try DaemonProcess(in: place)
            #expect(try await changes.text() == "fellBehind")
        }
        client.close()
        #expect(try await changes.text() == nil)
    }

    /// An observer that applies all changes has the stored state in the end, despite concurrent writes. If it missed a
    /// change, this test would not end.
    @Test(arguments: [4, 1_024]) func anObserverThatAppliesAllChangesHasTheStoredState(_ bufferMax: Int) async throws {
        let seed = testSeed()
        let rounds = 60 * (TestSetting.rounds.number() ?? 1)
        try await run(.larderdOnFourThreads) { mine, theirs in
            let changes = try await mine.decodedChanges(bufferMax: bufferMax)
            let known = Guarded<[String: Int]>([:])
            let follower = Task {
                for try await change in changes {
                    switch change.kind {
                    case .stored: known.set(change.key, try change.value)
                    case .removed, .evicted, .expired: known.set(change.key, nil)
                    case .purged: known.value = [:]
                    case .fellBehind: known.value = try await everything(mine)
                    }
                }
            }
            try await withThrowingTaskGroup { group in
                for writer in 0..<6 {
                    group.addTask {
                        var random = SeededGenerator(seed: seed &+ UInt64(writer))
                        for round in 0..<rounds {
                            try await Self.change(theirs, writer * 10_000 + round, &random)
                        }
                    }
                }
                try await group.waitForAll()
            }
            // Wait for the expiries, which are reported a little after the deadlines.
            while true {
                let stored = try await everything(theirs)
                if known.value == stored, stored[Self.mark] != nil { break }
                if stored[Self.mark] == nil { try await theirs.set(1, forKey: Self.mark) }
                try await Task.sleep(for: .milliseconds(2))
            }
            changes.cancel()
            try await follower.value
        }
    }

    private static let mark = "mark"

    private func everything(_ cache: RemoteCache<Int>) async throws -> [String: Int] {
        var all: [String: Int] = [:]
        for try await entry in cache.entries() { all[entry.key] = entry.value }
        return all
    }

    private static func change(
        _ cache: RemoteCache<Int>, _ number: Int, _ random: inout SeededGenerator
    ) async throws {
        let key = "k\(random.below(24))"
        switch random.below(40) {
        case 0: try await cache.removeAll()
        case 1: try await cache.remove(prefix: "k1")
        case 2..<8: try await cache.remove(key)
        case 8..<14: try await cache.set(number, forKey: key, policy: .after(.milliseconds(random.below(30) + 1)))
        case 14..<18: try await cache.set([key: number, "x0": number, "x1": number])
        case 18..<22: try await cache.increment(key)
        case 22..<25: _ = try await cache.removeValue(forKey: key)
        default: try await cache.set(number, forKey: key)
        }
    }
}

extension CacheChanges {
    /// Returns the next change as text.
    /// - Parameter skipped: a change to skip if it comes first.
    fileprivate func text(except skipped: String? = nil) async throws -> String? {
        var iterator = makeAsyncIterator()
        let text = try await iterator.next()?.description
        return text == skipped && text != nil ? try await iterator.next()?.description : text
    }
}

extension Guarded where Value == [String: Int] {
    fileprivate func set(_ key: String?, _ value: Int?) {
        if let key { with { $0[key] = value } }
    }
}
