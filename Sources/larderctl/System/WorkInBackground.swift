import LarderPlatform

/// Runs a closure on a separate thread.
///
/// `@unchecked Sendable`: mutable state is guarded by `lock`.
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

    /// Waits until the closure has returned, for at most the given time.
    /// - Returns: whether it has returned.
    func waitForEnd(milliseconds: Int64) -> Bool {
        lock.withLock {
            if outcome == nil { _ = changed.wait(lock, milliseconds: milliseconds) }
            return outcome != nil
        }
    }

    /// The result of the closure. Waits until it has returned.
    var result: Result<Value, any Error> {
        lock.withLock {
            while true {
                if let outcome { return outcome }
                changed.wait(lock)
            }
        }
    }
}
