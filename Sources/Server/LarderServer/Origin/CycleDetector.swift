import LarderOriginClients
import LarderPlatform

/// Polls the upstream chains of origins that are larders: the larder's own origin, the origin of that origin, and so
/// on. Suspends an origin while the chain has a cycle, because all larders in a cycle would wait for each other.
///
/// `@unchecked Sendable`: everything below "Guarded" is guarded by `lock`.
final class CycleDetector: @unchecked Sendable {
    private let lock = Lock()
    // Guarded by `lock`:
    private var recoveriesAtPoll = 0
    private var isUnderWay = false
    private var isHeld = false
    /// The time of the next poll, in milliseconds of the monotonic clock.
    private var due = Int64.max
    private var pause = CycleDetector.soonMilliseconds

    /// The maximum interval between polls. Polling is needed because larders do not report changes of their origins.
    private static let usualMilliseconds: Int64 = 10_000
    /// The first interval, and the interval while there is a cycle or no reply. Short, because several larders may get
    /// their origins at the same time.
    private static let soonMilliseconds: Int64 = 1_000

    /// Sends a request for the upstream chain if a poll is due, or after the origin has become available again. Does
    /// not block.
    /// - Parameters:
    ///   - node: the name of this larder and its database in upstream chains.
    ///   - isUrgent: whether to poll even if no poll is due.
    func ask(_ tier: OriginTier, _ node: String, isUrgent: Bool, monotonic: @escaping @Sendable () -> Int64) {
        let servers = tier.origin.status().servers
        let recoveries = servers.map(\.recoveries).max() ?? 0
        let now = monotonic()
        let mustAsk = lock.withLock {
            guard !isUnderWay, isUrgent || recoveries > recoveriesAtPoll || now >= due else { return false }
            // An origin with several servers is a cluster, so it is not a larder.
            guard servers.count == 1 else { return false }
            if isUrgent || recoveries > recoveriesAtPoll { pause = Self.soonMilliseconds }
            (isUnderWay, recoveriesAtPoll) = (true, recoveries)
            return true
        }
        guard mustAsk else { return }
        tier.origin.sendSideRequest(OriginPath.question([node])) { [self] result in
            hear(OriginPath.answer(result), tier, node, monotonic())
        }
    }

    private func hear(_ answer: OriginPath.Answer, _ tier: OriginTier, _ node: String, _ now: Int64) {
        let reason = lock.withLock { () -> String?? in
            isUnderWay = false
            switch answer {
            case .path(let path):
                let origin = tier.origin.name
                let reason = OriginPath.circle(of: node, origin, path) ?? OriginPath.circle(behind: origin, path)
                if reason != nil { pause = Self.soonMilliseconds }
                due = now + pause
                if reason == nil { pause = min(2 * pause, Self.usualMilliseconds) }
                isHeld = reason != nil
                return .some(reason)
            case .none:
                due = .max
                isHeld = false
                return .some(nil)
            case .unknown:
                due = now + Self.soonMilliseconds
                return nil
            }
        }
        if case .some(let reason) = reason { tier.origin.hold(reason) }
    }
}
