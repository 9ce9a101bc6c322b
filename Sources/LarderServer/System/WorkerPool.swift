import CommandCatalog
import Threading

/// The server's threads for what may block. None of them waits behind the others.
struct WorkerPools: Sendable {
    /// For what may take long: counting, listing all keys, purging.
    let slow = WorkerPool(name: "larder-work", threads: 2)
    /// For what takes a bounded time, and should not wait behind the former: opening files, a step of SCAN.
    let brief = WorkerPool(name: "larder-brief", threads: 2)
    /// For INFO, CONFIG and their like, which people need most where all else has to wait. They do nothing that takes long.
    let status = WorkerPool(name: "larder-status", threads: 1)
    /// For commands that must read an entry from the disk, and what would hold up an event loop for some milliseconds.
    let cold: WorkerPool
    /// For commands that are long themselves or build long values, which take memory and may wait for the disk to take what
    /// others stored before: one after the other.
    let long = WorkerPool(name: "larder-long", threads: 1)

    init(coldThreads: Int) { cold = WorkerPool(name: "larder-cold", threads: max(1, coldThreads)) }

    /// Where the deferred work of a command is done.
    func pool(for command: CommandMetadata?) -> WorkerPool {
        guard let command else { return slow }
        if command.flags.contains(.status) { return status }
        return command.flags.contains(.brief) ? brief : slow
    }

    /// Finishes what is queued and ends the threads.
    func stop() {
        for pool in [slow, brief, status, cold, long] { pool.stop() }
    }
}

/// Threads that run what is submitted.
///
/// The queue is bounded by the number of connections, since each has at most one piece of work under way.
///
/// Thread-safe. The proof for `@unchecked Sendable`: the state is read and written with the lock held.
final class WorkerPool: @unchecked Sendable {
    private struct Item {
        let work: @Sendable () -> Void
        /// Whether nobody waits for it any more; and what happens instead then.
        let isUnwanted: (@Sendable () -> Bool)?
        let drop: @Sendable () -> Void
        /// Whether all threads had other work when it came.
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
    ///   - isUnwanted: asked when work that had to wait for a thread has its turn: `drop` is called in its place then.
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

    /// Called with the lock held.
    private func takeNext() -> Item? {
        guard first < queue.count else { return nil }
        let item = queue[first]
        // What is done holds on to nothing, however long others wait.
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
