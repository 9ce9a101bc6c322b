import LarderPlatform

/// Semaphores by name, each with one permit. The tasks of this process wait in order for the permit of a name.
///
/// Thread-safe. `@unchecked Sendable`: mutable state is guarded by `lock`.
final class NamedSemaphores: @unchecked Sendable {
    private struct Entry {
        let semaphore = AsyncSemaphore(1)
        /// The number of holders and waiters.
        var users = 1
    }

    private let lock = Lock()
    private var entries: [[UInt8]: Entry] = [:]
    private var isClosed = false

    /// Waits for the permit, which must be released with ``giveBack(_:)``.
    /// - Parameter limit: the longest wait, in milliseconds; 0 for no limit.
    func take(_ name: [UInt8], limit: Int) async -> AsyncSemaphore.Outcome {
        let semaphore: AsyncSemaphore? = lock.withLock {
            if isClosed { return nil }
            if let entry = entries[name] {
                entries[name]?.users += 1
                return entry.semaphore
            }
            let entry = Entry()
            entries[name] = entry
            return entry.semaphore
        }
        guard let semaphore else { return .closed }
        let outcome = await semaphore.take(limit: limit)
        if outcome != .given { forget(name) }
        return outcome
    }

    func giveBack(_ name: [UInt8]) {
        let semaphore = lock.withLock { entries[name]?.semaphore }
        forget(name)
        semaphore?.giveBack()
    }

    private func forget(_ name: [UInt8]) {
        lock.withLock {
            guard let entry = entries[name] else { return }
            if entry.users == 1 { entries[name] = nil } else { entries[name]?.users -= 1 }
        }
    }

    func close() {
        let semaphores = lock.withLock {
            isClosed = true
            return entries.values.map(\.semaphore)
        }
        for semaphore in semaphores { semaphore.close() }
    }
}
