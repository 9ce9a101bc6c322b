import LarderTestSupport
import Testing

/// Tests of writes that the daemon acknowledges and delivers to a redis-server later, while both are killed repeatedly.
@Suite(.timeLimit(.minutes(30))) struct OutboxDaemonTests {
    private static let options = [
        "--origin-limit", "300", "--origin-heartbeat", "50", "--origin-heartbeat-limit", "100",
    ]
    private static let keyCount = 40

    /// For a long run overnight: `LARDER_ROUNDS=200 LARDER_SEED=… swift test --filter OutboxDaemonTests`.
    @Test func acknowledgedWritesReachTheOriginDespiteKills() throws {
        let rounds = TestSetting.rounds.number() ?? 3
        let base = testSeed()
        for round in 0..<rounds {
            let seed = base &+ UInt64(truncatingIfNeeded: round)
            do {
                try OutboxRound(seed).run()
            } catch {
                Issue.record("LARDER_SEED=\(seed) LARDER_ROUNDS=1: \(error)")
                return
            }
        }
    }

    /// One round: random writes of one client, during which the daemon and the server are killed.
    private final class OutboxRound {
        struct Difference: Error, CustomStringConvertible { let description: String }

        private var random: SeededGenerator
        private let place: TemporaryDirectory
        /// A server whose acknowledged writes are on its disk.
        private let redis: RedisProcess
        private var daemon: DaemonProcess
        private var client: SocketClient
        /// The last acknowledged values.
        private var truth: [String: String] = [:]
        private var trail: [String] = []

        init(_ seed: UInt64) throws {
            random = SeededGenerator(seed: seed)
            place = try TemporaryDirectory(inMemory: true)
            redis = try RedisProcess(["--appendonly", "yes", "--appendfsync", "always"])
            daemon = try DaemonProcess(OutboxDaemonTests.options, in: place)
            client = try daemon.connect()
            try expect("ORIGIN unix://\(redis.socketPath) BEHIND", "+OK\r\n")
        }

        func run() throws {
            for step in 0..<400 {
                switch Int.random(in: 0..<100, using: &random) {
                case 0..<3:
                    trail.append("\(step): the daemon is killed")
                    daemon.kill()
                    daemon = try DaemonProcess(OutboxDaemonTests.options, in: place)
                    client = try daemon.connect()
                case 3..<5:
                    trail.append("\(step): the server is killed")
                    redis.kill()
                case 5..<6 where redis.isUp:
                    trail.append("\(step): the server is frozen")
                    redis.freeze()
                case 6..<12: try bringBack(step)
                case 12..<30: try remove()
                case 30..<40: try readBack()
                default: try store(step)
                }
            }
            try bringBack(400)
            try waitUntilBrought()
            let behind = try redis.connect()
            // A server that was just started still loads its data.
            try behind.eventually("GET key:0") { !$0.hasPrefix("-LOADING") }
            for number in 0..<OutboxDaemonTests.keyCount {
                let key = "key:\(number)"
                let expected = truth[key].map { "$\($0.utf8.count)\r\n\($0)\r\n" } ?? "$-1\r\n"
                let (there, here) = (try behind.call("GET \(key)"), try client.call("GET \(key)"))
                guard there == expected, here == expected else {
                    throw Difference(
                        description: "\(key): \(there) there, \(here) here, expected \(expected)\n"
                            + trail.suffix(60).joined(separator: "\n"))
                }
            }
            #expect(try daemon.stop() == .exited(0))
        }

        private var key: String { "key:\(Int.random(in: 0..<OutboxDaemonTests.keyCount, using: &random))" }

        private func bringBack(_ step: Int) throws {
            if redis.isUp { return }
            trail.append("\(step): the server is back")
            redis.thaw()
            if !redis.isUp { try redis.restart() }
        }

        private func store(_ step: Int) throws {
            let keys = Set((0..<Int.random(in: 1...4, using: &random)).map { _ in key }).sorted()
            let pairs = keys.map { "\($0) v\(step)" }.joined(separator: " ")
            try expect((keys.count == 1 ? "SET " : "MSET ") + pairs, "+OK\r\n")
            for key in keys { truth[key] = "v\(step)" }
            trail.append("\(step): \(pairs)")
        }

        private func remove() throws {
            let key = key
            let reply = try client.call("DEL \(key)")
            guard reply.hasPrefix(":") else { throw Difference(description: "DEL \(key): \(reply)") }
            truth[key] = nil
            trail.append("DEL \(key)")
        }

        /// A client can read its acknowledged write, unless the read needs an origin that does not reply.
        private func readBack() throws {
            let key = key
            let reply = try client.call("GET \(key)")
            if reply.hasPrefix("-ORIGIN ") { return }
            let expected = truth[key].map { "$\($0.utf8.count)\r\n\($0)\r\n" } ?? "$-1\r\n"
            guard reply == expected else {
                throw Difference(
                    description: "GET \(key): \(reply), expected \(expected)\n"
                        + trail.suffix(60).joined(separator: "\n"))
            }
        }

        private func waitUntilBrought() throws {
            var reply = ""
            for _ in 0..<200_000 {
                reply = try client.call("ORIGIN")
                if reply.contains("$6\r\noutbox\r\n:0\r\n") { return }
            }
            throw Difference(description: "it was never brought: \(reply)")
        }

        private func expect(_ line: String, _ expected: String) throws {
            let reply = try client.call(line)
            guard reply == expected else { throw Difference(description: "\(line): \(reply)") }
        }
    }
}
