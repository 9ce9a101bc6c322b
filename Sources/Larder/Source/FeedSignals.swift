import LarderEngine
import LarderPlatform

/// The tasks of one cache that wait for a change in a feed.
///
/// Thread-safe. `@unchecked Sendable`: mutable properties are guarded by `lock`.
final class FeedSignals: @unchecked Sendable {
    private let lock = Lock()
    private var signals: [ObjectIdentifier: Promise<Void>] = [:]
    private var isClosed = false

    /// Waits until there is a change after `position`, the task is cancelled, or the cache is closed.
    func wait(_ database: Database, _ position: FeedPosition, _ prefix: [UInt8]) async {
        guard case .behind(let feed?, let place) = position.start else { return }
        let signal = Promise<Void>()
        let isOpen = lock.withLock { () -> Bool in
            if !isClosed { signals[ObjectIdentifier(signal)] = signal }
            return !isClosed
        }
        defer { lock.withLock { signals[ObjectIdentifier(signal)] = nil } }
        let waiter = FeedWaiter(prefix: prefix) { signal.set(()) }
        guard isOpen, database.feed.wait(waiter, feed: feed, behind: place) else { return }
        await withTaskCancellationHandler {
            await signal.value()
        } onCancel: {
            signal.set(())
        }
        database.feed.stopWaiting(waiter)
    }

    /// Ends all current and future waits.
    func close() {
        let all = lock.withLock {
            isClosed = true
            return Array(signals.values)
        }
        for signal in all { signal.set(()) }
    }
}
