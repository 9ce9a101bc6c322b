import LarderPlatform

/// A thread that runs the same work repeatedly, with a pause in between, until it is stopped.
///
/// Thread-safe. `@unchecked Sendable`: mutable state is guarded by `lock`.
package final class BackgroundLoop: @unchecked Sendable {
    private let lock = Lock()
    private let wakeUp = Condition()
    private var isStopping = false
    private var isWoken = false
    private var isResting = false
    private var thread: WorkThread?
    /// Creates and starts the thread. Set only while the thread waits for the first ``wake()`` to start it.
    private var begin: (() -> WorkThread)?

    package init() {}

    /// Starts the thread.
    /// - Parameters:
    ///   - onDemand: whether the thread starts only at the first ``wake()``.
    ///   - work: one round; returns the pause before the next one, in milliseconds.
    package func start(_ name: String, onDemand: Bool = false, _ work: @escaping @Sendable () -> Int64) {
        lock.withLock {
            begin = { [self] in WorkThread(name: name) { [self] in run(work) } }
            if !onDemand || isWoken { startThread() }
        }
    }

    /// Called with `lock` held.
    private func startThread() {
        guard let begin else { return }
        thread = begin()
        self.begin = nil
    }

    /// Whether the thread still waits for the first ``wake()`` to start it.
    var isAsleep: Bool { lock.withLock { begin != nil } }

    /// Stops the thread after its current round, and blocks until then. Idempotent.
    package func stop() {
        let thread = lock.withLock {
            isStopping = true
            begin = nil
            wakeUp.broadcast()
            return self.thread.take()
        }
        thread?.join()
    }

    /// Ends the current pause, or skips the next one, unless ``rest()`` was called. Starts the thread if it is to be
    /// started on demand.
    package func wake() {
        lock.withLock {
            isWoken = true
            startThread()
            if !isResting { wakeUp.signal() }
        }
    }

    /// Makes the next pause last its full length, even if ``wake()`` is called. The thread's work calls this after a
    /// failure, because handling the failure calls ``wake()``.
    func rest() { lock.withLock { isResting = true } }

    private func run(_ work: () -> Int64) {
        lock.lock()
        while !isStopping {
            isWoken = false
            lock.unlock()
            let pause = work()
            lock.lock()
            if !isStopping, isResting || !isWoken { wakeUp.wait(lock, milliseconds: pause) }
            isResting = false
        }
        lock.unlock()
    }
}
