import LarderClient
import LarderTestSupport
import Testing

/// Runs the code in the articles of `LarderClient.docc`. `DocsArticleTests` checks that no code is missing.
@Suite struct ClientArticleTests {
    @Test("the documentation's example of connecting works") func connectingExampleWorks() async throws {
        let daemon = try DaemonProcess()
        let socketPath = daemon.socketPath
        let client = try await LarderClient.connect(socketPath: socketPath)
        try await client.ping()
        let options = ClientOptions(database: "sessions", timeoutMilliseconds: 500, connections: 2)
        let quick = try await LarderClient.connect(socketPath: socketPath, options: options)
        #expect(quick.socketPath == socketPath)
        do {
            try await client.cache("visits", of: Int.self).set(1, forKey: "ana")
        } catch {
            switch error.code {
            case .noDaemon: print("is larderd running?")
            case .timeout, .cancelled: print("given up; it may be carried out all the same")
            case .closed: print("the connection was lost; it may have been carried out")
            default: print(error)
            }
        }
        let length = try await client.command("STRLEN", "greeting")
        let size = try await client.withConnection { connection in
            try await connection.command("SELECT", "sessions")
            return try await connection.command("DBSIZE")
        }
        #expect(length == .integer(0) && size == .integer(0))
        // Use a synchronous function: in this one, Swift would choose asynchronous calls of the same names.
        try Self.blocks(socketPath)
        #expect(try await client.command("STRLEN", "greeting") == .integer(12))
        try daemon.stop()
    }

    private static func blocks(_ socketPath: String) throws {
        let blocking = try BlockingLarderClient(socketPath: socketPath)
        try blocking.set("good morning", forKey: "greeting", policy: .high)
    }

    @Test("the documentation's example of typed caches works") func typedCachesExampleWorks() async throws {
        struct Visit: Codable, Sendable, Equatable {
            var page: String
            var seconds: Double
        }
        try await LiveServer.larderd.run { client in
            let visits = client.cache("visits", of: Visit.self)
            try await visits.set(Visit(page: "index", seconds: 1.5), forKey: "ana", policy: .middle)
            let visit = try await visits.value(forKey: "ana")
            #expect(visit == Visit(page: "index", seconds: 1.5))
            // Applies all changes or none.
            try await visits.batch {
                try $0.set(Visit(page: "books", seconds: 3), forKey: "eve")
                $0.remove("bob")
            }
            let both = try await visits.values(forKeys: ["ana", "eve"])

            // Enumerates while other clients write.
            for try await entry in visits.entries(matching: "a*") {
                print(entry.key, entry.value.page)
            }
            let isFirst = try await visits.setIfAbsent(Visit(page: "index", seconds: 0), forKey: "ana")
            try await visits.update(forKey: "ana") { visit in
                visit?.seconds += 1
            }
            let seconds = try await visits.edit("ana") { $0.increment(\.seconds, by: 0.5) }.seconds
            let renewed = try await visits.value(forKey: "ana", renewing: .hours(1))
            let removed = try await visits.remove("eve")

            try await visits.set(Visit(page: "index", seconds: 2), forKey: "eve", tags: ["site:7"])
            let tags = try await visits.tags(forKey: "eve")
            try await visits.removeAll(tagged: "site:7")
            #expect(tags == ["site:7"])
            try await visits.declareIndexes([Index(\Visit.page)])
            let query = visits.query().where(\.page, "index").sorted(by: \.seconds, .reverse)
            let longest = try await query.limit(10).values()
            #expect(longest.map(\.seconds) == [3])
            #expect(both.count == 2 && !isFirst && removed)
            #expect(seconds == 3 && renewed == Visit(page: "index", seconds: 3))
            let pages = try await visits.withSnapshot { snapshot in
                try await snapshot.values(forKeys: ["ana", "eve"]).mapValues(\.page)
            }
            #expect(pages == ["ana": "index"])
        }
    }

    private struct Weather: Codable, Equatable {
        var degrees: Double
    }

    /// An origin.
    private struct API {
        func weather(in city: String) async throws -> Weather { Weather(degrees: Double(city.count)) }
        func weather(in cities: [String]) async throws -> [String: Weather] {
            Dictionary(uniqueKeysWithValues: cities.map { ($0, Weather(degrees: Double($0.count))) })
        }
    }

    @Test("the documentation's example of fetching works") func fetchingExampleWorks() async throws {
        let api = API()
        try await LiveServer.larderd.run { client in
            let reports = client.cache("reports", of: Weather.self)
            let weather = try await reports.value(forKey: "oslo") { try await api.weather(in: "oslo") }
            #expect(weather.degrees == 4)

            var options = FetchOptions(.originElseCache, policy: .minutes(5).grace(.seconds(3_600)))
            options.hardTimeout = .seconds(2)
            let rome = try await reports.value(forKey: "rome", options: options) { try await api.weather(in: "rome") }
            #expect(rome.degrees == 4)

            let found = try await reports.values(forKeys: ["oslo", "rome", "lima"]) { missing in
                try await api.weather(in: missing)
            }
            #expect(found.count == 3)
        }
    }

