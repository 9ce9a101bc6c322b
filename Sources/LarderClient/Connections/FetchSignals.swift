import LarderFetching
import LarderPlatform
import LarderRESP

/// Wakes those who wait for values that other processes fetch, when the daemon reports that a key was filled or given up.
///
/// Thread-safe. The proof for `@unchecked Sendable`: what changes is read and written with the lock held.
final class FetchSignals: LinkEvents, @unchecked Sendable {
    private let lock = Lock()
    private var waiting: [[UInt8]: [WakeUp]] = [:]

    /// Call it before the daemon is asked: its report may come right behind its answer.
    func listen(_ key: [UInt8]) -> WakeUp {
        let wakeUp = WakeUp()
        lock.withLock { waiting[key, default: []].append(wakeUp) }
        return wakeUp
    }

    func forget(_ wakeUp: WakeUp, _ key: [UInt8]) {
        lock.withLock {
            waiting[key]?.removeAll { $0 === wakeUp }
            if waiting[key]?.isEmpty ?? false { waiting[key] = nil }
        }
    }

    private func wakeAll() {
        let all = lock.withLock { waiting.values.flatMap { $0 } }
        for wakeUp in all { wakeUp.signal() }
    }

    // MARK: Events

    func linkIsReady(_ link: Link) {}

    /// Nothing more is reported: who waits asks again, on another connection.
    func linkWasLost(_ link: Link) { wakeAll() }

    func link(_ link: Link, pushed message: [RESPValue]) {
        guard message.count == 2, message[0].string == "invalidate" else { return }
        guard let keys = message[1].elements else { return wakeAll() }
        let woken = lock.withLock { keys.compactMap(\.bytes).flatMap { waiting[$0] ?? [] } }
        for wakeUp in woken { wakeUp.signal() }
    }
}
