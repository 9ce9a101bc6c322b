/// The request of a caller that fetches a value from its origin if there is no fresh one.
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
    /// The caller's waiter; nil if it does not wait.
    package var waiter: LeaseWaiter?
    /// Whether the caller waits if there is no value to serve.
    package var mayWait = false
    /// Whether the caller waits even if there is a stale value that may be served.
    package var waitsForFresh = false
    /// Whether the caller only looks up the stored value, fresh or stale, and refreshes nothing.
    fileprivate var isLookup = false

    package init(key: Key, holder: LeaseHolder, askedAt: Int64) {
        self.key = key
        self.holder = holder
        self.askedAt = askedAt
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
        /// The caller must refresh the value, with this token. A stored value, if there is one, may be served until
        /// then.
        case lead(token: UInt64)
        /// There is no acceptable value, and another caller is refreshing it, at most until this instant of the
        /// monotonic clock.
        case wait(until: Int64)
        /// Like `wait`, and the caller was added to the queue. It must ask again when its waiter is woken, or at this
        /// instant at the latest.
        case queued(until: Int64)
        /// The origin has no value, and is not asked again for `milliseconds`.
        case absent(milliseconds: Int64)
        /// The origin failed and backs off for `milliseconds`, and there is no acceptable value.
        case failed(milliseconds: Int64)
    }

    package let state: State
    /// The header of the entry; nil if the entry may not even be served stale.
    package let header: RecordHeader?
    package let rules: FreshnessRules
}

extension Database {
    /// Answers a caller that fetches a value from its origin if there is no fresh one. The answer is a fresh or stale
    /// value, a lease, or the information that another caller has the lease.
    ///
    /// Only one caller at a time gets the lease of a key. Shortly before an entry expires, one caller gets the lease
    /// early, while the others are served. Only this function grants leases.
    /// - Parameters:
    ///   - bytesMax: with `memoryOnly`, nothing is done for entries with payloads of this many bytes or more.
    ///   - ticket: raised to cover the commits that the reply has to wait for.
    ///   - body: called once, with the payload if there is a value, fresh or stale. A shard's lock may be held: copy
    ///     the data that you need, and do not call the engine.
    /// - Returns: whether `body` was called; false only with `memoryOnly`, if the entry is long or the disk is needed.
    /// - Throws: `tooManyLeases`, and the errors of reads.
    package func fetch(
        _ request: FetchRequest, now: Int64, _ access: Access, below bytesMax: Int = .max,
        ticket: inout CommitTicket, _ body: (FetchAnswer, UnsafeRawBufferPointer?) -> Void
    ) throws(LarderError) -> Bool {
        try ForkGuard.check("fetch")
        let update = Update.take()
        defer { update.giveBack() }
        update.add([request.key], areDistinct: true)
        update.prepare(self, now: now, .records)
        let done = try Executor.run(update.alone, access) {
            (sequence, _) throws(LarderError) -> Bool? in
            let payload = update.storedPayload(0)
            if access == .memoryOnly, let payload, payload.count >= bytesMax { return nil }
            ticket = max(ticket, CommitTicket(sequence: sequence))
            let answer = try answer(request, update.storedHeader(0), now) { update.tagHashes(0) }
            if answer.header != nil { update.touch(0) }
            body(answer, answer.header == nil ? nil : payload)
            return true
        }
        return done ?? false
    }

    /// Reads the fresh entry of a key, if it is in memory and need not be refreshed yet. This is the most common case
    /// of ``fetch(_:now:_:below:ticket:_:)``, without a copy of the key.
    /// - Parameters:
    ///   - maxAge: see ``FetchRequest/maxAge``. The time of the request is now.
    ///   - bytesMax: nothing is done for entries with records of this many bytes or more.
    ///   - ticket: raised to cover the commits that the reply has to wait for.
    ///   - body: receives the storage time, the deadline, and the payload. Called with a shard's lock held.
    /// - Returns: whether there is such an entry; if not, nothing was done.
    package func fetchFresh(
        _ key: UnsafeRawBufferPointer, maxAge: Int64?, now: Int64, below bytesMax: Int, ticket: inout CommitTicket,
        _ body: (Int64, Int64?, UnsafeRawBufferPointer) -> Void
    ) -> Bool {
        if ForkGuard.isForked { return false }
        let hash = Key.hash(key)
        return shards.with(hash) { shard in
            shard.lock.withLock {
                guard case .open = applied.presence, let entry = shard.table.find(key, hash: hash),
                    let record = entry.record, record.count < bytesMax,
                    let header = try? RecordHeader(parsing: record, applied.rules.purges)
                else { return false }
                guard FetchRequest.isYoung(header.storedAt, maxAge, now) else { return false }
                let deadline = applied.rules.deadline(header)
                if let deadline {
                    guard applied.rules.freshness(header, now: now) == .fresh,
                        !endsSoon(header.storedAt, deadline, shard, hash, now)
                    else { return false }
                }
                ticket = max(ticket, CommitTicket(sequence: max(undecided(entry), applied.sequence)))
                shard.counters.hits += 1
                shard.table.touch(entry)
                body(header.storedAt, deadline, header.payload(of: record))
                return true
            }
        }
    }

