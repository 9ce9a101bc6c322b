/// The inputs of the model of a fleet: the load, the tiers of a machine, the origin, and its costs.
struct FleetInputs: Equatable {
    var showsHelp = false

    // MARK: Load

    var machines = [10, 1_000, 100_000]
    var keys = 1_000_000
    /// The exponent for reads: the key of rank k is read with a probability proportional to 1 / k^exponent.
    var readExponent = 1.0
    /// The exponent for writes, with the ranks of the reads. With 0, all keys are written equally often.
    var writeExponent = 1.0
    /// The number of operations of one machine per second.
    var rate = 100.0
    /// The share of operations that are writes.
    var writeShare = 0.000_01
    var valueBytes = 1024

    // MARK: A machine

    var memoryMiB = 256
    var diskGiB = 16
    /// The bytes of an entry in a tier in addition to its value.
    var entryBytes = 100
    /// The lifetime of entries in seconds, for the mode without notifications.
    var lifetime = 60.0
    /// The interval of heartbeats, and the time limit of their reply, in milliseconds.
    var heartbeat = 250.0
    var heartbeatLimit = 500.0
    /// The number of machines that share one relay.
    var rack = 40

    // MARK: The origin

    /// The number of primaries.
    var nodes = 16
    /// A node's CPU time in microseconds: for a GET or a SET; for tracking the key of a GET; for sending an
    /// invalidation; for a PING.
    var getCost = 9.0
    var trackCost = 1.4
    var pushCost = 4.0
    var pingCost = 9.0
    /// Bytes of a node's tracking table for each key, and for each client of a key.
    var trackedKeyBytes = 50.0
    var trackedPairBytes = 50.0
    /// `tracking-table-max-keys` of each node; 0 for no limit.
    var tableMax = 1_000_000

    // MARK: Limits of a node

    /// The maximum share of a node's one core.
    var coreMax = 0.7
    var connectionsMax = 10_000
    var trackingMiBMax = 1024.0

    var memoryEntries: Double { Double(memoryMiB << 20) / Double(valueBytes + entryBytes) }
    var diskEntries: Double { Double(diskGiB << 30) / Double(valueBytes + entryBytes) }
    /// How long after a write's acknowledgement a read may return the old value, in milliseconds, over one connection.
    var bound: Double { heartbeat + heartbeatLimit }
}
