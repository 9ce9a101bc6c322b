import LarderPlatform

/// A task that waits until a write is delivered: whatever ends that first.
///
/// Thread-safe. The proof for `@unchecked Sendable`: all is read and written with the lock held.
final class DeliveryWait: @unchecked Sendable {
    private let lock = Lock()
    private var continuation: UnsafeContinuation<Bool, Never>?
    private var result: Bool?

    /// To be called once.
    func begin(_ continuation: UnsafeContinuation<Bool, Never>) {
        let result = lock.withLock {
            if self.result == nil { self.continuation = continuation }
            return self.result
        }
        if let result { continuation.resume(returning: result) }
    }

    /// Only the first result counts.
    func end(_ result: Bool) {
        let waiting = lock.withLock {
            if self.result == nil { self.result = result }
            defer { continuation = nil }
            return continuation
        }
        waiting?.resume(returning: result)
    }
}
