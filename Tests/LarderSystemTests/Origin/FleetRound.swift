import LarderPlatform
import LarderTestSupport

/// One round of the checker: writers and readers run while faults happen. Then all faults are reverted, and every tier
/// must recover.
///
/// Keys `k…` are written directly at the origin, and keys `t…` through the first tier. All keys are read through all
/// tiers. Keys `u…` are written once, through the first tier.
final class FleetRound: Sendable {
    struct Plan: Sendable {
        var faults: [FleetFault] = []
        var keys = 48
        /// Several readers, because a reader that waits for a dead node reads nothing else in that time.
        var readersPerTier = 6
        /// Whether the origin has replicas. If so, a write counts as durable only when a replica has it.
        var hasReplicas = false
        var writesThroughTier = true
        /// Whether the first tier acknowledges its writes before the origin has them.
        var writesBehind = false
        /// The pause before the first fault and between faults, in milliseconds.
        var rest = 150
        /// How long a tier may return wrong values after all faults were reverted, in milliseconds.
        var patience: Int64 = 30_000

        /// Returns a plan with a few faults, which affect some keys of the round with that name.
        static func random(_ name: String, hasReplicas: Bool, _ random: inout SeededGenerator) -> Plan {
            var plan = Plan(hasReplicas: hasReplicas)
            let keys = (0..<plan.keys).map { "k\($0):\(name)" }
            plan.faults = (0..<(2 + random.below(3))).map { _ in .random(keys, hasReplicas: hasReplicas, &random) }
            return plan
        }
    }

    private let cluster: RedisCluster
    private let proxy: FaultProxy
    private let tiers: [any FleetTier]
    private let plan: Plan
    private let history = Guarded(FleetHistory())
    private let isOver = Guarded(false)
    private let connections = Guarded(0)
    /// A part of the keys' names, so that each round has its own keys.
    private let name: String

    init(_ name: String, _ cluster: RedisCluster, _ proxy: FaultProxy, _ tiers: [any FleetTier], _ plan: Plan) {
        (self.name, self.cluster, self.proxy, self.tiers, self.plan) = (name, cluster, proxy, tiers, plan)
    }

    private var originKeys: [String] { (0..<plan.keys).map { "k\($0):\(name)" } }
    private var tierKeys: [String] { plan.writesThroughTier ? (0..<plan.keys / 3).map { "t\($0):\(name)" } : [] }
    private var keys: [String] { originKeys + tierKeys }

    /// Writes a key only if it is missing or has an older version, so that a delayed duplicate cannot undo a later
    /// write.
    private static let guardedSet = """
        local old = redis.call('GET', KEYS[1])
        if old and tonumber(string.match(old, '/(%d+)/')) >= tonumber(ARGV[2]) then return 0 end
        redis.call('SET', KEYS[1], ARGV[1]) return 1
        """

    func run() throws -> FleetHistory {
        var threads = [WorkThread(name: "fleet-write") { [self] in writeAtOrigin() }]
        threads.append(WorkThread(name: "fleet-watch") { [self] in history.noteDelays(until: isOver) })
        if plan.writesThroughTier { threads.append(WorkThread(name: "fleet-tier") { [self] in writeThroughTier() }) }
        for tier in tiers.indices {
            for number in 0..<plan.readersPerTier {
                threads.append(
                    WorkThread(name: "fleet-read") { [self] in read(tier, seed: UInt64(tier * 100 + number)) })
            }
        }
        defer {
            isOver.value = true
            for thread in threads { thread.join() }
        }
        for fault in plan.faults {
            WorkThread.sleep(nanoseconds: UInt64(plan.rest) * 1_000_000)
            let doubts = try fault.happen(cluster, proxy)
            history.with { $0.doubts += doubts }
        }
        proxy.set(.none)
        try cluster.waitUntilReady()
        WorkThread.sleep(nanoseconds: UInt64(plan.rest) * 1_000_000)
        isOver.value = true
        for thread in threads { thread.join() }
        threads = []
        for tier in tiers { tier.deliver() }
        try readFinal()
        return history.value
    }

    // MARK: Writers

    private static func value(_ key: String, _ version: Int) -> String { "\(key)/\(version)/\(version % 7)" }

    private func writeAtOrigin() {
        let client = ClusterClient(cluster)
        var random = SeededGenerator(seed: 7)
        var versions: [String: Int] = [:]
        while !isOver.value {
            let key = originKeys[random.below(originKeys.count)]
            let version = versions[key, default: 0] + 1
            versions[key] = version
            var write = FleetHistory.Write(key: key, version: version, sent: MonotonicClock.milliseconds())
            // Record the write before its reply arrives, because a reader may see it sooner.
            let place = history.with { history in
                history.writes.append(write)
                return history.writes.count - 1
            }
            let words = ["EVAL", Self.guardedSet, "1", key, Self.value(key, version), "\(version)"]
            let result = try? client.call(
                key, words, waitsFor: plan.hasReplicas ? 1 : 0, until: MonotonicClock.milliseconds() + 500)
            if let result {
                write.acknowledged = MonotonicClock.milliseconds()
                write.isDurable = !plan.hasReplicas || result.replicas > 0
                history.with { [write] in $0.writes[place] = write }
            }
            // Write so seldom that the tiers have cached most keys when a fault begins: only cached keys can become
            // stale.
            WorkThread.sleep(nanoseconds: 12_000_000)
        }
    }

