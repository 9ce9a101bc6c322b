import LarderEngine
import LarderPlatform

/// Threads for work that may block, so that asynchronous callers do not block Swift's cooperative thread pool.
///
/// There are at most ``threadsMax`` threads, which start when there is work and are kept until the process exits.
/// Further work waits for a free thread.
///
/// Thread-safe. `@unchecked Sendable`: all state is guarded by `lock`.
final class BlockingWork: @unchecked Sendable {
    private static let shared = BlockingWork()
    static let threadsMax = 4

    private let lock = Lock()
    private let available = Condition()
    private var jobs = Deque<@Sendable () -> Void>()
    private var idle = 0
    private var threads: [WorkThread] = []

    /// Runs `body` on one of the threads.
    static func run<Value: Sendable, Failure>(_ body: @escaping @Sendable () throws(Failure) -> Value)
        async throws(Failure) -> Value
    {
        let result = Promise<Result<Value, Failure>>()
        shared.add { result.set(Result { () throws(Failure) in try body() }) }
        return try await result.value().get()
    }

    private func add(_ job: @escaping @Sendable () -> Void) {
        lock.withLock {
            jobs.append(job)
            if idle >= jobs.count {
                available.signal()
            } else if threads.count < Self.threadsMax {
                threads.append(WorkThread(name: "larder-async") { [self] in work() })
            }
        }
    }

    private func work() {
        lock.lock()
        while true {
            guard let job = jobs.popFirst() else {
                idle += 1
                available.wait(lock)
                idle -= 1
                continue
            }
            lock.unlock()
            job()
            lock.lock()
        }
    }
}
