import LarderPlatform

/// Work on a thread of its own.
///
/// Thread-safe. The proof for `@unchecked Sendable`: what changes is read and written with the lock held.
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

    /// Waits for the end, at most for a time.
    /// - Returns: whether it has ended.
    func waitForEnd(milliseconds: Int64) -> Bool {
        lock.withLock {
            if outcome == nil { _ = changed.wait(lock, milliseconds: milliseconds) }
            return outcome != nil
        }
    }

    /// Waits for the end.
    var result: Result<Value, any Error> {
        lock.withLock {
            while true {
                if let outcome { return outcome }
                changed.wait(lock)
            }
        }
    }
}
