// Several entries, and the whole database.

extension RemoteCache {
    // MARK: Reading

    /// Returns the models of the keys that have a fresh entry. Models that are not in the near cache are read in one
    /// round trip, at one instant. The near cache then keeps these models, as after ``value(forKey:)``.
    /// - Throws: `decode`, naming the type and the key, if a value is of another type.
    public func values<Key: CacheKey & Hashable>(forKeys keys: some Sequence<Key>) async throws(LarderClientError)
        -> [Key: Value]
    {
        var models: [Key: Value] = [:]
        var missing: [Key] = []
        var seen: Set<Key> = []
        for key in keys where seen.insert(key).inserted {
            switch near.map({ find($0, key) }) ?? .unknown {
            case .value(let value): models[key] = value
            case .absent: break
            case .unknown: missing.append(key)
            }
        }
        if seen.isEmpty { try store.nothing("MGET") }
        guard !missing.isEmpty else { return models }
        if let near, let tokens = near.begin(missing.map(\.keyBytes)) {
            return models.merging(try await valuesToKeep(missing, near, tokens)) { $1 }
        }
        let found = try await store.perform(.getAll(missing.map(\.keyBytes)))
        for (key, bytes) in zip(missing, found) { models[key] = try await decoded(bytes, key.keyBytes) }
        return models
    }

    /// Reads keys, and the remaining lifetimes of their entries, in one round trip.
    /// - Parameter tokens: one near cache token for each key. The call ends the use of every token.
    private func valuesToKeep<Key: CacheKey & Hashable>(
        _ keys: [Key], _ near: NearCache, _ tokens: [NearCache.Token]
    ) async throws(LarderClientError) -> [Key: Value] {
        let askedAt = near.clock()
        var used = 0
        defer { for token in tokens[used...] { near.giveUp(token) } }
        let bytes = keys.map(\.keyBytes)
        let (found, times) = try await store.perform(.getAll(bytes), bytes.map { .timeToLive($0) })
        var models: [Key: Value] = [:]
        for (index, key) in keys.enumerated() {
            let value = try await decoded(found[index], bytes[index])
            models[key] = value
            used = index + 1
            keep(
                value, times[index], near, tokens[index], askedAt: askedAt, valueBytes: found[index]?.count ?? 0)
        }
        return models
    }

    /// Returns one model for each key, in the order of the keys; `notFound` for a key without a fresh entry. Reads the
    /// models as ``values(forKeys:)`` does.
    public func values(forKeys keys: some Sequence<some CacheKey>, notFound: Value)
        async throws(LarderClientError) -> [Value]
    {
        let keys = keys.map(\.keyBytes)
        let found = try await values(forKeys: keys)
        return keys.map { found[$0] ?? notFound }
    }

    /// Returns the number of fresh entries in the database. If the database was changed since the last count, the
    /// daemon reads all entries to count them.
    public func count() async throws(LarderClientError) -> Int { Int(clamping: try await store.perform(.count)) }

    /// Returns the keys of the database's fresh entries, each once, in no particular order. Takes one round trip for
    /// every few hundred keys.
    ///
    /// Includes every key that exists during the whole call; keys stored or removed meanwhile may be missing. Omits
    /// keys that are not UTF-8. ``entries(matching:)`` and ``allKeys(matching:)`` return the bytes of such keys too.
    /// - Parameter pattern: a glob pattern: `*` matches any characters, `?` one character, `[a-c]` one of a, b and c;
    ///   nil for all keys.
    public func keys(matching pattern: String? = nil) async throws(LarderClientError) -> [String] {
        try await ScanStep.texts(matching: pattern) { (request) async throws(LarderClientError) in
            try await store.perform(request)
        }
    }

    // MARK: Writing

    /// Stores many models in one step: all or none.
    ///
    /// Accepts a dictionary, or pairs such as `["a": 1, "b": 2] as KeyValuePairs`. If a key occurs twice, the later
    /// value is stored. All entries get the same policy and the same tags.
    public func set<Key: CacheKey>(
        _ pairs: some Sequence<(key: Key, value: Value)>, policy: EntryPolicy = .database, tags: [String] = []
    ) async throws(LarderClientError) {
        var batch = makeBatch()
        for (key, value) in pairs { try batch.set(value, forKey: key, policy: policy, tags: tags) }
        try await apply(batch)
    }

    /// Removes several entries in one step: all or none. Without keys, nothing is sent.
    /// - Returns: the number of fresh entries that were removed.
    @discardableResult
    public func remove(_ keys: some Sequence<some CacheKey>) async throws(LarderClientError) -> Int {
        let bytes = keys.map(\.keyBytes)
        guard !bytes.isEmpty else {
            try store.nothing("DEL")
            return 0
        }
        return Int(clamping: try await store.perform(.remove(bytes)))
    }

