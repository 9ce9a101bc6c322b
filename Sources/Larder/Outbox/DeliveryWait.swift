import LarderPlatform

/// A task that waits for the delivery of a write, or for an earlier end of the wait.
///
/// Thread-safe. `@unchecked Sendable`: all state is guarded by `lock`.
final class DeliveryWait: @unchecked Sendable {
    private let lock = Lock()
    private var continuation: UnsafeContinuation<Bool, Never>?
    private var result: Bool?

    /// Must be called once.
    func begin(_ continuation: UnsafeContinuation<Bool, Never>) {
        let result = lock.withLock {
            if self.result == nil { self.continuation = continuation }
            return self.result
        }
        if let result { continuation.resume(returning: result) }
    }

    /// Ends the wait. Only the first result is used.
    func end(_ result: Bool) {
        let waiting = lock.withLock {
            if self.result == nil { self.result = result }
            defer { continuation = nil }
            return continuation
        }
        waiting?.resume(returning: result)
    }
}