    // MARK: The decision

    /// Decides how to answer a request. Called with the lock of the key's shard held.
    /// - Parameter tags: returns the hashes of the entry's tags.
    private func answer(
        _ request: FetchRequest, _ header: RecordHeader?, _ now: Int64, tags: () -> [UInt64]
    ) throws(LarderError) -> FetchAnswer {
        let shard = shards[request.key]
        let rules = applied.rules
        let freshness = header.map { rules.freshness($0, now: now) } ?? .gone
        let header = freshness == .gone ? nil : header
        let isYoung = header.map { request.isYoung($0) }
        let state: FetchAnswer.State
        if request.isLookup {
            state = freshness == .fresh ? .fresh : .stale
        } else if freshness == .fresh, isYoung ?? false, let header {
            state = grantsEarlyLease(request, header, rules, shard, now, tags).map { .lead(token: $0) } ?? .fresh
        } else {
            state = try refresh(request, shard, mayServe: isYoung ?? false) { header == nil ? [] : tags() }
        }
        if state == .fresh {
            shard.counters.hits += 1
        } else {
            shard.noteMiss(header, request.key.hash, now: now)
            if case .stale = state { context.leases.staleServed.add() }
        }
        if request.waiter != nil, !state.isQueued { shard.leases?.leaves(request, state) }
        return FetchAnswer(state: state, header: header, rules: rules)
    }

    /// Whether a fresh entry expires soon: within twice the duration of its last refresh, or in the last twentieth of
    /// its lifetime. Always false in the first half of its lifetime. Called with the lock of the key's shard held.
    func endsSoon(
        _ header: RecordHeader, _ rules: FreshnessRules, _ shard: Shard, _ hash: Int, _ now: Int64
    ) -> Bool {
        guard let deadline = rules.deadline(header) else { return false }
        return endsSoon(header.storedAt, deadline, shard, hash, now)
    }

    @inline(__always)
    private func endsSoon(_ storedAt: Int64, _ deadline: Int64, _ shard: Shard, _ hash: Int, _ now: Int64) -> Bool {
        let life = deadline.subtractingClamped(storedAt)
        let left = deadline - now
        guard left <= life / 2 else { return false }
        if left <= life / 20 { return true }
        return left <= 2 * (shard.leases?.lastDuration(hash) ?? 0)
    }

    /// Whether memory has a fresh entry of the key that expires so soon that it should be fetched again.
    package func endsSoon(_ key: Key, now: Int64) -> Bool {
        let shard = shards[key]
        return key.withBytes { bytes in
            shard.lock.withLock {
                guard case .open = applied.presence, let record = shard.table.find(bytes, hash: key.hash)?.record,
                    let header = try? RecordHeader(parsing: record, applied.rules.purges),
                    applied.rules.freshness(header, now: now) == .fresh
                else { return false }
                return endsSoon(header, applied.rules, shard, key.hash, now)
            }
        }
    }

    /// Grants the lease for a fresh entry if it expires soon. Returns nil if no lease was granted.
    private func grantsEarlyLease(
        _ request: FetchRequest, _ header: RecordHeader, _ rules: FreshnessRules, _ shard: Shard, _ now: Int64,
        _ tags: () -> [UInt64]
    ) -> UInt64? {
        guard endsSoon(header, rules, shard, request.key.hash, now) else { return nil }
        return withLeases(shard) { leases in
            let state = leases.state(request.key)
            guard state.lease == nil, state.rest == nil else { return nil }
            // If the limit of leases is reached, no early refresh is started.
            return
                (try? leases.grant(
                    request.key, request.holder, request.leaseMilliseconds, tags: tags())) ?? nil
        }
    }

