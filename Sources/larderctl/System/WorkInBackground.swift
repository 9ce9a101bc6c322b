import LarderPlatform

/// Work on its own thread.
///
/// `@unchecked Sendable`: the variables are guarded by `lock`.
final class WorkInBackground<Value: Sendable>: @unchecked Sendable {
    private let lock = Lock()
    private let changed = Condition()
    private var outcome: Result<Value, any Error>?

    init(_ body: @escaping @Sendable () throws -> Value) {
        _ = WorkThread(name: "larderctl-work") { [self] in
            let outcome = Result { try body() }
            lock.withLock {
                self.outcome = outcome
                changed.broadcast()
            }
        }
    }

    /// Waits for completion, at most for the given time.
    /// - Returns: whether it has completed.
    func waitForEnd(milliseconds: Int64) -> Bool {
        lock.withLock {
            if outcome == nil { _ = changed.wait(lock, milliseconds: milliseconds) }
            return outcome != nil
        }
    }

    /// Waits for completion.
    var result: Result<Value, any Error> {
        lock.withLock {
            while true {
                if let outcome { return outcome }
                changed.wait(lock)
            }
        }
    }
}
