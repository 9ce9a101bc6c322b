import LarderEngine
import LarderFetching
import LarderPlatform

/// The lookups and writes that a call with a fetch closure makes for one key of a cache.
struct CacheFetch<Value: Codable & Sendable>: FetchBackend {
    let cache: Cache
    let key: Key
    let name: FetchName
    /// Whether the caller has already read the key, so that the statistics already include the read.
    let isCounted: Bool

    init(_ cache: Cache, _ key: Key, isCounted: Bool) {
        self.cache = cache
        self.key = key
        self.isCounted = isCounted
        name = FetchName(cache.source.database, cache.source.database.name, Array(key.bytes))
    }

    private var source: CacheSource { cache.source }
    private var database: Database { cache.source.database }

    func now() -> Int64 { database.leases.time }

    // MARK: Lookups

    func ask(maxAge: Int64?, lease: Int64?, waits: FetchWait) async throws -> FetchReply<Value> {
        let held = try source.hold("fetch")
        defer { database.releaseDetached() }
        defer { withExtendedLifetime(held) {} }
        let wakeUp = WakeUp()
        var request = FetchRequest(key: key, holder: source.leaseHolder, askedAt: database.now())
        request.maxAge = maxAge
        request.leaseMilliseconds = lease
        if waits != .never {
            request.mayWait = true
            request.waitsForFresh = waits == .ifNothingIsFresh
            request.waiter = waiter(wakeUp, lease)
        }
        var isSecond = false
        while true {
            let (answer, record) = try await look(request, held.engine)
            switch answer.state {
            case .fresh, .stale:
                guard let record else { return .wait }
                if let value = try await source.decodeForTask(Value.self, record, key, isReplaceable: true) {
                    return answer.state == .fresh ? .fresh(value) : .stale(value)
                }
                // An entry that cannot be decoded counts as a miss: request a newer value.
                if isSecond { _ = try source.decodeOrThrow(Value.self, record, key) }
                isSecond = true
                request.maxAge = 0
                request.askedAt = max(database.now(), record.header.storedAt)
                // Use a new waiter: the previous waiter may already have been notified of this value.
                if waits != .never { request.waiter = waiter(wakeUp, lease) }
            case .lead(let token): return .lead(token: token, found(answer, record, request))
            case .queued(let until):
                await wakeUp.wait(milliseconds: until - now())
                guard Task.isCancelled else { continue }
                request.mayWait = false
                // If the lease was granted while the task was being cancelled, release it.
                if case .lead(let token) = try await look(request, held.engine).0.state {
                    database.leases.release(key, token, .open)
                }
                throw CancellationError()
            case .wait: return .wait
            case .absent: return .absent
            case .failed(let left): return .failed(milliseconds: left)
            }
        }
    }

    private func waiter(_ wakeUp: WakeUp, _ lease: Int64?) -> LeaseWaiter {
        LeaseWaiter(source.leaseHolder, leaseMilliseconds: lease) { wakeUp.signal() }
    }

    /// Returns the entry that was found when the lease, the exclusive right to fetch the key, was granted.
    private func found(_ answer: FetchAnswer, _ record: Record?, _ request: FetchRequest) -> FoundValue<Value>? {
        // Ignore a value that cannot be decoded: the caller with the lease is about to replace it.
        guard let record, let header = answer.header,
            let value = try? source.decodeOrThrow(Value.self, record, key)
        else { return nil }
        let isFresh = answer.rules.freshness(header, now: database.now()) == .fresh
        return FoundValue(value, isFresh: isFresh, isYoung: request.isYoung(header))
    }

    /// Returns the engine's answer. First tries the entries in memory on this thread. If necessary, continues on a
    /// thread that may block.
    private func look(_ request: FetchRequest, _ engine: Engine) async throws(LarderError) -> (FetchAnswer, Record?) {
        if let (answer, record, ticket) = try answer(request, .memoryOnly) {
            if engine.pipeline.isDecided(ticket) {
                try engine.pipeline.wait(for: ticket)
            } else {
                try await BlockingWork.run { () throws(LarderError) in try engine.pipeline.wait(for: ticket) }
            }
            return (answer, record)
        }
        return try await BlockingWork.run { () throws(LarderError) in
            guard let (answer, record, ticket) = try self.answer(request, .mayBlock) else {
                throw LarderError(.closed, "the larder was shut down", operation: "fetch", database: database.name)
            }
            try engine.pipeline.wait(for: ticket)
            return (answer, record)
        }
    }

    private func answer(
        _ request: FetchRequest, _ access: Access
    ) throws(LarderError) -> (FetchAnswer, Record?, CommitTicket)? {
        var ticket = CommitTicket.none
        var found: (FetchAnswer, Record?)?
        let isAnswered = try database.fetch(request, now: database.now(), access, ticket: &ticket) { answer, payload in
            let record = answer.header.flatMap { header in payload.map { Record(header, payload: $0) } }
            found = (answer, record)
        }
        guard isAnswered, let (answer, record) = found else { return nil }
        if isCounted {
            let isHit = answer.state == .fresh
            database.noteReads(hits: isHit ? -1 : 0, misses: isHit ? 0 : -1)
        }
        return (answer, record, ticket)
    }

    // MARK: Results

    func store(_ value: Value, token: UInt64, _ options: CheckedFetch) async throws {
        let (payload, codec) = try source.codec.payload(of: value, key, database.name)
        let write = try EntryWrite(payload, codec, key, options.policy, options.tags, database.name, "fetch")
        try await store(write, token)
    }

    /// Stores a fetched value if the lease with this token is still valid.
    func store(_ write: EntryWrite, _ token: UInt64) async throws(LarderError) {
        var write = write
        write.condition = .lease(token)
        _ = try await BlockingWork.run { [write] () throws(LarderError) in try cache.perform(write) }
    }

    func release(token: UInt64, _ release: FetchRelease) async {
        guard case .absent(let milliseconds) = release else {
            database.leases.release(key, token, release)
            return
        }
        await BlockingWork.run {
            if database.exists, (try? removeAbsent(token, milliseconds)) != nil { return }
            database.leases.release(key, token, release)
        }
    }

    private func removeAbsent(_ token: UInt64, _ milliseconds: Int64) throws(LarderError) {
        try source.whileOpen("fetch") { (_) throws(LarderError) in
            _ = try database.commit([key], loading: .records, durability: cache.durability) { update in
                update.releaseAbsent(0, token, milliseconds: milliseconds)
            }
        }
    }

    func failedInBackground(_ error: any Error) {
        database.report(
            .warning, "refetching '\(key)' in the background failed: \(error)", key: key, error: error)
    }
}

extension CacheSource {
    /// Returns the result of `read`. If an entry cannot be decoded, returns nil: the caller's fetch then reports the
    /// failure and replaces the entry. If the options exclude the origin, there is no fetch, so the error is thrown.
    func decodable<Result>(
        _ options: FetchOptions, _ read: () async throws(LarderError) -> Result?
    ) async throws(LarderError) -> Result? {
        do throws(LarderError) {
            return try await read()
        } catch {
            guard error.code == .decoding, options.source != .cacheOnly else { throw error }
            return nil
        }
    }
}
