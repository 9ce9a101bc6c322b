import LarderRESP

/// A database of the daemon's larder, for models of one type: the asynchronous counterpart of the library's `Cache`,
/// for other processes.
///
/// ```swift
/// let readers = client.cache("userdb", of: Reader.self)
/// try await readers.set(reader, forKey: "reader", policy: .middle)
/// let reader = try await readers.value(forKey: "reader")
/// ```
///
/// - Models are stored as JSON, in the bytes that the library writes by default and other programs can read, or by
///   another ``ModelCodec``; the library has the same codecs. Reading follows the codec in the entry; only entries of a
///   custom codec need that codec again, which then gets all entries to read first.
/// - Expired entries are never returned: an entry exists until its deadline.
/// - With ``ClientOptions/nearCache``, ``value(forKey:)`` and ``values(forKeys:)`` answer from this process if they
///   can, without a round trip and without decoding. Such an answer is never older than the last change that was
///   reported to this process. A change that another process has just made may not have been reported yet: that takes
///   as long as a message. What this client writes through a cache, it reads back. All readers get one decoded value:
///   models are `Sendable`, and with a value nobody can tell. Classes, collections of them, and models that are
///   ``DecodedEachTime`` are not kept.
/// - All calls throw ``LarderClientError``: `server` with the daemon's own text, `noDaemon`, `closed`, `timeout`,
///   `cancelled`, `io`, `protocolViolation`; and those that are named at a call.
/// - A key has at most 65,536 bytes: larderd refuses longer ones, `server`.
/// - Each call costs one round trip unless it says otherwise.
///
/// Thread-safe: a value that refers to the client. The client stays connected as long as there is such a value.
public struct RemoteCache<Value: Codable & Sendable>: Sendable {
    let core: ClientCore
    let store: DatabaseStore
    let codec: ModelCodec
    private let nearIdentity: NearIdentity
    /// The near cache, if it may keep such models: it returns one decoded value to several readers.
    let near: NearCache?

    init(core: ClientCore, store: DatabaseStore, codec: ModelCodec) {
        self.core = core
        self.store = store
        self.codec = codec
        nearIdentity = NearIdentity(Value.self, codec)
        near = DecodedSharing.isAllowed(Value.self) ? store.near : nil
    }

    /// The database's name; `0` is the server's default.
    public var name: String { store.name }

    // MARK: One entry

    /// The model stored under a key; nil when there is none or it has expired.
    ///
    /// If the near cache has it, or knows that there is none, no round trip is made. Otherwise the near cache keeps the
    /// result, if it may.
    /// - Throws: `decode`, with type and key, when the value is of another type.
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

    /// Keeps the daemon's answer about a key, if both of its replies agree.
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

    /// The model in stored bytes. Asks the daemon for the entry's codec if the likely one fails.
    /// - Parameter operation: the operation, for the error.
    func decoded(_ bytes: [UInt8]?, _ key: [UInt8], _ operation: String = "GET") async throws(LarderClientError)
        -> Value?
    {
        guard let bytes else { return nil }
        do throws(LarderClientError) {
            return try await RemoteCoding.decode(Value.self, from: bytes, codec, key: key, operation) {
                () async throws(LarderClientError) in
                guard try await store.server().isLarder else { return nil }
                return try await store.perform(.info(key))?.codec
            }
        } catch {
            throw error.about(name)
        }
    }

    /// The bytes of a model, and their codec.
    /// The model in stored bytes; nil, and reported, if they are none: for callers that can make a new one.
    func decodable(_ bytes: [UInt8]?, _ key: [UInt8], _ operation: String = "GET") async throws(LarderClientError)
        -> Value?
    {
        do throws(LarderClientError) {
            return try await decoded(bytes, key, operation)
        } catch {
            guard error.code == .decode else { throw error }
            core.options.onUndecodable?(name, printableKey(key), error)
            return nil
        }
    }

    func encoded(_ value: Value, _ key: [UInt8]) throws(LarderClientError) -> (bytes: [UInt8], codec: Codec) {
        do throws(LarderClientError) {
            return try RemoteCoding.encode(value, codec, key: key)
        } catch {
            throw error.about(name)
        }
    }

    /// The stored bytes of a key, whatever they are; nil when there are none or they have expired. Never from the near
    /// cache.
    public func bytes(forKey key: some CacheKey) async throws(LarderClientError) -> [UInt8]? {
        try await store.perform(.get(key.keyBytes))
    }

