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

/// Semaphores by name, each with one permit. The tasks of this process wait in order for the permit of a name.
///
/// Thread-safe.
final class NamedSemaphores: Sendable {
    /// A semaphore, and the number of its holders and waiters.
    private typealias Entry = (semaphore: AsyncSemaphore, users: Int)

    private let state = Locked((entries: [[UInt8]: Entry](), isClosed: false))

    /// Waits for the permit, which must be released with ``giveBack(_:)``.
    /// - Parameter limit: the longest wait, in milliseconds; 0 for no limit.
    func take(_ name: [UInt8], limit: Int) async -> AsyncSemaphore.Outcome {
        let semaphore: AsyncSemaphore? = state.withLock { state in
            if state.isClosed { return nil }
            var entry = state.entries[name] ?? (AsyncSemaphore(1), 0)
            entry.users += 1
            state.entries[name] = entry
            return entry.semaphore
        }
        guard let semaphore else { return .closed }
        let outcome = await semaphore.take(limit: limit)
        if outcome != .given { forget(name) }
        return outcome
    }

    func giveBack(_ name: [UInt8]) {
        let semaphore = state.withLock { $0.entries[name]?.semaphore }
        forget(name)
        semaphore?.giveBack()
    }

    private func forget(_ name: [UInt8]) {
        state.withLock { state in
            guard let entry = state.entries[name] else { return }
            if entry.users == 1 { state.entries[name] = nil } else { state.entries[name]?.users -= 1 }
        }
    }

    func close() {
        let semaphores = state.withLock { state in
            state.isClosed = true
            return state.entries.values.map(\.semaphore)
        }
        for semaphore in semaphores { semaphore.close() }
    }
}