    private func writeThroughTier() {
        var random = SeededGenerator(seed: 8)
        var versions: [String: Int] = [:]
        var client: SocketClient?
        var number = 0
        while !isOver.value {
            if client == nil { client = try? tiers[0].connect() }
            // Use a new key for every second write, so that no later write of the same key hides a lost one.
            number += 1
            let key = number % 2 == 0 ? "u\(number):\(name)" : tierKeys[random.below(tierKeys.count)]
            let version = versions[key, default: 0] + 1
            versions[key] = version
            var write = FleetHistory.Write(
                key: key, version: version, sent: MonotonicClock.milliseconds(), isByTier: true,
                isBehind: plan.writesBehind)
            let place = history.with { history in
                history.writes.append(write)
                return history.writes.count - 1
            }
            let reply = try? client?.call(["SET", key, Self.value(key, version)])
            write.answered = MonotonicClock.milliseconds()
            if reply == Array("+OK\r\n".utf8) {
                write.acknowledged = write.answered
                // This write does not wait for replicas, so a failover may lose it.
                write.isDurable = !plan.hasReplicas
            }
            if reply == nil { client = nil }
            history.with { [write] in $0.writes[place] = write }
            WorkThread.sleep(nanoseconds: 10_000_000)
        }
    }

    // MARK: Readers

    private func read(_ tier: Int, seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var client: SocketClient?
        var connection = 0
        var reads: [FleetHistory.Read] = []
        while !isOver.value {
            if client == nil {
                client = try? tiers[tier].connect()
                connection = connections.with { number in
                    number += 1
                    return number
                }
            }
            // Read some keys much more often than others, and sometimes several keys at once.
            let asked = (0..<(random.oneIn(6) ? 3 : 1)).map { _ in
                keys[min(random.below(keys.count), random.below(keys.count))]
            }
            let sent = MonotonicClock.milliseconds()
            let reply = try? client?.call([asked.count > 1 ? "MGET" : "GET"] + asked)
            let answered = MonotonicClock.milliseconds()
            if reply == nil { client = nil }
            for (key, part) in zip(asked, Self.parts(reply, asked.count)) {
                reads.append(
                    .init(
                        tier: tier, connection: connection, key: key, sent: sent, answered: answered,
                        answer: Self.answer(part, key), keys: asked.count))
            }
            WorkThread.sleep(nanoseconds: 4_000_000)
        }
        history.with { [reads] in $0.reads += reads }
    }

    /// Splits a reply into the replies for each key. If the whole command was refused, each part is that error.
    private static func parts(_ reply: [UInt8]?, _ count: Int) -> [[UInt8]?] {
        guard count > 1, let reply, reply.first == UInt8(ascii: "*") else {
            return .init(repeating: reply, count: count)
        }
        return RawReply.split(Array(reply.drop { $0 != 0x0A }.dropFirst()))
    }

    private static func answer(_ reply: [UInt8]?, _ key: String) -> FleetHistory.Answer {
        guard let reply else { return .refused("the connection was closed") }
        if reply == Array("$-1\r\n".utf8) { return .version(0) }
        let text = String(decoding: reply, as: UTF8.self)
        guard reply.first == UInt8(ascii: "$") else { return .refused(text) }
        let value = String(decoding: RawReply.bulk(reply), as: UTF8.self)
        guard let version = version(value, key) else { return .foreign(value) }
        return .version(version)
    }

    private static func version(_ value: String, _ key: String) -> Int? {
        let parts = value.split(separator: "/")
        guard parts.count == 3, parts[0] == key, let version = Int(parts[1]), value == self.value(key, version) else {
            return nil
        }
        return version
    }

    // MARK: The end

    /// Reads the contents of the origin when it works again. Every tier must return the same contents in the end.
    private func readFinal() throws {
        let client = ClusterClient(cluster)
        let single = history.value.writes.map(\.key).filter { $0.starts(with: "u") }
        for key in keys + single {
            let reply = try client.call(key, ["GET", key], until: MonotonicClock.milliseconds() + 10_000).reply
            history.with {
                $0.final[key] = Self.version(String(decoding: RawReply.bulk(reply), as: UTF8.self), key) ?? 0
            }
        }
        let end = MonotonicClock.milliseconds() + plan.patience
        for tier in tiers.indices {
            for key in keys {
                let wanted = FleetHistory.Answer.version(history.value.final[key] ?? 0)
                var answer = FleetHistory.Answer.refused("it cannot be connected to")
                repeat {
                    let reply = try? tiers[tier].connect().call(["GET", key])
                    answer = Self.answer(reply, key)
                    if answer != wanted { WorkThread.sleep(nanoseconds: 5_000_000) }
                } while answer != wanted && MonotonicClock.milliseconds() < end
                if answer != wanted {
                    history.with {
                        $0.late.append("tier \(tier) says \(answer) of \(key), and the origin \(wanted)")
                    }
                }
            }
        }
    }
}
