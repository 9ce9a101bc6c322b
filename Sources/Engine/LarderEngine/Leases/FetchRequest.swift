/// A caller's request for a value. If there is no fresh value, the caller may get a lease to fetch one from the origin.
package struct FetchRequest: Sendable {
    package let key: Key
    /// The holder of the lease that the caller may be granted.
    package let holder: LeaseHolder
    /// The maximum age of the value at the time of the request, in milliseconds; nil for any age. With zero, only a
    /// value stored after the request is accepted.
    package var maxAge: Int64?
    /// The duration of the lease in milliseconds, even if its holder ends earlier. With nil, the lease has the default
    /// duration, and ends early if its holder ends.
    package var leaseMilliseconds: Int64?
    /// The time of the caller's first request, in milliseconds since 1970.
    package var askedAt: Int64
    /// The caller's waiter; nil if the caller does not wait.
    package var waiter: LeaseWaiter?
    /// Whether the caller waits if there is no value to serve.
    package var mayWait = false
    /// Whether the caller waits even if there is a stale value that may be served.
    package var waitsForFresh = false
    /// Whether the caller only looks up the stored value, fresh or stale, and refreshes nothing.
    private(set) var isLookup = false

    package init(key: Key, holder: LeaseHolder, askedAt: Int64) {
        (self.key, self.holder, self.askedAt) = (key, holder, askedAt)
    }

    /// Whether a value is young enough for ``maxAge``, or was written while the caller waited.
    package func isYoung(_ header: RecordHeader) -> Bool {
        waiter?.sawWrite ?? false || Self.isYoung(header.storedAt, maxAge, askedAt)
    }

    /// Whether a value is young enough. `maxAge` 0 excludes values of the same millisecond, which may be older than the
    /// request.
    static func isYoung(_ storedAt: Int64, _ maxAge: Int64?, _ askedAt: Int64) -> Bool {
        guard let maxAge else { return true }
        return maxAge == 0 ? storedAt > askedAt : storedAt >= askedAt.subtractingClamped(maxAge)
    }

    /// Creates a lookup of the stored value, fresh or stale. The state of the answer is ``FetchAnswer/State/fresh`` or
    /// ``FetchAnswer/State/stale``. If there is no value, the answer has no header.
    package init(lookingFor key: Key) {
        self.init(key: key, holder: Self.nobody, askedAt: 0)
        isLookup = true
    }

    private static let nobody = LeaseHolder()
}

/// The answer to a ``FetchRequest``, without the value.
package struct FetchAnswer: Sendable {
    package enum State: Hashable, Sendable {
        /// The value is fresh, and young enough for the caller.
        case fresh
        /// The value is stale, or too old for the caller, but may be served: another caller is refreshing it, or the
        /// origin backs off after a failure.
        case stale
        /// The caller must refresh the value, with this token. If there is a stored value, it may be served meanwhile.
        case lead(token: UInt64)
        /// There is no acceptable value. Another caller is fetching one, at most until this instant of the monotonic
        /// clock.
        case wait(until: Int64)
        /// Like `wait`, and the caller was added to the queue. The caller must ask again when its waiter is woken, and
        /// at this instant at the latest.
        case queued(until: Int64)
        /// The origin has no value, and is not asked again for `milliseconds`.
        case absent(milliseconds: Int64)
        /// The origin failed and backs off for `milliseconds`, and there is no acceptable value.
        case failed(milliseconds: Int64)
    }

    package let state: State
    /// The header of the entry; nil if the entry must not even be served as stale.
    package let header: RecordHeader?
    package let rules: FreshnessRules
}

extension FetchAnswer.State {
    var isQueued: Bool { if case .queued = self { true } else { false } }
}

/// The decision how to answer a ``FetchRequest``: with the stored value, with a lease, or by letting the caller wait.
/// It follows from the header of the stored entry, the freshness rules, the leases of the key's shard, and the time.
struct FetchDecision {
    let request: FetchRequest
    /// The header of the stored entry; nil if there is none, or it must not even be served as stale.
    let header: RecordHeader?
    let rules: FreshnessRules
    private let now: Int64
    private let freshness: Freshness

    /// - Parameter stored: the header of the stored entry, expired or not.
    init(_ request: FetchRequest, _ stored: RecordHeader?, _ rules: FreshnessRules, now: Int64) {
        (self.request, self.rules, self.now) = (request, rules, now)
        freshness = stored.map { rules.freshness($0, now: now) } ?? .gone
        header = freshness == .gone ? nil : stored
    }

