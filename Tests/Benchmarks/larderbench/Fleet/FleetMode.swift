/// How larders of a fleet learn that an entry is no longer what the origin has.
enum FleetMode: String, CaseIterable, Sendable {
    /// Nothing but the origin.
    case none
    /// The origin remembers who read what.
    case tracking
    /// The origin notifies every client of every write.
    case broadcast
    /// There are no notifications: entries end with their lifetimes.
    case lifetimes
    /// One larder for each rack tracks at the origin, and the machines of the rack track at it.
    case relay
    /// The same, with the origin notifying each relay of every write.
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

/// The benefits and costs of a mode in one fleet.
struct FleetFigures: Equatable {
    /// The share of reads that a machine answers by itself.
    var hitRatio = 0.0
    /// At the origin, in a second, over all nodes.
    var gets = 0.0
    var pushes = 0.0
    /// At the origin: the number of keys in its tracking table.
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

    /// The first limit of a node that is exceeded; nil if none is.
    func broken(_ inputs: FleetInputs) -> String? {
        if connections > Double(inputs.connectionsMax) { return "connections" }
        if trackingMiB > inputs.trackingMiBMax { return "tracking memory" }
        return cores > inputs.coreMax ? "processor" : nil
    }
}
