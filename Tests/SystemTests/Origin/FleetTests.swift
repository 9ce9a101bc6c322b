import Platform
import TestSupport
import Testing

/// Two larders in front of one cluster, whose way there and whose nodes are broken again and again: an outside checker knows
/// what was written when, and finds every read that is staler than the bound, goes back, or takes longer than it may, and
/// every acknowledged write that is lost.
@Suite(
    .enabled(if: RedisCluster.isAvailable, "neither redis-server nor valkey-server is installed"), .serialized)
struct FleetTests {
    /// heartbeat + limit of larderd's default, in milliseconds.
    private static let bound: Int64 = 750
    /// Of one call: larderd's limit, and its way there and back; instrumented, each step takes many times as long.
    private static let limit: Int64 = 2000 + (TestSetting.sanitized.isSet ? 1000 : 100)

    /// A cluster behind a proxy, for all rounds.
    private final class Origin {
        let cluster: RedisCluster
        let proxy: FaultProxy

        init(hasReplicas: Bool, program: String? = nil) throws {
            cluster = try RedisCluster(replicas: hasReplicas ? 3 : 0, isDurable: true, program: program)
            proxy = try FaultProxy(to: cluster.servers.map(\.port))
            try cluster.announce(ports: proxy.ports)
        }

        deinit { proxy.stop() }

        var url: String { "redis+cluster://" + proxy.ports.map { "127.0.0.1:\($0)" }.joined(separator: ",") }
    }

    private static func judge(_ history: FleetHistory) -> FleetJudge.Verdict {
        FleetJudge(bound: bound, limit: limit).judge(history)
    }

    // MARK: Larders

    /// `LARDER_FLEET_ROUNDS`, 2 if it is not set: so many of each kind.
    private static var rounds: Int { TestSetting.fleetRounds.number() ?? 2 }

    @Test(arguments: RedisProcess.programs, [false, true])
    func lardersKeepWhatTheyPromise(program: String, hasReplicas: Bool) throws {
        let seed = testSeed("fleet \(program)\(hasReplicas ? " with replicas" : "")")
        let origin = try Origin(hasReplicas: hasReplicas, program: program)
        for number in 0..<Self.rounds {
            // A round alone: its seed, and LARDER_FLEET_ROUNDS=1.
            let seed = seed &+ UInt64(number)
            var random = SeededGenerator(seed: seed)
            var plan = FleetRound.Plan(hasReplicas: hasReplicas)
            let keys = (0..<plan.keys).map { "k\($0):\(seed)" }
            plan.faults = (0..<(2 + random.below(3))).map { _ in
                .random(keys, hasReplicas: hasReplicas, &random)
            }
            let options = [[], ["--threads", "2"], ["--memory", "0"]][random.below(3)]
            let words =
                [random.oneIn(2) ? "THROUGH" : "AROUND"]
                + [[], ["BCAST"], ["REPLICAS", "30"], ["BCAST", "PREFIX", "k", "REPLICAS", "100"]][random.below(4)]
            let tiers = try (0..<2).map { _ in try LarderTier(origin: origin.url, words, options: options) }
            let history = try FleetRound("\(seed)", origin.cluster, origin.proxy, tiers, plan).run()
            let verdict = Self.judge(history)
            print(
                "fleet round \(number), LARDER_SEED=\(seed): \(words) \(options) \(plan.faults); \(verdict.reads) reads, "
                    + "\(verdict.refused) refused, the stalest \(verdict.worstStaleness) ms, the longest call "
                    + "\(verdict.longestCall) ms, the longest wait for a turn \(history.machineDelay) ms")
            #expect(verdict.reads > verdict.refused, "all reads were refused")
            if !verdict.findings.isEmpty {
                let first = verdict.findings.prefix(5).map(\.description).joined(separator: "\n")
                Issue.record(
                    "LARDER_SEED=\(seed) LARDER_FLEET_ROUNDS=1 \(plan.faults): \(verdict.findings.count) findings:\n\(first)"
                )
            }
            for tier in tiers { tier.stop() }
        }
    }

    /// Larders that believe for a minute what nobody confirms.
    private static let patient = ["--origin-heartbeat", "100", "--origin-heartbeat-limit", "60000"]

    /// What nobody says is found by the heartbeat alone: without it the read is stale, and the checker says so.
    @Test(arguments: [false, true])
    func heartbeatsFindWhatNobodySays(hasHeartbeat: Bool) throws {
        let origin = try Origin(hasReplicas: false)
        let tier = try LarderTier(origin: origin.url, options: hasHeartbeat ? [] : Self.patient)
        defer { tier.stop() }
        let client = try tier.connect()
        var history = FleetHistory()
        for version in 1...2 {
            let sent = MonotonicClock.milliseconds()
            #expect(try origin.cluster.call(key: "k", "SET k \(version)") == "+OK\r\n")
            history.writes.append(
                .init(key: "k", version: version, sent: sent, acknowledged: MonotonicClock.milliseconds()))
            guard version == 1 else { break }
            // Until it is believed, the origin is asked.
            var asked = -1
            while try Self.gets(origin.cluster) != asked {
                asked = try Self.gets(origin.cluster)
                #expect(try client.call("GET k") == "$1\r\n1\r\n")
            }
            origin.proxy.set(.freeze([.toClient]))
        }
        let end = MonotonicClock.milliseconds() + Self.bound + 1
        while MonotonicClock.milliseconds() < end { WorkThread.sleep(nanoseconds: 1_000_000) }
        let sent = MonotonicClock.milliseconds()
        let reply = try client.call(["GET", "k"])
        let version = Int(String(decoding: RawReply.bulk(reply), as: UTF8.self))
        history.reads.append(
            .init(
                tier: 0, connection: 0, key: "k", sent: sent, answered: sent,
                answer: version.map { .version($0) } ?? .refused(String(decoding: reply, as: UTF8.self))))
        #expect(Self.judge(history).findings.map(\.kind) == (hasHeartbeat ? [] : [.stale]), "\(reply)")
    }