    /// Returns the decision. If the caller is to refresh the value, also grants the lease.
    /// - Parameters:
    ///   - leases: the leases of the key's shard; nil if it has none yet.
    ///   - make: makes an empty table, if leases are needed.
    ///   - tags: returns the hashes of the entry's tags.
    /// - Throws: `tooManyLeases`.
    func state(
        _ leases: inout LeaseTable?, make: () -> LeaseTable, tags: () -> [UInt64]
    ) throws(LarderError) -> FetchAnswer.State {
        if request.isLookup { return freshness == .fresh ? .fresh : .stale }
        let isYoung = header.map { request.isYoung($0) } ?? false
        let isFresh = freshness == .fresh && isYoung
        if isFresh, let header,
            !rules.endsSoon(header, now: now, lastRefresh: leases?.lastDuration(request.key.hash) ?? 0)
        {
            return .fresh
        }
        var table = leases ?? make()
        leases = nil
        defer { leases = table }
        if isFresh { return table.grantEarly(request, tags: tags).map { .lead(token: $0) } ?? .fresh }
        return try table.answer(request, mayServe: isYoung) { header == nil ? [] : tags() }
    }
}

extension FreshnessRules {
    /// Whether a fresh entry expires soon: within twice the duration of its last refresh, or in the last twentieth of
    /// its lifetime. Always false in the first half of its lifetime.
    /// - Parameter lastRefresh: the duration of the entry's last refresh in milliseconds; 0 if unknown.
    @inline(__always)
    func endsSoon(_ header: RecordHeader, now: Int64, lastRefresh: @autoclosure () -> Int64) -> Bool {
        guard let deadline = deadline(header) else { return false }
        let life = deadline.subtractingClamped(header.storedAt)
        let left = deadline - now
        guard left <= life / 2 else { return false }
        if left <= life / 20 { return true }
        return left <= 2 * lastRefresh()
    }
}

extension LeaseTable {
    /// Grants the lease for a fresh entry that expires soon, so that one caller refreshes it early.
    /// - Returns: nil if no lease was granted.
    fileprivate mutating func grantEarly(_ request: FetchRequest, tags: () -> [UInt64]) -> UInt64? {
        let state = state(request.key)
        guard state.lease == nil, state.rest == nil else { return nil }
        // If the limit of leases is reached, no early refresh is started.
        return (try? grant(request.key, request.holder, request.leaseMilliseconds, tags: tags())) ?? nil
    }

    /// Answers a caller that does not accept the stored value as fresh.
    /// - Parameter tags: returns the hashes of the entry's tags, for a granted lease.
    fileprivate mutating func answer(
        _ request: FetchRequest, mayServe: Bool, tags: () -> [UInt64]
    ) throws(LarderError) -> FetchAnswer.State {
        let key = request.key
        var state = state(key)
        if let token = request.waiter?.token, state.lease?.token == token { return .lead(token: token) }
        if state.lease == nil, state.rest == nil, let first = state.waiters.longest {
            // The lease has expired. The caller that has waited longest gets the next one.
            if first === request.waiter { remove(first, key) } else { handOver(key) }
            state = self.state(key)
        }
        // Drop the reference to the queue, so that adding a waiter below does not copy it.
        state.waiters = WaiterQueue()
        switch state.rest {
        case .absent(let until): return .absent(milliseconds: until - time)
        case .failed(let until): return mayServe ? .stale : .failed(milliseconds: until - time)
        case nil: break
        }
        if let lease = state.lease {
            if mayServe, !(request.mayWait && request.waitsForFresh) { return .stale }
            guard request.mayWait, let waiter = request.waiter else { return .wait(until: lease.ends) }
            try add(waiter, key, leaseEnds: lease.ends)
            return .queued(until: lease.ends)
        }
        if mayServe, isFull { return .stale }
        let token = try grant(key, request.holder, request.leaseMilliseconds, tags: tags())
        guard let token else { return .wait(until: time) }
        return .lead(token: token)
    }

    /// Ends the wait of a caller that gets its answer. If the caller was granted a lease while it waited, and no longer
    /// needs the lease, the next waiter gets it.
    mutating func leaves(_ request: FetchRequest, _ state: FetchAnswer.State) {
        remove(request)
        guard let token = request.waiter?.token else { return }
        if case .lead = state { return }
        _ = release(request.key, token, .open)
    }

    /// Ends the caller's wait.
    mutating func remove(_ request: FetchRequest) {
        if let waiter = request.waiter { remove(waiter, request.key) }
    }
}
