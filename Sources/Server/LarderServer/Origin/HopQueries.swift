import LarderOriginClients
import LarderPlatform

/// The questions to an origin for the larders behind it. Each is a connection of its own, so those who ask the same share one.
/// In a circle nobody waits for himself so: a question that has come round names more larders than before.
///
/// Thread-safe. The proof for `@unchecked Sendable`: all that wait are read and written with the lock held.
final class HopQueries: @unchecked Sendable {
    private let lock = Lock()
    private var waiting: [[String]: [@Sendable ([String]) -> Void]] = [:]

    /// At most so many questions at once; further ones are not asked, as if there were no answer.
    private static let most = 64

    /// - Parameters:
    ///   - nodes: who has asked so far.
    ///   - then: called once, on any thread, with the larders behind the origin: none, if it is no larder or does not answer.
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

    /// As ``ask(_:_:then:)``. Blocks, for as long as a call of the origin.
    func path(_ origin: any Origin, _ nodes: [String]) -> [String] {
        let answer = OneAnswer()
        ask(origin, nodes) { answer.set($0) }
        return answer.wait()
    }
}

/// An answer that a thread waits for.
///
/// Thread-safe. The proof for `@unchecked Sendable`: the value is read and written with the lock held.
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
