import LarderClient
import Vapor

/// A Vapor cache in a database of larderd:
/// `app.caches.use { app in LarderCache(client, on: app.eventLoopGroup.any()) }`. Vapor also calls it with async/await:
/// `try await request.cache.get("key", as: Int.self)`.
public struct LarderCache: Cache {
    private let client: LarderClient
    private let eventLoop: any EventLoop
    private let database: String

    /// - Parameters:
    ///   - eventLoop: where futures are completed; those of a request, on the request's.
    ///   - database: its policy applies to values that are stored without an expiration time.
    public init(_ client: LarderClient, on eventLoop: any EventLoop, database: String = "vapor") {
        self.client = client
        self.eventLoop = eventLoop
        self.database = database
    }

    public func `for`(_ request: Request) -> LarderCache {
        LarderCache(client, on: request.eventLoop, database: database)
    }

    public func get<T>(_ key: String, as type: T.Type) -> EventLoopFuture<T?> where T: Decodable & Sendable {
        eventLoop.makeFutureWithTask {
            try await client.cache(database, of: Received<T>.self).value(forKey: key)?.value
        }
    }

    public func set<T>(_ key: String, to value: T?) -> EventLoopFuture<Void> where T: Encodable & Sendable {
        set(key, to: value, expiresIn: nil)
    }

    public func set<T>(
        _ key: String, to value: T?, expiresIn expirationTime: CacheExpirationTime?
    ) -> EventLoopFuture<Void> where T: Encodable & Sendable {
        let policy = expirationTime.map { EntryPolicy.seconds(Double($0.seconds)) } ?? .database
        return eventLoop.makeFutureWithTask {
            let cache = client.cache(database, of: Sent<T>.self)
            if let value {
                try await cache.set(Sent(value: value), forKey: key, policy: policy)
            } else {
                try await cache.remove(key)
            }
        }
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
