// Writes that depend on the stored value, lifetimes of entries, counters.

extension RemoteCache {
    // MARK: Conditions

    /// Stores a model under a key that has no fresh entry. If several clients do so at once, one succeeds.
    /// - Parameters:
    ///   - value: the model.
    ///   - key: the entry's key.
    ///   - policy: how long this entry stays fresh. The default leaves it to the database's policy.
    ///   - tags: as for ``set(_:forKey:policy:tags:)``.
    /// - Returns: whether it was stored.
    public func setIfAbsent(
        _ value: Value, forKey key: some CacheKey, policy: EntryPolicy = .database, tags: [String] = []
    ) async throws(LarderClientError) -> Bool {
        let key = key.keyBytes
        return try await put(try encoded(value, key), key, policy, tags, if: wordList("NX"))
    }

    /// Stores a model if there is a fresh entry, whatever its value, and replaces it.
    /// - Parameters:
    ///   - value: the model.
    ///   - key: the entry's key.
    ///   - policy: how long this entry stays fresh. The default leaves it to the database's policy.
    ///   - tags: as for ``set(_:forKey:policy:tags:)``.
    /// - Returns: whether there was one; otherwise nothing was stored.
    public func setIfPresent(
        _ value: Value, forKey key: some CacheKey, policy: EntryPolicy = .database, tags: [String] = []
    ) async throws(LarderClientError) -> Bool {
        let key = key.keyBytes
        return try await put(try encoded(value, key), key, policy, tags, if: wordList("XX"))
    }

    /// Stores a model if there is a fresh entry that holds `former`: compare and swap.
    ///
    /// The comparison is of the bytes that the cache's codec makes of `former`. So it works for models whose encoding
    /// is always the same, and not for dictionaries. ``update(forKey:policy:tags:attempts:_:)`` needs no comparison. Needs
    /// larderd, or Redis from 8.4 on.
    /// - Parameters:
    ///   - former: what the entry must hold.
    ///   - value: the model.
    ///   - key: the entry's key.
    ///   - policy: how long this entry stays fresh. The default leaves it to the database's policy.
    ///   - tags: as for ``set(_:forKey:policy:tags:)``.
    /// - Returns: whether it was stored.
    public func replace(
        _ former: Value, with value: Value, forKey key: some CacheKey, policy: EntryPolicy = .database,
        tags: [String] = []
    ) async throws(LarderClientError) -> Bool {
        let key = key.keyBytes
        let condition = wordList("IFEQ") + [try encoded(former, key).bytes]
        return try await put(try encoded(value, key), key, policy, tags, if: condition)
    }

    /// Removes a fresh entry if it holds `value`, compared like in ``replace(_:with:forKey:policy:tags:)``: a value that
    /// somebody else has stored meanwhile stays. Needs larderd, or Redis from 8.4 on.
    /// - Returns: whether it was removed.
    @discardableResult
    public func remove(_ key: some CacheKey, ifEqual value: Value) async throws(LarderClientError) -> Bool {
        let key = key.keyBytes
        let encoded = try encoded(value, key).bytes
        return try await changing([key]) { () async throws(LarderClientError) in
            try await store.perform(.remove(key, ifEqual: encoded))
        }
    }

    /// - Returns: whether the condition held, and it was stored.
    func put(
        _ value: (bytes: [UInt8], codec: Codec), _ key: [UInt8], _ policy: EntryPolicy, _ tags: [String],
        if condition: [[UInt8]]
    ) async throws(LarderClientError) -> Bool {
        let policy = try policy.checked("SET", name, key: key)
        let tags = try CheckedTags(tags, "SET", name, key: key)
        let server = try await store.server()
        try tags.check(for: server, "SET", name, key: key)
        return try await changing([key]) { () async throws(LarderClientError) in
            try await store.perform(
                .set(
                    value.bytes, forKey: key, policy: policy, tags: tags, codec: value.codec, server: server,
                    if: condition))
        }
    }

