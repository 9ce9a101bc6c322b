import LarderFetching
import LarderPlatform
import LarderRESP
import LarderWire

/// Wakes callers that wait for other processes' fetches, when the daemon reports that a key was stored or released.
///
/// Thread-safe.
final class FetchSignals: LinkEvents, Sendable {
    private let waiting = Locked<[[UInt8]: [WakeUp]]>([:])

    /// Returns the wake-up for a key. Call this before FETCH is sent, because the report may directly follow the reply
    /// to FETCH.
    func listen(_ key: [UInt8]) -> WakeUp {
        let wakeUp = WakeUp()
        waiting.withLock { $0[key, default: []].append(wakeUp) }
        return wakeUp
    }

    func forget(_ wakeUp: WakeUp, _ key: [UInt8]) {
        waiting.withLock { waiting in
            waiting[key]?.removeAll { $0 === wakeUp }
            if waiting[key]?.isEmpty ?? false { waiting[key] = nil }
        }
    }

    private func wakeAll() {
        let all = waiting.withLock { $0.values.flatMap { $0 } }
        for wakeUp in all { wakeUp.signal() }
    }

    // MARK: Events

    func linkIsReady(_ link: Link) {}

    /// A lost link reports nothing more, so wake the waiters: they send their requests again on another connection.
    func linkWasLost(_ link: Link) { wakeAll() }

    func link(_ link: Link, pushed message: [RESPValue]) {
        guard message.count == 2, message[0].string == "invalidate" else { return }
        guard let keys = message[1].elements else { return wakeAll() }
        let woken = waiting.withLock { waiting in keys.compactMap(\.bytes).flatMap { waiting[$0] ?? [] } }
        for wakeUp in woken { wakeUp.signal() }
    }
}
