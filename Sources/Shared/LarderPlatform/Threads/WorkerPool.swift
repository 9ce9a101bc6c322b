/// A group of threads that run the work that is submitted to them.
///
/// Thread-safe. `@unchecked Sendable`: all variables are guarded by `lock`.
package final class WorkerPool: @unchecked Sendable {
    private struct Item {
        let work: @Sendable () -> Void
        /// Called before the work begins, if the work has waited for a thread. If the result is true, `drop` is called
        /// instead of the work.
        let isUnwanted: (@Sendable () -> Bool)?
        let drop: @Sendable () -> Void
        /// Whether the work had to wait, because all threads were busy.
        let hasWaited: Bool
    }

    private let lock = Lock()
    private let available = Condition()
    private var queue = Deque<Item>()
    private var idleThreads = 0
    private var isStopping = false
    private var threads: [WorkThread] = []
    private let name: String
    private let threadsMax: Int

    /// - Parameters:
    ///   - name: the threads are named `name`-0, `name`-1 and so on.
    ///   - startsOnDemand: whether a thread starts only when there is work for it.
    package init(name: String, threads count: Int, startsOnDemand: Bool = false) {
        (self.name, threadsMax) = (name, count)
        if !startsOnDemand { lock.withLock { for _ in 0..<count { startThread() } } }
    }

    /// Called with `lock` held.
    private func startThread() { threads.append(WorkThread(name: "\(name)-\(threads.count)") { [self] in run() }) }

    /// Submits work. Does not block.
    /// - Parameter isUnwanted: called before the work begins, but only if the work had to wait for a thread. If the
    ///   result is true, `drop` is called instead of the work.
    package func submit(
        unless isUnwanted: (@Sendable () -> Bool)? = nil, drop: @escaping @Sendable () -> Void = {},
        _ work: @escaping @Sendable () -> Void
    ) {
        let isStarted = lock.withLock {
            let mustWait = queue.count >= idleThreads
            queue.append(Item(work: work, isUnwanted: isUnwanted, drop: drop, hasWaited: mustWait))
            guard mustWait, threads.count < threadsMax, !isStopping else { return false }
            startThread()
            return true
        }
        // Without the lock: otherwise the thread would wake only to wait for it.
        if !isStarted { available.signal() }
    }

    /// Stops the threads after they have completed the queued work.
    package func stop() {
        let threads = lock.withLock {
            isStopping = true
            available.broadcast()
            return exchange(&self.threads, with: [])
        }
        for thread in threads { thread.join() }
    }

    private func run() {
        lock.lock()
        while true {
            if let item = queue.popFirst() {
                lock.unlock()
                if item.hasWaited, item.isUnwanted?() == true { item.drop() } else { item.work() }
                lock.lock()
            } else if isStopping {
                break
            } else {
                idleThreads += 1
                available.wait(lock)
                idleThreads -= 1
            }
        }
        lock.unlock()
    }
}
