// A stand-in for swift-service-lifecycle: only what Larder's integrations and their test use.

import Logging
import Synchronization

public protocol Service: Sendable {
    func run() async throws
}

/// The state of one service's graceful shutdown.
final class Shutdown: Sendable {
    @TaskLocal static var current: Shutdown?

    private let state = Mutex((isBegun: false, handlers: [@Sendable () -> Void]()))

    func add(_ handler: @escaping @Sendable () -> Void) {
        let isBegun = state.withLock { state in
            if !state.isBegun { state.handlers.append(handler) }
            return state.isBegun
        }
        if isBegun { handler() }
    }

    func begin() {
        let handlers = state.withLock { state in
            state.isBegun = true
            defer { state.handlers = [] }
            return state.handlers
        }
        for handler in handlers { handler() }
    }
}

public func withGracefulShutdownHandler<T>(
    isolation: isolated (any Actor)? = #isolation, operation: () async throws -> T,
    onGracefulShutdown handler: @Sendable @escaping () -> Void
) async rethrows -> T {
    Shutdown.current?.add(handler)
    return try await operation()
}

public func gracefulShutdown() async throws {
    guard let shutdown = Shutdown.current else { return }
    let (ends, end) = AsyncStream.makeStream(of: Void.self)
    shutdown.add { end.finish() }
    for await _ in ends {}
}

public actor ServiceGroup {
    private let services: [(service: any Service, shutdown: Shutdown)]
    private var tasks: [Task<Void, any Error>] = []

    public init(services: [any Service], logger: Logger) {
        self.services = services.map { ($0, Shutdown()) }
    }

    public func run() async throws {
        tasks = services.map { service, shutdown in
            Task { try await Shutdown.$current.withValue(shutdown) { try await service.run() } }
        }
        for task in tasks { try await task.value }
    }

    /// Ends the services in reverse order, each after the next one has ended.
    public func triggerGracefulShutdown() async {
        for (service, task) in zip(services, tasks).reversed() {
            service.shutdown.begin()
            _ = await task.result
        }
    }
}