    /// Calls `body` to fill a batch, and applies all changes of the batch in one step, also for other clients. If
    /// `body` throws, nothing is changed. For an empty batch nothing is sent.
    ///
    /// ```swift
    /// try await readers.batch {
    ///     try $0.set(reader, forKey: "new", policy: .high)
    ///     $0.remove("old")
    /// }
    /// ```
    /// - Returns: the result of `body`.
    @discardableResult
    public func batch<Result>(_ body: (inout RemoteBatch<Value>) throws -> Result) async throws -> Result {
        var batch = makeBatch()
        let result = try body(&batch)
        try await apply(batch)
        return result
    }

    /// Creates an empty batch with this cache's codec, for ``apply(_:)``.
    public func makeBatch() -> RemoteBatch<Value> { RemoteBatch(codec: codec) }

    /// Applies the changes of a batch, in the order in which they were added.
    public func apply(_ batch: RemoteBatch<Value>) async throws(LarderClientError) {
        if batch.isEmpty { try store.nothing("batch") }
        guard !batch.isEmpty else { return }
        switch try BatchPlan(batch.changes, for: try await store.server()) {
        case .command(let request): try await store.perform(request)
        case .transaction(let commands):
            defer { store.drop(batch.changes) }
            try BatchPlan.check(try await store.transaction(commands), to: batch.changes, "batch", in: store, name)
        }
    }

    // MARK: The database

    /// Returns the database's policy, which applies to entries without a policy of their own.
    public func policy() async throws(LarderClientError) -> UpdatePolicy { try await store.perform(.updatePolicy) }

    /// Changes the database's policy. This also affects existing entries that follow the policy, but does not revive
    /// expired ones.
    /// - Parameters:
    ///   - policy: how long entries without a policy of their own stay fresh.
    ///   - grace: how long entries without a grace of their own are kept after their deadline, for calls that fetch;
    ///     nil keeps the current grace.
    ///   - percent: the jitter, 0 to 100. When an entry that follows the policy is stored, its lifetime is shortened at
    ///     random by up to this percentage. Nil keeps the current jitter.
    /// - Throws: `invalidArgument` for an invalid grace or jitter.
    public func setPolicy(_ policy: UpdatePolicy, grace: Duration? = nil, jitter percent: Int? = nil)
        async throws(LarderClientError)
    {
        try await store.perform(try .setPolicy(policy, grace: grace, jitter: percent, name))
    }

    /// Empties the database, at a cost that does not depend on its size. The policy stays.
    @discardableResult
    public func removeAll() async throws(LarderClientError) -> PurgeReport { try await store.perform(.purge()) }

    /// Removes all entries with a tag, at a cost that does not depend on their number. When the call returns, the
    /// removal is durable, and no read returns such an entry any more. Disk space is reclaimed in the background. If a
    /// fetch of a key with the tag is running, its result is not stored, because it may be out of date. The near cache
    /// is emptied. Needs larderd.
    /// - Parameters:
    ///   - tag: as for ``set(_:forKey:policy:tags:)``. The removal is also recorded if no entry has the tag.
    ///   - soft: whether to make the entries stale instead of removing them. Calls that fetch may still return the
    ///     stale entries within their grace, while the new value is being fetched. Entries without a grace are removed.
    /// - Throws: `invalidArgument` for an invalid tag, or more than 1024 tags; nothing is sent in that case.
    public func removeAll(tagged tag: String, soft: Bool = false) async throws(LarderClientError) {
        try await removeAll(tagged: [tag], soft: soft)
    }

    /// Like the call above, for all entries with at least one of several tags, in one step. Without tags, nothing is
    /// sent.
    public func removeAll(tagged tags: some Sequence<String>, soft: Bool = false) async throws(LarderClientError) {
        let words = try CheckedTags.purged(tags.map { Array($0.utf8) }, soft: soft, name)
        if words.isEmpty { try store.nothing("PURGE") }
        guard !words.isEmpty else { return }
        try await store.perform(.purge(tags: words))
    }

    /// Removes the entries whose keys begin with `prefix`.
    @discardableResult
    public func remove(prefix: some CacheKey) async throws(LarderClientError) -> PurgeReport {
        try await store.perform(.purge(wordList("PREFIX") + [prefix.keyBytes]))
    }

    /// Removes expired entries that the daemon has not removed yet.
    @discardableResult
    public func removeExpired() async throws(LarderClientError) -> PurgeReport {
        try await store.perform(.purgeExpired)
    }
}
