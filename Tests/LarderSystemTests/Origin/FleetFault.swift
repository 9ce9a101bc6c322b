import LarderPlatform
import LarderTestSupport

/// The faults that a round applies to the origin and its connections, one after the other. Each concerns the primary of
/// a key.
enum FleetFault: Sendable, CustomStringConvertible {
    case proxy(FaultProxy.Fault, key: String, milliseconds: Int)
    /// A network fault between clients and the primary of a key, during another fault.
    indirect case during(FaultProxy.Fault, key: String, FleetFault)
    case cut(key: String, byReset: Bool)
    case halfClose(key: String, FaultProxy.Direction)
    /// SIGSTOP of the primary of a key. SIGCONT follows after a time, or after a failover to another node.
    case freeze(key: String, milliseconds: Int, untilFailover: Bool)
    /// SIGKILL of the primary of a key. A restart follows after a time, or after a failover to another node.
    case kill(key: String, milliseconds: Int, untilFailover: Bool)
    /// The slot of a key is moved to another primary.
    case move(key: String, shift: Int)
    case restartAll

    static func random(_ keys: [String], hasReplicas: Bool, _ random: inout SeededGenerator) -> FleetFault {
        let key = keys[random.below(keys.count)]
        let time = [100, 400, 700, 1200, 2500][random.below(5)]
        switch random.below(16) {
        case 0...4: return .proxy(proxyFault(&random), key: key, milliseconds: time)
        case 5: return .proxy(.refusal, key: key, milliseconds: time)
        case 6: return .cut(key: key, byReset: random.oneIn(2))
        case 7: return .halfClose(key: key, random.oneIn(2) ? .toClient : .toServer)
        case 8, 9: return .freeze(key: key, milliseconds: time, untilFailover: hasReplicas && random.oneIn(2))
        case 10, 11: return .kill(key: key, milliseconds: time, untilFailover: hasReplicas && random.oneIn(2))
        case 12: return .restartAll
        case 13: return .during(proxyFault(&random), key: key, self.random(keys, hasReplicas: hasReplicas, &random))
        default: return .move(key: key, shift: 1 + random.below(2))
        }
    }

    /// A random fault of the connections to a server.
    private static func proxyFault(_ random: inout SeededGenerator) -> FaultProxy.Fault {
        switch random.below(7) {
        case 0: .delay(20 + random.below(200), jitter: random.below(200))
        case 1: .freeze()
        case 2: .freeze([.toClient])
        case 3: .freeze([.toServer])
        case 4: .blackHole()
        case 5: .blackHole([random.oneIn(2) ? .toClient : .toServer])
        default: .reorder(byUpTo: 50 + random.below(500))
        }
    }

    var description: String {
        switch self {
        case .proxy(let fault, let key, let time): "\(key)'s way for \(time) ms: \(Self.text(fault))"
        case .during(let fault, let key, let other): "(\(other)) while \(key)'s way: \(Self.text(fault))"
        case .cut(let key, let byReset): "cut \(key)'s way\(byReset ? " by reset" : "")"
        case .halfClose(let key, let direction): "half-close \(key)'s way \(direction)"
        case .freeze(let key, let time, let waits):
            "SIGSTOP of \(key)'s primary \(waits ? "until failover" : "\(time) ms")"
        case .kill(let key, let time, let waits):
            "SIGKILL of \(key)'s primary \(waits ? "until failover" : "\(time) ms")"
        case .move(let key, let shift): "move \(key)'s slot by \(shift)"
        case .restartAll: "restart of all"
        }
    }

    private static func text(_ fault: FaultProxy.Fault) -> String {
        var words: [String] = []
        if fault.delay + fault.jitter > 0 { words.append("delay \(fault.delay)+\(fault.jitter) ms") }
        if !fault.holds.isEmpty { words.append("frozen \(names(fault.holds))") }
        if !fault.loses.isEmpty { words.append("lost \(names(fault.loses))") }
        if fault.refuses { words.append("refused") }
        if fault.isForEverySecondConnection { words.append("every second connection") }
        return words.isEmpty ? "nothing" : words.joined(separator: ", ")
    }

    private static func names(_ directions: Set<FaultProxy.Direction>) -> String {
        directions.map { "\($0)" }.sorted().joined(separator: " and ")
    }

    /// Applies the fault, and reverts it.
    /// - Returns: the times in which the origin itself may have returned wrong values.
    func happen(_ cluster: RedisCluster, _ proxy: FaultProxy) throws -> [FleetHistory.Doubt] {
        switch self {
        case .proxy(let fault, let key, let time):
            let node = try cluster.primary(ofKey: key)
            proxy.set(fault, on: node)
            Self.pause(time)
            proxy.set(.none, on: node)
        case .during(let fault, let key, let other):
            let node = try cluster.primary(ofKey: key)
            proxy.set(fault, on: node)
            defer { proxy.set(.none, on: node) }
            return try other.happen(cluster, proxy)
        case .cut(let key, let byReset): proxy.cut(try cluster.primary(ofKey: key), byReset: byReset)
        case .halfClose(let key, let direction): proxy.halfClose(try cluster.primary(ofKey: key), direction)
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
        // There may have been a failover, intended or not. The origin may have lost writes that no replica had. After
        // its return, the old primary may have replied with old data until it learned of the new primary.
        let ready = MonotonicClock.milliseconds()
        return [
            .init(from: from, to: ready, isAboutReads: false), .init(from: back, to: ready, isAboutReads: true),
        ]
    }

    /// Waits for the duration of a fault.
    private static func pause(_ milliseconds: Int) {
        WorkThread.sleep(nanoseconds: UInt64(milliseconds) * 1_000_000)
    }
}
