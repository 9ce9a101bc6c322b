import LarderOriginClients
import LarderPlatform

/// Polls a larder origin for its upstream chain, and suspends the origin while the chain contains a cycle: through this
/// database, or further upstream. In a cycle all larders would wait for each other.
///
/// `@unchecked Sendable`: everything below "Guarded" is guarded by `lock`.
final class CycleDetector: @unchecked Sendable {
    private let lock = Lock()
    // Guarded:
    private var beliefsAsked = 0
    private var isUnderWay = false
    private var isHeld = false
    /// The time of the next poll, in milliseconds of the monotonic clock.
    private var due = Int64.max
    private var pause = CycleDetector.soonMilliseconds

    /// The longest interval between polls. A larder further upstream may get another origin, and nothing reports that.
    private static let usualMilliseconds: Int64 = 10_000
    /// The first interval. It is short, because several origins may be set at the same time. It is also used while
    /// there is a cycle or no reply.
    private static let soonMilliseconds: Int64 = 1_000

    /// Polls if a poll is due. Does not block.
    /// - Parameters:
    ///   - node: this larder and its database.
    ///   - isUrgent: polls even if no poll is due.
    func ask(_ tier: OriginTier, _ node: String, isUrgent: Bool, monotonic: @escaping @Sendable () -> Int64) {
        let servers = tier.origin.status().servers
        let beliefs = servers.map(\.beliefs).max() ?? 0
        let now = monotonic()
        let mustAsk = lock.withLock {
            guard !isUnderWay, isUrgent || beliefs > beliefsAsked || now >= due else { return false }
            // A cluster is not a larder.
            guard servers.count == 1 else { return false }
            if isUrgent || beliefs > beliefsAsked { pause = Self.soonMilliseconds }
            (isUnderWay, beliefsAsked) = (true, beliefs)
            return true
        }
        guard mustAsk else { return }
        tier.origin.inquire(OriginPath.question([node])) { [self] result in
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
