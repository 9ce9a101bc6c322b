import LarderPlatform

/// A result that a thread which is not in a task, such as the main thread, waits for.
///
/// `@unchecked Sendable`: mutable state is guarded by `lock`.
final class Awaited<Value: Sendable>: @unchecked Sendable {
    private let lock = Lock()
    private let changed = Condition()
    private var outcome: Result<Value, any Error>?

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
        lock.withLock {
            self.outcome = outcome
            changed.broadcast()
        }
    }

    /// Waits for the result, for at most the given time.
    /// - Returns: nil if there is none.
    func result(waitingUpTo milliseconds: Int64) -> Result<Value, any Error>? {
        lock.withLock {
            if outcome == nil, milliseconds > 0 { _ = changed.wait(lock, milliseconds: milliseconds) }
            return outcome
        }
    }

    /// The result. Waits for it.
    var result: Result<Value, any Error> {
        lock.withLock {
            while true {
                if let outcome { return outcome }
                changed.wait(lock)
            }
        }
    }
}
