import LarderEngine

// Values that go to the origin.

extension OriginCache {
    /// Stores a model at the origin, and keeps it here as ``writing`` says. Returns when the origin has it.
    ///
    /// It is kept only if nobody else wrote the key meanwhile and the origin said nothing of a change, apart from this write:
    /// else the next read asks.
    /// - Parameters:
    ///   - value: the model.
    ///   - key: the entry's key.
    ///   - lifetime: how long it lives at the origin, a millisecond at least; nil if it does not end.
    ///   - policy: how long it stays fresh here; never longer than at the origin.
    ///   - tags: those of the entry here, as for `Cache.set(_:forKey:policy:tags:durability:)`.
    /// - Throws: what the origin throws. If it may have the value all the same (``CacheOrigin/mayHaveChanged(_:after:)``), the
    ///   next read asks; else what is here stays. Nor is it known with
    ///   ``OriginFailure/timedOut(_:milliseconds:)``, when ``OriginCacheLimits/call`` is over: the value may still get
    ///   there, and as long as the origin's function has not ended, nothing is kept for the key and each read asks.
    ///   ``OriginFailure/resting(_:reason:)`` if the origin is left alone, and ``LarderError`` for a value, key, lifetime,
    ///   policy or tags that are impossible, and after ``close()``: then the origin was not asked, and what is here stays.
    public func set<Value: Codable & Sendable>(
        _ value: Value, forKey key: some CacheKey, lifetime: Duration? = nil, policy: EntryPolicy = .database,
        tags: [String] = []
    ) async throws {
        let source = cache.source
        if source.isClosed { throw source.closedError("set") }
        if let lifetime, lifetime < .milliseconds(1) {
            throw LarderError(
                .invalidArgument, "a lifetime at the origin is a millisecond at least, this one is \(lifetime)",
                operation: "set", database: cache.name)
        }
        let stored = try source.key(key, "set")
        let (payload, codec) = try source.encode(value, stored)
        _ = try source.put(payload, codec, stored, policy, self.tags(tags))
        let writing = OriginWriting(payload.bytes, codec: codec, lifetime: lifetime)
        let bytes = Array(stored.bytes)
        try await settle(CollectionOfOne(bytes))
        let sentAt = source.database.leaseTime()
        let (acknowledgement, ticket) = try await write([bytes]) { [origin] in
            try await origin.write(writing, forKey: bytes)
        } confirmedAt: {
            $0.confirmedAt
        }
        defer { trust.endCall() }
        let life = OriginLifetime(acknowledgement.lifetime, since: sentAt)
        guard self.writing == .through, acknowledgement.isWatched || !trust.isTold, let ticket,
            let policy = life.policy(policy, source.database)
        else { return await forget([bytes]) }
        let action = try source.put(payload, codec, stored, policy, self.tags(tags))
        guard await keep(action, stored, bytes, ticket) else { return await forget([bytes]) }
    }

    /// Removes an entry at the origin and here. Returns when it is gone at both.
    /// - Throws: as `set(_:forKey:lifetime:policy:tags:)`.
    public func remove(_ key: some CacheKey) async throws { try await remove(CollectionOfOne(key)) }

    /// Removes several entries at the origin and here, like `remove(_:)` of one.
    public func remove(_ keys: some Sequence<some CacheKey>) async throws {
        let keys = try Array(Set(keys.map { Array(try cache.source.key($0, "remove").bytes) }))
        if cache.source.isClosed { throw cache.source.closedError("remove") }
        guard !keys.isEmpty else { return }
        _ = try await write(keys) { [origin] in
            try await origin.remove(keys)
        } confirmedAt: { _ in
            nil
        }
        trust.endCall()
        await forget(keys)
    }

    /// Runs a write or a removal at the origin. What is here for the keys is forgotten if it fails and may have been done.
    /// - Returns: what the origin said, and what a value that was written is as good as: see `endWrite`. The caller ends the
    ///   call of ``trust``.
    private func write<Value: Sendable>(
        _ keys: [[UInt8]], _ body: @escaping @Sendable () async throws -> Value,
        confirmedAt: (Value) -> OriginMoment?
    ) async throws -> (Value, InvalidationEpoch.Ticket?) {
        let pass = try limiter.enter()
        let began = trust.beginWrite(keys)
        let end = await limiter.run(pass, body) { [weak self] in
            // Only now it is known that nothing more is written.
            guard let self else { return }
            _ = trust.endWrite(keys, began)
            trust.endCall()
            await forget(keys)
        }
        switch end {
        case .answered(.success(let value)): return (value, trust.endWrite(keys, began, confirmedAt(value)))
        case .answered(.failure(let error)):
            _ = trust.endWrite(keys, began)
            trust.endCall()
            if origin.mayHaveChanged(keys, after: error) { await forget(keys) }
            throw error
        case .timedOut:
            await forget(keys)
            throw limiter.timeout
        case .closed:
            _ = trust.changed(keys)
            throw cache.source.closedError("set")
        }
    }

    /// Keeps a value that the origin has acknowledged.
    /// - Returns: false if it may no longer be what the origin has, or cannot be stored.
    private func keep(
        _ action: EntryWrite.Action, _ key: Key, _ bytes: [UInt8], _ ticket: InvalidationEpoch.Ticket
    ) async -> Bool {
        let (cache, trust) = (cache, trust)
        let isKept = try? await BlockingWork.run { () throws(LarderError) -> Bool in
            try cache.source.whileOpen("set") { (_) throws(LarderError) in
                // What was told until now, this write included, concerns the former entry: the new one must not become
                // stale for it later.
                if !trust.isSettled(CollectionOfOne(bytes)) { try trust.settle(cache.source.database) }
                return try cache.source.database.commit([key], loading: action.loads, durability: cache.durability) {
                    update in
                    // With the key's lock held: what is said later makes the entry stale.
                    guard trust.mayStore(ticket, bytes) else { return false }
                    action.apply(&update, 0, ahead: cache.source.database.timeAhead)
                    return true
                }
            }
        }
        return isKept ?? false
    }

    /// Removes what is here. If that fails, the keys stay noted as changed, and reads of them fail until it is done.
    private func forget(_ keys: [[UInt8]]) async {
        _ = trust.changed(keys)
        let (cache, trust) = (cache, trust)
        try? await BlockingWork.run { () throws(LarderError) in
            for key in keys { _ = try cache.take(Key(key), nil) }
            try trust.settle(cache.source.database)
        }
    }
}
