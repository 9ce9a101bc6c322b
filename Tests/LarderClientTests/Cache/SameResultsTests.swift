import Foundation
import Larder
import LarderClient
import LarderTestSupport
import Testing

/// Tests that the library and both clients return the same results for the same calls.
@Suite(.timeLimit(.minutes(10))) struct SameResultsTests {
    /// The expected results of the calls below, for each client.
    private static let expected = [
        "true false true false true", "[1, 2, 3]", "5 8 8.5", "nil", "true never", "true true", "governed json 1", "2",
        "[\"42\": 7]", "[7, 0]", "true false", "8 true", "Optional(9)", "2 1", "0", "a", "low",
        "90.0 seconds 7.0 seconds",
        "keeps its grace true",
    ]

    @Test("the library returns the same results as the clients") func theLibraryReturnsTheExpectedResults() throws {
        let directory = try TemporaryDirectory(inMemory: true)
        let cache = try Cache(named: "a", directory: directory.path + "/larder")
        var said: [String] = []
        said.append(
            "\(try cache.setIfAbsent([1], forKey: "list")) \(try cache.setIfAbsent([2], forKey: "list")) "
                + "\(try cache.replace([1], with: [1, 2], forKey: "list")) "
                + "\(try cache.replace([1], with: [3], forKey: "list")) "
                + "\(try cache.setIfPresent([1, 2, 3], forKey: "list"))")
        said.append("\(try cache.value([Int].self, forKey: "list") ?? [])")
        said.append(
            "\(try cache.increment("n", by: 5)) \(try cache.increment("n", by: 3)) \(try cache.increment("n", by: 0.5))"
        )
        said.append("\(try cache.timeToLive(forKey: "none").map { "\($0)" } ?? "nil")")
        said.append(
            "\(try cache.touch("n", policy: .never)) \(try cache.timeToLive(forKey: "n").map { "\($0)" } ?? "nil")")
        try cache.set(8, forKey: "n", policy: .keep)
        said.append("\(try cache.info(forKey: "n")?.rule == .ownNever) \(try cache.contains("n"))")
        try cache.set(7, forKey: 42)
        let info = try #require(try cache.info(forKey: 42))
        said.append("\(info.rule) \(info.codec) \(info.byteCount)")
        said.append("\(try cache.values(Int.self, forKeys: [42, 43, 44]).count + 1)")
        said.append("\(try cache.values(Int.self, forKeys: ["42", "none"]))")
        said.append("\(try cache.values(Int.self, forKeys: ["42", "none"], notFound: 0))")
        said.append("\(try cache.remove(42, ifEqual: 7)) \(try cache.remove(42))")
        let previous = try cache.update(Int.self, forKey: "n") { number -> Int in
            defer { number = 9 }
            return number ?? 0
        }
        said.append("\(previous) \(try cache.touch("n", policy: .hours(24)))")
        said.append("\(try cache.removeValue(Int.self, forKey: "n").map { "Optional(\($0))" } ?? "nil")")
        try cache.set(["a:1": 1, "a:2": 2, "b": 3])
        said.append("\(try cache.remove(prefix: "a:").entries ?? -1) \(try cache.remove(["b", "c"]))")
        try cache.batch { batch in batch.remove("list") }
        said.append("\(try cache.count())")
        said.append(cache.name)
        try cache.setPolicy(.low)
        said.append("\(cache.policy)")
        try cache.setPolicy(.low, grace: .seconds(90))
        try cache.set(1, forKey: "graceless")
        try cache.set(1, forKey: "graceful", policy: .hours(1).grace(.seconds(7)).jitter(percent: 50))
        let graceless = try #require(try cache.info(forKey: "graceless"))
        let graceful = try #require(try cache.info(forKey: "graceful"))
        said.append("\(graceless.grace) \(graceful.grace)")
        let isSpread = (1_800_000...3_600_000).contains(graceful.timeToLiveMilliseconds ?? 0)
        do {
            _ = try cache.touch("graceful", policy: .hours(1).grace(.seconds(1)))
        } catch {
            said.append("\(error)".contains("grace of a stored entry") ? "keeps its grace \(isSpread)" : "\(error)")
        }
        #expect(said == Self.expected)
    }

    @Test("the blocking client returns the same results as the library")
    func theBlockingClientReturnsTheExpectedResults() throws {
        let daemon = try DaemonProcess()
        let cache = try BlockingLarderClient(socketPath: daemon.socketPath, database: "a")
        var said: [String] = []
        said.append(
            "\(try cache.setIfAbsent([1], forKey: "list")) \(try cache.setIfAbsent([2], forKey: "list")) "
                + "\(try cache.replace([1], with: [1, 2], forKey: "list")) "
                + "\(try cache.replace([1], with: [3], forKey: "list")) "
                + "\(try cache.setIfPresent([1, 2, 3], forKey: "list"))")
        said.append("\(try cache.value([Int].self, forKey: "list") ?? [])")
        said.append(
            "\(try cache.increment("n", by: 5)) \(try cache.increment("n", by: 3)) \(try cache.increment("n", by: 0.5))"
        )
        said.append("\(try cache.timeToLive(forKey: "none").map { "\($0)" } ?? "nil")")
        said.append(
            "\(try cache.touch("n", policy: .never)) \(try cache.timeToLive(forKey: "n").map { "\($0)" } ?? "nil")")
        try cache.set(8, forKey: "n", policy: .keep)
        said.append("\(try cache.info(forKey: "n")?.rule == .ownNever) \(try cache.contains("n"))")
        try cache.set(7, forKey: 42)
        let info = try #require(try cache.info(forKey: 42))
        said.append("\(info.rule) \(info.codec) \(info.byteCount)")
        said.append("\(try cache.values(Int.self, forKeys: [42, 43, 44]).count + 1)")
        said.append("\(try cache.values(Int.self, forKeys: ["42", "none"]))")
        said.append("\(try cache.values(Int.self, forKeys: ["42", "none"], notFound: 0))")
        said.append("\(try cache.remove(42, ifEqual: 7)) \(try cache.remove(42))")
        let previous = try cache.update(Int.self, forKey: "n") { number -> Int in
            defer { number = 9 }
            return number ?? 0
        }
        said.append("\(previous) \(try cache.touch("n", policy: .hours(24)))")
        said.append("\(try cache.removeValue(Int.self, forKey: "n").map { "Optional(\($0))" } ?? "nil")")
        try cache.set(["a:1": 1, "a:2": 2, "b": 3])
        said.append("\(try cache.remove(prefix: "a:").entries ?? -1) \(try cache.remove(["b", "c"]))")
        try cache.batch { batch in batch.remove("list") }
        said.append("\(try cache.count())")
        said.append(cache.name)
        try cache.setPolicy(.low)
        said.append("\(try cache.policy())")
        try cache.setPolicy(.low, grace: .seconds(90))
        try cache.set(1, forKey: "graceless")
        try cache.set(1, forKey: "graceful", policy: .hours(1).grace(.seconds(7)).jitter(percent: 50))
        let graceless = try #require(try cache.info(forKey: "graceless"))
        let graceful = try #require(try cache.info(forKey: "graceful"))
        said.append("\(graceless.grace) \(graceful.grace)")
        let isSpread = (1_800_000...3_600_000).contains(graceful.timeToLiveMilliseconds ?? 0)
        do {
            _ = try cache.touch("graceful", policy: .hours(1).grace(.seconds(1)))
        } catch {
            said.append("\(error)".contains("grace of a stored entry") ? "keeps its grace \(isSpread)" : "\(error)")
        }
        #expect(said == Self.expected)
        try daemon.stop()
    }

    @Test("the asynchronous client returns the same results as the library")
    func theAsynchronousClientReturnsTheExpectedResults() async throws {
        let daemon = try DaemonProcess()
        let client = try await LarderClient.connect(socketPath: daemon.socketPath)
        let (lists, cache) = (client.cache("a", of: [Int].self), client.cache("a", of: Int.self))
        let sums = client.cache("a", of: Double.self)
        var said: [String] = []
        said.append(
            "\(try await lists.setIfAbsent([1], forKey: "list")) \(try await lists.setIfAbsent([2], forKey: "list")) "
                + "\(try await lists.replace([1], with: [1, 2], forKey: "list")) "
                + "\(try await lists.replace([1], with: [3], forKey: "list")) "
                + "\(try await lists.setIfPresent([1, 2, 3], forKey: "list"))")
        said.append("\(try await lists.value(forKey: "list") ?? [])")
        said.append(
            "\(try await cache.increment("n", by: 5)) \(try await cache.increment("n", by: 3)) "
                + "\(try await sums.increment("n", by: 0.5))")
        said.append("\(try await cache.timeToLive(forKey: "none").map { "\($0)" } ?? "nil")")
        said.append(
            "\(try await cache.touch("n", policy: .never)) "
                + "\(try await cache.timeToLive(forKey: "n").map { "\($0)" } ?? "nil")")
        try await cache.set(8, forKey: "n", policy: .keep)
        said.append("\(try await cache.info(forKey: "n")?.rule == .ownNever) \(try await cache.contains("n"))")
        try await cache.set(7, forKey: 42)
        let info = try #require(try await cache.info(forKey: 42))
        said.append("\(info.rule) \(info.codec) \(info.byteCount)")
        said.append("\(try await cache.values(forKeys: [42, 43, 44]).count + 1)")
        said.append("\(try await cache.values(forKeys: ["42", "none"]))")
        said.append("\(try await cache.values(forKeys: ["42", "none"], notFound: 0))")
        said.append("\(try await cache.remove(42, ifEqual: 7)) \(try await cache.remove(42))")
        let previous = try await cache.update(forKey: "n") { number -> Int in
            defer { number = 9 }
            return number ?? 0
        }
        said.append("\(previous) \(try await cache.touch("n", policy: .hours(24)))")
        said.append("\(try await cache.removeValue(forKey: "n").map { "Optional(\($0))" } ?? "nil")")
        try await cache.set(["a:1": 1, "a:2": 2, "b": 3])
        said.append("\(try await cache.remove(prefix: "a:").entries ?? -1) \(try await cache.remove(["b", "c"]))")
        try await cache.batch { batch in batch.remove("list") }
        said.append("\(try await cache.count())")
        said.append(cache.name)
        try await cache.setPolicy(.low)
        said.append("\(try await cache.policy())")
        try await cache.setPolicy(.low, grace: .seconds(90))
        try await cache.set(1, forKey: "graceless")
        try await cache.set(1, forKey: "graceful", policy: .hours(1).grace(.seconds(7)).jitter(percent: 50))
        let graceless = try #require(try await cache.info(forKey: "graceless"))
        let graceful = try #require(try await cache.info(forKey: "graceful"))
        said.append("\(graceless.grace) \(graceful.grace)")
        let isSpread = (1_800_000...3_600_000).contains(graceful.timeToLiveMilliseconds ?? 0)
        do {
            _ = try await cache.touch("graceful", policy: .hours(1).grace(.seconds(1)))
        } catch {
            said.append("\(error)".contains("grace of a stored entry") ? "keeps its grace \(isSpread)" : "\(error)")
        }
        #expect(said == Self.expected)
        client.close()
        try daemon.stop()
    }

    /// Regression test: the client treated raw text in quotes as JSON, and returned it without the quotes.
    @Test func allClientsReadTheSameText() async throws {
        let texts = [
            "", "plain", "\"x\"", "null", "5", "-1.5e3", "true", "{\"a\":1}", "[1]", " \"x\" ", "\"", "bplist00",
        ]
        let daemon = try DaemonProcess()
        let client = try await LarderClient.connect(socketPath: daemon.socketPath)
        let blocking = try BlockingLarderClient(socketPath: daemon.socketPath)
        let (plain, json) = (client.cache(of: String.self), client.cache(of: String.self, codec: .json))
        for (index, text) in texts.enumerated() {
            try await client.command("SET", "raw\(index)", text)
            try await plain.set(text, forKey: "plain\(index)")
            try await json.set(text, forKey: "json\(index)")
            try blocking.set(text, forKey: "blocking\(index)")
            #expect(try await plain.bytes(forKey: "plain\(index)") == Array(text.utf8))
            #expect(try await json.info(forKey: "json\(index)")?.codec == .json)
        }
        try await client.cache(of: Int.self).set(5, forKey: "number")
        let kinds = ["raw", "plain", "json", "blocking"]
        for (index, text) in texts.enumerated() {
            for key in kinds.map({ $0 + "\(index)" }) {
                for cache in [plain, json] { #expect(try await cache.value(forKey: key) == text, "\(key)") }
                #expect(try await plain.values(forKeys: [key]) == [key: text])
                #expect(try await client.cache(of: String?.self).value(forKey: key) == .some(text), "\(key)")
                #expect(try blocking.value(String.self, forKey: key) == text, "\(key)")
            }
        }
        await #expect(throws: LarderClientError.self) { try await plain.value(forKey: "number") }
        client.close()
        blocking.close()
        try daemon.stop()
        let cache = try await Cache(directory: daemon.larder)
        for (index, text) in texts.enumerated() {
            for key in kinds.map({ $0 + "\(index)" }) {
                #expect(try await cache.value(String.self, forKey: key) == text, "\(key)")
                #expect(try await cache.value(String?.self, forKey: key) == .some(text), "\(key)")
            }
        }
        await #expect(throws: LarderError.self) { try await cache.value(String.self, forKey: "number") }
    }

    /// If the bytes cannot be JSON, the client needs no second request for the codec.
    @Test func readingPlainTextTakesOneRequest() async throws {
        let server = try FakeServer { request in
            request.name == "GET" ? .text("$5\r\nplain\r\n") : .standard
        }
        defer { server.stop() }
        let client = try await LarderClient.connect(socketPath: server.path)
        #expect(try await client.cache(of: String.self).value(forKey: "k") == "plain")
        #expect(server.requests.filter { $0 != ["POLICY"] } == [["GET", "k"]])
    }

    /// Regression test: with 16 attempts, the updates of a fifth of the tasks failed.
    @Test(arguments: LiveServer.allCases.filter { $0 != .redis })
    func concurrentUpdatesOfAHundredTasksSucceed(server: LiveServer) async throws {
        try await server.run(.init(timeoutMilliseconds: 60_000)) { client in
            let numbers = client.cache(of: Int.self)
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<100 {
                    group.addTask { for _ in 0..<3 { try await numbers.update(forKey: "k") { $0 = ($0 ?? 0) + 1 } } }
                }
                try await group.waitForAll()
            }
            #expect(try await numbers.value(forKey: "k") == 300)
            let path = client.socketPath
            onThreads(4) { _ in
                #expect(throws: Never.self) {
                    let blocking = try BlockingLarderClient(socketPath: path, timeoutMilliseconds: 60_000)
                    for _ in 0..<25 {
                        try blocking.update(Int.self, forKey: "b") { $0 = ($0 ?? 0) + 1 }
                    }
                }
            }
            #expect(try await numbers.value(forKey: "b") == 100)
            let other = try await LarderClient.connect(socketPath: path)
            let error = await #expect(throws: LarderClientError.self) {
                try await numbers.update(forKey: "k", attempts: 2) { number in
                    try await other.cache(of: Int.self).increment("k")
                    number = 0
                }
            }
            other.close()
            #expect(error?.code == .conflict && error?.message.contains("allow more attempts") == true)
        }
    }

    @Test(arguments: LiveServer.allCases.filter { $0 != .redis })
    func anUpdateByTheClosureOfAnUpdateOfTheSameKeyThrowsAtOnce(server: LiveServer) async throws {
        try await server.run { client in
            let numbers = client.cache(of: Int.self)
            try await numbers.set(1, forKey: "k")
            let start = ContinuousClock.now
            let error = await #expect(throws: LarderClientError.self) {
                try await numbers.update(forKey: "k") { (_: inout Int?) async throws in
                    try await numbers.update(forKey: "other") { $0 = 1 }
                    try await client.cache("other", of: Int.self).update(forKey: "k") { $0 = 1 }
                    try await numbers.update(forKey: "k") { $0 = 2 }
                }
            }
            #expect(error?.code == .recursion && error?.operation == "update" && error?.key == "k")
            let path = client.socketPath
            onThreads(1) { _ in
                let error = #expect(throws: LarderClientError.self) {
                    let blocking = try BlockingLarderClient(socketPath: path)
                    try blocking.update(Int.self, forKey: "k") { _ in
                        try blocking.update(Int.self, forKey: "other") { $0 = 1 }
                        try blocking.update(Int.self, forKey: "k") { $0 = 2 }
                    }
                }
                #expect(error?.code == .recursion)
            }
            #expect(ContinuousClock.now - start < .seconds(4))
            #expect(try await numbers.value(forKey: "k") == 1)
        }
    }

    private struct Count: Codable, Equatable, Sendable { var n = 0 }

    @Test(
        "an update whose closure changes the key itself in two attempts throws recursion",
        arguments: LiveServer.allCases.filter { $0 != .redis })
    func aClosureThatChangesItsKeyRunsTwice(server: LiveServer) async throws {
        try await server.run { client in
            let counts = client.cache(of: Count.self)
            let (other, path) = (try await LarderClient.connect(socketPath: client.socketPath), client.socketPath)
            let writes: [(String, (Int) async throws -> Void)] = [
                ("set", { try await counts.set(Count(n: $0), forKey: "k") }),
                ("edit", { _ in try await counts.edit("k") { $0.increment(\.n) } }),
                ("batch", { try await counts.set(["k": Count(n: $0), "l": Count()]) }),
                (
                    "transaction",
                    { number in
                        try await counts.batch {
                            $0.remove("l")
                            try $0.set(Count(n: number), forKey: "k")
                        }
                    }
                ),
                (
                    "remove",
                    {
                        try await counts.remove("k")
                        try await other.cache(of: Count.self).set(Count(n: 10 + $0), forKey: "k")
                    }
                ),
                ("increment", { _ in try await client.cache(of: Int.self).increment("k") }),
            ]
            for (name, write) in writes {
                if name == "increment" { try await client.cache(of: Int.self).set(-1, forKey: "k") }
                var runs = 0
                let error = await #expect(throws: LarderClientError.self, "\(name)") {
                    try await counts.update(forKey: "k") { count in
                        runs += 1
                        try await write(runs)
                        count = Count(n: 77)
                    }
                }
                #expect(error?.code == .recursion && runs == 2, "\(name)")
            }
            other.close()
            onThreads(1) { _ in
                guard let client = try? BlockingLarderClient(socketPath: path) else {
                    Issue.record("there is no client")
                    return
                }
                let writes: [(String, (Int) throws -> Void)] = [
                    ("increment", { _ in try client.increment("k") }),
                    ("set", { try client.set(Count(n: $0), forKey: "k") }),
                    ("edit", { _ in try client.edit("k", of: Count.self) { $0.increment(\.n) } }),
                    ("batch", { try client.set(["k": Count(n: $0), "l": Count()]) }),
                    (
                        "transaction",
                        { number in
                            try client.batch {
                                $0.remove("l")
                                try $0.set(Count(n: number), forKey: "k")
                            }
                        }
                    ),
                ]
                for (name, write) in writes {
                    var runs = 0
                    let error = #expect(throws: LarderClientError.self, "\(name)") {
                        try client.update(Count.self, forKey: "k") { count in
                            runs += 1
                            try write(runs)
                            count = Count(n: 77)
                        }
                    }
                    #expect(error?.code == .recursion && runs == 2, "\(name)")
                }
            }
        }
    }

    /// Even an update that conflicts with other clients again and again loses no change, because its closure runs again
    /// with the new value.
    @Test(arguments: LiveServer.allCases.filter { $0 != .redis })
    func conflictingUpdatesAreRepeatedAndNoneIsLost(server: LiveServer) async throws {
        try await server.run { client in
            let numbers = client.cache(of: Int.self)
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<4 {
                    group.addTask {
                        for _ in 0..<50 {
                            try await numbers.update(forKey: "k", attempts: .max) { $0 = ($0 ?? 0) + 1 }
                        }
                    }
                }
                try await group.waitForAll()
            }
            #expect(try await numbers.value(forKey: "k") == 200)
            try await numbers.touch("k", policy: .never)
            let error = await #expect(throws: LarderClientError.self) {
                try await numbers.update(forKey: "k", attempts: 2) { number in
                    try await numbers.increment("k")
                    number = 0
                }
            }
            #expect(error?.code == .recursion)
            #expect(try await numbers.value(forKey: "k") == 202)
            #expect(try await numbers.timeToLive(forKey: "k") == .never)
            try await numbers.update(forKey: "k") { $0 = nil }
            #expect(try await !numbers.contains("k"))
            let none = await #expect(throws: LarderClientError.self) {
                try await numbers.touch("k", policy: .database)
            }
            #expect(none?.code == .invalidArgument)
        }
    }
}
