// Locks among all processes of the machine.

extension LarderClient {
    /// Runs `body` while this task holds the named lock, exclusively among all processes that use the daemon.
    ///
    /// ```swift
    /// try await client.lock("reports", for: .seconds(10)) { lock in
    ///     try await store.write(report, fencedBy: lock.token)
    /// }
    /// ```
    /// While `body` runs, the client renews the lock in the background each time a third of `time` has passed, so
    /// `body` may take longer than `time`. The lock is released when `body` returns, throws or is cancelled. If the
    /// process is killed, or cannot reach the daemon, the lock expires, and the caller that has waited longest gets it.
    /// The lock survives a restart of the daemon.
    ///
    /// If the lock is lost, `body` is cancelled, and the call throws `lockLost` when `body` has ended.
    /// ``HeldLock/check()`` reports the loss earlier. A lock is lost if its entry was removed, or if the daemon could
    /// not be reached before the lock expired. A task that has not noticed the loss may still write. To prevent that,
    /// pass the fencing token, ``HeldLock/token``, with each write.
    ///
    /// Waiters do not poll; they are woken when the lock is released. The tasks of one process get the lock in the
    /// order of their calls. Waiting processes get the lock in the order in which they began to wait. But if a lock is
    /// held for more than 30 seconds, the longest waiting processes may get it in any order.
    ///
    /// `body` runs in a task of its own, with the priority and the task-local values of the caller. `body` must not
    /// take the same lock with this client: that throws `recursion`.
    ///
    /// A lock is an entry under its name in the database, accompanied by `name:fence` and the queue `name:queue`. Do
    /// not use these keys for other purposes.
    ///
    /// Other clients, such as redis-py's `lock()` and Redlock on one server, store a lock as one entry with a deadline
    /// and a random value. Such a lock excludes a lock of this client with the same name in the same database, and vice
    /// versa. Those clients do not queue, and have no token.
    ///
    /// Takes two round trips to get a free lock, and one to release it. A client that waits in the daemon's queue uses
    /// one more connection while it waits.
    /// - Parameters:
    ///   - name: the lock's name, a key.
    ///   - time: how long the lock is held without renewal, from 1 millisecond to a day. Usually some seconds. If the
    ///     time is too short, the lock is lost when the machine is busy. If it is too long, others wait long for the
    ///     lock of a process that was killed.
    ///   - limit: how long to wait for the lock; zero to try only once; nil, the default, for no limit.
    ///   - database: the database of the lock; nil, the default, for the client's own.
    ///   - body: receives the held lock with its token.
    /// - Returns: the result of `body`.
    /// - Throws: errors of `body`; `locked` if another holder kept the lock for all of `limit`; `lockLost`;
    ///   `recursion`; `timeout` if the daemon has not answered a second after `limit`; `cancelled` if the task was
    ///   cancelled while it waited; `invalidArgument` for an invalid time, and if the server is not larderd; `server`
    ///   if there are too many waiters (100,000).
    public func lock<Result: Sendable>(
        _ name: some CacheKey, for time: Duration, waitingUpTo limit: Duration? = nil, database: String? = nil,
        _ body: @escaping @Sendable (HeldLock) async throws -> Result
    ) async throws -> Result {
        try await lock(name, for: time, waitingUpTo: limit, database: database, clock: .system, body)
    }

    /// Like the public call, with another clock, for tests.
    func lock<Result: Sendable>(
        _ name: some CacheKey, for time: Duration, waitingUpTo limit: Duration? = nil, database: String? = nil,
        clock: LockClock, _ body: @escaping @Sendable (HeldLock) async throws -> Result
    ) async throws -> Result {
        let store = core.store(database ?? core.options.database)
        let queue = try LockQueue(core, store, name.keyBytes, for: time, waitingUpTo: limit, clock: clock)
        store.calls.begin()
        defer { store.calls.end() }
        return try await queue.run(body)
    }
}
