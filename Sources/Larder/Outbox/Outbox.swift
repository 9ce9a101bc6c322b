import LarderEngine
import LarderOutboxes
import LarderPlatform

/// Writes that are stored now and delivered later: what a program saves is in the cache at once, and its handler brings it
/// where it belongs, in order, until that has worked.
///
/// ```swift
/// let outbox = try Outbox<Order>(cache) { delivery in
///     try await api.save(delivery.value, as: delivery.key, idempotencyKey: delivery.token)
/// }
/// try await outbox.save(order, forKey: "order:17")
/// ```
///
/// - The entry and the note that it is to be delivered are one commit unit: both are there after a crash or `kill -9`, or
///   neither. What `save(_:forKey:policy:tags:)` has returned from is delivered, after a restart too, as
///   soon as an outbox of the database is opened again.
/// - Deliveries begin in the order of the writes. A key has at most one write that waits, its last: earlier ones that still
///   wait are not delivered. No key is delivered twice at a time.
/// - Each write is delivered *at least once*: after a crash, or if the handler throws although it has done its work, once
///   more, with the same ``OutboxDelivery/token``.
/// - A write that cannot be decoded, because the model has changed, holds nobody up: see the initializer.
/// - When the handler throws ``DeliveryRefusal``, the write is given up. When it throws anything else, the write rests and is
///   tried again: after 100 ms, then longer, up to 30 s, never the same for many. Others go on meanwhile; if eight attempts
///   fail in a row, everything rests in the same way, and then one write is tried.
///
/// What waits stands in the companion database, `NAME.outbox`, which nothing is evicted from. One outbox at a time has it:
/// one process holds a larder, and a second outbox in the process is refused. Entries that the cache itself stores are not
/// delivered.
///
/// Thread-safe.
public final class Outbox<Value: Codable & Sendable>: Sendable {
    /// The cache that has the entries.
    public let cache: Cache
    private let core: OutboxDeliverer

    private var outbox: LarderOutboxes.Outbox { core.outbox }

    /// Opens the outbox of a cache's database, and begins to deliver what waits. May block, to read it.
    /// - Parameters:
    ///   - cache: has the entries.
    ///   - concurrency: how many deliveries run at a time, of different keys, 1 to 64; the next ones begin when all of them
    ///     have ended. With 1, the default, they are in the order of the writes altogether.
    ///   - keysMax: of how many keys writes may wait; further ones throw ``LarderError/Code/writesSuspended``.
    ///   - undecodable: gets the writes whose bytes are no `Value`, as when the model has changed since they were saved. It
    ///     delivers them, or throws, as `handler` does. Without one they are kept, for a version of the program that can read
    ///     them: they hold nobody up, ``OutboxProgress/undecodable`` counts them, and ``OutboxProgress/lastFailure`` says why.
    ///   - handler: delivers a write. Called again until it returns or throws ``DeliveryRefusal``. Its task is cancelled when
    ///     the outbox is closed, and the write stays. A handler that never returns holds the others up.
    /// - Throws: ``LarderError/Code/invalidArgument`` if the database's outbox is open already, or has a name too long for a
    ///   companion; ``LarderError`` as for opening a cache.
    public init(
        _ cache: Cache, concurrency: Int = 1, keysMax: Int = 1_000_000,
        undecodable: (@Sendable (UndecodableDelivery) async throws -> Void)? = nil,
        handler: @escaping @Sendable (OutboxDelivery<Value>) async throws -> Void
    ) throws(LarderError) {
        let source = cache.source
        func refuse(_ message: String) -> LarderError {
            LarderError(.invalidArgument, message, operation: "outbox", database: source.database.name)
        }
        guard (1...64).contains(concurrency) else {
            throw refuse("the concurrency is \(concurrency), and must be from 1 to 64")
        }
        guard keysMax >= 1 else { throw refuse("keysMax is \(keysMax), and must be at least 1") }
        guard let name = LarderOutboxes.Outbox.name(for: source.database.name) else {
            throw refuse(
                "what waits stands in a database '\(source.database.name).outbox', and that is no possible name")
        }
        let lease = try source.hold("outbox")
        let companion = try lease.engine.database(name)
        guard OpenOutboxes.shared.add(companion) else {
            throw refuse("the outbox of this database is open already in this process: close that one first")
        }
        do throws(LarderError) {
            let outbox = try LarderOutboxes.Outbox(
                companion, most: keysMax, held: lease.engine.held, hasTokens: true)
            core = OutboxDeliverer(outbox, lease, concurrency: concurrency) { parcel in
                await Self.deliver(parcel, source, undecodable, handler)
            }
        } catch {
            OpenOutboxes.shared.remove(companion)
            throw error
        }
        self.cache = cache
        if lease.engine.options.backgroundMaintenance { core.start() }
    }