    /// Reads an entry, lets `body` change it, and stores the result. If somebody else has changed the value meanwhile,
    /// `body` runs again with the new one. Takes two round trips for each run.
    ///
    /// ```swift
    /// try await baskets.update(forKey: "ana") { basket in
    ///     basket = basket ?? Basket()
    ///     basket?.items.append(item)
    /// }
    /// ```
    /// Needs larderd, or Redis from 8.4 on.
    /// - Parameters:
    ///   - key: the entry's key.
    ///   - policy: how long the result stays fresh. The default, ``EntryPolicy/keep``, keeps the entry's rule: a deadline of
    ///     its own stays; an entry that follows the database's policy counts as stored now, and its time begins anew.
    ///   - tags: as for ``set(_:forKey:policy:tags:)``. Without any, the entry keeps those that it has.
    ///   - attempts: how often `body` may run, at least 1; for less, `invalidArgument` is thrown. The default, nil,
    ///     stands for 64 times, and for more until ``ClientOptions/timeoutMilliseconds`` have passed. Runs are
    ///     separated by random rests that grow, up to half a second, so that many tasks that change one key all get
    ///     their turn.
    ///   - body: gets the model, or nil when there is no fresh entry, or one that is no such model, which
    ///     ``ClientOptions/onUndecodable`` reports. Leaves the model to store, or nil to remove the entry. May run several
    ///     times, so its side effects must allow that. When it throws, nothing is written.
    /// - Returns: what the last run of `body` returned.
    /// - Throws: `conflict` when somebody else changed the value in every attempt, and what `body` throws.
    @discardableResult
    public func update<Result>(
        forKey key: some CacheKey, policy: EntryPolicy = .keep, tags: [String] = [],
        attempts: Int? = nil, _ body: (inout Value?) async throws -> Result
    ) async throws -> Result {
        let key = key.keyBytes
        try LarderClientError.checkAttempts(attempts, "update")
        var runs = UpdateAttempts(most: attempts, limitMilliseconds: core.options.updateMilliseconds)
        while true {
            let former = try await store.perform(.get(key))
            var model = try await decodable(former, key)
            let result = try await body(&model)
            if try await exchange(former, for: model, key, policy, tags) { return result }
            guard let rest = runs.rest() else { throw LarderClientError.updateConflict(key, runs).about(name) }
            try await Self.rest(rest, "update")
        }
    }

    /// - Returns: whether the value was still `former`.
    private func exchange(
        _ former: [UInt8]?, for model: Value?, _ key: [UInt8], _ policy: EntryPolicy, _ tags: [String]
    ) async throws(LarderClientError) -> Bool {
        if let model {
            let server = try await store.server()
            let condition = former.map { CheckedTags.kept(policy, tags, server) + wordList("IFEQ") + [$0] }
            return try await put(try encoded(model, key), key, policy, tags, if: condition ?? wordList("NX"))
        }
        guard let former else { return true }
        return try await changing([key]) { () async throws(LarderClientError) in
            try await store.perform(.remove(key, ifEqual: former))
        }
    }

    // MARK: Lifetimes

    /// Removes an entry and returns its value, in one step.
    /// - Returns: nil when there was no fresh entry.
    /// - Throws: `decode` when the value is of another type; the entry is removed nevertheless.
    public func removeValue(forKey key: some CacheKey) async throws(LarderClientError) -> Value? {
        let key = key.keyBytes
        let bytes = try await changing([key]) { () async throws(LarderClientError) in
            try await store.perform(.take(key))
        }
        return try await decoded(bytes, key, "GETDEL")
    }

    /// Reads the model of a key and gives its entry another lifetime in the same step: for sessions that end when they
    /// are not used. Policies as for ``touch(_:policy:)``. Never from the near cache.
    /// - Returns: nil when there is no fresh entry.
    /// - Throws: `decode` when the value is of another type; the entry gets its new lifetime nevertheless.
    public func value(forKey key: some CacheKey, renewing policy: EntryPolicy) async throws(LarderClientError)
        -> Value?
    {
        let key = key.keyBytes
        let lifetime = try LifetimeChange.words(renewing: policy, name, key)
        let bytes = try await changing([key]) { () async throws(LarderClientError) in
            try await store.perform(.get(key, renewing: lifetime))
        }
        return try await decoded(bytes, key, "GETEX")
    }

