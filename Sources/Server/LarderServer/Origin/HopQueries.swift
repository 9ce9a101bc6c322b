import LarderOriginClients
import LarderPlatform

/// Deduplicates upstream-chain requests to one origin; each request uses its own connection. A cycle cannot deadlock: a
/// request that comes back around carries a longer list of hops, so it is not merged with the first one.
///
/// `@unchecked Sendable`: `waiting` is guarded by `lock`.
final class HopQueries: @unchecked Sendable {
    private let lock = Lock()
    private var waiting: [[String]: [@Sendable ([String]) -> Void]] = [:]

    /// The most concurrent requests. Further ones get an empty reply.
    private static let most = 64

    /// - Parameters:
    ///   - nodes: the hops so far.
    ///   - then: called once, on any thread, with the larders upstream of the origin; empty if the origin is not a
    ///     larder or does not reply.
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
        origin.inquire(OriginPath.question(nodes)) { [self] result in
            let all = lock.withLock { waiting.removeValue(forKey: nodes) } ?? []
            var path: [String] = []
            if case .path(let found) = OriginPath.answer(result) { path = found }
            for then in all { then(path) }
        }
    }

    /// Like ``ask(_:_:then:)``, but blocks until the origin has replied or timed out.
    func path(_ origin: any Origin, _ nodes: [String]) -> [String] {
        let answer = OneAnswer()
        ask(origin, nodes) { answer.set($0) }
        return answer.wait()
    }
}

/// A reply that a thread waits for.
///
/// `@unchecked Sendable`: `value` is guarded by `lock`.
private final class OneAnswer: @unchecked Sendable {
    private let lock = Lock()
    private let isSet = Condition()
    private var value: [String]?

    func set(_ value: [String]) {
        lock.withLock {
            self.value = value
            isSet.signal()
        }
    }

    func wait() -> [String] {
        lock.withLock {
            while true {
                if let value { return value }
                isSet.wait(lock)
            }
        }
    }
}
