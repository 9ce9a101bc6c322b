import LarderEngine
import LarderPlatform

/// Reports the changes of an origin to one cache.
///
/// All methods return at once, and may be called from any thread. A change takes effect when the call returns: no read
/// that begins later serves the previous value as fresh.
///
/// Thread-safe. `@unchecked Sendable`: `hasEnded` is guarded by the lock of `waiting`; the rest is constant.
public final class OriginChanges: @unchecked Sendable {
    /// Weak, to avoid a retain cycle: the object retains the origin, to read its epoch, and an origin may retain its
    /// `OriginChanges`.
    private weak var trust: InvalidationEpoch?
    private let database: Database
    private let waiting = WaitingTasks<Void>()
    private var hasEnded = false

    init(_ trust: InvalidationEpoch, _ database: Database) {
        self.trust = trust
        self.database = database
    }

    /// Starts an epoch: from now on the origin reports every change. Entries from before must be read from the origin
    /// again before they count as fresh.
    public func begin() { trust?.begin() }

    /// Reports that entries have changed, or may have.
    public func changed(_ keys: some Sequence<some CacheKey>) {
        let keys = keys.map(\.keyBytes).filter { $0.count <= Key.bytesMax }
        guard !keys.isEmpty, let trust, trust.changed(keys, isNotified: true) else { return }
        // Make the entries stale in the background. A read of these keys also does so, but there may be no read.
        Task { [trust, database] in
            try? await BlockingWork.run { () throws(LarderError) in try trust.applyNotifications(to: database) }
        }
    }

    /// Reports that any entry may have changed. The cost does not depend on the number of entries.
    public func changedAll() { trust?.loseAll() }

    /// Ends the epoch: changes are no longer reported, and no entry counts as current until ``begin()``. Returning or
    /// throwing from ``CacheOrigin/tellChanges(to:)`` does the same.
    public func lost() { trust?.lose() }

    /// - Returns: whether the origin reported changes until now.
    func lose() -> Bool { trust?.lose() ?? false }

    /// Returns when the cache is closed or the task is cancelled. For origins that receive changes by callbacks.
    public func untilClosed() async { await waiting.value(cancelled: ()) { hasEnded ? () : nil } }

    func end() {
        let all = waiting.lock.withLock {
            hasEnded = true
            return waiting.promises.takeAll()
        }
        for promise in all { promise.set(()) }
    }
}
