// A stand-in for Vapor 4: only what Larder's integration uses.

public protocol Cache: Sendable {
    func get<T>(_ key: String, as type: T.Type) async throws -> T? where T: Decodable & Sendable
    func set<T>(_ key: String, to value: T?, expiresIn expirationTime: CacheExpirationTime?) async throws
    where T: Encodable & Sendable
}

public enum CacheExpirationTime: Sendable {
    case seconds(Int)
    case minutes(Int)
    case hours(Int)
    case days(Int)

    public var seconds: Int {
        switch self {
        case .seconds(let count): count
        case .minutes(let count): count * 60
        case .hours(let count): count * 3_600
        case .days(let count): count * 86_400
        }
    }
}
