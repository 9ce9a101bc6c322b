import LarderEngine
import LarderPlatform

/// Where an origin says what has changed: one cache that asks it.
///
/// All calls return at once, and may come from any thread. What is said counts from the moment in which the call returns:
/// no read that begins later serves the former value as fresh.
///
/// Thread-safe. The proof for `@unchecked Sendable`: what changes is read and written with the lock held.
public final class OriginChanges: @unchecked Sendable {
    /// Weak: it asks the origin for its epoch, and an origin may keep this object for as long as it lives.
    private weak var trust: InvalidationEpoch?
    private let database: Database
    private let lock = Lock()
    private var waiting: [UInt64: UnsafeContinuation<Void, Never>] = [:]
    private var waits: UInt64 = 0
    private var hasEnded = false

    init(_ trust: InvalidationEpoch, _ database: Database) {
        self.trust = trust
        self.database = database
    }

    /// From now on every change is said. What was known before is looked up again.
    public func begin() { trust?.begin() }

    /// These entries are no longer what they were, or may not be.
    public func changed(_ keys: some Sequence<some CacheKey>) {
        let keys = keys.map(\.keyBytes).filter { $0.count <= Key.bytesMax }
        guard !keys.isEmpty, let trust, trust.changed(keys, isTold: true) else { return }
        // Readers of these keys do it themselves. This is for keys that nobody reads.
        Task { [trust, database] in
            try? await BlockingWork.run { () throws(LarderError) in try trust.settle(database) }
        }
    }

    /// Any entry may have changed. Costs nothing for each.
    public func changedAll() { trust?.loseAll() }

    /// Changes are no longer said: nothing is known to be current until ``begin()``. Returning from
    /// ``CacheOrigin/tellChanges(to:)``, or throwing, does the same.
    public func lost() { trust?.lose() }

    /// - Returns: whether changes were said until now.
    func lose() -> Bool { trust?.lose() ?? false }

    /// Returns when the cache is closed, or the task is cancelled: for origins that are told what changes by callbacks.
    public func untilClosed() async {
        let number = lock.withLock {
            waits += 1
            return waits
        }
        await withTaskCancellationHandler {
            await withUnsafeContinuation { (continuation: UnsafeContinuation<Void, Never>) in
                let isOver = lock.withLock { () -> Bool in
                    if hasEnded || Task.isCancelled { return true }
                    waiting[number] = continuation
                    return false
                }
                if isOver { continuation.resume() }
            }
        } onCancel: {
            lock.withLock { waiting.removeValue(forKey: number) }?.resume()
        }
    }

    func end() {
        let all = lock.withLock {
            hasEnded = true
            defer { waiting = [:] }
            return Array(waiting.values)
        }
        for continuation in all { continuation.resume() }
    }
}
