// Locks among all processes of the machine.

extension LarderClient {
    /// Runs `body` while this task alone, of all in all processes that use the daemon, holds the lock of that name.
    ///
    /// ```swift
    /// try await client.lock("reports", for: .seconds(10)) { lock in
    ///     try await store.write(report, fencedBy: lock.token)
    /// }
    /// ```
    /// The lock is renewed in the background while `body` runs, each third of its time, so `body` may take longer. It is
    /// released when `body` ends, throws or is cancelled. If the process is killed, or the daemon hears nothing of it, the
    /// lock ends with its time, and who waits longest gets it then. It outlives a restart of the daemon.
    ///
    /// If the lock is lost nevertheless (somebody has removed its entry, or the daemon could not be reached within its
    /// time), `body` is cancelled, and the call throws `lockLost` when it has ended; ``HeldLock/check()`` tells earlier.
    /// No lock keeps somebody from writing who has lost it and does not know yet: that is what the fencing token is for,
    /// ``HeldLock/token``.
    ///
    /// Who waits is woken when the lock is released, and asks nobody meanwhile. The tasks of one process get it in the
    /// order of their calls, and so do processes that wait; but if a lock is held for more than half a minute, those who
    /// wait longest come in any order.
    ///
    /// `body` runs in a task of its own, which has the priority and the task-local values of the caller's. It must not ask
    /// for the same lock with this client: that throws `recursion`.
    ///
    /// A lock is an entry under its name in the database, and beside it are `name:fence` and the queue `name:queue`: do not
    /// use these keys for other things. Locks that other clients take as one entry with a deadline and a random value
    /// (redis-py's `lock()`, Redlock on one server) under the same name and database exclude this one, and the other way
    /// round; those clients come without a queue, and know no token.
    ///
    /// Takes two round trips to get a lock that nobody else wants, and one to release it. A client that waits in the queue
    /// has a connection for that.
    /// - Parameters:
    ///   - name: the lock's name, a key.
    ///   - time: how long the lock is held if it is not renewed, from 1 millisecond to a day. Seconds are usual: too short a
    ///     time is lost when the machine is busy, and too long a one makes others wait for a process that was killed.
    ///   - limit: how long to wait for the lock; zero for not at all. Nil, the default, for as long as it takes.
    ///   - database: the database of the lock; nil, the default, for the client's own.
    ///   - body: gets the lock's token.
    /// - Returns: what `body` returns.
    /// - Throws: what `body` throws; `locked` when somebody else held the lock for all of `limit`; `lockLost`; `recursion`;
    ///   `cancelled` when the task was cancelled while it waited; `invalidArgument` for an impossible time, and if the
    ///   server is not larderd; `server` when too many wait (100,000).
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
