import LarderEngine
import LarderPlatform

/// A set of writes to apply atomically with `Cache.apply(_:durability:)`.
///
/// Models are encoded when they are added. If several changes have the same key, the last one wins. Entries count as
/// stored when the batch is applied.
///
/// Thread-safe: several threads may fill one batch, and each call adds its change atomically.
public final class CacheBatch: Sendable {
    /// The maximum total length of the keys and values of a batch, in bytes: 1 GiB.
    public static let bytesMax = 1 << 30

    private let codec: ModelCodec
    /// The changes, their total length in bytes, and the error of the first invalid change. A batch with such an error
    /// cannot be applied.
    private let state = Locked<(list: [EntryWrite], bytes: Int, refusal: LarderError?)>(([], 0, nil))

    /// Creates an empty batch.
    /// - Parameter codec: encodes the models. ``Cache/makeBatch()`` uses the codec and schemas of the cache; this
    ///   initializer has no schemas, so the models are not checked.
    public init(codec: ModelCodec = .standard) { self.codec = codec }

    /// Adds a model to store under a key.
    /// - Throws: ``LarderError/Code/encoding``, naming key and type; ``LarderError/Code/invalidArgument`` for a key of
    ///   more than 65,536 bytes, a value of more than 536,870,912 bytes, an invalid policy, invalid tags, or a full
    ///   batch. The batch is unchanged in these cases.
    public func set(
        _ value: some Encodable, forKey key: some CacheKey, policy: EntryPolicy = .database, tags: [String] = []
    ) throws(LarderError) {
        let key = try Key(checking: key, "batch", nil)
        let (payload, codec) = try codec.payload(of: value, key, nil)
        try add(try EntryWrite(payload, codec, key, policy, tags, nil), byteCount: payload.count)
    }

    /// Adds bytes to store unchanged under a key. Errors as for ``set(_:forKey:policy:tags:)``.
    public func setBytes(
        _ bytes: [UInt8], forKey key: some CacheKey, policy: EntryPolicy = .database, tags: [String] = []
    ) throws(LarderError) {
        let key = try Key(checking: key, "batch", nil)
        try add(try EntryWrite(.bytes(bytes), .raw, key, policy, tags, nil), byteCount: bytes.count)
    }

    /// Adds the removal of a key, which may be missing. If the key has more than 65,536 bytes,
    /// `Cache.apply(_:durability:)` throws ``LarderError/Code/invalidArgument``, and applies none of the changes.
    public func remove(_ key: some CacheKey) {
        do throws(LarderError) {
            let key = try Key(checking: key, "batch", nil)
            state.withLock { state in
                state.list.append(EntryWrite(removing: key))
                state.bytes += key.stored.count
            }
        } catch {
            state.withLock { $0.refusal = $0.refusal ?? error }
        }
    }

    private func add(_ change: EntryWrite, byteCount: Int) throws(LarderError) {
        let size = change.key.stored.count + byteCount
        let fits = state.withLock { state in
            guard state.bytes <= Self.bytesMax - size else { return false }
            state.list.append(change)
            state.bytes += size
            return true
        }
        guard fits else {
            throw .invalid(
                "a batch holds at most \(Self.bytesMax) bytes; apply it and begin another", "batch", nil, change.key)
        }
    }

    /// The number of changes.
    public var count: Int { state.withLock { $0.list.count } }

    /// Whether the batch has no changes.
    public var isEmpty: Bool { count == 0 }

    /// The total length of the added keys and values, in bytes.
    public var byteCount: Int { state.withLock { $0.bytes } }

    /// Removes all changes from the batch.
    public func removeAll() { state.withLock { $0 = ([], 0, nil) } }

    /// Returns the changes added so far.
    /// - Throws: the error of the first invalid change that was added.
    func changes() throws(LarderError) -> [EntryWrite] {
        try state.withLock { (state) throws(LarderError) in
            if let refusal = state.refusal { throw refusal }
            return state.list
        }
    }
}
