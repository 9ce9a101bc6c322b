/// The limits and timeouts for the calls of an origin.
public struct OriginLimits: Hashable, Sendable {
    /// The maximum duration of a call, in milliseconds. After that, the call fails.
    public var call = 2_000
    /// The maximum time for connecting, in milliseconds.
    public var connect = 1_000
    /// The interval between the heartbeats of each server, in milliseconds.
    public var heartbeat = 250
    /// The maximum time to wait for the reply to a heartbeat, in milliseconds. After that, the server is no longer
    /// trusted to report changes.
    public var heartbeatLimit = 500
    /// The maximum length of a value, in bytes.
    public var valueBytes = 64 << 20
    /// The maximum number of pending requests at each server. Further ones fail at once.
    public var callsWaiting = 100_000
    /// After ``failuresBeforeRest`` consecutive failures of a server, requests to it fail at once for ``rest``
    /// milliseconds. Then one request is tried.
    public var failuresBeforeRest = 5
    public var rest = 1_000

    public init() {}

    /// The staleness limit, in milliseconds. For at most this long after the origin has acknowledged a write to any
    /// client, a read of a verified entry may return the previous value.
    public var staleness: Int { heartbeat + heartbeatLimit }
}
