import LarderEngine
import LarderOutboxes
import LarderPlatform

/// A write-behind queue. A saved value is in the cache immediately. Later a handler delivers the values to their
/// destination, in order. The outbox retries each delivery until the handler succeeds.
///
/// ```swift
/// let outbox = try Outbox<Order>(cache) { delivery in
///     try await api.save(delivery.value, as: delivery.key, idempotencyKey: delivery.token)
/// }
/// try await outbox.save(order, forKey: "order:17")
/// ```
///
/// - The entry and the pending delivery are committed together: after a crash or `kill -9` both exist or neither.
///   Everything that `save(_:forKey:policy:tags:)` has accepted is delivered, even after a restart, once an outbox of
///   the database is opened again.
/// - Deliveries start in the order of the writes. Only the last pending write of a key is delivered; it replaces
///   earlier ones. No key has two deliveries at the same time.
/// - Each write is delivered *at least once*. It is delivered again, with the same ``OutboxDelivery/token``, after a
///   crash, or if the handler throws although it has done its work.
/// - A write that cannot be decoded, because the model has changed, blocks no other writes: see the initializer.
/// - If the handler throws ``DeliveryRefusal``, the write is dropped. After any other error the write is retried with
///   exponential back-off and jitter, from 100 ms up to 30 s, while other writes are delivered. After eight failures in
///   a row the whole outbox backs off in the same way, and then tries one write.
///
/// Pending writes are stored in the companion database, `NAME.outbox`, from which nothing is evicted. Only one outbox
/// of a database can be open. Other processes cannot open the larder, and opening a second outbox in the same process
/// throws. Writes directly to the cache are not delivered.
///
/// Thread-safe.
public final class Outbox<Value: Codable & Sendable>: Sendable {
    /// The cache with the entries.
    public let cache: Cache
    private let core: OutboxDeliverer
    private let ending = EndSignal()

    private var outbox: LarderOutboxes.Outbox { core.outbox }

