import LarderEngine
import LarderPlatform
import LarderVocabulary
import Synchronization

/// The object through which a ``Cache`` or a ``CacheSnapshot`` reads its database. It has no public members;
/// ``CacheReading`` uses it to define the reading calls for both types. A type of your own that wraps a cache can
/// return the source of that cache.
///
/// Keeps the larder open until it is closed or released. Thread-safe. `@unchecked Sendable`: `lease` is guarded by
/// `lock`; the rest is constant and thread-safe.
public final class CacheSource: @unchecked Sendable {
    let database: Database
    /// The snapshot to read instead of the current database, if there is one.
    let snapshot: Snapshot?
    let codec: ModelCodec
    /// The identity of ``codec``, which is expensive to determine.
    let codecIdentity: AnyObject?
    let onDecodingFailure: DecodingFailureAction
    /// Whether decoded models are kept with the entries in memory. A snapshot keeps none, because it does not read
    /// entries in memory.
    let keepsDecoded: Bool
    /// The durability of writes without one of their own; nil for that of the larder.
    let durability: Durability?
    /// Holds the leases of fetching calls of this cache.
    let leaseHolder = LeaseHolder()
    let changeReaders = ChangeReaders()
    /// The program's hooks around calls; nil for none.
    let hooks: CallHooks?
    private let lock = Lock()
    private var lease: EngineLease?
    private let closed = Atomic<Bool>(false)

    init(
        _ engine: Engine, _ database: Database, snapshot: Snapshot? = nil, codec: ModelCodec,
        onDecodingFailure: DecodingFailureAction, keepsDecoded: Bool = false, durability: Durability? = nil,
        hooks: CallHooks? = nil
    ) {
        lease = EngineLease(engine)
        self.database = database
        self.snapshot = snapshot
        self.codec = codec.ofCache
        codecIdentity = codec.identity
        self.onDecodingFailure = onDecodingFailure
        self.keepsDecoded = keepsDecoded
        self.durability = durability
        self.hooks = hooks
    }

    /// Whether ``close()`` was called.
    var isClosed: Bool { closed.load(ordering: .acquiring) }

    /// Returns a lease, which keeps the engine open for as long as the caller retains it.
    func hold(_ operation: String) throws(LarderError) -> EngineLease {
        guard let lease = lock.withLock({ lease }) else { throw closedError(operation) }
        return lease
    }

    func closedError(_ operation: String) -> LarderError {
        let what = snapshot == nil ? "cache" : "snapshot"
        return LarderError(.closed, "the \(what) was closed", operation: operation, database: database.name)
    }

    /// Runs `body` while the larder is kept open.
    func whileOpen<Result>(_ operation: String, _ body: (Engine) throws(LarderError) -> Result) throws(LarderError)
        -> Result
    {
        let lease = try hold(operation)
        // No lock is held here, so entries that were removed from memory can be freed.
        defer { database.releaseDetached() }
        defer { withExtendedLifetime(lease) {} }
        return try measuring(operation) { () throws(LarderError) in
            do throws(LarderError) {
                return try body(lease.engine)
            } catch {
                throw error.during(operation)
            }
        }
    }

    /// Runs `body`, and reports its duration if the program measures calls.
    func measuring<Result>(
        _ operation: String, _ body: () throws(LarderError) -> Result
    ) throws(LarderError) -> Result {
        guard let end = hooks?.begin("larder.operation", operation, database.name, isTraced: false) else {
            return try body()
        }
        do throws(LarderError) {
            let result = try body()
            end(nil)
            return result
        } catch {
            end(error)
            throw error
        }
    }

    func close() {
        // Close the sequences of changes first: they must end before calls of their consumers fail.
        changeReaders.close()
        closed.store(true, ordering: .releasing)
        snapshot?.close()
        leaseHolder.end()
        // Release the lease outside the lock: the last release shuts the larder down, and that takes time.
        var last = lock.withLock { lease.take() }
        withExtendedLifetime(last) {}
        last = nil
        // Free removed entries, because their decoded models may hold references to this cache.
        database.releaseDetached()
    }

    // MARK: Entries

