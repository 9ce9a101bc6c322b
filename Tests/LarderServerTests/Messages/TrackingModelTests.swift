import LarderEngine
import LarderTestSupport
import Testing

@testable import LarderServer

/// Tests of clients that cache the values that they read, with random changes. Once all messages have arrived, no
/// cached value is out of date.
@Suite(.timeLimit(.minutes(10))) struct TrackingModelTests {
    /// For a long run overnight: `LARDER_ROUNDS=10000 LARDER_SEED=… swift test --filter TrackingModelTests`.
    @Test func trackingKeepsClientCachesUpToDate() throws {
        let rounds = TestSetting.rounds.number() ?? 24
        let base = testSeed()
        for round in 0..<rounds {
            let seed = base &+ UInt64(truncatingIfNeeded: round)
            let run = try TrackingRun(seed: seed)
            do {
                try run.run(steps: 120)
            } catch {
                let trail = run.trail.suffix(50).joined(separator: "\n  ")
                Issue.record("LARDER_SEED=\(seed) LARDER_ROUNDS=1: \(error)\n  \(trail)")
                return
            }
        }
    }
}

/// One random sequence of commands. Some clients track the keys that they read, others only write. An observer for each
/// database reads the true values.
private final class TrackingRun {
    private typealias Place = TrackingModel.Place
    private typealias Request = TrackingModel.Request

    struct Difference: Error, CustomStringConvertible { let description: String }

    private static let keys = ["a1", "a2", "b1", "b2", "b3"]
    private static let options = [
        "", "", "NOLOOP", "OPTIN", "OPTOUT NOLOOP", "BCAST PREFIX a", "BCAST PREFIX b NOLOOP",
    ]

    private let server: SocketlessServer
    private var random: SeededGenerator
    private var clients: [TestClient] = []
    private var models: [TrackingModel] = []
    /// The tracking options of each client; nil for clients that only write.
    private var optionsOf: [String?] = []
    /// The observers, one for each database.
    private var observers: [TestClient] = []
    private var valueCount = 0
    private(set) var trail: [String] = []

    init(seed: UInt64) throws {
        random = SeededGenerator(seed: seed)
        var limits = Limits()
        // A full table evicts keys, and notifies their clients.
        if random.oneIn(3) { limits.trackedKeysMax = 3 }
        let isCold = random.oneIn(3)
        server = try SocketlessServer(policy: .never, limits: limits) { if isCold { $0.memoryBytes = 0 } }
        observers = (0..<2).map { _ in server.connect() }
        _ = observers[1]("SELECT 1")
        _ = observers[1]("POLICY 3")
        // If any client tracks all changes, all deadlines are watched; otherwise only the deadlines of entries that
        // were read.
        let hasBroadcast = random.oneIn(2)
        for options in Self.options where hasBroadcast || !options.contains("BCAST") { connect(options) }
        for _ in 0..<2 { connect(nil) }
    }

    private func connect(_ options: String?, at index: Int? = nil) {
        let client = server.connect()
        let prefix = options.flatMap { $0.contains("BCAST") ? $0.contains("PREFIX a") ? "a" : "b" : nil }
        let model = TrackingModel(prefix: prefix, isNoLoop: options?.contains("NOLOOP") ?? false)
        _ = client("HELLO 3")
        if let options { _ = client("CLIENT TRACKING ON " + options) }
        _ = client.takeSendable()
        guard let index else {
            clients.append(client)
            models.append(model)
            optionsOf.append(options)
            return
        }
        (clients[index], models[index]) = (client, model)
    }

    func run(steps: Int) throws {
        for _ in 0..<steps {
            try step()
            settle()
            try receive()
            try check()
        }
    }

    // MARK: Steps

    private func step() throws {
        switch random.below(20) {
        case 0..<4: advance()
        case 4: server.engine.maintain()
        case 5:
            let index = random.below(clients.count)
            clients[index].session.end()
            server.forget(clients[index])
            trail.append("\(index) connects again")
            connect(optionsOf[index], at: index)
        default:
            // Run commands of several clients before the next commit.
            for _ in 0..<(1 + random.below(4)) {
                let index = random.below(clients.count)
                for _ in 0..<(1 + random.below(3)) { act(index) }
                if random.oneIn(4) { server.deliver() }
            }
        }
    }

    private func settle() {
        server.commit()
        server.state.notifier.expire()
        server.deliver()
    }

    private func advance() {
        let milliseconds = Int64([random.below(300), random.below(300), random.below(1500), 3000][random.below(4)])
        server.time.advance(milliseconds: milliseconds)
        trail.append("+\(milliseconds)")
    }

    private func send(_ index: Int, _ line: String, _ request: TrackingModel.Request) {
        trail.append("\(index)\(optionsOf[index].map { "(\($0))" } ?? "")> \(line)")
        models[index].send(request)
        clients[index].feed(encodeRequest(line.split(separator: " ").map(String.init)))
    }

