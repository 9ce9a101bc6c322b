// Several writes in one step.

/// Writes that happen all or not at all: collected here, carried out by ``RemoteCache/apply(_:)``.
///
/// Models are encoded when they are added. What is added later wins where keys are the same.
///
/// A batch goes out as one command where it is nothing but entries without a policy (MSET: the daemon then marks their
/// values as raw, which only META shows) or nothing but keys to remove, and as a transaction otherwise.
///
/// A value: copies are filled independently.
public struct RemoteBatch<Value: Encodable & Sendable>: Sendable {
    enum Action: Sendable {
        case set([UInt8], UpdatePolicy?, LarderClient.EntryInfo.Codec?)
        case remove
    }

    struct Change: Sendable {
        let key: [UInt8]
        let action: Action

        func words(for server: Handshake.Server) -> [[UInt8]] {
            switch action {
            case .set(let value, let policy, let codec):
                Request<Void>.set(value, forKey: key, policy: policy, codec: codec, server: server).words
            case .remove: [Array("DEL".utf8), key]
            }
        }
    }

    private(set) var changes: [Change] = []

    /// An empty batch.
    public init() {}

    /// How many changes were added.
    public var count: Int { changes.count }
    /// Whether nothing was added.
    public var isEmpty: Bool { changes.isEmpty }

    /// Adds the storing of a model under a key.
    /// - Throws: `encode`, naming key and type, when the model cannot be written as JSON. The batch is unchanged then.
    public mutating func set(_ value: Value, forKey key: some CacheKey, policy: UpdatePolicy? = nil)
        throws(LarderClientError)
    {
        let bytes = key.keyBytes
        let encoded = try ModelCoding.encode(value, key: String(decoding: bytes, as: UTF8.self))
        changes.append(Change(key: bytes, action: .set(encoded, policy, .json)))
    }

    /// Adds the storing of bytes as they are under a key.
    public mutating func setBytes(_ value: [UInt8], forKey key: some CacheKey, policy: UpdatePolicy? = nil) {
        changes.append(Change(key: key.keyBytes, action: .set(value, policy, nil)))
    }

    /// Adds the removal of a key, whether or not there is such an entry.
    public mutating func remove(_ key: some CacheKey) {
        changes.append(Change(key: key.keyBytes, action: .remove))
    }

    /// The entries, if the batch is nothing but several that follow the database's policy.
    var plainValues: [(key: [UInt8], value: [UInt8])]? {
        guard changes.count > 1 else { return nil }
        var values: [(key: [UInt8], value: [UInt8])] = []
        values.reserveCapacity(changes.count)
        for change in changes {
            guard case .set(let value, nil, _) = change.action else { return nil }
            values.append((change.key, value))
        }
        return values
    }

    /// The keys, if the batch is nothing but removals.
    var plainRemovals: [[UInt8]]? {
        var keys: [[UInt8]] = []
        for change in changes {
            guard case .remove = change.action else { return nil }
            keys.append(change.key)
        }
        return keys
    }
}
