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

    /// A waiting task. `@unchecked Sendable`: guarded by the semaphore's `lock`.
    private final class Waiter: @unchecked Sendable {
        var continuation: UnsafeContinuation<Outcome, Never>?
        var isCancelled = false
        var timer: Task<Void, Never>?
    }

    private let lock = Lock()
    private var free: Int
    private var waiters = Deque<Waiter>()
    private var isClosed = false

    init(_ count: Int) { free = count }

    /// Waits for a permit.
    /// - Parameter limit: the longest wait, in milliseconds; 0 for no limit. Without a limit, tasks that have a permit
    ///   and wait for a second one could wait for each other forever.
    func take(limit: Int) async -> Outcome {
        let waiter = Waiter()
        let outcome = await withTaskCancellationHandler {
            await withUnsafeContinuation { continuation in
                let answer: Outcome? = lock.withLock {
                    if isClosed { return .closed }
                    if waiter.isCancelled { return .cancelled }
                    if free > 0 {
                        free -= 1
                        return .given
                    }
                    waiter.continuation = continuation
                    waiters.append(waiter)
                    if limit > 0 { waiter.timer = timer(for: waiter, limit) }
                    return nil
                }
                if let answer { continuation.resume(returning: answer) }
            }
        } onCancel: {
            end(waiter, .cancelled)
        }
        lock.withLock { waiter.timer }?.cancel()
        return outcome
    }

    func giveBack() {
        let next: UnsafeContinuation<Outcome, Never>? = lock.withLock {
            while let waiter = waiters.popFirst() {
                guard let continuation = waiter.continuation else { continue }
                waiter.continuation = nil
                return continuation
            }
            free += 1
            return nil
        }
        next?.resume(returning: .given)
    }

    /// Ends all current and future waits.
    func close() {
        let waiting = lock.withLock {
            isClosed = true
            return waiters.elements
        }
        for waiter in waiting { end(waiter, .closed) }
    }

    private func timer(for waiter: Waiter, _ limit: Int) -> Task<Void, Never> {
        Task { [weak self] in
            guard (try? await Task.sleep(nanoseconds: UInt64(limit) * 1_000_000)) != nil else { return }
            self?.end(waiter, .timeout)
        }
    }

    /// Ends the wait of a task. The task may already have its permit, or may not have begun to wait.
    private func end(_ waiter: Waiter, _ outcome: Outcome) {
        let continuation = lock.withLock {
            waiter.isCancelled = true
            waiters.removeAll { $0 === waiter }
            defer { waiter.continuation = nil }
            return waiter.continuation
        }
        continuation?.resume(returning: outcome)
    }
}
