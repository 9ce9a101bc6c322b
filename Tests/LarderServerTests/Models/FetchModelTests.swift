import LarderEngine
import LarderTestSupport
import Testing

@testable import LarderServer

/// Runs random FETCH, RELEASE, SET, DEL and purges, lets entries and leases expire, closes connections, and compares
/// the replies with ``FetchModel``.
@Suite struct FetchModelTests {
    /// For a long run overnight: `LARDER_ROUNDS=100000 LARDER_SEED=… swift test --filter FetchModelTests`.
    @Test func randomFetchesAgreeWithTheModel() throws {
        let rounds = TestSetting.rounds.number() ?? 40
        let base = testSeed()
        for round in 0..<rounds {
            let seed = base &+ UInt64(truncatingIfNeeded: round)
            let run = try FetchRun(seed: seed)
            do {
                try run.run(steps: 300)
            } catch {
                let trail = run.trail.suffix(60).joined(separator: "\n  ")
                Issue.record("LARDER_SEED=\(seed) LARDER_ROUNDS=1: \(error)\n  \(trail)")
                return
            }
        }
    }
}

/// One random sequence of commands, run on a server without sockets and on the model.
private final class FetchRun {
    struct Difference: Error, CustomStringConvertible { let description: String }

    private static let keys = ["a", "b", "p:a", "p:b"]

    private let server: SocketlessServer
    private var clients: [TestClient]
    private var model: FetchModel
    private var random: SeededGenerator
    /// The key that most steps use.
    private var focus = "a"
    /// All tokens that were granted, each with its key.
    private var tokens: [(key: String, token: String)] = []
    private var versions: [String: String] = [:]
    /// The values in `versions`, in an order that is the same for each run with the same seed.
    private var values: [String] = []
    private var valueCount = 0
    private(set) var trail: [String] = []

    init(seed: UInt64) throws {
        random = SeededGenerator(seed: seed)
        server = try SocketlessServer(policy: .high)
        clients = []
        let grace = [0, 2][random.below(2)]
        model = FetchModel(keys: Self.keys, time: 0, grace: Int64(grace) * 1000)
        clients = (0..<5).map { _ in server.connect() }
        try expect(clients[0]("POLICY high GRACE \(grace)") == Wire.ok, "POLICY")
    }

    func run(steps: Int) throws {
        for _ in 0..<steps { try step() }
        for index in clients.indices { try disconnect(index) }
        for key in Self.keys { _ = clients[0]("DEL \(key)") }
        try expect(server.engine.leases.leases.read() == 0, "leases are left")
        try expect(server.engine.leases.waiters.read() == 0, "waiters are left")
    }

    private func expect(_ isTrue: Bool, _ text: @autoclosure () -> String) throws {
        if !isTrue { throw Difference(description: text()) }
    }

    // MARK: Steps

    private func step() throws {
        let idle = clients.indices.filter { clients[$0].session.waits.fetching.waiting == nil }
        guard let client = idle.randomElement(using: &random), !random.oneIn(6) else { return try advance() }
        // Change the key rarely, so that clients wait for each other.
        if random.oneIn(20) { focus = Self.keys[random.below(Self.keys.count)] }
        let key = random.oneIn(4) ? Self.keys[random.below(Self.keys.count)] : focus
        switch random.below(20) {
        case 0..<8: try fetch(client, key)
        case 8..<12: try set(client, key)
        case 12: try setMany(client)
        case 13..<16: try release(client, key)
        case 16:
            model.remove(key)
            _ = call(client, "DEL \(key)")
        case 17: try purge(client)
        case 18: try get(client, key)
        default: try disconnect(client)
        }
        try wake()
    }

    private func call(_ client: Int, _ line: String) -> String {
        let reply = clients[client](line)
        server.commit()
        trail.append("\(model.time) \(client)> \(line) \(reply.debugDescription)")
        return reply
    }

    private func advance() throws {
        let milliseconds = Int64([random.below(20), random.below(400), random.below(3000), 30_000][random.below(4)])
        model.advance(milliseconds)
        server.time.advance(milliseconds: milliseconds)
        trail.append("+\(milliseconds)")
        let now = server.time.monotonicMilliseconds()
        // Like an event loop, wake the clients whose wait has ended, in any order.
        for client in clients.shuffled(using: &random) where client.session.waits.fetching.waiting != nil {
            if let until = client.waitsUntil, until <= now { client.run() }
        }
        server.commit()
        try wake()
    }

    private func fetch(_ client: Int, _ key: String) throws {
        var ask = FetchModel.Ask(client: client, key: key, at: model.time)
        var line = "FETCH \(key)"
        if random.oneIn(4) {
            ask.maxAge = random.oneIn(4) ? 0 : Int64(random.below(500))
            line += " MAXAGE \(ask.maxAge ?? 0)"
        }
        if random.oneIn(2) {
            ask.wait = Int64(random.below(3000))
            line += " WAIT \(ask.wait)"
        }
        if random.oneIn(3) {
            ask.lease = Int64(1 + random.below(2000))
            line += " LEASE \(ask.lease ?? 0)"
        }
        if random.oneIn(4), let known = values.randomElement(using: &random) {
            ask.ifNot = random.oneIn(2) ? model[key].entry?.value ?? known : known
            if let value = ask.ifNot, let version = versions[value] {
                line += " IFNOT \(version)"
            } else {
                ask.ifNot = nil
            }
        }
        let text = call(client, line)
        if let answer = model.answer(ask) {
            try check(FetchReply(text), ask, answer)
        } else {
            try expect(text.isEmpty, "it should wait")
            model[key].queue.append(ask)
        }
    }

