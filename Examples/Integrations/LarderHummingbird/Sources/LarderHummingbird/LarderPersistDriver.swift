import Hummingbird
import LarderClient

/// Stores sessions and other data of a Hummingbird application in a database of larderd.
///
/// The application's service group must also run the client: see the package `LarderServiceLifecycle`.
public struct LarderPersistDriver: PersistDriver {
    private let client: LarderClient
    private let database: String

    /// - Parameter database: its policy applies to objects that are stored without `expires`. Create it beforehand if
    ///   they must live longer than a week: `larderctl policy persist never`.
    public init(client: LarderClient, database: String = "persist") {
        self.client = client
        self.database = database
    }

    private func cache<Object: Codable & Sendable>(_ type: Object.Type) -> RemoteCache<Object> {
        client.cache(database, of: type)
    }

    public func create<Object: Codable & Sendable>(key: String, value: Object, expires: Duration?) async throws {
        let policy = expires.map { EntryPolicy.after($0) } ?? .database
        guard try await cache(Object.self).setIfAbsent(value, forKey: key, policy: policy) else {
            throw PersistError.duplicate
        }
    }

    public func set<Object: Codable & Sendable>(key: String, value: Object, expires: Duration?) async throws {
        let policy = expires.map { EntryPolicy.after($0) } ?? .keep
        try await cache(Object.self).set(value, forKey: key, policy: policy)
    }

    public func get<Object: Codable & Sendable>(key: String, as type: Object.Type) async throws -> Object? {
        do {
            return try await cache(type).value(forKey: key)
        } catch {
            guard error.code == .decode else { throw error }
            throw PersistError.invalidConversion
        }
    }

    public func remove(key: String) async throws { try await cache(Bool.self).remove(key) }
}
