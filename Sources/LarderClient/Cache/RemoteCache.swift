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
/// - Models are stored as JSON, which other programs can read, or with another ``ModelCodec``. The library has the same
///   codecs, and writes the same bytes. Reads use the codec that is stored with the entry. To read entries of a custom
///   codec, pass that codec again; reads then try that codec first for all entries.
/// - Entries that have expired are never returned.
/// - With ``ClientOptions/nearCache``, ``value(forKey:)`` and ``values(forKeys:)`` return models from the memory of
///   this process if they can, without round trip and decoding. Such a model is never older than the last change that
///   the daemon has reported to this process. A report takes about as long as a reply. After a write through any cache
///   of this client, all its caches return the written value or a newer one. All readers share one decoded value, which
///   is safe for `Sendable` values. Classes, collections of them, and models that are ``DecodedEachTime`` are not kept.
/// - All calls throw ``LarderClientError``: `server` with the daemon's own text, `noDaemon`, `closed`, `timeout`,
///   `cancelled`, `io`, `protocolViolation`; and the errors documented at each call.
/// - A key has at most 65,536 bytes: larderd refuses longer ones with `server`.
/// - Each call costs one round trip unless documented otherwise.
///
/// Thread-safe: a value type with a reference to the client. The client stays connected while such a value exists.
public struct RemoteCache<Value: Codable & Sendable>: Sendable {
    let core: ClientCore
    let store: DatabaseStore
    let codec: ModelCodec
    private let nearIdentity: NearIdentity
    /// The near cache, or nil if models of this type must not be shared between readers.
    let near: NearCache?

    init(core: ClientCore, store: DatabaseStore, codec: ModelCodec) {
        self.core = core
        self.store = store
        self.codec = codec.ofCache
        nearIdentity = NearIdentity(Value.self, codec)
        near = DecodedSharing.isAllowed(Value.self) ? store.near : nil
    }

    /// The database's name; `0` is the server's default.
    public var name: String { store.name }

    // MARK: One entry

    /// Returns the model stored under a key; nil if there is no fresh entry.
    ///
    /// No round trip is made if the near cache has the model, or knows that the key has no entry. Otherwise the near
    /// cache keeps the result, unless the entry changes during the read.
    /// - Throws: `decode`, naming the type and the key, if the value is of another type.
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

    /// Keeps the result of a read, a value or its absence, in the near cache. Does nothing if the entry was changed or
    /// expired between the two commands of the read, so that their replies contradict each other.
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

    /// Looks up a key in the near cache.
    func find(_ near: NearCache, _ key: some CacheKey) -> NearCache.Found<Value> {
        near.find(Value.self, nearIdentity, key)
    }

    /// Decodes stored bytes. Tries the likely codec first, and requests the entry's codec from the daemon if that
    /// fails.
    /// - Parameter operation: the name of the operation, for errors.
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

    /// Decodes stored bytes. If that fails, returns nil and reports the error to ``ClientOptions/onEvent``: the
    /// caller then makes a new value.
    func decodable(_ bytes: [UInt8]?, _ key: [UInt8], _ operation: String = "GET") async throws(LarderClientError)
        -> Value?
    {
        do throws(LarderClientError) {
            return try await decoded(bytes, key, operation)
        } catch {
            guard error.code == .decode else { throw error }
            store.report(.warning, "'\(printableKey(key))' is treated as missing: \(error)", key: key, error: error)
            return nil
        }
    }

    /// Encodes a model, and validates the options with which it is stored.
    func newEntry(_ value: Value, _ key: [UInt8], _ policy: EntryPolicy = .database, _ tags: [String] = [])
        throws(LarderClientError) -> NewEntry
    {
        try LarderClientError.naming(name) { () throws(LarderClientError) in
            try NewEntry(value, codec, key, policy, tags)
        }
    }

    /// Returns the stored bytes of a key; nil if there is no fresh entry. Never uses the near cache.
    public func bytes(forKey key: some CacheKey) async throws(LarderClientError) -> [UInt8]? {
        try await store.perform(.get(key.keyBytes))
    }

