import LarderTestSupport
import Testing

@testable import LarderClient

private struct Session: Codable, Equatable, Sendable {
    var user: String
    var visits: Int
}

/// Tests of conditional writes, counters, lifetimes, snapshots and enumeration, with live servers.
@Suite(.timeLimit(.minutes(10))) struct RemoteConditionTests {
    private let ana = Session(user: "ana", visits: 1)
    private let eve = Session(user: "eve", visits: 2)

    @Test(arguments: LiveServer.allCases)
    func setIfAbsentAndIfPresentStoreOnlyThen(server: LiveServer) async throws {
        try await server.run(.init(nearCache: .init())) { client in
            let sessions = client.cache(of: Session.self)
            try await sessions.remove("k")
            #expect(try await sessions.value(forKey: "k") == nil)
            #expect(try await !sessions.setIfPresent(ana, forKey: "k"))
            #expect(try await sessions.setIfAbsent(ana, forKey: "k", policy: .high))
            #expect(try await !sessions.setIfAbsent(eve, forKey: "k"))
            #expect(try await sessions.value(forKey: "k") == ana)
            #expect(try await sessions.timeToLive(forKey: "k") != .never)
            #expect(try await sessions.setIfPresent(eve, forKey: "k"))
            #expect(try await sessions.value(forKey: "k") == eve)
            #expect(try await sessions.removeValue(forKey: "k") == eve)
            #expect(try await sessions.removeValue(forKey: "k") == nil)
            #expect(try await sessions.value(forKey: "k") == nil)
        }
    }

    @Test(arguments: [LiveServer.larderd, .larderdOnFourThreads])
    func replaceChangesOnlyAnEqualValue(server: LiveServer) async throws {
        try await server.run(.init(nearCache: .init())) { client in
            let sessions = client.cache(of: Session.self, codec: .propertyList)
            #expect(try await !sessions.replace(ana, with: eve, forKey: "k"))
            try await sessions.set(ana, forKey: "k")
            #expect(try await sessions.value(forKey: "k") == ana)
            #expect(try await sessions.replace(ana, with: eve, forKey: "k", policy: .never))
            #expect(try await !sessions.replace(ana, with: eve, forKey: "k"))
            #expect(try await sessions.value(forKey: "k") == eve)
            #expect(try await sessions.info(forKey: "k")?.codec == .propertyList)
            #expect(try await !sessions.remove("k", ifEqual: ana))
            #expect(try await sessions.value(forKey: "k") == eve)
            #expect(try await sessions.remove("k", ifEqual: eve))
            #expect(try await sessions.value(forKey: "k") == nil)
        }
    }

    /// Concurrent increments are not lost.
    @Test(arguments: LiveServer.allCases)
    func concurrentIncrementsAreNotLost(server: LiveServer) async throws {
        try await server.run(.init(nearCache: .init())) { client in
            let visits = client.cache(of: Int.self)
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<50 { group.addTask { for _ in 0..<10 { try await visits.increment("k") } } }
                try await group.waitForAll()
            }
            #expect(try await visits.value(forKey: "k") == 500)
            #expect(try await visits.increment("k", by: -501) == -1)
            #expect(try await visits.value(forKey: "k") == -1)
            try await visits.set(.max, forKey: "k")
            let error = await #expect(throws: LarderClientError.self) { try await visits.increment("k") }
            #expect(error?.serverText?.contains("overflow") == true)
            let weights = client.cache(of: Double.self)
            #expect(try await weights.increment("w", by: 1.5) == 1.5)
            #expect(try await weights.increment("w", by: 1e-7) == 1.5000001)
            #expect(try await weights.value(forKey: "w") == 1.5000001)
        }
    }

    /// Regression test: the daemon computes with more bits than a `Double` has, and stored sums that no `Double` can
    /// hold.
    @Test(arguments: LiveServer.allCases)
    func aSumOutsideTheRangeOfDoubleIsRefused(server: LiveServer) async throws {
        try await server.run { client in
            let numbers = client.cache(of: Double.self)
            try await numbers.set(1.7e308, forKey: "d")
            let error = await #expect(throws: LarderClientError.self) {
                try await numbers.increment("d", by: 1.7e308)
            }
            // Redis has stored the sum, but the caller gets an error instead of an infinite number.
            #expect(error?.code == (server == .redis ? .decode : .server))
            guard server != .redis else { return }
            #expect(try await numbers.value(forKey: "d") == 1.7e308)
            let blocking = try BlockingLarderClient(socketPath: client.socketPath)
            let other = #expect(throws: LarderClientError.self) { try blocking.increment("d", by: 1.7e308) }
            #expect(other?.code == .server)
            #expect(try blocking.value(Double.self, forKey: "d") == 1.7e308)
            for step in [-1.7e308, 1e-7, 0.1, 1e22] {
                let sum = try await numbers.increment("d", by: step)
                #expect(try await numbers.value(forKey: "d") == sum, "\(step)")
            }
        }
    }

    /// The daemon itself adds only signed 64-bit numbers. A sum outside the range of another type must not be stored.
    @Test(arguments: LiveServer.allCases.filter { $0 != .redis })
    func incrementRespectsTheRangeOfTheIntegerType(server: LiveServer) async throws {
        try await server.run { client in
            let bytes = client.cache(of: UInt8.self)
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<25 { group.addTask { for _ in 0..<10 { try await bytes.increment("n") } } }
                try await group.waitForAll()
            }
            #expect(try await bytes.value(forKey: "n") == 250)
            let error = await #expect(throws: LarderClientError.self) { try await bytes.increment("n", by: 6) }
            #expect(error?.code == .invalidArgument)
            #expect(try await bytes.value(forKey: "n") == 250)
            try await bytes.touch("n", policy: .never)
            #expect(try await client.cache(of: Int64.self).increment("n", by: 6) == 256)
            #expect(try await bytes.timeToLive(forKey: "n") == .never)
            let other = await #expect(throws: LarderClientError.self) { try await bytes.increment("n") }
            #expect(other?.code == .decode)
            let large = client.cache(of: UInt64.self)
            #expect(try await large.increment("u", by: .max) == .max)
            let blocking = try BlockingLarderClient(socketPath: client.socketPath)
            #expect(try blocking.value(UInt64.self, forKey: "u") == .max)
            let full = #expect(throws: LarderClientError.self) { try blocking.increment("u", by: UInt64(1)) }
            #expect(full?.code == .invalidArgument)
            #expect(try blocking.increment("i", by: Int32(-7)) == -7)
            #expect(try blocking.increment("i", by: Int64(7)) == 0)
            #expect(try await client.cache(of: Int32.self).increment("i", by: 2) == 2)
            #expect(try await client.cache(of: Int32.self).info(forKey: "i")?.codec == .json)
        }
    }

    /// Regression test: the error did not name the database in which a call had failed.
    @Test func errorsNameTheDatabase() async throws {
        try await LiveServer.larderd.run { client in
            let numbers = client.cache("books", of: Int.self)
            try await numbers.setBytes([0xFF], forKey: "k")
            let calls: [() async throws -> Void] = [
                { _ = try await numbers.value(forKey: "k") }, { try await numbers.increment("k") },
                { _ = try await numbers.values(forKeys: ["k"]) }, { try await numbers.touch("k", policy: .database) },
                { try await numbers.set(1, forKey: "k", policy: .seconds(0)) },
                { try await client.cache("books", of: Double.self).set(.nan, forKey: "k") },
                {
                    try await numbers.update(forKey: "n", attempts: 1) { number in
                        number = try await numbers.increment("n") + 1
                    }
                },
            ]
            for (index, call) in calls.enumerated() {
                let error = await #expect(throws: LarderClientError.self, "\(index)") { try await call() }
                #expect(error?.database == "books", "\(index)")
                #expect(error?.description.contains(" in database 'books', key '") == true, "\(index)")
            }
            let blocking = try BlockingLarderClient(socketPath: client.socketPath, database: "books")
            let blockingCalls: [() throws -> Void] = [
                { _ = try blocking.value(Int.self, forKey: "k") }, { try blocking.increment("k") },
                { try blocking.set(Double.nan, forKey: "k") }, { try blocking.touch("k", policy: .seconds(-1)) },
            ]
            for (index, call) in blockingCalls.enumerated() {
                let error = #expect(throws: LarderClientError.self, "\(index)") { try call() }
                #expect(error?.database == "books", "\(index)")
            }
            let plain = await #expect(throws: LarderClientError.self) {
                try await client.cache(of: Int.self).touch("k", policy: .database)
            }
            #expect(plain?.database == "0")
        }
    }

    /// Regression test: an enumeration ended at the first key that is not UTF-8, such as one of another program.
    @Test(arguments: LiveServer.allCases)
    func keysThatAreNotUTF8DoNotEndAnEnumeration(server: LiveServer) async throws {
        try await server.run { client in
            let numbers = client.cache(of: Int.self)
            try await numbers.set([[0x61]: 1, [0xFF, 0x62]: 2, [0x63]: 3] as [[UInt8]: Int])
            #expect(Set(try await numbers.keys()) == ["a", "c"])
            var texts: Set<String> = []
            for try await key in numbers.allKeys() { texts.insert(key) }
            #expect(texts == ["a", "c"])
            var bytes: Set<[UInt8]> = []
            for try await key in numbers.allKeys().bytes { bytes.insert(key) }
            #expect(bytes == [[0x61], [0xFF, 0x62], [0x63]])
            var found: [[UInt8]: Int] = [:]
            for try await entry in numbers.entries() {
                found[entry.keyBytes] = entry.value
                #expect(entry.key == String(decoding: entry.keyBytes, as: UTF8.self))
            }
            #expect(found == [[0x61]: 1, [0xFF, 0x62]: 2, [0x63]: 3])
            let blocking = try BlockingLarderClient(socketPath: client.socketPath)
            #expect(Set(try blocking.keys()) == ["a", "c"])
            guard server != .redis else { return }
            #expect(Set(try await numbers.withSnapshot { try await $0.keys() }) == ["a", "c"])
        }
    }

    @Test(arguments: LiveServer.allCases)
    func touchAndRenewingReadsChangeTheLifetime(server: LiveServer) async throws {
        try await server.run(.init(nearCache: .init())) { client in
            let sessions = client.cache(of: Session.self)
            func left() async throws -> Int64 {
                guard case .milliseconds(let left)? = try await sessions.timeToLive(forKey: "k") else { return -1 }
                return left
            }
            #expect(try await sessions.value(forKey: "k", renewing: .high) == nil)
            #expect(try await !sessions.touch("k", policy: .high))
            #expect(try await !sessions.touch("k", policy: .never))
            try await sessions.set(ana, forKey: "k", policy: .never)
            #expect(try await sessions.value(forKey: "k", renewing: .high) == ana)
            #expect((1...60_000).contains(try await left()))
            #expect(try await sessions.touch("k", policy: .middle))
            #expect(try await left() > 60_000)
            #expect(try await sessions.touch("k", policy: .never))
            #expect(try await sessions.timeToLive(forKey: "k") == .never)
            #expect(try await sessions.touch("k", policy: .until(millisecondsSince1970: 4_000_000_000_000)))
            #expect(try await left() > 3_600_000)
            // This read puts the entry into the near cache. The next `touch` makes it expire.
            #expect(try await sessions.value(forKey: "k") == ana)
            #expect(try await sessions.touch("k", policy: .until(millisecondsSince1970: 1)))
            #expect(try await sessions.value(forKey: "k") == nil)
        }
    }

    @Test(arguments: [LiveServer.larderd, .larderdOnFourThreads])
    func aSnapshotDoesNotSeeLaterChanges(server: LiveServer) async throws {
        try await server.run(.init(ownConnectionsMax: 1)) { client in
            let numbers = client.cache("numbers", of: Int.self)
            try await numbers.set(["a": 1, "b": 2].map { ($0, $1) })
            for _ in 0..<3 {
                try await numbers.withSnapshot { snapshot in
                    try await numbers.set(["a": 3, "c": 4].map { ($0, $1) })
                    try await numbers.remove("b")
                    #expect(try await snapshot.values(forKeys: ["a", "b", "c"]) == ["a": 1, "b": 2])
                    #expect(try await snapshot.value(forKey: "b") == 2)
                    #expect(try await snapshot.bytes(forKey: "a") == Array("1".utf8))
                    #expect(try await !snapshot.contains("c"))
                    #expect(Set(try await snapshot.keys()) == ["a", "b"])
                }
                #expect(try await numbers.values(forKeys: ["a", "b", "c"]) == ["a": 3, "c": 4])
                try await numbers.remove("c")
                try await numbers.set(["a": 1, "b": 2].map { ($0, $1) })
            }
            struct Stop: Error {}
            await #expect(throws: Stop.self) { try await numbers.withSnapshot { _ in throw Stop() } }
            #expect(try await numbers.withSnapshot { try await $0.value(forKey: "a") } == 1)
        }
    }

    @Test(arguments: LiveServer.allCases)
    func entriesAreEnumerated(server: LiveServer) async throws {
        try await server.run { client in
            let numbers = client.cache(of: Int.self)
            let pairs = (0..<1500).map { ("k\($0)", $0) }
            try await numbers.set(pairs)
            var found: [String: Int] = [:]
            for try await entry in numbers.entries() { found[entry.key] = entry.value }
            #expect(found == Dictionary(uniqueKeysWithValues: pairs))
            found = [:]
            for try await entry in numbers.entries(matching: "k1?") { found[entry.key] = entry.value }
            #expect(found.count == 10)
            try await numbers.setBytes([0xFF], forKey: "k7")
            await #expect(throws: LarderClientError.self) { for try await _ in numbers.entries() {} }
        }
    }

    @Test(arguments: LiveServer.allCases)
    func theBlockingClientHasTheSameConditionalCalls(server: LiveServer) throws {
        try server.run { path in
            let client = try BlockingLarderClient(socketPath: path)
            #expect(try client.setIfAbsent(ana, forKey: "k", policy: .high))
            #expect(try !client.setIfAbsent(eve, forKey: "k"))
            #expect(try client.value(Session.self, forKey: "k") == ana)
            #expect(try client.touch("k", policy: .never))
            #expect(try client.timeToLive(forKey: "k") == .never)
            #expect(try client.touch("k", policy: .high))
            #expect(try client.timeToLive(forKey: "k") != .never)
            #expect(try !client.touch("none", policy: .high))
            #expect(try client.increment("n") == 1)
            #expect(try client.increment("n", by: -3) == -2)
            #expect(try client.value(Int.self, forKey: "n") == -2)
        }
    }

    /// After its closure has returned, a transaction or connection could read from another caller's transaction, and a
    /// snapshot could return current data.
    @Test("transactions, snapshots and connections throw `closed` after their closure has returned")
    func objectsUsedAfterTheirClosureThrowClosed() async throws {
        try await LiveServer.larderd.run(.init(ownConnectionsMax: 1)) { client in
            let numbers = client.cache(of: Int.self)
            try await numbers.set(1, forKey: "k")
            let transaction = try await numbers.transaction(watching: ["k"]) { $0 }
            let snapshot = try await numbers.withSnapshot { $0 }
            let connection = try await client.withConnection { $0 }
            for call in [
                { _ = try await transaction.value(forKey: "k") }, { _ = try await snapshot.value(forKey: "k") },
                { _ = try await connection.command("PING") },
            ] as [() async throws -> Void] {
                let error = await #expect(throws: LarderClientError.self) { try await call() }
                #expect(error?.code == .closed)
            }
            #expect(try await numbers.value(forKey: "k") == 1)
        }
    }

    /// Regression test: an exclusive connection stayed open after its client was closed.
    @Test(arguments: LiveServer.allCases)
    func closingAClientClosesItsExclusiveConnections(server: LiveServer) async throws {
        try await server.run { client in
            let error = await #expect(throws: LarderClientError.self) {
                try await client.withConnection { connection in
                    try await connection.command("PING")
                    client.close()
                    while true { try await connection.command("PING") }
                }
            }
            #expect(error?.code == .closed)
            await #expect(throws: LarderClientError.self) { try await client.withConnection { _ in } }
        }
    }

    @Test func aSemaphoreServesWaitersTimeoutsAndCancellation() async throws {
        let semaphore = AsyncSemaphore(1)
        #expect(await semaphore.take(limit: 0) == .given)
        #expect(await semaphore.take(limit: 1) == .timeout)
        let cancelled = Task { await semaphore.take(limit: 0) }
        cancelled.cancel()
        #expect(await cancelled.value == .cancelled)
        let waiting = Task { await semaphore.take(limit: 0) }
        semaphore.giveBack()
        #expect(await waiting.value == .given)
        semaphore.close()
        #expect(await semaphore.take(limit: 0) == .closed)
    }

    /// A caller that holds the only permit and wants a second one gets an error instead of waiting forever.
    @Test func waitingForAnExclusiveConnectionHasALimit() async throws {
        try await LiveServer.larderd.run(.init(timeoutMilliseconds: 2_000, ownConnectionsMax: 1)) { client in
            let error = await #expect(throws: LarderClientError.self) {
                try await client.withConnection { _ in try await client.withConnection { _ in } }
            }
            #expect(error?.code == .timeout && error?.message.contains("ownConnectionsMax") == true)
            _ = try await client.withConnection { try await $0.command("PING") }
        }
    }
}
