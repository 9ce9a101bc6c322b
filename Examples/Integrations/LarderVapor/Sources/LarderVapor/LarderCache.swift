import LarderClient
import Vapor

/// A Vapor cache in a database of larderd: `app.caches.use { _ in LarderCache(client) }`.
public struct LarderCache: Cache {
    private let client: LarderClient
    private let database: String

    /// - Parameter database: its policy applies to values that are stored without an expiration time.
    public init(_ client: LarderClient, database: String = "vapor") {
        self.client = client
        self.database = database
    }

    public func get<T>(_ key: String, as type: T.Type) async throws -> T? where T: Decodable & Sendable {
        try await client.cache(database, of: Received<T>.self).value(forKey: key)?.value
    }

    public func set<T>(_ key: String, to value: T?, expiresIn expirationTime: CacheExpirationTime?) async throws
    where T: Encodable & Sendable {
        let cache = client.cache(database, of: Sent<T>.self)
        guard let value else {
            try await cache.remove(key)
            return
        }
        let policy = expirationTime.map { EntryPolicy.seconds(Double($0.seconds)) } ?? .database
        try await cache.set(Sent(value: value), forKey: key, policy: policy)
    }
}

// Vapor's values are encodable or decodable, Larder's are both. The JSON is that of the value alone.

private struct Sent<Value: Encodable & Sendable>: Codable, Sendable {
    let value: Value

    init(value: Value) { self.value = value }
    init(from decoder: any Decoder) throws {
        throw DecodingError.dataCorrupted(.init(codingPath: decoder.codingPath, debugDescription: "only for encoding"))
    }
    func encode(to encoder: any Encoder) throws { try value.encode(to: encoder) }
}

private struct Received<Value: Decodable & Sendable>: Codable, Sendable {
    let value: Value

    init(from decoder: any Decoder) throws { value = try Value(from: decoder) }
    func encode(to encoder: any Encoder) throws {
        let context = EncodingError.Context(codingPath: encoder.codingPath, debugDescription: "only for decoding")
        throw EncodingError.invalidValue(value, context)
    }
}
