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

    private let lock = Lock()
    private var free: Int
    /// The waiting tasks. Only the thread that removes a task from the queue sets its promise.
    private var waiters = Deque<Promise<Outcome>>()
    private var isClosed = false

    init(_ count: Int) { free = count }

    /// Waits for a permit.
    /// - Parameter limit: the longest wait, in milliseconds; 0 for no limit. Without a limit, tasks that have a permit
    ///   and wait for a second one could wait for each other forever.
    func take(limit: Int) async -> Outcome {
        let promise = Promise<Outcome>()
        return await withTaskCancellationHandler {
            let outcome: Outcome? = lock.withLock {
                if isClosed { return .closed }
                if Task.isCancelled { return .cancelled }
                if free > 0 {
                    free -= 1
                    return .given
                }
                waiters.append(promise)
                return nil
            }
            if let outcome { return outcome }
            let timer = limit > 0 ? Task.delayed(milliseconds: Int64(limit)) { self.end(promise, .timeout) } : nil
            defer { timer?.cancel() }
            return await promise.value()
        } onCancel: {
            end(promise, .cancelled)
        }
    }

    func giveBack() {
        let next = lock.withLock {
            let next = waiters.popFirst()
            if next == nil { free += 1 }
            return next
        }
        next?.set(.given)
    }

    /// Ends all current and future waits.
    func close() {
        let waiting = lock.withLock {
            isClosed = true
            return waiters.takeAll()
        }
        for promise in waiting { promise.set(.closed) }
    }

    /// Ends the wait of a task. The task may already have its permit, or may not have begun to wait.
    private func end(_ promise: Promise<Outcome>, _ outcome: Outcome) {
        if lock.withLock({ waiters.remove(promise) }) { promise.set(outcome) }
    }
}
