/// How a client connects and waits. A value.
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
    /// The number of connections for the calls of one database, 1 to 16. The default is 1, which many tasks can share;
    /// more connections help with large values.
    public var connections: Int
    /// The number of connections that transactions and ``LarderClient/withConnection(_:)`` may use concurrently, for
    /// each database, 1 to 1,024. The default is 8; further callers wait, for as long as a call may take.
    public var ownConnectionsMax: Int
    /// Keeps entries that were read in this process: see ``NearCacheOptions``. Nil, the default, for no near cache.
    /// With a redis-server instead of larderd it may be wrong after a `SWAPDB`, which Redis does not report.
    public var nearCache: NearCacheOptions?
    /// User IDs whose daemons are trusted at any socket path. Empty by default.
    ///
    /// Daemons of root and of this process's own user are always trusted. So are those of a user to whom root or the
    /// own user has given the socket's location, such as `/run/larder`: a directory, or the socket, that belongs to the
    /// daemon's user, below directories that only root or the own user can write to. Nothing is sent to any other
    /// daemon, such as one whose user was first at a path in `/tmp`.
    public var trustedUsers: Set<UInt32>

    /// Called when a background fetch has failed, with the database, the key (printable, and cut to 64 bytes) and the
    /// error. From any thread. The default is nil.
    public var onFailedRefresh: (@Sendable (_ database: String, _ key: String, _ error: any Error) -> Void)?

    /// Called when an entry counts as missing for a call with a closure because it is not a model of the cache's type,
    /// with the database, the key (printable, and cut to 64 bytes) and the error. From any thread. The default is nil.
    public var onUndecodable: (@Sendable (_ database: String, _ key: String, _ error: any Error) -> Void)?

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
    /// The time limit of an update without a number of attempts; nil for no limit.
    var updateMilliseconds: Int? { timeoutMilliseconds == 0 ? nil : timeoutMilliseconds }

    func check(_ path: String) throws(LarderClientError) {
        func check(_ isPossible: Bool, _ message: String) throws(LarderClientError) {
            guard !isPossible else { return }
            throw LarderClientError(.invalidArgument, message, operation: "connect", socketPath: path)
        }
        try check(
            (0...Self.timeoutMillisecondsMax).contains(reconnectPatienceMilliseconds),
            "reconnectPatienceMilliseconds must be from 0 to \(Self.timeoutMillisecondsMax)")
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
