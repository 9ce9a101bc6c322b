/// The state of an origin and its counters. Counters never decrease.
public struct OriginStatus: Sendable {
    /// A server of the origin.
    public struct Server: Sendable {
        /// The address of the server.
        public var name = ""
        /// Whether the server is connected, and trusted to report changes.
        public var isUp = false
        /// How many times the server became trusted to report changes.
        public var recoveries = 0
        /// The epoch of the server: see ``OriginStamp/epoch``.
        public var epoch: UInt32 = 0
        /// When the server became unavailable, in nanoseconds of the monotonic clock; nil if it is available.
        public var downSince: Int64?
        /// The last error, if the server is not up.
        public var lastError: String?
        /// The round-trip time of the last heartbeat, in microseconds.
        public var heartbeatMicroseconds: Int64 = 0

        public init() {}
    }

    public var servers: [Server] = []
    /// The number of keys that were read, and the number of absent keys among them.
    public var reads = 0
    public var absentReads = 0
    /// The number of writes, removals and other commands.
    public var commands = 0
    /// The number of failed calls, and the number of timeouts among them.
    public var failures = 0
    public var timeouts = 0
    /// The number of keys for which the origin has sent an invalidation.
    public var invalidations = 0
    /// The number of epochs that have ended: see ``OriginStamp``.
    public var epochsEnded = 0
    /// The number of MOVED and ASK redirections.
    public var redirections = 0

    public init() {}
}