    /// Reads the fresh entry of a key.
    /// - Parameter body: called once if there is a fresh entry, with its header and its payload. May be called with
    ///   locks held, so it must only copy the data.
    /// - Returns: whether there is a fresh entry.
    func read(
        _ key: UnsafeRawBufferPointer, _ operation: String, now: Int64? = nil, fillCache: Bool = true,
        _ body: (RecordHeader, UnsafeRawBufferPointer) -> Void
    ) throws(LarderError) -> Bool {
        guard snapshot == nil, key.count <= Key.bytesMax else {
            guard let record = try record(try self.key([UInt8](key), operation), now: now, fillCache: fillCache) else {
                return false
            }
            record.withPayload { body(record.header, $0) }
            return true
        }
        // Memory is read without a lease: a larder that is being shut down has nothing in memory.
        if isClosed { throw closedError(operation) }
        var ticket = CommitTicket.none
        // Set if the disk must be read.
        var end: CacheCall.End?
        do throws(LarderError) {
            let outcome = try database.read(
                key, now: now, .mayBlock, fillCache: fillCache, ticket: &ticket,
                holding: { () throws(LarderError) in
                    end = hooks?.begin("larder.operation", operation, database.name, isTraced: false)
                    return try hold(operation)
                },
                { record, _ in body(record.header, record.payload) })
            if ticket != .none { try waitForCommit(ticket.sequence) }
            end?(nil)
            return outcome == .hit
        } catch {
            end?(error)
            throw error
        }
    }

    /// Returns a copy of the payload of the fresh entry of a key; nil if there is none.
    @usableFromInline func bytes(_ key: UnsafeRawBufferPointer, fillCache: Bool) -> Result<[UInt8]?, LarderError> {
        var payload: [UInt8]?
        return Result { () throws(LarderError) in
            _ = try read(key, "get", fillCache: fillCache) { payload = [UInt8]($1) }
            return payload
        }
    }

    /// Returns the entry of a key if it is fresh at the time `now`; nil otherwise.
    func record(_ key: Key, _ operation: String = "get", now: Int64? = nil, fillCache: Bool = true)
        throws(LarderError) -> Record?
    {
        try whileOpen(operation) { (_) throws(LarderError) in
            let now = now ?? database.now()
            if let snapshot { return try snapshot.get(key, now: now, fillCache: fillCache) }
            return try database.get(key, now: now, fillCache: fillCache)
        }
    }

    /// Returns the fresh entries of several keys at one instant, in the order of `keys`.
    func records(_ keys: [Key], fillCache: Bool) throws(LarderError) -> [Record?] {
        if keys.isEmpty { return [] }
        return try whileOpen("get") { (engine) throws(LarderError) in
            let now = database.now()
            if let snapshot {
                var found: [Record?] = []
                for key in keys { found.append(try snapshot.get(key, now: now, fillCache: fillCache)) }
                return found
            }
            var found: [Record?] = []
            let ticket = try database.perform(keys, .records, .mayBlock, now: now, fillCache: fillCache) {
                update in found = keys.indices.map { update.current($0) }
            }
            try engine.pipeline.wait(for: ticket ?? .none)
            // Count the reads here, because updates do not count them.
            let hits = found.reduce(0) { $0 + ($1 == nil ? 0 : 1) }
            database.noteReads(hits: hits, misses: keys.count - hits)
            return found
        }
    }

    /// Whether the database has files. Without files there is nothing to change. This check creates no files.
    /// - Throws: an error if the database was deleted.
    func hasFiles() throws(LarderError) -> Bool {
        if database.exists { return true }
        let isThere = try database.get(Key([])) != nil
        // Undo the count of this internal lookup in the statistics.
        database.noteReads(hits: isThere ? -1 : 0, misses: isThere ? 0 : -1)
        return isThere
    }

    /// Reads keys one at a time, so that the entry cache in memory knows whether each has an entry. The statistics do
    /// not count these reads.
    func remember(_ keys: [Key]) throws(LarderError) {
        var (hits, misses) = (0, 0)
        defer { database.noteReads(hits: -hits, misses: -misses) }
        for key in keys {
            let isFresh = try key.withBytes { (bytes) throws(LarderError) in
                try read(bytes, "get") { _, _ in }
            }
            if isFresh { hits += 1 } else { misses += 1 }
        }
    }

