// Writes that depend on what is stored, counters, lifetimes.

extension BlockingLarderClient {
    // MARK: Conditions

    /// Stores a model under a key that has no fresh entry. Of several that do so at once, one succeeds.
    /// - Parameters:
    ///   - value: the model.
    ///   - key: the entry's key.
    ///   - policy: how long this entry stays fresh. The default leaves it to the database's policy.
    /// - Returns: whether it was stored.
    public func setIfAbsent(_ value: some Encodable, forKey key: some CacheKey, policy: EntryPolicy = .database)
        throws(LarderClientError) -> Bool
    {
        let key = key.keyBytes
        return try put(try RemoteCoding.encode(value, codec, key: key), key, policy, if: wordList("NX"))
    }

    /// Stores a model in place of a fresh entry, whatever that holds.
    /// - Parameters:
    ///   - value: the model.
    ///   - key: the entry's key.
    ///   - policy: how long this entry stays fresh. The default leaves it to the database's policy.
    /// - Returns: whether there was one; otherwise nothing was stored.
    public func setIfPresent(_ value: some Encodable, forKey key: some CacheKey, policy: EntryPolicy = .database)
        throws(LarderClientError) -> Bool
    {
        let key = key.keyBytes
        return try put(try RemoteCoding.encode(value, codec, key: key), key, policy, if: wordList("XX"))
    }

    /// Stores a model in place of a fresh entry that holds `former`, and otherwise nothing: compare and swap. What is
    /// compared are the bytes that the client's codec makes of `former`. The server is larderd, or Redis from 8.4 on.
    /// - Parameters:
    ///   - former: what the entry must hold.
    ///   - value: the model.
    ///   - key: the entry's key.
    ///   - policy: how long this entry stays fresh. The default leaves it to the database's policy.
    /// - Returns: whether it was stored.
    public func replace<Value: Encodable>(
        _ former: Value, with value: Value, forKey key: some CacheKey, policy: EntryPolicy = .database
    ) throws(LarderClientError) -> Bool {
        let key = key.keyBytes
        let condition = wordList("IFEQ") + [try RemoteCoding.encode(former, codec, key: key).bytes]
        return try put(try RemoteCoding.encode(value, codec, key: key), key, policy, if: condition)
    }

    /// Removes a fresh entry that holds `value`, compared as by ``replace(_:with:forKey:policy:)``: what somebody else stored
    /// meanwhile stays. The server is larderd, or Redis from 8.4 on.
    /// - Returns: whether it was removed.
    @discardableResult
    public func remove<Value: Encodable>(_ key: some CacheKey, ifEqual value: Value) throws(LarderClientError) -> Bool {
        let key = key.keyBytes
        return try perform(.remove(key, ifEqual: try RemoteCoding.encode(value, codec, key: key).bytes))
    }

    /// Reads an entry, has `body` change it, and stores what that left, unless somebody else changed the value in between:
    /// then `body` is run again with what is there now. Takes two round trips for each run; `body` may use the client.
    ///
    /// The server is larderd, or Redis from 8.4 on.
    /// - Parameters:
    ///   - type: the model's type.
    ///   - key: the entry's key.
    ///   - policy: how long what is stored stays fresh. The default, ``EntryPolicy/keep``, leaves the entry the rule it has.
    ///   - attempts: how often `body` may be run, from 1 on; for less, `invalidArgument` is thrown. The default is 16.
    ///   - body: gets the model, nil when there is no fresh entry, and leaves the one to be stored, or nil to remove the
    ///     entry. May run several times, so what it does besides must bear that. When it throws, nothing is written.
    /// - Returns: what the last run of `body` returned.
    /// - Throws: `conflict` when others were quicker every time, and what `body` throws.
    @discardableResult
    public func update<Value: Codable, Result>(
        _ type: Value.Type = Value.self, forKey key: some CacheKey, policy: EntryPolicy = .keep, attempts: Int = 16,
        _ body: (inout Value?) throws -> Result
    ) throws -> Result {
        let key = key.keyBytes
        try LarderClientError.checkAttempts(attempts, "update")
        for _ in 0..<attempts {
            let former = try bytes(forKey: key)
            var model = try former.map { try decoded(type, $0, key) }
            let result = try body(&model)
            if try exchange(former, for: model, key, policy) { return result }
        }
        throw LarderClientError.updateConflict(key, attempts)
    }

