import LarderPlatform

/// A counting semaphore for tasks. A limited number of tasks have a permit at the same time; other tasks wait in order,
/// for a limited time.
///
/// Thread-safe. `@unchecked Sendable`: mutable properties are guarded by `lock`.
final class AsyncSemaphore: @unchecked Sendable {
    enum Outcome {
        /// The task has a permit, which it must return with ``giveBack()``.
        case given
        case timeout
        case cancelled
        case closed
    }

    private let waiters = WaitingTasks<Outcome>()
    private var lock: Lock { waiters.lock }
    private var free: Int
    private var isClosed = false

    init(_ count: Int) { free = count }

    /// Waits for a permit.
    /// - Parameter limit: the longest wait, in milliseconds; 0 for no limit. Without a limit, tasks that have a permit
    ///   and wait for a second one could wait for each other forever.
    func take(limit: Int) async -> Outcome {
        await waiters.value(cancelled: .cancelled, timeout: limit > 0 ? (Int64(limit), .timeout) : nil) {
            if isClosed { return .closed }
            guard free > 0 else { return nil }
            free -= 1
            return .given
        }
    }

    func giveBack() {
        let next = lock.withLock {
            let next = waiters.promises.popFirst()
            if next == nil { free += 1 }
            return next
        }
        next?.set(.given)
    }

    /// Ends all current and future waits.
    func close() {
        let waiting = lock.withLock {
            isClosed = true
            return waiters.promises.takeAll()
        }
        for promise in waiting { promise.set(.closed) }
    }
}
