import LarderTestSupport
import Testing

@testable import LarderClient

private struct Book: Codable, Equatable, Sendable {
    var name: String
    var price: Double
}

/// Tests of typed caches, batches and transactions with real servers.
@Suite(.timeLimit(.minutes(10))) struct RemoteCacheTests {
    private let book = Book(name: "一本书", price: 18.5)

    @Test(arguments: LiveServer.allCases)
    func storedModelsAreReturnedUnchanged(server: LiveServer) async throws {
        try await server.run { client in
            let books = client.cache(of: Book.self)
            try await books.set(book, forKey: "a")
            #expect(try await books.value(forKey: "a") == book)
            #expect(try await books.value(forKey: "none") == nil)
            #expect(try await books.contains("a"))
            #expect(try await books.count() == 1)
            try await books.set(["b": Book(name: "x", price: 1), "c": Book(name: "y", price: 2)].map { ($0, $1) })
            #expect(try await books.values(forKeys: ["a", "b", "none"]).keys.sorted() == ["a", "b"])
            #expect(Set(try await books.keys()) == ["a", "b", "c"])
            #expect(try await books.keys(matching: "[bx]*") == ["b"])
            var found: [String] = []
            for try await key in books.allKeys(matching: "[bc]") { found.append(key) }
            #expect(Set(found) == ["b", "c"])
            let none = books.allKeys(matching: "nothing")
            for try await key in none { Issue.record("\(key) matches nothing") }
            #expect(try await books.remove("a"))
            #expect(try await !books.remove("a"))
            #expect(try await books.remove(["a", "b", "c"]) == 2)
            try await books.setBytes(Array("[]".utf8), forKey: "raw")
            #expect(try await books.bytes(forKey: "raw") == Array("[]".utf8))
            let error = await #expect(throws: LarderClientError.self) { try await books.value(forKey: "raw") }
            #expect(error?.code == .decode)
            #expect(error?.key == "raw")
        }
    }

    @Test(arguments: LiveServer.allCases)
    func transactionsUnderContentionAllSucceed(server: LiveServer) async throws {
        try await server.run(.init(timeoutMilliseconds: 600_000, ownConnectionsMax: 16)) { client in
            let stock = client.cache(of: Int.self)
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<300 {
                    group.addTask {
                        try await stock.transaction(watching: ["k"], attempts: 64) { transaction in
                            try transaction.set((try await transaction.value(forKey: "k") ?? 0) + 1, forKey: "k")
                        }
                    }
                }
                try await group.waitForAll()
            }
            #expect(try await stock.value(forKey: "k") == 300)
        }
    }

    /// The default database has two names: an entry written under one of them is read under the other.
    @Test func bothNamesOfTheDefaultDatabaseAreEquivalent() async throws {
        try await LiveServer.larderd.run(.init(nearCache: .init())) { client in
            let (unnamed, named) = (client.cache(of: Int.self), client.cache("0", of: Int.self))
            #expect(unnamed.store === named.store)
            for step in 0..<200 {
                try await named.set(step, forKey: "k")
                #expect(try await unnamed.value(forKey: "k") == step)
            }
        }
    }

    /// There are more keys than one round trip returns. An iteration may be ended early; the next one starts anew.
    @Test(arguments: LiveServer.allCases)
    func theKeysOfManyEntriesAreEnumerated(server: LiveServer) async throws {
        try await server.run { client in
            let numbers = client.cache(of: Int.self)
            let names = (0..<2000).map { "key:\($0)" }
            try await numbers.set(names.map { ($0, 1) })
            var found: Set<String> = []
            for try await key in numbers.allKeys() { found.insert(key) }
            #expect(found == Set(names))
            var first: String?
            for try await key in numbers.allKeys(matching: "key:*") {
                first = key
                break
            }
            #expect(names.contains(try #require(first)))
            var iterator = numbers.allKeys().makeAsyncIterator()
            #expect(try await iterator.next() != nil)
            client.close()
            await #expect(throws: LarderClientError.self) { while try await iterator.next() != nil {} }
            #expect(try await iterator.next() == nil, "the iteration ends after an error")
        }
    }

    /// larderd receives the policy itself, and Redis the lifetime in milliseconds.
    @Test(arguments: LiveServer.allCases)
    func thePolicyOfAnEntrySetsItsLifetime(server: LiveServer) async throws {
        try await server.run { client in
            let books = client.cache(of: Book.self)
            try await books.set(book, forKey: "k", policy: .middle)
            guard case .milliseconds(let left)? = try await books.timeToLive(forKey: "k") else {
                Issue.record("no deadline")
                return
            }
            #expect((3_500_000...3_600_000).contains(left))
            try await books.set(book, forKey: "k", policy: .never)
            #expect(try await books.timeToLive(forKey: "k") == .never)
            #expect(try await books.timeToLive(forKey: "none") == nil)
        }
    }

    @Test func databasesHaveSeparateEntriesAndPolicies() async throws {
        try await LiveServer.larderd.run { client in
            let books = client.cache("books", of: Book.self)
            let numbers = client.cache("numbers", of: Int.self)
            #expect(books.name == "books")
            try await numbers.set(1, forKey: "k")
            try await books.set(book, forKey: "k")
            #expect(try await numbers.value(forKey: "k") == 1)
            #expect(try await books.value(forKey: "k") == book)
            #expect(try await books.info(forKey: "k")?.codec == .json)
            #expect(try await books.info(forKey: "none") == nil)
            #expect(try await books.policy() == .never)
            try await books.setPolicy(.high)
            await #expect { try await books.setPolicy(.hours(0)) } throws: {
                ($0 as? LarderClientError)?.code == .invalidArgument
            }
            #expect(try await books.policy() == .high)
            #expect(Set(try await client.databases().map(\.name)).isSuperset(of: ["books", "numbers"]))
            #expect(try await client.serverInfo(section: "server").isEmpty == false)
            try await books.set(book, forKey: "a:1")
            #expect(try await books.remove(prefix: "a:").entries == 1)
            #expect(try await books.removeExpired().entries == 0)
            #expect(try await books.removeAll().entries == 1)
            #expect(try await books.count() == 0)
            #expect(try await numbers.value(forKey: "k") == 1)
        }
    }

    @Test(arguments: LiveServer.allCases)
    func batchesAreExecutedCompletelyOrNotAtAll(server: LiveServer) async throws {
        try await server.run { client in
            let numbers = client.cache(of: Int.self)
            try await numbers.set(1, forKey: "old")
            try await numbers.batch {
                try $0.set(2, forKey: "new", policy: .high)
                try $0.set(3, forKey: "governed")
                $0.remove("old")
            }
            #expect(try await numbers.values(forKeys: ["old", "new", "governed"]) == ["new": 2, "governed": 3])
            await #expect(throws: (any Error).self) {
                try await numbers.batch {
                    try $0.set(9, forKey: "new")
                    throw LarderClientError(.closed, "", operation: "")
                }
            }
            #expect(try await numbers.value(forKey: "new") == 2)
            if server != .redis {
                await #expect(throws: LarderClientError.self) {
                    try await numbers.batch {
                        try $0.set(9, forKey: "new")
                        $0.remove(String(repeating: "k", count: 65_537))
                    }
                }
                #expect(try await numbers.value(forKey: "new") == 2)
            }
            try await numbers.batch { $0.remove("new") }
            try await numbers.batch { _ in }
            #expect(try await numbers.value(forKey: "new") == nil)
        }
    }

    @Test(arguments: LiveServer.allCases)
    func commandsOfATransactionAreExecutedTogether(server: LiveServer) async throws {
        try await server.run { client in
            let replies = try await client.transaction([["SET", "n", "1"], ["GET", "n"], ["STRLEN", "n"]])
            #expect(replies == [.simpleString("OK"), .bulk([0x31]), .integer(1)])
            let refused = await #expect(throws: LarderClientError.self) {
                try await client.transaction([["SET", "n", "2"], ["NONSENSE"]])
            }
            #expect(refused?.code == .server)
            #expect(refused?.operation == "NONSENSE")
            #expect(try await client.command("GET", "n") == .bulk([0x31]))
            // The refused transaction has ended on the shared connection, so another one can begin.
            #expect(try await client.transaction([["GET", "n"]]) == [.bulk([0x31])])
        }
    }

    /// A server without MULTI must not execute the commands of a batch one by one.
    @Test func aServerWithoutMULTIExecutesNoPartOfABatch() async throws {
        let server = try AsyncClientTests.server()
        defer { server.stop() }
        let client = try await AsyncClientTests.connect(server)
        let error = await #expect(throws: LarderClientError.self) {
            try await client.cache(of: Int.self).batch {
                try $0.set(1, forKey: "a")
                $0.remove("b")
            }
        }
        #expect(error?.operation == "MULTI")
        #expect(!server.requests.contains { ["SET", "DEL", "EXEC"].contains($0[0]) })
    }

    /// Many tasks increment one number: each transaction reads it, adds 1 and writes it. No increment is lost.
    @Test(arguments: LiveServer.allCases)
    func transactionsLoseNoUpdate(server: LiveServer) async throws {
        try await server.run(.init(timeoutMilliseconds: 60_000, ownConnectionsMax: 4)) { client in
            let numbers = client.cache(of: Int.self)
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<6 {
                    group.addTask {
                        for _ in 0..<20 {
                            try await numbers.transaction(watching: ["n"], attempts: 100_000) { transaction in
                                let number = try await transaction.value(forKey: "n") ?? 0
                                try transaction.set(number + 1, forKey: "n")
                            }
                        }
                    }
                }
                try await group.waitForAll()
            }
            #expect(try await numbers.value(forKey: "n") == 120)
        }
    }

    @Test(arguments: LiveServer.allCases)
    func abandonedTransactionsWriteNothing(server: LiveServer) async throws {
        try await server.run { client in
            let numbers = client.cache(of: Int.self)
            try await numbers.set(1, forKey: "n")
            await #expect(throws: CancellationError.self) {
                try await numbers.transaction(watching: ["n"]) { transaction in
                    try transaction.set(2, forKey: "n")
                    throw CancellationError()
                }
            }
            // Change the key from outside the transaction in every attempt.
            let error = await #expect(throws: LarderClientError.self) {
                try await numbers.transaction(watching: ["n"], attempts: 3) { transaction in
                    let number = try await transaction.value(forKey: "n") ?? 0
                    try await numbers.set(number + 10, forKey: "n")
                    try transaction.set(0, forKey: "n")
                }
            }
            #expect(error?.code == .conflict)
            #expect(try await numbers.value(forKey: "n") == 31)
            // A transaction that only reads.
            let read = try await numbers.transaction(watching: ["n"]) { try await $0.value(forKey: "n") }
            #expect(read == 31)
        }
    }

    @Test func aSnapshotUsesAnExclusiveConnection() async throws {
        try await LiveServer.larderd.run { client in
            let numbers = client.cache(of: Int.self)
            try await numbers.set(1, forKey: "n")
            let seen = try await client.withConnection { connection in
                try await connection.command("SNAPSHOT", "OPEN")
                try await numbers.set(2, forKey: "n")
                return try await connection.command("GET", "n")
            }
            #expect(seen == .bulk([0x31]))
            #expect(try await numbers.value(forKey: "n") == 2)
        }
    }

    /// Acknowledged writes still exist after the daemon was killed, and the same client continues.
    @Test func aClientSurvivesADaemonRestart() async throws {
        let place = try TemporaryDirectory(inMemory: true)
        let first = try DaemonProcess(in: place)
        let client = try await LarderClient.connect(
            socketPath: first.socketPath,
            options: .init(timeoutMilliseconds: 60_000, reconnectPatienceMilliseconds: 60_000))
        let numbers = client.cache("books", of: Int.self)
        try await numbers.set(1, forKey: "n")
        first.kill()
        let waiting = Task { try await numbers.value(forKey: "n") }
        let second = try DaemonProcess(in: place)
        #expect(try await waiting.value == 1)
        #expect(try await numbers.count() == 1)
        try second.stop()
    }

    @Test("the error for a query of too many values says how many are possible") func valuesOfQueriesAreLimited() {
        let error = #expect(throws: LarderClientError.self) {
            try Request.query([[UInt8]](repeating: [], count: 1_048_580))
        }
        let text = "the query has 3 values too many for one request, which can have about 524287: split them"
        #expect(error?.message.hasPrefix(text) == true, "\(error as Any)")
    }
}
