import LarderPlatform
import LarderTestSupport
import Testing

/// Tests of two larders in front of one cluster whose connections and nodes fail repeatedly. An independent checker
/// knows all writes and their times. It finds every read that is staler than the bound, returns an older version than
/// before, or takes too long. It also finds every acknowledged write that is lost.
@Suite(
    .enabled(if: RedisCluster.isAvailable, "neither redis-server nor valkey-server is installed"), .serialized)
struct FleetTests {
    // MARK: Larders

    @Test(
        "larders in front of a failing cluster lose no write and serve no value that is too old",
        arguments: RedisProcess.programs, [false, true])
    func lardersServeNoStaleValueDuringFaults(program: String, hasReplicas: Bool) throws {
        let seed = testSeed("fleet \(program)\(hasReplicas ? " with replicas" : "")")
        let origin = try FleetOrigin(hasReplicas: hasReplicas, program: program)
        for number in 0..<FleetOrigin.rounds {
            // To repeat one round, set its seed and LARDER_FLEET_ROUNDS=1.
            let seed = seed &+ UInt64(number)
            var random = SeededGenerator(seed: seed)
            let plan = FleetRound.Plan.random("\(seed)", hasReplicas: hasReplicas, &random)
            let options = [[], ["--threads", "2"], ["--memory", "0"]][random.below(3)]
            let words =
                [random.oneIn(2) ? "THROUGH" : "AROUND"]
                + [[], ["BCAST"], ["REPLICAS", "30"], ["BCAST", "PREFIX", "k", "REPLICAS", "100"]][random.below(4)]
            let tiers = try (0..<2).map { _ in try LarderTier(origin: origin.url, words, options: options) }
            try origin.round(seed, tiers, plan, "\(words) \(options)")
            for tier in tiers { tier.stop() }
        }
    }

    /// Options for larders that trust entries for a minute without a heartbeat.
    private static let patient = ["--origin-heartbeat", "100", "--origin-heartbeat-limit", "60000"]

    /// Only the heartbeat detects a missed invalidation: without a heartbeat, the read is stale, and the checker
    /// reports that.
    @Test(arguments: [false, true])
    func heartbeatsDetectAMissedInvalidation(hasHeartbeat: Bool) throws {
        let origin = try FleetOrigin(hasReplicas: false)
        let tier = try LarderTier(origin: origin.url, options: hasHeartbeat ? [] : Self.patient)
        defer { tier.stop() }
        #expect(try origin.silence(tier) == (hasHeartbeat ? [] : [.stale]))
    }

    /// Each machine requests a missing key once, regardless of the number of clients and of the origin's speed.
    @Test func eachMachineRequestsAMissingKeyOnce() throws {
        let origin = try FleetOrigin(hasReplicas: false)
        // If a connection is abandoned, the request may be repeated on the next one.
        let tiers = try (0..<2).map { _ in try LarderTier(origin: origin.url, options: Self.patient) }
        defer { for tier in tiers { tier.stop() } }
        // A server is trusted from its first heartbeat on. Before its first heartbeat, every request of a client is
        // forwarded to it.
        let warm = try origin.cluster.key(on: 1, prefix: "warm")
        for tier in tiers {
            let client = try tier.connect()
            var asked = -1
            while try origin.gets() != asked {
                #expect(try client.call("GET \(warm)") == "$-1\r\n")
                asked = try origin.gets()
                #expect(try client.call("GET \(warm)") == "$-1\r\n")
            }
        }
        let key = try origin.cluster.key(on: 1, prefix: "cold")
        _ = try origin.cluster.call(key: key, "SET \(key) v")
        let before = try origin.gets()
        origin.proxy.set(.freeze([.toClient]), on: 1)
        let clients = try tiers.flatMap { tier in try (0..<20).map { _ in try tier.connect() } }
        for client in clients { try client.send(["GET", key]) }
        // Wait until both machines have sent a request: any further request would have been sent by now.
        while try origin.gets() < before + 2 { nap() }
        for tier in tiers { #expect(try tier.connect().call("PING") == "+PONG\r\n") }
        origin.proxy.set(.none)
        for client in clients { #expect(try client.receive() == Array("$1\r\nv\r\n".utf8)) }
        #expect(try origin.gets() == before + 2)
    }

    // MARK: The checker itself

    private static func round(
        _ name: String, _ origin: FleetOrigin, _ mistake: StandInTier.Mistake, faults: [FleetFault] = []
    ) throws -> FleetJudge.Verdict {
        let tiers = try (0..<2).map { _ in try StandInTier(origin.cluster, mistake) }
        defer { for tier in tiers { tier.stop() } }
        var plan = FleetRound.Plan()
        // Run longer than the bound, because no read could be stale otherwise. A tier that recovers needs patience at
        // the end.
        plan.faults =
            faults + [
                .proxy(.none, key: "k0", milliseconds: mistake == .sleeps ? 5000 : 1500)
            ]
        plan.patience = mistake == .none ? 30_000 : 300
        return FleetJudge.standard.judge(try FleetRound(name, origin.cluster, origin.proxy, tiers, plan).run())
    }

    @Test("the checker finds planted mistakes, and none in a client without a cache")
    func theCheckerFindsOnlyPlantedMistakes() throws {
        let origin = try FleetOrigin(hasReplicas: false)
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
