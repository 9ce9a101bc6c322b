// Transactions that depend on the values they read.

import LarderPlatform
import LarderRESP

/// The reads and writes of the body of ``RemoteCache/transaction(watching:attempts:_:)``. Reads are executed
/// immediately. Writes are collected, and executed together after the body, if no watched key was changed.
///
/// Valid while its body runs; afterwards every call throws `closed`.
///
/// Thread-safe.
public final class RemoteTransaction<Value: Codable & Sendable>: Sendable {
    private let connection: OwnConnection
    /// The collected writes; nil after the body.
    private let batch: Locked<RemoteBatch<Value>?>
    private let codec: ModelCodec
    private let server: ServerKind

    init(_ connection: OwnConnection, _ codec: ModelCodec, _ server: ServerKind) {
        self.connection = connection
        self.codec = codec
        self.server = server
        batch = Locked(RemoteBatch(codec: codec))
    }

    /// Makes every later call throw `closed`, and returns the collected writes.
    func end() -> RemoteBatch<Value>? {
        batch.withLock { $0.take() }
    }

    /// Throws `closed` if the body has ended.
    private func checkIsRunning(_ operation: String) throws(LarderClientError) {
        if batch.withLock({ $0 == nil }) { throw OwnConnection.overError(operation) }
    }

    private func perform<Result>(_ request: Request<Result>) async throws(LarderClientError) -> Result {
        try checkIsRunning(request.name)
        return try await connection.perform(request)
    }

    private func add(_ operation: String, _ body: (inout RemoteBatch<Value>) throws(LarderClientError) -> Void)
        throws(LarderClientError)
    {
        try batch.withLock { (batch) throws(LarderClientError) in
            guard var changed = batch else { throw OwnConnection.overError(operation) }
            // Let the batch have no second reference, so that a change does not copy it.
            batch = nil
            defer { batch = changed }
            try body(&changed)
        }
    }

    /// Returns the model stored under a key, read from the daemon; nil if there is no fresh entry. Does not see this
    /// transaction's own writes.
    public func value(forKey key: some CacheKey) async throws(LarderClientError) -> Value? {
        guard let bytes = try await bytes(forKey: key) else { return nil }
        let key = key.keyBytes
        return try await RemoteCoding.decode(Value.self, from: bytes, codec, key: key) {
            () async throws(LarderClientError) in
            guard server.isLarder else { return nil }
            return try await perform(Request<EntryInfo?>.info(key))?.codec
        }
    }

    /// Returns the stored bytes of a key, read as in ``value(forKey:)``.
    public func bytes(forKey key: some CacheKey) async throws(LarderClientError) -> [UInt8]? {
        try await perform(Request<[UInt8]?>.get(key.keyBytes))
    }

    /// Watches additional keys from now on.
    public func watch(_ keys: some Sequence<some CacheKey>) async throws(LarderClientError) {
        let keys = keys.map(\.keyBytes)
        if keys.isEmpty { return try checkIsRunning("WATCH") }
        try await perform(Request<Void>.expectingOK(wordList("WATCH") + keys))
    }

    /// Adds a model to store. Errors as for ``RemoteBatch/set(_:forKey:policy:tags:)``.
    public func set(
        _ value: Value, forKey key: some CacheKey, policy: EntryPolicy = .database, tags: [String] = []
    ) throws(LarderClientError) {
        try add("SET") { (batch) throws(LarderClientError) in
            try batch.set(value, forKey: key, policy: policy, tags: tags)
        }
    }

    /// Adds bytes to store.
    public func setBytes(
        _ value: [UInt8], forKey key: some CacheKey, policy: EntryPolicy = .database, tags: [String] = []
    ) throws(LarderClientError) {
        try add("SET") { (batch) throws(LarderClientError) in
            try batch.setBytes(value, forKey: key, policy: policy, tags: tags)
        }
    }

    /// Adds the removal of a key.
    public func remove(_ key: some CacheKey) throws(LarderClientError) { try add("DEL") { $0.remove(key) } }
}

