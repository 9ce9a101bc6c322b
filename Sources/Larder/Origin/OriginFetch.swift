import LarderEngine
import LarderFetching

/// What a call got for a key: from the cache, or from the origin.
struct OriginFetched<Value: Sendable>: Sendable {
    /// Nil: the origin has none.
    let model: Value?
    /// What the origin answered, and when it was asked; nil for what the cache had.
    var answer: OriginAnswered?
}

/// What the origin answered, and when it was asked.
struct OriginAnswered: Sendable {
    let answer: OriginAnswer
    let ticket: InvalidationEpoch.Ticket
    /// In milliseconds of the clock by which leases end.
    let sentAt: Int64
}

/// One key of a cache whose value an origin has: what the origin answers is stored only while it is known to be so.
struct OriginFetch<Value: Codable & Sendable>: FetchBackend {
    let cache: OriginCache
    let base: CacheFetch<Value>

    var name: FetchName { base.name }

    func now() -> Int64 { base.now() }

    func ask(maxAge: Int64?, lease: Int64?, waits: FetchWait) async throws -> FetchReply<OriginFetched<Value>> {
        switch try await base.ask(maxAge: maxAge, lease: lease, waits: waits) {
        case .fresh(let model): .fresh(OriginFetched(model: model))
        case .stale(let model): .stale(OriginFetched(model: model))
        case .lead(let token, let found):
            .lead(
                token: token,
                found.map {
                    FoundValue(OriginFetched(model: $0.value), isFresh: $0.isFresh, isYoung: $0.isYoung)
                })
        case .wait: .wait
        case .absent: .absent
        case .failed(let milliseconds): .failed(milliseconds: milliseconds)
        }
    }

    func store(_ fetched: OriginFetched<Value>, token: UInt64, _ options: CheckedFetch) async throws {
        guard let answered = fetched.answer, cache.mayStore(answered, base.key) else {
            return await base.release(token: token, .open)
        }
        guard let bytes = answered.answer.bytes else {
            return await base.release(token: token, .absent(milliseconds: max(1, options.absent)))
        }
        let life = OriginLifetime(answered.answer.lifetime, since: answered.sentAt)
        guard let policy = life.policy(options.policy, cache.cache.source.database) else {
            return await base.release(token: token, .open)
        }
        let action = try cache.cache.source.put(
            .bytes(bytes), answered.answer.codec, base.key, policy, cache.tags(options.tags))
        let write = EntryWrite(key: base.key, action: action, condition: .lease(token))
        let underlying = cache.cache
        _ = try await BlockingWork.run { () throws(LarderError) in try underlying.perform(write) }
    }

    func release(token: UInt64, _ release: FetchRelease) async { await base.release(token: token, release) }

    func release(after error: any Error, _ options: CheckedFetch) -> FetchRelease {
        // The origin has answered, with what this caller cannot have; or it rests, and its keys need no rests of their own,
        // which would end later.
        if case .refused? = error as? OriginFailure { return .open }
        return (error as? LarderError)?.code == .decoding || cache.limiter.isResting
            ? .open : base.release(after: error, options)
    }

    func failedInBackground(_ error: any Error) {
        // That it rests was told when it began.
        if case .resting? = error as? OriginFailure { return }
        base.failedInBackground(error)
    }
}

/// How long an entry lives at its origin.
struct OriginLifetime {
    /// In milliseconds; nil: without end.
    private let milliseconds: Int64?
    private let since: Int64

    /// - Parameter since: when the origin was asked, in milliseconds of the clock by which leases end.
    init(_ lifetime: Duration?, since: Int64) {
        self.since = since
        // A lifetime that no policy has never ends either.
        milliseconds = lifetime.flatMap { $0 < .zero ? 0 : $0.wholeMilliseconds }
    }

    /// The policy of an entry that ends with its life there, or earlier if its own policy says so; nil if it is over.
    func policy(_ own: EntryPolicy, _ database: Database) -> EntryPolicy? {
        guard let milliseconds else { return own }
        let left = milliseconds - (database.leaseTime() - since)
        guard left > 0 else { return nil }
        guard let checked = try? own.checked() else { return own }
        // Entries' instants are those of the clock, and the larder's time may be ahead of it.
        let end = database.now() + left - database.timeAhead
        switch checked.lifetime {
        case .governed, .keep:
            if let interval = database.rules.policy.intervalMilliseconds, interval <= left { return own }
        case .policy(let policy):
            if let interval = policy.intervalMilliseconds, interval <= left { return own }
        case .until(let instant):
            if instant <= end { return own }
        }
        guard end <= EntryPolicy.latestMilliseconds else { return own }
        var policy = EntryPolicy.until(millisecondsSince1970: end)
        if let grace = checked.grace { policy = policy.grace(.milliseconds(grace)) }
        return policy
    }
}

extension Duration {
    /// Rounded down: an entry never lives longer here. Nil if it is longer than any policy.
    fileprivate var wholeMilliseconds: Int64? {
        let (seconds, attoseconds) = components
        guard seconds <= UpdatePolicy.longestMilliseconds / 1000 else { return nil }
        return seconds * 1000 + attoseconds / 1_000_000_000_000_000
    }
}
