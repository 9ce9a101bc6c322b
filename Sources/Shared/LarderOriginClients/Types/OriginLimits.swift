/// The limits of an origin.
public struct OriginLimits: Hashable, Sendable {
    /// The longest time for a call, in milliseconds; then it fails.
    public var call = 2_000
    /// The longest time for connecting, in milliseconds.
    public var connect = 1_000
    /// The interval between the heartbeats of each server, in milliseconds.
    public var heartbeat = 250
    /// The longest wait for a heartbeat's reply, in milliseconds. After that, the server's invalidations are considered
    /// lost.
    public var heartbeatLimit = 500
    /// The longest value that is accepted, in bytes.
    public var valueBytes = 64 << 20
    /// The most calls that wait for each server; further calls fail at once.
    public var callsWaiting = 100_000
    /// The number of consecutive failures that open a server's circuit, and the time it stays open, in milliseconds,
    /// before one call tries it.
    public var failuresBeforeRest = 5
    public var rest = 1_000

    public init() {}

    /// The staleness bound, in milliseconds: a read of a verified entry may miss a write for at most this long after
    /// the write was acknowledged anywhere.
    public var staleness: Int { heartbeat + heartbeatLimit }
}