    /// Returns a cursor that keeps the larder open; nil if there are no files.
    func cursor(_ options: EnumerationOptions) throws(LarderError) -> (EntryCursor, Engine)? {
        let lease = try hold("enumerate")
        defer { withExtendedLifetime(lease) {} }
        let cursor: EntryCursor?
        if let snapshot {
            cursor = try snapshot.cursor(options)
        } else {
            cursor = try database.cursor(options)
        }
        return cursor.map { ($0, lease.engine) }
    }

    // MARK: Models

    func key(_ key: some CacheKey, _ operation: String) throws(LarderError) -> Key {
        try Key(checking: key, operation, database.name)
    }

    func keys(_ keys: some Sequence<some CacheKey>, _ operation: String) throws(LarderError) -> [Key] {
        var checked: [Key] = []
        checked.reserveCapacity(keys.underestimatedCount)
        for key in keys { checked.append(try self.key(key, operation)) }
        return checked
    }

    /// Returns the model in a record; nil if decoding fails and that counts as a miss.
    /// - Parameter isReplaceable: whether the caller can make a new value. If so, a failure always counts as a miss,
    ///   and is reported as an event.
    func decode<Value: Decodable>(_ type: Value.Type, _ record: Record, _ key: Key, isReplaceable: Bool = false)
        throws(LarderError) -> Value?
    {
        try decode(type, record, key, isReplaceable) { (payload, codec) in
            try self.codec.decode(type, payload, storedAs: codec)
        }
    }

    /// Like ``decode(_:_:_:)``, and also returns the memory size of the model.
    func decode<Value: Decodable>(_ type: Value.Type, _ record: Record, _ key: Key, _ size: inout ModelSize)
        throws(LarderError) -> Value?
    {
        try decode(type, record, key, false) { (payload, codec) in
            try self.codec.decode(type, payload, storedAs: codec, &size)
        }
    }

    private func decode<Value: Decodable>(
        _ type: Value.Type, _ record: Record, _ key: Key, _ isReplaceable: Bool,
        _ decoder: (UnsafeRawBufferPointer, Codec) throws -> Value
    ) throws(LarderError) -> Value? {
        do throws(LarderError) {
            return try decodeOrThrow(type, record, key, decoder)
        } catch {
            switch onDecodingFailure {
            case .throwError:
                guard isReplaceable else { throw error }
                database.report(.warning, "'\(key)' is treated as missing: \(error.message)", key: key, error: error)
                return nil
            case .treatAsMiss: return nil
            case .removeAndMiss:
                if snapshot == nil { try remove(key, holding: record) }
                return nil
            }
        }
    }

    func decodeOrThrow<Value: Decodable>(_ type: Value.Type, _ record: Record, _ key: Key) throws(LarderError) -> Value
    {
        try decodeOrThrow(type, record, key) { (payload, codec) in
            try self.codec.decode(type, payload, storedAs: codec)
        }
    }

    private func decodeOrThrow<Value: Decodable>(
        _ type: Value.Type, _ record: Record, _ key: Key, _ decoder: (UnsafeRawBufferPointer, Codec) throws -> Value
    ) throws(LarderError) -> Value {
        do {
            return try record.stored.withUnsafeBytes { stored in
                let payload = UnsafeRawBufferPointer(rebasing: stored.dropFirst(record.header.byteCount))
                return try decoder(payload, record.header.codec)
            }
        } catch {
            throw .decodingFailed(type, record.header.codec, key, database.name, error)
        }
    }

    /// Removes the entry of a key if it is still `record`.
    func remove(_ key: Key, holding record: Record) throws(LarderError) {
        try whileOpen("remove") { (_) throws(LarderError) in
            try database.commit([key], loading: .records) { update in
                if update.current(0) == record { update.remove(0) }
            }
        }
    }
}

extension CacheSource {
    /// Throws if a model fails a check of its schema.
    func verify<Value: Encodable>(_ model: Value, _ key: Key, _ operation: String = "set") throws(LarderError) {
        do { try codec.verify(model) } catch {
            throw .encodingFailed(Value.self, codec.codec, key, database.name, error, operation)
        }
    }
}

extension ModelCodec {
    /// Returns the encoded bytes of a value; errors name key and type.
    func payload<Value: Encodable>(of value: Value, _ key: Key, _ database: String?) throws(LarderError)
        -> (Payload, Codec)
    {
        do {
            return try encode(value)
        } catch {
            throw .encodingFailed(Value.self, codec, key, database, error)
        }
    }
}

