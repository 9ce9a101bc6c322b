import LarderCommandCatalog
import LarderPlatform

/// The server's pools of threads for what may block. No pool waits for another.
struct WorkerPools: Sendable {
    /// For what may take long: counting, listing all keys, purging.
    let slow = WorkerPool(name: "larder-work", threads: 2)
    /// For what takes a bounded time, and must not wait behind ``slow``: opening files, a step of SCAN.
    let brief = WorkerPool(name: "larder-brief", threads: 2)
    /// For INFO, CONFIG and similar commands, which people need most when everything else waits. None of them takes
    /// long.
    let status = WorkerPool(name: "larder-status", threads: 1)
    /// For commands that must read an entry from the disk, or would hold up an event loop for some milliseconds.
    let cold: WorkerPool
    /// For commands that are long or build long values. They take memory, and may wait until the disk has taken earlier
    /// values; so they run one after the other.
    let long = WorkerPool(name: "larder-long", threads: 1)

    /// For scripts that take long.
    let scripts = WorkerPool(name: "larder-script", threads: 2)

    init(coldThreads: Int) { cold = WorkerPool(name: "larder-cold", threads: max(1, coldThreads)) }

    /// The pool on which the deferred work of a command runs.
    func pool(for command: CommandMetadata?) -> WorkerPool {
        guard let command else { return slow }
        if command.flags.contains(.status) { return status }
        return command.flags.contains(.brief) ? brief : slow
    }

    /// Finishes the queued work and ends the threads.
    func stop() {
        for pool in [slow, brief, status, cold, long, scripts] { pool.stop() }
    }
}

/// Threads that run submitted work.
///
/// The queue is bounded by the number of connections, because each has at most one piece of work at a time.
///
/// Thread-safe. The proof for `@unchecked Sendable`: the state is read and written with the lock held.
final class WorkerPool: @unchecked Sendable {
    private struct Item {
        let work: @Sendable () -> Void
        /// Asked before the work runs; and what runs instead if it is unwanted.
        let isUnwanted: (@Sendable () -> Bool)?
        let drop: @Sendable () -> Void
        /// Whether all threads were busy when it was submitted.
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

    /// - Parameters:
    ///   - isUnwanted: asked when work that had to wait for a thread gets its turn. If true, `drop` is called instead.
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

    /// Finishes the queued work and ends the threads.
    func stop() {
        let threads = lock.withLock {
            isStopping = true
            available.broadcast()
            defer { self.threads = [] }
            return self.threads
        }
        for thread in threads { thread.join() }
    }

    /// Called with the lock held.
    private func takeNext() -> Item? {
        guard first < queue.count else { return nil }
        let item = queue[first]
        // Finished work must not keep objects alive while the thread waits.
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
