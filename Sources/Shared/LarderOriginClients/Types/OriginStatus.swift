/// How an origin is, and what has happened. Counters only grow.
public struct OriginStatus: Sendable {
    /// A server of the origin.
    public struct Server: Sendable {
        /// Its address.
        public var name = ""
        /// Whether it can be asked now.
        public var isUp = false
        /// How often it was believed anew: 0 if it never was.
        public var beliefs = 0
        /// Its epoch.
        public var epoch: UInt32 = 0
        /// Since when it cannot be asked, in nanoseconds of the monotonic clock; nil if it can.
        public var downSince: Int64?
        /// The last error, if it is not up.
        public var lastError: String?
        /// How long the last heartbeat took, in microseconds.
        public var heartbeatMicroseconds: Int64 = 0

        public init() {}
    }

    public var servers: [Server] = []
    /// Keys that were read, and how many of them were absent.
    public var reads = 0
    public var absentReads = 0
    /// Writes, removals and other commands.
    public var commands = 0
    /// Calls that failed, those that took too long among them.
    public var failures = 0
    public var timeouts = 0
    /// Keys that the origin said had changed.
    public var invalidations = 0
    /// How often an epoch has ended.
    public var epochsEnded = 0
    /// MOVED and ASK.
    public var redirections = 0

    public init() {}
}