    /// Stores a model under a key, and replaces what is there.
    /// - Parameters:
    ///   - value: the model.
    ///   - key: the entry's key.
    ///   - policy: how long this entry stays fresh. The default leaves it to the database's policy; with
    ///     ``EntryPolicy/keep`` it stays as long as the replaced entry would have.
    ///   - tags: words by which `removeAll(tagged:soft:)` removes this entry together with others: at most
    ///     16, each of 1 to 128 bytes of UTF-8 and without NUL; of equal ones, one counts. None is the default; with
    ///     ``EntryPolicy/keep`` that means those of the replaced entry. Needs larderd.
    /// - Throws: `encode`, with key and type, when the codec cannot write the model; `invalidArgument` for an
    ///   impossible lifetime, impossible tags, and a value of more than 512 MiB, before anything is sent.
    public func set(
        _ value: Value, forKey key: some CacheKey, policy: EntryPolicy = .database, tags: [String] = []
    ) async throws(LarderClientError) {
        let bytes = key.keyBytes
        let (encoded, codec) = try encoded(value, bytes)
        try await put(encoded, bytes, policy, tags, codec)
    }

    /// Stores bytes as they are under a key, and replaces what is there.
    public func setBytes(
        _ value: [UInt8], forKey key: some CacheKey, policy: EntryPolicy = .database, tags: [String] = []
    ) async throws(LarderClientError) {
        let key = key.keyBytes
        try RemoteCoding.check(valueBytes: value.count, key: key)
        try await put(value, key, policy, tags, nil)
    }

    private func put(
        _ value: [UInt8], _ key: [UInt8], _ policy: EntryPolicy, _ tags: [String], _ codec: Codec?
    ) async throws(LarderClientError) {
        let policy = try policy.checked("SET", name, key: key)
        let tags = try CheckedTags(tags, "SET", name, key: key)
        let server = try await store.server()
        try tags.check(for: server, "SET", name, key: key)
        try await changing([key]) { () async throws(LarderClientError) in
            try await store.perform(
                .set(value, forKey: key, policy: policy, tags: tags, codec: codec, server: server))
        }
    }

    /// Removes an entry. It is not an error if there is none.
    /// - Returns: whether there was a fresh entry.
    @discardableResult
    public func remove(_ key: some CacheKey) async throws(LarderClientError) -> Bool {
        let bytes = key.keyBytes
        return try await changing([bytes]) { () async throws(LarderClientError) in
            try await store.perform(.remove([bytes])) > 0
        }
    }

    /// Whether there is a fresh entry under a key, whatever its value.
    public func contains(_ key: some CacheKey) async throws(LarderClientError) -> Bool {
        try await store.perform(.contains(key.keyBytes))
    }

    /// The daemon's facts about an entry, without reading its value: when it was stored, its age, its deadline. Nil
    /// when there is no fresh entry.
    public func info(forKey key: some CacheKey) async throws(LarderClientError) -> EntryInfo? {
        try await store.perform(.info(key.keyBytes))
    }

    /// The rest of an entry's lifetime; nil when there is no fresh entry.
    public func timeToLive(forKey key: some CacheKey) async throws(LarderClientError) -> TimeToLive? {
        try await store.perform(.timeToLive(key.keyBytes))
    }

    /// The tags of an entry, in the order in which they were given; nil when there is no fresh entry. Tags that other
    /// programs have given and that are not UTF-8 are left out. Needs larderd.
    public func tags(forKey key: some CacheKey) async throws(LarderClientError) -> [String]? {
        try await store.perform(Request<[String]?>.tags(key.keyBytes))
    }

    // MARK: For the other files of this module

    /// Runs a change of `keys`. However it ends, the near cache forgets them before the caller continues, so that it
    /// reads what it wrote; results of reads that were running are not kept.
    func changing<Result>(
        _ keys: [[UInt8]], _ body: () async throws(LarderClientError) -> Result
    ) async throws(LarderClientError) -> Result {
        guard let near = store.near else { return try await body() }
        defer { for key in keys { near.drop(key) } }
        return try await body()
    }

    /// Like ``changing(_:_:)``, for a change of any number of keys.
    func changingAll<Result>(_ body: () async throws(LarderClientError) -> Result) async throws(LarderClientError)
        -> Result
    {
        defer { store.near?.dropAll() }
        return try await body()
    }
}
