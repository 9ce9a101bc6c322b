// A stand-in for Hummingbird 2: only what Larder's integration uses.

import ServiceLifecycle

public protocol PersistDriver: Service {
    func shutdown() async throws
    func create<Object: Codable & Sendable>(key: String, value: Object, expires: Duration?) async throws
    func set<Object: Codable & Sendable>(key: String, value: Object, expires: Duration?) async throws
    func get<Object: Codable & Sendable>(key: String, as: Object.Type) async throws -> Object?
    func remove(key: String) async throws
}

extension PersistDriver {
    public func shutdown() async throws {}

    public func run() async throws {
        try? await gracefulShutdown()
        try await shutdown()
    }
}

public struct PersistError: Error, Equatable {
    private let number: Int

    public static var duplicate: Self { Self(number: 1) }
    public static var invalidConversion: Self { Self(number: 2) }
}
