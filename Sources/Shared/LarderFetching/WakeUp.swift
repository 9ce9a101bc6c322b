import LarderPlatform

/// Wakes a waiting task. ``signal()`` may be called from any thread, and with locks held.
///
/// Thread-safe. `@unchecked Sendable`: mutable state is guarded by `lock`.
package final class WakeUp: @unchecked Sendable {
    private let lock = Lock()
    private var isSet = false
    private var isCancelled = false
    private var continuation: UnsafeContinuation<Void, Never>?

    package init() {}

    package func signal() {
        let waiting = lock.withLock { () -> UnsafeContinuation<Void, Never>? in
            isSet = true
            defer { continuation = nil }
            return continuation
        }
        waiting?.resume()
    }

    /// Waits for a signal (also since the previous wait), the timeout or a cancellation. For one task at a time.
    package func wait(milliseconds: Int64) async {
        let timer = Task {
            guard (try? await Task.sleep(for: .milliseconds(max(1, milliseconds)))) != nil else { return }
            signal()
        }
        await withTaskCancellationHandler {
            await withUnsafeContinuation { (continuation: UnsafeContinuation<Void, Never>) in
                let isOver = lock.withLock { () -> Bool in
                    if isSet || isCancelled { return true }
                    self.continuation = continuation
                    return false
                }
                if isOver { continuation.resume() }
            }
        } onCancel: {
            lock.withLock { isCancelled = true }
            signal()
        }
        timer.cancel()
        lock.withLock { isSet = false }
    }
}
