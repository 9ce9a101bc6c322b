import LarderPlatform

/// A result that a thread which is not in a task, such as the main thread, waits for.
///
/// `@unchecked Sendable`: mutable state is guarded by `lock`.
final class Awaited<Value: Sendable>: @unchecked Sendable {
    private let lock = Lock()
    private let changed = Condition()
    private var outcome: Result<Value, any Error>?

    /// Runs a closure on a separate thread.
    init(onThread body: @escaping @Sendable () throws -> Value) {
        _ = WorkThread(name: "larderctl-work") { [self] in end(Result { try body() }) }
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
    /// - Returns: whether there is one.
    func waitForEnd(milliseconds: Int64) -> Bool {
        lock.withLock {
            if outcome == nil { _ = changed.wait(lock, milliseconds: milliseconds) }
            return outcome != nil
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