    /// However many want a key that is not here, and however long the origin takes: one asks it for each machine.
    @Test func oneLoadForEachMachine() throws {
        let origin = try Origin(hasReplicas: false)
        // A connection that is given up asks again on the next one, and may.
        let tiers = try (0..<2).map { _ in try LarderTier(origin: origin.url, options: Self.patient) }
        defer { for tier in tiers { tier.stop() } }
        // A server is believed from its first heartbeat on; until then each one asks for itself.
        let warm = try origin.cluster.key(on: 1, prefix: "warm")
        for tier in tiers {
            let client = try tier.connect()
            var asked = -1
            while try Self.gets(origin.cluster) != asked {
                #expect(try client.call("GET \(warm)") == "$-1\r\n")
                asked = try Self.gets(origin.cluster)
                #expect(try client.call("GET \(warm)") == "$-1\r\n")
            }
        }
        let key = try origin.cluster.key(on: 1, prefix: "cold")
        _ = try origin.cluster.call(key: key, "SET \(key) v")
        let before = try Self.gets(origin.cluster)
        origin.proxy.set(.freeze([.toClient]), on: 1)
        let clients = try tiers.flatMap { tier in try (0..<20).map { _ in try tier.connect() } }
        for client in clients { try client.send(["GET", key]) }
        // Asked by both machines; and whoever else would ask has had the time.
        while try Self.gets(origin.cluster) < before + 2 {}
        for tier in tiers { #expect(try tier.connect().call("PING") == "+PONG\r\n") }
        origin.proxy.set(.none)
        for client in clients { #expect(try client.receive() == Array("$1\r\nv\r\n".utf8)) }
        #expect(try Self.gets(origin.cluster) == before + 2)
    }

    /// How many GET all nodes have had.
    private static func gets(_ cluster: RedisCluster) throws -> Int {
        try cluster.nodes.map { node in
            let text = try cluster.text(node, ["INFO", "commandstats"])
            return text.firstMatch(of: /cmdstat_get:calls=(\d+)/).flatMap { Int($0.output.1) } ?? 0
        }.reduce(0, +)
    }

    // MARK: The checker itself

    private static func round(
        _ name: String, _ origin: Origin, _ mistake: StandInTier.Mistake, faults: [FleetFault] = []
    ) throws -> FleetJudge.Verdict {
        let tiers = try (0..<2).map { _ in try StandInTier(origin.cluster, mistake) }
        defer { for tier in tiers { tier.stop() } }
        var plan = FleetRound.Plan()
        // Longer than the bound, or nothing could be staler; and a tier that does not come back is waited for.
        plan.faults =
            faults + [
                .proxy(.none, key: "k0", milliseconds: mistake == .sleeps ? 5000 : 1500)
            ]
        plan.patience = mistake == .none ? 30_000 : 300
        return judge(try FleetRound(name, origin.cluster, origin.proxy, tiers, plan).run())
    }

    @Test func whoAsksForEverythingMakesNoMistakeAndOthersAreFound() throws {
        let origin = try Origin(hasReplicas: false)
        let faults: [FleetFault] = [
            .freeze(key: "k0:0", milliseconds: 400, untilFailover: false),
            .kill(key: "k1:0", milliseconds: 100, untilFailover: false), .move(key: "k2:0", shift: 1), .restartAll,
        ]
        let verdict = try Self.round("0", origin, .none, faults: faults)
        #expect(verdict.findings.isEmpty, "\(verdict.findings.prefix(3))")
        #expect(verdict.reads > 100 && verdict.refused < verdict.reads / 2)
        let mistakes: [(StandInTier.Mistake, Set<FleetFinding.Kind>)] = [
            (.keeps, [.stale, .dead]), (.wavers, [.stale, .backwards]), (.forgets, [.lost]), (.sleeps, [.slow]),
            (.mistakes, [.foreign]), (.dies, [.dead]),
        ]
        #expect(mistakes.count == StandInTier.Mistake.allCases.count - 1)
        for (number, (mistake, kinds)) in mistakes.enumerated() {
            let found = Set(try Self.round("\(number + 1)", origin, mistake).findings.map(\.kind))
            #expect(found.isSuperset(of: kinds), "\(mistake): found \(found)")
        }
    }
}
