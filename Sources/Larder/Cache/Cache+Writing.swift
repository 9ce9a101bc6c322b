import LarderEngine

extension Cache {
    // MARK: One entry

    /// Stores a model under a key, in place of what is there.
    /// - Parameters:
    ///   - value: the model.
    ///   - key: the entry's key.
    ///   - policy: how long this entry stays fresh. The default leaves it to the database's policy; ``EntryPolicy/keep``
    ///     lets it stay as long as the entry that it replaces would have.
    ///   - tags: words by which `removeAll(tagged:soft:)` removes this entry together with others: at most
    ///     16, each of 1 to 128 bytes of UTF-8 and without NUL; of equal ones, one counts. None is the default; with
    ///     ``EntryPolicy/keep`` that means those of the entry that it replaces. An entry without tags costs nothing more.
    ///   - durability: what the write has survived when the call returns. The default is the cache's.
    /// - Throws: ``LarderError/Code/encoding``, naming key and type, when the value cannot be encoded;
    ///   ``LarderError/Code/invalidArgument`` for a key of more than 65,536 bytes, a value of more than
    ///   536,870,912, an impossible policy or impossible tags;
    ///   ``LarderError/Code/commitFailed``, ``LarderError/Code/writesSuspended`` and ``LarderError/Code/io`` when it
    ///   did not reach the disk.
    public func set(
        _ value: some Encodable, forKey key: some CacheKey, policy: EntryPolicy = .database,
        tags: [String] = [], durability: Durability? = nil
    ) throws(LarderError) {
        _ = try perform(try source.write(value, key, policy, tags, durability))
    }

    /// Stores bytes as they are under a key, and replaces what is there. Parameters and errors as for
    /// `set(_:forKey:policy:tags:durability:)`.
    public func setBytes(
        _ bytes: [UInt8], forKey key: some CacheKey, policy: EntryPolicy = .database, tags: [String] = [],
        durability: Durability? = nil
    ) throws(LarderError) {
        _ = try perform(try source.write(bytes: bytes, key, policy, tags, durability))
    }

    /// Stores a model under a key that has no fresh entry. If several threads or processes do so at once, one succeeds.
    /// Parameters and errors as for `set(_:forKey:policy:tags:durability:)`.
    /// - Returns: whether it was stored.
    public func setIfAbsent(
        _ value: some Encodable, forKey key: some CacheKey, policy: EntryPolicy = .database,
        tags: [String] = [], durability: Durability? = nil
    ) throws(LarderError) -> Bool {
        try perform(try source.write(value, key, policy, tags, if: .absent, durability))
    }

    /// Stores a model if there is a fresh entry, whatever its value, and replaces it. Parameters and errors as for
    /// `set(_:forKey:policy:tags:durability:)`.
    /// - Returns: whether there was one; otherwise nothing was stored.
    public func setIfPresent(
        _ value: some Encodable, forKey key: some CacheKey, policy: EntryPolicy = .database,
        tags: [String] = [], durability: Durability? = nil
    ) throws(LarderError) -> Bool {
        try perform(try source.write(value, key, policy, tags, if: .present, durability))
    }

    /// Stores a model if there is a fresh entry that holds `former`: compare and swap.
    ///
    /// The comparison is of the bytes that the cache's codec makes of `former`. So it works for models whose encoding
    /// is always the same, and not for dictionaries.
    /// `update(_:forKey:policy:tags:attempts:durability:_:)` needs no comparison. Parameters
    /// and errors as for `set(_:forKey:policy:tags:durability:)`.
    /// - Returns: whether it was stored.
    public func replace<Value: Encodable>(
        _ former: Value, with value: Value, forKey key: some CacheKey, policy: EntryPolicy = .database,
        tags: [String] = [], durability: Durability? = nil
    ) throws(LarderError) -> Bool {
        try perform(try source.write(value, key, policy, tags, if: try source.holding(former, key), durability))
    }

    // MARK: Many entries

    /// Stores many models in one batch: all or none.
    ///
    /// Takes a dictionary, or pairs in the form `["a": 1, "b": 2] as KeyValuePairs`. Parameters and errors as for
    /// `set(_:forKey:policy:tags:durability:)`.
    public func set<Key: CacheKey, Value: Encodable>(
        _ pairs: some Sequence<(key: Key, value: Value)>, policy: EntryPolicy = .database,
        tags: [String] = [], durability: Durability? = nil
    ) throws(LarderError) {
        try apply(try batch(of: pairs, policy, tags), durability: durability)
    }

    func batch<Key: CacheKey, Value: Encodable>(
        of pairs: some Sequence<(key: Key, value: Value)>, _ policy: EntryPolicy, _ tags: [String]
    ) throws(LarderError) -> CacheBatch {
        let batch = makeBatch()
        for (key, value) in pairs { try batch.set(value, forKey: key, policy: policy, tags: tags) }
        return batch
    }

    /// Fills a batch and applies it: all of it happens or nothing does, even in a crash, and nobody sees a part of it.
    ///
    /// ```swift
    /// try cache.batch {
    ///     try $0.set(reader, forKey: "new")
    ///     $0.remove("old")
    /// }
    /// ```
    /// - Parameters:
    ///   - durability: nil for ``CacheOptions/durability``.
    ///   - body: fills the batch. When it throws, nothing is written.
    /// - Returns: what `body` returned.
    /// - Throws: ``LarderError``, and what `body` throws.
    @discardableResult
    public func batch<Result>(durability: Durability? = nil, _ body: (CacheBatch) throws -> Result) throws -> Result {
        let batch = makeBatch()
        let result = try body(batch)
        try apply(batch, durability: durability)
        return result
    }

    /// An empty batch with this cache's codec. Fill it, from several threads if you like, and apply it.
    public func makeBatch() -> CacheBatch { CacheBatch(codec: source.codec) }

    /// Applies all changes of a batch, in the order in which they were added, at one instant: all or none. The batch
    /// does not change and can be applied again.
    /// - Throws: as `set(_:forKey:policy:tags:durability:)`; then nothing of it happens.
    public func apply(_ batch: CacheBatch, durability: Durability? = nil) throws(LarderError) {
        let changes = try batch.changes()
        try source.whileOpen("batch") { (_) throws(LarderError) in
            if changes.isEmpty { return }
            let keys = changes.map(\.key)
            let loads = try prepare(changes)
            try source.database.commit(keys, loading: loads, durability: durability ?? self.durability) { update in
                for (index, change) in changes.enumerated() {
                    change.action.apply(&update, index, ahead: source.database.timeAhead)
                }
            }
        }
    }

    /// Lets memory know which of the keys to remove have an entry, because only those count. The other keys need not be
    /// read for that.
    /// - Returns: whether the batch must load its keys.
    private func prepare(_ changes: [EntryWrite]) throws(LarderError) -> Bool {
        if changes.contains(where: \.action.loads) { return true }
        let removed = changes.filter(\.action.isRemoval).map(\.key)
        if removed.isEmpty || !source.database.exists { return false }
        // Without memory nothing is known a moment later.
        if source.database.attachmentBytesMax == 0 { return true }
        try source.remember(removed)
        return false
    }
}