    /// - Returns: whether what was there is still `former`.
    private func exchange<Value: Encodable>(
        _ former: [UInt8]?, for model: Value?, _ key: [UInt8], _ policy: EntryPolicy
    ) throws(LarderClientError) -> Bool {
        if let model {
            let condition = former.map { wordList("IFEQ") + [$0] } ?? wordList("NX")
            return try put(try RemoteCoding.encode(model, codec, key: key), key, policy, if: condition)
        }
        guard let former else { return true }
        return try perform(.remove(key, ifEqual: former))
    }

    private func put(
        _ value: (bytes: [UInt8], codec: Codec), _ key: [UInt8], _ policy: EntryPolicy, if condition: [[UInt8]]
    ) throws(LarderClientError) -> Bool {
        let policy = try policy.checked("SET", key: key)
        return try perform {
            .set(value.bytes, forKey: key, policy: policy, codec: value.codec, server: $0, if: condition)
        }
    }

    // MARK: Counters

    /// Adds to a whole number in one step; a key without a fresh entry counts as 0. The entry keeps its rule.
    /// - Returns: the sum.
    /// - Throws: `server` when something else is stored there, or the sum is not an `Int`.
    @discardableResult
    public func increment(_ key: some CacheKey, by step: Int = 1) throws(LarderClientError) -> Int {
        Int(clamping: try perform(.increment(key.keyBytes, by: Int64(step))))
    }

    /// Adds to a number in one step; a key without a fresh entry counts as 0. The entry keeps its rule.
    /// - Returns: the sum.
    /// - Throws: `server` when something else is stored there, or the sum is not finite.
    @discardableResult
    public func increment(_ key: some CacheKey, by step: Double) throws(LarderClientError) -> Double {
        try perform(.increment(key.keyBytes, by: step))
    }

    // MARK: Lifetimes

    /// Removes an entry and gives what it held, in one step.
    /// - Returns: nil when there was no fresh entry.
    /// - Throws: `decode` when something else is stored there; it is removed all the same.
    public func removeValue<Value: Decodable>(_ type: Value.Type = Value.self, forKey key: some CacheKey)
        throws(LarderClientError) -> Value?
    {
        let key = key.keyBytes
        guard let bytes = try perform(.take(key)) else { return nil }
        return try decoded(type, bytes, key)
    }

    /// The model stored under a key, whose entry gets another lifetime in the same step. Policies as for
    /// ``touch(_:policy:)``.
    /// - Returns: nil when there is no fresh entry.
    /// - Throws: `decode` when something else is stored there; its entry has got its other lifetime all the same.
    public func value<Value: Decodable>(
        _ type: Value.Type = Value.self, forKey key: some CacheKey, renewing policy: EntryPolicy
    ) throws(LarderClientError) -> Value? {
        let key = key.keyBytes
        let lifetime = try LifetimeChange.words(renewing: policy, key)
        guard let bytes = try perform(Request<[UInt8]?>.get(key, renewing: lifetime)) else { return nil }
        return try decoded(type, bytes, key)
    }

    /// Gives an entry another lifetime; its value and the time it was stored stay as they are.
    /// - Parameters:
    ///   - key: the entry's key.
    ///   - policy: intervals count from now; an instant in the past removes the entry; ``EntryPolicy/keep`` changes
    ///     nothing.
    /// - Returns: whether there was a fresh entry.
    /// - Throws: `invalidArgument` for ``EntryPolicy/database``, which no command of the daemon gives back to an entry.
    @discardableResult
    public func touch(_ key: some CacheKey, policy: EntryPolicy) throws(LarderClientError) -> Bool {
        let change = try LifetimeChange(policy, key.keyBytes)
        return try change.result(try pipeline(change.requests.map(\.words)))
    }
}
