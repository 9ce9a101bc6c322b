import LarderCommandCatalog
import LarderPlatform

/// The server's thread pools for work that may block. Each pool has its own threads, so no pool waits for another.
/// Their queues are bounded, because each connection submits at most one piece of work at a time.
struct WorkerPools: Sendable {
    /// For long work, such as counting entries, listing all keys, and purging.
    let slow = WorkerPool(name: "larder-work", threads: 2)
    /// For queries that may take seconds, so that other queries and long commands need not wait for them.
    let queries = WorkerPool(name: "larder-query", threads: 2, startsOnDemand: true)
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
    /// - Parameter isLong: whether it is a query that may take seconds.
    func pool(for command: CommandMetadata?, isLong: Bool) -> WorkerPool {
        if isLong { return queries }
        guard let command else { return slow }
        if command.flags.contains(.status) { return status }
        return command.flags.contains(.brief) ? brief : slow
    }

    /// Stops all threads after they have completed the queued work.
    func stop() {
        for pool in [slow, queries, brief, status, cold, long, scripts] { pool.stop() }
    }
}
