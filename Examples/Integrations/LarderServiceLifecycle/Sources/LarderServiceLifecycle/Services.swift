// swift-format-ignore-file: AvoidRetroactiveConformances
// Neither Larder nor ServiceLifecycle depends on the other, so a third package has to connect them.

import Larder
import LarderClient
import ServiceLifecycle

// With these extensions alone, a service ends when its task is cancelled.

extension LarderClient: @retroactive Service {}
extension LarderFollower: @retroactive Service {}
extension OriginCache: @retroactive Service {}
extension Outbox: @retroactive Service {}

/// A service that can be asked to end.
public protocol StoppableService: Service {
    /// Makes `run()` end gracefully. Returns at once.
    func shutdown()
}

extension LarderClient: StoppableService {}
extension LarderFollower: StoppableService {}
extension OriginCache: StoppableService {}
extension Outbox: StoppableService {}

/// A service that also ends when its group shuts down gracefully. It then completes what it has begun:
/// `ServiceGroup(services: [GracefulService(client), server], …)`. Put it in front of the services that use it, because
/// a group shuts down its services in reverse order.
public struct GracefulService<Base: StoppableService>: Service {
    private let base: Base

    public init(_ base: Base) { self.base = base }

    public func run() async throws {
        try await withGracefulShutdownHandler {
            try await base.run()
        } onGracefulShutdown: {
            base.shutdown()
        }
    }
}
