import LarderPlatform
import LarderTestSupport
import Testing

/// A cluster behind a proxy, shared by all rounds of a checker.
final class FleetOrigin: Sendable {
    let cluster: RedisCluster
    let proxy: FaultProxy

    /// - Parameter program: the server program; nil for the installed one.
    init(hasReplicas: Bool, program: String? = nil) throws {
        cluster = try RedisCluster(replicas: hasReplicas ? 3 : 0, isDurable: true, program: program)
        proxy = try FaultProxy(to: cluster.servers.map(\.port))
        try cluster.announce(ports: proxy.ports)
    }

    deinit { proxy.stop() }

    var url: String { "redis+cluster://" + proxy.ports.map { "127.0.0.1:\($0)" }.joined(separator: ",") }

    /// The total number of GETs that all nodes have received.
    func gets() throws -> Int {
        try cluster.nodes.map { node in
            let text = try cluster.text(node, ["INFO", "commandstats"])
            return text.firstMatch(of: /cmdstat_get:calls=(\d+)/).flatMap { Int($0.output.1) } ?? 0
        }.reduce(0, +)
    }

    // MARK: Rounds

    /// The number of rounds of each kind: `LARDER_FLEET_ROUNDS`, or 2 if it is not set.
    static var rounds: Int { TestSetting.fleetRounds.number() ?? 2 }

    /// Returns the findings of the checker for a tier that is cut off from the origin after it has cached a key. The
    /// key is written again. After more time than the bound, it is read from the tier.
    func silence(_ tier: any FleetTier) throws -> [FleetFinding.Kind] {
        let client = try tier.connect()
        var history = FleetHistory()
        for version in 1...2 {
            let sent = MonotonicClock.milliseconds()
            #expect(try cluster.call(key: "k", "SET k \(version)") == "+OK\r\n")
            history.writes.append(
                .init(key: "k", version: version, sent: sent, acknowledged: MonotonicClock.milliseconds()))
            guard version == 1 else { break }
            // Wait until the tier trusts its entry: before that, it sends a request to the origin for each read.
            var asked = -1
            while try gets() != asked {
                asked = try gets()
                #expect(try client.call("GET k") == "$1\r\n1\r\n")
            }
            proxy.set(.freeze([.toClient]))
        }
        let end = MonotonicClock.milliseconds() + FleetJudge.standard.bound + 1
        while MonotonicClock.milliseconds() < end { nap() }
        let sent = MonotonicClock.milliseconds()
        let reply = try client.call(["GET", "k"])
        let version = Int(String(decoding: RawReply.bulk(reply), as: UTF8.self))
        history.reads.append(
            .init(
                tier: 0, connection: 0, key: "k", sent: sent, answered: sent,
                answer: version.map { .version($0) } ?? .refused(String(decoding: reply, as: UTF8.self))))
        return FleetJudge.standard.judge(history).findings.map(\.kind)
    }

    /// Runs and prints one round, and records its findings as issues.
    /// - Parameters:
    ///   - seed: with `LARDER_FLEET_ROUNDS=1`, repeats the same round.
    ///   - kind: a description of the tiers for the output.
    func round(_ seed: UInt64, _ tiers: [any FleetTier], _ plan: FleetRound.Plan, _ kind: String) throws {
        let history = try FleetRound("\(seed)", cluster, proxy, tiers, plan).run()
        let verdict = FleetJudge.standard.judge(history)
        print(
            "fleet round LARDER_SEED=\(seed): \(kind) \(plan.faults); \(verdict.reads) reads, \(verdict.refused) "
                + "refused, the stalest \(verdict.worstStaleness) ms, the longest call \(verdict.longestCall) ms, "
                + "the longest wait for a turn \(history.machineDelay) ms")
        #expect(verdict.reads > verdict.refused, "all reads were refused")
        guard !verdict.findings.isEmpty else { return }
        let first = verdict.findings.prefix(5).map(\.description).joined(separator: "\n")
        Issue.record(
            "LARDER_SEED=\(seed) LARDER_FLEET_ROUNDS=1 \(kind) \(plan.faults): \(verdict.findings.count) findings:\n\(first)"
        )
    }
}

extension FleetJudge {
    /// `bound` is the default interval of heartbeats plus the default limit for their replies. `limit` is the time
    /// limit that each call sets, plus time for both directions: more with sanitizers, which slow each step down.
    static let standard = FleetJudge(bound: 750, limit: 2000 + (TestSetting.sanitized.isSet ? 1000 : 100))
}
