import Platform
import TestSupport

/// What a round does to the origin and the way there, one after the other.
enum FleetFault: Sendable, CustomStringConvertible {
    case proxy(FaultProxy.Fault, node: Int, milliseconds: Int)
    case cut(node: Int, byReset: Bool)
    case halfClose(node: Int, FaultProxy.Direction)
    /// SIGSTOP of the primary of a key, and SIGCONT after a time, or after another has taken over.
    case freeze(key: String, milliseconds: Int, untilFailover: Bool)
    /// SIGKILL of the primary of a key, and a start after a time, or after another has taken over.
    case kill(key: String, milliseconds: Int, untilFailover: Bool)
    /// The slot of a key goes to another primary.
    case move(key: String, shift: Int)
    case restartAll

    static func random(_ keys: [String], nodes: Int, hasReplicas: Bool, _ random: inout SeededGenerator) -> FleetFault {
        let (node, key) = (random.below(nodes), keys[random.below(keys.count)])
        let time = [100, 400, 700, 1200, 2500][random.below(5)]
        switch random.below(14) {
        case 0: return .proxy(.delay(20 + random.below(200), jitter: random.below(200)), node: node, milliseconds: time)
        case 1, 2: return .proxy(.freeze(), node: node, milliseconds: time)
        case 3: return .proxy(.freeze([.toClient]), node: node, milliseconds: time)
        case 4: return .proxy(.blackHole(), node: node, milliseconds: time)
        case 5: return .proxy(.blackHole([random.oneIn(2) ? .toClient : .toServer]), node: node, milliseconds: time)
        case 6: return .proxy(.refusal, node: node, milliseconds: time)
        case 7: return .proxy(.reorder(byUpTo: 50 + random.below(500)), node: node, milliseconds: time)
        case 8: return .cut(node: node, byReset: random.oneIn(2))
        case 9: return .halfClose(node: node, random.oneIn(2) ? .toClient : .toServer)
        case 10: return .freeze(key: key, milliseconds: time, untilFailover: hasReplicas && random.oneIn(2))
        case 11: return .kill(key: key, milliseconds: time, untilFailover: hasReplicas && random.oneIn(2))
        case 12: return .move(key: key, shift: 1 + random.below(2))
        default: return random.oneIn(3) ? .restartAll : .move(key: key, shift: 1)
        }
    }

    var description: String {
        switch self {
        case .proxy(let fault, let node, let time):
            "node \(node) for \(time) ms: delay \(fault.delay)+\(fault.jitter) holds \(fault.holds) loses \(fault.loses)"
                + (fault.refuses ? " refuses" : "") + (fault.isForEverySecondConnection ? " every second" : "")
        case .cut(let node, let byReset): "cut \(node)\(byReset ? " by reset" : "")"
        case .halfClose(let node, let direction): "half-close \(node) \(direction)"
        case .freeze(let key, let time, let waits):
            "SIGSTOP of \(key)'s primary \(waits ? "until failover" : "\(time) ms")"
        case .kill(let key, let time, let waits):
            "SIGKILL of \(key)'s primary \(waits ? "until failover" : "\(time) ms")"
        case .move(let key, let shift): "move \(key)'s slot by \(shift)"
        case .restartAll: "restart of all"
        }
    }

    /// Does it, and undoes it.
    /// - Returns: when the origin itself may have been wrong.
    func happen(_ cluster: RedisCluster, _ proxy: FaultProxy) throws -> [FleetHistory.Doubt] {
        switch self {
        case .proxy(let fault, let node, let time):
            proxy.set(fault, on: node)
            Self.pause(time)
            proxy.set(.none, on: node)
        case .cut(let node, let byReset): proxy.cut(node, byReset: byReset)
        case .halfClose(let node, let direction): proxy.halfClose(node, direction)
        case .freeze(let key, let time, let waits):
            return try down(cluster, key, time, waits, { cluster.freeze($0) }, { cluster.thaw($0) })
        case .kill(let key, let time, let waits):
            return try down(cluster, key, time, waits, { cluster.kill($0) }, { try cluster.restart($0) })
        case .move(let key, let shift):
            let primaries = try cluster.upNodes.filter { try cluster.view($0).own?.slots.isEmpty == false }
            let source = try cluster.primary(ofKey: key)
            guard let index = primaries.firstIndex(of: source) else { return [] }
            try cluster.moveSlot(ClusterSlot.of(key), to: primaries[(index + shift) % primaries.count])
        case .restartAll:
            let from = MonotonicClock.milliseconds()
            try cluster.restartAll()
            try cluster.waitUntilReady()
            return [.init(from: from, to: MonotonicClock.milliseconds(), isAboutReads: false)]
        }
        return []
    }

    private func down(
        _ cluster: RedisCluster, _ key: String, _ time: Int, _ waits: Bool, _ begin: (Int) -> Void,
        _ end: (Int) throws -> Void
    ) throws -> [FleetHistory.Doubt] {
        let slot = ClusterSlot.of(key)
        let node = try cluster.primary(ofSlot: slot)
        let hadReplicas = try !cluster.replicas(of: node).isEmpty
        let from = MonotonicClock.milliseconds()
        begin(node)
        if waits, hadReplicas { try cluster.waitForFailover(ofSlot: slot, from: node) } else { Self.pause(time) }
        let back = MonotonicClock.milliseconds()
        try end(node)
        try cluster.waitUntilReady()
        guard hadReplicas else { return [] }
        // There may have been a failover, wanted or not. The origin may have lost what no replica had; and from its return
        // on the old primary may have answered with what it had, until it heard of the new one.
        let ready = MonotonicClock.milliseconds()
        return [
            .init(from: from, to: ready, isAboutReads: false), .init(from: back, to: ready, isAboutReads: true),
        ]
    }

    /// How long a fault lasts.
    private static func pause(_ milliseconds: Int) {
        WorkThread.sleep(nanoseconds: UInt64(milliseconds) * 1_000_000)
    }
}
