import LarderEngine
import LarderPlatform

/// Reports the server's health to the service manager: a signal for its watchdog, and a line for `systemctl status`.
///
/// After the first event loop has started, only that loop's thread uses this object.
final class ServiceReport {
    private let service: ServiceManager
    private let server: ServerState
    private let loops: [EventLoop]
    private var nextStatus = Int64.min

    private static let statusMilliseconds: Int64 = 10_000
    /// The minimum time without activity before a loop counts as stuck, even if the watchdog's interval is shorter.
    private static let stuckMilliseconds: Int64 = 1_000

    init(_ service: ServiceManager, _ server: ServerState, _ loops: [EventLoop]) {
        (self.service, self.server, self.loops) = (service, server, loops)
    }

    func ready() { service.ready(status) }

    func tick() {
        let now = MonotonicClock.milliseconds()
        let patience = max(Self.stuckMilliseconds, (service.watchdogMilliseconds ?? 0) / 2)
        // Each loop updates its heartbeat ten times per second.
        let isAlive = loops.allSatisfy { now - $0.heartbeat.load(ordering: .relaxed) < patience }
        service.tick(now: now, isAlive: isAlive)
        guard now >= nextStatus else { return }
        nextStatus = now + Self.statusMilliseconds
        service.notify(status)
    }

    private var status: String {
        guard server.engine.isReplayed else { return "serving \(server.socketPath): replaying the journal" }
        return "serving \(server.socketPath): \(counted(server.clients.read(), "client")), "
            + "\(counted(server.engine.databases.count, "database")), \(server.statistics.perSecond.commands) commands/s"
    }
}
