// Writes that depend on the stored value, counters, lifetimes.

import LarderPlatform

extension BlockingLarderClient {
    // MARK: Conditions

    /// Stores a model under a key that has no fresh entry. If several clients do so concurrently, only one succeeds.
    /// The parameters are those of ``set(_:forKey:policy:tags:)``.
    /// - Returns: whether it was stored.
    public func setIfAbsent(
        _ value: some Encodable, forKey key: some CacheKey, policy: EntryPolicy = .database, tags: [String] = []
    ) throws(LarderClientError) -> Bool {
        try put(try newEntry(value, key.keyBytes, policy, tags), if: wordList("NX"))
    }

    /// Replaces a fresh entry, whatever its value. The parameters are those of ``set(_:forKey:policy:tags:)``.
    /// - Returns: whether there was a fresh entry; otherwise nothing was stored.
    public func setIfPresent(
        _ value: some Encodable, forKey key: some CacheKey, policy: EntryPolicy = .database, tags: [String] = []
    ) throws(LarderClientError) -> Bool {
        try put(try newEntry(value, key.keyBytes, policy, tags), if: wordList("XX"))
    }

    /// Replaces a fresh entry if it holds `previous` (compare and swap). Encodes `previous` with the client's codec,
    /// and compares the bytes with the stored ones. The other parameters are those of ``set(_:forKey:policy:tags:)``.
    /// Needs larderd, or Redis 8.4 or later.
    /// - Returns: whether it was stored.
    public func replace<Value: Encodable>(
        _ previous: Value, with value: Value, forKey key: some CacheKey, policy: EntryPolicy = .database,
        tags: [String] = []
    ) throws(LarderClientError) -> Bool {
        let key = key.keyBytes
        let condition = wordList("IFEQ") + [try newEntry(previous, key).bytes]
        return try put(try newEntry(value, key, policy, tags), if: condition)
    }

    /// Removes a fresh entry if it holds `value`, compared as in ``replace(_:with:forKey:policy:tags:)``. Does not
    /// remove a newer value that another client has stored. Needs larderd, or Redis 8.4 or later.
    /// - Returns: whether it was removed.
    @discardableResult
    public func remove<Value: Encodable>(_ key: some CacheKey, ifEqual value: Value) throws(LarderClientError) -> Bool {
        let key = key.keyBytes
        return try perform(.remove(key, ifEqual: try newEntry(value, key).bytes))
    }

    /// Updates an entry atomically: reads it, lets `body` change it, and stores the result. If another client has
    /// changed the value in the meantime, `body` runs again with the new one. Takes two round trips for each run;
    /// `body` may use the client.
    ///
    /// The parameters, and the waits between runs, are those of ``RemoteCache/update(forKey:policy:tags:attempts:_:)``.
    /// If the value is of another type, `body` receives nil. Needs larderd, or Redis 8.4 or later.
    /// - Returns: the result of the last run of `body`.
    /// - Throws: `conflict` if another client changed the value in every attempt, and errors of `body`.
    @discardableResult
    public func update<Value: Codable, Result>(
        _ type: Value.Type = Value.self, forKey key: some CacheKey, policy: EntryPolicy = .keep, tags: [String] = [],
        attempts: Int? = nil, _ body: (inout Value?) throws -> Result
    ) throws -> Result {
        let key = key.keyBytes
        try LarderClientError.checkAttempts(attempts, "update")
        var runs = UpdateAttempts(most: attempts, limitMilliseconds: session.updateMilliseconds)
        while true {
            let previous = try bytes(forKey: key)
            var model = try decodable(type, previous, key)
            let result = try body(&model)
            let entry = try model.map { try newEntry($0, key, policy, tags) }
            if try exchange(previous, for: entry, key) { return result }
            try rest(&runs, key)
        }
    }

    /// Stores an entry, or removes the key for nil, if the stored value is still `previous`.
    /// - Returns: whether the stored value was still `previous`, so that the change was made.
    private func exchange(_ previous: [UInt8]?, for entry: NewEntry?, _ key: [UInt8]) throws(LarderClientError) -> Bool
    {
        guard let previous else { return if let entry { try put(entry, if: wordList("NX")) } else { true } }
        guard let entry else { return try perform(.remove(key, ifEqual: previous)) }
        return try put(entry, if: wordList("IFEQ") + [previous], keepsTags: true)
    }