    private func set(_ client: Int, _ key: String) throws {
        let (value, life, grace) = (newValue(), random.oneIn(4) ? nil : Int64(1 + random.below(2000)), randomGrace())
        var line = "SET \(key) \(value)"
        if let life { line += " PX \(life)" }
        if let grace { line += " GRACE \(grace / 1000)" }
        let token = random.oneIn(4) ? nil : token(key)
        if let token { line += " TOKEN \(token)" }
        var isAllowed = model.holds(key, token)
        if random.oneIn(4) {
            let wantsEntry = random.oneIn(2)
            line += wantsEntry ? " XX" : " NX"
            let isFresh = model[key].entry.map { model.time < $0.deadline } ?? false
            isAllowed = isAllowed && isFresh == wantsEntry
        }
        if isAllowed { model.store(key, value, life: life, grace: grace, token: token) }
        try expect(call(client, line) == (isAllowed ? Wire.ok : Wire.null), "SET: \(isAllowed)")
    }

    private func setMany(_ client: Int) throws {
        let pairs = Self.keys.shuffled(using: &random).prefix(2).map { ($0, newValue(), token($0)) }
        let tokens = pairs.compactMap(\.2)
        guard tokens.count == 2 else { return }
        let isAllowed = pairs.allSatisfy { model.holds($0.0, $0.2) }
        if isAllowed { for pair in pairs { model.store(pair.0, pair.1, life: 500, grace: nil, token: pair.2) } }
        let words = pairs.map { "\($0.0) \($0.1)" }.joined(separator: " ")
        let reply = call(client, "MSETEX 2 \(words) PX 500 TOKEN \(tokens[0]) \(tokens[1])")
        try expect(reply == Wire.int(isAllowed ? 1 : 0), "MSETEX: \(isAllowed)")
    }

    private func release(_ client: Int, _ key: String) throws {
        guard let token = token(key) else { return }
        let milliseconds = Int64(1 + random.below(2000))
        let (words, form): (String, FetchModel.Release) =
            switch random.below(4) {
            case 0: ("", .open)
            case 1: (" UNCHANGED", .unchanged)
            case 2: (" ABSENT \(milliseconds)", .absent(milliseconds))
            default: (" FAILED \(milliseconds)", .failed(milliseconds))
            }
        let expected = model.release(key, token, form)
        try expect(call(client, "RELEASE \(key) \(token)\(words)") == expected, "RELEASE: \(expected)")
    }

    private func purge(_ client: Int) throws {
        switch random.below(3) {
        case 0:
            for key in Self.keys { model.remove(key) }
            _ = call(client, random.oneIn(2) ? "PURGE" : "FLUSHDB")
        case 1:
            for key in Self.keys where key.hasPrefix("p:") { model.remove(key) }
            _ = call(client, "PURGE PREFIX p:")
        default: _ = call(client, "PURGE EXPIRED")
        }
    }

    private func get(_ client: Int, _ key: String) throws {
        let entry = model[key].entry.flatMap { model.time < $0.deadline ? $0 : nil }
        try expect(call(client, "GET \(key)") == (entry.map { Wire.bulk($0.value) } ?? Wire.null), "GET")
    }

    private func disconnect(_ client: Int) throws {
        model.disconnect(client)
        trail.append("\(client) disconnects")
        clients[client].session.end()
        server.forget(clients[client])
        clients[client] = server.connect()
        server.commit()
        try wake()
    }

    // MARK: Received replies

    /// Compares the replies that waiting clients have received with the model.
    private func wake() throws {
        for _ in 0..<3 { server.commit() }
        for (ask, answer) in model.wake() {
            let text = clients[ask.client].takeSendable()
            trail.append("\(model.time) \(ask.client)< FETCH \(ask.key) \(text.debugDescription)")
            try check(FetchReply(text), ask, answer)
        }
        for (index, client) in clients.enumerated() {
            let text = client.takeSendable()
            try expect(text.isEmpty, "\(index) got what it should not: \(text.debugDescription)")
        }
    }

    private func check(_ reply: FetchReply?, _ ask: FetchModel.Ask, _ expected: FetchModel.Answer) throws {
        guard let reply else { throw Difference(description: "no reply to \(ask), expected \(expected)") }
        var answer = FetchModel.Answer(reply.state, ttl: Int64(reply.ttl))
        answer.value = reply.value
        answer.hasVersion = reply.version != nil
        answer.age = Int64(reply.age)
        try expect(answer == expected, "\(ask) got \(answer), expected \(expected)")
        try expect((reply.token != nil) == (reply.state == "lead"), "only a lead reply has a token")
        if let token = reply.token {
            try expect(!tokens.contains { $0.token == token }, "a token was given twice")
            tokens.append((ask.key, token))
            model[ask.key].lease?.token = token
        }
        if let value = reply.value, let version = reply.version {
            let known = versions.updateValue(version, forKey: value)
            if known == nil { values.append(value) }
            try expect(known == nil || known == version, "the version of a value changes")
        }
    }

    // MARK: Random words

    private func newValue() -> String {
        valueCount += 1
        return "v\(valueCount)"
    }

    private func randomGrace() -> Int64? { random.oneIn(2) ? nil : Int64(random.below(4)) * 1000 }

    /// Returns a token: most often that of the key's lease, otherwise an invalid or expired one.
    private func token(_ key: String) -> String? {
        if !random.oneIn(5), let token = model[key].lease?.token { return token }
        return tokens.randomElement(using: &random)?.token
    }
}