    private func act(_ index: Int) {
        let options = optionsOf[index]
        switch random.below(12) {
        case 0 where models[index].prefix == nil:
            // Only clients without broadcast select a database with a policy. Broadcasts for entries that follow a
            // policy are delayed until the entries' space is reclaimed.
            models[index].database = random.below(2)
            send(index, "SELECT \(models[index].database)", .ignore)
        case 1 where options != nil: send(index, "CLIENT TRACKING ON \(again(options ?? ""))", .ignore)
        case 2:
            var actions = (0..<(1 + random.below(3))).map { _ in
                random.oneIn(2) ? read(index, isCaching: nil) : change(index)
            }
            if models[index].isNoLoop {
                // Put reads last. The model counts every later command that might change a key as a change, even if the
                // command has no effect.
                actions = actions.filter { !$0.1.isRead } + actions.filter { $0.1.isRead }
            }
            send(index, "MULTI", .ignore)
            for (line, _) in actions { send(index, line, .ignore) }
            send(index, "EXEC", .transaction(actions.map(\.1)))
        case 3..<7:
            let (line, request) = change(index)
            send(index, line, request)
        case 8 where models[index].prefix == nil:
            // Stores the same key in both databases, each entry with its own deadline.
            let key = key()
            if random.oneIn(2) {
                let writer = clients.count - 1
                for database in 0..<2 {
                    valueCount += 1
                    models[writer].database = database
                    send(writer, "SELECT \(database)", .ignore)
                    send(writer, "SET \(key) v\(valueCount) PX \(1 + random.below(900))", .write([key]))
                }
                settle()
            }
            for _ in 0..<2 {
                models[index].database = 1 - models[index].database
                send(index, "SELECT \(models[index].database)", .ignore)
                let (line, request) = read(index, [key], isCaching: nil)
                send(index, line, request)
            }
        case 7 where random.oneIn(3):
            let (line, request) = wholeChange(index)
            send(index, line, request)
        default:
            var isCaching: Bool?
            if random.oneIn(2), let options {
                if options.contains("OPTIN") { isCaching = true }
                if options.contains("OPTOUT") { isCaching = false }
                if let isCaching { send(index, "CLIENT CACHING \(isCaching ? "YES" : "NO")", .ignore) }
            }
            let (line, request) = read(index, isCaching: isCaching)
            send(index, line, request)
        }
    }

    /// Returns options for repeating CLIENT TRACKING. With BCAST, the repeated command must name a prefix that is not
    /// tracked yet.
    private func again(_ options: String) -> String {
        options.contains("BCAST")
            ? "BCAST PREFIX c\(random.below(1_000_000))" + (options.contains("NOLOOP") ? " NOLOOP" : "") : options
    }

    private func key() -> String { Self.keys[random.below(Self.keys.count)] }

    private func read(
        _ index: Int, _ chosen: [String]? = nil, isCaching: Bool?
    ) -> (String, TrackingModel.Request) {
        let options = optionsOf[index]
        let isTracked = options.map {
            $0.contains("OPTIN") ? isCaching == true : isCaching != false || !$0.contains("OPTOUT")
        }
        let database = models[index].database
        let keys = chosen ?? (random.oneIn(3) ? [key(), key()] : [key()])
        let line = (keys.count > 1 ? "MGET " : "GET ") + keys.joined(separator: " ")
        return (line, .read(keys.map { Place(database: database, key: $0) }, isTracked: isTracked ?? false))
    }

    private func change(_ index: Int) -> (String, TrackingModel.Request) {
        let (one, two) = (key(), key())
        valueCount += 1
        let value = "v\(valueCount)"
        let life = random.oneIn(2) ? " PX \(1 + random.below(1500))" : ""
        switch random.below(16) {
        case 0..<5: return ("SET \(one) \(value)\(life)\(random.oneIn(3) ? " TAGS 1 t" : "")", .write([one]))
        case 5: return ("MSET \(one) \(value) \(two) \(value)", .write([one, two]))
        case 6: return ("DEL \(one)", .write([one]))
        case 7: return ("APPEND \(one) \(value)", .write([one]))
        case 8..<11: return ("PEXPIRE \(one) \(random.below(1500))", .write([one]))
        case 11: return ("PERSIST \(one)", .write([one]))
        case 12: return ("RENAME \(one) \(two)", .write([one, two]))
        case 13: return ("COPY \(one) \(two) DB \(random.below(2)) REPLACE", .write([two]))
        case 14: return ("MOVE \(one) \(1 - models[index].database)", .write([one]))
        default: return ("GETDEL \(one)", .write([one]))
        }
    }

    /// Returns a random command that changes many entries, and its meaning for the model.
    private func wholeChange(_ index: Int) -> (String, TrackingModel.Request) {
        switch random.below(5) {
        case 0: return ("FLUSHDB", .ignore)
        case 1: return ("PURGE PREFIX a", .write(Self.keys.filter { $0.hasPrefix("a") }))
        case 2: return ("PURGE TAG t\(random.oneIn(2) ? " SOFT" : "")", .ignore)
        case 3 where models[index].database == 1: return ("POLICY \([1, 3][random.below(2)])", .ignore)
        default: return ("SWAPDB 0 0", .ignore)
        }
    }

    // MARK: Received messages

    private func receive() throws {
        for index in clients.indices {
            let text = clients[index].takeSendable()
            if !text.isEmpty { trail.append("\(index)< \(text.debugDescription)") }
            do {
                try models[index].receive(text)
            } catch {
                throw Difference(description: "client \(index): \(error)")
            }
            guard models[index].isIdle else { throw Difference(description: "client \(index) waits for a reply") }
        }
    }

    private func check() throws {
        var present: [TrackingModel.Place: TrackingModel.Reply] = [:]
        for (database, observer) in observers.enumerated() {
            for key in Self.keys {
                let text = observer(["GET", key])
                let value = text == Wire.null ? nil : text.split(separator: "\r\n", omittingEmptySubsequences: false)[1]
                present[Place(database: database, key: key)] = value.map { .text(String($0)) } ?? .null
            }
        }
        for (index, model) in models.enumerated() {
            for (place, cached) in model.cache {
                guard let value = present[place], value != cached else { continue }
                throw Difference(
                    description:
                        "client \(index) (\(optionsOf[index] ?? "")) was not notified that \(place.key) in database "
                        + "\(place.database) has changed from \(cached) to \(value)")
            }
        }
    }
}
