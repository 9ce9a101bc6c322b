/// Limits of an origin.
public struct OriginLimits: Hashable, Sendable {
    /// The most that a call takes, in milliseconds; then it fails.
    public var call = 2_000
    /// The most that making a connection takes, in milliseconds.
    public var connect = 1_000
    /// How often each server is asked whether it is there, in milliseconds.
    public var heartbeat = 250
    /// How long it may take to answer that, in milliseconds; then what it has said is no longer believed.
    public var heartbeatLimit = 500
    /// The most bytes of a value that are taken.
    public var valueBytes = 64 << 20
    /// How many calls may wait for each server; further ones fail at once.
    public var callsWaiting = 100_000
    /// How many failures in a row have a server rest, and for how long, in milliseconds, before one call tries it.
    public var failuresBeforeRest = 5
    public var rest = 1_000

    public init() {}

    /// No read of a verified entry is older than this, in milliseconds, after a write was acknowledged anywhere.
    public var staleness: Int { heartbeat + heartbeatLimit }
}
