/// How larders of a fleet learn that an entry is no longer what the origin has.
enum FleetMode: String, CaseIterable, Sendable {
    /// Nothing but the origin.
    case none
    /// The origin remembers who read what.
    case tracking
    /// The origin tells everybody of every write.
    case broadcast
    /// Nobody tells anything: entries end with their time.
    case lifetimes
    /// One larder for each rack tracks at the origin, and the machines of the rack track at it.
    case relay
    /// The same, with the origin telling each relay of every write.
    case relayByBroadcast

    var title: String {
        switch self {
        case .none: "no larder"
        case .tracking: "tracking"
        case .broadcast: "broadcast"
        case .lifetimes: "plain lifetimes"
        case .relay: "relays, tracking"
        case .relayByBroadcast: "relays, broadcast"
        }
    }

    /// The ways to keep entries, from the most exact and simplest on.
    static let kept: [FleetMode] = [.tracking, .broadcast, .lifetimes, .relay, .relayByBroadcast]

    var isTracked: Bool { self == .tracking || self == .relay }
    var isBroadcast: Bool { self == .broadcast || self == .relayByBroadcast }
    var hasHeartbeat: Bool { isTracked || isBroadcast }
    var hasRelays: Bool { self == .relay || self == .relayByBroadcast }
}

/// What a mode gives and costs in one fleet.
struct FleetFigures: Equatable {
    /// The share of reads that a machine answers by itself.
    var hitRatio = 0.0
    /// At the origin, in a second, over all nodes.
    var gets = 0.0
    var pushes = 0.0
    /// At the origin: what its tracking table holds.
    var trackedKeys = 0.0
    var trackedPairs = 0.0
    /// Invalidations that one machine takes in a second.
    var pushesPerMachine = 0.0
    /// Of each node.
    var connections = 0.0
    var trackingMiB = 0.0
    var cores = 0.0
    /// In milliseconds; infinite where there is none.
    var bound = 0.0

    /// What a node cannot take, the first of it; nil where it can take all.
    func broken(_ inputs: FleetInputs) -> String? {
        if connections > Double(inputs.connectionsMax) { return "connections" }
        if trackingMiB > inputs.trackingMiBMax { return "tracking memory" }
        return cores > inputs.coreMax ? "processor" : nil
    }
}
