// Consistent reads from a snapshot.

import LarderModelQueries
import LarderRESP

/// A view of a database at one instant, valid while the body of ``RemoteCache/withSnapshot(_:)`` runs; afterwards every
/// call throws `closed`. Entries that expire while the body runs are not returned any more.
///
/// Thread-safe.
public struct RemoteSnapshot<Value: Codable & Sendable>: Sendable {
    private let connection: OwnConnection
    private let codec: ModelCodec
    private let database: String

    init(_ connection: OwnConnection, _ codec: ModelCodec, _ database: String) {
        (self.connection, self.codec, self.database) = (connection, codec, database)
    }

    private func decoded(_ bytes: [UInt8], _ key: [UInt8]) async throws(LarderClientError) -> Value {
        try await RemoteCoding.decode(Value.self, from: bytes, codec, key: key) {
            () async throws(LarderClientError) in
            try await connection.perform(.info(key))?.codec
        }
    }

    /// Returns the model stored under a key; nil if there was none or it has expired.
    /// - Throws: `decode`, naming the type and the key, if the value is of another type.
    public func value(forKey key: some CacheKey) async throws(LarderClientError) -> Value? {
        let key = key.keyBytes
        guard let bytes = try await connection.perform(Request<[UInt8]?>.get(key)) else { return nil }
        return try await decoded(bytes, key)
    }

    /// Returns the models of the keys that have a fresh entry in the snapshot, in one round trip.
    public func values<Key: CacheKey & Hashable>(forKeys keys: some Sequence<Key>) async throws(LarderClientError)
        -> [Key: Value]
    {
        let keys = Array(keys)
        guard !keys.isEmpty else {
            _ = try await connection.pipeline([])
            return [:]
        }
        var models: [Key: Value] = [:]
        for (key, bytes) in zip(keys, try await connection.perform(.getAll(keys.map(\.keyBytes)))) {
            if let bytes { models[key] = try await decoded(bytes, key.keyBytes) }
        }
        return models
    }

    /// Returns the stored bytes of a key; nil if there were none or they have expired.
    public func bytes(forKey key: some CacheKey) async throws(LarderClientError) -> [UInt8]? {
        try await connection.perform(.get(key.keyBytes))
    }

    /// Returns whether the snapshot has an entry under a key, and the entry is still fresh.
    public func contains(_ key: some CacheKey) async throws(LarderClientError) -> Bool {
        try await connection.perform(.contains(key.keyBytes))
    }

    /// Returns the tags of an entry; nil if there was no entry or it has expired. Otherwise like
    /// ``RemoteCache/tags(forKey:)``.
    public func tags(forKey key: some CacheKey) async throws(LarderClientError) -> [String]? {
        try await connection.perform(.tags(key.keyBytes))
    }

    /// Returns the keys, each once, in no particular order. Keys that are not UTF-8 are omitted.
    /// - Parameter pattern: as for ``RemoteCache/keys(matching:)``.
    public func keys(matching pattern: String? = nil) async throws(LarderClientError) -> [String] {
        try await ScanStep.texts(matching: pattern) { (request) async throws(LarderClientError) in
            try await connection.perform(request)
        }
    }
}

extension RemoteSnapshot: AsyncQuerySource {
    public typealias QueryFailure = LarderClientError

    /// Returns a query of the models in the snapshot: see ``RemoteCache/query(_:)-(Value.Type)``. Uses no index.
    public func query(_ type: Value.Type = Value.self) -> ModelQuery<Value, RemoteSnapshot<Value>> {
        var runner = QueryRunner<LarderClientError>(codec, database: database)
        runner.runForTask = { [connection] (words, _, explains) async throws(LarderClientError) in
            try await connection.perform(.query(words, explains: explains))
        }
        runner.readForTask = { [connection] (keys) async throws(LarderClientError) in
            try await connection.perform(.getAll(keys)).map { $0.map { StoredText($0, .raw) } }
        }
        return ModelQuery(runner)
    }
}

extension RemoteCache {
    /// Reads several values consistently: `body` sees the database as it is at the start, regardless of concurrent
    /// writes. Needs larderd, which allows 64 open snapshots, each for at most 300 seconds.
    ///
    /// ```swift
    /// let total = try await prices.withSnapshot { snapshot in
    ///     try await snapshot.values(forKeys: try await snapshot.keys()).values.reduce(0, +)
    /// }
    /// ```
    /// Uses a connection of its own: see ``ClientOptions/ownConnectionsMax``.
    /// - Throws: errors of `body`; `server` if the daemon has no free snapshot, or has closed this one.
    public func withSnapshot<Result>(_ body: (RemoteSnapshot<Value>) async throws -> Result) async throws -> Result {
        try await store.ownConnections.withOwnConnection { connection in
            try await connection.perform(.expectingOK(wordList("SNAPSHOT", "OPEN")))
            let result = try await body(RemoteSnapshot(connection, codec, name))
            // If CLOSE fails, the daemon has closed the snapshot earlier, and all reads since then have thrown an
            // error.
            let close = Request.expectingOK(wordList("SNAPSHOT", "CLOSE"))
            if (try? await connection.perform(close)) != nil { connection.isClean = true }
            return result
        }
    }
}
