import LarderOriginClients
import LarderPlatform
import LarderRESP

/// The upstream chain of a database: a list of larders, each with the name of its database. Each larder is the origin
/// of the previous larder in the list.
enum OriginPath {
    enum Answer {
        case path([String])
        /// The origin is not a larder.
        case none
        /// The origin has not replied.
        case unknown
    }

    /// Returns the command that requests the upstream chain.
    /// - Parameter nodes: the hops so far. A larder that is one of these hops does not forward the request.
    static func question(_ nodes: [String]) -> [[UInt8]] { (["ORIGIN", "PATH"] + nodes).map { Array($0.utf8) } }

    static func answer(_ result: Result<RESPValue, OriginError>) -> Answer {
        switch result {
        case .success(let reply): reply.elements.map { .path($0.compactMap(\.string)) } ?? .none
        case .failure(.refused): .none
        case .failure: .unknown
        }
    }

    /// Checks whether a database is its own origin, directly or through other larders.
    /// - Returns: the reason why waiting for the origin would be a deadlock; nil if there is no such cycle.
    static func circle(of node: String, _ origin: String, _ path: [String]) -> String? {
        guard let index = path.firstIndex(of: node) else { return nil }
        guard index > 0 else { return "a cycle: \(origin) is this database itself" }
        let way = index == 1 ? "" : ", over \(index - 1) other\(index == 2 ? "" : "s")"
        return
            "a cycle: \(origin) has this database as its origin\(way), so all would wait for each other; set another "
            + "origin for one of them, or none (if queued writes cannot be delivered: ORIGIN NONE DISCARD drops them from the "
            + "outbox, and keeps the values here)"
    }

    /// Checks whether the chain ends in a cycle that does not contain this larder.
    /// - Returns: the reason why the origin cannot reply; nil if there is no such cycle.
    static func circle(behind origin: String, _ path: [String]) -> String? {
        guard let last = path.last, path.dropLast().contains(last) else { return nil }
        return
            "a cycle in the upstream chain of \(origin): its larders would wait for each other; set another origin for one "
            + "of them, or none"
    }
}

/// Polls the upstream chains of origins that are larders: the larder's own origin, the origin of that origin, and so
/// on. Suspends an origin while the chain has a cycle, because all larders in a cycle would wait for each other.
/// Thread-safe.
final class CycleDetector: Sendable {
    private struct State {
        var recoveriesAtPoll = 0
        var isUnderWay = false
        /// The time of the next poll, in milliseconds of the monotonic clock.
        var due = Int64.max
        var pause = CycleDetector.soonMilliseconds
    }

    private let state = Locked(State())

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
        let mustAsk = state.withLock {
            let isNew = isUrgent || recoveries > $0.recoveriesAtPoll
            // An origin with several servers is a cluster, so it is not a larder.
            guard !$0.isUnderWay, isNew || now >= $0.due, servers.count == 1 else { return false }
            if isNew { $0.pause = Self.soonMilliseconds }
            ($0.isUnderWay, $0.recoveriesAtPoll) = (true, recoveries)
            return true
        }
        guard mustAsk else { return }
        tier.origin.sendSideRequest(OriginPath.question([node])) { [self] result in
            hear(OriginPath.answer(result), tier, node, monotonic())
        }
    }

    private func hear(_ answer: OriginPath.Answer, _ tier: OriginTier, _ node: String, _ now: Int64) {
        let origin = tier.origin.name
        let reason = state.withLock { (state) -> String?? in
            state.isUnderWay = false
            switch answer {
            case .path(let path):
                let reason = OriginPath.circle(of: node, origin, path) ?? OriginPath.circle(behind: origin, path)
                if reason != nil { state.pause = Self.soonMilliseconds }
                state.due = now + state.pause
                if reason == nil { state.pause = min(2 * state.pause, Self.usualMilliseconds) }
                return .some(reason)
            case .none:
                state.due = .max
                return .some(nil)
            case .unknown:
                state.due = now + Self.soonMilliseconds
                return nil
            }
        }
        if case .some(let reason) = reason { tier.origin.hold(reason) }
    }
}

/// Sends requests for the upstream chain of one origin. Equal requests that run at the same time are sent once.
///
/// No deadlock in a cycle of larders: a request that comes back lists more larders, so it differs from the first.
/// Thread-safe.
final class HopQueries: Sendable {
    private let waiting = Locked<[[String]: [@Sendable ([String]) -> Void]]>([:])

    /// The maximum number of requests that run at the same time. Further requests immediately get an empty result.
    private static let most = 64

    /// Requests the upstream chain of an origin. Does not block.
    /// - Parameters:
    ///   - nodes: the larders, with their databases, that have forwarded this request so far.
    ///   - then: called once, on any thread, with the chain, which begins with the origin. The chain is empty if the
    ///     origin is not a larder or does not reply, or if too many requests are running.
    func ask(_ origin: any Origin, _ nodes: [String], then: @escaping @Sendable ([String]) -> Void) {
        let (isFirst, isTooMany) = waiting.withLock { waiting in
            if waiting[nodes] != nil {
                waiting[nodes]?.append(then)
                return (false, false)
            }
            if waiting.count >= Self.most { return (false, true) }
            waiting[nodes] = [then]
            return (true, false)
        }
        if isTooMany { return then([]) }
        guard isFirst else { return }
        origin.sendSideRequest(OriginPath.question(nodes)) { [self] result in
            let all = waiting.withLock { $0.removeValue(forKey: nodes) } ?? []
            var path: [String] = []
            if case .path(let found) = OriginPath.answer(result) { path = found }
            for then in all { then(path) }
        }
    }

    /// Like ``ask(_:_:then:)``, but blocks until the origin has replied or timed out.
    func path(_ origin: any Origin, _ nodes: [String]) -> [String] {
        let answer = BlockingResults<[String]>(1)
        ask(origin, nodes) { answer.set(0, $0) }
        return answer.wait()[0]
    }
}
