import LarderEngine

extension Cache {
    // MARK: One entry

    /// Stores a model under a key, and replaces an existing entry.
    /// - Parameters:
    ///   - value: the model. A nil optional is stored too, as `null`: use `remove(_:durability:)` to remove an entry.
    ///   - key: the entry's key.
    ///   - policy: how long this entry stays fresh. By default it follows the database's policy; with
    ///     ``EntryPolicy/keep`` it keeps the rule of the entry that it replaces.
    ///   - tags: labels for removing groups of entries with `removeAll(tagged:soft:)`: at most 16 different ones, each
    ///     of 1 to 128 bytes of UTF-8 without NUL. If there are none, an entry with ``EntryPolicy/keep`` keeps the tags
    ///     of the entry that it replaces, and any other entry has no tags. Entries without tags have no extra cost.
    ///   - durability: which failures the acknowledged write survives; nil for ``CacheOptions/durability``.
    /// - Throws: ``LarderError/Code/encoding``, naming key and type, if the value cannot be encoded;
    ///   ``LarderError/Code/invalidArgument`` for a key of more than 65,536 bytes, a value of more than 536,870,912
    ///   bytes, an invalid policy or invalid tags; ``LarderError/Code/commitFailed``,
    ///   ``LarderError/Code/writesSuspended`` and ``LarderError/Code/io`` if the write did not reach the disk.
    public func set(
        _ value: some Encodable, forKey key: some CacheKey, policy: EntryPolicy = .database,
        tags: [String] = [], durability: Durability? = nil
    ) throws(LarderError) {
        _ = try perform(try source.write(value, key, policy, tags, durability))
    }

    /// Stores bytes unchanged under a key, and replaces an existing entry. Parameters and errors as for
    /// `set(_:forKey:policy:tags:durability:)`.
    public func setBytes(
        _ bytes: [UInt8], forKey key: some CacheKey, policy: EntryPolicy = .database, tags: [String] = [],
        durability: Durability? = nil
    ) throws(LarderError) {
        _ = try perform(try source.write(bytes: bytes, key, policy, tags, durability))
    }

    /// Stores a model under a key if the key has no fresh entry. Of several concurrent callers, exactly one succeeds.
    /// Parameters and errors as for `set(_:forKey:policy:tags:durability:)`.
    /// - Returns: whether the model was stored.
    public func setIfAbsent(
        _ value: some Encodable, forKey key: some CacheKey, policy: EntryPolicy = .database,
        tags: [String] = [], durability: Durability? = nil
    ) throws(LarderError) -> Bool {
        try perform(try source.write(value, key, policy, tags, if: .absent, durability))
    }

    /// Replaces a fresh entry, whatever its value. Parameters and errors as for
    /// `set(_:forKey:policy:tags:durability:)`.
    /// - Returns: whether the model was stored; false if there was no fresh entry.
    public func setIfPresent(
        _ value: some Encodable, forKey key: some CacheKey, policy: EntryPolicy = .database,
        tags: [String] = [], durability: Durability? = nil
    ) throws(LarderError) -> Bool {
        try perform(try source.write(value, key, policy, tags, if: .present, durability))
    }

    /// Replaces a fresh entry if it holds `previous` (compare and swap).
    ///
    /// Compares the stored bytes with `previous`, encoded by the cache's codec. Use it only for models that are always
    /// encoded the same way, not for dictionaries. `update(_:forKey:policy:tags:attempts:durability:_:)` needs no
    /// comparison. Parameters and errors as for `set(_:forKey:policy:tags:durability:)`.
    /// - Returns: whether the model was stored.
    public func replace<Value: Encodable>(
        _ previous: Value, with value: Value, forKey key: some CacheKey, policy: EntryPolicy = .database,
        tags: [String] = [], durability: Durability? = nil
    ) throws(LarderError) -> Bool {
        try perform(try source.write(value, key, policy, tags, if: try source.holding(previous, key), durability))
    }

    // MARK: Many entries

    /// Stores many models in one batch: all or none.
    ///
    /// Accepts a dictionary, or pairs such as `["a": 1, "b": 2] as KeyValuePairs`. Parameters and errors as for
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

    /// Creates a batch, passes it to `body`, and then applies all its changes atomically. Neither a crash nor a
    /// concurrent read can separate the changes.
    ///
    /// ```swift
    /// try cache.batch {
    ///     try $0.set(reader, forKey: "new")
    ///     $0.remove("old")
    /// }
    /// ```
    /// - Parameters:
    ///   - durability: nil for ``CacheOptions/durability``.
    ///   - body: fills the batch. If it throws, nothing is written.
    /// - Returns: the result of `body`.
    /// - Throws: ``LarderError``, and errors of `body`.
    @discardableResult
    public func batch<Result>(durability: Durability? = nil, _ body: (CacheBatch) throws -> Result) throws -> Result {
        let batch = makeBatch()
        let result = try body(batch)
        try apply(batch, durability: durability)
        return result
    }

    /// Creates an empty batch with this cache's codec. Several threads may fill it.
    public func makeBatch() -> CacheBatch { CacheBatch(codec: source.codec) }

    /// Applies all changes of a batch atomically, in the order in which they were added. The batch is unchanged, and
    /// can be applied again.
    /// - Throws: the same errors as `set(_:forKey:policy:tags:durability:)`; nothing is changed in that case.
    public func apply(_ batch: CacheBatch, durability: Durability? = nil) throws(LarderError) {
        let changes = try batch.changes()
        try source.whileOpen("batch") { (_) throws(LarderError) in
            if changes.isEmpty { return }
            let loads = try prepare(changes)
            let (keys, ahead) = (changes.map(\.key), source.database.timeAhead)
            try source.database.commit(
                keys, loading: loads ? .records : .none, durability: durability ?? self.durability
            ) { update in
                // The elements of an array would be copied, with all their references.
                changes.withUnsafeBufferPointer { changes in
                    for index in changes.indices { changes[index].apply(&update, index, ahead: ahead) }
                }
            }
            guard RunningUpdate.current != nil else { return }
            for key in keys { RunningUpdate.noteWrite(of: key.stored, in: source.database) }
        }
    }

    /// Loads the entries to remove into the entry cache in memory, because the statistics count a removal only if the
    /// key has an entry.
    /// - Returns: whether the batch must load the previous entries of its keys itself.
    private func prepare(_ changes: [EntryWrite]) throws(LarderError) -> Bool {
        var removed: [Key] = []
        let keepsPrevious = changes.withUnsafeBufferPointer { changes in
            for index in changes.indices {
                if changes[index].keepsPrevious { return true }
                if changes[index].isRemoval { removed.append(changes[index].key) }
            }
            return false
        }
        if keepsPrevious { return true }
        if removed.isEmpty || !source.database.exists { return false }
        // Without memory for entries, the read entries could not be kept there. So the batch must load them itself.
        if source.database.attachmentBytesMax == 0 { return true }
        try source.remember(removed)
        return false
    }
}
