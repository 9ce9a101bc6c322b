import LarderPlatform
import LarderTestSupport
import Testing

/// Tests of a larder in its own network namespace, in front of a redis-server on this machine. The virtual cable
/// between them is unplugged and plugged in again, and no process is notified of it.
@Suite(.enabled(if: NetworkLink.isPossible, "network namespaces need root and ip"))
struct NetworkLinkTests {
    /// The servers at both ends of the cable.
    private final class Ends: Sendable {
        let daemon: GuardedDaemon
        let link: NetworkLink
        let redis: RedisProcess
        let writesBehind: Bool

        init(_ way: String) throws {
            writesBehind = way == "BEHIND"
            let daemon = try DaemonProcess(wrapper: NetworkLink.wrapper)
            link = try NetworkLink(to: daemon.process.pid)
            redis = try RedisProcess(["--bind", link.address, "--protected-mode", "no"], port: 6379)
            let reply = try daemon.connect().call(["ORIGIN", "redis://\(link.address):6379", way])
            guard reply == Array("+OK\r\n".utf8) else {
                throw SocketClient.Failure(description: String(decoding: reply, as: UTF8.self))
            }
            self.daemon = GuardedDaemon(daemon)
        }

        func connect() throws -> SocketClient { try SocketClient(daemon.socketPath) }
    }

    /// Thread-safe. `@unchecked Sendable`: immutable after init.
    private final class GuardedDaemon: @unchecked Sendable {
        private let daemon: DaemonProcess
        init(_ daemon: DaemonProcess) { self.daemon = daemon }
        var socketPath: String { daemon.socketPath }
    }

    /// Writers and readers that run while the cable is unplugged and plugged in.
    private final class Traffic: Sendable {
        let ends: Ends
        let history = Guarded(FleetHistory())
        let isOver = Guarded(false)
        let keys = (0..<40).map { "k\($0)" }
        /// Keys that are written only when the cable is unplugged, so that all of them are cached at that time.
        let steadyKeys = (0..<5).map { "s\($0)" }

        init(_ ends: Ends) { self.ends = ends }

        private func write(_ key: String, _ version: Int, _ client: SocketClient) throws {
            let sent = MonotonicClock.milliseconds()
            let place = history.with { history in
                history.writes.append(.init(key: key, version: version, sent: sent))
                return history.writes.count - 1
            }
            guard try client.call("SET \(key) \(version)") == "+OK\r\n" else {
                throw SocketClient.Failure(description: "redis takes no write")
            }
            history.with { $0.writes[place].acknowledged = MonotonicClock.milliseconds() }
        }

        func writeSteadyKeys(_ version: Int) throws {
            let client = try ends.redis.connect()
            for key in steadyKeys { try write(key, version, client) }
        }

        /// Writes at the origin itself, through its socket in the file system.
        func writeAtOrigin() {
            guard let client = try? ends.redis.connect() else { return }
            var version = 0
            while !isOver.value {
                version += 1
                for key in keys {
                    guard (try? write(key, version, client)) != nil else { return }
                    // Write so seldom that most keys are cached when the cable is unplugged: only cached keys can
                    // become stale.
                    WorkThread.sleep(nanoseconds: 30_000_000)
                }
            }
        }

        /// Writes each key only once, because a write may still arrive after its caller has given up.
        func writeThroughLarder() {
            guard let client = try? ends.connect() else { return }
            var number = 0
            while !isOver.value {
                number += 1
                let sent = MonotonicClock.milliseconds()
                guard let reply = try? client.call("SET u\(number) 1") else { return }
                let now = MonotonicClock.milliseconds()
                history.with {
                    $0.writes.append(
                        .init(
                            key: "u\(number)", version: 1, sent: sent, acknowledged: reply == "+OK\r\n" ? now : nil,
                            answered: now, isByTier: true))
                }
                WorkThread.sleep(nanoseconds: 5_000_000)
            }
        }