    @Test("the documentation's example of near caches works") func nearCachesExampleWorks() async throws {
        let daemon = try DaemonProcess()
        let socketPath = daemon.socketPath
        let near = NearCacheOptions(entriesMax: 10_000, bytesMax: 32 << 20)
        let client = try await LarderClient.connect(socketPath: socketPath, options: ClientOptions(nearCache: near))
        let prices = client.cache("prices", of: Double.self)

        try await prices.set(3.2, forKey: "bread")
        // The first read asks the daemon, the second does not.
        let first = try await prices.value(forKey: "bread")
        let second = try await prices.value(forKey: "bread")
        #expect(first == 3.2 && second == 3.2)
        if let statistics = client.nearCacheStatistics("prices") {
            print(statistics.hits, "reads without a round trip,", statistics.misses, "with one")
        }
        #expect(client.nearCacheStatistics("prices")?.hits == 1)
        try daemon.stop()
    }

    @Test("the documentation's example of subscriptions works") func subscriptionsExampleWorks() async throws {
        try await LiveServer.larderd.run { client in
            let news = try await client.subscribe(to: "news")
            try await client.publish("fresh apples", to: "news")
            for try await message in news {
                print(message.channel, message.text ?? "bytes that are no text")
                break
            }
            news.cancel()
            let changes = try await client.subscribe(matching: "stock.*", bufferMax: 64)
            let listener = Task {
                for try await message in changes {
                    if message.followsGap { print("some were missed: ask for the state anew") }
                    return message.text
                }
                return nil
            }
            try await client.publish("4", to: "stock.apples")
            let heard = try await listener.value
            #expect(heard == "4")
        }
    }

    @Test("the documentation's example of observing changes works") func observingChangesExampleWorks() async throws {
        try await LiveServer.larderd.run { client in
            let reader = Task {
                let readers = client.cache("readers", of: String.self)
                let changes = try await readers.changes(prefix: "reader:")
                for try await change in changes {
                    switch change.kind {
                    case .stored, .removed, .evicted, .expired: print(change.kind, change.key ?? "")
                    case .purged, .fellBehind: print("look at everything again")
                    }
                }
                return true
            }
            let buyer = Task {
                let prices = try await client.cache("prices", of: Int.self).decodedChanges(forKey: "apples")
                for try await change in prices {
                    if let price = try change.value { print("the price is", price) }
                }
                return true
            }
            // Wait until the daemon has the subscriptions of both tasks.
            while try await client.command("PUBSUB", "CHANNELS", "__change@*").elements?.count != 3 { nap() }
            try await client.cache("prices", of: Int.self).set(7, forKey: "apples")
            client.close()
            #expect(try await [reader.value, buyer.value] == [true, true])
        }
    }

    @Test("the documentation's example of transactions works") func transactionsExampleWorks() async throws {
        try await LiveServer.larderd.run { client in
            let stock = client.cache("stock", of: Int.self)
            try await stock.set(10, forKey: "apples")
            let left = try await stock.transaction(watching: ["apples"]) { transaction in
                let apples = try await transaction.value(forKey: "apples") ?? 0
                try transaction.set(apples - 1, forKey: "apples")
                return apples - 1
            }
            #expect(left == 9)
            let apples = try await stock.increment("apples", by: 5)
            let isReplaced = try await stock.replace(apples, with: 0, forKey: "apples")
            #expect(apples == 14 && isReplaced)
            let replies = try await client.transaction([["SET", "a", "1"], ["INCR", "a"]])
            #expect(replies == [.simpleString("OK"), .integer(2)])
        }
    }

    private struct Reader: Codable, Sendable, Equatable {
        var name: String
        var age: Int
    }

    @Test("the documentation's example of scripts works") func scriptsExampleWorks() async throws {
        try await LiveServer.larderd.run { (client: LarderClient) in
            let countUp = Script(
                """
                local count = redis.call('incr', KEYS[1])
                if count == 1 then redis.call('expire', KEYS[1], ARGV[1]) end
                return count
                """)
            let visits: Int = try await client.script(countUp, keys: ["visits:ana"], arguments: [60])
            #expect(visits == 1)

            let exchange = Script("return redis.call('set', KEYS[1], ARGV[1], 'get')")
            let reader = Reader(name: "Ana", age: 36)
            let stored = ScriptModel(reader)
            let previous: ScriptModel<Reader>? = try await client.script(
                exchange, keys: ["reader"], arguments: [stored])
            #expect(previous == nil)
            #expect(try await client.cache(of: Reader.self).value(forKey: "reader") == reader)

            let refuse = Script("return redis.error_reply('LIMIT too many visits')")
            do throws(LarderClientError) {
                try await client.script(refuse)
            } catch {
                print(error.serverText ?? error.message)
            }
        }
    }

    @Test("the documentation's example of locks works") func locksExampleWorks() async throws {
        let made = Recorder<UInt64>()
        @Sendable func makeReports(token: UInt64) async throws { made.add(token) }
        try await LiveServer.larderd.run { (client: LarderClient) in
            try await client.lock("lock:reports", for: .seconds(60)) { lock in
                try await makeReports(token: lock.token)
            }
            do {
                try await client.lock("lock:reports", for: .seconds(60), waitingUpTo: .zero) { _ in
                    try await makeReports(token: 0)
                }
            } catch let error as LarderClientError where error.code == .locked {
                print("somebody else makes them")
            }
        }
        #expect(made.count == 2)
    }
}
