import LarderPlatform

/// The wait of one task for the delivery of a write. It may end earlier, for example when the task is cancelled.
///
/// Thread-safe. `@unchecked Sendable`: all state is guarded by `lock`.
final class DeliveryWait: @unchecked Sendable {
    private let lock = Lock()
    private var continuation: UnsafeContinuation<Bool, Never>?
    private var result: Bool?

    /// Starts the wait. Must be called exactly once.
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
