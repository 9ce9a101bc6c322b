import LarderEngine
import LarderFetching

/// The result of a call for a key, from the cache or from the origin.
struct OriginFetched<Value: Sendable>: Sendable {
    /// Nil if the origin has no value.
    let model: Value?
    /// The origin's reply and the time of the request; nil for a cached value.
    var answer: OriginAnswered?
}

/// A reply of the origin, and when the request was sent: also in milliseconds of the lease clock.
typealias OriginAnswered = (answer: OriginAnswer, ticket: InvalidationEpoch.Ticket, sentAt: Int64)

/// The lookups and writes that a call makes in the cache for one key of an origin. A reply is stored only while it is
/// known to be current.
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
        guard let policy = cache.policy(options.policy, lifetime: answered.answer.lifetime, since: answered.sentAt)
        else { return await base.release(token: token, .open) }
        let write = try EntryWrite(
            .bytes(bytes), answered.answer.codec, base.key, policy, cache.tags(options.tags), cache.cache.name)
        try await base.store(write, token)
    }

    func release(token: UInt64, _ release: FetchRelease) async { await base.release(token: token, release) }

    func release(after error: any Error, _ options: CheckedFetch) -> FetchRelease {
        // These failures cause no back-off of the key. Other callers may be able to use a reply that this caller cannot
        // use. An open circuit breaker may close before the back-off would end.
        if case .refused? = error as? OriginFailure { return .open }
        return (error as? LarderError)?.code == .decoding || cache.limiter.isResting
            ? .open : base.release(after: error, options)
    }

    func failedInBackground(_ error: any Error) {
        // The open circuit breaker was already reported.
        if case .resting? = error as? OriginFailure { return }
        base.failedInBackground(error)
    }
}

extension OriginCache {
    /// Returns a policy that expires an entry by its lifetime at the origin or by the policy `own`, whichever is
    /// earlier; nil if the lifetime at the origin is over.
    /// - Parameters:
    ///   - lifetime: the lifetime at the origin; nil if the entry does not expire there.
    ///   - since: when the request was sent, in milliseconds of the lease clock.
    func policy(_ own: EntryPolicy, lifetime: Duration?, since: Int64) -> EntryPolicy? {
        let database = cache.source.database
        // A lifetime longer than any policy counts as unlimited.
        guard let milliseconds = lifetime.flatMap({ $0 < .zero ? 0 : $0.wholeMilliseconds }) else { return own }
        let left = milliseconds - (database.leases.time - since)
        guard left > 0 else { return nil }
        guard let checked = try? own.checked() else { return own }
        // Deadlines use the system clock, and the larder's time may be ahead of that clock, so convert.
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
    /// The duration in milliseconds, rounded down so that an entry never lives longer in the cache than at the origin.
    /// Nil if it is longer than any policy.
    fileprivate var wholeMilliseconds: Int64? {
        let (seconds, attoseconds) = components
        guard seconds <= UpdatePolicy.longestMilliseconds / 1000 else { return nil }
        return seconds * 1000 + attoseconds / 1_000_000_000_000_000
    }
}
