import RESP

/// A database of the daemon's larder, for models of one type: the asynchronous counterpart, in another process, of the
/// library's `Cache`.
///
/// ```swift
/// let readers = client.cache("userdb", of: Reader.self)
/// try await readers.set(reader, forKey: "reader", policy: .middle)
/// let reader = try await readers.value(forKey: "reader")
/// ```
///
/// - Models are stored as JSON, the bytes that the library writes by default and other programs can read, or by another
///   ``ModelCodec``, the same that the library takes. Reading follows what the entry says of itself; only what a custom
///   codec wrote needs that codec again, which is then given all entries to read first.
/// - Expired entries are never handed out: an entry is there until its deadline, and not from then on.
/// - With ``ClientOptions/nearCache``, ``value(forKey:)`` and ``values(forKeys:)`` answer from this process where
///   they can, without a round trip and without decoding. Such an answer is never older than the last change that this
///   process was told of; a change that another process was acknowledged may not have been told yet, by the time that a
///   message takes. What this client writes through a cache, it reads back. It hands one decoded value out to all readers:
///   models are `Sendable`, and of a value nobody sees that. Classes, collections of them, and models that are
///   ``DecodedEachTime`` are not kept.
/// - All calls throw ``LarderClientError``: `server` with the daemon's own words, `noDaemon`, `closed`, `timeout`,
///   `cancelled`, `io`, `protocolViolation`; and those that are named where they occur.
/// - A key has at most 65,536 bytes: longer ones larderd refuses, `server`.
/// - Each call costs one round trip unless it says otherwise.
///
/// Thread-safe: a value that refers to the client, which stays connected for as long as there is one.
public struct RemoteCache<Value: Codable & Sendable>: Sendable {
    let core: ClientCore
    let store: DatabaseStore
    let codec: ModelCodec
    private let nearIdentity: NearIdentity
    /// The near cache, if it may keep such models: it hands one decoded value out to several readers.
    let near: NearCache?

    init(core: ClientCore, store: DatabaseStore, codec: ModelCodec) {
        self.core = core
        self.store = store
        self.codec = codec
        nearIdentity = NearIdentity(Value.self, codec)
        near = DecodedSharing.isAllowed(Value.self) ? store.near : nil
    }

    /// The database's name; `0` is the server's default.
    public var name: String { store.database ?? DatabaseStore.standardName }

    // MARK: One entry

    /// The model stored under a key; nil when there is none or it expired.
    ///
    /// Where the near cache has it, or knows that there is none, no round trip is made; what it has not, and may keep, it
    /// keeps.
    /// - Throws: `decode`, naming type and key, when something else is stored there.
    public func value(forKey key: some CacheKey) async throws(LarderClientError) -> Value? {
        guard let near else {
            let bytes = key.keyBytes
            return try await decoded(try await store.perform(.get(bytes)), bytes)
        }
        switch find(near, key) {
        case .value(let value): return value
        case .absent: return nil
        case .unknown: break
        }
        let bytes = key.keyBytes
        guard let token = near.begin(bytes) else {
            return try await decoded(try await store.perform(.get(bytes)), bytes)
        }
        return try await valueToKeep(bytes, near, token)
    }

    private func valueToKeep(_ key: [UInt8], _ near: NearCache, _ token: NearCache.Token)
        async throws(LarderClientError) -> Value?
    {
        let askedAt = near.clock()
        do throws(LarderClientError) {
            let (bytes, time) = try await store.perform(.get(key), .timeToLive(key))
            let value = try await decoded(bytes, key)
            keep(value, time, near, token, askedAt: askedAt, valueBytes: bytes?.count ?? 0)
            return value
        } catch {
            near.giveUp(token)
            throw error
        }
    }

    /// Keeps what the daemon said of a key, if both of its answers agree.
    func keep(
        _ value: Value?, _ time: TimeToLive?, _ near: NearCache, _ token: NearCache.Token, askedAt: Int64,
        valueBytes: Int
    ) {
        switch (value, time) {
        case (let value?, .never?):
            near.keep(token, value, nearIdentity, codec, readAt: askedAt, deadline: .max, valueBytes: valueBytes)
        case (let value?, .milliseconds(let left)?):
            let (deadline, overflows) = askedAt.addingReportingOverflow(left)
            near.keep(
                token, value, nearIdentity, codec, readAt: askedAt, deadline: overflows ? .max : deadline,
                valueBytes: valueBytes)
        case (nil, nil): near.keepAbsence(token, readAt: askedAt)
        default: near.giveUp(token)
        }
    }

