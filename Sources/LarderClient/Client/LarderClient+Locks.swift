// Locks among all processes of the machine.

extension LarderClient {
    /// Runs `body` while this task holds the named lock, exclusively among all processes that use the daemon.
    ///
    /// ```swift
    /// try await client.lock("reports", for: .seconds(10)) { lock in
    ///     try await store.write(report, fencedBy: lock.token)
    /// }
    /// ```
    /// The lock is renewed in the background while `body` runs, after each third of its time, so `body` may take longer
    /// than `time`. It is released when `body` returns, throws or is cancelled. If the process is killed, or cannot
    /// reach the daemon, the lock expires, and the longest waiter gets it. It survives a restart of the daemon.
    ///
    /// If the lock is lost (its entry was removed, or the daemon could not be reached within its time), `body` is
    /// cancelled, and the call throws `lockLost` when it has ended; ``HeldLock/check()`` detects it earlier. A task
    /// that has lost the lock without noticing may still write. To prevent that, pass the fencing token,
    /// ``HeldLock/token``, with each write.
    ///
    /// Waiters do not poll; they are woken when the lock is released. The tasks of one process get it in the order of
    /// their calls, and so do waiting processes. If a lock is held for more than half a minute, those that have waited
    /// longest may get it in any order.
    ///
    /// `body` runs in a task of its own, with the priority and the task-local values of the caller. It must not take
    /// the same lock with this client: that throws `recursion`.
    ///
    /// A lock is an entry under its name in the database, accompanied by `name:fence` and the queue `name:queue`. Do
    /// not use these keys for other purposes. Locks that other clients take as one entry with a deadline and a random
    /// value (redis-py's `lock()`, Redlock on one server) under the same name and database exclude this one, and vice
    /// versa; those clients do not queue, and have no token.
    ///
    /// Takes two round trips to get a free lock, and one to release it. A client that waits in the queue uses a
    /// connection for that.
    /// - Parameters:
    ///   - name: the lock's name, a key.
    ///   - time: how long the lock is held without renewal, from 1 millisecond to a day. Usually some seconds: a lock
    ///     with too short a time is lost when the machine is busy, and with too long a time others wait for a process
    ///     that was killed.
    ///   - limit: how long to wait for the lock; zero for not at all. Nil, the default, for no limit.
    ///   - database: the database of the lock; nil, the default, for the client's own.
    ///   - body: receives the held lock with its token.
    /// - Returns: the result of `body`.
    /// - Throws: errors of `body`; `locked` if another holder kept the lock for all of `limit`; `lockLost`;
    ///   `recursion`; `cancelled` if the task was cancelled while it waited; `invalidArgument` for an invalid time, and
    ///   if the server is not larderd; `server` if there are too many waiters (100,000).
    public func lock<Result: Sendable>(
        _ name: some CacheKey, for time: Duration, waitingUpTo limit: Duration? = nil, database: String? = nil,
        _ body: @escaping @Sendable (HeldLock) async throws -> Result
    ) async throws -> Result {
        try await lock(name, for: time, waitingUpTo: limit, database: database, clock: .system, body)
    }

    /// For tests.
    func lock<Result: Sendable>(
        _ name: some CacheKey, for time: Duration, waitingUpTo limit: Duration? = nil, database: String? = nil,
        clock: LockClock, _ body: @escaping @Sendable (HeldLock) async throws -> Result
    ) async throws -> Result {
        let store = core.store(database ?? core.options.database)
        let call = try LockCall(core, store, name.keyBytes, for: time, waitingUpTo: limit, clock: clock)
        return try await call.run(body)
    }
}