extension Payload {
    func check(_ key: Key, _ database: String?) throws(LarderError) {
        guard count <= Record.payloadBytesMax else {
            throw .invalid("the value has \(count) bytes; the limit is \(Record.payloadBytesMax)", "set", database, key)
        }
    }
}

/// Keeps an engine open. Retaining this object is faster than retaining the engine: the weak references in the
/// process's list of engines slow down the engine's reference counting.
final class EngineLease: Sendable {
    let engine: Engine

    init(_ engine: Engine) { self.engine = engine }
}

/// Threads for work that may block, so that asynchronous callers do not block Swift's cooperative thread pool.
///
/// There are at most ``threadsMax`` threads, which start when there is work and are kept until the process exits.
/// Further work waits for a free thread.
enum BlockingWork {
    static let threadsMax = 4
    private static let pool = WorkerPool(name: "larder-async", threads: threadsMax, startsOnDemand: true)

    /// Runs `body` on one of the threads.
    static func run<Value: Sendable, Failure>(_ body: @escaping @Sendable () throws(Failure) -> Value)
        async throws(Failure) -> Value
    {
        let result = Promise<Result<Value, Failure>>()
        // A closure of an update may make the call.
        let update = RunningUpdate.current
        pool.submit {
            let value = RunningUpdate.$current.withValue(update) { Result { () throws(Failure) in try body() } }
            result.set(value)
        }
        return try await result.value().get()
    }
}

extension EntryInfo {
    /// - Parameter ahead: how many milliseconds the larder's time is ahead of the system clock, which may be set back.
    init(_ header: RecordHeader, byteCount: Int, rules: FreshnessRules, now: Int64, ahead: Int64) {
        self.init(
            storedAtMilliseconds: header.storedAt - ahead,
            deadlineMilliseconds: rules.deadline(header).map { $0 - ahead },
            rule: header.rule, graceMilliseconds: header.grace ?? rules.grace, databasePolicy: rules.policy,
            codec: header.codec, byteCount: byteCount, readAtMilliseconds: now - ahead)
    }

    /// The remaining lifetime of a fresh entry.
    var left: TimeToLive {
        timeToLiveMilliseconds.map { .milliseconds($0) } ?? .never
    }
}

extension CacheSource {
    /// Returns the metadata of the entry of a key, fresh or stale. In a snapshot, only of a fresh entry.
    func info(_ key: Key) throws(LarderError) -> EntryInfo? {
        let now = database.now()
        guard snapshot == nil else {
            return try record(key, "info", now: now).map { info($0.header, byteCount: $0.payloadCount, now: now) }
        }
        return try whileOpen("info") { (engine) throws(LarderError) in
            let (_, info, ticket) = try look(key, now, .mayBlock)
            try engine.pipeline.wait(for: ticket)
            return info
        }
    }

    /// Like ``info(_:)``, for asynchronous callers.
    func infoForTask(_ key: Key) async throws(LarderError) -> EntryInfo? {
        if snapshot == nil, !isClosed {
            let (isKnown, info, ticket) = try look(key, database.now(), .memoryOnly)
            if isKnown, ticket == .none { return info }
        }
        return try await BlockingWork.run { () throws(LarderError) in try self.info(key) }
    }

    private func look(
        _ key: Key, _ now: Int64, _ access: Access
    ) throws(LarderError) -> (isKnown: Bool, EntryInfo?, CommitTicket) {
        var ticket = CommitTicket.none
        var found: EntryInfo?
        let isKnown = try database.fetch(
            FetchRequest(lookingFor: key), now: now, access, ticket: &ticket
        ) { answer, payload in
            found = answer.header.map {
                EntryInfo(
                    $0, byteCount: payload?.count ?? 0, rules: answer.rules, now: now, ahead: database.timeAhead)
            }
        }
        return (isKnown, found, ticket)
    }

    /// Returns the metadata of an entry whose header is known.
    func info(_ header: RecordHeader, byteCount: Int, now: Int64) -> EntryInfo {
        EntryInfo(header, byteCount: byteCount, rules: database.rules, now: now, ahead: database.timeAhead)
    }
}