    /// Waits before the next attempt.
    /// - Throws: `conflict` if there must be no other attempt.
    private func rest(_ runs: inout UpdateAttempts, _ key: [UInt8]) throws(LarderClientError) {
        guard let rest = runs.rest() else { throw LarderClientError.updateConflict(key, runs).about(name) }
        WorkThread.sleep(nanoseconds: rest)
    }

    // MARK: Counters

    /// Adds to an integer in one step. A key without a fresh entry counts as 0. The entry keeps its deadline rule and
    /// its tags.
    /// - Returns: the sum.
    /// - Throws: `server` if the value is not an integer, or the sum is not an `Int`.
    @discardableResult
    public func increment(_ key: some CacheKey, by step: Int = 1) throws(LarderClientError) -> Int {
        Int(clamping: try perform(.increment(key.keyBytes, by: Int64(step))))
    }

    /// Like the call above, for integers of another type. Costs and errors are those of `RemoteCache.increment(_:by:)`.
    @discardableResult
    public func increment<Value: FixedWidthInteger & Sendable>(_ key: some CacheKey, by step: Value)
        throws(LarderClientError) -> Value
    {
        let increment = WholeIncrement(key: key.keyBytes, step: step)
        let key = increment.key
        if let step = increment.stepOfDaemon { return Value(clamping: try perform(.increment(key, by: step))) }
        var runs = UpdateAttempts(most: nil, limitMilliseconds: session.updateMilliseconds)
        while true {
            let previous = try bytes(forKey: key)
            let (sum, entry) = try increment.sum(previous)
            if try exchange(previous, for: entry, key) { return sum }
            try rest(&runs, key)
        }
    }

    /// Adds to a number in one step. A key without a fresh entry counts as 0. The entry keeps its deadline rule and its
    /// tags.
    /// - Returns: the sum.
    /// - Throws: `server` if the value is not a number, or the sum is not finite; the entry is unchanged in that case.
    ///   `decode` if Redis has stored a sum that does not fit into a `Double`.
    @discardableResult
    public func increment(_ key: some CacheKey, by step: Double) throws(LarderClientError) -> Double {
        try perform(.increment(key.keyBytes, by: step))
    }

    // MARK: Lifetimes

    /// Removes an entry and returns its value, in one step.
    /// - Returns: nil if there was no fresh entry.
    /// - Throws: `decode` if the value is of another type; the entry is still removed.
    public func removeValue<Value: Decodable>(_ type: Value.Type = Value.self, forKey key: some CacheKey)
        throws(LarderClientError) -> Value?
    {
        let key = key.keyBytes
        return try decoded(type, try perform(.take(key)), key)
    }

    /// Reads the model of a key and changes the lifetime of its entry in one step. For the policies see
    /// ``touch(_:policy:)``.
    /// - Returns: nil if there is no fresh entry.
    /// - Throws: `decode` if the value is of another type; the entry still gets its new lifetime.
    public func value<Value: Decodable>(
        _ type: Value.Type = Value.self, forKey key: some CacheKey, renewing policy: EntryPolicy
    ) throws(LarderClientError) -> Value? {
        let key = key.keyBytes
        let lifetime = try LifetimeChange.words(renewing: policy, name, key)
        return try decoded(type, try perform(.get(key, renewing: lifetime)), key)
    }

    /// Changes the lifetime of an entry. Its value and the time at which it was stored stay the same. An interval in
    /// `policy` counts from now; an instant in the past removes the entry; ``EntryPolicy/keep`` changes nothing.
    /// - Returns: whether there was a fresh entry.
    /// - Throws: `invalidArgument` for ``EntryPolicy/database``, because the daemon has no command for it.
    @discardableResult
    public func touch(_ key: some CacheKey, policy: EntryPolicy) throws(LarderClientError) -> Bool {
        let change = try LifetimeChange(policy, name, key.keyBytes)
        return try named { () throws(LarderClientError) in
            try change.result(try pipeline(change.requests.map(\.words)))
        }
    }
}