extension RemoteCache {
    /// Runs a transaction with optimistic locking (WATCH, MULTI, EXEC): `body` reads values and adds writes. If no
    /// watched key was changed since it was watched, all writes are executed together. Otherwise no write is executed,
    /// and `body` runs again.
    ///
    /// ```swift
    /// let left = try await stock.transaction(watching: ["apples"]) { transaction in
    ///     let apples = try await transaction.value(forKey: "apples") ?? 0
    ///     try transaction.set(apples - 1, forKey: "apples")
    ///     return apples - 1
    /// }
    /// ```
    /// Uses a connection of its own. After conflicts, this client repeats its transactions one at a time, with short
    /// pauses. A transaction without writes ends when `body` returns; its reads are not checked for consistency.
    /// - Parameters:
    ///   - keys: the keys to watch.
    ///   - attempts: how many times `body` may run, at least 1; `invalidArgument` is thrown for less.
    ///   - body: may run several times, so its side effects must be repeatable.
    /// - Returns: the result of the last run of `body`.
    /// - Throws: errors of `body`, and nothing is written in that case; `conflict` if another client changed a watched
    ///   key in every attempt.
    @discardableResult
    public func transaction<Result>(
        watching keys: [some CacheKey], attempts: Int = 16,
        _ body: (RemoteTransaction<Value>) async throws -> Result
    ) async throws -> Result {
        try EntryUpdate.check(attempts: attempts, "transaction")
        let keys = keys.map(\.keyBytes)
        return try await store.ownConnections.withOwnConnection { connection in
            try await transaction(keys, attempts, on: connection, body)
        }
    }

    private func transaction<Result>(
        _ keys: [[UInt8]], _ attempts: Int, on connection: OwnConnection,
        _ body: (RemoteTransaction<Value>) async throws -> Result
    ) async throws -> Result {
        let server = connection.link.knownServer ?? ServerKind()
        var hasTurn = false
        defer { if hasTurn { store.retries.giveBack() } }
        for attempt in 0..<attempts {
            if attempt == 1 { hasTurn = await store.retries.take(limit: store.turnMilliseconds) == .given }
            if attempt > 0 { try await Self.rest(afterAttempts: attempt) }
            let transaction = RemoteTransaction<Value>(connection, codec, server)
            try await transaction.watch(keys)
            defer { _ = transaction.end() }
            let result = try await body(transaction)
            guard let batch = transaction.end(), !batch.isEmpty else {
                try await connection.perform(.expectingOK(wordList("UNWATCH")))
                connection.isClean = true
                return result
            }
            if try await carryOut(batch, on: connection, server) {
                connection.isClean = true
                return result
            }
        }
        connection.isClean = true
        throw LarderClientError(
            .conflict,
            "the watched keys were changed by others in each of \(attempts) attempts, and nothing was written: call "
                + "again later, allow more attempts, or let fewer tasks change these keys at once",
            operation: "transaction", database: name, key: keys.first.map { printableKey($0) })
    }

    /// Waits for a random time before the next attempt, so that clients that use the same keys do not conflict
    /// repeatedly. The upper limit is 1 ms after the first attempt, and doubles with each further attempt, up to 64 ms.
    private static func rest(afterAttempts count: Int) async throws(LarderClientError) {
        let nanoseconds = RetryBackoff.rest(after: count - 1, from: 1_000_000, to: 64_000_000, jitter: 1)
        try await rest(UInt64(nanoseconds), "transaction")
    }

    /// Waits between two attempts.
    static func rest(_ nanoseconds: UInt64, _ operation: String) async throws(LarderClientError) {
        do {
            try await Task.sleep(nanoseconds: nanoseconds)
        } catch {
            throw LarderClientError(
                .cancelled, "the task was cancelled between two attempts; nothing was written", operation: operation)
        }
    }

    /// Executes the writes of a batch as a transaction.
    /// - Returns: false if nothing was written because a watched key was changed.
    private func carryOut(
        _ batch: RemoteBatch<Value>, on connection: OwnConnection, _ server: ServerKind
    ) async throws(LarderClientError) -> Bool {
        for change in batch.changes { try change.check(for: server) }
        defer { store.drop(batch.changes) }
        let commands = batch.changes.map { $0.words(for: server) }
        let replies = try await store.execute(commands, on: connection.link, connection: connection.number)
        guard let replies else { return false }
        try BatchPlan.check(replies, to: batch.changes, "transaction", in: store, name)
        return true
    }
}
