import LarderEngine

// Writes to the origin.

extension OriginCache {
    /// Stores a model at the origin, and caches it as ``writing`` specifies. Returns after the origin has stored it.
    ///
    /// The model is not cached if, in the meantime, another caller wrote the key or the origin reported another change
    /// of the key. In these cases the next read asks the origin.
    /// - Parameters:
    ///   - value: the model.
    ///   - key: the entry's key.
    ///   - lifetime: the lifetime at the origin, at least a millisecond; nil if the entry does not expire.
    ///   - policy: how long the entry is fresh in the cache; never longer than at the origin.
    ///   - tags: the entry's tags in the cache, as for `Cache.set(_:forKey:policy:tags:durability:)`.
    /// - Throws: errors of the origin. If the origin may still have stored the value
    ///   (``CacheOrigin/mayHaveChanged(_:after:)``), the next read asks the origin; otherwise the cached entry stays.
    ///   ``OriginFailure/timedOut(_:milliseconds:)`` after ``OriginCacheLimits/call``: the value may still be stored.
    ///   Until the origin's function has returned, each read of the key asks the origin, and nothing is cached.
    ///   ``OriginFailure/resting(_:reason:)`` while the circuit breaker is open, and ``LarderError`` for an invalid
    ///   value, key, lifetime, policy or tag, and after ``close()``. In these cases the origin was not called, and the
    ///   cached entry stays.
    public func set<Value: Codable & Sendable>(
        _ value: Value, forKey key: some CacheKey, lifetime: Duration? = nil, policy: EntryPolicy = .database,
        tags: [String] = []
    ) async throws {
        let source = cache.source
        if source.isClosed { throw source.closedError("set") }
        if let lifetime, lifetime < .milliseconds(1) {
            throw LarderError(
                .invalidArgument, "a lifetime at the origin must be at least 1 millisecond, not \(lifetime)",
                operation: "set", database: cache.name)
        }
        let stored = try source.key(key, "set")
        let (payload, codec) = try source.codec.payload(of: value, stored, cache.name)
        _ = try EntryWrite(payload, codec, stored, policy, self.tags(tags), cache.name)
        let writing = OriginWriting(payload.bytes, codec: codec, lifetime: lifetime)
        let bytes = Array(stored.bytes)
        try await applyNotifications(for: CollectionOfOne(bytes))
        let sentAt = source.database.leases.time
        let (acknowledgement, ticket) = try await write([bytes]) { [origin] in
            try await origin.write(writing, forKey: bytes)
        } confirmedAt: {
            $0.confirmedAt
        }
        defer { trust.endCall() }
        guard self.writing == .through, acknowledgement.isWatched || !trust.isNotified, let ticket,
            let policy = self.policy(policy, lifetime: acknowledgement.lifetime, since: sentAt)
        else { return await forget([bytes]) }
        let write = try EntryWrite(payload, codec, stored, policy, self.tags(tags), cache.name)
        guard await keep(write, bytes, ticket) else { return await forget([bytes]) }
    }

    /// Removes an entry from the origin and from the cache, and returns when it has been removed from both.
    /// - Throws: the same errors as `set(_:forKey:lifetime:policy:tags:)`.
    public func remove(_ key: some CacheKey) async throws { try await remove(CollectionOfOne(key)) }

    /// Removes several entries from the origin and from the cache, like `remove(_:)` with a single key.
    public func remove(_ keys: some Sequence<some CacheKey>) async throws {
        let keys = try Array(Set(keys.map { Array(try cache.source.key($0, "remove").bytes) }))
        if cache.source.isClosed { throw cache.source.closedError("remove") }
        guard !keys.isEmpty else { return }
        _ = try await write(keys) { [origin] in
            try await origin.remove(keys)
        } confirmedAt: { _ in
            nil
        }
        defer { trust.endCall() }
        await forget(keys)
    }

    /// Runs a write or a removal at the origin. If the call fails but may have had an effect, removes the cached
    /// entries of the keys.
    /// - Returns: the origin's reply, and a ticket for storing the written value: see `InvalidationEpoch.endWrite`. The
    ///   caller must then call `trust.endCall()`.
    private func write<Value: Sendable>(
        _ keys: [[UInt8]], _ body: @escaping @Sendable () async throws -> Value,
        confirmedAt: (Value) -> OriginMoment?
    ) async throws -> (Value, InvalidationEpoch.Ticket?) {
        let number = try limiter.enter()
        let began = trust.beginWrite(keys)
        let end = await limiter.run(number, body) { [weak self] in
            // The origin's function has returned, after the time limit. Only now is it certain to change nothing more.
            guard let self else { return }
            defer { trust.endCall() }
            _ = trust.endWrite(keys, began)
            await forget(keys)
        }
        switch end {
        case .answered(.success(let value)): return (value, trust.endWrite(keys, began, confirmedAt(value)))
        case .answered(.failure(let error)):
            defer { trust.endCall() }
            _ = trust.endWrite(keys, began)
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

    /// Caches a value that the origin has acknowledged.
    /// - Returns: false if the origin may have a newer value, or the value cannot be stored.
    private func keep(_ write: EntryWrite, _ bytes: [UInt8], _ ticket: InvalidationEpoch.Ticket) async -> Bool {
        let (cache, trust) = (cache, trust)
        let isKept = try? await BlockingWork.run { () throws(LarderError) -> Bool in
            try cache.source.whileOpen("set") { (_) throws(LarderError) in
                // Notifications received so far, including the one for this write, refer to the previous entry. Handle
                // them now, so that they do not make the new entry stale later.
                if !trust.isSettled(CollectionOfOne(bytes)) { try trust.applyNotifications(to: cache.source.database) }
                return try cache.source.database.commit(
                    [write.key], loading: write.loading, durability: cache.durability
                ) { update in
                    // The commit holds the key's lock, so notifications that arrive from now on make the new entry
                    // stale.
                    guard trust.mayStore(ticket, bytes) else { return false }
                    return write.apply(&update, 0, ahead: cache.source.database.timeAhead)
                }
            }
        }
        return isKept ?? false
    }

    /// Removes the cached entries of these keys. If that fails, reads of the keys fail until ``InvalidationEpoch`` has
    /// made the entries stale.
    private func forget(_ keys: [[UInt8]]) async {
        _ = trust.changed(keys)
        let (cache, trust) = (cache, trust)
        try? await BlockingWork.run { () throws(LarderError) in
            for key in keys { _ = try cache.take(Key(key), nil) }
            try trust.applyNotifications(to: cache.source.database)
        }
    }
}
