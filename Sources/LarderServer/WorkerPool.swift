import Threading

/// The server's threads for what may block. None of them waits behind the others.
struct WorkerPools: Sendable {
    /// For what may take long: scans, counting, purging, opening files.
    let slow = WorkerPool(name: "larder-work", threads: 2)
    /// For commands that must read an entry from the disk, and what would hold up an event loop for some milliseconds.
    let cold: WorkerPool
    /// For commands that are long themselves, which may wait for the disk to take what others stored before: one after the
    /// other.
    let long = WorkerPool(name: "larder-long", threads: 1)

    init(coldThreads: Int) { cold = WorkerPool(name: "larder-cold", threads: max(1, coldThreads)) }

    /// Finishes what is queued and ends the threads.
    func stop() {
        for pool in [slow, cold, long] { pool.stop() }
    }
}

/// Threads that run what is submitted.
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
