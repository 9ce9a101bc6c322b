import LarderEngine

extension Cache {
    // MARK: One entry

    /// Stores a model under a key, in place of what is there.
    /// - Parameters:
    ///   - policy: how long this entry stays fresh. The default leaves it to the database's policy.
    ///   - durability: what the write has survived when the call returns. The default is the cache's.
    /// - Throws: ``LarderError/Code/encoding``, naming key and type, when the value cannot be encoded;
    ///   ``LarderError/Code/invalidArgument`` for a key of more than 65,536 bytes, a value of more than
    ///   536,870,912 or an impossible policy;
    ///   ``LarderError/Code/commitFailed``, ``LarderError/Code/writesSuspended`` and ``LarderError/Code/io`` when it
    ///   did not reach the disk.
    public func set(
        _ value: some Encodable, forKey key: some CacheKey, policy: EntryPolicy = .database,
        durability: Durability? = nil
    ) throws(LarderError) {
        let key = try source.key(key, "set")
        let (payload, codec) = try source.encode(value, key)
        try put(payload, codec, key, policy, durability)
    }

    /// Stores bytes as they are under a key, in place of what is there. Parameters and errors as for
    /// ``set(_:forKey:policy:durability:)``.
    public func setBytes(
        _ bytes: [UInt8], forKey key: some CacheKey, policy: EntryPolicy = .database, durability: Durability? = nil
    ) throws(LarderError) {
        let key = try source.key(key, "set")
        let payload = Payload.bytes(bytes)
        try payload.check(key, name)
        try put(payload, .raw, key, policy, durability)
    }

    private func put(
        _ payload: Payload, _ codec: Codec, _ key: Key, _ policy: EntryPolicy, _ durability: Durability?
    ) throws(LarderError) {
        let policy = try policy.checked(name, key)
        let durability = durability ?? self.durability
        try source.whileOpen("set") { (_) throws(LarderError) in
            let long = try stage(payload, key, policy, durability)
            try source.database.commit([key], loading: false, durability: durability) { update in
                let rule = policy.rule(now: update.now, ahead: source.database.timeAhead)
                payload.withBytes { update.put(0, payload: $0, long: long, rule: rule, codec: codec) }
            }
        }
    }

    /// Prepares a long value, so that no other thread waits while it is stored; nil for one that is not long.
    private func stage(
        _ payload: Payload, _ key: Key, _ policy: EntryPolicy.Checked, _ durability: Durability?
    ) throws(LarderError) -> LargeValue? {
        guard payload.count >= Database.largeValueBytesMin else { return nil }
        let rule = policy.rule(now: source.database.now(), ahead: source.database.timeAhead)
        var long: Result<LargeValue, LarderError>?
        payload.withBytes { bytes in
            long = Result { () throws(LarderError) in
                try source.database.stage(bytes, key, rule: rule, durability: durability)
            }
        }
        return try long?.get()
    }

    /// Gives an entry another deadline; its value and the time it was stored stay as they are.
    /// - Parameter policy: intervals count from now. ``EntryPolicy/database`` gives the entry back to the database's
    ///   policy, which counts from when it was stored.
    /// - Returns: whether there was a fresh entry.
    /// - Throws: ``LarderError/Code/invalidArgument`` for a key of more than 65,536 bytes or an impossible policy.
    @discardableResult
    public func setPolicy(_ policy: EntryPolicy, forKey key: some CacheKey, durability: Durability? = nil)
        throws(LarderError) -> Bool
    {
        let key = try source.key(key, "set policy")
        let policy = try policy.checked(name, key)
        return try source.whileOpen("set policy") { (_) throws(LarderError) in
            guard try source.hasFiles() else { return false }
            return try source.database.commit([key], loading: true, durability: durability ?? self.durability) {
                update in
                guard let record = update.current(0) else { return false }
                update.put(0, record.with(rule: policy.rule(now: update.now, ahead: source.database.timeAhead)))
                return true
            }
        }
    }

    // MARK: Many entries

    /// Stores many models in one batch: all or nothing.
    ///
    /// Takes a dictionary, or pairs in the manner of `["a": 1, "b": 2] as KeyValuePairs`. Parameters and errors as for
    /// ``set(_:forKey:policy:durability:)``.
    public func set<Key: CacheKey, Value: Encodable>(
        _ pairs: some Sequence<(key: Key, value: Value)>, policy: EntryPolicy = .database,
        durability: Durability? = nil
    ) throws(LarderError) {
        let batch = makeBatch()
        for (key, value) in pairs { try batch.set(value, forKey: key, policy: policy) }
        try apply(batch, durability: durability)
    }

    /// Fills a batch and applies it: all of it happens or nothing does, also across a crash, and nobody sees a part of it.
    ///
    /// ```swift
    /// try cache.batch {
    ///     try $0.set(reader, forKey: "new")
    ///     $0.remove("old")
    /// }
    /// ```
    /// - Parameter body: fills the batch. When it throws, nothing is written.
    /// - Returns: what `body` returned.
    @discardableResult
    public func batch<Result>(durability: Durability? = nil, _ body: (CacheBatch) throws -> Result) throws -> Result {
        let batch = makeBatch()
        let result = try body(batch)
        try apply(batch, durability: durability)
        return result
    }

    /// An empty batch that encodes as this cache does, to be filled, from several threads if need be, and applied.
    public func makeBatch() -> CacheBatch { CacheBatch(codec: source.codec) }

    /// Does everything in a batch, in the order in which it was added, at one instant: all of it or nothing. The batch
    /// stays as it is and can be applied again.
    /// - Throws: as ``set(_:forKey:policy:durability:)``; nothing of it happens then.
    public func apply(_ batch: CacheBatch, durability: Durability? = nil) throws(LarderError) {
        let changes = try batch.changes()
        try source.whileOpen("batch") { (_) throws(LarderError) in
            if changes.isEmpty { return }
            let keys = changes.map(\.key)
            try source.database.commit(keys, loading: false, durability: durability ?? self.durability) { update in
                for (index, change) in changes.enumerated() {
                    switch change.action {
                    case .remove: update.remove(index)
                    case .put(let payload, let codec, let policy):
                        let rule = policy.rule(now: update.now, ahead: source.database.timeAhead)
                        payload.withBytes { update.put(index, payload: $0, rule: rule, codec: codec) }
                    }
                }
            }
        }
    }
}
