// Writes that depend on what is stored, lifetimes of entries, counters.

extension RemoteCache {
    // MARK: Conditions

    /// Stores a model under a key that has no fresh entry. Of several that do so at once, one succeeds.
    /// - Parameter policy: how long this entry stays fresh. The default leaves it to the database's policy.
    /// - Returns: whether it was stored.
    public func setIfAbsent(_ value: Value, forKey key: some CacheKey, policy: EntryPolicy = .database)
        async throws(LarderClientError) -> Bool
    {
        try await put(value, key.keyBytes, policy, if: wordList("NX"))
    }

    /// Stores a model in place of a fresh entry, whatever that holds.
    /// - Parameter policy: how long this entry stays fresh. The default leaves it to the database's policy.
    /// - Returns: whether there was one; otherwise nothing was stored.
    public func setIfPresent(_ value: Value, forKey key: some CacheKey, policy: EntryPolicy = .database)
        async throws(LarderClientError) -> Bool
    {
        try await put(value, key.keyBytes, policy, if: wordList("XX"))
    }

    /// Stores a model in place of a fresh entry that holds `former`, and otherwise nothing: compare and swap.
    ///
    /// What is compared are the bytes that the cache's codec makes of `former`. That fits models whose encoding is always
    /// the same; a dictionary's is not. The server is larderd, or Redis from 8.4 on.
    /// - Parameter policy: how long this entry stays fresh. The default leaves it to the database's policy.
    /// - Returns: whether it was stored.
    public func replace(_ former: Value, with value: Value, forKey key: some CacheKey, policy: EntryPolicy = .database)
        async throws(LarderClientError) -> Bool
    {
        let key = key.keyBytes
        return try await put(
            value, key, policy, if: wordList("IFEQ") + [try RemoteCoding.encode(former, codec, key: key).bytes])
    }

    /// Removes a fresh entry that holds `value`, compared as by ``replace(_:with:forKey:policy:)``: what somebody else stored
    /// meanwhile stays. The server is larderd, or Redis from 8.4 on.
    /// - Returns: whether it was removed.
    @discardableResult
    public func remove(_ key: some CacheKey, ifEqual value: Value) async throws(LarderClientError) -> Bool {
        let key = key.keyBytes
        let encoded = try RemoteCoding.encode(value, codec, key: key).bytes
        return try await changing([key]) { () async throws(LarderClientError) in
            try await store.perform(.remove(key, ifEqual: encoded))
        }
    }

    private func put(_ value: Value, _ key: [UInt8], _ policy: EntryPolicy, if condition: [[UInt8]])
        async throws(LarderClientError) -> Bool
    {
        let policy = try policy.checked("SET", key: key)
        let (encoded, codec) = try RemoteCoding.encode(value, codec, key: key)
        let server = try await store.server()
        return try await changing([key]) { () async throws(LarderClientError) in
            try await store.perform(
                .set(encoded, forKey: key, policy: policy, codec: codec, server: server, if: condition))
        }
    }

    // MARK: Lifetimes

    /// Removes an entry and gives what it held, in one step.
    /// - Returns: nil when there was no fresh entry.
    /// - Throws: `decode` when something else is stored there; it is removed all the same.
    public func removeValue(forKey key: some CacheKey) async throws(LarderClientError) -> Value? {
        let key = key.keyBytes
        let bytes = try await changing([key]) { () async throws(LarderClientError) in
            try await store.perform(.take(key))
        }
        return try await decoded(bytes, key, "GETDEL")
    }

    /// The model stored under a key, whose entry then has a rule of its own, counted from now: for sessions that end when they
    /// are not used. Never from the near cache.
    /// - Returns: nil when there is no fresh entry.
    public func value(forKey key: some CacheKey, renewing policy: UpdatePolicy) async throws(LarderClientError)
        -> Value?
    {
        let key = key.keyBytes
        let bytes = try await changing([key]) { () async throws(LarderClientError) in
            try await store.perform(.get(key, renewing: policy))
        }
        return try await decoded(bytes, key, "GETEX")
    }

    /// Gives an entry a rule of its own, counted from now; its value and the time it was stored stay as they are.
    /// - Returns: whether there was a fresh entry.
    @discardableResult
    public func setPolicy(_ policy: UpdatePolicy, forKey key: some CacheKey) async throws(LarderClientError) -> Bool {
        let key = key.keyBytes
        return try await changing([key]) { () async throws(LarderClientError) in
            if let interval = policy.intervalMilliseconds {
                return try await store.perform(.expire(key, afterMilliseconds: interval))
            }
            let (persist, contains) = (Request.persist(key), Request.contains(key))
            let replies = try await store.commands([persist.words, contains.words], rules: .shared)
            _ = try persist.result(of: replies[0])
            return try contains.result(of: replies[1])
        }
    }

    /// Has an entry stay fresh until an instant, in milliseconds since 1970; one in the past removes it.
    /// - Returns: whether there was a fresh entry.
    /// - Throws: `invalidArgument` for an instant after the year 5138, before anything is sent.
    @discardableResult
    public func setDeadline(millisecondsSince1970 instant: Int64, forKey key: some CacheKey)
        async throws(LarderClientError) -> Bool
    {
        let key = key.keyBytes
        _ = try EntryPolicy.until(millisecondsSince1970: instant).checked("PEXPIREAT", key: key)
        return try await changing([key]) { () async throws(LarderClientError) in
            try await store.perform(.expire(key, atMilliseconds: instant))
        }
    }
}

extension RemoteCache where Value == Int {
    /// Adds to a number in one step; a key without a fresh entry counts as 0. The entry keeps its rule.
    /// - Returns: the sum.
    /// - Throws: `server` when something else is stored there, or the sum is not an `Int`.
    @discardableResult
    public func increment(_ key: some CacheKey, by step: Int = 1) async throws(LarderClientError) -> Int {
        let key = key.keyBytes
        return try await changing([key]) { () async throws(LarderClientError) in
            Int(clamping: try await store.perform(.increment(key, by: Int64(step))))
        }
    }
}

extension RemoteCache where Value == Double {
    /// Adds to a number in one step; a key without a fresh entry counts as 0. The entry keeps its rule.
    /// - Returns: the sum.
    /// - Throws: `server` when something else is stored there, or the sum is not finite.
    @discardableResult
    public func increment(_ key: some CacheKey, by step: Double) async throws(LarderClientError) -> Double {
        let key = key.keyBytes
        return try await changing([key]) { () async throws(LarderClientError) in
            try await store.perform(.increment(key, by: step))
        }
    }
}
