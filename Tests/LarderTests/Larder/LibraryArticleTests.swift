import Foundation
import Larder
import LarderTestSupport
import Testing

/// Runs the code in the articles of `Larder.docc`. `DocsArticleTests` checks that no code is missing.
@Suite struct LibraryArticleTests {
    private let cache: Cache

    init() throws { cache = try Cache.inMemory() }

    private struct Book: Codable {
        let title: String
        let price: Double
    }

    @Test func theExamplesForGettingStartedWork() throws {
        try cache.set(Book(title: "Sea", price: 18.5), forKey: "book:1")
        // Counts. A missing entry counts as 0.
        let visits = try cache.increment("visits")

        // Reads, changes and stores. An own deadline stays; a lifetime by the policy starts again.
        try cache.update([String].self, forKey: "basket") { basket in
            basket = (basket ?? []) + ["apple"]
        }

        // Changes single properties in the stored JSON, and returns the model.
        let price = try cache.edit("book:1", of: Book.self) { $0.increment(\.price, by: 0.5) }.price

        // Stores only if there is no entry, or only if there is one.
        let isFirst = try cache.setIfAbsent("Ana", forKey: "owner")
        let wasThere = try cache.setIfPresent("Eve", forKey: "owner")

        // Stores only if the entry has this value.
        let isReplaced = try cache.replace("Eve", with: "Ana", forKey: "owner")

        let cheap = try cache.query(Book.self).where(\.price, ..<20).sorted(by: \.title).limit(10).values()
        #expect(cheap.map(\.title) == ["Sea"])
        #expect(visits == 1 && price == 19 && isFirst && wasThere && isReplaced)
        #expect(try cache.value([String].self, forKey: "basket") == ["apple"])
        #expect(try cache.value(String.self, forKey: "owner") == "Ana")
    }

    @Test func theExamplesForGettingStartedWithTasksWork() async throws {
        try await cache.set("good morning", forKey: "greeting")
        let greeting = try await cache.value(String.self, forKey: "greeting")
        #expect(greeting == "good morning")
    }

    @Test func theExamplesForGettingStartedWithTestsWork() throws {
        let time = ManualTimeSource()
        var options = CacheOptions()
        options.timeSource = time
        let shortLived = try Cache.inMemory(policy: .highest, options: options)
        try shortLived.set("a note", forKey: "note")
        time.advance(milliseconds: 10_000)
        let note = try shortLived.value(String.self, forKey: "note")
        #expect(note == nil)
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
        func nickname() async throws -> String? { nil }
        @Sendable func news() async throws -> [String]? { ["apples are fresh"] }
    }

    @Test func theExamplesForFetchingWork() async throws {
        let api = API()
        func setUp() throws {
            try cache.setPolicy(.middle, grace: .seconds(86_400))
        }
        try setUp()
        let weather = try await cache.value(Weather.self, forKey: "oslo") { try await api.weather(in: "oslo") }
        #expect(weather.degrees == 4)

        var options = FetchOptions(.originElseCache, policy: .minutes(5).grace(.seconds(3_600)))
        options.hardTimeout = .seconds(2)
        let news = try await cache.value([String].self, forKey: "news", options: options) { try await api.news() }
        #expect(news == ["apples are fresh"])

        let nickname = try await cache.value(String.self, forKey: "nickname") { try await api.nickname() }
        #expect(nickname == nil)

        let reports = try await cache.values(Weather.self, forKeys: ["oslo", "rome"]) { missing in
            try await api.weather(in: missing)
        }
        #expect(reports.count == 2)

        let both = cache.cachedThenFetched(forKey: "news", leavingOutEqual: true, fetch: api.news)
        for try await news in both { print(news) }
    }

    /// A web service.
    private struct HTTP {
        struct Response {
            var status = 200
            var body: [UInt8] = []
            var maximumAge: Duration?
        }