    /// Gives an entry another lifetime; its value and its time of storing do not change.
    /// - Parameters:
    ///   - key: the entry's key.
    ///   - policy: intervals count from now; an instant in the past removes the entry; ``EntryPolicy/keep`` changes
    ///     nothing.
    /// - Returns: whether there was a fresh entry.
    /// - Throws: `invalidArgument` for ``EntryPolicy/database``, because the daemon has no command for it.
    @discardableResult
    public func touch(_ key: some CacheKey, policy: EntryPolicy) async throws(LarderClientError) -> Bool {
        let key = key.keyBytes
        let change = try LifetimeChange(policy, name, key)
        return try await changing([key]) { () async throws(LarderClientError) in
            do throws(LarderClientError) {
                return try change.result(try await store.commands(change.requests.map(\.words), rules: .shared))
            } catch {
                throw error.about(name)
            }
        }
    }
}

extension RemoteCache where Value == Int {
    /// Adds to an integer in one step; a key without a fresh entry counts as 0. The entry keeps its rule and its tags.
    /// - Returns: the sum.
    /// - Throws: `server` when the value is not an integer, or the sum is not an `Int`.
    @discardableResult
    public func increment(_ key: some CacheKey, by step: Int = 1) async throws(LarderClientError) -> Int {
        let key = key.keyBytes
        return try await changing([key]) { () async throws(LarderClientError) in
            Int(clamping: try await store.perform(.increment(key, by: Int64(step))))
        }
    }
}

extension RemoteCache where Value: FixedWidthInteger {
    /// Adds to an integer; a key without a fresh entry counts as 0. The entry keeps its rule and its tags.
    ///
    /// Numbers of 64 bits with a sign are added by the daemon. Other types take two round trips, and more if others
    /// change the entry meanwhile, like in ``update(forKey:policy:tags:attempts:_:)``; they need larderd, or Redis from 8.4
    /// on.
    /// - Returns: the sum.
    /// - Throws: `decode` when the value is not an integer of this type, `invalidArgument` when the sum is none,
    ///   `conflict` when others changed the entry all the time; `server` for 64 bits.
    @discardableResult
    public func increment(_ key: some CacheKey, by step: Value = 1) async throws(LarderClientError) -> Value {
        let increment = WholeIncrement(key: key.keyBytes, step: step)
        let key = increment.key
        if let step = increment.stepOfDaemon {
            return try await changing([key]) { () async throws(LarderClientError) in
                Value(clamping: try await store.perform(.increment(key, by: step)))
            }
        }
        var runs = UpdateAttempts(most: nil, limitMilliseconds: core.options.updateMilliseconds)
        while true {
            let former = try await store.perform(.get(key))
            let sum = try increment.sum(former)
            if try await exchange(former, for: (sum.bytes, .json), key) { return sum.number }
            guard let rest = runs.rest() else { throw LarderClientError.updateConflict(key, runs).about(name) }
            try await Self.rest(rest, "increment")
        }
    }

    private func exchange(_ former: [UInt8]?, for value: (bytes: [UInt8], codec: Codec), _ key: [UInt8])
        async throws(LarderClientError) -> Bool
    {
        try await put(value, key, .keep, [], if: former.map { wordList("IFEQ") + [$0] } ?? wordList("NX"))
    }
}

extension RemoteCache where Value == Double {
    /// Adds to a number in one step; a key without a fresh entry counts as 0. The entry keeps its rule and its tags.
    /// - Returns: the sum.
    /// - Throws: `server` when the value is not a number, or the sum is not finite; then the entry is unchanged. Redis
    ///   stores a sum that no `Double` can hold: then `decode`.
    @discardableResult
    public func increment(_ key: some CacheKey, by step: Double) async throws(LarderClientError) -> Double {
        let key = key.keyBytes
        return try await changing([key]) { () async throws(LarderClientError) in
            try await store.perform(.increment(key, by: step))
        }
    }
}