    /// Stores a model under a key, and replaces an existing entry.
    /// - Parameters:
    ///   - value: the model.
    ///   - key: the entry's key.
    ///   - policy: how long this entry stays fresh. By default it follows the database's policy; with
    ///     ``EntryPolicy/keep`` it keeps the deadline rule of the entry that it replaces.
    ///   - tags: labels for removing groups of entries with `removeAll(tagged:soft:)`: at most 16 different ones, each
    ///     of 1 to 128 bytes of UTF-8 without NUL. By default none, or with ``EntryPolicy/keep`` the tags of the
    ///     replaced entry. Needs larderd.
    /// - Throws: before anything is sent, `encode`, naming the key and the type, if the codec cannot encode the model;
    ///   `invalidArgument` for an invalid lifetime, invalid tags, or a value of more than 512 MiB.
    public func set(
        _ value: Value, forKey key: some CacheKey, policy: EntryPolicy = .database, tags: [String] = []
    ) async throws(LarderClientError) {
        try await put(try newEntry(value, key.keyBytes, policy, tags))
    }

    /// Stores bytes unchanged under a key, and replaces an existing entry.
    public func setBytes(
        _ value: [UInt8], forKey key: some CacheKey, policy: EntryPolicy = .database, tags: [String] = []
    ) async throws(LarderClientError) {
        let key = key.keyBytes
        try await put(
            try LarderClientError.naming(name) { () throws(LarderClientError) in
                try NewEntry(bytes: value, key, policy, tags)
            })
    }

    /// Stores an entry; parameters as for ``NewEntry/request(for:if:keepsTags:)``.
    /// - Returns: whether the condition held, so that the entry was stored.
    @discardableResult
    func put(_ entry: NewEntry, if condition: [[UInt8]] = [], keepsTags: Bool = false)
        async throws(LarderClientError) -> Bool
    {
        let server = try await store.server()
        return try await store.perform(
            try LarderClientError.naming(name) { () throws(LarderClientError) in
                try entry.request(for: server, if: condition, keepsTags: keepsTags)
            })
    }

    /// Removes an entry. It is not an error if there is none.
    /// - Returns: whether there was a fresh entry.
    @discardableResult
    public func remove(_ key: some CacheKey) async throws(LarderClientError) -> Bool {
        try await store.perform(.remove([key.keyBytes])) > 0
    }

    /// Returns whether there is a fresh entry under a key, whatever its value.
    public func contains(_ key: some CacheKey) async throws(LarderClientError) -> Bool {
        try await store.perform(.contains(key.keyBytes))
    }

    /// Returns the metadata of an entry without reading its value: the time at which it was stored, its age, its
    /// deadline. Nil if there is no fresh entry.
    public func info(forKey key: some CacheKey) async throws(LarderClientError) -> EntryInfo? {
        try await store.perform(.info(key.keyBytes))
    }

    /// Returns the remaining lifetime of an entry; nil if there is no fresh entry.
    public func timeToLive(forKey key: some CacheKey) async throws(LarderClientError) -> TimeToLive? {
        try await store.perform(.timeToLive(key.keyBytes))
    }

    /// Returns the tags of an entry, in the order in which they were specified; nil if there is no fresh entry. Omits
    /// tags that are not UTF-8, which other programs may have stored. Needs larderd.
    public func tags(forKey key: some CacheKey) async throws(LarderClientError) -> [String]? {
        try await store.perform(Request<[String]?>.tags(key.keyBytes))
    }

    // MARK: Scripts

    /// Runs a script in this database, and returns its reply unchanged; see
    /// ``LarderClient/LarderClient/script(_:keys:arguments:readOnly:returning:)``.
    @discardableResult
    public func script(
        _ script: Script, keys: [any CacheKey] = [], arguments: [any ScriptArgument] = [], readOnly: Bool = false
    ) async throws(LarderClientError) -> RESPValue {
        try await store.run(try ScriptCall(script, keys: keys, arguments: arguments, readOnly: readOnly))
    }

    /// Runs a script in this database, as ``LarderClient/LarderClient/script(_:keys:arguments:readOnly:returning:)``
    /// does in the client's own database. Use ``ScriptModel`` for models of the cache.
    public func script<Result: ScriptResult>(
        _ script: Script, keys: [any CacheKey] = [], arguments: [any ScriptArgument] = [], readOnly: Bool = false,
        returning type: Result.Type = Result.self
    ) async throws(LarderClientError) -> Result {
        let reply: RESPValue = try await self.script(script, keys: keys, arguments: arguments, readOnly: readOnly)
        return try LarderClientError.naming(name) { () throws(LarderClientError) in try ScriptCall.result(reply) }
    }
}
