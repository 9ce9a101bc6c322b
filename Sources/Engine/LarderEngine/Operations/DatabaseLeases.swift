/// The leases of a database's keys. Each shard has those of its keys.
package struct DatabaseLeases {
    private let database: Database

    fileprivate init(_ database: Database) { self.database = database }

    /// The current time of the monotonic clock used for leases, in milliseconds.
    package var time: Int64 { database.context.time.monotonic() }

    /// Answers a caller that fetches a value. Called with the lock of the key's shard held.
    /// - Parameters:
    ///   - header: the header of the stored entry, expired or not.
    ///   - tags: returns the hashes of the entry's tags.
    func answer(
        _ request: FetchRequest, _ header: RecordHeader?, _ now: Int64, tags: () -> [UInt64]
    ) throws(LarderError) -> FetchAnswer {
        let shard = database.shards[request.key]
        let decision = FetchDecision(request, header, database.applied.rules, now: now)
        let state = try decision.state(
            &shard.leases, make: { LeaseTable(database.context.leases, database) }, tags: tags)
        if state == .fresh {
            shard.counters.hits += 1
        } else {
            shard.noteMiss(decision.header, request.key.hash, now: now)
            if case .stale = state { database.context.leases.staleServed.add() }
        }
        if request.waiter != nil, !state.isQueued { shard.leases?.leaves(request, state) }
        return FetchAnswer(state: state, header: decision.header, rules: decision.rules)
    }

    /// Whether memory has a fresh entry of the key that expires so soon that it should be fetched again.
    package func isRefreshDue(_ key: Key, now: Int64) -> Bool {
        var (isDue, ticket) = (false, CommitTicket.none)
        key.withBytes { bytes in
            _ = database.readInMemory(bytes, now: now, ticket: &ticket) { entry in
                isDue = entry.endsSoon
                return false
            }
        }
        return isDue
    }

    /// Ends the leases of the keys, because the values being fetched may be outdated.
    package func end(_ keys: [Key]) {
        for key in keys {
            withLeases(key) { leases in key.withBytes { leases?.changed($0, .outdated, isRemoval: true) } }
        }
    }

    /// Ends the leases of keys with the prefix, because the values being fetched may be outdated.
    package func end(prefix: [UInt8]) {
        for shard in database.shards.all { shard.lock.withLock { shard.leases?.changed(prefix: prefix) } }
    }

    /// Ends a lease without a change of the entry.
    /// - Returns: whether the lease was valid.
    @discardableResult
    package func release(_ key: Key, _ token: UInt64, _ release: LeaseRelease) -> Bool {
        withLeases(key) { $0?.release(key, token, release) ?? false }
    }

    /// Grants a new lease to the next waiter of each key whose lease has expired. Called often.
    func dropEnded() {
        guard database.context.leases.leases.read() > 0 else { return }
        for shard in database.shards.all { shard.lock.withLock { shard.leases?.dropEnded() } }
    }

    /// Ends a caller's wait. A lease that was already granted to the caller stays valid. Call it without locks.
    package func stopWaiting(_ request: FetchRequest) { withLeases(request.key) { $0?.remove(request) } }

    @discardableResult
    fileprivate func withLeases<Result>(_ key: Key, _ body: (inout LeaseTable?) -> Result) -> Result {
        let shard = database.shards[key]
        return shard.lock.withLock { body(&shard.leases) }
    }
}

extension Database: LeaseOwner {
    package var leases: DatabaseLeases { DatabaseLeases(self) }

    var lastSequence: UInt64 { pipeline.everythingApplied.sequence }

    func holderEnded(_ token: UInt64, _ key: Key) { leases.withLeases(key) { $0?.holderEnded(token, key) } }
}
