import LarderPlatform

/// A result that a thread which is not in a task, such as the main thread, waits for.
final class Awaited<Value: Sendable>: Sendable {
    private let outcome = Locked<Result<Value, any Error>?>(nil)
    // The condition is signalled after the outcome was set. Waiting threads hold the lock while they check the outcome.
    private let lock = Lock()
    private let changed = Condition()

    /// Runs a closure on a separate thread.
    /// - Parameter onEnd: called on that thread when there is a result.
    init(onThread body: @escaping @Sendable () throws -> Value, onEnd: @escaping @Sendable () -> Void = {}) {
        _ = WorkThread(name: "larderctl-work") { [self] in
            end(Result { try body() })
            onEnd()
        }
    }

    init(_ task: Task<Value, any Error>) {
        Task { end(await task.result) }
    }

    private func end(_ outcome: Result<Value, any Error>) {
        self.outcome.withLock { $0 = outcome }
        lock.withLock { changed.broadcast() }
    }

    /// Waits for the result, for at most the given time.
    /// - Returns: nil if there is none.
    func result(waitingUpTo milliseconds: Int64) -> Result<Value, any Error>? {
        lock.withLock {
            if let outcome = outcome.withLock({ $0 }) { return outcome }
            if milliseconds > 0 { changed.wait(lock, milliseconds: milliseconds) }
            return outcome.withLock { $0 }
        }
    }

    /// The result. Waits for it.
    var result: Result<Value, any Error> {
        lock.withLock {
            while true {
                if let outcome = outcome.withLock({ $0 }) { return outcome }
                changed.wait(lock)
            }
        }
    }
}
