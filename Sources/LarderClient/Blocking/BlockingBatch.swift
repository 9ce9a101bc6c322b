// Several writes in one step.

import RESP

/// Writes that happen all or not at all: collected here, carried out by ``BlockingLarderClient/apply(_:)``.
///
/// Models are encoded when they are added. What is added later wins where keys are the same.
///
/// A value: copies are filled independently.
public struct BlockingBatch: Sendable {
    private let codec: ModelCodec
    private(set) var changes: [BatchChange] = []

    /// An empty batch.
    /// - Parameter codec: how models become bytes. ``BlockingLarderClient/makeBatch()`` takes the client's.
    public init(codec: ModelCodec = .standard) { self.codec = codec }

    /// How many changes were added.
    public var count: Int { changes.count }
    /// Whether nothing was added.
    public var isEmpty: Bool { changes.isEmpty }

    /// Adds the storing of a model under a key.
    /// - Parameters:
    ///   - value: the model.
    ///   - key: the entry's key.
    ///   - policy: how long this entry stays fresh. The default leaves it to the database's policy.
    /// - Throws: `encode`, naming key and type, when the codec cannot write the model; `invalidArgument` for a lifetime
    ///   that is not possible. The batch is unchanged then.
    public mutating func set(_ value: some Encodable, forKey key: some CacheKey, policy: EntryPolicy = .database)
        throws(LarderClientError)
    {
        let key = key.keyBytes
        let (bytes, codec) = try RemoteCoding.encode(value, codec, key: key)
        changes.append(BatchChange(key: key, action: .set(bytes, try policy.checked("SET", key: key), codec)))
    }

    /// Adds the storing of bytes as they are under a key.
    /// - Throws: `invalidArgument` for a lifetime that is not possible. The batch is unchanged then.
    public mutating func setBytes(_ bytes: [UInt8], forKey key: some CacheKey, policy: EntryPolicy = .database)
        throws(LarderClientError)
    {
        let key = key.keyBytes
        try RemoteCoding.check(valueBytes: bytes.count, key: key)
        changes.append(BatchChange(key: key, action: .set(bytes, try policy.checked("SET", key: key), .raw)))
    }

    /// Adds the removal of a key, whether or not there is such an entry.
    public mutating func remove(_ key: some CacheKey) {
        changes.append(BatchChange(key: key.keyBytes, action: .remove))
    }
}

extension BlockingLarderClient {
    /// Stores many models in one step: all or nothing. Of two values for one key the later one holds.
    ///
    /// Takes a dictionary, or pairs in the manner of `["a": 1, "b": 2] as KeyValuePairs`.
    /// - Parameters:
    ///   - pairs: the models with their keys.
    ///   - policy: how long the entries stay fresh. The default leaves it to the database's policy.
    public func set<Key: CacheKey, Value: Encodable>(
        _ pairs: some Sequence<(key: Key, value: Value)>, policy: EntryPolicy = .database
    ) throws(LarderClientError) {
        var batch = makeBatch()
        for (key, value) in pairs { try batch.set(value, forKey: key, policy: policy) }
        try apply(batch)
    }

    /// Carries out what `body` puts into the batch: all of it or, if `body` or the daemon fails, nothing. Other clients see
    /// none of it or all of it. A batch into which nothing was put sends nothing.
    /// - Returns: what `body` returned.
    /// - Throws: what `body` throws.
    @discardableResult
    public func batch<Result>(_ body: (inout BlockingBatch) throws -> Result) throws -> Result {
        var batch = makeBatch()
        let result = try body(&batch)
        try apply(batch)
        return result
    }

    /// An empty batch that encodes models as this client does, for ``apply(_:)``.
    public func makeBatch() -> BlockingBatch { BlockingBatch(codec: codec) }

    /// Carries out a batch, in the order in which it was filled.
    public func apply(_ batch: BlockingBatch) throws(LarderClientError) {
        guard !batch.isEmpty else {
            _ = try session.perform([], operation: "batch")
            return
        }
        switch BatchPlan(batch.changes, for: try server()) {
        case .command(let request): try perform(request)
        case .transaction(let commands):
            let replies = try session.perform(
                [wordList("MULTI")] + commands + [wordList("EXEC")], operation: "batch")
            // The first refusal says why; EXEC only says that there was one.
            for reply in replies + (replies.last?.elements ?? []) {
                if let text = reply.errorMessage { throw .server(text, operation: "batch") }
            }
        }
    }
}