    deinit {
        // Not here: it waits for the handler.
        Task { [core] in await BlockingWork.run { core.stop() } }
    }

    /// Stops to deliver: the handler's tasks are cancelled, and this waits for their ends. What waits stays. Idempotent. Within
    /// the handler it does not wait: the outbox is closed when the handler has ended.
    public func close() {
        if core.isInHandler { return stopBehindHandler() }
        core.stop()
    }

    /// ``close()``, without blocking the caller.
    public func close() async {
        if core.isInHandler { return stopBehindHandler() }
        await BlockingWork.run { [core] in core.stop() }
    }

    private func stopBehindHandler() {
        core.beginStop()
        Task.detached { [core] in await BlockingWork.run { core.stop() } }
    }

    private static func deliver(
        _ parcel: LarderOutboxes.Outbox.Parcel, _ source: CacheSource,
        _ undecodable: (@Sendable (UndecodableDelivery) async throws -> Void)?,
        _ handler: @Sendable (OutboxDelivery<Value>) async throws -> Void
    ) async -> OutboxDeliverer.End {
        let (key, entry) = (parcel.turn.key, parcel.entry)
        let (token, attempt) = (text(entry.token ?? []), parcel.turn.failures + 1)
        do {
            switch model(entry, key, source) {
            case .success(let value):
                try await handler(
                    OutboxDelivery(
                        keyBytes: key, value: value, token: token, attempt: attempt, acceptedAt: entry.acceptedAt))
            case .failure(let error):
                guard let undecodable else { return .undecodable("\(error)") }
                try await undecodable(
                    UndecodableDelivery(
                        keyBytes: key, bytes: entry.value ?? [], codec: entry.codec, error: error, token: token,
                        attempt: attempt, acceptedAt: entry.acceptedAt))
            }
            return .delivered
        } catch let refusal as DeliveryRefusal {
            return .refused(refusal.reason)
        } catch {
            return Task.isCancelled ? .cancelled : .failed("\(error)")
        }
    }

    /// Nil for a removal.
    private static func model(
        _ entry: OutboxEntry, _ key: [UInt8], _ source: CacheSource
    ) -> Result<Value?, LarderError> {
        guard let bytes = entry.value else { return .success(nil) }
        do {
            return .success(
                try bytes.withUnsafeBytes { try source.codec.decode(Value.self, $0, storedAs: entry.codec) })
        } catch {
            return .failure(.decodingFailed(Value.self, entry.codec, Key(key), source.database.name, error))
        }
    }

