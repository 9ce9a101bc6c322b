import LarderPlatform

/// Wakes a waiting task. ``signal()`` may be called from any thread, and with locks held.
///
/// Thread-safe. `@unchecked Sendable`: `next` is guarded by `lock`.
package final class WakeUp: @unchecked Sendable {
    private let lock = Lock()
    /// The end of the current wait, or of the next one.
    private var next = Promise<Void>()

    package init() {}

    package func signal() { lock.withLock { next }.set(()) }

    /// Waits for a signal (also since the previous wait), the timeout or a cancellation. For one task at a time.
    package func wait(milliseconds: Int64) async {
        let promise = lock.withLock { next }
        let timer = Task.delayed(milliseconds: max(1, milliseconds)) { promise.set(()) }
        await withTaskCancellationHandler {
            await promise.value()
        } onCancel: {
            promise.set(())
        }
        timer.cancel()
        lock.withLock { next = Promise() }
    }
}
