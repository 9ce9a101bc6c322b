import LarderCommandCatalog
import LarderPlatform

/// The server's thread pools for work that may block. Each pool has its own threads, so no pool waits for another.
struct WorkerPools: Sendable {
    /// For long work, such as counting entries, listing all keys, and purging.
    let slow = WorkerPool(name: "larder-work", threads: 2)
    /// For short work that must not wait behind long work, such as opening files, or one step of SCAN.
    let brief = WorkerPool(name: "larder-brief", threads: 2)
    /// For INFO, CONFIG and similar commands. They always take little time, and must work even if all other threads are
    /// stuck.
    let status = WorkerPool(name: "larder-status", threads: 1)
    /// For commands that must read from the disk, or would delay an event loop by some milliseconds.
    let cold: WorkerPool
    /// For commands with long values. Such a command needs much memory, and may wait until earlier values were written
    /// to disk. So these commands run one at a time.
    let long = WorkerPool(name: "larder-long", threads: 1)

    /// For scripts that take long.
    let scripts = WorkerPool(name: "larder-script", threads: 2)

    init(coldThreads: Int) { cold = WorkerPool(name: "larder-cold", threads: max(1, coldThreads)) }

    /// Returns the pool for the deferred work of a command.
    func pool(for command: CommandMetadata?) -> WorkerPool {
        guard let command else { return slow }
        if command.flags.contains(.status) { return status }
        return command.flags.contains(.brief) ? brief : slow
    }

    /// Stops all threads after they have completed the queued work.
    func stop() {
        for pool in [slow, brief, status, cold, long, scripts] { pool.stop() }
    }
}

/// A group of threads that run the work that is submitted to them.
///
/// The queue cannot grow without limit: each connection submits at most one piece of work at a time.
///
/// `@unchecked Sendable`: all variables are guarded by `lock`.
final class WorkerPool: @unchecked Sendable {
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
    private var queue: [Item?] = []
    private var first = 0
    private var idleThreads = 0
    private var isStopping = false
    private var threads: [WorkThread] = []

    init(name: String, threads count: Int) {
        lock.withLock {
            threads = (0..<count).map { index in WorkThread(name: "\(name)-\(index)") { [self] in run() } }
        }
    }

    /// Submits work. Does not block.
    /// - Parameter isUnwanted: called before the work begins, but only if the work had to wait for a thread. If the
    ///   result is true, `drop` is called instead of the work.
    func submit(
        unless isUnwanted: (@Sendable () -> Bool)? = nil, drop: @escaping @Sendable () -> Void = {},
        _ work: @escaping @Sendable () -> Void
    ) {
        lock.withLock {
            let hasWaited = queue.count - first >= idleThreads
            queue.append(Item(work: work, isUnwanted: isUnwanted, drop: drop, hasWaited: hasWaited))
            available.signal()
        }
    }

    /// Stops the threads after they have completed the queued work.
    func stop() {
        let threads = lock.withLock {
            isStopping = true
            available.broadcast()
            defer { self.threads = [] }
            return self.threads
        }
        for thread in threads { thread.join() }
    }

    /// Returns the next piece of work; nil if the queue is empty. The caller holds `lock`.
    private func takeNext() -> Item? {
        guard first < queue.count else { return nil }
        let item = queue[first]
        // Remove the work from the queue now, so that the queue keeps no objects alive after the work is done.
        queue[first] = nil
        first += 1
        if first == queue.count {
            queue.removeAll(keepingCapacity: true)
            first = 0
        } else if first >= 1024, first > queue.count / 2 {
            queue.removeFirst(first)
            first = 0
        }
        return item
    }

    private func run() {
        lock.lock()
        while true {
            if let item = takeNext() {
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
