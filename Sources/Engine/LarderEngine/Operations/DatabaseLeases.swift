import LarderVocabulary

/// The leases of a database's keys. Each shard has the leases of its own keys.
package struct DatabaseLeases {
    fileprivate let database: Database

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
            &shard.leases, make: makeTable, tags: tags)
        if state == .fresh {
            shard.counters.hits += 1
        } else {
            shard.noteMiss(decision.header, request.key.hash, now: now)
            if case .stale = state { database.context.leases.staleServed.add() }
        }
        if request.waiter != nil, !state.isQueued { shard.leases?.leaves(request, state) }
        return FetchAnswer(state: state, header: decision.header, rules: decision.rules)
    }

    private func makeTable() -> LeaseTable {
        LeaseTable(database.context.leases, database) { [pipeline = database.pipeline] in
            pipeline.everythingApplied.sequence
        } holderEnded: { database, token, key in
            (database as? Database)?.leases.withLeases(key) { $0?.holderEnded(token, key) }
        }
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
    package func release(_ key: Key, _ token: UInt64, _ release: FetchRelease) -> Bool {
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
        database.shards.withLocked(key.hash) { body(&$0.leases) }
    }
}

extension Database {
    package var leases: DatabaseLeases { DatabaseLeases(database: self) }

    /// Answers a caller that requests a value: with a fresh or stale value, with a lease to fetch the value from its
    /// origin, or with the information that another caller has the lease.
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
            let answer = try leases.answer(request, update.storedHeader(0), now) { update.tagHashes(0) }
            if answer.header != nil { update.touch(0) }
            body(answer, answer.header == nil ? nil : payload)
            return true
        }
        return done ?? false
    }
}
