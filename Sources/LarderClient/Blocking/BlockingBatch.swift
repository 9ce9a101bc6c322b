// Several writes in one step.

import LarderRESP

/// Writes that all happen or none: collected here, applied by ``BlockingLarderClient/apply(_:)``.
///
/// Models are encoded when they are added. For equal keys the last change wins.
///
/// A value: copies are filled independently.
public struct BlockingBatch: Sendable {
    private let codec: ModelCodec
    private(set) var changes: [BatchChange] = []

    /// An empty batch.
    /// - Parameter codec: encodes the models. ``BlockingLarderClient/makeBatch()`` uses the client's.
    public init(codec: ModelCodec = .standard) { self.codec = codec }

    /// How many changes were added.
    public var count: Int { changes.count }
    /// Whether nothing was added.
    public var isEmpty: Bool { changes.isEmpty }

    /// Adds a model to store under a key.
    /// - Parameters:
    ///   - value: the model.
    ///   - key: the entry's key.
    ///   - policy: how long this entry stays fresh. The default leaves it to the database's policy.
    ///   - tags: as for ``BlockingLarderClient/set(_:forKey:policy:tags:)``.
    /// - Throws: `encode`, with key and type, when the codec cannot write the model; `invalidArgument` for an
    ///   impossible lifetime or impossible tags. Then the batch is unchanged.
    public mutating func set(
        _ value: some Encodable, forKey key: some CacheKey, policy: EntryPolicy = .database, tags: [String] = []
    ) throws(LarderClientError) {
        let key = key.keyBytes
        let (bytes, codec) = try RemoteCoding.encode(value, codec, key: key)
        changes.append(try .set(bytes, key, policy, tags, codec))
    }

    /// Adds bytes to store as they are under a key.
    /// - Throws: `invalidArgument` for an impossible lifetime or impossible tags. Then the batch is unchanged.
    public mutating func setBytes(
        _ bytes: [UInt8], forKey key: some CacheKey, policy: EntryPolicy = .database, tags: [String] = []
    ) throws(LarderClientError) {
        let key = key.keyBytes
        try RemoteCoding.check(valueBytes: bytes.count, key: key)
        changes.append(try .set(bytes, key, policy, tags, .raw))
    }

    /// Adds the removal of a key, whether or not there is such an entry.
    public mutating func remove(_ key: some CacheKey) {
        changes.append(BatchChange(key: key.keyBytes, action: .remove))
    }
}

extension BlockingLarderClient {
    /// Stores many models in one step: all or none. Of two values for one key the later one counts.
    ///
    /// Takes a dictionary, or pairs in the form `["a": 1, "b": 2] as KeyValuePairs`.
    /// - Parameters:
    ///   - pairs: the models with their keys.
    ///   - policy: how long the entries stay fresh. The default leaves it to the database's policy.
    ///   - tags: the tags of each of them, as for ``set(_:forKey:policy:tags:)``.
    public func set<Key: CacheKey, Value: Encodable>(
        _ pairs: some Sequence<(key: Key, value: Value)>, policy: EntryPolicy = .database, tags: [String] = []
    ) throws(LarderClientError) {
        var batch = makeBatch()
        for (key, value) in pairs { try batch.set(value, forKey: key, policy: policy, tags: tags) }
        try apply(batch)
    }

    /// Applies the changes that `body` puts into the batch: all of them, or none if `body` or the daemon fails. Other
    /// clients see all of them or none. An empty batch sends nothing.
    /// - Returns: what `body` returned.
    /// - Throws: what `body` throws.
    @discardableResult
    public func batch<Result>(_ body: (inout BlockingBatch) throws -> Result) throws -> Result {
        var batch = makeBatch()
        let result = try body(&batch)
        try apply(batch)
        return result
    }

    /// An empty batch with this client's codec, for ``apply(_:)``.
    public func makeBatch() -> BlockingBatch { BlockingBatch(codec: codec) }

    /// Applies a batch, in the order in which it was filled.
    public func apply(_ batch: BlockingBatch) throws(LarderClientError) {
        guard !batch.isEmpty else {
            _ = try session.perform([], operation: "batch")
            return
        }
        switch try BatchPlan(batch.changes, for: try server()) {
        case .command(let request): try perform(request)
        case .transaction(let commands):
            let replies = try session.perform(
                [wordList("MULTI")] + commands + [wordList("EXEC")], operation: "batch")
            // The first refusal gives the reason; EXEC only says that there was one.
            for reply in replies + (replies.last?.elements ?? []) {
                if let text = reply.errorMessage { throw .server(text, operation: "batch") }
            }
        }
    }
}