        func read(_ number: Int, _ keys: [String]) {
            guard let client = try? ends.connect() else { return }
            var random = SeededGenerator(seed: UInt64(number))
            while !isOver.value {
                let key = keys[random.below(keys.count)]
                let sent = MonotonicClock.milliseconds()
                guard let answer = try? Self.answer(client, key) else { return }
                let now = MonotonicClock.milliseconds()
                history.with {
                    $0.reads.append(
                        .init(tier: 0, connection: number, key: key, sent: sent, answered: now, answer: answer))
                }
                WorkThread.sleep(nanoseconds: 2_000_000)
            }
        }

        static func answer(_ client: SocketClient, _ key: String) throws -> FleetHistory.Answer {
            let reply = try client.call("GET \(key)")
            if reply == "$-1\r\n" { return .version(0) }
            let text = String(decoding: RawReply.bulk(Array(reply.utf8)), as: UTF8.self)
            return Int(text).map { .version($0) } ?? .refused(reply)
        }

        /// Reads the final contents of the origin, and waits until the larder returns the same.
        func readFinal() throws {
            let (origin, larder) = (try ends.redis.connect(), try ends.connect())
            if ends.writesBehind { try larder.eventually(origin: "outbox") { $0 == 0 } }
            let end = MonotonicClock.milliseconds() + 30_000
            for key in Set(history.value.writes.map(\.key)) {
                guard case .version(let version) = try Self.answer(origin, key) else { continue }
                history.with { $0.final[key] = version }
                var answer = try Self.answer(larder, key)
                while answer != .version(version), MonotonicClock.milliseconds() < end {
                    WorkThread.sleep(nanoseconds: 5_000_000)
                    answer = try Self.answer(larder, key)
                }
                if answer != .version(version) {
                    history.with { $0.late.append("the larder says \(answer) of \(key), the origin \(version)") }
                }
            }
        }
    }

    @Test(arguments: ["THROUGH", "BEHIND"]) func theStalenessBoundHoldsDuringANetworkOutage(way: String) throws {
        let seed = testSeed("network link \(way)")
        var random = SeededGenerator(seed: seed)
        let traffic = Traffic(try Ends(way))
        try traffic.writeSteadyKeys(1)
        var threads = [
            WorkThread(name: "write") { traffic.writeAtOrigin() },
            WorkThread(name: "own") { traffic.writeThroughLarder() },
            WorkThread(name: "watch") { traffic.history.noteDelays(until: traffic.isOver) },
        ]
        for number in 0..<6 {
            let keys = number == 0 ? traffic.steadyKeys : traffic.keys
            threads.append(WorkThread(name: "read") { traffic.read(number, keys) })
        }
        for round in 0..<(TestSetting.fleetRounds.number() ?? 2) {
            WorkThread.sleep(nanoseconds: UInt64(300 + random.below(500)) * 1_000_000)
            try traffic.ends.link.set(isUp: false)
            try traffic.writeSteadyKeys(round + 2)
            // The first interruption is longer than a call may take; the shortest ones end before they are detected.
            WorkThread.sleep(nanoseconds: UInt64(round == 0 ? 3000 : 50 + random.below(2000)) * 1_000_000)
            try traffic.ends.link.set(isUp: true)
        }
        WorkThread.sleep(nanoseconds: 500_000_000)
        traffic.isOver.value = true
        for thread in threads { thread.join() }
        try traffic.readFinal()
        let verdict = FleetJudge.standard.judge(traffic.history.value)
        print(
            "network link, \(way), LARDER_SEED=\(seed): \(verdict.reads) reads, \(verdict.refused) refused, the stalest "
                + "\(verdict.worstStaleness) ms, the longest call \(verdict.longestCall) ms")
        #expect(verdict.findings.isEmpty, "\(verdict.findings.prefix(5))")
        #expect(verdict.reads > verdict.refused)
        // The cable was unplugged for longer than entries are trusted, so reads were stale and then refused.
        #expect(verdict.worstStaleness > 0 && verdict.refused > 0)
    }
}
