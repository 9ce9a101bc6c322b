/// The options of a client: how it connects, and how long it waits. A value type.
public struct ClientOptions: Sendable {
    /// The longest time limit: a day.
    public static let timeoutMillisecondsMax = 86_400_000

    /// The database of the client's own calls; nil, the default, for the server's default, `0`.
    public var database: String?
    /// The daemon's password (`--password-file`); nil, the default, if it has none.
    public var password: String?
    /// How long a call may take in total, in milliseconds, 1 to ``timeoutMillisecondsMax``; 0 for no limit. The default
    /// is 5,000.
    public var timeoutMilliseconds: Int
    /// How long a call waits for a lost connection to be replaced before it throws, in milliseconds, 0 to
    /// ``timeoutMillisecondsMax``. The default is 1,000.
    public var reconnectPatienceMilliseconds: Int
    /// How long ``LarderClient/connect(socketPath:options:)`` waits for a daemon that is not running yet, in
    /// milliseconds, 0 to ``timeoutMillisecondsMax``. The default is 0: the call throws `noDaemon` at once.
    public var startPatienceMilliseconds = 0
    /// The number of connections for the calls of one database, 1 to 16. The default is 1, which many tasks can share;
    /// more connections help with large values.
    public var connections: Int
    /// The number of connections that transactions and ``LarderClient/withConnection(_:)`` may use concurrently, for
    /// each database, 1 to 1,024. The default is 8. Further callers wait for at most ``timeoutMilliseconds``.
    public var ownConnectionsMax: Int
    /// The limits of the near cache, which keeps entries in this process's memory after they were read; nil, the
    /// default, for no near cache. With redis-server instead of larderd, the near cache may return wrong values after
    /// `SWAPDB`, which Redis does not report.
    public var nearCache: NearCacheOptions?
    /// User IDs whose daemons are trusted at any socket path. Empty by default.
    ///
    /// Daemons of root and of this process's own user are always trusted. The daemon of another user is also trusted if
    /// that user owns the socket, or a directory above it such as `/run/larder`. The directories further up must then
    /// be writable only by root and this process's own user. Nothing is sent to any other daemon, for example a daemon
    /// that another user has started at the socket's path in `/tmp`.
    public var trustedUsers: Set<UInt32>

    /// A handler for events, called on any thread: a connection was made or lost, a background fetch has failed, or an
    /// entry's value is not a model of the cache's type, so that a fetch or an update treats it as missing. The default
    /// is nil.
    public var onEvent: (@Sendable (CacheEvent) -> Void)?
    /// A handler for measurements, called on any thread: `larder.client.duration` for each request and its reply, and
    /// `larder.fetch.duration` for fetch closures, in seconds. The default is nil, and then nothing is measured.
    public var onMeasurement: (@Sendable (CacheMeasurement) -> Void)?
    /// A handler for calls that leave the process, for tracing: requests (`larder.client`) and fetch closures
    /// (`larder.fetch`). It is called in the task that makes the call, before the call, and returns a closure that is
    /// called after it. The default is nil.
    public var onCall: (@Sendable (CacheCall) -> CacheCall.End)?

    /// Creates options. Each parameter is described at the property of its name; set the other properties afterwards.
    public init(
        database: String? = nil, password: String? = nil, timeoutMilliseconds: Int = 5_000,
        reconnectPatienceMilliseconds: Int = 1_000,
        connections: Int = 1, ownConnectionsMax: Int = 8, nearCache: NearCacheOptions? = nil,
        trustedUsers: Set<UInt32> = []
    ) {
        self.database = database
        self.password = password
        self.timeoutMilliseconds = timeoutMilliseconds
        self.reconnectPatienceMilliseconds = reconnectPatienceMilliseconds
        self.connections = connections
        self.ownConnectionsMax = ownConnectionsMax
        self.nearCache = nearCache
        self.trustedUsers = trustedUsers
    }
}

extension ClientOptions {
    func check(_ path: String) throws(LarderClientError) {
        func check(_ isPossible: Bool, _ message: String) throws(LarderClientError) {
            guard !isPossible else { return }
            throw LarderClientError(.invalidArgument, message, operation: "connect", socketPath: path)
        }
        try check(
            (0...Self.timeoutMillisecondsMax).contains(reconnectPatienceMilliseconds),
            "reconnectPatienceMilliseconds must be from 0 to \(Self.timeoutMillisecondsMax)")
        try check(
            (0...Self.timeoutMillisecondsMax).contains(startPatienceMilliseconds),
            "startPatienceMilliseconds must be from 0 to \(Self.timeoutMillisecondsMax)")
        try check((1...16).contains(connections), "connections must be from 1 to 16")
        try check((1...1024).contains(ownConnectionsMax), "ownConnectionsMax must be from 1 to 1024")
        if let nearCache {
            try check((1...16_777_216).contains(nearCache.entriesMax), "entriesMax must be from 1 to 16777216")
            try check(nearCache.bytesMax >= 1, "bytesMax is \(nearCache.bytesMax), and must be at least 1")
            let age = nearCache.ageMillisecondsMax ?? .max
            try check(age >= 1, "ageMillisecondsMax is \(age), and must be at least 1; nil for no limit")
        }
    }
}

/// The limits of a near cache. A value type.
public struct NearCacheOptions: Hashable, Sendable {
    /// The maximum number of entries, 1 to 16,777,216. The default is 10,000.
    public var entriesMax: Int
    /// The maximum number of bytes for keys and encoded values, plus about 160 bytes for each entry; at least 1. The
    /// default is 16 MiB. Decoded models may need more memory than their encoding.
    public var bytesMax: Int
    /// The maximum age of an entry in milliseconds, at least 1, independent of its deadline; nil, the default, for no
    /// limit.
    public var ageMillisecondsMax: Int?
    /// Whether to remember, for up to a minute, that a key has no entry. In the limits, such a key counts as an entry
    /// without a value. The default is true.
    public var keepsAbsences: Bool

    /// Creates limits. Each parameter is described at the property of its name.
    public init(
        entriesMax: Int = 10_000, bytesMax: Int = 16 << 20, ageMillisecondsMax: Int? = nil,
        keepsAbsences: Bool = true
    ) {
        (self.entriesMax, self.bytesMax) = (entriesMax, bytesMax)
        (self.ageMillisecondsMax, self.keepsAbsences) = (ageMillisecondsMax, keepsAbsences)
    }
}

/// The statistics of a near cache. A value type.
public struct NearCacheStatistics: Hashable, Sendable {
    /// The current number of entries, including keys that are known to have no entry.
    public let entries: Int
    /// The size of the entries in bytes: see ``NearCacheOptions/bytesMax``.
    public let bytes: Int
    /// The number of reads that needed no round trip.
    public let hits: Int
    /// The number of reads that needed a round trip.
    public let misses: Int
    /// The number of changed keys that the daemon has reported; a report for all keys counts as one.
    public let invalidations: Int
    /// The number of entries that were evicted.
    public let evictions: Int
    /// Whether the daemon currently reports changes: false before the first connection and while the connection is
    /// lost.
    public let isLive: Bool
}