        func get(_ path: String) async throws -> Response {
            guard path == "/weather/oslo" else { return Response(status: 404) }
            return Response(body: Array(#"{"degrees":4}"#.utf8), maximumAge: .seconds(60))
        }
    }

    private struct Person: Codable, Equatable {
        var name: String
    }

    private struct Directory {
        func person(named name: String) async throws -> Person? { Person(name: name) }
    }

    private struct Order: Codable, Equatable {
        var apples: Int
    }

    /// An origin that reports changes.
    private struct Server {
        func answers(_ keys: [[UInt8]]) async throws -> [OriginAnswer] { keys.map { _ in OriginAnswer([49]) } }
        func subscribe() async throws -> AsyncStream<String> { AsyncStream { _ in } }
    }

    private struct Feed: CacheOrigin {
        let server: Server

        func read(_ keys: [[UInt8]]) async throws -> [OriginAnswer] { try await server.answers(keys) }

        var tellsChanges: Bool { true }

        func tellChanges(to changes: OriginChanges) async throws {
            let messages = try await server.subscribe()
            changes.begin()
            for await key in messages { changes.changed([key]) }
        }
    }

    @Test func theExamplesForOriginsWork() async throws {
        let http = HTTP()
        let service = ClosureOrigin("weather service") { city in
            let response = try await http.get("/weather/" + city)
            if response.status == 404 { return .absent }
            return OriginAnswer(response.body, lifetime: response.maximumAge)
        }
        let weather = OriginCache(cache, origin: service)
        let oslo = try await weather.value(Weather.self, forKey: "oslo")
        let both = try await weather.values(Weather.self, forKeys: ["oslo", "rome"])
        #expect(oslo?.degrees == 4 && both.count == 1)

        let directory = Directory()
        let people = ClosureOrigin("people", of: Person.self, lifetime: .seconds(300)) { name in
            try await directory.person(named: name)
        }
        let staff = OriginCache(try await Cache.inMemory(), origin: people)
        #expect(try await staff.value(Person.self, forKey: "Ana") == Person(name: "Ana"))

        let feed = OriginCache(try await Cache.inMemory(), origin: Feed(server: Server()))
        #expect(try await feed.value(Int.self, forKey: "one") == 1)
    }

    private struct Log {
        func warning(_ text: String) {}
    }

    @Test func theExamplesForSlowOriginsWork() async throws {
        let log = Log()
        let http = HTTP()
        let service = ClosureOrigin("weather service") { city in
            OriginAnswer(try await http.get("/weather/" + city).body)
        }

        var limits = OriginCacheLimits()
        limits.call = .seconds(2)
        limits.failuresBeforeRest = 3
        let weather = OriginCache(cache, origin: service, limits: limits)
        if weather.status.isResting { log.warning("no weather: \(weather.status.lastError ?? "")") }
        #expect(try await weather.value(Weather.self, forKey: "oslo")?.degrees == 4)

        try await weather.invalidate("oslo")
        try await weather.invalidate(prefix: "city:no:")
        try await weather.invalidateAll()
        try await weather.purge(prefix: "city:no:")
        #expect(try await !weather.cache.contains("oslo"))
    }

    @Test func theExamplesForWritingToOriginsWork() async throws {
        let sent = Recorder<String>()
        let origin = ClosureOrigin(
            "orders",
            write: { key, value in
                sent.add(String(decoding: key, as: UTF8.self))
                return OriginAcknowledgement(lifetime: value.lifetime)
            },
            remove: { keys in for key in keys { sent.add(String(decoding: key, as: UTF8.self)) } },
            readMany: { keys in keys.map { _ in .absent } })
        let orders = OriginCache(cache, origin: origin)
        try await orders.set(Order(apples: 3), forKey: "order:17", lifetime: .seconds(3_600))
        try await orders.remove("order:16")
        #expect(sent.all == ["order:17", "order:16"])
        #expect(try await orders.value(Order.self, forKey: "order:17") == Order(apples: 3))
    }

    /// The model saved by a previous version of the program.
    private struct PreviousOrder: Codable {
        var fruit: Int
    }

    private struct Shop {
        let sent = Recorder<String>()

        func place(_ order: Order, as key: String, idempotencyKey: String) async throws -> Int {
            sent.add("\(key) \(order.apples)")
            return 200
        }
        func cancel(_ key: String, idempotencyKey: String) async throws { sent.add(key) }
    }

    @Test func theExamplesForOutboxesWork() async throws {
        let shop = Shop()
        let outbox = try Outbox<Order>(cache) { delivery in
            guard let order = delivery.value else {
                return try await shop.cancel(delivery.key, idempotencyKey: delivery.token)
            }
            let status = try await shop.place(order, as: delivery.key, idempotencyKey: delivery.token)
            if status == 422 { throw DeliveryRefusal("the shop does not take this order") }
        }
        try await outbox.save(Order(apples: 3), forKey: "order:17")
        try await outbox.remove("order:16")
        await outbox.untilDelivered("order:16")
        #expect(shop.sent.all == ["order:17 3", "order:16"])

        let progress = outbox.progress
        print(progress.waiting, progress.oldest ?? .zero, progress.delivered, progress.retried, progress.refused)
        await outbox.untilDelivered("order:17")
        try await outbox.purge()
        await outbox.close()
    }

    @Test func theExamplesForOutboxesWithAnotherModelWork() async throws {
        let previous = try Outbox<PreviousOrder>(cache) { _ in throw CancellationError() }
        try await previous.save(PreviousOrder(fruit: 5), forKey: "order:3")
        await previous.close()

        let shop = Shop()
        let deliver: @Sendable (OutboxDelivery<Order>) async throws -> Void = { _ in }
        let outbox = try Outbox<Order>(
            cache,
            undecodable: { previous in
                let order = try JSONDecoder().decode(PreviousOrder.self, from: Data(previous.bytes))
                _ = try await shop.place(Order(apples: order.fruit), as: previous.key, idempotencyKey: previous.token)
            },
            handler: deliver)
        await outbox.untilDelivered("order:3")
        #expect(shop.sent.all == ["order:3 5"])
        await outbox.close()
    }

    @Test func theExamplesForPoliciesWork() throws {
        try cache.setPolicy(.middle)

        try cache.set("follows the database", forKey: "usual")
        try cache.set("for ninety seconds", forKey: "short", policy: .after(.seconds(90)))
        try cache.set("for a week", forKey: "long", policy: .days(7))
        try cache.set("for good", forKey: "settings", policy: .never)

        // Stores another value, and leaves the deadline as it is.
        try cache.set("for the rest of the week", forKey: "long", policy: .keep)

        // Changes the rule of an entry; false if there is none.
        let isThere = try cache.touch("short", policy: .minutes(5))

        // Reads and changes the rule in one step.
        let text = try cache.value(String.self, forKey: "short", renewing: .hours(1))
        #expect(isThere && text == "for ninety seconds")

        try cache.set("…", forKey: "page:1", tags: ["article:17", "front"])
        try cache.set("…", forKey: "page:2", policy: .hours(1).grace(.seconds(600)), tags: ["article:17"])
        let tags = try cache.tags(forKey: "page:1")

        // Makes the entries stale: calls that fetch may return them within their grace.
        try cache.removeAll(tagged: "article:17", soft: true)
        // Removes the entries.
        try cache.removeAll(tagged: ["article:17", "front"])
        #expect(tags == ["article:17", "front"])
        #expect(try cache.contains("page:1") == false)
        let left = try #require(try cache.info(forKey: "short")?.timeToLive)
        #expect(left > .seconds(3_500) && left <= .seconds(3_600))
        if let info = try cache.info(forKey: "short") {
            print("stored \(info.age) ago,", info.byteCount, "bytes, fresh for", info.timeToLive ?? .zero)
        }
        switch try cache.timeToLive(forKey: "settings") {
        case .never: print("does not expire")
        case .milliseconds(let count): print("fresh for \(count) ms")
        case nil: print("there is no fresh entry")
        }
        #expect(try cache.timeToLive(forKey: "settings") == .never)
    }

    @Test func theExamplesForBatchesAndSnapshotsWork() throws {
        try cache.batch { batch in
            try batch.set(4, forKey: "apples")
            try batch.set(2, forKey: "pears", policy: .hours(1))
            batch.remove("plums")
        }
        let sum = try cache.withSnapshot { snapshot in
            let apples = try snapshot.value(Int.self, forKey: "apples") ?? 0
            let pears = try snapshot.value(Int.self, forKey: "pears") ?? 0
            return apples + pears
        }
        #expect(sum == 6)
        var stock: [String] = []
        try cache.entries(of: Int.self, prefix: "p").enumerate { entry, stop in
            stock.append("\(entry.key): \(try entry.value())")
            stop = stock.count == 100
        }

        let entries = try cache.entries(of: Int.self, backward: true).makeIterator()
        while let entry = try entries.next() { print(entry.key) }

        let many = try cache.dictionary(matching: #Predicate<Int> { $0 > 3 })
        let keys = try cache.keys(EntryOptions(prefix: "p", limit: 10))
        #expect(stock == ["pears: 2"])
        #expect(many == ["apples": 4])
        #expect(keys == ["pears"])
        let counts = try cache.values(Int.self, forKeys: ["apples", "pears", "figs"])
        try cache.set(["figs": 7, "nuts": 9], policy: .low)
        let removed = try cache.remove(["figs", "nuts"])
        #expect(counts == ["apples": 4, "pears": 2])
        #expect(removed == 2)
    }

    @Test func theExamplesForObservingChangesWork() async throws {
        let cache = cache
        let reader = Task {
            let changes = try cache.changes(prefix: "reader:")
            for try await change in changes {
                switch change.kind {
                case .stored, .removed, .evicted, .expired: print(change.kind, change.key ?? "")
                case .purged, .fellBehind: print("look at everything again")
                }
            }
            return true
        }
        let buyer = Task {
            let prices = try cache.decodedChanges(Int.self, forKey: "price")
            for try await change in prices {
                if let price = try change.value { print("the price is", price) }
            }
            return true
        }
        try await cache.set(7, forKey: "price")
        reader.cancel()
        buyer.cancel()
        #expect(try await [reader.value, buyer.value] == [true, true])
    }

    @Test func theExamplesForAsynchronousEnumerationWork() async throws {
        try await cache.set(4, forKey: "apples")
        for try await entry in cache.entries(of: Int.self, from: "a", to: "m") {
            print(entry.key, try entry.value())
        }
        var keys: [String] = []
        for try await entry in cache.entries(of: Int.self, from: "a", to: "m") { keys.append(entry.key) }
        #expect(keys == ["apples"])
    }

    @Test func theExamplesForErrorsAndDurabilityWork() throws {
        do {
            try cache.set("morning", forKey: "greeting")
            let number = try cache.value(Int.self, forKey: "greeting")
            print(number ?? 0)
        } catch {
            switch error.code {
            case .decoding: print("something else is stored there:", error.message)
            case .larderHeld: print("another process holds the larder")
            case .io, .commitFailed, .writesSuspended: print("the disk refuses:", error.message)
            default: print(error)
            }
        }
        let temporary = try TemporaryDirectory(inMemory: true)
        let directory = temporary.path
        var options = CacheOptions()
        options.durability = .always
        let ledger = try Cache(named: "ledger", directory: directory, options: options)

        // This write may be lost if the machine fails; other writes of the database may not.
        try ledger.set("a guess", forKey: "guess", durability: .os)
        #expect(try ledger.value(String.self, forKey: "guess") == "a guess")
        var careful = CacheOptions()
        careful.onDamage = .salvage
        careful.onEvent = { event in print(event) }
        #expect(careful.onEvent != nil)
    }
}