    /// Opens the outbox of a cache's database, and starts to deliver pending writes. May block to read them.
    /// - Parameters:
    ///   - cache: the cache with the entries.
    ///   - concurrency: the number of concurrent deliveries, of different keys, 1 to 64. The next group of deliveries
    ///     starts after all deliveries of the previous group have ended. With 1, the default, deliveries are in the
    ///     order of the writes.
    ///   - keysMax: the maximum number of keys with pending writes; writes of further keys throw
    ///     ``LarderError/Code/writesSuspended``.
    ///   - undecodable: receives writes that cannot be decoded as `Value`, for example because the model has changed
    ///     since. Like `handler`, it delivers a write or throws. Without this function, such writes are kept for a
    ///     version of the program that can read them: they block no other writes, ``OutboxProgress/undecodable`` counts
    ///     them, and ``OutboxProgress/lastFailure`` has the reason.
    ///   - handler: delivers a write. Called again until it returns or throws ``DeliveryRefusal``. Its task is
    ///     cancelled when the outbox is closed, and the write stays pending. A handler that never returns blocks
    ///     further deliveries.
    /// - Throws: ``LarderError/Code/invalidArgument`` if the database's outbox is already open, or the database's name
    ///   is too long for a companion; also the errors of opening a cache.
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
                "queued writes are stored in a database '\(source.database.name).outbox', which is not a valid name")
        }
        let lease = try source.hold("outbox")
        let companion = try lease.engine.database(name)
        guard OutboxDeliverer.claim(companion) else {
            throw refuse("the outbox of this database is already open in this process: close it first")
        }
        do throws(LarderError) {
            let outbox = try LarderOutboxes.Outbox(
                companion, most: keysMax, held: lease.engine.held, hasTokens: true)
            core = OutboxDeliverer(outbox, lease, concurrency: concurrency) { parcel in
                await Self.deliver(parcel, source, undecodable, handler)
            }
        } catch {
            OutboxDeliverer.release(companion)
            throw error
        }
        self.cache = cache
        if lease.engine.options.backgroundMaintenance { core.start() }
    }

    deinit {
        // Stop in the background, because stopping waits for the handler.
        Task { [core] in await core.stopForTask() }
    }

    /// Runs until ``shutdown()`` or `close()` is called or the task is cancelled, and then closes the
    /// outbox. After ``shutdown()`` it starts no further deliveries, and waits for running ones; cancelling the task
    /// cancels them. Pending writes stay. Never throws; has the form that ServiceLifecycle's `Service` requires.
    public func run() async throws {
        await ending.wait()
        await withTaskCancellationHandler {
            await core.stopForTask(cancelling: false)
        } onCancel: {
            core.beginStop()
        }
    }

    /// Makes ``run()`` end gracefully, now or when it is called. Returns at once.
    public func shutdown() { ending.set() }

    /// Stops delivering: cancels the handler's tasks, and waits until they have ended. Pending writes stay. Idempotent.
    /// A call by the handler does not wait: the outbox closes when the handler has ended. A handler must not wait for a
    /// detached task that makes this call.
    public func close() {
        ending.set()
        if core.isInHandler { return stopBehindHandler() }
        core.stop()
    }

    /// Runs ``close()`` without blocking the calling thread.
    public func close() async {
        ending.set()
        if core.isInHandler { return stopBehindHandler() }
        await core.stopForTask()
    }

    private func stopBehindHandler() {
        core.beginStop()
        Task.detached { [core] in await core.stopForTask() }
    }

    private static func deliver(
        _ parcel: LarderOutboxes.Outbox.Parcel, _ source: CacheSource,
        _ undecodable: (@Sendable (UndecodableDelivery) async throws -> Void)?,
        _ handler: @Sendable (OutboxDelivery<Value>) async throws -> Void
    ) async -> OutboxDeliverer.End {
        let (key, entry) = (parcel.turn.key, parcel.entry)
        let (token, attempt) = (HexText.text(entry.token ?? []), parcel.turn.failures + 1)
        do {
            switch model(entry, key, source) {
            case .success(let value):
                let delivery = OutboxDelivery(
                    keyBytes: key, value: value, token: token, attempt: attempt, acceptedAt: entry.acceptedAt)
                try await source.hooks.around("larder.outbox", "deliver", source.database.name) {
                    try await handler(delivery)
                }
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

    /// Returns the model of a pending write; nil if the write is a removal.
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

    // MARK: Writes

    /// Stores a model in the cache and queues its delivery. Returns when the entry and the delivery are as durable as
    /// any write of the larder.
    /// - Parameters:
    ///   - value: the model.
    ///   - key: the entry's key.
    ///   - policy: how long the entry in the cache stays fresh. Pending deliveries do not expire.
    ///   - tags: the tags of the entry, as for `Cache.set(_:forKey:policy:tags:durability:)`, which also lists the
    ///     errors.
    public func save(
        _ value: Value, forKey key: some CacheKey, policy: EntryPolicy = .database, tags: [String] = []
    ) throws(LarderError) {
        try accept(try cache.source.write(value, key, policy, tags, nil, "save"))
    }

    /// Runs the call above without blocking the calling thread.
    public func save(
        _ value: Value, forKey key: some CacheKey, policy: EntryPolicy = .database, tags: [String] = []
    ) async throws(LarderError) {
        let key = key.keyBytes
        try await BlockingWork.run { () throws(LarderError) in
            try self.save(value, forKey: key, policy: policy, tags: tags)
        }
    }

    /// Removes an entry from the cache and queues the delivery of its removal, with a nil value.
    public func remove(_ key: some CacheKey) throws(LarderError) {
        try accept(EntryWrite(removing: try cache.source.key(key, "remove")))
    }

    /// Runs the call above without blocking the calling thread.
    public func remove(_ key: some CacheKey) async throws(LarderError) {
        let key = key.keyBytes
        try await BlockingWork.run { () throws(LarderError) in try self.remove(key) }
    }

    private func accept(_ write: EntryWrite) throws(LarderError) {
        let isAccepted: Void? = try core.change { () throws(LarderError) in try enqueue(write) }
        if isAccepted == nil { throw closed(write.isRemoval ? "remove" : "save", write.key.description) }
    }

    private func enqueue(_ write: EntryWrite) throws(LarderError) {
        let (key, value) = (write.key, write.payload?.bytes)
        let bytes = Array(key.bytes)
        let (source, outbox) = (cache.source, outbox)
        let operation = write.isRemoval ? "remove" : "save"
        let size = bytes.count + (value?.count ?? 0)
        if let refusal = outbox.index.refusal(of: [bytes], bytes: size, limit: "keysMax") {
            throw LarderError(
                .writesSuspended, refusal, operation: operation, database: cache.name, key: key.description)
        }
        let token = OutboxEntry.makeToken()
        try source.whileOpen("save") { (engine) throws(LarderError) in
            while true {
                // Open both databases before the transaction, and wait like any writer if too much is queued for the
                // disk.
                for database in [source.database, outbox.database] {
                    try database.commit([key], loading: .none) { _ in }
                }
                let loads = write.keepsPrevious || write.isRemoval
                let part = TransactionPart(
                    database: source.database, keys: [key], loadedCount: loads ? 1 : 0, watches: [])
                let other = TransactionPart(database: outbox.database, keys: [key], loadedCount: 0, watches: [])
                let end = try engine.transact(part, and: other, now: source.database.now(), .mayBlock) {
                    (update, other) throws(LarderError) in
                    // Assign the number while the key is locked, so that numbers are in the order of the writes.
                    guard let number = outbox.index.note([bytes], bytes: [size], now: update.now) else {
                        throw LarderError(.writesSuspended, "the outbox does not accept writes now", operation: "save")
                    }
                    if write.isRemoval {
                        update.removeStored(0)
                    } else {
                        write.apply(&update, 0, ahead: source.database.timeAhead)
                    }
                    let entry = OutboxEntry(
                        number: number, acceptedAt: update.now, until: nil, value: value, token: token,
                        codec: write.codec)
                    entry.bytes.withUnsafeBytes { other.put(0, payload: $0, rule: .ownNever) }
                }
                guard case .applied(let ticket) = end else { continue }
                return try engine.pipeline.wait(for: ticket)
            }
        }
    }

    // MARK: Pending writes

    /// The counters since the outbox was opened, and the number of pending writes.
    public var progress: OutboxProgress {
        let counts = outbox.counts
        return OutboxProgress(
            waiting: outbox.index.waiting,
            oldest: outbox.index.oldest.map { .milliseconds(max(0, cache.source.database.now() - $0)) },
            delivered: counts.delivered.read(), retried: counts.retried.read(),
            refused: counts.refused.read(), undecodable: core.undecodableCount, lastFailure: core.lastFailure)
    }

    /// Whether a write of a key is pending, so that its destination may not have the value of the cache yet.
    public func isWaiting(_ key: some CacheKey) -> Bool { key.withKeyBytes { outbox.index.isWaiting($0) } }

    /// Waits until no write of a key is pending, the outbox is closed or shut down, or the task is cancelled. Keeps
    /// waiting for writes that are being retried. If the handler calls this for the key of its own delivery, the call
    /// returns false without waiting.
    /// - Returns: whether no write is pending.
    @discardableResult
    public func untilDelivered(_ key: some CacheKey) async -> Bool {
        if core.isDelivering(key.keyBytes) { return false }
        let isDelivered = Promise<Bool>()
        return await withTaskCancellationHandler {
            outbox.index.whenClear([key.keyBytes], until: .max) { isDelivered.set($0) }
            if core.isStopping { core.endWaits() }
            return await isDelivered.value()
        } onCancel: {
            isDelivered.set(false)
        }
    }

    private func closed(_ operation: String, _ key: String? = nil) -> LarderError {
        LarderError(.closed, "the outbox was closed", operation: operation, database: cache.name, key: key)
    }

    /// Drops all pending writes. A write that is being delivered is dropped too: if the handler throws, the write is
    /// not retried. The entries in the cache stay.
    /// - Returns: the number of keys with pending writes.
    /// - Throws: ``LarderError``; ``LarderError/Code/closed`` if the outbox was closed, in which case nothing is
    ///   dropped.
    @discardableResult
    public func purge() throws(LarderError) -> Int {
        // When this outbox is closed, the pending writes may belong to another outbox that was opened since.
        let count = try core.change { () throws(LarderError) in
            try cache.source.whileOpen("purge") { (_) throws(LarderError) in
                let count = outbox.index.waiting
                try outbox.discard()
                // Load the writes that were saved while the earlier writes were dropped.
                try outbox.load()
                return count
            }
        }
        guard let count else { throw closed("purge") }
        return count
    }

    /// Runs ``purge()`` without blocking the calling thread.
    @discardableResult
    public func purge() async throws(LarderError) -> Int {
        try await BlockingWork.run { () throws(LarderError) in try self.purge() }
    }

    /// Delivers the next writes that are due, and waits until the deliveries have ended. For larders without background
    /// threads.
    /// - Returns: the time until the next delivery is due, in milliseconds.
    @discardableResult
    func deliverDue() async -> Int64 { await BlockingWork.run { [core] in core.round() } }
}

/// A write passed to the handler of an ``Outbox``.
public struct OutboxDelivery<Value: Sendable>: Sendable {
    /// The key's bytes.
    public let keyBytes: [UInt8]
    /// The saved model; nil if the entry was removed.
    public let value: Value?
    /// An idempotency key for the receiver: 32 hexadecimal digits, unique to this write and the same at each attempt,
    /// even after a crash.
    public let token: String
    /// The number of the attempt since the program started, beginning with 1.
    public let attempt: Int
    /// The time at which the write was saved, in milliseconds since 1970.
    public let acceptedAt: Int64

    /// The key as text.
    public var key: String { String(decoding: keyBytes, as: UTF8.self) }
}

/// A write of an ``Outbox`` that cannot be decoded, for example because a previous version of the program saved it with
/// another model.
public struct UndecodableDelivery: Sendable {
    /// The key's bytes.
    public let keyBytes: [UInt8]
    /// The saved bytes.
    public let bytes: [UInt8]
    /// The encoding of the bytes.
    public let codec: Codec
    /// The reason why the bytes cannot be decoded.
    public let error: LarderError
    /// An idempotency key for the receiver, as in ``OutboxDelivery/token``.
    public let token: String
    /// The number of the attempt, as in ``OutboxDelivery/attempt``.
    public let attempt: Int
    /// The time at which the write was saved, in milliseconds since 1970.
    public let acceptedAt: Int64

    /// The key as text.
    public var key: String { String(decoding: keyBytes, as: UTF8.self) }
}

/// An error that a handler of an ``Outbox`` throws to drop a write: it is not retried.
public struct DeliveryRefusal: Error, Hashable, Sendable, CustomStringConvertible {
    /// The reason, for people.
    public let reason: String

    /// Creates a refusal of a write, with a reason.
    public init(_ reason: String) { self.reason = reason }

    /// The reason.
    public var description: String { reason }
}

/// The counters of an ``Outbox`` since it was opened, and its pending writes.
public struct OutboxProgress: Hashable, Sendable {
    /// The number of keys with pending writes.
    public let waiting: Int
    /// The age of the oldest pending write; nil if there is none.
    public let oldest: Duration?
    /// The number of delivered writes.
    public let delivered: Int
    /// The number of repeated attempts to deliver a write.
    public let retried: Int
    /// The number of writes that the handler has refused.
    public let refused: Int
    /// The number of pending writes that cannot be decoded. This program can deliver them only if it passes a function
    /// for such writes to the initializer.
    public let undecodable: Int
    /// The reason of the last failed attempt, for people; nil if there is none.
    public let lastFailure: String?
}
