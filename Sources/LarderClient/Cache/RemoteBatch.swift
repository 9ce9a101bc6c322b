// Several writes in one step.

import LarderRESP

/// One write of a batch.
enum BatchChange: Sendable {
    case set(NewEntry)
    case remove([UInt8])

    var key: [UInt8] {
        switch self {
        case .set(let entry): entry.key
        case .remove(let key): key
        }
    }

    /// Checks that the server supports the tags.
    /// - Throws: `invalidArgument` for tags that the server would ignore.
    func check(for server: ServerKind) throws(LarderClientError) {
        if case .set(let entry) = self { try entry.tags.check(for: server, key: entry.key) }
    }

    func words(for server: ServerKind) -> [[UInt8]] {
        switch self {
        case .set(let entry): entry.words(for: server)
        case .remove(let key): [Array("DEL".utf8), key]
        }
    }
}

/// The commands that apply a batch atomically. A value type.
enum BatchPlan {
    case command(Request<Void>)
    /// Commands to send between MULTI and EXEC.
    case transaction([[[UInt8]]])

    /// Chooses the commands for some changes.
    /// - Parameter changes: at least one.
    /// - Throws: `invalidArgument` for tags that the server would ignore.
    init(_ changes: [BatchChange], for server: ServerKind) throws(LarderClientError) {
        for change in changes { try change.check(for: server) }
        if let request = Self.sets(changes, server) ?? Self.removals(changes) {
            self = .command(request)
        } else {
            self = .transaction(changes.map { $0.words(for: server) })
        }
    }

    /// Returns one command that stores all entries. Returns nil if a change is a removal, or if the entries differ in
    /// policy, tags or codec. In Redis, also nil for several entries with a policy, because MSET cannot set lifetimes.
    private static func sets(_ changes: [BatchChange], _ server: ServerKind) -> Request<Void>? {
        guard case .set(let first) = changes[0] else { return nil }
        if changes.count == 1 { return .expectingOK(first.words(for: server), key: first.key) }
        guard server.isLarder || first.policy.words(for: server).isEmpty else { return nil }
        var entries: [(key: [UInt8], value: [UInt8])] = []
        entries.reserveCapacity(changes.count)
        for change in changes {
            guard case .set(let entry) = change, entry.hasOptions(of: first) else { return nil }
            entries.append((entry.key, entry.bytes))
        }
        return server.isLarder
            ? .setAll(entries, policy: first.policy, tags: first.tags, codec: first.codec) : .setAll(entries)
    }

    private static func removals(_ changes: [BatchChange]) -> Request<Void>? {
        var keys: [[UInt8]] = []
        keys.reserveCapacity(changes.count)
        for change in changes {
            guard case .remove(let key) = change else { return nil }
            keys.append(key)
        }
        return Request(wordList("DEL") + keys, expects: "a number") { reply in
            if case .integer = reply { () } else { nil }
        }
    }
}

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