    /// Answers a caller that does not accept the stored entry as fresh.
    /// - Parameter mayServe: whether the entry may be served anyway.
    private func refresh(
        _ request: FetchRequest, _ shard: Shard, mayServe: Bool, _ tags: () -> [UInt64]
    ) throws(LarderError) -> FetchAnswer.State {
        let result = withLeases(shard) { leases in
            Result { () throws(LarderError) in try leases.answer(request, mayServe: mayServe, tags: tags) }
        }
        return try result.get()
    }

    private func withLeases<Result>(_ shard: Shard, _ body: (inout LeaseTable) -> Result) -> Result {
        var leases = shard.leases ?? LeaseTable(context.leases, self)
        shard.leases = nil
        defer { shard.leases = leases }
        return body(&leases)
    }

    /// Ends all leases of the keys, because the values being fetched may be outdated.
    package func endLeases(_ keys: [Key]) {
        for key in keys {
            let shard = shards[key]
            shard.lock.withLock {
                key.withBytes { shard.leases?.changed($0, .outdated, isRemoval: true) }
            }
        }
    }

    /// Ends all leases of keys with the prefix, because the values being fetched may be outdated.
    package func endLeases(prefix: [UInt8]) {
        for shard in shards.all { shard.lock.withLock { shard.leases?.changed(prefix: prefix) } }
    }

    /// Grants a new lease to the next waiter of each key whose lease has expired. Called often.
    func dropEndedLeases() {
        guard context.leases.leases.read() > 0 else { return }
        for shard in shards.all { shard.lock.withLock { shard.leases?.dropEnded() } }
    }

    /// Ends a caller's wait. A lease that was already granted to the caller stays valid. Call it without locks.
    package func stopWaiting(_ request: FetchRequest) {
        let shard = shards[request.key]
        shard.lock.withLock { shard.leases?.remove(request) }
    }

    /// The current time of the monotonic clock used for leases, in milliseconds.
    package func leaseTime() -> Int64 { context.time.monotonic() }

    // MARK: The end of a lease

    /// Ends a lease without a change of the entry.
    /// - Returns: whether the lease was valid.
    @discardableResult
    package func release(_ key: Key, _ token: UInt64, _ release: LeaseRelease) -> Bool {
        let shard = shards[key]
        return shard.lock.withLock { shard.leases?.release(key, token, release) ?? false }
    }

    /// Logs that a refetch in the background failed, because there is no caller to which the error could be returned.
    package func reportFailedRefresh(_ key: Key, _ error: any Error) {
        context.report(.warning, "database '\(name)': refetching '\(key)' in the background failed: \(error)")
    }

    /// Logs that an entry is treated as missing because it cannot be decoded.
    /// - Parameter reason: must not contain the value.
    package func reportUndecodable(_ key: Key, _ reason: String) {
        context.report(.warning, "database '\(name)': '\(key)' is treated as missing: \(reason)")
    }

    /// Logs that an origin has begun to back off, or is asked again.
    package func reportOrigin(isAsked: Bool, _ message: String) {
        context.report(isAsked ? .info : .warning, "database '\(name)': \(message)")
    }

    /// The outcome of releasing a lease.
    package enum ReleaseResult: Sendable {
        case done
        /// The lease is no longer valid. Nothing was done.
        case lost
        /// There was no value to renew; the lease was released.
        case nothingStored
    }
}

extension FetchAnswer.State {
    var isQueued: Bool { if case .queued = self { true } else { false } }
}

extension LeaseTable {
    /// Answers a caller that does not accept the stored value as fresh.
    /// - Parameter tags: returns the hashes of the entry's tags, for a granted lease.
    mutating func answer(
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

    /// Ends the wait of a caller that gets its answer. If the caller was granted a lease while it waited, and does not
    /// need it any more, the lease goes to the next waiter.
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

extension Database: LeaseOwner {
    var lastSequence: UInt64 { pipeline.everythingApplied.sequence }

    func holderEnded(_ token: UInt64, _ key: Key) {
        let shard = shards[key]
        shard.lock.withLock { shard.leases?.holderEnded(token, key) }
    }
}
