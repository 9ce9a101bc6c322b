// A stand-in for Vapor 4, and for what it exports of SwiftNIO: only what Larder's integration uses.

public protocol Cache: Sendable {
    func `for`(_ request: Request) -> Self
    func get<T>(_ key: String, as type: T.Type) -> EventLoopFuture<T?> where T: Decodable & Sendable
    func set<T>(_ key: String, to value: T?) -> EventLoopFuture<Void> where T: Encodable & Sendable
    func set<T>(_ key: String, to value: T?, expiresIn expirationTime: CacheExpirationTime?) -> EventLoopFuture<Void>
    where T: Encodable & Sendable
}

public final class Request: Sendable {
    public let eventLoop: any EventLoop

    public init(eventLoop: any EventLoop) { self.eventLoop = eventLoop }
}

public protocol EventLoop: AnyObject, Sendable {}

extension EventLoop {
    public func makeFutureWithTask<Return: Sendable>(
        _ body: @escaping @Sendable () async throws -> Return
    ) -> EventLoopFuture<Return> { EventLoopFuture(Task { try await body() }) }
}

public final class EventLoopFuture<Value: Sendable>: Sendable {
    private let task: Task<Value, any Error>

    init(_ task: Task<Value, any Error>) { self.task = task }

    public func get() async throws -> Value { try await task.value }
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
