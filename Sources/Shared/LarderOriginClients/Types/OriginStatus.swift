/// The state of an origin and its counters. Counters only grow.
public struct OriginStatus: Sendable {
    /// A server of the origin.
    public struct Server: Sendable {
        /// Its address.
        public var name = ""
        /// Whether it accepts requests now.
        public var isUp = false
        /// How often it became trusted; 0 if it never was.
        public var beliefs = 0
        /// Its epoch.
        public var epoch: UInt32 = 0
        /// When it became unavailable, in nanoseconds of the monotonic clock; nil if it is available.
        public var downSince: Int64?
        /// The last error, if the server is not up.
        public var lastError: String?
        /// The round-trip time of the last heartbeat, in microseconds.
        public var heartbeatMicroseconds: Int64 = 0

        public init() {}
    }

    public var servers: [Server] = []
    /// The numbers of keys read, and of absent ones among them.
    public var reads = 0
    public var absentReads = 0
    /// The number of writes, removals and other commands.
    public var commands = 0
    /// The numbers of failed calls, and of timeouts among them.
    public var failures = 0
    public var timeouts = 0
    /// The number of keys that the origin has invalidated.
    public var invalidations = 0
    /// The number of epochs that have ended.
    public var epochsEnded = 0
    /// The number of MOVED and ASK redirections.
    public var redirections = 0

    public init() {}
}
