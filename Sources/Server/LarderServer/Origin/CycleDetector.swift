import LarderOriginClients
import LarderPlatform

/// Asks an origin that is a larder, again and again, whom it asks itself: if that is this database, over however many others,
/// all would wait for each other, and the origin is held until it is no longer so; also if it is another that asks itself.
///
/// Thread-safe. The proof for `@unchecked Sendable`: all below "guarded" is read and written with the lock held.
final class CycleDetector: @unchecked Sendable {
    private let lock = Lock()
    // Guarded:
    private var beliefsAsked = 0
    private var isUnderWay = false
    private var isHeld = false
    /// In milliseconds of the monotonic clock.
    private var due = Int64.max
    private var pause = CycleDetector.soonMilliseconds

    /// How often a larder is asked in the end: one behind it may have got another origin, and nobody else could find out.
    private static let usualMilliseconds: Int64 = 10_000
    /// How soon at first, when others may be set at the same moment, and while there is a circle or no answer.
    private static let soonMilliseconds: Int64 = 1_000

    /// Asks if it is time to, and returns at once.
    /// - Parameters:
    ///   - node: this larder and its database.
    ///   - isUrgent: whether it is time to in any case.
    func ask(_ tier: OriginTier, _ node: String, isUrgent: Bool, monotonic: @escaping @Sendable () -> Int64) {
        let servers = tier.origin.status().servers
        let beliefs = servers.map(\.beliefs).max() ?? 0
        let now = monotonic()
        let mustAsk = lock.withLock {
            guard !isUnderWay, isUrgent || beliefs > beliefsAsked || now >= due else { return false }
            // A larder is no cluster.
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
