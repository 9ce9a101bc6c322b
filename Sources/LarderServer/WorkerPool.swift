import Threading

/// Threads for what may block. The server has two pools: one for what may take long (scans, counting, purging, opening
/// files), and one for commands that must read an entry from the disk, which do not wait behind those.
///
/// The queue is bounded by the number of connections, since each has at most one piece of work under way.
///
/// Thread-safe. The proof for `@unchecked Sendable`: the state is read and written with the lock held.
final class WorkerPool: @unchecked Sendable {
    private let lock = Lock()
    private let available = Condition()
    private var queue: [@Sendable () -> Void] = []
    private var first = 0
    private var isStopping = false
    private var threads: [WorkThread] = []

    init(name: String, threads count: Int) {
        lock.withLock {
            threads = (0..<count).map { index in WorkThread(name: "\(name)-\(index)") { [self] in run() } }
        }
    }

    func submit(_ work: @escaping @Sendable () -> Void) {
        lock.withLock {
            queue.append(work)
            available.signal()
        }
    }

    /// Finishes what is queued and ends the threads.
    func stop() {
        let threads = lock.withLock {
            isStopping = true
            available.broadcast()
            defer { self.threads = [] }
            return self.threads
        }
        for thread in threads { thread.join() }
    }

    private func run() {
        lock.lock()
        while true {
            if first < queue.count {
                let work = queue[first]
                first += 1
                if first == queue.count {
                    queue.removeAll(keepingCapacity: true)
                    first = 0
                }
                lock.unlock()
                work()
                lock.lock()
            } else if isStopping {
                break
            } else {
                available.wait(lock)
            }
        }
        lock.unlock()
    }
}
