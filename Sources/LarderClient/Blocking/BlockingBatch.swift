// Several writes in one step.

import LarderRESP

/// A set of writes to apply atomically with ``BlockingLarderClient/apply(_:)``.
///
/// Models are encoded when they are added. The last change of a key wins.
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
    /// - Parameters:
    ///   - value: the model.
    ///   - key: the entry's key.
    ///   - policy: how long this entry stays fresh. By default it follows the database's policy.
    ///   - tags: as for ``BlockingLarderClient/set(_:forKey:policy:tags:)``.
    /// - Throws: `encode`, naming the key and the type, if the codec cannot encode the model; `invalidArgument` for an
    ///   invalid lifetime or invalid tags. The batch is unchanged in these cases.
    public mutating func set(
        _ value: some Encodable, forKey key: some CacheKey, policy: EntryPolicy = .database, tags: [String] = []
    ) throws(LarderClientError) {
        changes.append(.set(try NewEntry(value, codec, key.keyBytes, policy, tags)))
    }

    /// Adds bytes to store unchanged under a key.
    /// - Throws: `invalidArgument` for an invalid lifetime or invalid tags. The batch is unchanged in that case.
    public mutating func setBytes(
        _ bytes: [UInt8], forKey key: some CacheKey, policy: EntryPolicy = .database, tags: [String] = []
    ) throws(LarderClientError) {
        changes.append(.set(try NewEntry(bytes: bytes, key.keyBytes, policy, tags)))
    }

    /// Adds the removal of a key. It is not an error if the key has no entry.
    public mutating func remove(_ key: some CacheKey) { changes.append(.remove(key.keyBytes)) }
}

extension BlockingLarderClient {
    /// Stores many models in one step: all or none. If a key occurs twice, the later value is stored.
    ///
    /// Accepts a dictionary, or pairs such as `["a": 1, "b": 2] as KeyValuePairs`.
    /// - Parameters:
    ///   - pairs: the models with their keys.
    ///   - policy: how long the entries stay fresh. By default they follow the database's policy.
    ///   - tags: the tags of each entry, as for ``set(_:forKey:policy:tags:)``.
    public func set<Key: CacheKey, Value: Encodable>(
        _ pairs: some Sequence<(key: Key, value: Value)>, policy: EntryPolicy = .database, tags: [String] = []
    ) throws(LarderClientError) {
        var batch = makeBatch()
        for (key, value) in pairs { try batch.set(value, forKey: key, policy: policy, tags: tags) }
        try apply(batch)
    }

    /// Calls `body` to fill a batch, and applies all its changes in one step, also as seen by other clients. If `body`
    /// throws, nothing is changed. For an empty batch nothing is sent.
    /// - Returns: the result of `body`.
    /// - Throws: errors of `body`.
    @discardableResult
    public func batch<Result>(_ body: (inout BlockingBatch) throws -> Result) throws -> Result {
        var batch = makeBatch()
        let result = try body(&batch)
        try apply(batch)
        return result
    }

    /// Creates an empty batch with this client's codec, for ``apply(_:)``.
    public func makeBatch() -> BlockingBatch { BlockingBatch(codec: codec) }

    /// Applies the changes of a batch, in the order in which they were added.
    public func apply(_ batch: BlockingBatch) throws(LarderClientError) {
        guard !batch.isEmpty else { return try session.nothing("batch", ()) }
        switch try BatchPlan(batch.changes, for: try server()) {
        case .command(let request): try perform(request)
        case .transaction(let commands):
            let replies = try session.perform(
                [wordList("MULTI")] + commands + [wordList("EXEC")], operation: "batch")
            // If the daemon refuses a command, that command's reply has the reason. The later error of EXEC does not.
            for reply in replies + (replies.last?.elements ?? []) {
                if let text = reply.errorMessage { throw .server(text, operation: "batch") }
            }
        }
    }
}
