/// How the larders of a fleet detect that an entry differs from the origin's value.
enum FleetMode: String, CaseIterable, Sendable {
    /// The origin alone, without larders.
    case none
    /// The origin records which keys each client has read, and notifies only these clients.
    case tracking
    /// The origin notifies every client of every write.
    case broadcast
    /// There are no notifications: entries expire after their lifetimes.
    case lifetimes
    /// One larder per rack tracks keys at the origin, and the machines of the rack track keys at that larder.
    case relay
    /// Like `relay`, but the origin notifies each relay of every write.
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

    /// The modes with larders, starting with the most exact and simplest.
    static let kept: [FleetMode] = [.tracking, .broadcast, .lifetimes, .relay, .relayByBroadcast]

    var isTracked: Bool { self == .tracking || self == .relay }
    var isBroadcast: Bool { self == .broadcast || self == .relayByBroadcast }
    var hasHeartbeat: Bool { isTracked || isBroadcast }
    var hasRelays: Bool { self == .relay || self == .relayByBroadcast }
}

/// The benefits and costs of a mode in one fleet.
struct FleetFigures: Equatable {
    /// The share of reads that a machine serves without a request.
    var hitRatio = 0.0
    /// The GETs per second at the origin, over all nodes.
    var gets = 0.0
    var pushes = 0.0
    /// The number of keys in the origin's tracking table.
    var trackedKeys = 0.0
    var trackedPairs = 0.0
    /// The invalidations per second that one machine receives.
    var pushesPerMachine = 0.0
    /// The load of each node: its connections, its memory for tracking, and its CPU time in cores.
    var connections = 0.0
    var trackingMiB = 0.0
    var cores = 0.0
    /// The maximum age of a read in milliseconds; infinite if there is no maximum.
    var bound = 0.0

    /// The first limit of a node that is exceeded; nil if there is none.
    func broken(_ inputs: FleetInputs) -> String? {
        if connections > Double(inputs.connectionsMax) { return "connections" }
        if trackingMiB > inputs.trackingMiBMax { return "tracking memory" }
        return cores > inputs.coreMax ? "CPU" : nil
    }
}