    private static func text(_ token: [UInt8]) -> String {
        let digits = Array("0123456789abcdef".utf8)
        return String(decoding: token.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
    }

    // MARK: Writes

    /// Stores a model in the cache, and has it delivered. Returns when both are as durable as any write of the larder.
    /// - Parameters:
    ///   - value: the model.
    ///   - key: the entry's key.
    ///   - policy: how long the entry in the cache stays fresh. What waits does not end.
    ///   - tags: those of the entry, as for `Cache.set(_:forKey:policy:tags:durability:)`, like the errors.
    public func save(
        _ value: Value, forKey key: some CacheKey, policy: EntryPolicy = .database, tags: [String] = []
    ) throws(LarderError) {
        let stored = try cache.source.key(key, "save")
        let (payload, codec) = try cache.source.encode(value, stored)
        try accept(stored, try cache.source.put(payload, codec, stored, policy, tags), payload.bytes, codec)
    }

    /// The call above, without blocking the caller.
    public func save(
        _ value: Value, forKey key: some CacheKey, policy: EntryPolicy = .database, tags: [String] = []
    ) async throws(LarderError) {
        let key = key.keyBytes
        try await BlockingWork.run { () throws(LarderError) in
            try self.save(value, forKey: key, policy: policy, tags: tags)
        }
    }

    /// Removes an entry from the cache, and has the removal delivered: with no value.
    public func remove(_ key: some CacheKey) throws(LarderError) {
        try accept(try cache.source.key(key, "remove"), .remove, nil, .raw)
    }

    /// The call above, without blocking the caller.
    public func remove(_ key: some CacheKey) async throws(LarderError) {
        let key = key.keyBytes
        try await BlockingWork.run { () throws(LarderError) in try self.remove(key) }
    }

    private func accept(
        _ key: Key, _ action: EntryWrite.Action, _ value: [UInt8]?, _ codec: Codec
    ) throws(LarderError) {
        let bytes = Array(key.bytes)
        let (source, outbox) = (cache.source, outbox)
        let operation = value == nil ? "remove" : "save"
        guard !core.isStopping else { throw closed(operation, key.description) }
        let size = bytes.count + (value?.count ?? 0)
        if let refusal = outbox.index.refusal(of: [bytes], bytes: size, limit: "keysMax") {
            throw LarderError(
                .writesSuspended, refusal, operation: operation, database: cache.name, key: key.description)
        }
        let token = OutboxEntry.makeToken()
        try source.whileOpen("save") { (engine) throws(LarderError) in
            while true {
                // Opens both, and waits as any writer does while there is too much to be written.
                for database in [source.database, outbox.database] {
                    try database.commit([key], loading: false) { _ in }
                }
                let loads = action.loads || action.isRemoval
                let part = TransactionPart(
                    database: source.database, keys: [key], loadedCount: loads ? 1 : 0, watches: [])
                let other = TransactionPart(database: outbox.database, keys: [key], loadedCount: 0, watches: [])
                let end = try engine.transact(part, and: other, now: source.database.now(), .mayBlock) {
                    (update, other) throws(LarderError) in
                    // With the key's locks held, so that numbers are in the order of the writes.
                    guard let number = outbox.index.note([bytes], bytes: [size], now: update.now) else {
                        throw LarderError(.writesSuspended, "no writes are taken now", operation: "save")
                    }
                    if action.isRemoval {
                        update.removeStored(0)
                    } else {
                        action.apply(&update, 0, ahead: source.database.timeAhead)
                    }
                    let entry = OutboxEntry(
                        number: number, acceptedAt: update.now, until: nil, value: value, token: token, codec: codec)
                    entry.bytes.withUnsafeBytes { other.put(0, payload: $0, rule: .ownNever) }
                }
                guard case .applied(let ticket) = end else { continue }
                return try engine.pipeline.wait(for: ticket)
            }
        }
    }

    // MARK: What waits

    /// What has been done since the outbox was opened, and what is left.
    public var progress: OutboxProgress {
        let counts = outbox.counts
        return OutboxProgress(
            waiting: outbox.index.waiting,
            oldest: outbox.index.oldest.map { .milliseconds(max(0, cache.source.database.now() - $0)) },
            delivered: counts.delivered.read(), retried: counts.retried.read(),
            refused: counts.refused.read(), undecodable: core.undecodableCount, lastFailure: core.lastFailure)
    }

    /// Whether a write of a key waits: what the cache, or its origin, has may not be known to others yet.
    public func isWaiting(_ key: some CacheKey) -> Bool { key.withKeyBytes { outbox.index.isWaiting($0) } }

    /// Returns when no write of a key waits, when the outbox is closed, or when the task is cancelled. Writes whose handler throws
    /// again and again wait as long. Within the handler that delivers a write of the key, which waits until it has ended, it
    /// returns at once.
    /// - Returns: whether none waits.
    @discardableResult
    public func untilDelivered(_ key: some CacheKey) async -> Bool {
        if core.isDelivering(key.keyBytes) { return false }
        let waiting = DeliveryWait()
        return await withTaskCancellationHandler {
            await withUnsafeContinuation { continuation in
                waiting.begin(continuation)
                outbox.index.whenClear([key.keyBytes], until: .max) { waiting.end($0) }
                if core.isStopping { core.endWaits() }
            }
        } onCancel: {
            waiting.end(false)
        }
    }

    private func closed(_ operation: String, _ key: String? = nil) -> LarderError {
        LarderError(.closed, "the outbox was closed", operation: operation, database: cache.name, key: key)
    }

    /// Forgets all writes that wait. Of one that is being delivered at this moment nothing waits any more; if its handler
    /// throws, it is not tried again. The entries in the cache stay.
    /// - Returns: how many keys waited.
    /// - Throws: ``LarderError``; ``LarderError/Code/closed`` if the outbox was closed, and nothing is forgotten.
    @discardableResult
    public func purge() throws(LarderError) -> Int {
        // What waits may be another's by now.
        if core.isStopping { throw closed("purge") }
        return try cache.source.whileOpen("purge") { (_) throws(LarderError) in
            let count = outbox.index.waiting
            try outbox.discard()
            // What was saved since then waits.
            try outbox.load()
            return count
        }
    }

    /// ``purge()``, without blocking the caller.
    @discardableResult
    public func purge() async throws(LarderError) -> Int {
        try await BlockingWork.run { () throws(LarderError) in try self.purge() }
    }

    /// Delivers the next ones that are due, and waits for that: for larders whose background threads do not run.
    /// - Returns: in how many milliseconds there is more to do.
    @discardableResult
    func deliverDue() async -> Int64 { await BlockingWork.run { [core] in core.round() } }
}