    /// What the near cache knows of a key.
    func find(_ near: NearCache, _ key: some CacheKey) -> NearCache.Found<Value> {
        near.find(Value.self, nearIdentity, key)
    }

    /// The model in stored bytes. Asks the daemon for the entry's codec where the likely one fails.
    /// - Parameter operation: what was done with the entry, for the error.
    func decoded(_ bytes: [UInt8]?, _ key: [UInt8], _ operation: String = "GET") async throws(LarderClientError)
        -> Value?
    {
        guard let bytes else { return nil }
        return try await RemoteCoding.decode(Value.self, from: bytes, codec, key: key, operation) {
            () async throws(LarderClientError) in
            guard try await store.server().isLarder else { return .raw }
            return try await store.perform(.info(key))?.codec
        }
    }

    /// The stored bytes of a key, whatever they are; nil when there are none or they expired. Never from the near cache.
    public func bytes(forKey key: some CacheKey) async throws(LarderClientError) -> [UInt8]? {
        try await store.perform(.get(key.keyBytes))
    }

    /// Stores a model under a key, in place of what is there.
    /// - Parameters:
    ///   - value: the model.
    ///   - key: the entry's key.
    ///   - policy: how long this entry stays fresh. The default leaves it to the database's policy;
    ///     ``EntryPolicy/keep`` lets it stay as long as the entry that it replaces would have.
    /// - Throws: `encode`, naming key and type, when the codec cannot write the model; `invalidArgument` for a lifetime that
    ///   is not possible and a value of more than 512 MiB, before anything is sent.
    public func set(_ value: Value, forKey key: some CacheKey, policy: EntryPolicy = .database)
        async throws(LarderClientError)
    {
        let bytes = key.keyBytes
        let (encoded, codec) = try RemoteCoding.encode(value, codec, key: bytes)
        try await put(encoded, bytes, policy, codec)
    }

    /// Stores bytes as they are under a key, in place of what is there.
    public func setBytes(_ value: [UInt8], forKey key: some CacheKey, policy: EntryPolicy = .database)
        async throws(LarderClientError)
    {
        let key = key.keyBytes
        try RemoteCoding.check(valueBytes: value.count, key: key)
        try await put(value, key, policy, nil)
    }

    private func put(
        _ value: [UInt8], _ key: [UInt8], _ policy: EntryPolicy, _ codec: Codec?
    ) async throws(LarderClientError) {
        let policy = try policy.checked("SET", key: key)
        let server = try await store.server()
        try await changing([key]) { () async throws(LarderClientError) in
            try await store.perform(.set(value, forKey: key, policy: policy, codec: codec, server: server))
        }
    }

    /// Removes an entry. Nothing to remove is no error.
    /// - Returns: whether there was a fresh entry.
    @discardableResult
    public func remove(_ key: some CacheKey) async throws(LarderClientError) -> Bool {
        let bytes = key.keyBytes
        return try await changing([bytes]) { () async throws(LarderClientError) in
            try await store.perform(.remove([bytes])) > 0
        }
    }

    /// Whether there is a fresh entry under a key, whatever it holds.
    public func contains(_ key: some CacheKey) async throws(LarderClientError) -> Bool {
        try await store.perform(.contains(key.keyBytes))
    }

    /// What the daemon knows about an entry besides its value, which is not read: when it was stored, its age, its
    /// deadline. Nil when there is no fresh entry.
    public func info(forKey key: some CacheKey) async throws(LarderClientError) -> EntryInfo? {
        try await store.perform(.info(key.keyBytes))
    }

    /// How long an entry still has; nil when there is no fresh entry.
    public func timeToLive(forKey key: some CacheKey) async throws(LarderClientError) -> TimeToLive? {
        try await store.perform(.timeToLive(key.keyBytes))
    }

    // MARK: For the other files of this module

    /// Runs what changes `keys`. The near cache forgets them when it is over, however it ends: before the caller goes
    /// on, so that it reads what it wrote; reads that were under way are not kept.
    func changing<Result>(
        _ keys: [[UInt8]], _ body: () async throws(LarderClientError) -> Result
    ) async throws(LarderClientError) -> Result {
        guard let near = store.near else { return try await body() }
        defer { for key in keys { near.drop(key) } }
        return try await body()
    }

    /// As ``changing(_:_:)``, for what changes any number of keys.
    func changingAll<Result>(_ body: () async throws(LarderClientError) -> Result) async throws(LarderClientError)
        -> Result
    {
        defer { store.near?.dropAll() }
        return try await body()
    }
}
