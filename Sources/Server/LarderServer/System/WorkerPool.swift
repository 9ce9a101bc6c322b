import LarderCommandCatalog
import LarderPlatform

/// The server's thread pools for work that may block. Work in one pool never waits for another pool.
struct WorkerPools: Sendable {
    /// For long work: counting, listing all keys, purging.
    let slow = WorkerPool(name: "larder-work", threads: 2)
    /// For bounded work that must not wait for ``slow``: opening files, a step of SCAN.
    let brief = WorkerPool(name: "larder-brief", threads: 2)
    /// For INFO, CONFIG and similar commands, which must work when everything else is stuck. None of them takes long.
    let status = WorkerPool(name: "larder-status", threads: 1)
    /// For commands that must read an entry from the disk, or would delay an event loop by some milliseconds.
    let cold: WorkerPool
    /// For long commands and commands that build long values. They need memory, and may wait for the disk to write
    /// earlier values, so they run one at a time.
    let long = WorkerPool(name: "larder-long", threads: 1)

    /// For long-running scripts.
    let scripts = WorkerPool(name: "larder-script", threads: 2)

    init(coldThreads: Int) { cold = WorkerPool(name: "larder-cold", threads: max(1, coldThreads)) }

    /// The pool on which the deferred work of a command runs.
    func pool(for command: CommandMetadata?) -> WorkerPool {
        guard let command else { return slow }
        if command.flags.contains(.status) { return status }
        return command.flags.contains(.brief) ? brief : slow
    }

    /// Completes the queued work and stops the threads.
    func stop() {
        for pool in [slow, brief, status, cold, long, scripts] { pool.stop() }
    }
}

/// Threads that run submitted work.
///
/// The queue is bounded by the number of connections, because each has at most one piece of work at a time.
///
/// `@unchecked Sendable`: the state is guarded by `lock`.
final class WorkerPool: @unchecked Sendable {
    private struct Item {
        let work: @Sendable () -> Void
        /// Called before the work runs; if it returns true, `drop` is called instead.
        let isUnwanted: (@Sendable () -> Bool)?
        let drop: @Sendable () -> Void
        /// Whether all threads were busy when the work was submitted.
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
    ///   - isUnwanted: called before the work runs, if it had to wait for a thread. If it returns true, `drop` is
    ///     called instead of the work.
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

    /// Completes the queued work and stops the threads.
    func stop() {
        let threads = lock.withLock {
            isStopping = true
            available.broadcast()
            defer { self.threads = [] }
            return self.threads
        }
        for thread in threads { thread.join() }
    }

    /// Called with `lock` held.
    private func takeNext() -> Item? {
        guard first < queue.count else { return nil }
        let item = queue[first]
        // Completed work must not keep objects alive while the thread waits.
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
