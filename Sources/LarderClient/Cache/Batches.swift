// Several writes in one step, for both clients.

/// A set of writes to apply atomically with ``RemoteCache/apply(_:)``.
///
/// Models are encoded when they are added. The last change of a key wins.
///
/// If all changes are removals, or all store entries with the same policy, tags and codec, the batch is sent as one
/// command. Otherwise it is sent as a transaction.
///
/// A value type: copies are independent.
public struct RemoteBatch<Value: Encodable & Sendable>: Sendable {
    private let codec: ModelCodec
    private(set) var changes: [BatchChange] = []

    /// Creates an empty batch.
    /// - Parameter codec: encodes the models. ``RemoteCache/makeBatch()`` uses the codec of the cache.
    public init(codec: ModelCodec = .standard) { self.codec = codec }

    /// The number of changes.
    public var count: Int { changes.count }
    /// Whether the batch has no changes.
    public var isEmpty: Bool { changes.isEmpty }

    /// Adds a model to store under a key.
    /// - Throws: `encode`, naming the key and the type, if the codec cannot encode the model; `invalidArgument` for an
    ///   invalid lifetime or invalid tags. The batch is unchanged in these cases.
    public mutating func set(
        _ value: Value, forKey key: some CacheKey, policy: EntryPolicy = .database, tags: [String] = []
    ) throws(LarderClientError) {
        changes.append(.set(try NewEntry(value, codec, key.keyBytes, policy, tags)))
    }

    /// Adds bytes to store unchanged under a key.
    /// - Throws: `invalidArgument` for an invalid lifetime or invalid tags. The batch is unchanged in that case.
    public mutating func setBytes(
        _ value: [UInt8], forKey key: some CacheKey, policy: EntryPolicy = .database, tags: [String] = []
    ) throws(LarderClientError) {
        changes.append(.set(try NewEntry(bytes: value, key.keyBytes, policy, tags)))
    }

    /// Adds the removal of a key. It is not an error if the key has no entry.
    public mutating func remove(_ key: some CacheKey) { changes.append(.remove(key.keyBytes)) }
}

/// A set of writes to apply atomically with ``BlockingLarderClient/apply(_:)``: like ``RemoteBatch``, but with models
/// of any types.
///
/// A value type: copies are independent.
public struct BlockingBatch: Sendable {
    private let codec: ModelCodec
    private(set) var changes: [BatchChange] = []

    /// Creates an empty batch.
    /// - Parameter codec: encodes the models. ``BlockingLarderClient/makeBatch()`` uses the client's.
    public init(codec: ModelCodec = .standard) { self.codec = codec }

    /// The number of changes.
    public var count: Int { changes.count }
    /// Whether the batch has no changes.
    public var isEmpty: Bool { changes.isEmpty }

    /// Adds a model to store under a key.
    /// - Throws: as ``RemoteBatch/set(_:forKey:policy:tags:)``.
    public mutating func set(
        _ value: some Encodable, forKey key: some CacheKey, policy: EntryPolicy = .database, tags: [String] = []
    ) throws(LarderClientError) {
        changes.append(.set(try NewEntry(value, codec, key.keyBytes, policy, tags)))
    }

    /// Adds bytes to store unchanged under a key.
    /// - Throws: as ``RemoteBatch/setBytes(_:forKey:policy:tags:)``.
    public mutating func setBytes(
        _ bytes: [UInt8], forKey key: some CacheKey, policy: EntryPolicy = .database, tags: [String] = []
    ) throws(LarderClientError) {
        changes.append(.set(try NewEntry(bytes: bytes, key.keyBytes, policy, tags)))
    }

    /// Adds the removal of a key. It is not an error if the key has no entry.
    public mutating func remove(_ key: some CacheKey) { changes.append(.remove(key.keyBytes)) }
}
