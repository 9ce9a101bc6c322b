// Several writes in one step.

import RESP

/// One write of a batch.
struct BatchChange: Sendable {
    enum Action: Sendable {
        case set([UInt8], EntryPolicy.Checked, Codec)
        case remove
    }

    let key: [UInt8]
    let action: Action

    func words(for server: ServerKind) -> [[UInt8]] {
        switch action {
        case .set(let value, let policy, let codec):
            Request<Void>.set(
                value, forKey: key, policy: policy, codec: codec, server: server
            ).words
        case .remove: [Array("DEL".utf8), key]
        }
    }
}

/// How the writes of a batch reach the daemon so that all happen or none. A value.
enum BatchPlan {
    case command(Request<Void>)
    /// Commands to be put between MULTI and EXEC.
    case transaction([[[UInt8]]])

    /// - Parameter changes: at least one.
    init(_ changes: [BatchChange], for server: ServerKind) {
        if let request = Self.sets(changes, server) ?? Self.removals(changes) {
            self = .command(request)
        } else {
            self = .transaction(changes.map { $0.words(for: server) })
        }
    }

    /// Several entries with the same policy and codec. Redis has a command for those without a policy only.
    private static func sets(_ changes: [BatchChange], _ server: ServerKind) -> Request<Void>? {
        guard case .set(_, let policy, let codec) = changes[0].action else { return nil }
        if changes.count == 1 { return .expectingOK(changes[0].words(for: server), key: changes[0].key) }
        guard server.isLarder || policy.words(for: server).isEmpty else { return nil }
        var entries: [(key: [UInt8], value: [UInt8])] = []
        entries.reserveCapacity(changes.count)
        for change in changes {
            guard case .set(let value, policy, codec) = change.action else { return nil }
            entries.append((change.key, value))
        }
        return server.isLarder ? .setAll(entries, policy: policy, codec: codec) : .setAll(entries)
    }

    private static func removals(_ changes: [BatchChange]) -> Request<Void>? {
        var keys: [[UInt8]] = []
        keys.reserveCapacity(changes.count)
        for change in changes {
            guard case .remove = change.action else { return nil }
            keys.append(change.key)
        }
        return Request(wordList("DEL") + keys, expects: "a number") { reply in
            if case .integer = reply { () } else { nil }
        }
    }
}

/// Writes that happen all or not at all: collected here, carried out by ``RemoteCache/apply(_:)``.
///
/// Models are encoded when they are added. What is added later wins where keys are the same.
///
/// A batch goes out as one command where it is nothing but entries with the same policy and codec, or nothing but keys to
/// remove, and as a transaction otherwise.
///
/// A value: copies are filled independently.
public struct RemoteBatch<Value: Encodable & Sendable>: Sendable {
    private let codec: ModelCodec
    private(set) var changes: [BatchChange] = []

    /// An empty batch.
    /// - Parameter codec: how models become bytes. ``RemoteCache/makeBatch()`` takes the cache's.
    public init(codec: ModelCodec = .standard) { self.codec = codec }

    /// How many changes were added.
    public var count: Int { changes.count }
    /// Whether nothing was added.
    public var isEmpty: Bool { changes.isEmpty }

    /// Adds the storing of a model under a key.
    /// - Throws: `encode`, naming key and type, when the codec cannot write the model; `invalidArgument` for a lifetime
    ///   that is not possible. The batch is unchanged then.
    public mutating func set(_ value: Value, forKey key: some CacheKey, policy: EntryPolicy = .database)
        throws(LarderClientError)
    {
        let bytes = key.keyBytes
        let (encoded, codec) = try RemoteCoding.encode(value, codec, key: bytes)
        changes.append(BatchChange(key: bytes, action: .set(encoded, try policy.checked("SET", key: bytes), codec)))
    }

    /// Adds the storing of bytes as they are under a key.
    /// - Throws: `invalidArgument` for a lifetime that is not possible. The batch is unchanged then.
    public mutating func setBytes(_ value: [UInt8], forKey key: some CacheKey, policy: EntryPolicy = .database)
        throws(LarderClientError)
    {
        let bytes = key.keyBytes
        try RemoteCoding.check(valueBytes: value.count, key: bytes)
        changes.append(BatchChange(key: bytes, action: .set(value, try policy.checked("SET", key: bytes), .raw)))
    }

    /// Adds the removal of a key, whether or not there is such an entry.
    public mutating func remove(_ key: some CacheKey) {
        changes.append(BatchChange(key: key.keyBytes, action: .remove))
    }
}
