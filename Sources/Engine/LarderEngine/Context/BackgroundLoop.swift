import LarderPlatform

/// A thread that runs the same work repeatedly, with a pause in between, until it is stopped.
///
/// Thread-safe. `@unchecked Sendable`: mutable state is guarded by `lock`.
final class BackgroundLoop: @unchecked Sendable {
    private let lock = Lock()
    private let wakeUp = Condition()
    private var isStopping = false
    private var isWoken = false
    private var isResting = false
    private var thread: WorkThread?
    /// Starts the thread, if ``wake()`` has not done so yet.
    private var begin: (() -> WorkThread)?

    /// Starts the thread.
    /// - Parameters:
    ///   - onDemand: whether only the first ``wake()`` starts it.
    ///   - work: one round; returns the pause before the next one, in milliseconds.
    func start(_ name: String, onDemand: Bool = false, _ work: @escaping @Sendable () -> Int64) {
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

    /// Whether the thread has not been started by ``wake()`` yet.
    var isAsleep: Bool { lock.withLock { begin != nil } }

    /// Waits for the running round and ends the thread. Idempotent.
    func stop() {
        let thread = lock.withLock {
            isStopping = true
            begin = nil
            wakeUp.broadcast()
            defer { self.thread = nil }
            return self.thread
        }
        thread?.join()
    }

    /// Ends the pause, unless ``rest()`` has disabled that.
    func wake() {
        lock.withLock {
            isWoken = true
            startThread()
            if !isResting { wakeUp.signal() }
        }
    }

    /// Disables ``wake()`` for the next pause. Called by work that failed, because the failure itself wakes the thread.
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
