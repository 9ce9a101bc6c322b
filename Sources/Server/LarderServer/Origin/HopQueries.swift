import LarderOriginClients
import LarderPlatform

/// Sends requests for the upstream chain of one origin. Equal requests that run at the same time are sent once.
///
/// No deadlock in a cycle of larders: a request that comes back lists more larders, so it differs from the first.
///
/// `@unchecked Sendable`: `waiting` is guarded by `lock`.
final class HopQueries: @unchecked Sendable {
    private let lock = Lock()
    private var waiting: [[String]: [@Sendable ([String]) -> Void]] = [:]

    /// The maximum number of requests that run at the same time. Further requests immediately get an empty result.
    private static let most = 64

    /// Requests the upstream chain of an origin. Does not block.
    /// - Parameters:
    ///   - nodes: the larders, with their databases, that have forwarded this request so far.
    ///   - then: called once, on any thread, with the chain, which begins with the origin. The chain is empty if the
    ///     origin is not a larder or does not reply, or if too many requests are running.
    func ask(_ origin: any Origin, _ nodes: [String], then: @escaping @Sendable ([String]) -> Void) {
        let (isFirst, isTooMany) = lock.withLock {
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
            let all = lock.withLock { waiting.removeValue(forKey: nodes) } ?? []
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
