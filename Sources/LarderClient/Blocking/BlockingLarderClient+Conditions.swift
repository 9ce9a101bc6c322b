// Writes that depend on what is stored, counters, lifetimes.

extension BlockingLarderClient {
    /// Stores a model under a key that has no fresh entry. Of several that do so at once, one succeeds.
    /// - Parameter policy: how long this entry stays fresh. The default leaves it to the database's policy.
    /// - Returns: whether it was stored.
    public func setIfAbsent(_ value: some Encodable, forKey key: String, policy: EntryPolicy = .database)
        throws(LarderClientError) -> Bool
    {
        let key = Array(key.utf8)
        let policy = try policy.checked("SET", key: key)
        let (bytes, codec) = try RemoteCoding.encode(value, codec, key: key)
        return try perform {
            .set(bytes, forKey: key, policy: policy, codec: codec, server: $0, if: wordList("NX"))
        }
    }

    /// Adds to a whole number in one step; a key without a fresh entry counts as 0. The entry keeps its rule.
    /// - Returns: the sum.
    /// - Throws: `server` when something else is stored there, or the sum is too large.
    @discardableResult
    public func increment(_ key: String, by step: Int64 = 1) throws(LarderClientError) -> Int64 {
        try perform(.increment(Array(key.utf8), by: step))
    }

    /// Gives an entry a rule of its own, counted from now; its value and the time it was stored stay as they are.
    /// - Returns: whether there was a fresh entry.
    @discardableResult
    public func setPolicy(_ policy: UpdatePolicy, forKey key: String) throws(LarderClientError) -> Bool {
        let key = Array(key.utf8)
        if let interval = policy.intervalMilliseconds {
            return try perform(.expire(key, afterMilliseconds: interval))
        }
        let (persist, contains) = (Request.persist(key), Request.contains(key))
        let replies = try pipeline([persist.words, contains.words])
        _ = try persist.result(of: replies[0])
        return try contains.result(of: replies[1])
    }
}
